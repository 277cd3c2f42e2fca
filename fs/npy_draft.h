/*
 * npy_draft.h - a .npy file while it is written, before it is a tensor.
 *
 * Its first bytes, where the header is, are kept in memory; what follows lies in a
 * staged file from its start on, so that the data of most .npy files (C order, little
 * endian) is the tensor's as it lies there, without a copy. Where the header ends is
 * known from its first twelve bytes. A file that is not written in that order lies in
 * the staged file as a whole, and is put together when it becomes a tensor.
 *
 * Knows nothing of entries. Call with the mount's lock.
 */
#ifndef BPKFS_NPY_DRAFT_H
#define BPKFS_NPY_DRAFT_H

#include "convert/npy.h"
#include "overlay.h"
#include "reading.h"
#include "staging.h"

struct npy_draft {
	char *head; /* bytes [0, head_size) */
	size_t head_size;
	size_t head_capacity;
	bool split_known;
	size_t split;	       /* staged holds the bytes from here on */
	struct staged *staged; /* NULL for none */
	bool changed;	       /* since it was last made a tensor */
	bool refused;	       /* the last close found it bad */
	/* It is the tensor: what follows the head is the tensor's own data. */
	bool settled;
	/* Attributes that were set meanwhile: they count once it is a tensor. */
	struct item *given; /* dtype and shape alone, owned; or NULL */
};

/* Does it hold what is no tensor yet? NULL accepted. */
static inline bool npy_draft_pending(const struct npy_draft *draft)
{
	return draft && !draft->settled && draft->changed;
}

/* An empty file. NULL without memory. */
struct npy_draft *npy_draft_new(void);
/* The file of @head and behind it @staged (a reference that it takes, or NULL). */
struct npy_draft *npy_draft_of(const char *head, size_t head_size, struct staged *staged);
void npy_draft_free(struct npy_draft *draft); /* NULL accepted */

/* All below are for drafts that are not settled, but for npy_draft_head(). */
uint64_t npy_draft_size(const struct npy_draft *draft);
int npy_draft_write(struct npy_draft *draft, struct staging *staging, const char *data,
		    size_t size, uint64_t off);
int npy_draft_truncate(struct npy_draft *draft, struct staging *staging, uint64_t size);
/* Name all its bytes. */
int npy_draft_read(const struct npy_draft *draft, struct reading *reading);

/*
 * The header, read. -EINVAL when it is none or of a dtype that burnpack has not;
 * *@ret_npy is for bpk_npy_done().
 */
int npy_draft_parse(const struct npy_draft *draft, struct bpk_npy *ret_npy);
/*
 * The data of the array @npy (npy_draft_parse()'s) in C order and little endian, in a
 * file of its own: *@ret_staged is a new reference. *@ret_same: it is the draft's own
 * file. -EINVAL when the file has fewer or more bytes than the array.
 */
int npy_draft_data(const struct npy_draft *draft, struct staging *staging,
		   const struct bpk_npy *npy, struct staged **ret_staged, bool *ret_same);

#endif
