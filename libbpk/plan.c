/*
 * plan.c - where everything in a new pack goes, and its metadata, finished.
 *
 * Knows descriptions and arithmetic. Refuses to know where the bytes of a tensor
 * come from or go to.
 *
 * Invariant: what is in the tables has been checked (UTF-8, sizes, dtype and extra
 * items), so bpk_plan_run() can fail only for want of memory, by overflow, or at a
 * limit on the whole. A change of the tables clears @done.
 *
 * The layout: 10 bytes of header, the metadata, zeros up to a multiple of 256; then
 * the tensors in the order they were added, each at the next multiple of 256.
 * The end of the last one is the end of the pack, also when it is empty and its
 * start was rounded up. Offsets are counted from the data section, so they do not
 * depend on how long the metadata is that they stand in.
 */
#include "plan.h"

#include "cbor.h"
#include "dtype.h"
#include "error.h"
#include "header.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Containers around a descriptor's values: top-level map, tensors, descriptor. */
#define DESCRIPTOR_DEPTH 3
#define TOP_LEVEL_DEPTH 1

static const char *const descriptor_keys[] = { "dtype", "shape", "data_offsets",
					       "param_id", NULL };
static const char *const top_level_keys[] = { "tensors", "metadata", "scalars", NULL };

static void forget(struct bpk_plan *plan)
{
	free(plan->front);
	plan->front = NULL;
	plan->front_size = 0;
	plan->done = false;
}

void bpk_plan_done(struct bpk_plan *plan)
{
	if (!plan)
		return;
	forget(plan);
	bpk_table_done(&plan->tensors);
	bpk_table_done(&plan->scalars);
	bpk_table_done(&plan->metadata);
	free(plan->extra);
	plan->extra = NULL;
}

static int no_memory(struct bpk_error *error)
{
	return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET, "out of memory");
}

static int bad_argument(struct bpk_error *error, const char *who, const char *why)
{
	return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET, "%s: %s", who,
			why);
}

/* "tensor" and the quoted name, for messages. */
#define WHO_SIZE (BPK_QUOTE_SIZE + 16)
static const char *who_is(char who[WHO_SIZE], const char *kind, const char *name,
			  size_t size)
{
	char quoted[BPK_QUOTE_SIZE];

	snprintf(who, WHO_SIZE, "%s %s", kind, bpk_quote(quoted, name, size));
	return who;
}

static bool is_text(const char *text, size_t size)
{
	return !size || (text && bpk_utf8_valid(text, size));
}

/* "[2,3]", cut with "..." when it is long. */
#define SHAPE_TEXT_SIZE 96
static const char *shape_text(char text[SHAPE_TEXT_SIZE], const uint64_t *shape,
			      size_t rank)
{
	size_t at = 0;

	text[at++] = '[';
	for (size_t i = 0; i < rank; i++) {
		if (at + 32 > SHAPE_TEXT_SIZE) {
			at += (size_t)snprintf(text + at, SHAPE_TEXT_SIZE - at, ",...");
			break;
		}
		at += (size_t)snprintf(text + at, SHAPE_TEXT_SIZE - at, "%s%" PRIu64,
				       i ? "," : "", shape[i]);
	}
	snprintf(text + at, SHAPE_TEXT_SIZE - at, "]");
	return text;
}

/* What a cursor that stands @depth deep may nest: never less than that. */
static uint32_t nesting(const struct bpk_plan *plan, uint32_t depth)
{
	uint32_t limit = plan->limits.nesting;

	if (limit > BPK_CBOR_NESTING_MAX)
		limit = BPK_CBOR_NESTING_MAX;
	return limit > depth ? limit : depth;
}

/* A dtype item from a caller: exactly one, of the dtype that the caller says. */
static int check_dtype_cbor(const struct bpk_plan *plan,
			    const struct bpk_tensor_desc *desc, const char *who,
			    struct bpk_error *error)
{
	struct bpk_error inner = { 0 };
	struct bpk_cursor cursor = {
		.data = desc->dtype_cbor,
		.size = desc->dtype_cbor_size,
		.depth = DESCRIPTOR_DEPTH,
		.nesting = nesting(plan, DESCRIPTOR_DEPTH),
		.error = &inner,
	};
	enum bpk_dtype dtype;

	if (bpk_dtype_parse(&cursor, &dtype) < 0)
		return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
				"%s: the dtype item is refused: %s", who, inner.message);
	if (cursor.pos != cursor.size)
		return bad_argument(error, who, "bytes follow the dtype item");
	if (dtype != desc->dtype)
		return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
				"%s: the dtype item says %s, the description %s", who,
				bpk_dtype_name(dtype), bpk_dtype_name(desc->dtype));
	return 0;
}

/* Verbatim pairs from a caller: exactly @count, each key a text that is none of
 * @known. */
static int check_extra(const struct bpk_plan *plan, const void *extra, size_t size,
		       size_t count, uint32_t depth, const char *const *known,
		       const char *who, struct bpk_error *error)
{
	struct bpk_error inner = { 0 };
	struct bpk_cursor cursor = {
		.data = extra,
		.size = size,
		.depth = depth,
		.nesting = nesting(plan, depth),
		.error = &inner,
	};
	char word[BPK_WORD_SIZE];
	size_t word_size;

	if (size && !extra)
		return bad_argument(error, who, "extra pairs have a size but no bytes");
	for (size_t i = 0; i < count; i++) {
		if (bpk_cbor_word(&cursor, "an extra key", word, &word_size) < 0)
			goto refused;
		for (size_t k = 0; known[k]; k++)
			if (bpk_word_is(word, word_size, known[k]))
				return bpk_fail(
					error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
					"%s: the extra key \"%s\" has its own place", who,
					known[k]);
		if (bpk_cbor_skip(&cursor) < 0)
			goto refused;
	}
	if (cursor.pos != size)
		return bad_argument(error, who, "bytes follow the extra pairs");
	return 0;
refused:
	return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
			"%s: the extra pairs are refused: %s", who, inner.message);
}

static int check_size(const struct bpk_plan *plan, const struct bpk_tensor_desc *desc,
		      uint64_t size, const char *who, struct bpk_error *error)
{
	char shape[SHAPE_TEXT_SIZE];
	uint64_t wanted;
	int r;

	if (desc->dtype != BPK_DTYPE_QFLOAT && !plan->allow_odd_sizes) {
		r = bpk_shape_size(desc->dtype, desc->shape, desc->rank, &wanted);
		if (r < 0)
			return bpk_fail(
				error, -EOVERFLOW, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
				"%s: shape %s of %s is more bytes than 64 bits count",
				who, shape_text(shape, desc->shape, desc->rank),
				bpk_dtype_name(desc->dtype));
		if (wanted != size)
			return bpk_fail(error, -EINVAL, BPK_ERR_SIZE_MISMATCH,
					BPK_NO_OFFSET,
					"%s: shape %s of %s is %" PRIu64
					" bytes, %" PRIu64 " are given",
					who, shape_text(shape, desc->shape, desc->rank),
					bpk_dtype_name(desc->dtype), wanted, size);
	}
	if (size > plan->limits.tensor_size)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
				"%s: %" PRIu64 " bytes, the limit is %" PRIu64, who, size,
				plan->limits.tensor_size);
	return 0;
}

static int check_tensor(const struct bpk_plan *plan, const struct bpk_tensor_desc *desc,
			uint64_t size, struct bpk_error *error)
{
	char who[WHO_SIZE];
	int r;

	if (!is_text(desc->name, desc->name_size))
		return bad_argument(error, "a tensor's name", "not UTF-8");
	who_is(who, "tensor", desc->name, desc->name_size);
	if ((unsigned int)desc->dtype >= BPK_DTYPE_COUNT)
		return bad_argument(error, who, "there is no such dtype");
	if (desc->rank && !desc->shape)
		return bad_argument(error, who, "a rank without a shape");
	if (desc->dtype_cbor)
		r = check_dtype_cbor(plan, desc, who, error);
	else if (desc->dtype == BPK_DTYPE_QFLOAT)
		r = bad_argument(error, who, "QFloat needs the item of its scheme");
	else
		r = 0;
	if (r < 0)
		return r;
	r = check_extra(plan, desc->extra, desc->extra_size, desc->extra_count,
			DESCRIPTOR_DEPTH, descriptor_keys, who, error);
	if (r < 0)
		return r;
	r = check_size(plan, desc, size, who, error);
	if (r < 0)
		return r;
	if (bpk_table_find(&plan->tensors, desc->name, desc->name_size))
		return bpk_fail(error, -EEXIST, BPK_ERR_DUPLICATE, BPK_NO_OFFSET,
				"%s is already there", who);
	if (plan->tensors.count >= plan->limits.tensor_count)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
				"%s is one more than the limit of %" PRIu64 " tensors",
				who, plan->limits.tensor_count);
	return 0;
}

/* Copy @size bytes to *@at and step over them; returns the copy. */
static void *put(uint8_t **at, const void *bytes, size_t size)
{
	void *copy = *at;

	if (size)
		memcpy(copy, bytes, size);
	*at += size;
	return copy;
}

/*
 * One block: the struct, behind it the shape (which needs the alignment), then
 * bytes. @more_size bytes of room behind @base_size; *@ret_at is where they start.
 */
static void *new_block(size_t base_size, const size_t *sizes, size_t count,
		       uint8_t **ret_at)
{
	size_t total = base_size;
	uint8_t *block;

	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(total, sizes[i], &total))
			return NULL;
	block = calloc(1, total);
	if (block)
		*ret_at = block + base_size;
	return block;
}

int bpk_plan_add_tensor(struct bpk_plan *plan, const struct bpk_tensor_desc *desc,
			uint64_t size, struct bpk_error *error)
{
	struct bpk_plan_tensor *tensor;
	const void *dtype_cbor = desc->dtype_cbor;
	size_t dtype_cbor_size = desc->dtype_cbor_size;
	size_t sizes[4];
	uint8_t *at;
	int r;

	r = check_tensor(plan, desc, size, error);
	if (r < 0)
		return r;
	if (!dtype_cbor)
		dtype_cbor = bpk_dtype_cbor(desc->dtype, &dtype_cbor_size);
	if (__builtin_mul_overflow(desc->rank, sizeof(*desc->shape), &sizes[0]))
		return no_memory(error);
	sizes[1] = desc->name_size;
	sizes[2] = dtype_cbor_size;
	sizes[3] = desc->extra_size;
	tensor = new_block(sizeof(*tensor), sizes, 4, &at);
	if (!tensor)
		return no_memory(error);
	tensor->shape = put(&at, desc->shape, sizes[0]);
	tensor->rank = desc->rank;
	tensor->named.name = put(&at, desc->name, desc->name_size);
	tensor->named.name_size = desc->name_size;
	tensor->dtype = desc->dtype;
	tensor->dtype_cbor = put(&at, dtype_cbor, dtype_cbor_size);
	tensor->dtype_cbor_size = dtype_cbor_size;
	tensor->has_param_id = desc->has_param_id;
	tensor->param_id = desc->param_id;
	tensor->extra = put(&at, desc->extra, desc->extra_size);
	tensor->extra_size = desc->extra_size;
	tensor->extra_count = desc->extra_count;
	tensor->size = size;
	if (bpk_table_put(&plan->tensors, &tensor->named) < 0) {
		free(tensor);
		return no_memory(error);
	}
	forget(plan);
	return 0;
}

int bpk_plan_set_scalar(struct bpk_plan *plan, const char *name, size_t name_size,
			struct bpk_scalar_value value, struct bpk_error *error)
{
	struct bpk_plan_scalar *scalar;
	char who[WHO_SIZE];
	uint8_t *at;

	if (!is_text(name, name_size))
		return bad_argument(error, "a scalar's name", "not UTF-8");
	if ((unsigned int)value.type > BPK_SCALAR_BOOL)
		return bad_argument(error, who_is(who, "scalar", name, name_size),
				    "there is no such type");
	scalar = new_block(sizeof(*scalar), &name_size, 1, &at);
	if (!scalar)
		return no_memory(error);
	scalar->named.name = put(&at, name, name_size);
	scalar->named.name_size = name_size;
	scalar->value = value;
	if (bpk_table_put(&plan->scalars, &scalar->named) < 0) {
		free(scalar);
		return no_memory(error);
	}
	forget(plan);
	return 0;
}

int bpk_plan_set_metadata(struct bpk_plan *plan, const char *key, size_t key_size,
			  const char *value, size_t value_size, struct bpk_error *error)
{
	struct bpk_plan_metadata *metadata;
	const size_t sizes[2] = { key_size, value_size };
	char who[WHO_SIZE];
	uint8_t *at;

	if (!is_text(key, key_size))
		return bad_argument(error, "a metadata key", "not UTF-8");
	if (!is_text(value, value_size))
		return bad_argument(error, who_is(who, "metadata", key, key_size),
				    "the value is not UTF-8");
	metadata = new_block(sizeof(*metadata), sizes, 2, &at);
	if (!metadata)
		return no_memory(error);
	metadata->named.name = put(&at, key, key_size);
	metadata->named.name_size = key_size;
	metadata->value = put(&at, value, value_size);
	metadata->value_size = value_size;
	if (bpk_table_put(&plan->metadata, &metadata->named) < 0) {
		free(metadata);
		return no_memory(error);
	}
	forget(plan);
	return 0;
}

int bpk_plan_set_extra(struct bpk_plan *plan, const void *extra, size_t extra_size,
		       size_t extra_count, struct bpk_error *error)
{
	void *copy = NULL;
	int r;

	r = check_extra(plan, extra, extra_size, extra_count, TOP_LEVEL_DEPTH,
			top_level_keys, "the pack", error);
	if (r < 0)
		return r;
	if (extra_size) {
		copy = malloc(extra_size);
		if (!copy)
			return no_memory(error);
		memcpy(copy, extra, extra_size);
	}
	free(plan->extra);
	plan->extra = copy;
	plan->extra_size = extra_size;
	plan->extra_count = extra_count;
	forget(plan);
	return 0;
}

/* Give every tensor its place; *@ret_size is the size of the data section. */
static int place_tensors(struct bpk_plan *plan, uint64_t *ret_size,
			 struct bpk_error *error)
{
	uint64_t end = 0;

	for (size_t i = 0; i < plan->tensors.count; i++) {
		struct bpk_plan_tensor *tensor = bpk_plan_tensor(plan, i);
		char who[WHO_SIZE];

		if (!bpk_align_u64(end, BPK_ALIGNMENT, &tensor->start) ||
		    !bpk_add_u64(tensor->start, tensor->size, &end))
			return bpk_fail(error, -EOVERFLOW, BPK_ERR_OVERFLOW,
					BPK_NO_OFFSET,
					"%s ends where 64 bits cannot count",
					who_is(who, "tensor", tensor->named.name,
					       tensor->named.name_size));
	}
	*ret_size = end;
	return 0;
}

static void append_literal(struct bpk_appender *out, const char *text)
{
	bpk_append_text(out, text, strlen(text));
}

static void append_descriptor(struct bpk_appender *out,
			      const struct bpk_plan_tensor *tensor)
{
	/* Cannot overflow: each extra pair is bytes in memory. */
	bpk_append_map(out, 3 + (uint64_t)tensor->has_param_id + tensor->extra_count);
	append_literal(out, "dtype");
	bpk_append_raw(out, tensor->dtype_cbor, tensor->dtype_cbor_size);
	append_literal(out, "shape");
	bpk_append_array(out, tensor->rank);
	for (size_t i = 0; i < tensor->rank; i++)
		bpk_append_uint(out, tensor->shape[i]);
	append_literal(out, "data_offsets");
	bpk_append_array(out, 2);
	bpk_append_uint(out, tensor->start);
	bpk_append_uint(out, tensor->start + tensor->size);
	if (tensor->has_param_id) {
		append_literal(out, "param_id");
		bpk_append_uint(out, tensor->param_id);
	}
	bpk_append_raw(out, tensor->extra, tensor->extra_size);
}

static void append_scalar(struct bpk_appender *out, struct bpk_scalar_value value)
{
	bpk_append_map(out, 1);
	switch (value.type) {
	case BPK_SCALAR_INT:
		append_literal(out, "Int");
		bpk_append_int(out, value.i);
		break;
	case BPK_SCALAR_UINT:
		append_literal(out, "UInt");
		bpk_append_uint(out, value.u);
		break;
	case BPK_SCALAR_FLOAT:
		append_literal(out, "Float");
		bpk_append_float(out, value.float_bits);
		break;
	case BPK_SCALAR_BOOL:
		append_literal(out, "Bool");
		bpk_append_bool(out, value.b);
		break;
	}
}

/* One value of a table, behind its name. */
typedef void (*append_fn)(struct bpk_appender *out, const struct bpk_named *named);

static void append_tensor_value(struct bpk_appender *out, const struct bpk_named *named)
{
	append_descriptor(out, (const struct bpk_plan_tensor *)named);
}

static void append_metadata_value(struct bpk_appender *out, const struct bpk_named *named)
{
	const struct bpk_plan_metadata *metadata =
		(const struct bpk_plan_metadata *)named;

	bpk_append_text(out, metadata->value, metadata->value_size);
}

static void append_scalar_value(struct bpk_appender *out, const struct bpk_named *named)
{
	append_scalar(out, ((const struct bpk_plan_scalar *)named)->value);
}

/* A key of the top-level map and the table under it, in name order. */
static void append_table(struct bpk_appender *out, const char *key,
			 const struct bpk_table *table, append_fn append_value)
{
	_cleanup_(bpk_free_at) struct bpk_named **sorted = bpk_table_sorted(table);

	if (!sorted) {
		out->failed = true;
		return;
	}
	append_literal(out, key);
	bpk_append_map(out, table->count);
	for (size_t i = 0; i < table->count; i++) {
		bpk_append_text(out, sorted[i]->name, sorted[i]->name_size);
		append_value(out, sorted[i]);
	}
}

/* Header and metadata; the size in the header is filled in later. */
static void append_front(struct bpk_appender *out, const struct bpk_plan *plan)
{
	uint8_t header[BPK_HEADER_SIZE] = { 0 };

	bpk_put_le32(header, BPK_MAGIC);
	bpk_put_le16(header + 4, BPK_FORMAT_VERSION);
	bpk_append_raw(out, header, sizeof(header));
	bpk_append_map(out, 1 + (uint64_t)(plan->metadata.count > 0) +
				    (uint64_t)(plan->scalars.count > 0) +
				    plan->extra_count);
	append_table(out, "tensors", &plan->tensors, append_tensor_value);
	if (plan->metadata.count)
		append_table(out, "metadata", &plan->metadata, append_metadata_value);
	if (plan->scalars.count)
		append_table(out, "scalars", &plan->scalars, append_scalar_value);
	bpk_append_raw(out, plan->extra, plan->extra_size);
}

int bpk_plan_run(struct bpk_plan *plan, struct bpk_error *error)
{
	_cleanup_(bpk_append_done) struct bpk_appender front = { 0 };
	uint64_t data_size = 0, data_off = 0, file_size = 0, metadata_size,
		 metadata_limit;
	int r;

	if (plan->done)
		return 0;
	r = place_tensors(plan, &data_size, error);
	if (r < 0)
		return r;
	append_front(&front, plan);
	if (front.failed)
		return no_memory(error);
	metadata_size = front.size - BPK_HEADER_SIZE;
	metadata_limit = plan->limits.metadata_size;
	if (metadata_limit > UINT32_MAX) /* the header's field */
		metadata_limit = UINT32_MAX;
	if (metadata_size > metadata_limit)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
				"the metadata is %" PRIu64
				" bytes, the limit is %" PRIu64,
				metadata_size, metadata_limit);
	if (!bpk_align_u64(front.size, BPK_ALIGNMENT, &data_off) ||
	    !bpk_add_u64(data_off, data_size, &file_size))
		return bpk_fail(error, -EOVERFLOW, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
				"the pack is larger than 64 bits can count");
	if (file_size > plan->limits.file_size)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
				"the pack is %" PRIu64 " bytes, the limit is %" PRIu64,
				file_size, plan->limits.file_size);
	bpk_put_le32(front.data + 6, (uint32_t)metadata_size);
	plan->front = front.data;
	plan->front_size = front.size;
	front = (struct bpk_appender) { 0 };
	plan->data_off = data_off;
	plan->file_size = file_size;
	plan->done = true;
	return 0;
}
