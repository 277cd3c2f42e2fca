/*
 * scheduler.c - scalars as C's types, and the records of learning-rate schedulers, which
 * are nothing but scalars: a composed scheduler's child is a prefix of names.
 *
 * Invariant: no value changes on its way but an integer that a double cannot hold.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>

/* Scalars as C's types ----------------------------------------------------- */

BPK_EXPORT int bpk_scalar_to_i64(struct bpk_scalar_value value, int64_t *ret_value)
{
	if (value.type == BPK_SCALAR_INT) {
		*ret_value = value.i;
		return 0;
	}
	if (value.type != BPK_SCALAR_UINT)
		return -EINVAL;
	if (value.u > INT64_MAX)
		return -ERANGE;
	*ret_value = (int64_t)value.u;
	return 0;
}

BPK_EXPORT int bpk_scalar_to_u64(struct bpk_scalar_value value, uint64_t *ret_value)
{
	if (value.type == BPK_SCALAR_UINT) {
		*ret_value = value.u;
		return 0;
	}
	if (value.type != BPK_SCALAR_INT)
		return -EINVAL;
	if (value.i < 0)
		return -ERANGE;
	*ret_value = (uint64_t)value.i;
	return 0;
}

BPK_EXPORT int bpk_scalar_to_f64(struct bpk_scalar_value value, double *ret_value)
{
	switch (value.type) {
	case BPK_SCALAR_FLOAT:
		memcpy(ret_value, &value.float_bits, sizeof(*ret_value));
		return 0;
	case BPK_SCALAR_INT:
		*ret_value = (double)value.i;
		return 0;
	case BPK_SCALAR_UINT:
		*ret_value = (double)value.u;
		return 0;
	case BPK_SCALAR_BOOL:
		break;
	}
	return -EINVAL;
}

BPK_EXPORT int bpk_scalar_to_bool(struct bpk_scalar_value value, bool *ret_value)
{
	if (value.type != BPK_SCALAR_BOOL)
		return -EINVAL;
	*ret_value = value.b;
	return 0;
}

BPK_EXPORT struct bpk_scalar_value bpk_scalar_from_i64(int64_t value)
{
	return (struct bpk_scalar_value) { .type = BPK_SCALAR_INT, .i = value };
}

BPK_EXPORT struct bpk_scalar_value bpk_scalar_from_u64(uint64_t value)
{
	return (struct bpk_scalar_value) { .type = BPK_SCALAR_UINT, .u = value };
}

BPK_EXPORT struct bpk_scalar_value bpk_scalar_from_f64(double value)
{
	struct bpk_scalar_value scalar = { .type = BPK_SCALAR_FLOAT };

	memcpy(&scalar.float_bits, &value, sizeof(value));
	return scalar;
}

BPK_EXPORT struct bpk_scalar_value bpk_scalar_from_bool(bool value)
{
	return (struct bpk_scalar_value) { .type = BPK_SCALAR_BOOL, .b = value };
}

/* Getting ------------------------------------------------------------------ */

static const char *type_name(enum bpk_scalar_type type)
{
	switch (type) {
	case BPK_SCALAR_INT:
		return "an Int";
	case BPK_SCALAR_UINT:
		return "a UInt";
	case BPK_SCALAR_FLOAT:
		return "a Float";
	case BPK_SCALAR_BOOL:
		return "a Bool";
	}
	return "unknown";
}

/* Why @value is not what was asked for: "no i64". */
static int refuse(int r, const char *name, struct bpk_scalar_value value,
		  const char *wanted, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE], number[24];

	bpk_quote(quoted, name, strlen(name));
	if (r != -ERANGE)
		return bpk_fail(error, r, BPK_ERR_RECORD, BPK_NO_OFFSET,
				"scalar %s is %s, which is no %s", quoted,
				type_name(value.type), wanted);
	if (value.type == BPK_SCALAR_INT)
		snprintf(number, sizeof(number), "%" PRId64, value.i);
	else
		snprintf(number, sizeof(number), "%" PRIu64, value.u);
	return bpk_fail(error, r, BPK_ERR_RECORD, BPK_NO_OFFSET,
			"scalar %s is %s, which is out of the range of %s", quoted,
			number, wanted);
}

static int find(const struct bpk_record *record, const char *name,
		struct bpk_scalar_value *ret_value, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE];

	if (bpk_record_find_scalar(record, name, strlen(name), ret_value))
		return 0;
	return bpk_fail(error, -ENOENT, BPK_ERR_RECORD, BPK_NO_OFFSET,
			"there is no scalar %s in the record",
			bpk_quote(quoted, name, strlen(name)));
}

BPK_EXPORT int bpk_scheduler_get_i64(const struct bpk_record *record, const char *name,
				     int64_t *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_i64(value, ret_value);
	return r < 0 ? refuse(r, name, value, "i64", error) : 0;
}

BPK_EXPORT int bpk_scheduler_get_u64(const struct bpk_record *record, const char *name,
				     uint64_t *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_u64(value, ret_value);
	return r < 0 ? refuse(r, name, value, "u64", error) : 0;
}

BPK_EXPORT int bpk_scheduler_get_i32(const struct bpk_record *record, const char *name,
				     int32_t *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	int64_t wide;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_i64(value, &wide);
	if (r >= 0 && (wide < INT32_MIN || wide > INT32_MAX))
		r = -ERANGE;
	if (r < 0)
		return refuse(r, name, value, "i32", error);
	*ret_value = (int32_t)wide;
	return 0;
}

BPK_EXPORT int bpk_scheduler_get_u32(const struct bpk_record *record, const char *name,
				     uint32_t *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	uint64_t wide;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_u64(value, &wide);
	if (r >= 0 && wide > UINT32_MAX)
		r = -ERANGE;
	if (r < 0)
		return refuse(r, name, value, "u32", error);
	*ret_value = (uint32_t)wide;
	return 0;
}

BPK_EXPORT int bpk_scheduler_get_f64(const struct bpk_record *record, const char *name,
				     double *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_f64(value, ret_value);
	return r < 0 ? refuse(r, name, value, "f64", error) : 0;
}

BPK_EXPORT int bpk_scheduler_get_bool(const struct bpk_record *record, const char *name,
				      bool *ret_value, struct bpk_error *error)
{
	struct bpk_scalar_value value;
	int r = find(record, name, &value, error);

	if (r < 0)
		return r;
	r = bpk_scalar_to_bool(value, ret_value);
	return r < 0 ? refuse(r, name, value, "bool", error) : 0;
}

/* Setting ------------------------------------------------------------------ */

BPK_EXPORT int bpk_scheduler_set_i64(struct bpk_record *record, const char *name,
				     int64_t value, struct bpk_error *error)
{
	return bpk_record_set_scalar(record, name, strlen(name),
				     bpk_scalar_from_i64(value), error);
}

BPK_EXPORT int bpk_scheduler_set_u64(struct bpk_record *record, const char *name,
				     uint64_t value, struct bpk_error *error)
{
	return bpk_record_set_scalar(record, name, strlen(name),
				     bpk_scalar_from_u64(value), error);
}

BPK_EXPORT int bpk_scheduler_set_f64(struct bpk_record *record, const char *name,
				     double value, struct bpk_error *error)
{
	return bpk_record_set_scalar(record, name, strlen(name),
				     bpk_scalar_from_f64(value), error);
}

BPK_EXPORT int bpk_scheduler_set_bool(struct bpk_record *record, const char *name,
				      bool value, struct bpk_error *error)
{
	return bpk_record_set_scalar(record, name, strlen(name),
				     bpk_scalar_from_bool(value), error);
}

/* Nesting ------------------------------------------------------------------ */

BPK_EXPORT int bpk_scheduler_with_record(struct bpk_record *record, const char *prefix,
					 const struct bpk_record *child,
					 struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *name = NULL;
	size_t prefix_size = strlen(prefix);
	int r = 0;

	if (child == record)
		return record_bad_argument(error, "a record cannot be put into itself");
	if (child->tensors.count)
		return record_bad_argument(error,
					   "a scheduler's record with tensors in it");
	for (size_t i = 0; r >= 0 && i < child->scalars.count; i++) {
		const struct bpk_named *named = child->scalars.items[i];
		size_t size;
		void *grown;

		if (__builtin_add_overflow(named->name_size, prefix_size + 1, &size))
			return record_no_memory(error);
		grown = realloc(name, size);
		if (!grown)
			return record_no_memory(error);
		name = grown;
		memcpy(name, prefix, prefix_size);
		name[prefix_size] = '.';
		memcpy(name + prefix_size + 1, named->name, named->name_size);
		r = bpk_record_set_scalar(record, name, size,
					  ((const struct record_scalar *)named)->value,
					  error);
	}
	return r;
}

BPK_EXPORT int bpk_scheduler_record(const struct bpk_record *record, const char *prefix,
				    struct bpk_record **ret_child,
				    struct bpk_error *error)
{
	size_t prefix_size = strlen(prefix);
	struct bpk_record *child;
	int r = bpk_record_new(&child);

	if (r < 0)
		return record_no_memory(error);
	for (size_t i = 0; r >= 0 && i < record->scalars.count; i++) {
		const struct bpk_named *named = record->scalars.items[i];

		if (named->name_size <= prefix_size || named->name[prefix_size] != '.' ||
		    memcmp(named->name, prefix, prefix_size) != 0)
			continue;
		r = bpk_record_set_scalar(child, named->name + prefix_size + 1,
					  named->name_size - prefix_size - 1,
					  ((const struct record_scalar *)named)->value,
					  error);
	}
	if (r < 0)
		bpk_record_free(child);
	else
		*ret_child = child;
	return r;
}
