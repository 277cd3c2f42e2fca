/*
 * test_cbor.c - the cursor, head by head.
 */
#include "bytes.h"
#include "cbor.h"
#include "error.h"
#include "leak.h"

#include <errno.h>

TestSuite(cbor, .fini = leak_check);

static struct bpk_cursor cursor_at(const uint8_t *data, size_t size,
				   struct bpk_error *error)
{
	return (struct bpk_cursor) {
		.data = data,
		.size = size,
		.base_off = 1000,
		.nesting = 8,
		.error = error,
	};
}

Test(cbor, heads)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		enum bpk_item_type type;
		uint64_t number;
		uint32_t tags;
		bool indefinite;
	} rows[] = {
		{ "0", BYTES("\0"), BPK_ITEM_UINT, 0, 0, 0 },
		{ "23", BYTES("\27"), BPK_ITEM_UINT, 23, 0, 0 },
		{ "24", BYTES("\30\30"), BPK_ITEM_UINT, 24, 0, 0 },
		{ "not minimal", BYTES("\30\1"), BPK_ITEM_UINT, 1, 0, 0 },
		{ "u16", BYTES("\31\1\2"), BPK_ITEM_UINT, 0x102, 0, 0 },
		{ "u32", BYTES("\32\1\2\3\4"), BPK_ITEM_UINT, 0x1020304, 0, 0 },
		{ "u64", BYTES("\33\377\377\377\377\377\377\377\376"), BPK_ITEM_UINT,
		  UINT64_MAX - 1, 0, 0 },
		{ "-1", BYTES("\40"), BPK_ITEM_NEGINT, 0, 0, 0 },
		{ "-256", BYTES("\70\377"), BPK_ITEM_NEGINT, 255, 0, 0 },
		{ "-257", BYTES("\71\1\0"), BPK_ITEM_NEGINT, 256, 0, 0 },
		{ "-65537", BYTES("\72\0\1\0\0"), BPK_ITEM_NEGINT, 65536, 0, 0 },
		{ "-2^64", BYTES("\73\377\377\377\377\377\377\377\377"), BPK_ITEM_NEGINT,
		  UINT64_MAX, 0, 0 },
		{ "array", BYTES("\203"), BPK_ITEM_ARRAY, 3, 0, 0 },
		{ "array 2^60", BYTES("\233\20\0\0\0\0\0\0\0"), BPK_ITEM_ARRAY,
		  UINT64_C(1) << 60, 0, 0 },
		{ "array, indefinite", BYTES("\237"), BPK_ITEM_ARRAY, 0, 0, 1 },
		{ "map", BYTES("\242"), BPK_ITEM_MAP, 2, 0, 0 },
		{ "map, indefinite", BYTES("\277"), BPK_ITEM_MAP, 0, 0, 1 },
		{ "bytes, indefinite", BYTES("\137"), BPK_ITEM_BYTES_START, 0, 0, 0 },
		{ "text, indefinite", BYTES("\177"), BPK_ITEM_TEXT_START, 0, 0, 0 },
		{ "false", BYTES("\364"), BPK_ITEM_FALSE, 0, 0, 0 },
		{ "true", BYTES("\365"), BPK_ITEM_TRUE, 0, 0, 0 },
		{ "null", BYTES("\366"), BPK_ITEM_NULL, 0, 0, 0 },
		{ "undefined", BYTES("\367"), BPK_ITEM_UNDEFINED, 0, 0, 0 },
		{ "false, two bytes", BYTES("\370\24"), BPK_ITEM_FALSE, 0, 0, 0 },
		{ "true, two bytes", BYTES("\370\25"), BPK_ITEM_TRUE, 0, 0, 0 },
		{ "null, two bytes", BYTES("\370\26"), BPK_ITEM_NULL, 0, 0, 0 },
		{ "undefined, two bytes", BYTES("\370\27"), BPK_ITEM_UNDEFINED, 0, 0, 0 },
		{ "f16 1.5", BYTES("\371\76\0"), BPK_ITEM_FLOAT, 0x3ff8000000000000, 0,
		  0 },
		{ "f32 0.1f", BYTES("\372\75\314\314\315"), BPK_ITEM_FLOAT,
		  0x3fb99999a0000000, 0, 0 },
		{ "f32 signaling NaN", BYTES("\372\177\240\0\1"), BPK_ITEM_FLOAT,
		  0x7ffc000020000000, 0, 0 },
		{ "f64 signaling NaN", BYTES("\373\177\360\0\0\0\0\0\1"), BPK_ITEM_FLOAT,
		  0x7ff0000000000001, 0, 0 },
		{ "break", BYTES("\377"), BPK_ITEM_BREAK, 0, 0, 0 },
		{ "tag 0", BYTES("\300\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag 6", BYTES("\306\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag 20", BYTES("\324\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag 23", BYTES("\327\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag u8", BYTES("\330\50\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag u16", BYTES("\331\331\367\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag u32", BYTES("\332\1\2\3\4\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "tag u64", BYTES("\333\1\2\3\4\5\6\7\10\5"), BPK_ITEM_UINT, 5, 1, 0 },
		{ "eight tags", BYTES("\300\300\300\300\300\300\300\300\5"),
		  BPK_ITEM_UINT, 5, 8, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *data = bytes_copy(rows[i].bytes, rows[i].size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_cursor cursor = cursor_at(data, rows[i].size, &error);
		struct bpk_item item;

		cr_expect_eq(bpk_cbor_next(&cursor, &item), 0, "%s: %s", rows[i].label,
			     error.message);
		cr_expect_eq(item.type, rows[i].type, "%s: type %d", rows[i].label,
			     item.type);
		cr_expect_eq(item.number, rows[i].number, "%s: %llx", rows[i].label,
			     (unsigned long long)item.number);
		cr_expect_eq(item.tags, rows[i].tags, "%s", rows[i].label);
		cr_expect_eq(item.indefinite, rows[i].indefinite, "%s", rows[i].label);
		cr_expect_eq(cursor.pos, rows[i].size, "%s: stopped early",
			     rows[i].label);
		cr_expect_eq(cursor.depth, 0, "%s", rows[i].label);
		free(data);
	}
}

Test(cbor, skips_whole_items)
{
	/* Each followed by a break, at which the cursor must then be. */
	static const struct {
		const char *label, *bytes;
		size_t size;
	} rows[] = {
		{ "number", BYTES("\5") },
		{ "text", BYTES("\143abc") },
		{ "text in chunks", BYTES("\177\141a\142bc\377") },
		{ "text in chunks of chunks", BYTES("\177\177\141a\377\141b\377") },
		{ "bytes in chunks", BYTES("\137\101a\137\377\101b\377") },
		{ "empty containers", BYTES("\202\200\240") },
		{ "map", BYTES("\242\1\2\3\4") },
		{ "maps without end", BYTES("\277\1\277\2\237\3\377\377\377") },
		{ "map as a key", BYTES("\241\240\240") },
		{ "tags in between", BYTES("\301\202\302\1\303\2") },
		{ "eight deep", BYTES("\201\201\201\201\201\201\201\201\5") },
		{ "eight deep twice", BYTES("\202\201\201\201\201\201\201\201\5\201\201"
					    "\201\201\201\201\201\5") },
		{ "deep by tags", BYTES("\202\301\301\301\301\301\301\301\1\307\201\3") },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *data = bytes_copy(rows[i].bytes, rows[i].size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_cursor cursor = cursor_at(data, rows[i].size, &error);

		cr_expect_eq(bpk_cbor_skip(&cursor), 0, "%s: %s", rows[i].label,
			     error.message);
		cr_expect_eq(cursor.pos, rows[i].size, "%s: at %zu", rows[i].label,
			     cursor.pos);
		cr_expect_eq(cursor.depth, 0, "%s: depth %u", rows[i].label,
			     cursor.depth);
		free(data);
	}
}

Test(cbor, refuses)
{
	static const char end[] =
		"the metadata ends inside a value: the size in the header or "
		"a count is wrong, or bytes are missing";
	static const char deep[] = "more than 8 containers and tags inside each other";
	static const struct {
		const char *label, *bytes;
		size_t size, pos;
		enum bpk_code code;
		const char *message;
	} rows[] = {
		{ "nothing", BYTES(""), 0, BPK_ERR_MALFORMED, end },
		{ "half a head", BYTES("\31\1"), 0, BPK_ERR_MALFORMED, end },
		{ "half a simple value", BYTES("\370"), 0, BPK_ERR_MALFORMED, end },
		{ "half a float", BYTES("\371\0"), 0, BPK_ERR_MALFORMED, end },
		{ "half a tag", BYTES("\331\1"), 0, BPK_ERR_MALFORMED, end },
		{ "a tag of nothing", BYTES("\301"), 1, BPK_ERR_MALFORMED, end },
		{ "half a text", BYTES("\143ab"), 0, BPK_ERR_MALFORMED, end },
		{ "text of 2^64-1", BYTES("\173\377\377\377\377\377\377\377\377abc"), 0,
		  BPK_ERR_MALFORMED, end },
		{ "bytes of 2^63", BYTES("\133\200\0\0\0\0\0\0\0abc"), 0,
		  BPK_ERR_MALFORMED, end },
		{ "array of 2^60", BYTES("\233\20\0\0\0\0\0\0\0\1"), 10,
		  BPK_ERR_MALFORMED, end },
		{ "array without end", BYTES("\237\1"), 2, BPK_ERR_MALFORMED, end },
		{ "text without end", BYTES("\177\141a"), 3, BPK_ERR_MALFORMED, end },
		{ "reserved 28", BYTES("\34"), 0, BPK_ERR_MALFORMED,
		  "the byte 0x1c starts no CBOR item" },
		{ "indefinite number", BYTES("\37"), 0, BPK_ERR_MALFORMED,
		  "the byte 0x1f starts no CBOR item" },
		{ "indefinite tag", BYTES("\337\1"), 0, BPK_ERR_MALFORMED,
		  "the byte 0xdf starts no CBOR item" },
		{ "simple 0", BYTES("\340"), 0, BPK_ERR_MALFORMED,
		  "the byte 0xe0 starts no CBOR item" },
		{ "simple 19", BYTES("\363"), 0, BPK_ERR_MALFORMED,
		  "the byte 0xf3 starts no CBOR item" },
		{ "simple 32", BYTES("\370\40"), 0, BPK_ERR_MALFORMED,
		  "the CBOR simple value 32 has no meaning" },
		{ "break alone", BYTES("\377"), 0, BPK_ERR_MALFORMED,
		  "a break where a value must be" },
		{ "break in an array of one", BYTES("\201\377"), 1, BPK_ERR_MALFORMED,
		  "a break where a value must be" },
		{ "key without a value", BYTES("\277\1\377"), 2, BPK_ERR_MALFORMED,
		  "a break where a value must be" },
		{ "a tagged break", BYTES("\237\301\377"), 1, BPK_ERR_MALFORMED,
		  "a break where a value must be" },
		{ "text not UTF-8", BYTES("\142a\377"), 0, BPK_ERR_MALFORMED,
		  "a text is not UTF-8" },
		{ "a letter in two chunks", BYTES("\177\141\303\141\251\377"), 1,
		  BPK_ERR_MALFORMED, "a text is not UTF-8" },
		{ "bytes in a text", BYTES("\177\101a\377"), 1, BPK_ERR_MALFORMED,
		  "a byte string inside an indefinite string" },
		{ "number in bytes", BYTES("\137\1\377"), 1, BPK_ERR_MALFORMED,
		  "an unsigned integer inside an indefinite string" },
		{ "tag in a text", BYTES("\177\301\141a\377"), 1, BPK_ERR_MALFORMED,
		  "a tag inside an indefinite string" },
		{ "nine arrays", BYTES("\201\201\201\201\201\201\201\201\201\5"), 8,
		  BPK_ERR_LIMIT, deep },
		{ "nine tags", BYTES("\300\300\300\300\300\300\300\300\300\5"), 8,
		  BPK_ERR_LIMIT, deep },
		{ "tags on the way count",
		  BYTES("\301\201\301\201\301\201\301\201\301\5"), 8, BPK_ERR_LIMIT,
		  deep },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *data = bytes_copy(rows[i].bytes, rows[i].size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_cursor cursor = cursor_at(data, rows[i].size, &error);
		int err = bpk_cbor_skip(&cursor);

		cr_expect_eq(err, rows[i].code == BPK_ERR_LIMIT ? -EFBIG : -EBADMSG,
			     "%s: %d", rows[i].label, err);
		cr_expect_eq(error.code, rows[i].code, "%s", rows[i].label);
		cr_expect_eq(error.offset, 1000 + rows[i].pos, "%s: at %llu",
			     rows[i].label, (unsigned long long)error.offset);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
		free(data);
	}
}

Test(cbor, the_deepest_nesting_fits_the_stack)
{
	uint8_t data[BPK_CBOR_NESTING_MAX + 2];
	struct bpk_error error = { .code = BPK_OK };
	struct bpk_cursor cursor = cursor_at(data, sizeof(data), &error);

	cursor.nesting = BPK_CBOR_NESTING_MAX;
	memset(data, 0x81, sizeof(data));
	data[BPK_CBOR_NESTING_MAX] = 5;
	cr_expect_eq(bpk_cbor_skip(&cursor), 0);
	cursor = cursor_at(data, sizeof(data), &error);
	cursor.nesting = BPK_CBOR_NESTING_MAX;
	data[BPK_CBOR_NESTING_MAX] = 0x81;
	cr_expect_eq(bpk_cbor_skip(&cursor), -EFBIG);
	cr_expect_eq(error.offset, 1000 + BPK_CBOR_NESTING_MAX);
}

Test(cbor, text_is_moved_together)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		const char *text;
	} rows[] = {
		{ "definite", BYTES("\143abc\0"), "abc" },
		{ "empty", BYTES("\140\0"), "" },
		{ "two chunks", BYTES("\177\142ab\141c\377\0"), "abc" },
		{ "no chunk", BYTES("\177\377\0"), "" },
		{ "chunks of chunks", BYTES("\177\177\141a\141b\377\177\377\141c\377\0"),
		  "abc" },
		{ "tagged", BYTES("\330\40\142hi\0"), "hi" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint8_t *data = bytes_copy(rows[i].bytes, rows[i].size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_cursor cursor = cursor_at(data, rows[i].size, &error);
		const char *text = NULL;
		size_t size = 99;

		cr_expect_eq(bpk_cbor_text(&cursor, data, "it", &text, &size), 0,
			     "%s: %s", rows[i].label, error.message);
		cr_expect_eq(size, strlen(rows[i].text), "%s: %zu", rows[i].label, size);
		cr_expect_arr_eq(text, rows[i].text, size, "%s", rows[i].label);
		cr_expect_eq(cursor.pos, rows[i].size - 1, "%s", rows[i].label);
		free(data);
	}
}

Test(cbor, words_leave_the_bytes_alone)
{
	static const char bytes[] = "\177\143dty\142pe\377";
	uint8_t *data = bytes_copy(bytes, sizeof(bytes));
	struct bpk_error error;
	struct bpk_cursor cursor = cursor_at(data, sizeof(bytes), &error);
	char word[BPK_WORD_SIZE], long_text[42] = "\170\50";
	size_t size;

	cr_assert_eq(bpk_cbor_word(&cursor, "it", word, &size), 0);
	cr_expect(bpk_word_is(word, size, "dtype"));
	cr_expect_not(bpk_word_is(word, size, "dtyp"));
	cr_expect_not(bpk_word_is(word, size, "dtypes"));
	cr_expect_arr_eq(data, bytes, sizeof(bytes));
	free(data);

	memset(long_text + 2, 'x', 40);
	data = bytes_copy(long_text, sizeof(long_text));
	cursor = cursor_at(data, sizeof(long_text), &error);
	cr_assert_eq(bpk_cbor_word(&cursor, "it", word, &size), 0);
	cr_expect_eq(size, 40);
	cr_expect_eq(cursor.pos, 42);
	cr_expect_not(
		bpk_word_is(word, size, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
	free(data);

	cursor = cursor_at((const uint8_t *)"\101a", 2, &error);
	cr_expect_eq(bpk_cbor_word(&cursor, "the key", word, &size), -EBADMSG);
	cr_expect_str_eq(error.message, "the key must be text, here it is a byte string");
}

Test(cbor, widening)
{
	static const struct {
		const char *label;
		uint16_t bits;
		uint64_t wide;
	} half[] = {
		{ "0", 0x0000, 0 },
		{ "-0", 0x8000, 0x8000000000000000 },
		{ "1", 0x3c00, 0x3ff0000000000000 },
		{ "1 + ulp", 0x3c01, 0x3ff0040000000000 },
		{ "-2", 0xc000, 0xc000000000000000 },
		{ "65504", 0x7bff, 0x40effc0000000000 },
		{ "smallest", 0x0001, 0x3e70000000000000 },
		{ "three smallest", 0x0003, 0x3e88000000000000 },
		{ "largest subnormal", 0x03ff, 0x3f0ff80000000000 },
		{ "smallest normal", 0x0400, 0x3f10000000000000 },
		{ "inf", 0x7c00, 0x7ff0000000000000 },
		{ "-inf", 0xfc00, 0xfff0000000000000 },
		{ "NaN", 0x7e00, 0x7ff8000000000000 },
		{ "NaN with payload", 0x7f01, 0x7ffc040000000000 },
		{ "signaling NaN", 0x7c01, 0x7ff8040000000000 },
		{ "-NaN", 0xfe00, 0xfff8000000000000 },
	};
	static const struct {
		const char *label;
		uint32_t bits;
		uint64_t wide;
	} single[] = {
		{ "0", 0x00000000, 0 },
		{ "-0", 0x80000000, 0x8000000000000000 },
		{ "1", 0x3f800000, 0x3ff0000000000000 },
		{ "max", 0x7f7fffff, 0x47efffffe0000000 },
		{ "smallest", 0x00000001, 0x36a0000000000000 },
		{ "largest subnormal", 0x007fffff, 0x380fffffc0000000 },
		{ "smallest normal", 0x00800000, 0x3810000000000000 },
		{ "inf", 0x7f800000, 0x7ff0000000000000 },
		{ "-inf", 0xff800000, 0xfff0000000000000 },
		{ "NaN with payload", 0x7fc00001, 0x7ff8000020000000 },
		{ "signaling NaN", 0x7f800001, 0x7ff8000020000000 },
	};

	for (size_t i = 0; i < sizeof(half) / sizeof(*half); i++)
		cr_expect_eq(bpk_float_widen_f16(half[i].bits), half[i].wide,
			     "f16 %s: %llx", half[i].label,
			     (unsigned long long)bpk_float_widen_f16(half[i].bits));
	for (size_t i = 0; i < sizeof(single) / sizeof(*single); i++)
		cr_expect_eq(bpk_float_widen_f32(single[i].bits), single[i].wide,
			     "f32 %s: %llx", single[i].label,
			     (unsigned long long)bpk_float_widen_f32(single[i].bits));
	/* Every f16 bit by bit would be this again; the compiler knows better. */
	for (uint32_t bits = 0; bits < 0x7c00; bits++) {
		double value = bits < 0x400 ? bits * 0x1p-24
					    : (1024.0 + (bits & 1023)) * 0x1p-25 *
						      (double)(1u << (bits >> 10));
		uint64_t wide;

		memcpy(&wide, &value, sizeof(wide));
		cr_assert_eq(bpk_float_widen_f16((uint16_t)bits), wide, "f16 %x", bits);
	}
	for (uint64_t bits = 0; bits < 0x7f800000; bits += 9973) {
		uint32_t narrow = (uint32_t)bits;
		uint64_t wide;
		double value;
		float f;

		memcpy(&f, &narrow, sizeof(f));
		value = f;
		memcpy(&wide, &value, sizeof(wide));
		cr_assert_eq(bpk_float_widen_f32(narrow), wide, "f32 %x", narrow);
	}
}
