/*
 * test_attr_text.c - the values of extended attributes, and scalars of another type.
 */
#include "attr_text.h"
#include "bytes.h"
#include "leak.h"
#include "scalar_text.h"

#include <errno.h>

TestSuite(attr_text, .fini = leak_check);

Test(attr_text, shapes)
{
	static const struct {
		const char *text;
		int error;
		size_t rank;
		uint64_t shape[4];
	} rows[] = {
		{ "[]", 0, 0, { 0 } },
		{ "[ ]", 0, 0, { 0 } },
		{ "[0]", 0, 1, { 0 } },
		{ "[64,1,3,3]", 0, 4, { 64, 1, 3, 3 } },
		{ "[ 64, 1 , 3]", 0, 3, { 64, 1, 3 } },
		{ "[18446744073709551615]", 0, 1, { UINT64_MAX } },
		{ "[007]", 0, 1, { 7 } },
		{ "[18446744073709551616]", -EINVAL, 0, { 0 } },
		{ "", -EINVAL, 0, { 0 } },
		{ "[", -EINVAL, 0, { 0 } },
		{ "]", -EINVAL, 0, { 0 } },
		{ "[1", -EINVAL, 0, { 0 } },
		{ "1]", -EINVAL, 0, { 0 } },
		{ "1", -EINVAL, 0, { 0 } },
		{ "[1,]", -EINVAL, 0, { 0 } },
		{ "[,1]", -EINVAL, 0, { 0 } },
		{ "[1 2]", -EINVAL, 0, { 0 } },
		{ "[1,,2]", -EINVAL, 0, { 0 } },
		{ "[-1]", -EINVAL, 0, { 0 } },
		{ "[1.0]", -EINVAL, 0, { 0 } },
		{ "[x]", -EINVAL, 0, { 0 } },
		{ "[1]x", -EINVAL, 0, { 0 } },
		{ "[1]\n", -EINVAL, 0, { 0 } },
		{ "(1,)", -EINVAL, 0, { 0 } },
		{ "[[1]]", -EINVAL, 0, { 0 } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size = strlen(rows[i].text), rank = 9;
		uint8_t *copy = bytes_copy(rows[i].text, size);
		uint64_t *shape = NULL;

		cr_expect_eq(attr_parse_shape((char *)copy, size, &shape, &rank),
			     rows[i].error, "%s", rows[i].text);
		if (!rows[i].error) {
			cr_expect_eq(rank, rows[i].rank, "%s", rows[i].text);
			cr_expect(!rank || memcmp(shape, rows[i].shape,
						  rank * sizeof(*shape)) == 0,
				  "%s", rows[i].text);
		}
		free(shape);
		free(copy);
	}
}

Test(attr_text, numbers)
{
	static const struct {
		const char *text;
		int error;
		uint64_t value;
	} rows[] = {
		{ "0", 0, 0 },
		{ "9505838338724798577", 0, UINT64_C(9505838338724798577) },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 7 },
		{ "99999999999999999999999x", -EINVAL, 7 },
		{ "", -EINVAL, 7 },
		{ "-1", -EINVAL, 7 },
		{ "+1", -EINVAL, 7 },
		{ " 1", -EINVAL, 7 },
		{ "1 ", -EINVAL, 7 },
		{ "0x1", -EINVAL, 7 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t value = 7;

		cr_expect_eq(attr_parse_uint(rows[i].text, strlen(rows[i].text), &value),
			     rows[i].error, "%s", rows[i].text);
		cr_expect_eq(value, rows[i].value, "%s", rows[i].text);
	}
}

Test(attr_text, types)
{
	static const char *const names[] = { "Int", "UInt", "Float", "Bool" };
	static const char *const bad[] = { "", "int", "Int ", "UInt8", "In", "String" };
	enum bpk_scalar_type type = BPK_SCALAR_BOOL;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		cr_expect_eq(attr_parse_type(names[i], strlen(names[i]), &type), 0);
		cr_expect_eq(type, i);
		cr_expect_str_eq(attr_type_name(type), names[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_expect_eq(attr_parse_type(bad[i], strlen(bad[i]), &type), -EINVAL,
			     "%s", bad[i]);
	cr_expect_eq(type, BPK_SCALAR_BOOL);
}

/* From a text of a type to one of another: NULL where something would be lost. */
Test(attr_text, conversions)
{
	enum { INT = BPK_SCALAR_INT, UINT, FLOAT, BOOL };
	static const struct {
		unsigned int from;
		const char *text;
		unsigned int to;
		const char *want;
	} rows[] = {
		{ INT, "5", UINT, "5" },
		{ INT, "-1", UINT, NULL },
		{ UINT, "9223372036854775807", INT, "9223372036854775807" },
		{ UINT, "9223372036854775808", INT, NULL },
		{ INT, "-5", FLOAT, "-5.0" },
		{ INT, "9007199254740992", FLOAT, "9007199254740992.0" },
		{ INT, "9007199254740993", FLOAT, NULL },
		{ INT, "9007199254740994", FLOAT, "9007199254740994.0" },
		{ INT, "-9223372036854775808", FLOAT, "-9.223372036854775808e18" },
		{ UINT, "18446744073709551615", FLOAT, NULL },
		{ UINT, "18446744073709549568", FLOAT, "1.8446744073709549568e19" },
		{ FLOAT, "3.0", INT, "3" },
		{ FLOAT, "3.5", INT, NULL },
		{ FLOAT, "-3.0", INT, "-3" },
		{ FLOAT, "-3.0", UINT, NULL },
		{ FLOAT, "0.0", INT, "0" },
		{ FLOAT, "-0.0", INT, NULL },
		{ FLOAT, "-9223372036854775808", INT, "-9223372036854775808" },
		{ FLOAT, "9223372036854775808", INT, NULL },
		{ FLOAT, "9223372036854775808", UINT, "9223372036854775808" },
		{ FLOAT, "18446744073709551616", UINT, NULL },
		{ FLOAT, "1e300", UINT, NULL },
		{ FLOAT, "inf", INT, NULL },
		{ FLOAT, "-inf", INT, NULL },
		{ FLOAT, "nan", INT, NULL },
		{ FLOAT, "5e-324", UINT, NULL },
		{ FLOAT, "1.0", BOOL, "true" },
		{ FLOAT, "0.5", BOOL, NULL },
		{ BOOL, "true", INT, "1" },
		{ BOOL, "false", UINT, "0" },
		{ BOOL, "true", FLOAT, "1.0" },
		{ INT, "0", BOOL, "false" },
		{ UINT, "1", BOOL, "true" },
		{ UINT, "2", BOOL, NULL },
		{ INT, "-1", BOOL, NULL },
		{ INT, "-7", INT, "-7" },
		{ FLOAT, "nan:0x7ff8000000000001", FLOAT, "nan:0x7ff8000000000001" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_scalar_value value, got = { .type = BPK_SCALAR_BOOL }, want;
		enum bpk_scalar_type to = (enum bpk_scalar_type)rows[i].to;
		char text[SCALAR_TEXT_BUFFER];

		cr_assert_eq(scalar_parse(rows[i].text, strlen(rows[i].text),
					  (enum bpk_scalar_type)rows[i].from, &value),
			     0);
		cr_expect_eq(attr_convert(value, to, &got), rows[i].want ? 0 : -ERANGE,
			     "%s to %s", rows[i].text, attr_type_name(to));
		if (!rows[i].want)
			continue;
		cr_assert_eq(scalar_parse(rows[i].want, strlen(rows[i].want), to, &want),
			     0);
		scalar_format(got, text);
		cr_expect_eq(got.type, to);
		cr_expect(to == BPK_SCALAR_BOOL ? got.b == want.b : got.u == want.u,
			  "%s to %s: %s", rows[i].text, attr_type_name(to), text);
	}
}
