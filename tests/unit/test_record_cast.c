/*
 * test_record_cast.c - every half value, every place where rounding to a half changes,
 * and the edges of all other dtypes. The reference knows no bits of a rounding: it looks
 * for the nearest in a table of all values, made with ldexpl(3).
 */
#include "bpk_record.h"
#include "bytes.h"
#include "leak.h"

#include <errno.h>
#include <math.h>

TestSuite(record_cast, .fini = leak_check);

#define HALVES 65536

struct half {
	enum bpk_dtype dtype;
	int exponent_bits, mantissa_bits;
	/* The finite values from 0 up, at the index of their bits. */
	long double values[HALVES / 2];
	unsigned int infinity; /* its bits */
};

static struct half f16 = { .dtype = BPK_DTYPE_F16,
			   .exponent_bits = 5,
			   .mantissa_bits = 10 };
static struct half bf16 = { .dtype = BPK_DTYPE_BF16,
			    .exponent_bits = 8,
			    .mantissa_bits = 7 };

static void fill_table(struct half *half)
{
	int bias = (1 << (half->exponent_bits - 1)) - 1;

	half->infinity = ((1u << half->exponent_bits) - 1) << half->mantissa_bits;
	for (unsigned int i = 0; i < half->infinity; i++) {
		int exponent = (int)(i >> half->mantissa_bits);
		long double mantissa = i & ((1u << half->mantissa_bits) - 1);

		if (exponent)
			mantissa += 1 << half->mantissa_bits;
		else
			exponent = 1;
		half->values[i] = ldexpl(mantissa, exponent - bias - half->mantissa_bits);
	}
}

/* The bits of the nearest value, ties to even; @value is no NaN. */
static unsigned int nearest(const struct half *half, long double value)
{
	unsigned int sign = signbit(value) ? 0x8000 : 0, low = 0,
		     high = half->infinity - 1;
	long double down, up, size = fabsl(value);

	if (size >= half->values[high]) {
		/* What would be the next value with one exponent more. */
		long double step = half->values[high] - half->values[high - 1];

		return sign |
		       (size >= half->values[high] + step / 2 ? half->infinity : high);
	}
	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (half->values[middle] <= size)
			low = middle;
		else
			high = middle;
	}
	down = size - half->values[low];
	up = half->values[high] - size;
	if (down == up)
		return sign | (low % 2 ? high : low);
	return sign | (down < up ? low : high);
}

static unsigned int cast_to_half(const struct half *half, enum bpk_dtype from,
				 const void *value)
{
	uint16_t bits = 0;

	cr_assert_eq(bpk_cast(from, value, half->dtype, &bits, 1), 0);
	return bits;
}

static void check_f32(const struct half *half, float value)
{
	unsigned int bits = cast_to_half(half, BPK_DTYPE_F32, &value);

	cr_assert_eq(bits, nearest(half, value), "%a: %04x, not %04x", (double)value,
		     bits, nearest(half, value));
}

static void check_f64(const struct half *half, double value)
{
	unsigned int bits = cast_to_half(half, BPK_DTYPE_F64, &value);

	cr_assert_eq(bits, nearest(half, value), "%a: %04x, not %04x", value, bits,
		     nearest(half, value));
}

/* All 65536 values to f32 and f64, which hold them, and back. */
static void check_widening(const struct half *half)
{
	static uint16_t bits[HALVES], back[HALVES];
	static float single[HALVES];
	static double twice[HALVES];

	for (unsigned int i = 0; i < HALVES; i++)
		bits[i] = (uint16_t)i;
	cr_assert_eq(bpk_cast(half->dtype, bits, BPK_DTYPE_F32, single, HALVES), 0);
	cr_assert_eq(bpk_cast(half->dtype, bits, BPK_DTYPE_F64, twice, HALVES), 0);
	for (unsigned int i = 0; i < HALVES; i++) {
		unsigned int size = i & 0x7fff;

		cr_assert_eq(!!signbit(single[i]), i >> 15, "%04x", i);
		cr_assert_eq(!!signbit(twice[i]), i >> 15, "%04x", i);
		if (size < half->infinity)
			cr_assert(fabsf(single[i]) == (float)half->values[size] &&
					  fabs(twice[i]) == (double)half->values[size],
				  "%04x: %a", i, (double)single[i]);
		else if (size == half->infinity)
			cr_assert(isinf(single[i]) && isinf(twice[i]), "%04x", i);
		else
			cr_assert(isnan(single[i]) && isnan(twice[i]), "%04x", i);
	}
	for (int wide = 0; wide < 2; wide++) {
		cr_assert_eq(bpk_cast(wide ? BPK_DTYPE_F64 : BPK_DTYPE_F32,
				      wide ? (void *)twice : (void *)single, half->dtype,
				      back, HALVES),
			     0);
		for (unsigned int i = 0; i < HALVES; i++) {
			/* A signaling NaN comes back quiet, payload and sign as they
			 * were. */
			unsigned int quiet = 1u << (half->mantissa_bits - 1);
			bool nan = (i & 0x7fff) > half->infinity;

			cr_assert_eq(back[i], nan ? i | quiet : i, "%04x: %04x", i,
				     back[i]);
		}
	}
}

static void check_narrowing(const struct half *half)
{
	uint64_t state = 88172645463325252;

	for (unsigned int i = 0; i < half->infinity; i++) {
		long double here = half->values[i];
		long double next = i + 1 < half->infinity
					   ? half->values[i + 1]
					   : 2 * here - half->values[i - 1];
		float single = (float)((here + next) / 2);
		double twice = (double)((here + next) / 2);

		cr_assert(twice == (here + next) / 2); /* the tie itself */
		for (int sign = -1; sign <= 1; sign += 2) {
			float s = (float)sign;

			check_f32(half, s * single);
			check_f32(half, s * nextafterf(single, 0));
			check_f32(half, s * nextafterf(single, INFINITY));
			check_f32(half, s * nextafterf((float)here, INFINITY));
			check_f64(half, sign * twice);
			check_f64(half, sign * nextafter(twice, 0));
			check_f64(half, sign * nextafter(twice, INFINITY));
		}
	}
	for (int i = 0; i < 200000; i++) {
		float single;
		double twice;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		memcpy(&single, &state, sizeof(single));
		memcpy(&twice, &state, sizeof(twice));
		if (!isnan(single))
			check_f32(half, single);
		if (!isnan(twice))
			check_f64(half, twice);
	}
	check_f32(half, 0.0f);
	check_f32(half, -0.0f);
	check_f32(half, INFINITY);
	check_f32(half, -INFINITY);
	check_f32(half, nextafterf(0, 1));
	check_f64(half, nextafter(0, -1));
}

/* Ties of bf16 between integers of many bits, one below and one above: where a way by
 * f32 or f64 would round twice. */
static void check_integers(const struct half *half)
{
	for (unsigned int bit = 0; bit < 64; bit++)
		for (unsigned int m = 0; m < 16; m++)
			for (int off = -1; off <= 1; off++) {
				uint64_t u = (UINT64_C(1) << bit) +
					     (bit >= 9 ? (uint64_t)m << (bit - 9) : 0) +
					     (uint64_t)(int64_t)off;
				int64_t i = (int64_t)u;

				cr_assert_eq(cast_to_half(half, BPK_DTYPE_U64, &u),
					     nearest(half, (long double)u), "%llu",
					     (unsigned long long)u);
				cr_assert_eq(cast_to_half(half, BPK_DTYPE_I64, &i),
					     nearest(half, (long double)i), "%lld",
					     (long long)i);
			}
}

Test(record_cast, f16_all)
{
	fill_table(&f16);
	check_widening(&f16);
	check_narrowing(&f16);
	check_integers(&f16);
}

Test(record_cast, bf16_all)
{
	fill_table(&bf16);
	check_widening(&bf16);
	check_narrowing(&bf16);
	check_integers(&bf16);
}

/* f64 to f32 and integers to floats: the processor rounds as it should. */
Test(record_cast, wide_floats)
{
	const double doubles[] = { 0.1,
				   -0.1,
				   1e300,
				   -1e300,
				   1e-46,
				   7e-46,
				   0x1.000001p0,
				   0x1.0000010000001p0,
				   0x1.fffffep127,
				   0x1.ffffffp127,
				   0x1p-149,
				   0x1.8p-149,
				   -0.0,
				   INFINITY };
	const uint64_t integers[] = { 0,
				      1,
				      UINT64_MAX,
				      UINT64_C(1) << 63,
				      (UINT64_C(1) << 63) + 1,
				      (UINT64_C(1) << 53) + 1,
				      16777217,
				      33554433,
				      UINT64_C(0x8000008000000001) };
	volatile float want_single;
	volatile double want;
	float single;
	double twice;

	for (size_t i = 0; i < sizeof(doubles) / sizeof(*doubles); i++) {
		want_single = (float)doubles[i];
		bpk_cast(BPK_DTYPE_F64, &doubles[i], BPK_DTYPE_F32, &single, 1);
		cr_expect(single == want_single &&
				  signbit(single) == signbit(want_single),
			  "%a", doubles[i]);
	}
	for (size_t i = 0; i < sizeof(integers) / sizeof(*integers); i++) {
		want_single = (float)integers[i];
		want = (double)integers[i];
		bpk_cast(BPK_DTYPE_U64, &integers[i], BPK_DTYPE_F32, &single, 1);
		bpk_cast(BPK_DTYPE_U64, &integers[i], BPK_DTYPE_F64, &twice, 1);
		cr_expect(single == want_single && twice == want, "%zu", i);
		want_single = (float)(int64_t)integers[i];
		want = (double)(int64_t)integers[i];
		bpk_cast(BPK_DTYPE_I64, &integers[i], BPK_DTYPE_F32, &single, 1);
		bpk_cast(BPK_DTYPE_I64, &integers[i], BPK_DTYPE_F64, &twice, 1);
		cr_expect(single == want_single && twice == want, "%zu", i);
	}
	twice = -(double)NAN;
	bpk_cast(BPK_DTYPE_F64, &twice, BPK_DTYPE_F32, &single, 1);
	cr_expect(isnan(single) && signbit(single));
}

/* What Rust's `as` makes of a float. */
Test(record_cast, float_to_integer)
{
	static const struct {
		double value;
		int64_t i64, i32, i16, i8;
		uint64_t u64, u32, u16, u8;
	} rows[] = {
		/* clang-format off */
		{ 0.0, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ -0.0, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 0.9, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ -0.9, 0, 0, 0, 0, 0, 0, 0, 0 },
		{ 1.5, 1, 1, 1, 1, 1, 1, 1, 1 },
		{ -1.5, -1, -1, -1, -1, 0, 0, 0, 0 },
		{ 127.9, 127, 127, 127, 127, 127, 127, 127, 127 },
		{ 128, 128, 128, 128, 127, 128, 128, 128, 128 },
		{ -128.9, -128, -128, -128, -128, 0, 0, 0, 0 },
		{ -129, -129, -129, -129, -128, 0, 0, 0, 0 },
		{ 255.9, 255, 255, 255, 127, 255, 255, 255, 255 },
		{ 256, 256, 256, 256, 127, 256, 256, 256, 255 },
		{ 32768, 32768, 32768, 32767, 127, 32768, 32768, 32768, 255 },
		{ 65536, 65536, 65536, 32767, 127, 65536, 65536, 65535, 255 },
		{ 2147483647.5, 2147483647, 2147483647, 32767, 127,
		  2147483647, 2147483647, 65535, 255 },
		{ 2147483648.0, 2147483648, 2147483647, 32767, 127,
		  2147483648, 2147483648, 65535, 255 },
		{ -2147483649.0, -2147483649, INT32_MIN, -32768, -128, 0, 0, 0, 0 },
		{ 4294967296.0, 4294967296, INT32_MAX, 32767, 127,
		  4294967296, UINT32_MAX, 65535, 255 },
		{ 0x1.fffffffffffffp62, 0x7ffffffffffffc00, INT32_MAX, 32767, 127,
		  0x7ffffffffffffc00, UINT32_MAX, 65535, 255 },
		{ 0x1p63, INT64_MAX, INT32_MAX, 32767, 127,
		  UINT64_C(1) << 63, UINT32_MAX, 65535, 255 },
		{ -0x1p63, INT64_MIN, INT32_MIN, -32768, -128, 0, 0, 0, 0 },
		{ -0x1.0000000000001p63, INT64_MIN, INT32_MIN, -32768, -128, 0, 0, 0, 0 },
		{ 0x1.fffffffffffffp63, INT64_MAX, INT32_MAX, 32767, 127,
		  0xfffffffffffff800, UINT32_MAX, 65535, 255 },
		{ 0x1p64, INT64_MAX, INT32_MAX, 32767, 127, UINT64_MAX, UINT32_MAX, 65535, 255 },
		{ INFINITY, INT64_MAX, INT32_MAX, 32767, 127,
		  UINT64_MAX, UINT32_MAX, 65535, 255 },
		{ -INFINITY, INT64_MIN, INT32_MIN, -32768, -128, 0, 0, 0, 0 },
		{ (double)NAN, 0, 0, 0, 0, 0, 0, 0, 0 },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const void *value = &rows[i].value;
		int64_t i64;
		int32_t i32;
		int16_t i16;
		int8_t i8;
		uint64_t u64;
		uint32_t u32;
		uint16_t u16;
		uint8_t u8;

		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_I64, &i64, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_I32, &i32, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_I16, &i16, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_I8, &i8, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_U64, &u64, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_U32, &u32, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_U16, &u16, 1);
		bpk_cast(BPK_DTYPE_F64, value, BPK_DTYPE_U8, &u8, 1);
		cr_expect(i64 == rows[i].i64 && i32 == rows[i].i32 &&
				  i16 == rows[i].i16 && i8 == rows[i].i8,
			  "%a: %lld %d %d %d", rows[i].value, (long long)i64, i32, i16,
			  i8);
		cr_expect(u64 == rows[i].u64 && u32 == rows[i].u32 &&
				  u16 == rows[i].u16 && u8 == rows[i].u8,
			  "%a: %llu %u %u %u", rows[i].value, (unsigned long long)u64,
			  u32, u16, u8);
	}
}

static const struct integer {
	enum bpk_dtype dtype;
	unsigned int bits;
	bool is_signed;
} integers[] = {
	{ BPK_DTYPE_I64, 64, true },  { BPK_DTYPE_I32, 32, true },
	{ BPK_DTYPE_I16, 16, true },  { BPK_DTYPE_I8, 8, true },
	{ BPK_DTYPE_U64, 64, false }, { BPK_DTYPE_U32, 32, false },
	{ BPK_DTYPE_U16, 16, false }, { BPK_DTYPE_U8, 8, false },
};
#define INTEGERS (sizeof(integers) / sizeof(*integers))

/* Every integer dtype into every other: the low bits, with the source's sign. */
Test(record_cast, integer_to_integer)
{
	static const uint64_t values[] = {
		0,	   1,	       0x7f,	   0x80,
		0xff,	   0x100,      0x7fff,	   0x8000,
		0xffff,	   0x7fffffff, 0x80000000, 0xffffffff,
		INT64_MAX, 1ULL << 63, UINT64_MAX, 0x0123456789abcdef
	};

	for (size_t f = 0; f < INTEGERS; f++)
		for (size_t t = 0; t < INTEGERS; t++)
			for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
				const struct integer *from = &integers[f],
						     *to = &integers[t];
				uint64_t source = values[v], got = 0, want = source;

				if (from->bits < 64) {
					want &= (UINT64_C(1) << from->bits) - 1;
					if (from->is_signed && want >> (from->bits - 1))
						want |= UINT64_MAX << from->bits;
				}
				if (to->bits < 64)
					want &= (UINT64_C(1) << to->bits) - 1;
				cr_assert_eq(bpk_cast(from->dtype, &source, to->dtype,
						      &got, 1),
					     0);
				cr_expect_eq(got, want, "%s to %s: %llx, not %llx",
					     bpk_dtype_name(from->dtype),
					     bpk_dtype_name(to->dtype),
					     (unsigned long long)got,
					     (unsigned long long)want);
			}
}

/* Every dtype of elements to every Bool and back. */
Test(record_cast, bools)
{
	for (int from = 0; from < BPK_DTYPE_QFLOAT; from++)
		for (int b = BPK_DTYPE_BOOL_NATIVE; b <= BPK_DTYPE_BOOL_LEGACY; b++) {
			enum bpk_dtype dtype = (enum bpk_dtype)from;
			enum bpk_dtype boolean = (enum bpk_dtype)b;
			size_t size = (size_t)bpk_dtype_element_size(dtype);
			uint8_t source[16] = { 0 }, bools[8] = { 0 }, back[16], one[8];
			uint8_t bytes[8] = { 0 };
			uint8_t unit = 1;

			source[2 * size - 1] = 0x40; /* the second element is not 0 */
			cr_assert_eq(bpk_cast(dtype, source, boolean, bools, 2), 0);
			cr_assert_eq(bpk_cast(boolean, bools, BPK_DTYPE_U8, bytes, 2), 0);
			cr_expect(bytes[0] == 0 && bytes[1] == 1, "%s to %s",
				  bpk_dtype_name(dtype), bpk_dtype_name(boolean));
			cr_assert_eq(bpk_cast(boolean, bools, dtype, back, 2), 0);
			cr_assert_eq(bpk_cast(BPK_DTYPE_U8, &unit, dtype, one, 1), 0);
			if (dtype != boolean)
				cr_expect_arr_eq(back + size, one, size, "%s from %s",
						 bpk_dtype_name(dtype),
						 bpk_dtype_name(boolean));
		}
}

/* More than one block, at odd addresses, and no byte behind the end. */
Test(record_cast, many)
{
	enum { COUNT = 1000 };
	uint8_t *source = malloc(2 * COUNT + 1), *target = malloc(8 * COUNT + 1);

	for (size_t i = 0; i < COUNT; i++) {
		source[1 + 2 * i] = (uint8_t)i;
		source[2 + 2 * i] = (uint8_t)(i >> 8);
	}
	cr_assert_eq(
		bpk_cast(BPK_DTYPE_U16, source + 1, BPK_DTYPE_F64, target + 1, COUNT), 0);
	for (size_t i = 0; i < COUNT; i++) {
		double value;

		memcpy(&value, target + 1 + 8 * i, 8);
		cr_assert(value == (double)i);
	}
	free(source);
	free(target);
}

Test(record_cast, arguments)
{
	float value = 1.5f, other = 0;

	cr_expect_eq(bpk_cast(BPK_DTYPE_QFLOAT, &value, BPK_DTYPE_F32, &other, 1),
		     -EINVAL);
	cr_expect_eq(bpk_cast(BPK_DTYPE_F32, &value, BPK_DTYPE_QFLOAT, &other, 1),
		     -EINVAL);
	cr_expect_eq(bpk_cast((enum bpk_dtype)99, &value, BPK_DTYPE_F32, &other, 1),
		     -EINVAL);
	cr_expect_eq(bpk_cast(BPK_DTYPE_F32, NULL, BPK_DTYPE_F16, NULL, 0), 0);
	cr_expect_eq(bpk_cast(BPK_DTYPE_FLEX32, &value, BPK_DTYPE_F32, &other, 1), 0);
	cr_expect(other == 1.5f);
}
