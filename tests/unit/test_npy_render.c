/*
 * test_npy_render.c - .npy headers that are made: the exact bytes of each dtype and
 * shape. convert_npy.py asks numpy what it makes of them.
 */
#include "bytes.h"
#include "convert/npy.h"
#include "leak.h"

#include <stdio.h>

TestSuite(npy_render, .fini = leak_check);

#define V1(length) "\x93NUMPY\1\0" length

/* @dict behind a version 1.0 prefix of 128 bytes in all. */
static void expect_header(const char *label, const char *dict, const char *header,
			  size_t size)
{
	char expected[128];

	memset(expected, ' ', sizeof(expected));
	memcpy(expected, V1("\x76\0"), 10);
	memcpy(expected + 10, dict, strlen(dict));
	expected[127] = '\n';
	cr_assert_eq(size, sizeof(expected), "%s: %zu bytes", label, size);
	cr_expect_arr_eq(header, expected, sizeof(expected), "%s: %.*s", label, 118,
			 header + 10);
}

Test(npy_render, dtypes)
{
	static const struct {
		enum bpk_dtype dtype;
		const char *dict; /* of shape (2, 3) */
	} rows[] = {
#define DICT(descr) "{'descr': '" descr "', 'fortran_order': False, 'shape': (2, 3), }"
		{ BPK_DTYPE_F64, DICT("<f8") },
		{ BPK_DTYPE_F32, DICT("<f4") },
		{ BPK_DTYPE_FLEX32, DICT("<f4") },
		{ BPK_DTYPE_F16, DICT("<f2") },
		{ BPK_DTYPE_BF16, DICT("|V2") },
		{ BPK_DTYPE_I64, DICT("<i8") },
		{ BPK_DTYPE_I32, DICT("<i4") },
		{ BPK_DTYPE_I16, DICT("<i2") },
		{ BPK_DTYPE_I8, DICT("|i1") },
		{ BPK_DTYPE_U64, DICT("<u8") },
		{ BPK_DTYPE_U32, DICT("<u4") },
		{ BPK_DTYPE_U16, DICT("<u2") },
		{ BPK_DTYPE_U8, DICT("|u1") },
		{ BPK_DTYPE_BOOL_NATIVE, DICT("|b1") },
		{ BPK_DTYPE_BOOL_U8, DICT("|b1") },
		{ BPK_DTYPE_BOOL_U32, DICT("<u4") },
		{ BPK_DTYPE_BOOL_LEGACY, DICT("|b1") },
		{ BPK_DTYPE_QFLOAT,
		  "{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }" },
#undef DICT
	};

	cr_assert_eq(sizeof(rows) / sizeof(*rows), BPK_DTYPE_COUNT);
	for (size_t i = 0; i < BPK_DTYPE_COUNT; i++) {
		static const uint64_t shape[] = { 2, 3 };
		uint64_t size = 6 * bpk_dtype_element_size(rows[i].dtype);
		const char *label = bpk_dtype_name(rows[i].dtype);
		size_t header_size = 0;
		char *header = NULL;

		cr_assert_eq(bpk_npy_render(rows[i].dtype, shape, 2, size, &header,
					    &header_size),
			     0);
		expect_header(label, rows[i].dict, header, header_size);
		cr_expect_eq(bpk_npy_render_size(rows[i].dtype, shape, 2, size),
			     header_size, "%s", label);
		free(header);
	}
}

Test(npy_render, shapes)
{
	static const struct {
		const char *label;
		enum bpk_dtype dtype;
		uint64_t shape[5];
		size_t rank;
		uint64_t size;
		const char *descr, *tuple;
	} rows[] = {
		{ "rank 0", BPK_DTYPE_F32, { 0 }, 0, 4, "<f4", "()" },
		{ "rank 1", BPK_DTYPE_F32, { 3 }, 1, 12, "<f4", "(3,)" },
		{ "rank 2", BPK_DTYPE_I8, { 3, 4 }, 2, 12, "|i1", "(3, 4)" },
		{ "rank 5",
		  BPK_DTYPE_U8,
		  { 1, 2, 3, 4, 5 },
		  5,
		  120,
		  "|u1",
		  "(1, 2, 3, 4, 5)" },
		{ "empty", BPK_DTYPE_F64, { 7, 0 }, 2, 0, "<f8", "(7, 0)" },
		{ "large",
		  BPK_DTYPE_I16,
		  { 1ull << 40 },
		  1,
		  1ull << 41,
		  "<i2",
		  "(1099511627776,)" },
		{ "the largest",
		  BPK_DTYPE_U8,
		  { INT64_MAX / 8 },
		  1,
		  INT64_MAX / 8,
		  "|u1",
		  "(1152921504606846975,)" },
		/* What is no array. */
		{ "too short", BPK_DTYPE_F32, { 3 }, 1, 11, "|u1", "(11,)" },
		{ "too long", BPK_DTYPE_F32, { 3 }, 1, 13, "|u1", "(13,)" },
		{ "rank 0 without data", BPK_DTYPE_F32, { 0 }, 0, 0, "|u1", "(0,)" },
		{ "empty with data", BPK_DTYPE_F32, { 0, 2 }, 2, 8, "|u1", "(8,)" },
		{ "quantized", BPK_DTYPE_QFLOAT, { 8, 8 }, 2, 72, "|u1", "(72,)" },
		{ "the product is 2^64 + 4",
		  BPK_DTYPE_F32,
		  { 0x4000000000000001 },
		  1,
		  4,
		  "|u1",
		  "(4,)" },
		{ "too large but for a zero",
		  BPK_DTYPE_F32,
		  { 1ull << 62, 0 },
		  2,
		  0,
		  "|u1",
		  "(0,)" },
		{ "too large behind a zero",
		  BPK_DTYPE_F32,
		  { 0, 1ull << 62, 8 },
		  3,
		  0,
		  "|u1",
		  "(0,)" },
		{ "the largest, but for a zero",
		  BPK_DTYPE_U8,
		  { INT64_MAX / 8, 0 },
		  2,
		  0,
		  "|u1",
		  "(1152921504606846975, 0)" },
		{ "one more", BPK_DTYPE_U8, { 1ull << 60, 0 }, 2, 0, "|u1", "(0,)" },
		{ "no dtype at all", BPK_DTYPE_COUNT, { 2 }, 1, 2, "|u1", "(2,)" },
		{ "all of 64 bits",
		  BPK_DTYPE_QFLOAT,
		  { 1 },
		  1,
		  UINT64_MAX,
		  "|u1",
		  "(18446744073709551615,)" },
		{ "too many dimensions",
		  BPK_DTYPE_U8,
		  { 1 },
		  BPK_NPY_RANK_SHOWN + 1,
		  1,
		  "|u1",
		  "(1,)" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t header_size = 0;
		char *header = NULL, dict[128];

		snprintf(dict, sizeof(dict),
			 "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
			 rows[i].descr, rows[i].tuple);
		cr_assert_eq(bpk_npy_render(rows[i].dtype, rows[i].shape, rows[i].rank,
					    rows[i].size, &header, &header_size),
			     0);
		expect_header(rows[i].label, dict, header, header_size);
		cr_expect_eq(bpk_npy_render_size(rows[i].dtype, rows[i].shape,
						 rows[i].rank, rows[i].size),
			     header_size, "%s", rows[i].label);
		free(header);
	}
}

/* One more byte of the dict makes 64 more of the header, or another version. */
Test(npy_render, sizes_and_versions)
{
	/* "1, " for each of rank ones, but the first may have more digits, and there is
	 * no comma behind the last. */
	const size_t rest =
		strlen("{'descr': '|u1', 'fortran_order': False, 'shape': (), }");
	static const struct {
		const char *label;
		size_t rank;
		uint64_t first;
		size_t size;
		uint8_t version;
	} rows[] = {
		{ "64 bytes are never enough", 0, 1, 128, 1 },
		{ "127 of 128 bytes", 21, 1, 128, 1 },
		{ "128 of 128 bytes", 21, 10, 128, 1 },
		{ "the newline is one too many", 21, 100, 192, 1 },
		{ "the last of version 1.0", 21824, 1, 65536, 1 },
		{ "the first of version 2.0", 21824, 10, 65600, 2 },
		{ "all of the next 64 bytes", 21844, 100, 65600, 2 },
		{ "the newline is one too many in version 2.0", 21845, 1, 65664, 2 },
		{ "much more", 100000, 1, 300096, 2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t rank = rows[i].rank, prefix = rows[i].version == 1 ? 10 : 12;
		size_t digits = rows[i].first < 10 ? 1 : rows[i].first < 100 ? 2 : 3;
		size_t dict_size = rest + (rank ? 3 * rank - 3 + digits : 0), size = 0;
		uint64_t *shape = malloc((rank + 1) * sizeof(*shape));
		char *header = NULL;
		uint32_t length;

		cr_assert_not_null(shape);
		for (size_t d = 0; d < rank; d++)
			shape[d] = d ? 1 : rows[i].first;
		cr_assert_eq(bpk_npy_render(BPK_DTYPE_U8, shape, rank, rows[i].first,
					    &header, &size),
			     0);
		cr_expect_eq(size, rows[i].size, "%s: %zu", rows[i].label, size);
		cr_expect_eq(
			bpk_npy_render_size(BPK_DTYPE_U8, shape, rank, rows[i].first),
			size);
		cr_expect_arr_eq(header, "\x93NUMPY", 6);
		cr_expect_eq(header[6], rows[i].version, "%s", rows[i].label);
		cr_expect_eq(header[7], 0);
		length = (uint8_t)header[8] | (uint32_t)(uint8_t)header[9] << 8;
		if (rows[i].version == 2)
			length |= (uint32_t)(uint8_t)header[10] << 16 |
				  (uint32_t)(uint8_t)header[11] << 24;
		cr_expect_eq(length, size - prefix, "%s", rows[i].label);
		cr_expect_eq(header[prefix], '{');
		cr_expect_eq(header[prefix + dict_size - 1], '}', "%s", rows[i].label);
		for (size_t p = prefix + dict_size; p + 1 < size; p++)
			cr_assert_eq(header[p], ' ', "%s", rows[i].label);
		cr_expect_eq(header[size - 1], '\n');
		free(header);
		free(shape);
	}
}
