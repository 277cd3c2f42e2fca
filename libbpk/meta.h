/*
 * meta.h - the metadata as tables.
 */
#ifndef BPK_META_H
#define BPK_META_H

#include "bpk.h"
#include "index.h"

/*
 * The rows. Every pointer leads into the metadata block (or the arena), so a row
 * costs the same however long its name or shape; 32 bits hold any size in it, as
 * the header gives the block's size in 32.
 */
struct bpk_tensor {
	struct bpk_entry entry;
	const uint8_t *dtype_cbor;
	const uint8_t *shape; /* its elements as CBOR, checked, rank of them */
	const uint8_t *extra; /* NULL when there is none */
	uint64_t start, end;  /* data_offsets; from the pack's start once the reader
			       * has checked them, before from the data section's */
	uint64_t param_id;
	uint32_t dtype_size; /* bytes at dtype_cbor */
	uint32_t shape_size; /* bytes at shape */
	uint32_t rank;
	uint32_t extra_size;
	uint32_t extra_count;
	uint8_t dtype;
	bool has_param_id;
};

struct bpk_scalar {
	struct bpk_entry entry;
	struct bpk_scalar_value value;
};

struct bpk_metadata {
	struct bpk_entry entry;
	const char *value;
	size_t value_size;
};

/* Zero-initialise; allocate as in struct bpk_source. */
struct bpk_meta {
	void *(*allocate)(size_t size);
	struct bpk_tensor *tensors;
	struct bpk_scalar *scalars;
	struct bpk_metadata *entries;
	size_t tensor_count, tensor_capacity;
	size_t scalar_count, scalar_capacity;
	size_t entry_count, entry_capacity;
	const uint8_t *extra; /* unknown top-level keys, NULL when there are none */
	uint32_t extra_size;
	uint32_t extra_count;
	uint8_t *arena; /* unknown keys that lay apart, brought together */
	size_t arena_used;
	size_t value_size; /* bytes of the CBOR value; what follows is a trailer */
};

/*
 * Read the @size bytes at @metadata (heap, the caller's, which must live as long
 * as @meta) into sorted tables; text in chunks is moved together in place. The
 * data_offsets are not looked at beyond being two numbers. On failure @meta is
 * to be given to bpk_meta_done() as well.
 *
 * Errors: -EBADMSG (_MALFORMED), -EFBIG (_LIMIT: nesting, tensor count), -ENOMEM.
 */
int bpk_meta_parse(struct bpk_meta *meta, uint8_t *metadata, size_t size,
		   const struct bpk_limits *limits, struct bpk_error *error);
void bpk_meta_done(struct bpk_meta *meta);

/* Dimension after dimension of @tensor: start with a zeroed *@state. False after
 * the last one. */
struct bpk_shape_walk {
	uint32_t index, pos;
};
bool bpk_meta_next_dim(const struct bpk_tensor *tensor, struct bpk_shape_walk *state,
		       uint64_t *ret_dim);

#endif
