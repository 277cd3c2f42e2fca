/*
 * test_dtype.c - the table of dtypes, their CBOR and their text.
 */
#include "bytes.h"
#include "dtype.h"
#include "leak.h"

#include <errno.h>

TestSuite(dtype, .fini = leak_check);

static int parse(const void *bytes, size_t size, enum bpk_dtype *ret_dtype,
		 size_t *ret_pos, struct bpk_error *error)
{
	uint8_t *data = bytes_copy(bytes, size);
	struct bpk_cursor cursor = {
		.data = data,
		.size = size,
		.nesting = 128,
		.error = error,
	};
	int err = bpk_dtype_parse(&cursor, ret_dtype);

	cr_expect(err || cursor.depth == 0, "left at depth %u", cursor.depth);
	*ret_pos = cursor.pos;
	free(data);
	return err;
}

Test(dtype, table)
{
	static const struct {
		enum bpk_dtype dtype;
		const char *name;
		uint64_t element_size;
	} rows[] = {
		{ BPK_DTYPE_F64, "F64", 8 },
		{ BPK_DTYPE_F32, "F32", 4 },
		{ BPK_DTYPE_FLEX32, "Flex32", 4 },
		{ BPK_DTYPE_F16, "F16", 2 },
		{ BPK_DTYPE_BF16, "BF16", 2 },
		{ BPK_DTYPE_I64, "I64", 8 },
		{ BPK_DTYPE_I32, "I32", 4 },
		{ BPK_DTYPE_I16, "I16", 2 },
		{ BPK_DTYPE_I8, "I8", 1 },
		{ BPK_DTYPE_U64, "U64", 8 },
		{ BPK_DTYPE_U32, "U32", 4 },
		{ BPK_DTYPE_U16, "U16", 2 },
		{ BPK_DTYPE_U8, "U8", 1 },
		{ BPK_DTYPE_BOOL_NATIVE, "Bool(Native)", 1 },
		{ BPK_DTYPE_BOOL_U8, "Bool(U8)", 1 },
		{ BPK_DTYPE_BOOL_U32, "Bool(U32)", 4 },
		{ BPK_DTYPE_BOOL_LEGACY, "Bool", 1 },
		{ BPK_DTYPE_QFLOAT, "QFloat", 0 },
	};

	cr_assert_eq(sizeof(rows) / sizeof(*rows), BPK_DTYPE_COUNT);
	for (size_t i = 0; i < BPK_DTYPE_COUNT; i++) {
		enum bpk_dtype dtype = BPK_DTYPE_QFLOAT;
		const char *name = rows[i].name;
		size_t size = 0, pos;
		const void *cbor = bpk_dtype_cbor(rows[i].dtype, &size);
		struct bpk_error error;
		char text[32];

		cr_expect_str_eq(bpk_dtype_name(rows[i].dtype), name);
		cr_expect_eq(bpk_dtype_element_size(rows[i].dtype), rows[i].element_size,
			     "%s", name);
		if (rows[i].dtype == BPK_DTYPE_QFLOAT) {
			cr_expect_null(cbor);
			cr_expect_eq(bpk_dtype_from_name(name, strlen(name), &dtype),
				     -EINVAL);
			continue;
		}
		cr_expect_eq(bpk_dtype_from_name(name, strlen(name), &dtype), 0, "%s",
			     name);
		cr_expect_eq(dtype, rows[i].dtype, "%s", name);
		cr_assert_not_null(cbor, "%s", name);
		cr_expect_eq(parse(cbor, size, &dtype, &pos, &error), 0, "%s: %s", name,
			     error.message);
		cr_expect_eq(dtype, rows[i].dtype, "%s", name);
		cr_expect_eq(pos, size, "%s", name);
		cr_expect_eq(bpk_dtype_text(dtype, cbor, size, text, sizeof(text)),
			     strlen(name));
		cr_expect_str_eq(text, name);
	}
}

Test(dtype, names_are_exact)
{
	static const char *const names[] = { "",       "f32",	       "F3",	 "F321",
					     "QFloat", "Bool(native)", "Bool()", "Flex" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		enum bpk_dtype dtype = BPK_DTYPE_I8;

		cr_expect_eq(bpk_dtype_from_name(names[i], strlen(names[i]), &dtype),
			     -EINVAL, "%s", names[i]);
		cr_expect_eq(dtype, BPK_DTYPE_I8);
	}
}

Test(dtype, sizes)
{
	static const struct {
		const char *label;
		enum bpk_dtype dtype;
		uint64_t shape[3];
		size_t rank;
		int err;
		uint64_t size;
	} rows[] = {
		{ "rank 0", BPK_DTYPE_F32, { 0 }, 0, 0, 4 },
		{ "rank 3", BPK_DTYPE_F16, { 2, 3, 4 }, 3, 0, 48 },
		{ "a zero", BPK_DTYPE_F64, { 5, 0 }, 2, 0, 0 },
		{ "a zero behind too much",
		  BPK_DTYPE_F64,
		  { 1ull << 63, 4, 0 },
		  3,
		  0,
		  0 },
		{ "the most", BPK_DTYPE_U8, { UINT64_MAX }, 1, 0, UINT64_MAX },
		{ "too much", BPK_DTYPE_U16, { 1ull << 63 }, 1, -EOVERFLOW, 7 },
		{ "wraps to 8",
		  BPK_DTYPE_F32,
		  { 0x8000000000000002, 2 },
		  2,
		  -EOVERFLOW,
		  7 },
		{ "quantized", BPK_DTYPE_QFLOAT, { 2 }, 1, -EINVAL, 7 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t size = 7;

		cr_expect_eq(
			bpk_shape_size(rows[i].dtype, rows[i].shape, rows[i].rank, &size),
			rows[i].err, "%s", rows[i].label);
		cr_expect_eq(size, rows[i].size, "%s: %llu", rows[i].label,
			     (unsigned long long)size);
	}
}

#define Q "\241\146QFloat"
#define VALUE "\145value\143Q8S"
#define STORE "\145store\241\151PackedU32\0"
#define MODE "\144mode\151Symmetric"
#define TENSOR "\146tensor\143F32"
#define BLOCK(storage, len)                                                              \
	"\145block\242\144size\242\147storage" storage "\143len" len "\145dtype\145UE4M" \
	"3"

Test(dtype, quantized_text)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		const char *text;
	} rows[] = {
		{ "as written today",
		  BYTES(Q "\245" VALUE STORE MODE TENSOR "\145block\366"),
		  "{\"QFloat\":{\"value\":\"Q8S\",\"store\":{\"PackedU32\":0},"
		  "\"mode\":\"Symmetric\",\"tensor\":\"F32\",\"block\":null}}" },
		{ "a block",
		  BYTES(Q "\244" VALUE "\145store\146Native\144mode\146Lookup" BLOCK(
			  "\205\30\40\1\1\1\1", "\1")),
		  "{\"QFloat\":{\"value\":\"Q8S\",\"store\":\"Native\",\"mode\":"
		  "\"Lookup\","
		  "\"block\":{\"size\":{\"storage\":[32,1,1,1,1],\"len\":1},"
		  "\"dtype\":\"UE4M3\"}}}" },
		{ "older",
		  BYTES(Q "\245" VALUE "\145param\143F32" STORE
			  "\145level\146Tensor" MODE),
		  "{\"QFloat\":{\"value\":\"Q8S\",\"param\":\"F32\","
		  "\"store\":{\"PackedU32\":0},\"level\":\"Tensor\","
		  "\"mode\":\"Symmetric\"}}" },
		{ "indefinite and tagged",
		  BYTES("\301" Q "\302\277" VALUE STORE MODE "\305\145block"
			"\242\144size\242\147storage\237\1\1\1\1\1\377\143len\0"
			"\145dtype\177\141F\14216\377\377"),
		  "{\"QFloat\":{\"value\":\"Q8S\",\"store\":{\"PackedU32\":0},"
		  "\"mode\":\"Symmetric\",\"block\":{\"size\":{\"storage\":[1,1,1,1,1],"
		  "\"len\":0},\"dtype\":\"F16\"}}}" },
		{ "anything behind unknown keys",
		  BYTES(Q "\247" VALUE STORE MODE "\141a\206\40\73\377\377\377\377\377"
			  "\377\377\377\371\76\0\364\365\367"
			  "\141b\242\1\142\"\n\203\1\2\3\241\140\240"
			  "\141c\137\101\377\101\0\377"
			  "\142\302\265\177\141x\177\141y\377\377"),
		  "{\"QFloat\":{\"value\":\"Q8S\",\"store\":{\"PackedU32\":0},"
		  "\"mode\":\"Symmetric\",\"a\":[-1,-18446744073709551616,"
		  "\"f64:0x3ff8000000000000\",false,true,null],"
		  "\"b\":{\"1\":\"\\\"\\u000a\",\"(array)\":{\"\":{}}},"
		  "\"c\":\"hex:ff00\",\"\302\265\":\"xy\"}}" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		enum bpk_dtype dtype = BPK_DTYPE_F32;
		struct bpk_error error = { .message = "" };
		char text[512], cut[512];
		size_t pos, size;

		cr_expect_eq(parse(rows[i].bytes, rows[i].size, &dtype, &pos, &error), 0,
			     "%s: %s", rows[i].label, error.message);
		cr_expect_eq(dtype, BPK_DTYPE_QFLOAT, "%s", rows[i].label);
		cr_expect_eq(pos, rows[i].size, "%s", rows[i].label);
		size = bpk_dtype_text(dtype, rows[i].bytes, rows[i].size, text,
				      sizeof(text));
		cr_expect_str_eq(text, rows[i].text, "%s: %s", rows[i].label, text);
		cr_expect_eq(size, strlen(text), "%s", rows[i].label);
		cr_expect_eq(bpk_dtype_text(dtype, rows[i].bytes, rows[i].size, NULL, 0),
			     size);
		memset(cut, '?', sizeof(cut));
		cr_expect_eq(bpk_dtype_text(dtype, rows[i].bytes, rows[i].size, cut, 11),
			     size);
		cr_expect_str_eq(cut, "{\"QFloat\":");
		cr_expect_eq(cut[11], '?');
	}
}

Test(dtype, refuses)
{
	static const struct {
		const char *label, *bytes;
		size_t size, pos;
		const char *message;
	} rows[] = {
		{ "case", BYTES("\143f32"), 0,
		  "the dtype is \"f32\", which is not known" },
		{ "empty", BYTES("\140"), 0, "the dtype is \"\", which is not known" },
		{ "a number", BYTES("\5"), 0,
		  "the dtype must be text or a map, here it is an unsigned integer" },
		{ "a word too long", BYTES("\170\41xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), 0,
		  "the dtype is \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" and more, which is "
		  "not "
		  "known" },
		{ "no entry", BYTES("\240"), 0,
		  "the dtype must be a map of exactly one entry" },
		{ "two entries", BYTES("\242\144Bool\146Native\143F32\366"), 0,
		  "the dtype must be a map of exactly one entry" },
		{ "indefinite", BYTES("\277\144Bool\146Native\377"), 0,
		  "the dtype must be a map of exactly one entry" },
		{ "a plain one as a map", BYTES("\241\143F32\366"), 1,
		  "the dtype (as a map) is \"F32\", which is not known" },
		{ "Bool of something", BYTES("\241\144Bool\143U16"), 6,
		  "the store of a Bool is \"U16\", which is not known" },
		{ "Bool of a map", BYTES("\241\144Bool\241\146Native\366"), 6,
		  "the store of a Bool must be text, here it is a map" },
		{ "QFloat alone", BYTES("\146QFloat"), 0,
		  "the dtype is \"QFloat\", which is not known" },
		{ "scheme as an array", BYTES(Q "\200"), 8,
		  "a quantization scheme must be a map, here it is an array" },
		{ "no value", BYTES(Q "\242" STORE MODE), 8,
		  "a quantization scheme has no \"value\"" },
		{ "no store", BYTES(Q "\242" VALUE MODE), 8,
		  "a quantization scheme has no \"store\"" },
		{ "no mode", BYTES(Q "\242" VALUE STORE), 8,
		  "a quantization scheme has no \"mode\"" },
		{ "value twice", BYTES(Q "\244" VALUE VALUE STORE MODE), 19,
		  "a quantization scheme has the key \"value\" twice" },
		{ "an old value", BYTES(Q "\243\145value\145QInt8" STORE MODE), 15,
		  "the value of a quantization scheme is \"QInt8\", which is not known" },
		{ "packed without a dimension",
		  BYTES(Q "\243" VALUE "\145store\151PackedU32" MODE), 25,
		  "the store of a quantization scheme is \"PackedU32\", which is not "
		  "known" },
		{ "Native as a map",
		  BYTES(Q "\243" VALUE "\145store\241\146Native\366" MODE), 26,
		  "the store of a quantization scheme is \"Native\", which is not "
		  "known" },
		{ "a negative dimension",
		  BYTES(Q "\243" VALUE "\145store\241\151PackedU32\40" MODE), 36,
		  "the packed dimension must be an unsigned integer, here it is a "
		  "negative "
		  "integer" },
		{ "a tagged null is no null",
		  BYTES(Q "\244" VALUE STORE MODE "\146tensor\301\366"), 59,
		  "the tensor scale of a quantization scheme must be text, here it is "
		  "null" },
		{ "four numbers",
		  BYTES(Q "\244" VALUE STORE MODE BLOCK("\204\1\1\1\1", "\1")), 73,
		  "the storage of a block size must have 5 numbers" },
		{ "six numbers",
		  BYTES(Q "\244" VALUE STORE MODE BLOCK("\206\1\1\1\1\1\1", "\1")), 73,
		  "the storage of a block size must have 5 numbers" },
		{ "no byte",
		  BYTES(Q "\244" VALUE STORE MODE BLOCK("\205\1\1\31\1\0\1\1", "\1")), 76,
		  "the storage of a block size is 256, more than 255" },
		{ "bytes for an array",
		  BYTES(Q "\244" VALUE STORE MODE BLOCK("\105\1\1\1\1\1", "\1")), 73,
		  "the storage of a block size must be an array, here it is a byte "
		  "string" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .code = BPK_OK };
		enum bpk_dtype dtype = BPK_DTYPE_I8;
		size_t pos;

		cr_expect_eq(parse(rows[i].bytes, rows[i].size, &dtype, &pos, &error),
			     -EBADMSG, "%s", rows[i].label);
		cr_expect_eq(error.code, BPK_ERR_MALFORMED, "%s", rows[i].label);
		cr_expect_eq(error.offset, rows[i].pos, "%s: at %llu", rows[i].label,
			     (unsigned long long)error.offset);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
		cr_expect_eq(dtype, BPK_DTYPE_I8, "%s: dtype touched", rows[i].label);
	}
}
