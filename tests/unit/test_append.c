/*
 * test_append.c - what the appender writes, byte for byte.
 */
#include "bytes.h"
#include "cbor.h"
#include "leak.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

TestSuite(append, .fini = leak_check);

static void expect(const char *label, const struct bpk_appender *out, const void *bytes,
		   size_t size)
{
	cr_expect(!out->failed, "%s", label);
	cr_expect_eq(out->size, size, "%s: %zu bytes, not %zu", label, out->size, size);
	if (out->size == size)
		cr_expect_arr_eq(out->data, bytes, size, "%s", label);
}

/* -1 - n is the negative of what stands in the head. */
Test(append, integers)
{
	static const struct {
		int64_t value;
		const char *bytes;
		size_t size;
	} rows[] = {
		{ 0, BYTES("\0") },
		{ 23, BYTES("\x17") },
		{ 24, BYTES("\x18\x18") },
		{ 255, BYTES("\x18\xff") },
		{ 256, BYTES("\x19\1\0") },
		{ 65535, BYTES("\x19\xff\xff") },
		{ 65536, BYTES("\x1a\0\1\0\0") },
		{ UINT32_MAX, BYTES("\x1a\xff\xff\xff\xff") },
		{ INT64_C(1) << 32, BYTES("\x1b\0\0\0\1\0\0\0\0") },
		{ INT64_MAX, BYTES("\x1b\x7f\xff\xff\xff\xff\xff\xff\xff") },
		{ -1, BYTES("\x20") },
		{ -24, BYTES("\x37") },
		{ -25, BYTES("\x38\x18") },
		{ -256, BYTES("\x38\xff") },
		{ -257, BYTES("\x39\1\0") },
		{ INT64_MIN, BYTES("\x3b\x7f\xff\xff\xff\xff\xff\xff\xff") },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_appender out = { 0 };
		char label[32];

		snprintf(label, sizeof(label), "%" PRId64, rows[i].value);
		bpk_append_int(&out, rows[i].value);
		expect(label, &out, rows[i].bytes, rows[i].size);
		bpk_append_done(&out);
	}
}

Test(append, the_rest)
{
	struct bpk_appender out = { 0 };

	bpk_append_uint(&out, UINT64_MAX);
	bpk_append_map(&out, 2);
	bpk_append_text(&out, "", 0);
	bpk_append_text(&out, "a\0b", 3);
	bpk_append_array(&out, 24);
	bpk_append_bool(&out, true);
	bpk_append_bool(&out, false);
	bpk_append_raw(&out, NULL, 0);
	bpk_append_raw(&out, "raw", 3);
	expect("items", &out,
	       BYTES("\x1b\xff\xff\xff\xff\xff\xff\xff\xff\xa2\x60\x63"
		     "a\0b\x98\x18\xf5\xf4raw"));
	bpk_append_done(&out);
	bpk_append_done(NULL);
}

Test(append, a_long_text)
{
	struct bpk_appender out = { 0 };
	char text[300];

	memset(text, 'x', sizeof(text));
	bpk_append_text(&out, text, sizeof(text));
	cr_assert_eq(out.size, 303u);
	cr_expect_arr_eq(out.data, "\x79\1\x2c", 3);
	bpk_append_done(&out);
}

/* Failed once, failed for good, and nothing is written any more. */
Test(append, stays_failed)
{
	struct bpk_appender out = { .failed = true };

	bpk_append_uint(&out, 1);
	bpk_append_text(&out, "a", 1);
	bpk_append_float(&out, 0);
	cr_expect(out.failed);
	cr_expect_eq(out.size, 0u);
	bpk_append_done(&out);
}

Test(append, floats)
{
	static const struct {
		const char *label;
		uint64_t bits;
		const char *bytes;
		size_t size;
	} rows[] = {
		{ "0.0", 0, BYTES("\xf9\0\0") },
		{ "-0.0", 0x8000000000000000, BYTES("\xf9\x80\0") },
		{ "1.0", 0x3ff0000000000000, BYTES("\xf9\x3c\0") },
		{ "1.5", 0x3ff8000000000000, BYTES("\xf9\x3e\0") },
		{ "65504.0", 0x40effc0000000000, BYTES("\xf9\x7b\xff") },
		{ "65536.0", 0x40f0000000000000, BYTES("\xfa\x47\x80\0\0") },
		{ "0.1", 0x3fb999999999999a,
		  BYTES("\xfb\x3f\xb9\x99\x99\x99\x99\x99\x9a") },
		{ "inf", 0x7ff0000000000000, BYTES("\xf9\x7c\0") },
		{ "-inf", 0xfff0000000000000, BYTES("\xf9\xfc\0") },
		{ "NaN", 0x7ff8000000000000, BYTES("\xf9\x7e\0") },
		{ "-NaN", 0xfff8000000000000, BYTES("\xf9\xfe\0") },
		{ "NaN, f16 payload", 0x7ffc040000000000, BYTES("\xf9\x7f\1") },
		{ "NaN, f32 payload", 0x7ff8000020000000, BYTES("\xfa\x7f\xc0\0\1") },
		{ "NaN, f64 payload", 0x7ff8000000000001,
		  BYTES("\xfb\x7f\xf8\0\0\0\0\0\1") },
		{ "signaling", 0x7ff0000000000001, BYTES("\xfb\x7f\xf0\0\0\0\0\0\1") },
		{ "signaling, would fit f16", 0x7ff4000000000000,
		  BYTES("\xfb\x7f\xf4\0\0\0\0\0\0") },
		{ "f16 least subnormal", 0x3e70000000000000, BYTES("\xf9\0\1") },
		{ "half of it", 0x3e60000000000000, BYTES("\xfa\x33\0\0\0") },
		{ "f16 greatest subnormal", 0x3f0ff80000000000, BYTES("\xf9\3\xff") },
		{ "f16 least normal", 0x3f10000000000000, BYTES("\xf9\4\0") },
		{ "between f16 subnormals", 0x3e78000000000000,
		  BYTES("\xfa\x33\xc0\0\0") },
		{ "f32 least subnormal", 0x36a0000000000000, BYTES("\xfa\0\0\0\1") },
		{ "half of that", 0x3690000000000000, BYTES("\xfb\x36\x90\0\0\0\0\0\0") },
		{ "f32 greatest", 0x47efffffe0000000, BYTES("\xfa\x7f\x7f\xff\xff") },
		{ "f64 least subnormal", 1, BYTES("\xfb\0\0\0\0\0\0\0\1") },
		{ "f64 greatest", 0x7fefffffffffffff,
		  BYTES("\xfb\x7f\xef\xff\xff\xff\xff\xff\xff") },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_appender out = { 0 };

		bpk_append_float(&out, rows[i].bits);
		expect(rows[i].label, &out, rows[i].bytes, rows[i].size);
		bpk_append_done(&out);
	}
}

static uint64_t be(const uint8_t *p, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | p[i];
	return value;
}

/* Reads back to @bits, and no shorter form would: @widest is the least size. */
static void check_back(uint64_t bits, size_t size)
{
	struct bpk_appender out = { 0 };
	uint64_t back;

	bpk_append_float(&out, bits);
	if (out.data[0] == 0xf9)
		back = bpk_float_widen_f16((uint16_t)be(out.data + 1, 2));
	else if (out.data[0] == 0xfa)
		back = bpk_float_widen_f32((uint32_t)be(out.data + 1, 4));
	else
		back = be(out.data + 1, 8);
	if (back != bits || out.size != size)
		cr_expect_fail("%016" PRIx64 " came back as %016" PRIx64
			       " from %zu bytes",
			       bits, back, out.size);
	bpk_append_done(&out);
}

/* Every f16 there is. A quiet NaN keeps its payload; widening makes the rest quiet. */
Test(append, every_half)
{
	for (uint32_t half = 0; half <= UINT16_MAX; half++)
		check_back(bpk_float_widen_f16((uint16_t)half), 3);
}

/* Against the machine's own conversion, over many bit patterns. */
Test(append, shortest_as_the_machine_says)
{
	uint64_t state = 88172645463325252u;

	for (unsigned int i = 0; i < 300000; i++) {
		uint64_t bits;
		double value;
		float narrow;
		size_t size = 9;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		bits = state;
		if (i % 3)
			bits &= ~UINT64_C(0) << (i % 53);
		if (i % 5 == 0) /* near the edges of f32 and f16 */
			bits = (bits & ~(UINT64_C(0x7ff) << 52)) |
			       (uint64_t)(870 + i % 300) << 52;
		memcpy(&value, &bits, sizeof(value));
		if (isnan(value))
			continue;
		narrow = (float)value;
		if ((double)narrow == value) {
			/* An f16 is a multiple of 2^-24 below 2^16, of 11 bits. */
			double magnitude = fabs(value);
			int exponent =
				magnitude > 0 && !isinf(magnitude) ? ilogb(magnitude) : 0;
			double unit = ldexp(1, (exponent < -14 ? -14 : exponent) - 10);

			size = isinf(magnitude) || (magnitude < 65536 &&
						    fmod(magnitude, unit) == 0)
				       ? 3
				       : 5;
		}
		check_back(bits, size);
	}
}
