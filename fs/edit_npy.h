/*
 * edit_npy.h - writing in npy/: a tensor from the .npy file of it. Call with the
 * mount's lock; 0 or -errno.
 *
 * While a .npy file is written it is a draft (npy_draft.h), seen in npy/ alone. When it
 * is closed, and again when the last handle that may write goes, it becomes the tensor;
 * one that is no whole .npy file is refused then, and forgotten with that last handle.
 * A header alone is kept, and its data may come later: so numpy.memmap makes files.
 * Writes that change nothing but data go to the tensor as they come.
 */
#ifndef BPKFS_EDIT_NPY_H
#define BPKFS_EDIT_NPY_H

#include "mount.h"

bool edit_is_npy(const struct node *node, const struct item *item);
int edit_npy_write(struct mount *mount, struct item *item, const char *data, size_t size,
		   uint64_t off);
int edit_npy_truncate(struct mount *mount, struct item *item, uint64_t size);
/* Closed. -EINVAL for what is no tensor. */
int edit_npy_flush(struct mount *mount, struct item *item);
/* The last handle that may write has gone. */
void edit_npy_end(struct mount *mount, struct item *item);
/* Written in tensors/: a draft that nobody writes is of the past. */
void edit_npy_forget(struct item *item);
/*
 * Before a rename within npy/: what was a scratch file, of which nothing was asked, must
 * be a .npy file to become a tensor; a tensor that becomes one is written out as such.
 */
int edit_npy_fit(struct mount *mount, struct item *item, enum item_kind kind,
		 const struct item *victim);

#endif
