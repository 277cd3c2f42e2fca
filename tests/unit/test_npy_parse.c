/*
 * test_npy_parse.c - .npy headers that are read and refused. convert_npy.py has numpy's
 * own.
 */
#include "bytes.h"
#include "convert/npy.h"
#include "leak.h"

#include <errno.h>
#include <stdio.h>

TestSuite(npy_parse, .fini = leak_check);

/* A file of @dict with the prefix of @version, in a block of exactly its size. */
static uint8_t *file_of(const char *dict, size_t size, uint8_t version, size_t *ret_size)
{
	size_t prefix = version == 1 ? 10 : 12;
	uint8_t *file = malloc(prefix + size);

	cr_assert_not_null(file);
	memcpy(file, "\x93NUMPY", 6);
	file[6] = version;
	file[7] = 0;
	for (size_t i = 8; i < prefix; i++)
		file[i] = (uint8_t)(size >> 8 * (i - 8));
	memcpy(file + prefix, dict, size);
	*ret_size = prefix + size;
	return file;
}

static int parse_dict(const char *dict, size_t dict_size, uint8_t version,
		      struct bpk_npy *ret_npy, struct bpk_error *error)
{
	size_t size = 0;
	uint8_t *file = file_of(dict, dict_size, version, &size);
	int r = bpk_npy_parse(file, size, ret_npy, error);

	cr_expect(r < 0 || ret_npy->header_size == size);
	free(file);
	return r;
}

Test(npy_parse, dtypes_that_are_read)
{
	static const struct {
		const char *descr;
		enum bpk_dtype dtype;
		bool big_endian;
	} rows[] = {
		{ "<f8", BPK_DTYPE_F64, false },
		{ ">f8", BPK_DTYPE_F64, true },
		{ "=f8", BPK_DTYPE_F64, false },
		{ "f8", BPK_DTYPE_F64, false },
		{ "<f4", BPK_DTYPE_F32, false },
		{ ">f4", BPK_DTYPE_F32, true },
		{ "<f2", BPK_DTYPE_F16, false },
		{ ">f2", BPK_DTYPE_F16, true },
		{ "<i8", BPK_DTYPE_I64, false },
		{ ">i8", BPK_DTYPE_I64, true },
		{ "<i4", BPK_DTYPE_I32, false },
		{ ">i4", BPK_DTYPE_I32, true },
		{ "<i2", BPK_DTYPE_I16, false },
		{ ">i2", BPK_DTYPE_I16, true },
		{ "<u8", BPK_DTYPE_U64, false },
		{ ">u8", BPK_DTYPE_U64, true },
		{ "<u4", BPK_DTYPE_U32, false },
		{ ">u4", BPK_DTYPE_U32, true },
		{ "<u2", BPK_DTYPE_U16, false },
		{ ">u2", BPK_DTYPE_U16, true },
		{ "|i1", BPK_DTYPE_I8, false },
		{ "<i1", BPK_DTYPE_I8, false },
		{ ">i1", BPK_DTYPE_I8, false },
		{ "i1", BPK_DTYPE_I8, false },
		{ "|u1", BPK_DTYPE_U8, false },
		{ ">u1", BPK_DTYPE_U8, false },
		{ "|b1", BPK_DTYPE_BOOL_NATIVE, false },
		{ ">b1", BPK_DTYPE_BOOL_NATIVE, false },
		{ "<b1", BPK_DTYPE_BOOL_NATIVE, false },
		{ "?", BPK_DTYPE_BOOL_NATIVE, false },
		{ "|?", BPK_DTYPE_BOOL_NATIVE, false },
		{ "|V2", BPK_DTYPE_BF16, false },
		{ "<V2", BPK_DTYPE_BF16, false },
		{ "V2", BPK_DTYPE_BF16, false },
		{ ">V2", BPK_DTYPE_BF16, true },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_npy npy = { .rank = 9 };
		struct bpk_error error = { .message = "" };
		char dict[128];
		int size = snprintf(dict, sizeof(dict),
				    "{'descr': '%s', 'fortran_order': False, "
				    "'shape': (2, 3), }\n",
				    rows[i].descr);

		cr_assert_eq(parse_dict(dict, (size_t)size, 1, &npy, &error), 0, "%s: %s",
			     rows[i].descr, error.message);
		cr_expect_eq(npy.dtype, rows[i].dtype, "%s", rows[i].descr);
		cr_expect_eq(npy.big_endian, rows[i].big_endian, "%s", rows[i].descr);
		cr_expect_eq(npy.data_size, 6 * bpk_dtype_element_size(npy.dtype));
		cr_expect_not(npy.column_major);
		cr_assert_eq(npy.rank, 2);
		cr_expect_eq(npy.shape[0], 2);
		cr_expect_eq(npy.shape[1], 3);
		bpk_npy_done(&npy);
		cr_expect_null(npy.shape);
	}
}

Test(npy_parse, headers_that_are_read)
{
#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define TAIL ", }\n"
	static const struct {
		const char *label, *dict;
		uint8_t version;
		size_t rank;
		uint64_t shape[4];
		uint64_t data_size;
		bool column_major;
	} rows[] = {
		{ "as numpy pads it",
		  HEAD "(3,), }"
		       "                "
		       "\n",
		  1,
		  1,
		  { 3 },
		  12,
		  false },
		{ "rank 0", HEAD "()" TAIL, 1, 0, { 0 }, 4, false },
		{ "rank 4", HEAD "(1, 2, 3, 4)" TAIL, 1, 4, { 1, 2, 3, 4 }, 96, false },
		{ "a comma at the end", HEAD "(3, 4,)" TAIL, 1, 2, { 3, 4 }, 48, false },
		{ "no comma at the end", HEAD "(3, 4)}\n", 1, 2, { 3, 4 }, 48, false },
		{ "no spaces at all",
		  "{'descr':'<f4','fortran_order':False,'shape':(3,4)}",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "spaces everywhere",
		  " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 3 , 4 , ) "
		  ", } \n",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "lines and tabs",
		  "{'descr':\t'<f4',\n'fortran_order':\r\n False,\f'shape': (3,\n "
		  "4)}\n\n",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "double quotes",
		  "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (3, 4)}",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "another order of keys",
		  "{'shape': (3, 4), 'fortran_order': False, 'descr': '<f4'}\n",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "Python 2's long integers",
		  HEAD "(3L, 4L)" TAIL,
		  1,
		  2,
		  { 3, 4 },
		  48,
		  false },
		{ "one long integer", HEAD "(3L,)" TAIL, 1, 1, { 3 }, 12, false },
		{ "a zero", HEAD "(3, 0)" TAIL, 1, 2, { 3, 0 }, 0, false },
		{ "a zero beside too much",
		  HEAD "(18446744073709551615, 0, 8)" TAIL,
		  1,
		  3,
		  { UINT64_MAX, 0, 8 },
		  0,
		  false },
		{ "the most",
		  HEAD "(4611686018427387903,)" TAIL,
		  1,
		  1,
		  { UINT64_MAX / 4 },
		  UINT64_MAX - 3,
		  false },
		{ "column-major",
		  "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }\n",
		  1,
		  2,
		  { 3, 4 },
		  48,
		  true },
		{ "a column is a row",
		  "{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }\n",
		  1,
		  1,
		  { 3 },
		  12,
		  false },
		{ "rank 0 has no order",
		  "{'descr': '<f4', 'fortran_order': True, 'shape': (), }\n",
		  1,
		  0,
		  { 0 },
		  4,
		  false },
		{ "version 2.0", HEAD "(3, 4)" TAIL, 2, 2, { 3, 4 }, 48, false },
		{ "version 3.0", HEAD "(3, 4)" TAIL, 3, 2, { 3, 4 }, 48, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_npy npy = { .rank = 9 };
		struct bpk_error error = { .message = "" };

		cr_assert_eq(parse_dict(rows[i].dict, strlen(rows[i].dict),
					rows[i].version, &npy, &error),
			     0, "%s: %s", rows[i].label, error.message);
		cr_expect_eq(npy.dtype, BPK_DTYPE_F32);
		cr_expect_eq(npy.data_size, rows[i].data_size, "%s", rows[i].label);
		cr_expect_eq(npy.column_major, rows[i].column_major, "%s", rows[i].label);
		cr_assert_eq(npy.rank, rows[i].rank, "%s", rows[i].label);
		cr_expect(npy.rank ? npy.shape != NULL : npy.shape == NULL);
		for (size_t d = 0; d < npy.rank; d++)
			cr_expect_eq(npy.shape[d], rows[i].shape[d], "%s", rows[i].label);
		bpk_npy_done(&npy);
	}
}

#define TEN(s) s s s s s s s s s s

Test(npy_parse, headers_that_are_refused)
{
#define DESCR(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (3,), }\n"
#define SHAPE(shape) HEAD shape ", }\n"
#define ORDER(order) "{'descr': '<f4', 'fortran_order': " order ", 'shape': (3,), }\n"
#define MALFORMED(offset, why)                                                           \
	-EBADMSG, BPK_ERR_MALFORMED, 10 + (offset), "the .npy header is malformed: " why
#define NO_DTYPE(descr, why)                                                             \
	-EINVAL, BPK_ERR_ARGUMENT, 21, "burnpack has no dtype for \"" descr "\"" why
#define AT_SHAPE 50
	static const struct {
		const char *label, *dict;
		size_t size;
		int err;
		enum bpk_code code;
		uint64_t offset;
		const char *message;
	} rows[] = {
		/* No dict. */
		{ "nothing", BYTES(""), MALFORMED(0, "it is no dict") },
		{ "only space", BYTES("   \n"), MALFORMED(4, "it is no dict") },
		{ "a list", BYTES("['descr', '<f4']\n"), MALFORMED(0, "it is no dict") },
		{ "zeros", BYTES("\0\0\0\0"), MALFORMED(0, "it is no dict") },
		{ "cut behind {", BYTES("{"), MALFORMED(1, "a key is no string") },
		{ "cut in a key", BYTES("{'desc"),
		  MALFORMED(6, "a string does not end, or has an escape") },
		{ "cut behind a key", BYTES("{'descr'"),
		  MALFORMED(8, "':' is missing behind a key") },
		{ "cut behind :", BYTES("{'descr':"),
		  MALFORMED(9, "'descr' is no string") },
		{ "cut in the descr", BYTES("{'descr': '<f4"),
		  MALFORMED(14, "a string does not end, or has an escape") },
		{ "cut behind a value", BYTES("{'descr': '<f4'"),
		  MALFORMED(15, "',' or '}' is missing") },
		{ "cut behind a comma", BYTES("{'descr': '<f4',"),
		  MALFORMED(16, "a key is no string") },
		{ "cut in the shape", BYTES(HEAD "(3, "),
		  MALFORMED(AT_SHAPE + 4, "a dimension is no whole number") },
		{ "cut before }", BYTES(HEAD "(3,), \n"),
		  MALFORMED(AT_SHAPE + 7, "a key is no string") },
		{ "empty", BYTES("{}\n"), MALFORMED(0, "'descr' is missing") },
		{ "only a comma", BYTES("{,}\n"), MALFORMED(1, "a key is no string") },
		{ "two commas", BYTES("{'descr': '<f4',, 'shape': (3,)}"),
		  MALFORMED(16, "a key is no string") },
		{ "no comma", BYTES("{'descr': '<f4' 'shape': (3,)}"),
		  MALFORMED(16, "',' or '}' is missing") },
		{ "= for :", BYTES("{'descr'= '<f4'}"),
		  MALFORMED(8, "':' is missing behind a key") },
		{ "something behind it", BYTES(HEAD "(3,)}\n{}"),
		  MALFORMED(AT_SHAPE + 6, "something follows the dict") },
		{ "a zero behind it", BYTES(HEAD "(3,)}\n\0"),
		  MALFORMED(AT_SHAPE + 6, "something follows the dict") },
		/* Keys. */
		{ "a number for a key", BYTES("{1: 2}"),
		  MALFORMED(1, "a key is no string") },
		{ "bytes for a key", BYTES("{b'descr': '<f4'}"),
		  MALFORMED(1, "a key is no string") },
		{ "quotes that differ", BYTES("{'descr\": '<f4'}"),
		  MALFORMED(2, "it has a key that no array has") },
		{ "an unknown key", BYTES("{'descr': '<f4', 'order': 'C'}"),
		  MALFORMED(18, "it has a key that no array has") },
		{ "a key in other letters", BYTES("{'Descr': '<f4'}"),
		  MALFORMED(2, "it has a key that no array has") },
		{ "an empty key", BYTES("{'': '<f4'}"),
		  MALFORMED(2, "it has a key that no array has") },
		{ "an escape", BYTES("{'desc\\x72': '<f4'}"),
		  MALFORMED(6, "a string does not end, or has an escape") },
		{ "a line in a string", BYTES("{'desc\nr': '<f4'}"),
		  MALFORMED(6, "a string does not end, or has an escape") },
		{ "descr twice", BYTES("{'descr': '<f4', 'descr': '<f8'}"),
		  MALFORMED(18, "'descr' is there twice") },
		{ "fortran_order twice",
		  BYTES("{'fortran_order': True, 'fortran_order': True}"),
		  MALFORMED(25, "'fortran_order' is there twice") },
		{ "shape twice", BYTES("{'shape': (), 'shape': ()}"),
		  MALFORMED(15, "'shape' is there twice") },
		{ "no descr", BYTES("{'fortran_order': False, 'shape': ()}"),
		  MALFORMED(0, "'descr' is missing") },
		{ "no fortran_order", BYTES(" {'descr': '<f4', 'shape': ()}"),
		  MALFORMED(1, "'fortran_order' is missing") },
		{ "no shape", BYTES("{'descr': '<f4', 'fortran_order': False}"),
		  MALFORMED(0, "'shape' is missing") },
		/* fortran_order. */
		{ "1 for True", BYTES(ORDER("1")),
		  MALFORMED(34, "'fortran_order' is neither True nor False") },
		{ "true", BYTES(ORDER("true")),
		  MALFORMED(34, "'fortran_order' is neither True nor False") },
		{ "None", BYTES(ORDER("None")),
		  MALFORMED(34, "'fortran_order' is neither True nor False") },
		{ "Truely", BYTES(ORDER("Truely")),
		  MALFORMED(34, "'fortran_order' is neither True nor False") },
		{ "a string for True", BYTES(ORDER("'True'")),
		  MALFORMED(34, "'fortran_order' is neither True nor False") },
		/* shape. */
		{ "a list for a shape", BYTES(SHAPE("[3]")),
		  MALFORMED(AT_SHAPE, "'shape' is no tuple") },
		{ "a number for a shape", BYTES(SHAPE("3")),
		  MALFORMED(AT_SHAPE, "'shape' is no tuple") },
		{ "a number in brackets", BYTES(SHAPE("(3)")),
		  MALFORMED(AT_SHAPE + 3, "'shape' is a number and no tuple") },
		{ "only a comma in it", BYTES(SHAPE("(,)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension is no whole number") },
		{ "two commas in it", BYTES(SHAPE("(3,,4)")),
		  MALFORMED(AT_SHAPE + 3, "a dimension is no whole number") },
		{ "no comma in it", BYTES(SHAPE("(3 4)")),
		  MALFORMED(AT_SHAPE + 3, "',' or ')' is missing in 'shape'") },
		{ "less than nothing", BYTES(SHAPE("(-1,)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension is no whole number") },
		{ "a plus", BYTES(SHAPE("(+1,)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension is no whole number") },
		{ "a float", BYTES(SHAPE("(3.0,)")),
		  MALFORMED(AT_SHAPE + 2, "',' or ')' is missing in 'shape'") },
		{ "hexadecimal", BYTES(SHAPE("(0x10,)")),
		  MALFORMED(AT_SHAPE + 2, "',' or ')' is missing in 'shape'") },
		{ "underscores", BYTES(SHAPE("(1_000,)")),
		  MALFORMED(AT_SHAPE + 2, "',' or ')' is missing in 'shape'") },
		{ "octal", BYTES(SHAPE("(010,)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension begins with 0") },
		{ "two Ls", BYTES(SHAPE("(3LL,)")),
		  MALFORMED(AT_SHAPE + 3, "',' or ')' is missing in 'shape'") },
		{ "True for a dimension", BYTES(SHAPE("(True,)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension is no whole number") },
		{ "a tuple in it", BYTES(SHAPE("((3,),)")),
		  MALFORMED(AT_SHAPE + 1, "a dimension is no whole number") },
		{ "a dimension of 65 bits", BYTES(SHAPE("(3, 18446744073709551616)")),
		  -EOVERFLOW, BPK_ERR_OVERFLOW, 10 + AT_SHAPE + 4,
		  "a dimension in the .npy header leaves 64 bits" },
		{ "a dimension of 1000 bits", BYTES(SHAPE("(" TEN(TEN("999")) ",)")),
		  -EOVERFLOW, BPK_ERR_OVERFLOW, 10 + AT_SHAPE + 1,
		  "a dimension in the .npy header leaves 64 bits" },
		{ "a product of 64 bits", BYTES(SHAPE("(4611686018427387904,)")),
		  -EOVERFLOW, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
		  "the size of the array leaves 64 bits" },
		{ "a product that wraps", BYTES(SHAPE("(4294967296, 4294967296, 1)")),
		  -EOVERFLOW, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
		  "the size of the array leaves 64 bits" },
		{ "65 dimensions", BYTES(SHAPE("(" TEN("1,1,1,1,1,1,") "1,1,1,1,1)")),
		  -EFBIG, BPK_ERR_LIMIT, 10 + AT_SHAPE + 130,
		  "the array has more than 64 dimensions" },
		/* descr. */
		{ "None for a dtype", BYTES(DESCR("None")),
		  MALFORMED(10, "'descr' is no string") },
		{ "complex", BYTES(DESCR("'<c8'")), NO_DTYPE("<c8", "") },
		{ "double complex", BYTES(DESCR("'<c16'")), NO_DTYPE("<c16", "") },
		{ "long double", BYTES(DESCR("'<f16'")), NO_DTYPE("<f16", "") },
		{ "objects", BYTES(DESCR("'|O'")), NO_DTYPE("|O", "") },
		{ "bytes", BYTES(DESCR("'|S5'")), NO_DTYPE("|S5", "") },
		{ "text", BYTES(DESCR("'<U5'")), NO_DTYPE("<U5", "") },
		{ "a time", BYTES(DESCR("'<M8[ns]'")), NO_DTYPE("<M8[ns]", "") },
		{ "a duration", BYTES(DESCR("'<m8[ns]'")), NO_DTYPE("<m8[ns]", "") },
		{ "a void of 4 bytes", BYTES(DESCR("'|V4'")), NO_DTYPE("|V4", "") },
		{ "int128", BYTES(DESCR("'<i16'")), NO_DTYPE("<i16", "") },
		{ "int1 in 4 bytes", BYTES(DESCR("'<b4'")), NO_DTYPE("<b4", "") },
		{ "two orders", BYTES(DESCR("'<>f4'")), NO_DTYPE("<>f4", "") },
		{ "the network's order", BYTES(DESCR("'!f4'")), NO_DTYPE("!f4", "") },
		{ "no kind", BYTES(DESCR("'<'")), NO_DTYPE("<", "") },
		{ "no descr in it", BYTES(DESCR("''")), NO_DTYPE("", "") },
		{ "a space in it", BYTES(DESCR("'<f4 '")), NO_DTYPE("<f4 ", "") },
		{ "no UTF-8", BYTES(DESCR("'\xff\n")),
		  MALFORMED(12, "a string does not end, or has an escape") },
		{ "a byte that cannot be shown", BYTES(DESCR("'\xff\1'")),
		  NO_DTYPE("\\xff\\x01", "") },
		{ "no order", BYTES(DESCR("'|f4'")),
		  NO_DTYPE("|f4", ": it does not say in which order bytes are") },
		{ "structured", BYTES(DESCR("[('x', '<f4'), ('y', '<f4')]")), -EINVAL,
		  BPK_ERR_ARGUMENT, 20,
		  "burnpack has no dtype for \"[('x', '<f4'), ('y', '<f4')], "
		  "'fortran_order': False, 'shape': (3,), }\\x0a\": it is structured" },
		{ "a subarray", BYTES("{'descr': ('<f4', (2,))"), -EINVAL,
		  BPK_ERR_ARGUMENT, 20,
		  "burnpack has no dtype for \"('<f4', (2,))\": it is structured" },
		{ "a structure a mile deep", BYTES("{'descr': " TEN(TEN(TEN("[")))),
		  -EINVAL, BPK_ERR_ARGUMENT, 20,
		  "burnpack has no dtype for \"" TEN(
			  "[[[[[[[[[") "...\": it is structured" },
	};

	cr_assert_geq(sizeof(rows) / sizeof(*rows), 40);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_npy npy = { .rank = 9 };
		struct bpk_error error = { .code = BPK_OK };
		int r = parse_dict(rows[i].dict, rows[i].size, 1, &npy, &error);

		cr_expect_eq(r, rows[i].err, "%s: %d", rows[i].label, r);
		if (r == 0) {
			bpk_npy_done(&npy);
			continue;
		}
		cr_expect_eq(error.code, rows[i].code, "%s: %d", rows[i].label,
			     error.code);
		cr_expect_eq(error.offset, rows[i].offset, "%s: %llu", rows[i].label,
			     (unsigned long long)error.offset);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
		cr_expect_eq(npy.rank, 9, "%s: it was touched", rows[i].label);
		cr_expect_eq(parse_dict(rows[i].dict, rows[i].size, 3, &npy, NULL),
			     rows[i].err, "%s in version 3.0", rows[i].label);
	}
}

Test(npy_parse, ranks)
{
	for (size_t rank = 0; rank <= 70; rank++) {
		struct bpk_npy npy = { .rank = 99 };
		char dict[512];
		int size, r;

		size = snprintf(dict, sizeof(dict), HEAD "(");
		for (size_t d = 0; d < rank; d++)
			size += snprintf(dict + size, 8, "%d,", d ? 1 : 7);
		size += snprintf(dict + size, 8, ")}\n");
		r = parse_dict(dict, (size_t)size, 1, &npy, NULL);
		cr_assert_eq(r, rank <= 64 ? 0 : -EFBIG, "rank %zu: %d", rank, r);
		if (r < 0)
			continue;
		cr_expect_eq(npy.rank, rank);
		cr_expect_eq(npy.data_size, rank ? 28 : 4);
		cr_expect(rank == 0 || npy.shape[0] == 7);
		bpk_npy_done(&npy);
	}
}

Test(npy_parse, how_much_is_needed)
{
	static const struct {
		const char *label;
		const char *bytes;
		size_t size;
		int err;
		size_t needed;
		enum bpk_code code;
		const char *message;
	} rows[] = {
		{ "nothing", BYTES(""), 0, 10, BPK_OK, "" },
		{ "half of the magic", BYTES("\x93NU"), 0, 10, BPK_OK, "" },
		{ "the magic", BYTES("\x93NUMPY"), 0, 10, BPK_OK, "" },
		{ "half of the version", BYTES("\x93NUMPY\1"), 0, 10, BPK_OK, "" },
		{ "1.0", BYTES("\x93NUMPY\1\0"), 0, 10, BPK_OK, "" },
		{ "1.0, half of the length", BYTES("\x93NUMPY\1\0\x76"), 0, 10, BPK_OK,
		  "" },
		{ "1.0, 118 bytes", BYTES("\x93NUMPY\1\0\x76\0"), 0, 128, BPK_OK, "" },
		{ "1.0, 0 bytes", BYTES("\x93NUMPY\1\0\0\0"), 0, 10, BPK_OK, "" },
		{ "1.0, all it can", BYTES("\x93NUMPY\1\0\xff\xff"), 0, 65545, BPK_OK,
		  "" },
		{ "2.0", BYTES("\x93NUMPY\2\0"), 0, 12, BPK_OK, "" },
		{ "2.0, half of the length", BYTES("\x93NUMPY\2\0\x74\0\0"), 0, 12,
		  BPK_OK, "" },
		{ "2.0, 116 bytes", BYTES("\x93NUMPY\2\0\x74\0\0\0"), 0, 128, BPK_OK,
		  "" },
		{ "3.0, 116 bytes", BYTES("\x93NUMPY\3\0\x74\0\0\0{"), 0, 128, BPK_OK,
		  "" },
		{ "2.0, as many as 1.0 has", BYTES("\x93NUMPY\2\0\xfd\xff\0\0"), 0, 65545,
		  BPK_OK, "" },
		{ "2.0, one more", BYTES("\x93NUMPY\2\0\xfe\xff\0\0"), -EFBIG, 0,
		  BPK_ERR_LIMIT, "the .npy header has 65546 bytes, the limit is 65545" },
		{ "2.0, 4 GiB", BYTES("\x93NUMPY\2\0\xff\xff\xff\xff"), -EFBIG, 0,
		  BPK_ERR_LIMIT,
		  "the .npy header has 4294967307 bytes, the limit is 65545" },
		{ "version 0.0", BYTES("\x93NUMPY\0\0"), -EPROTONOSUPPORT, 0,
		  BPK_ERR_VERSION, ".npy version 0.0 is not known, only 1.0 to 3.0" },
		{ "version 4.0", BYTES("\x93NUMPY\4\0\0\0"), -EPROTONOSUPPORT, 0,
		  BPK_ERR_VERSION, ".npy version 4.0 is not known, only 1.0 to 3.0" },
		{ "version 1.255", BYTES("\x93NUMPY\1\xff"), -EPROTONOSUPPORT, 0,
		  BPK_ERR_VERSION, ".npy version 1.255 is not known, only 1.0 to 3.0" },
		{ "a zip", BYTES("PK\3\4"), -EBADMSG, 0, BPK_ERR_MALFORMED,
		  "it is no .npy file: it does not start with \\x93NUMPY" },
		{ "one wrong byte", BYTES("\x93NUMPy\1\0\x76\0"), -EBADMSG, 0,
		  BPK_ERR_MALFORMED,
		  "it is no .npy file: it does not start with \\x93NUMPY" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *bytes = bytes_copy(rows[i].bytes, rows[i].size);
		struct bpk_error error = { .code = BPK_OK, .message = "" };
		struct bpk_npy npy;
		size_t needed = 0;
		int r = bpk_npy_needed(bytes, rows[i].size, &needed, &error);

		cr_expect_eq(r, rows[i].err, "%s: %d", rows[i].label, r);
		cr_expect_eq(needed, rows[i].needed, "%s: %zu", rows[i].label, needed);
		cr_expect_eq(error.code, rows[i].code, "%s", rows[i].label);
		cr_expect_str_eq(error.message, rows[i].message, "%s", rows[i].label);
		/* All are too short to be parsed, but for one that is empty. */
		r = bpk_npy_parse(bytes, rows[i].size, &npy, &error);
		if (rows[i].err) {
			cr_expect_eq(r, rows[i].err, "%s: %d", rows[i].label, r);
		} else if (needed > rows[i].size) {
			cr_expect_eq(r, -ENODATA, "%s: %d", rows[i].label, r);
			cr_expect_eq(error.code, BPK_ERR_TRUNCATED, "%s", rows[i].label);
			cr_expect_eq(error.offset, rows[i].size, "%s", rows[i].label);
		} else {
			cr_expect_eq(r, -EBADMSG, "%s: %d", rows[i].label, r);
		}
		free(bytes);
	}
}

/* Data behind the header changes nothing, one byte less is too few. */
Test(npy_parse, nothing_but_the_header_is_read)
{
	static const uint64_t shape[] = { 3, 1, 5 };
	size_t size = 0;
	char *header = NULL, *longer;
	struct bpk_npy npy;
	uint8_t *cut;

	cr_assert_eq(bpk_npy_render(BPK_DTYPE_BF16, shape, 3, 30, &header, &size), 0);
	longer = malloc(size + 30);
	cr_assert_not_null(longer);
	memcpy(longer, header, size);
	memset(longer + size, '}', 30);
	cr_assert_eq(bpk_npy_parse(longer, size + 30, &npy, NULL), 0);
	cr_expect_eq(npy.header_size, size);
	cr_expect_eq(npy.data_size, 30);
	cr_expect_eq(npy.dtype, BPK_DTYPE_BF16);
	cr_assert_eq(npy.rank, 3);
	cr_expect_arr_eq(npy.shape, shape, sizeof(shape));
	bpk_npy_done(&npy);
	for (size_t short_of = 1; short_of <= size; short_of++) {
		cut = bytes_copy(header, size - short_of);
		cr_expect_eq(bpk_npy_parse(cut, size - short_of, &npy, NULL), -ENODATA);
		free(cut);
	}
	free(longer);
	free(header);
	bpk_npy_done(NULL);
}
