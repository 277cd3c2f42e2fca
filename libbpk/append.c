/*
 * append.c - the appender of cbor.h: CBOR items at the end of a growing buffer,
 * heads by libcbor's encoders.
 *
 * Invariant: everything before appender->size is whole items, unless
 * appender->failed, which then stays set and makes every later call do nothing.
 *
 * Floats are chosen and narrowed on their bits, not by arithmetic: libcbor's own
 * half encoder rounds subnormals, and a conversion in hardware makes a signaling
 * NaN quiet, both of which would lose what the value was.
 */
#include "cbor.h"

#include <cbor/encoding.h>

/* The longest head: initial byte and a 64-bit argument. */
#define HEAD_SIZE 9

/* Room for @size more bytes, or NULL. */
static uint8_t *reserve(struct bpk_appender *appender, size_t size)
{
	void *data = appender->data;
	size_t needed;

	if (appender->failed)
		return NULL;
	if (__builtin_add_overflow(appender->size, size, &needed) ||
	    bpk_grow(&data, &appender->capacity, needed, 1) < 0) {
		appender->failed = true;
		return NULL;
	}
	appender->data = data;
	return appender->data + appender->size;
}

void bpk_append_done(struct bpk_appender *appender)
{
	if (!appender)
		return;
	free(appender->data);
	*appender = (struct bpk_appender) { 0 };
}

void bpk_append_raw(struct bpk_appender *appender, const void *data, size_t size)
{
	uint8_t *at;

	if (!size)
		return;
	at = reserve(appender, size);
	if (!at)
		return;
	memcpy(at, data, size);
	appender->size += size;
}

void bpk_append_uint(struct bpk_appender *appender, uint64_t value)
{
	uint8_t *at = reserve(appender, HEAD_SIZE);

	if (at)
		appender->size += cbor_encode_uint(value, at, HEAD_SIZE);
}

void bpk_append_int(struct bpk_appender *appender, int64_t value)
{
	uint8_t *at;

	if (value >= 0) {
		bpk_append_uint(appender, (uint64_t)value);
		return;
	}
	at = reserve(appender, HEAD_SIZE);
	if (at) /* the argument is -1 - value, which is ~value */
		appender->size += cbor_encode_negint(~(uint64_t)value, at, HEAD_SIZE);
}

void bpk_append_text(struct bpk_appender *appender, const char *text, size_t size)
{
	uint8_t *at = reserve(appender, HEAD_SIZE);

	if (!at)
		return;
	appender->size += cbor_encode_string_start(size, at, HEAD_SIZE);
	bpk_append_raw(appender, text, size);
}

/*
 * libcbor takes counts as size_t; what would not fit there cannot be held in
 * memory either, so it fails as running out of memory does.
 */
static bool fits_size(struct bpk_appender *appender, uint64_t count)
{
	if (count > SIZE_MAX)
		appender->failed = true;
	return !appender->failed;
}

void bpk_append_array(struct bpk_appender *appender, uint64_t count)
{
	uint8_t *at = reserve(appender, HEAD_SIZE);

	if (at && fits_size(appender, count))
		appender->size += cbor_encode_array_start((size_t)count, at, HEAD_SIZE);
}

void bpk_append_map(struct bpk_appender *appender, uint64_t count)
{
	uint8_t *at = reserve(appender, HEAD_SIZE);

	if (at && fits_size(appender, count))
		appender->size += cbor_encode_map_start((size_t)count, at, HEAD_SIZE);
}

void bpk_append_bool(struct bpk_appender *appender, bool value)
{
	uint8_t *at = reserve(appender, HEAD_SIZE);

	if (at)
		appender->size += cbor_encode_bool(value, at, HEAD_SIZE);
}

/* What a binary format of fewer bits is made of. */
struct narrow {
	unsigned int mantissa_bits;
	int bias;
	unsigned int exponent_max; /* all ones: inf and NaN */
};

static const struct narrow half = { 10, 15, 0x1f };
static const struct narrow single = { 23, 127, 0xff };

#define F64_MANTISSA_BITS 52
#define F64_MANTISSA_MASK ((UINT64_C(1) << F64_MANTISSA_BITS) - 1)
#define F64_QUIET_BIT (UINT64_C(1) << 51)
#define F64_BIAS 1023

/* The f64 @bits in format @to, when it holds exactly the same value. */
static bool narrow_float(uint64_t bits, const struct narrow *to, uint64_t *ret)
{
	uint64_t sign = bits >> 63, mantissa = bits & F64_MANTISSA_MASK;
	unsigned int cut = F64_MANTISSA_BITS - to->mantissa_bits;
	int exponent = (int)(bits >> F64_MANTISSA_BITS & 0x7ff);
	unsigned int sign_shift = to == &half ? 15 : 31;
	uint64_t field;

	if (exponent == 0x7ff) {
		/* A signaling NaN would come back quiet from f16 and f32. */
		if (mantissa && !(mantissa & F64_QUIET_BIT))
			return false;
		field = to->exponent_max;
	} else if (exponent == 0) {
		if (mantissa) /* an f64 subnormal is below every f32 */
			return false;
		field = 0;
	} else {
		int unbiased = exponent - F64_BIAS, low = 1 - to->bias;

		if (unbiased > to->bias)
			return false;
		if (unbiased >= low) {
			field = (uint64_t)(unbiased + to->bias);
		} else {
			/* Subnormal there: the leading one is stored too. */
			unsigned int down = (unsigned int)(low - unbiased);

			if (down > to->mantissa_bits)
				return false;
			mantissa |= UINT64_C(1) << F64_MANTISSA_BITS;
			cut += down;
			field = 0;
		}
	}
	if (mantissa & ((UINT64_C(1) << cut) - 1))
		return false;
	*ret = sign << sign_shift | field << to->mantissa_bits | mantissa >> cut;
	return true;
}

void bpk_append_float(struct bpk_appender *appender, uint64_t bits)
{
	uint8_t out[HEAD_SIZE];
	size_t size;
	uint64_t value;

	if (narrow_float(bits, &half, &value)) {
		out[0] = 0xf9;
		size = 2;
	} else if (narrow_float(bits, &single, &value)) {
		out[0] = 0xfa;
		size = 4;
	} else {
		out[0] = 0xfb;
		size = 8;
		value = bits;
	}
	for (size_t i = 0; i < size; i++)
		out[1 + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
	bpk_append_raw(appender, out, size + 1);
}
