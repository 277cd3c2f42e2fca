/*
 * npy.h - headers of .npy files, numpy's format for one array (NEP 1 and
 * numpy.lib.format): the header of a tensor, and the tensor of a header. Knows
 * nothing of the data behind the header, which is never looked at here.
 *
 * A .npy file is the magic "\x93NUMPY", a version of two bytes, the length of what
 * follows (2 bytes in version 1.0, 4 bytes since 2.0, little endian), a Python dict
 * of `descr`, `fortran_order` and `shape` as text with spaces and a newline behind
 * it, and the elements.
 */
#ifndef BPK_CONVERT_NPY_H
#define BPK_CONVERT_NPY_H

#include "bpk.h"

/* Rendering ---------------------------------------------------------------- */

/*
 * More dimensions than these may not fit the length in a header, 22 bytes each. Such
 * a tensor is shown as its bytes. (numpy itself stops at 32, since 2.0 at 64.)
 */
#define BPK_NPY_RANK_SHOWN ((size_t)UINT32_MAX / 24)

/*
 * The header of a tensor of @data_size bytes: in C order, little endian, a multiple of
 * 64 bytes, version 1.0, or 2.0 where 65535 bytes are too few. bfloat16, which numpy
 * does not know, is a void of two bytes, as np.load() and np.save() keep it. Flex32
 * is float32, Bool(U32) is uint32, the other Bools are bool. What is no array
 * (bpk_array_is()) is shown as uint8 of shape (@data_size,), so header and data are
 * a valid .npy file whatever the tensor is.
 *
 * *@ret_header is for free(3). Returns 0 or -ENOMEM. Any thread.
 */
int bpk_npy_render(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
		   uint64_t data_size, char **ret_header, size_t *ret_size);

/* The size of that header, without making it. */
size_t bpk_npy_render_size(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
			   uint64_t data_size);

/* Parsing ------------------------------------------------------------------ */

/*
 * No longer header is read: this is the longest of version 1.0. Later versions are for
 * structured dtypes of many fields, which no tensor has, and numpy itself loads no
 * header above 10 000 bytes unless told to trust it.
 */
#define BPK_NPY_HEADER_MAX (10 + 65535)

/* What numpy can hold since 2.0. So a shape is read into an array of this size, and
 * nothing is allocated before the whole header was found good. */
#define BPK_NPY_RANK_MAX 64

struct bpk_npy {
	enum bpk_dtype dtype; /* |V2 is BF16, bool is Bool(Native) */
	uint64_t *shape;      /* rank of them; NULL when that is 0 */
	size_t rank;
	uint64_t header_size; /* where the data starts */
	uint64_t data_size;   /* shape x dtype; what follows it is not told */
	bool big_endian;      /* elements of more than one byte are to be swapped */
	bool column_major;    /* the first dimension runs fastest, rank > 1 */
};

/*
 * How many bytes a header has, from the first @size bytes of a file. When those are
 * too few to tell, *@ret_needed (10 or 12) is above @size: ask again with that many.
 *
 * Errors: -EBADMSG (BPK_ERR_MALFORMED: no .npy file), -EPROTONOSUPPORT (BPK_ERR_VERSION),
 * -EFBIG (BPK_ERR_LIMIT). Any thread.
 */
int bpk_npy_needed(const void *data, size_t size, size_t *ret_needed,
		   struct bpk_error *error);

/*
 * Read the header at the start of the @size bytes at @data. Offsets in @error count
 * from there. *@ret_npy is for bpk_npy_done().
 *
 * Errors: those of bpk_npy_needed(), -ENODATA (BPK_ERR_TRUNCATED: fewer bytes than
 * that), -EBADMSG (BPK_ERR_MALFORMED), -EINVAL (BPK_ERR_ARGUMENT: a dtype that
 * burnpack has no name for; the message says which), -EFBIG (BPK_ERR_LIMIT: rank),
 * -EOVERFLOW (BPK_ERR_OVERFLOW), -ENOMEM. Any thread.
 */
int bpk_npy_parse(const void *data, size_t size, struct bpk_npy *ret_npy,
		  struct bpk_error *error);

/* Free what @npy owns. NULL and a zeroed one are accepted. */
void bpk_npy_done(struct bpk_npy *npy);

#endif
