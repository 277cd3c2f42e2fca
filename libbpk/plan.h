/*
 * plan.h - descriptions in, offsets and the finished metadata out. Pure
 * arithmetic: a plan never sees a byte of any tensor.
 */
#ifndef BPK_PLAN_H
#define BPK_PLAN_H

#include "bpk.h"
#include "table.h"

struct bpk_plan_tensor {
	struct bpk_named named;
	enum bpk_dtype dtype;
	const void *dtype_cbor; /* what is written, canonical or the caller's */
	size_t dtype_cbor_size;
	const uint64_t *shape;
	size_t rank;
	bool has_param_id;
	uint64_t param_id;
	const void *extra;
	size_t extra_size;
	size_t extra_count;
	uint64_t size;
	uint64_t start; /* from the data section's start; set by bpk_plan_run() */
};

struct bpk_plan_scalar {
	struct bpk_named named;
	struct bpk_scalar_value value;
};

struct bpk_plan_metadata {
	struct bpk_named named;
	const char *value;
	size_t value_size;
};

struct bpk_plan {
	/* What is to be written. */
	struct bpk_limits limits;
	bool allow_odd_sizes;
	struct bpk_table tensors; /* items are write order */
	struct bpk_table scalars;
	struct bpk_table metadata;
	void *extra;
	size_t extra_size;
	size_t extra_count;

	/* What bpk_plan_run() makes of it; valid while @done. */
	bool done;
	uint8_t *front; /* header and metadata */
	size_t front_size;
	uint64_t data_off;
	uint64_t file_size;
};

/* Free what is in @plan. NULL is accepted. */
void bpk_plan_done(struct bpk_plan *plan);

/*
 * Check and add; each copies what it is given, and leaves the plan as it was on
 * failure. Errors as bpk.h says for the calls of bpk_writer of the same name.
 */
int bpk_plan_add_tensor(struct bpk_plan *plan, const struct bpk_tensor_desc *desc,
			uint64_t size, struct bpk_error *error);
int bpk_plan_set_scalar(struct bpk_plan *plan, const char *name, size_t name_size,
			struct bpk_scalar_value value, struct bpk_error *error);
int bpk_plan_set_metadata(struct bpk_plan *plan, const char *key, size_t key_size,
			  const char *value, size_t value_size, struct bpk_error *error);
int bpk_plan_set_extra(struct bpk_plan *plan, const void *extra, size_t extra_size,
		       size_t extra_count, struct bpk_error *error);

/* Work everything out, unless that is done. BPK_ERR_LIMIT, _OVERFLOW, _MEMORY. */
int bpk_plan_run(struct bpk_plan *plan, struct bpk_error *error);

static inline struct bpk_plan_tensor *bpk_plan_tensor(const struct bpk_plan *plan,
						      size_t index)
{
	return (struct bpk_plan_tensor *)plan->tensors.items[index];
}

#endif
