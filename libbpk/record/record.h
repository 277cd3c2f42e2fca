/*
 * record.h - what a record is made of, for the files in this folder.
 *
 * A record is three tables of names. One that was loaded holds its reader, too, and the
 * tensors' bytes are still in the pack; a collected one points to the caller's buffers.
 * From there on nobody needs to know which of the two it is.
 */
#ifndef BPK_RECORD_RECORD_H
#define BPK_RECORD_RECORD_H

#include "bpk_record.h"
#include "error.h"
#include "table.h"

#include <errno.h>

struct bpk_record {
	struct bpk_reader *reader; /* NULL: nothing was loaded */
	struct bpk_table tensors;  /* struct record_tensor */
	struct bpk_table scalars;  /* struct record_scalar */
	struct bpk_table metadata; /* struct record_metadata */
};

/* Each is one block, with what it points to behind it, the named bytes included. */
struct record_tensor {
	struct bpk_named named;
	struct bpk_record_tensor tensor;
	const void *extra; /* the reader's */
	size_t extra_size, extra_count;
};

struct record_scalar {
	struct bpk_named named;
	struct bpk_scalar_value value;
};

struct record_metadata {
	struct bpk_named named;
	const char *value;
	size_t value_size;
};

static inline int record_no_memory(struct bpk_error *error)
{
	return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET, "out of memory");
}

static inline int record_bad_argument(struct bpk_error *error, const char *why)
{
	return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET, "%s", why);
}

/* NULL when there is none. */
const struct record_tensor *bpk_record_get_tensor(const struct bpk_record *record,
						  const char *name, size_t name_size);

/*
 * Add @tensor, whose name, shape and dtype_cbor are copied (dtype_cbor NULL: the
 * canonical one) and whose data is not. A name that is there is -EEXIST.
 */
int bpk_record_add_tensor(struct bpk_record *record,
			  const struct bpk_record_tensor *tensor,
			  struct bpk_error *error);

/* A record over @reader, which is the record's on success and closed on failure. */
int bpk_record_from_reader(struct bpk_reader *reader, struct bpk_record **ret_record,
			   struct bpk_error *error);
/* A writer that holds all of @record but the metadata key @without (NULL: none), for
 * bpk_writer_free(). */
int bpk_record_to_writer(const struct bpk_record *record, const char *without,
			 struct bpk_writer **ret_writer, struct bpk_error *error);

/* A number in decimal as Burn writes it: no sign, no leading zero, at most 64 bits.
 * Returns its digits, or 0 when there is none at the start of @text. */
size_t bpk_record_parse_decimal(const char *text, size_t size, uint64_t *ret_value);

/* One parameter: fill.c ------------------------------------------------------ */

/* How many bytes of @param's buffer are collected: what dtype and shape need, and for
 * QFloat all. Refuses a parameter that is wrong; @name is for messages. */
int bpk_record_collect_size(const struct bpk_param *param, const char *name,
			    size_t name_size, uint64_t *ret_size,
			    struct bpk_error *error);

/* A sentence about why something does not fit; cut when it is too long. */
#define RECORD_REASON_SIZE 256

/*
 * Does @tensor go into @param? 0, or 1 with why it does not. -EINVAL, -EOVERFLOW with
 * @error filled when @param itself is wrong.
 */
int bpk_record_fits(const struct bpk_record_tensor *tensor, const struct bpk_param *param,
		    enum bpk_dtype_policy policy, enum bpk_misfit *ret_misfit,
		    char ret_reason[RECORD_REASON_SIZE], struct bpk_error *error);
/* Fill @param from @tensor, for which bpk_record_fits() gave 0. */
void bpk_record_fill(const struct bpk_record_tensor *tensor, enum bpk_dtype_policy policy,
		     struct bpk_param *param);

#endif
