/*
 * edit_data.h - what edit.c needs of edit_data.c. Call with the mount's lock.
 */
#ifndef BPKFS_EDIT_DATA_H
#define BPKFS_EDIT_DATA_H

#include "mount.h"

/* The item of @entry, and the kernel's node of it bound to it for good. */
int edit_take(struct mount *mount, const struct entry *entry, struct item **ret_item);

/* Bytes of its own for a tensor that leaves its place in the pack or is written: of those
 * that it had at least the first @keep, or all when they are fewer. */
int edit_stage(struct mount *mount, struct item *item, uint64_t keep);
/* Is a tensor of @size bytes larger than a pack may have? 0 or -EFBIG. */
int edit_too_large(const struct item *item, uint64_t size);

/*
 * Give @item the bytes that it must hold as an entry of @kind, before its name
 * changes. @victim, or NULL, is whose place it takes: its description stays.
 */
int edit_fit(struct mount *mount, struct item *item, enum item_kind kind,
	     const struct item *victim, const char *name, size_t name_size);

#endif
