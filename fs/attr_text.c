/*
 * attr_text.c - see attr_text.h.
 */
#include "attr_text.h"
#include "base.h"

#include <errno.h>
#include <stdlib.h>

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && *at == ' ')
		at++;
	return at;
}

/* The digits at *@at, which is left behind them. */
static int parse_digits(const char **at, const char *end, uint64_t *ret)
{
	const char *start = *at;
	uint64_t value = 0;
	int error = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (!bpk_mul_u64(value, 10, &value) ||
		    !bpk_add_u64(value, (uint64_t)(**at - '0'), &value))
			error = -ERANGE;
	if (*at == start)
		return -EINVAL;
	*ret = value;
	return error;
}

int attr_parse_uint(const char *text, size_t size, uint64_t *ret)
{
	const char *end = text + size;
	uint64_t value;
	int error = parse_digits(&text, end, &value);

	if (error == -EINVAL || text != end)
		return -EINVAL;
	if (!error)
		*ret = value;
	return error;
}

static int parse_dims(const char *at, const char *end, uint64_t *shape, size_t *ret_rank)
{
	size_t rank = 0;

	for (at = skip_space(at, end); at < end; rank++) {
		if (parse_digits(&at, end, &shape[rank]))
			return -EINVAL;
		at = skip_space(at, end);
		if (at == end)
			continue;
		if (*at != ',')
			return -EINVAL;
		at = skip_space(at + 1, end);
		if (at == end)
			return -EINVAL;
	}
	*ret_rank = rank;
	return 0;
}

int attr_parse_shape(const char *text, size_t size, uint64_t **ret_shape,
		     size_t *ret_rank)
{
	uint64_t *shape;
	int error;

	if (size < 2 || text[0] != '[' || text[size - 1] != ']')
		return -EINVAL;
	/* A dimension takes two bytes at the least, but the last. */
	shape = reallocarray(NULL, size / 2 + 1, sizeof(*shape));
	if (!shape)
		return -ENOMEM;
	error = parse_dims(text + 1, text + size - 1, shape, ret_rank);
	if (error)
		free(shape);
	else
		*ret_shape = shape;
	return error;
}

static const char *const type_names[] = {
	[BPK_SCALAR_INT] = "Int",
	[BPK_SCALAR_UINT] = "UInt",
	[BPK_SCALAR_FLOAT] = "Float",
	[BPK_SCALAR_BOOL] = "Bool",
};

const char *attr_type_name(enum bpk_scalar_type type)
{
	return type_names[type];
}

int attr_parse_type(const char *text, size_t size, enum bpk_scalar_type *ret)
{
	for (size_t i = 0; i < sizeof(type_names) / sizeof(*type_names); i++) {
		if (strlen(type_names[i]) != size ||
		    memcmp(type_names[i], text, size) != 0)
			continue;
		*ret = (enum bpk_scalar_type)i;
		return 0;
	}
	return -EINVAL;
}

/* Any number that two types may share: sign and magnitude. */
struct whole {
	bool negative;
	uint64_t magnitude;
};

static bool whole_of_float(uint64_t bits, struct whole *ret)
{
	double value = bpk_f64_from_bits(bits);

	ret->negative = bits >> 63;
	if (ret->negative)
		value = -value;
	/* 2^64 and above, infinities, NaN; and the zero whose sign would go. */
	if (!(value < 0x1p64) || (ret->negative && value == 0))
		return false;
	ret->magnitude = (uint64_t)value;
	return (double)ret->magnitude == value;
}

static bool whole_of(struct bpk_scalar_value value, struct whole *ret)
{
	*ret = (struct whole) { false, 0 };
	switch (value.type) {
	case BPK_SCALAR_INT:
		ret->negative = value.i < 0;
		ret->magnitude =
			ret->negative ? 0 - (uint64_t)value.i : (uint64_t)value.i;
		return true;
	case BPK_SCALAR_UINT:
		ret->magnitude = value.u;
		return true;
	case BPK_SCALAR_BOOL:
		ret->magnitude = value.b;
		return true;
	case BPK_SCALAR_FLOAT:
	default:
		return whole_of_float(value.float_bits, ret);
	}
}

/* A double holds it when at most 53 bits lie between its first and last one. */
static bool fits_float(uint64_t magnitude)
{
	return !magnitude || (magnitude >> __builtin_ctzll(magnitude)) >> 53 == 0;
}

int attr_convert(struct bpk_scalar_value value, enum bpk_scalar_type type,
		 struct bpk_scalar_value *ret)
{
	struct bpk_scalar_value converted = { .type = type };
	struct whole whole;
	double number;

	if (value.type == type) {
		*ret = value;
		return 0;
	}
	if (!whole_of(value, &whole))
		return -ERANGE;
	switch (type) {
	case BPK_SCALAR_INT:
		if (whole.magnitude > (uint64_t)INT64_MAX + whole.negative)
			return -ERANGE;
		converted.i =
			(int64_t)(whole.negative ? 0 - whole.magnitude : whole.magnitude);
		break;
	case BPK_SCALAR_UINT:
		if (whole.negative)
			return -ERANGE;
		converted.u = whole.magnitude;
		break;
	case BPK_SCALAR_BOOL:
		if (whole.negative || whole.magnitude > 1)
			return -ERANGE;
		converted.b = whole.magnitude == 1;
		break;
	case BPK_SCALAR_FLOAT:
	default:
		if (!fits_float(whole.magnitude))
			return -ERANGE;
		number = (double)whole.magnitude;
		if (whole.negative)
			number = -number;
		memcpy(&converted.float_bits, &number, sizeof(number));
		break;
	}
	*ret = converted;
	return 0;
}
