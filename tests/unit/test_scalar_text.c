/*
 * scalar_text.c against the contract's sections 3 and 4: rows with exact texts,
 * bits and codes, then what has to hold for any value and any text. The random
 * values are the same every time.
 */
#include "scalar_text.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#define TEXT(s) (s), sizeof(s) - 1
#define INT(n)                                                                           \
	{                                                                                \
		.type = BPK_SCALAR_INT, .i = (n)                                         \
	}
#define UINT(n)                                                                          \
	{                                                                                \
		.type = BPK_SCALAR_UINT, .u = (n)                                        \
	}
#define FLOAT(n)                                                                         \
	{                                                                                \
		.type = BPK_SCALAR_FLOAT, .float_bits = UINT64_C(n)                      \
	}
#define BOOL(n)                                                                          \
	{                                                                                \
		.type = BPK_SCALAR_BOOL, .b = (n)                                        \
	}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum bpk_scalar_type types[] = {
	BPK_SCALAR_INT,
	BPK_SCALAR_UINT,
	BPK_SCALAR_FLOAT,
	BPK_SCALAR_BOOL,
};

static bool same(struct bpk_scalar_value a, struct bpk_scalar_value b)
{
	if (a.type != b.type)
		return false;
	return a.type == BPK_SCALAR_BOOL ? a.b == b.b : a.u == b.u;
}

/* Every scalar of vectors/golden/05_scalars: its text is what serde_json wrote. */
static const struct {
	const char *name;
	struct bpk_scalar_value value;
	const char *text;
} golden[] = {
	/* clang-format off */
	{ "", INT(5), "5" },
	{ "b_false", BOOL(false), "false" },
	{ "b_true", BOOL(true), "true" },
	{ "f_0_1", FLOAT(0x3fb999999999999a), "0.1" },
	{ "f_100000", FLOAT(0x40f86a0000000000), "100000.0" },
	{ "f_16777217", FLOAT(0x4170000010000000), "16777217.0" },
	{ "f_1_5", FLOAT(0x3ff8000000000000), "1.5" },
	{ "f_1_5_plus_ulp", FLOAT(0x3ff8000000000001), "1.5000000000000002" },
	{ "f_1e300", FLOAT(0x7e37e43c8800759c), "1e300" },
	{ "f_1em3", FLOAT(0x3f50624dd2f1a9fc), "0.001" },
	{ "f_1em300", FLOAT(0x01a56e1fc2f8f359), "1e-300" },
	{ "f_2048", FLOAT(0x40a0000000000000), "2048.0" },
	{ "f_2049", FLOAT(0x40a0020000000000), "2049.0" },
	{ "f_2p24", FLOAT(0x4170000000000000), "16777216.0" },
	{ "f_2p53p2", FLOAT(0x4340000000000001), "9007199254740994.0" },
	{ "f_3_4e38_f64", FLOAT(0x47eff933c78cdfad), "3.4e38" },
	{ "f_65504", FLOAT(0x40effc0000000000), "65504.0" },
	{ "f_65505", FLOAT(0x40effc2000000000), "65505.0" },
	{ "f_65520", FLOAT(0x40effe0000000000), "65520.0" },
	{ "f_65536", FLOAT(0x40f0000000000000), "65536.0" },
	{ "f_f16_1_plus_ulp", FLOAT(0x3ff0040000000000), "1.0009765625" },
	{ "f_f16_half_min_subnormal", FLOAT(0x3e60000000000000), "2.9802322387695312e-8" },
	{ "f_f16_max_subnormal", FLOAT(0x3f0ff80000000000), "0.00006097555160522461" },
	{ "f_f16_min_normal", FLOAT(0x3f10000000000000), "0.00006103515625" },
	{ "f_f16_min_subnormal", FLOAT(0x3e70000000000000), "5.960464477539063e-8" },
	{ "f_f16_sub_1p5", FLOAT(0x3e78000000000000), "8.940696716308594e-8" },
	{ "f_f32_1_plus_ulp", FLOAT(0x3ff0000020000000), "1.0000001192092896" },
	{ "f_f32_3_4e38", FLOAT(0x47eff933c0000000), "3.3999999521443642e38" },
	{ "f_f32_half_min_subnormal", FLOAT(0x3690000000000000), "7.006492321624085e-46" },
	{ "f_f32_max_subnormal", FLOAT(0x380fffffc0000000), "1.1754942106924411e-38" },
	{ "f_f32_min_normal", FLOAT(0x3810000000000000), "1.1754943508222875e-38" },
	{ "f_f32_min_subnormal", FLOAT(0x36a0000000000000), "1.401298464324817e-45" },
	{ "f_f32max", FLOAT(0x47efffffe0000000), "3.4028234663852886e38" },
	{ "f_f64_max_subnormal", FLOAT(0x000fffffffffffff), "2.225073858507201e-308" },
	{ "f_f64_min_normal", FLOAT(0x0010000000000000), "2.2250738585072014e-308" },
	{ "f_f64_min_subnormal", FLOAT(0x0000000000000001), "5e-324" },
	{ "f_f64_neg_min_subnormal", FLOAT(0x8000000000000001), "-5e-324" },
	{ "f_f64max", FLOAT(0x7fefffffffffffff), "1.7976931348623157e308" },
	{ "f_inf", FLOAT(0x7ff0000000000000), "inf" },
	{ "f_nan", FLOAT(0x7ff8000000000000), "nan" },
	{ "f_nan_f16payload", FLOAT(0x7ffc040000000000), "nan:0x7ffc040000000000" },
	{ "f_nan_f32payload", FLOAT(0x7ff8000020000000), "nan:0x7ff8000020000000" },
	{ "f_nan_f64payload", FLOAT(0x7ff8000000000001), "nan:0x7ff8000000000001" },
	{ "f_neg1", FLOAT(0xbff0000000000000), "-1.0" },
	{ "f_neg_inf", FLOAT(0xfff0000000000000), "-inf" },
	{ "f_neg_nan", FLOAT(0xfff8000000000000), "nan:0xfff8000000000000" },
	{ "f_neg_zero", FLOAT(0x8000000000000000), "-0.0" },
	{ "f_one", FLOAT(0x3ff0000000000000), "1.0" },
	{ "f_snan_f16fit", FLOAT(0x7ff4000000000000), "nan:0x7ff4000000000000" },
	{ "f_snan_f64", FLOAT(0x7ff0000000000001), "nan:0x7ff0000000000001" },
	{ "f_third", FLOAT(0x3fd5555555555555), "0.3333333333333333" },
	{ "f_zero", FLOAT(0x0000000000000000), "0.0" },
	{ "i_23", INT(23), "23" },
	{ "i_24", INT(24), "24" },
	{ "i_255", INT(255), "255" },
	{ "i_256", INT(256), "256" },
	{ "i_2p32", INT(4294967296), "4294967296" },
	{ "i_65535", INT(65535), "65535" },
	{ "i_65536", INT(65536), "65536" },
	{ "i_max", INT(9223372036854775807), "9223372036854775807" },
	{ "i_min", INT(INT64_MIN), "-9223372036854775808" },
	{ "i_neg1", INT(-1), "-1" },
	{ "i_neg24", INT(-24), "-24" },
	{ "i_neg25", INT(-25), "-25" },
	{ "i_neg256", INT(-256), "-256" },
	{ "i_neg257", INT(-257), "-257" },
	{ "i_neg2p32", INT(-4294967296), "-4294967296" },
	{ "i_neg2p32m1", INT(-4294967297), "-4294967297" },
	{ "i_u32max", INT(4294967295), "4294967295" },
	{ "i_zero", INT(0), "0" },
	{ "u_23", UINT(UINT64_C(23)), "23" },
	{ "u_24", UINT(UINT64_C(24)), "24" },
	{ "u_255", UINT(UINT64_C(255)), "255" },
	{ "u_256", UINT(UINT64_C(256)), "256" },
	{ "u_2p32", UINT(UINT64_C(4294967296)), "4294967296" },
	{ "u_2p63", UINT(UINT64_C(9223372036854775808)), "9223372036854775808" },
	{ "u_65535", UINT(UINT64_C(65535)), "65535" },
	{ "u_65536", UINT(UINT64_C(65536)), "65536" },
	{ "u_i64max", UINT(UINT64_C(9223372036854775807)), "9223372036854775807" },
	{ "u_max", UINT(UINT64_C(18446744073709551615)), "18446744073709551615" },
	{ "u_u32max", UINT(UINT64_C(4294967295)), "4294967295" },
	{ "u_zero", UINT(UINT64_C(0)), "0" },
	{ "ünïcode.キー", UINT(UINT64_C(1)), "1" },
	/* clang-format on */
};

Test(scalar_text, golden)
{
	char text[SCALAR_TEXT_BUFFER];

	cr_assert_eq(COUNT(golden), 83);
	for (size_t i = 0; i < COUNT(golden); i++) {
		struct bpk_scalar_value got;
		size_t size = scalar_format(golden[i].value, text);
		int r = scalar_parse(text, size, golden[i].value.type, &got);

		cr_expect_str_eq(text, golden[i].text, "%s: %s", golden[i].name, text);
		cr_expect_eq(size, strlen(text), "%s", golden[i].name);
		cr_expect(r == 0 && same(got, golden[i].value), "%s: %d", golden[i].name,
			  r);
	}
}

Test(scalar_text, format)
{
	static const struct {
		const char *label;
		struct bpk_scalar_value value;
		const char *text;
	} rows[] = {
		/* clang-format off */
		{ "smallest in full", FLOAT(0x3ee4f8b588e368f1), "0.00001" },
		{ "one below", FLOAT(0x3ee4f8b588e368f0), "9.999999999999999e-6" },
		{ "1e15", FLOAT(0x430c6bf526340000), "1000000000000000.0" },
		{ "largest in full", FLOAT(0x4341c37937e07fff), "9999999999999998.0" },
		{ "1e16", FLOAT(0x4341c37937e08000), "1e16" },
		{ "1e22", FLOAT(0x4480f0cf064dd592), "1e22" },
		{ "1e23 is below its own", FLOAT(0x44b52d02c7e14af6), "1e23" },
		{ "5e-324, twice", FLOAT(0x0000000000000002), "1e-323" },
		{ "2^-44: its lower neighbour is near", FLOAT(0x3d30000000000000), "5.684341886080802e-14" },
		{ "2^-1022", FLOAT(0x0010000000000000), "2.2250738585072014e-308" },
		{ "2^53", FLOAT(0x4340000000000000), "9007199254740992.0" },
		{ "2^89: as 2^-44", FLOAT(0x4580000000000000), "6.189700196426902e26" },
		{ "nothing but sign in a NaN", FLOAT(0xfff8000000000000), "nan:0xfff8000000000000" },
		{ "all ones", FLOAT(0xffffffffffffffff), "nan:0xffffffffffffffff" },
		{ "the longest number", FLOAT(0xffefffffffffffff), "-1.7976931348623157e308" },
		{ "long in full", FLOAT(0xbee4f8b588e368f4), "-0.000010000000000000006" },
		/* clang-format on */
	};
	char text[SCALAR_TEXT_BUFFER];

	for (size_t i = 0; i < COUNT(rows); i++) {
		scalar_format(rows[i].value, text);
		cr_expect_str_eq(text, rows[i].text, "%s: %s", rows[i].label, text);
	}
}

/* Texts that are taken; for each, all prefixes must be viable. */
static const struct {
	const char *label;
	const char *text;
	size_t size;
	struct bpk_scalar_value value;
} taken[] = {
	/* clang-format off */
	{ "echo", TEXT("5\n"), INT(5) },
	{ "CRLF and spaces", TEXT(" \t\n 5 \r\n\n"), INT(5) },
	{ "plus", TEXT("+5"), INT(5) },
	{ "minus", TEXT("-5"), INT(-5) },
	{ "hex", TEXT("0x10"), INT(16) },
	{ "hex, upper case", TEXT("0XfF"), INT(255) },
	{ "hex below zero", TEXT("-0x10"), INT(-16) },
	{ "no octal", TEXT("010"), INT(10) },
	{ "zeros in front", TEXT("00000000000000000000000000000007"), INT(7) },
	{ "suffix", TEXT("5i64\n"), INT(5) },
	{ "hex with suffix", TEXT("-0x5i64"), INT(-5) },
	{ "Int, largest", TEXT("9223372036854775807"), INT(INT64_MAX) },
	{ "Int, smallest", TEXT("-9223372036854775808"), INT(INT64_MIN) },
	{ "Int, smallest in hex", TEXT("-0x8000000000000000"), INT(INT64_MIN) },
	{ "minus zero", TEXT("-0"), INT(0) },
	{ "UInt", TEXT("5"), UINT(5) },
	{ "UInt, suffix", TEXT("5u64"), UINT(5) },
	{ "UInt, hex that looks like a float", TEXT("0x1e3"), UINT(0x1e3) },
	{ "UInt, hex that ends like a suffix", TEXT("0x1f64"), UINT(0x1f64) },
	{ "UInt, largest", TEXT("18446744073709551615"), UINT(UINT64_MAX) },
	{ "UInt, largest in hex", TEXT("0xffffffffffffffff"), UINT(UINT64_MAX) },
	{ "UInt, minus zero", TEXT("-0"), UINT(0) },
	{ "Float from an integer", TEXT("5\n"), FLOAT(0x4014000000000000) },
	{ "Float", TEXT("5.0"), FLOAT(0x4014000000000000) },
	{ "no digit behind", TEXT("5."), FLOAT(0x4014000000000000) },
	{ "no digit in front", TEXT("-.5"), FLOAT(0xbfe0000000000000) },
	{ "exponent", TEXT("1e-3"), FLOAT(0x3f50624dd2f1a9fc) },
	{ "exponent, upper case and plus", TEXT("1E+3"), FLOAT(0x408f400000000000) },
	{ "exponent behind a point", TEXT("1.e3"), FLOAT(0x408f400000000000) },
	{ "float suffix", TEXT("2f64"), FLOAT(0x4000000000000000) },
	{ "float suffix behind all", TEXT("+1.5e0f64 "), FLOAT(0x3ff8000000000000) },
	{ "too small is zero", TEXT("-1e-400"), FLOAT(0x8000000000000000) },
	{ "subnormal", TEXT("4e-324"), FLOAT(0x0000000000000001) },
	{ "exponent past counting", TEXT("0e99999999999999999999"), FLOAT(0) },
	{ "every digit of 0.1", TEXT("0.1000000000000000055511151231257827021181583404541015625"), FLOAT(0x3fb999999999999a) },
	{ "largest, rounded down to", TEXT("1.7976931348623158e308"), FLOAT(0x7fefffffffffffff) },
	{ "hex as an integer", TEXT("0x10"), FLOAT(0x4030000000000000) },
	{ "hex float", TEXT("-0x1.8p+1"), FLOAT(0xc008000000000000) },
	{ "hex float, bare point", TEXT("0x.8p0"), FLOAT(0x3fe0000000000000) },
	{ "hex float with suffix", TEXT("0x1p1f64"), FLOAT(0x4000000000000000) },
	{ "hex digits, no suffix", TEXT("0x1f64"), FLOAT(0x40bf640000000000) },
	{ "inf", TEXT("inf"), FLOAT(0x7ff0000000000000) },
	{ "-Infinity", TEXT("-Infinity\n"), FLOAT(0xfff0000000000000) },
	{ "NaN", TEXT("NaN"), FLOAT(0x7ff8000000000000) },
	{ "+nan", TEXT("+nan"), FLOAT(0x7ff8000000000000) },
	{ "-nan", TEXT("-nan"), FLOAT(0xfff8000000000000) },
	{ "NaN with its bits", TEXT("nan:0x7ff8000020000000\n"), FLOAT(0x7ff8000020000000) },
	{ "signalling", TEXT("nan:0xFFF0000000000001"), FLOAT(0xfff0000000000001) },
	{ "true", TEXT("true\n"), BOOL(true) },
	{ "false", TEXT(" false"), BOOL(false) },
	{ "Python's True", TEXT("True"), BOOL(true) },
	{ "R's FALSE", TEXT("FALSE"), BOOL(false) },
	/* clang-format on */
};

Test(scalar_text, parse)
{
	for (size_t i = 0; i < COUNT(taken); i++) {
		struct bpk_scalar_value got;
		int r = scalar_parse(taken[i].text, taken[i].size, taken[i].value.type,
				     &got);

		cr_assert_eq(r, 0, "%s: %d", taken[i].label, r);
		cr_expect(same(got, taken[i].value), "%s: 0x%016" PRIx64, taken[i].label,
			  got.u);
		for (size_t size = 0; size <= taken[i].size; size++)
			cr_expect(scalar_viable(taken[i].text, size, taken[i].value.type),
				  "%s: not viable at %zu", taken[i].label, size);
	}
}

Test(scalar_text, parse_refuses)
{
	static const struct {
		const char *label;
		const char *text;
		size_t size;
		enum bpk_scalar_type type;
		int error;
		bool viable;
	} rows[] = {
		/* clang-format off */
		{ "nothing", TEXT(""), BPK_SCALAR_INT, -EINVAL, true },
		{ "white space", TEXT(" \n"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "nothing for a Bool", TEXT("\n"), BPK_SCALAR_BOOL, -EINVAL, true },
		{ "sign only", TEXT("-"), BPK_SCALAR_INT, -EINVAL, true },
		{ "sign, then space", TEXT("- 5"), BPK_SCALAR_INT, -EINVAL, false },
		{ "two signs", TEXT("--5"), BPK_SCALAR_INT, -EINVAL, false },
		{ "0x only", TEXT("0x"), BPK_SCALAR_INT, -EINVAL, true },
		{ "0x, newline", TEXT("0x\n"), BPK_SCALAR_INT, -EINVAL, false },
		{ "0x, no hex", TEXT("0xg"), BPK_SCALAR_UINT, -EINVAL, false },
		{ "00x", TEXT("00x1"), BPK_SCALAR_INT, -EINVAL, false },
		{ "banana", TEXT("b"), BPK_SCALAR_INT, -EINVAL, false },
		{ "banana for a Float", TEXT("banana\n"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "banana for a Bool", TEXT("banana\n"), BPK_SCALAR_BOOL, -EINVAL, false },
		{ "an Int is no 5.0", TEXT("5.0"), BPK_SCALAR_INT, -EINVAL, false },
		{ "nor 1e3", TEXT("1e3"), BPK_SCALAR_INT, -EINVAL, false },
		{ "nor inf", TEXT("i"), BPK_SCALAR_INT, -EINVAL, false },
		{ "nor true", TEXT("true"), BPK_SCALAR_INT, -EINVAL, false },
		{ "suffix of UInt", TEXT("5u64"), BPK_SCALAR_INT, -EINVAL, false },
		{ "suffix of Int", TEXT("5i"), BPK_SCALAR_UINT, -EINVAL, false },
		{ "suffix of Int for a Float", TEXT("5i64"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "suffix of Float", TEXT("5f64"), BPK_SCALAR_INT, -EINVAL, false },
		{ "half a suffix", TEXT("5i6"), BPK_SCALAR_INT, -EINVAL, true },
		{ "half a suffix, newline", TEXT("5i6\n"), BPK_SCALAR_INT, -EINVAL, false },
		{ "other suffix", TEXT("5i32"), BPK_SCALAR_INT, -EINVAL, false },
		{ "suffix in upper case", TEXT("5I64"), BPK_SCALAR_INT, -EINVAL, false },
		{ "more than a suffix", TEXT("5i640"), BPK_SCALAR_INT, -EINVAL, false },
		{ "two words", TEXT("5 6"), BPK_SCALAR_INT, -EINVAL, false },
		{ "two lines", TEXT("5\n6"), BPK_SCALAR_INT, -EINVAL, false },
		{ "NUL", TEXT("5\0"), BPK_SCALAR_INT, -EINVAL, false },
		{ "NUL in front", TEXT("\0" "5"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "vertical tab", TEXT("5\v"), BPK_SCALAR_INT, -EINVAL, false },
		{ "underscores", TEXT("1_000"), BPK_SCALAR_INT, -EINVAL, false },
		{ "no UTF-8", TEXT("\xff"), BPK_SCALAR_INT, -EINVAL, false },
		{ "point only", TEXT("."), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "point, exponent", TEXT(".e3"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "two points", TEXT("1.2.3"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "comma", TEXT("1,5"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "exponent without digits", TEXT("1e"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "exponent's sign", TEXT("1e-"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "exponent, newline", TEXT("1e\n"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "hex exponent without digits", TEXT("0x1p"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "0x and a point", TEXT("0x."), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "na", TEXT("na"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "nan of C", TEXT("nan(1)"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "infin", TEXT("infin"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "infinite", TEXT("infinite"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "inf with a suffix", TEXT("inff64"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "nan with no bits", TEXT("nan:"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "nan with 15 digits", TEXT("nan:0x7ff800000000000"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "nan with 15 digits, newline", TEXT("nan:0x7ff800000000000\n"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "nan with 17 digits", TEXT("nan:0x7ff80000000000000"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "bits of inf", TEXT("nan:0x7ff0000000000000"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "bits of 1.0", TEXT("nan:0x3ff0000000000000"), BPK_SCALAR_FLOAT, -EINVAL, true },
		{ "sign before bits", TEXT("-nan:0x7ff8000000000000"), BPK_SCALAR_FLOAT, -EINVAL, false },
		{ "a Bool is no 1", TEXT("1"), BPK_SCALAR_BOOL, -EINVAL, false },
		{ "tr", TEXT("tr"), BPK_SCALAR_BOOL, -EINVAL, true },
		{ "tr, newline", TEXT("tr\n"), BPK_SCALAR_BOOL, -EINVAL, false },
		{ "truest", TEXT("truest"), BPK_SCALAR_BOOL, -EINVAL, false },
		{ "+true", TEXT("+true"), BPK_SCALAR_BOOL, -EINVAL, false },
		{ "Int, one too large", TEXT("9223372036854775808"), BPK_SCALAR_INT, -ERANGE, true },
		{ "Int, one too small", TEXT("-9223372036854775809"), BPK_SCALAR_INT, -ERANGE, true },
		{ "Int, not two's complement", TEXT("0xffffffffffffffff"), BPK_SCALAR_INT, -ERANGE, true },
		{ "Int, far too large", TEXT("99999999999999999999999999999999999999999\n"), BPK_SCALAR_INT, -ERANGE, true },
		{ "UInt, one too large", TEXT("18446744073709551616"), BPK_SCALAR_UINT, -ERANGE, true },
		{ "UInt, one too large in hex", TEXT("0x10000000000000000"), BPK_SCALAR_UINT, -ERANGE, true },
		{ "UInt below zero", TEXT("-5"), BPK_SCALAR_UINT, -ERANGE, true },
		{ "Float, too large", TEXT("1e999"), BPK_SCALAR_FLOAT, -ERANGE, true },
		{ "Float, rounds to infinity", TEXT("-1.7976931348623159e308"), BPK_SCALAR_FLOAT, -ERANGE, true },
		{ "Float, hex too large", TEXT("0x1p1024"), BPK_SCALAR_FLOAT, -ERANGE, true },
		/* clang-format on */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct bpk_scalar_value before = UINT(UINT64_C(0x5a5a5a5a5a5a5a5a));
		struct bpk_scalar_value got = before;
		int r = scalar_parse(rows[i].text, rows[i].size, rows[i].type, &got);

		cr_expect_eq(r, rows[i].error, "%s: %d", rows[i].label, r);
		cr_expect(same(got, before), "%s: written", rows[i].label);
		cr_expect_eq(scalar_viable(rows[i].text, rows[i].size, rows[i].type),
			     rows[i].viable, "%s: viable", rows[i].label);
	}
}

Test(scalar_text, infer)
{
	static const struct {
		const char *label;
		const char *text;
		size_t size;
		int error;
		struct bpk_scalar_value value;
	} rows[] = {
		/* clang-format off */
		{ "true", TEXT("true\n"), 0, BOOL(true) },
		{ "False", TEXT("False"), 0, BOOL(false) },
		{ "digits", TEXT("5"), 0, UINT(5) },
		{ "plus", TEXT("+5"), 0, UINT(5) },
		{ "minus", TEXT("-5"), 0, INT(-5) },
		{ "minus zero", TEXT("-0"), 0, INT(0) },
		{ "hex with an e", TEXT("0x1e"), 0, UINT(0x1e) },
		{ "hex below zero", TEXT("-0x1e"), 0, INT(-0x1e) },
		{ "hex like a suffix", TEXT("0x1f64"), 0, UINT(0x1f64) },
		{ "i64", TEXT("5i64"), 0, INT(5) },
		{ "u64", TEXT("5u64"), 0, UINT(5) },
		{ "f64", TEXT("2f64"), 0, FLOAT(0x4000000000000000) },
		{ "-f64", TEXT("-2f64"), 0, FLOAT(0xc000000000000000) },
		{ "point", TEXT("5."), 0, FLOAT(0x4014000000000000) },
		{ "exponent", TEXT("1e3"), 0, FLOAT(0x408f400000000000) },
		{ "hex with p", TEXT("0x1p1"), 0, FLOAT(0x4000000000000000) },
		{ "inf", TEXT("-inf"), 0, FLOAT(0xfff0000000000000) },
		{ "nan", TEXT("nan"), 0, FLOAT(0x7ff8000000000000) },
		{ "nan with bits", TEXT("nan:0x7ff8000000000001"), 0, FLOAT(0x7ff8000000000001) },
		{ "past Int is UInt", TEXT("9223372036854775808"), 0, UINT(UINT64_C(9223372036854775808)) },
		{ "past UInt is no Float", TEXT("18446744073709551616"), -ERANGE, INT(0) },
		{ "past Int below zero", TEXT("-9223372036854775809"), -ERANGE, INT(0) },
		{ "past Int, said so", TEXT("9223372036854775808i64"), -ERANGE, INT(0) },
		{ "UInt below zero, said so", TEXT("-5u64"), -ERANGE, INT(0) },
		{ "past Float", TEXT("1e999"), -ERANGE, INT(0) },
		{ "Float, said Int", TEXT("5.0i64"), -EINVAL, INT(0) },
		{ "nothing", TEXT("\n"), -EINVAL, INT(0) },
		{ "banana", TEXT("banana"), -EINVAL, INT(0) },
		{ "two words", TEXT("5 6"), -EINVAL, INT(0) },
		/* clang-format on */
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct bpk_scalar_value got = INT(0);
		int r = scalar_infer(rows[i].text, rows[i].size, &got);

		cr_expect_eq(r, rows[i].error, "%s: %d", rows[i].label, r);
		cr_expect(same(got, rows[i].value), "%s: type %d, 0x%" PRIx64,
			  rows[i].label, (int)got.type, got.u);
	}
}

/* What one of the types takes, the text of a new scalar may still become. */
Test(scalar_text, infer_viable)
{
	for (size_t i = 0; i < COUNT(taken); i++)
		for (size_t size = 0; size <= taken[i].size; size++)
			cr_expect(scalar_viable_any(taken[i].text, size), "%s at %zu",
				  taken[i].label, size);
	cr_expect_not(scalar_viable_any(TEXT("banana")));
	cr_expect_not(scalar_viable_any(TEXT("5 6")));
	cr_expect_not(scalar_viable_any(TEXT("5\n6")));
	cr_expect_not(scalar_viable_any(TEXT("1.0i")));
	cr_expect(scalar_viable_any(TEXT("")));
}

Test(scalar_text, size_limit)
{
	static char text[SCALAR_TEXT_SIZE_MAX + 1];
	struct bpk_scalar_value got;
	const struct bpk_scalar_value one = FLOAT(0x3ff0000000000000);

	memset(text, '0', sizeof(text));
	text[0] = '1';
	text[1] = '.';
	cr_expect_eq(scalar_parse(text, SCALAR_TEXT_SIZE_MAX, BPK_SCALAR_FLOAT, &got), 0);
	cr_expect(same(got, one));
	cr_expect_eq(scalar_parse(text, SCALAR_TEXT_SIZE_MAX + 1, BPK_SCALAR_FLOAT, &got),
		     -EINVAL);
	cr_expect_not(scalar_viable(text, SCALAR_TEXT_SIZE_MAX + 1, BPK_SCALAR_FLOAT));
	memset(text, ' ', sizeof(text));
	cr_expect(scalar_viable_any(text, SCALAR_TEXT_SIZE_MAX));
	cr_expect_not(scalar_viable_any(text, SCALAR_TEXT_SIZE_MAX + 1));
	memset(text, '0', sizeof(text));
	text[1] = 'x';
	cr_expect_eq(scalar_parse(text, SCALAR_TEXT_SIZE_MAX, BPK_SCALAR_FLOAT, &got), 0);
	cr_expect_eq(got.float_bits, 0);
}

/*
 * Every text of up to five bytes out of an alphabet that spells a bit of
 * everything: what is taken has viable prefixes only, and infer agrees with parse.
 */
Test(scalar_text, every_short_text)
{
	static const char alphabet[] = "05x+.e-i64fn ap";
	const size_t count = sizeof(alphabet) - 1;
	size_t total = 1, taken_count = 0;
	char text[8];

	for (size_t size = 0; size <= 5; size++, total *= count) {
		for (size_t i = 0; i < total; i++) {
			size_t rest = i;
			struct bpk_scalar_value inferred, got;
			int r_infer, r;

			for (size_t j = 0; j < size; j++, rest /= count)
				text[j] = alphabet[rest % count];
			r_infer = scalar_infer(text, size, &inferred);
			if (r_infer == 0) {
				r = scalar_parse(text, size, inferred.type, &got);
				cr_assert(r == 0 && same(got, inferred), "%.*s",
					  (int)size, text);
			}
			for (size_t t = 0; t < COUNT(types); t++) {
				r = scalar_parse(text, size, types[t], &got);
				if (r == -EINVAL)
					continue;
				taken_count++;
				cr_assert_neq(r_infer, -EINVAL);
				for (size_t part = 0; part <= size; part++) {
					cr_assert(scalar_viable(text, part, types[t]),
						  "%.*s", (int)size, text);
					cr_assert(scalar_viable_any(text, part));
				}
			}
		}
	}
	cr_expect_gt(taken_count, 10000);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static void check_round_trip(struct bpk_scalar_value value)
{
	struct bpk_scalar_value got;
	char text[SCALAR_TEXT_BUFFER];
	size_t size = scalar_format(value, text);
	int r = scalar_parse(text, size, value.type, &got);

	cr_assert(r == 0 && same(got, value), "%s: %d", text, r);
	if (value.type != BPK_SCALAR_FLOAT)
		return;
	cr_assert(strpbrk(text, ".en"), "%s", text);
	r = scalar_infer(text, size, &got);
	cr_assert(r == 0 && same(got, value), "%s: %d", text, r);
}

/* A quarter of a million bit patterns each; Criterion runs them side by side. */
#define ROUND_TRIPS 250000

static void check_random(uint64_t state)
{
	for (int i = 0; i < ROUND_TRIPS; i++) {
		struct bpk_scalar_value value = { .u = next_random(&state) };

		/* Mostly floats, and of those some short and some subnormal. */
		value.type = i % 8 == 0	  ? BPK_SCALAR_INT
			     : i % 8 == 1 ? BPK_SCALAR_UINT
					  : BPK_SCALAR_FLOAT;
		if (i % 8 == 2)
			value.float_bits &= ~UINT64_C(0) << (value.float_bits & 63);
		else if (i % 8 == 3)
			value.float_bits &= UINT64_C(0x800fffffffffffff);
		check_round_trip(value);
	}
}

Test(scalar_text, random_1)
{
	check_random(1);
}

Test(scalar_text, random_2)
{
	check_random(2);
}

Test(scalar_text, random_3)
{
	check_random(3);
}

Test(scalar_text, random_4)
{
	check_random(4);
}

/* The powers of two and their neighbours: where the gaps change. */
Test(scalar_text, powers_of_two)
{
	for (uint64_t exponent = 0; exponent < 2047; exponent++)
		for (uint64_t i = 0; i < 3; i++)
			check_round_trip((struct bpk_scalar_value) {
				.type = BPK_SCALAR_FLOAT,
				.float_bits = (exponent << 52) + (exponent ? i - 1 : i),
			});
}

/* Count significant digits of a formatted number. */
static int digit_count(const char *text)
{
	int count = 0, zeros = 0;

	for (; *text && *text != 'e'; text++) {
		if (*text == '0' && count) {
			zeros++;
		} else if (*text >= '1' && *text <= '9') {
			count += zeros + 1;
			zeros = 0;
		}
	}
	return count;
}

/* No decimal of one digit less, just below or just above, reads as the same. */
Test(scalar_text, shortest)
{
	uint64_t state = 17;

	for (int i = 0; i < 40000; i++) {
		uint64_t random = next_random(&state);
		struct bpk_scalar_value value = { .type = BPK_SCALAR_FLOAT }, got;
		char text[SCALAR_TEXT_BUFFER], shorter[SCALAR_TEXT_BUFFER], *at;
		double number;
		int digits;

		value.float_bits = random & ~(UINT64_C(1) << 63);
		if (i % 4 == 0)
			value.float_bits &= UINT64_C(0x7ff0000000000000);
		if (value.float_bits >= UINT64_C(0x7ff0000000000000) || !value.float_bits)
			continue;
		memcpy(&number, &value.float_bits, sizeof(number));
		scalar_format(value, text);
		digits = digit_count(text);
		if (digits < 2)
			continue;
		snprintf(shorter, sizeof(shorter), "%.*e", digits - 2, number);
		/* The last digit before the exponent, one down and one up. */
		at = strchr(shorter, 'e') - 1;
		for (int step = -1; step <= 1; step++) {
			char digit = *at;

			*at = (char)(digit + step);
			if (*at >= '0' && *at <= '9' &&
			    scalar_parse(shorter, strlen(shorter), BPK_SCALAR_FLOAT,
					 &got) == 0)
				cr_assert_neq(got.float_bits, value.float_bits, "%s, %s",
					      text, shorter);
			*at = digit;
		}
	}
}

/* A locale with a comma changes nothing. Skipped where none is installed. */
Test(scalar_text, locale)
{
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8" };
	struct bpk_scalar_value value = FLOAT(0x3ff8000000000001), got;
	char text[SCALAR_TEXT_BUFFER];
	size_t i = 0;

	while (i < COUNT(names) && !setlocale(LC_ALL, names[i]))
		i++;
	if (i == COUNT(names))
		cr_skip_test("no locale with a decimal comma");
	cr_assert_str_eq(localeconv()->decimal_point, ",");
	scalar_format(value, text);
	cr_expect_str_eq(text, "1.5000000000000002");
	cr_expect_eq(scalar_parse(TEXT("1.5000000000000002"), BPK_SCALAR_FLOAT, &got), 0);
	cr_expect(same(got, value));
	cr_expect_eq(scalar_parse(TEXT("1,5"), BPK_SCALAR_FLOAT, &got), -EINVAL);
}
