/*
 * cast.c - elements of one dtype made into elements of another; see bpk_cast().
 *
 * Every source is widened without loss, 256 elements at a time: a float to f64, an
 * integer or Bool to 64 bits. What is left is one rounding from there to the target, so
 * none is rounded twice: f64 to f16 does not pass through f32, and an integer of more
 * than 53 bits on its way to a half keeps a sticky bit (round to odd).
 */
#include "base.h"
#include "bpk_record.h"

#include <errno.h>

#define BLOCK 256

enum wide {
	WIDE_FLOAT,
	WIDE_SIGNED,
	WIDE_UNSIGNED,
};

struct block {
	enum wide wide;
	union {
		double f[BLOCK];
		uint64_t u[BLOCK]; /* sign-extended when WIDE_SIGNED */
	};
};

/* Bits --------------------------------------------------------------------- */

#define F64_MANTISSA ((UINT64_C(1) << 52) - 1)
#define F64_QUIET (UINT64_C(1) << 51)

/*
 * A float of @exponent_bits and @mantissa_bits, less than f64's, as an f64 with the same
 * value. All are exact, subnormals too.
 */
static double widen(uint64_t bits, unsigned int exponent_bits, unsigned int mantissa_bits)
{
	const uint64_t top = (UINT64_C(1) << exponent_bits) - 1;
	const uint64_t sign = bits >> (exponent_bits + mantissa_bits) & 1;
	const int bias = (int)(top >> 1);
	uint64_t exponent = bits >> mantissa_bits & top;
	uint64_t mantissa = bits & ((UINT64_C(1) << mantissa_bits) - 1);
	uint64_t wide;

	if (exponent == top) {
		wide = UINT64_C(0x7ff) << 52 | mantissa << (52 - mantissa_bits);
		if (mantissa)
			wide |= F64_QUIET;
	} else if (exponent) {
		wide = (exponent + (uint64_t)(1023 - bias)) << 52 |
		       mantissa << (52 - mantissa_bits);
	} else if (mantissa) {
		int shift = __builtin_clzll(mantissa) - 63 + (int)mantissa_bits;

		mantissa = mantissa << shift & ((UINT64_C(1) << mantissa_bits) - 1);
		wide = (uint64_t)(1024 - bias - shift) << 52 |
		       mantissa << (52 - mantissa_bits);
	} else {
		wide = 0;
	}
	return bpk_f64_from_bits(wide | sign << 63);
}

/* The nearest float of that form, ties to even. */
static uint64_t narrow(double value, unsigned int exponent_bits,
		       unsigned int mantissa_bits)
{
	const uint64_t bits = bpk_f64_bits(value);
	const uint64_t top = (UINT64_C(1) << exponent_bits) - 1;
	const uint64_t sign = bits >> 63 << (exponent_bits + mantissa_bits);
	const int bias = (int)(top >> 1);
	const int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + bias;
	uint64_t mantissa = bits & F64_MANTISSA, kept, half, rest;
	unsigned int drop = 52 - mantissa_bits;

	if ((bits >> 52 & 0x7ff) == 0x7ff) {
		if (mantissa)
			mantissa |= F64_QUIET;
		return sign | top << mantissa_bits | mantissa >> drop;
	}
	if (exponent >= (int)top)
		return sign | top << mantissa_bits;
	mantissa |= UINT64_C(1) << 52;
	if (exponent <= 0) {
		/* A subnormal: the leading one is dropped into the mantissa. Beyond half
		 * of the smallest one only the sign is left. (f64's own subnormals are
		 * far below.) */
		if (exponent < -(int)mantissa_bits)
			return sign;
		drop += (unsigned int)(1 - exponent);
		kept = mantissa >> drop;
	} else {
		/* The leading one adds 1 to the exponent. */
		kept = (mantissa >> drop) + ((uint64_t)(exponent - 1) << mantissa_bits);
	}
	half = UINT64_C(1) << (drop - 1);
	rest = mantissa & ((half << 1) - 1);
	/* The carry goes into the exponent, and from the largest one to infinity. */
	if (rest > half || (rest == half && (kept & 1)))
		kept++;
	return sign | kept;
}

/* Widening ----------------------------------------------------------------- */

/* All of these are written out: the compiler makes one tight loop of each. */
#define EACH for (size_t i = 0; i < count; i++)

static void widen_block(enum bpk_dtype from, const uint8_t *p, size_t count,
			struct block *block)
{
	block->wide = WIDE_UNSIGNED;
	switch (from) {
	case BPK_DTYPE_F64:
		block->wide = WIDE_FLOAT;
		EACH block->f[i] = bpk_f64_from_bits(bpk_get_le64(p + 8 * i));
		return;
	case BPK_DTYPE_F32:
	case BPK_DTYPE_FLEX32:
		block->wide = WIDE_FLOAT;
		EACH block->f[i] = widen(bpk_get_le32(p + 4 * i), 8, 23);
		return;
	case BPK_DTYPE_F16:
		block->wide = WIDE_FLOAT;
		EACH block->f[i] = widen(bpk_get_le16(p + 2 * i), 5, 10);
		return;
	case BPK_DTYPE_BF16:
		block->wide = WIDE_FLOAT;
		EACH block->f[i] = widen(bpk_get_le16(p + 2 * i), 8, 7);
		return;
	case BPK_DTYPE_I64:
		block->wide = WIDE_SIGNED;
		EACH block->u[i] = bpk_get_le64(p + 8 * i);
		return;
	case BPK_DTYPE_I32:
		block->wide = WIDE_SIGNED;
		EACH block->u[i] = (uint64_t)(int64_t)(int32_t)bpk_get_le32(p + 4 * i);
		return;
	case BPK_DTYPE_I16:
		block->wide = WIDE_SIGNED;
		EACH block->u[i] = (uint64_t)(int64_t)(int16_t)bpk_get_le16(p + 2 * i);
		return;
	case BPK_DTYPE_I8:
		block->wide = WIDE_SIGNED;
		EACH block->u[i] = (uint64_t)(int64_t)(int8_t)p[i];
		return;
	case BPK_DTYPE_U64:
		EACH block->u[i] = bpk_get_le64(p + 8 * i);
		return;
	case BPK_DTYPE_U32:
		EACH block->u[i] = bpk_get_le32(p + 4 * i);
		return;
	case BPK_DTYPE_U16:
		EACH block->u[i] = bpk_get_le16(p + 2 * i);
		return;
	case BPK_DTYPE_U8:
		EACH block->u[i] = p[i];
		return;
	case BPK_DTYPE_BOOL_NATIVE:
	case BPK_DTYPE_BOOL_U8:
	case BPK_DTYPE_BOOL_LEGACY:
		EACH block->u[i] = p[i] != 0;
		return;
	case BPK_DTYPE_BOOL_U32:
		EACH block->u[i] = bpk_get_le32(p + 4 * i) != 0;
		return;
	case BPK_DTYPE_QFLOAT:
		return;
	}
}

/* Narrowing ---------------------------------------------------------------- */

/* At most 53 bits of @value: the others live on in the last one. */
static uint64_t round_to_odd(uint64_t value)
{
	if (value >> 53)
		value = (value & ~UINT64_C(0x7ff)) | (value & 0x7ff ? 0x800 : 0);
	return value;
}

/* For a half, the integer as an f64 that rounds as the integer would. */
static double half_ready(const struct block *block, size_t i)
{
	uint64_t u = block->u[i];

	if (block->wide == WIDE_FLOAT)
		return block->f[i];
	if (block->wide == WIDE_SIGNED && u >> 63)
		return -(double)round_to_odd(0 - u);
	return (double)round_to_odd(u);
}

static double to_f64(const struct block *block, size_t i)
{
	if (block->wide == WIDE_FLOAT)
		return block->f[i];
	return block->wide == WIDE_SIGNED ? (double)(int64_t)block->u[i]
					  : (double)block->u[i];
}

static uint32_t to_f32_bits(const struct block *block, size_t i)
{
	uint32_t bits;
	float value;

	if (block->wide == WIDE_FLOAT)
		return (uint32_t)narrow(block->f[i], 8, 23);
	value = block->wide == WIDE_SIGNED ? (float)(int64_t)block->u[i]
					   : (float)block->u[i];
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* To a signed integer of @bits bits, in two's complement. */
static uint64_t to_signed(const struct block *block, size_t i, unsigned int bits)
{
	const int64_t max = (int64_t)(UINT64_MAX >> (65 - bits)), min = -max - 1;
	double f;

	if (block->wide != WIDE_FLOAT)
		return block->u[i];
	f = block->f[i];
	if (f != f)
		return 0;
	/* 2^(bits-1) is exact in an f64, the largest integer below it need not be. */
	if (f >= -(double)min)
		return (uint64_t)max;
	if (f <= (double)min)
		return (uint64_t)min;
	return (uint64_t)(int64_t)f;
}

static uint64_t to_unsigned(const struct block *block, size_t i, unsigned int bits)
{
	const uint64_t max = UINT64_MAX >> (64 - bits);
	double f;

	if (block->wide != WIDE_FLOAT)
		return block->u[i];
	f = block->f[i];
	if (!(f > 0))
		return 0;
	if (f >= 2 * (double)(max / 2 + 1))
		return max;
	return (uint64_t)f;
}

static bool to_bool(const struct block *block, size_t i)
{
	return block->wide == WIDE_FLOAT ? block->f[i] != 0 : block->u[i] != 0;
}

static void narrow_block(const struct block *block, size_t count, enum bpk_dtype to,
			 uint8_t *p)
{
	switch (to) {
	case BPK_DTYPE_F64:
		EACH bpk_put_le64(p + 8 * i, bpk_f64_bits(to_f64(block, i)));
		return;
	case BPK_DTYPE_F32:
	case BPK_DTYPE_FLEX32:
		EACH bpk_put_le32(p + 4 * i, to_f32_bits(block, i));
		return;
	case BPK_DTYPE_F16:
		EACH bpk_put_le16(p + 2 * i,
				  (uint16_t)narrow(half_ready(block, i), 5, 10));
		return;
	case BPK_DTYPE_BF16:
		EACH bpk_put_le16(p + 2 * i,
				  (uint16_t)narrow(half_ready(block, i), 8, 7));
		return;
	case BPK_DTYPE_I64:
		EACH bpk_put_le64(p + 8 * i, to_signed(block, i, 64));
		return;
	case BPK_DTYPE_I32:
		EACH bpk_put_le32(p + 4 * i, (uint32_t)to_signed(block, i, 32));
		return;
	case BPK_DTYPE_I16:
		EACH bpk_put_le16(p + 2 * i, (uint16_t)to_signed(block, i, 16));
		return;
	case BPK_DTYPE_I8:
		EACH p[i] = (uint8_t)to_signed(block, i, 8);
		return;
	case BPK_DTYPE_U64:
		EACH bpk_put_le64(p + 8 * i, to_unsigned(block, i, 64));
		return;
	case BPK_DTYPE_U32:
		EACH bpk_put_le32(p + 4 * i, (uint32_t)to_unsigned(block, i, 32));
		return;
	case BPK_DTYPE_U16:
		EACH bpk_put_le16(p + 2 * i, (uint16_t)to_unsigned(block, i, 16));
		return;
	case BPK_DTYPE_U8:
		EACH p[i] = (uint8_t)to_unsigned(block, i, 8);
		return;
	case BPK_DTYPE_BOOL_NATIVE:
	case BPK_DTYPE_BOOL_U8:
	case BPK_DTYPE_BOOL_LEGACY:
		EACH p[i] = to_bool(block, i);
		return;
	case BPK_DTYPE_BOOL_U32:
		EACH bpk_put_le32(p + 4 * i, to_bool(block, i));
		return;
	case BPK_DTYPE_QFLOAT:
		return;
	}
}

BPK_EXPORT int bpk_cast(enum bpk_dtype from, const void *source, enum bpk_dtype to,
			void *target, uint64_t count)
{
	const size_t from_size = (size_t)bpk_dtype_element_size(from);
	const size_t to_size = (size_t)bpk_dtype_element_size(to);
	const uint8_t *in = source;
	uint8_t *out = target;
	struct block block;

	if (!from_size || !to_size)
		return -EINVAL;
	if (!count)
		return 0;
	if (from == to || (from == BPK_DTYPE_F32 && to == BPK_DTYPE_FLEX32) ||
	    (from == BPK_DTYPE_FLEX32 && to == BPK_DTYPE_F32)) {
		memcpy(out, in, (size_t)count * from_size);
		return 0;
	}
	while (count) {
		size_t now = count < BLOCK ? (size_t)count : BLOCK;

		widen_block(from, in, now, &block);
		narrow_block(&block, now, to, out);
		in += now * from_size;
		out += now * to_size;
		count -= now;
	}
	return 0;
}
