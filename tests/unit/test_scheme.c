/*
 * test_scheme.c - quantization schemes from their text, as attributes say them.
 */
#include "bytes.h"
#include "convert/scheme.h"
#include "dtype.h"
#include "leak.h"

#include <errno.h>

TestSuite(scheme, .fini = leak_check);

#define Q(inside) "{\"QFloat\":" inside "}"
#define V "\"value\":\"Q8S\","
#define S "\"store\":{\"PackedU32\":0},"
#define M "\"mode\":\"Symmetric\""

#define CQ "\241\146QFloat"
#define CV "\145value\143Q8S"
#define CS "\145store\241\151PackedU32\0"
#define CM "\144mode\151Symmetric"

static int parse(const char *text, size_t size, void **ret_cbor, size_t *ret_size,
		 struct bpk_error *error)
{
	uint8_t *copy = bytes_copy(text, size);
	int result =
		bpk_scheme_parse((const char *)copy, size, ret_cbor, ret_size, error);

	free(copy);
	return result;
}

Test(scheme, to_cbor)
{
	static const struct {
		const char *label, *text;
		const char *cbor;
		size_t size;
	} rows[] = {
		{ "the least", Q("{" V S M "}"), BYTES(CQ "\243" CV CS CM) },
		{ "spaces", " { \"QFloat\" :\n{ " V "\t" S "\r" M " } } ",
		  BYTES(CQ "\243" CV CS CM) },
		{ "another order", Q("{" M "," V "\"store\":\"Native\"}"),
		  BYTES(CQ "\243" CM CV "\145store\146Native") },
		{ "absent, and a block",
		  Q("{" V S M ",\"tensor\":null,\"block\":{\"size\":{\"storage\":"
		    "[32,1,255,24,23],\"len\":5},\"dtype\":\"UE4M3\"}}"),
		  BYTES(CQ "\245" CV CS CM "\146tensor\366\145block\242\144size\242"
			   "\147storage\205\30\40\1\30\377\30\30\27\143len\5"
			   "\145dtype\145UE4M3") },
		{ "a long dimension",
		  Q("{" V "\"store\":{\"PackedU32\":18446744073709551615}," M "}"),
		  BYTES(CQ "\243" CV "\145store\241\151PackedU32\33\377\377\377\377"
			   "\377\377\377\377" CM) },
		{ "keys that none is known to have",
		  Q("{" V S M ",\"\":[],\"a\":[-1,-9223372036854775808,true,false,{}],"
		    "\"b\\u000a\\\"\\\\\\/\":\"\\u00b5\\u20ac\\n\302\265\"}"),
		  BYTES(CQ "\246" CV CS CM "\140\200\141a\205\40\73\177\377\377\377\377"
			   "\377\377\377\365\364\240\145b\n\"\\/"
			   "\150\302\265\342\202\254\n\302\265") },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		void *cbor = NULL;
		size_t size = 0;

		cr_expect_eq(
			parse(rows[i].text, strlen(rows[i].text), &cbor, &size, &error),
			0, "%s: %s", rows[i].label, error.message);
		cr_expect(size == rows[i].size && cbor &&
				  memcmp(cbor, rows[i].cbor, size) == 0,
			  "%s: other bytes, %zu", rows[i].label, size);
		free(cbor);
	}
}

Test(scheme, refuses)
{
	static const struct {
		const char *label, *text;
		size_t size;
		uint64_t offset;
	} rows[] = {
		/* clang-format off */
		{ "nothing", BYTES(""), 0 },
		{ "spaces", BYTES("  "), 2 },
		{ "a name", BYTES("QFloat"), 0 },
		{ "a string", BYTES("\"QFloat\""), BPK_NO_OFFSET },
		{ "a plain dtype", BYTES("\"F32\""), 5 },
		{ "another map", BYTES("{\"Bool\":\"Native\"}"), 17 },
		{ "no value", BYTES(Q("{" S M "}")), BPK_NO_OFFSET },
		{ "value of no scheme", BYTES(Q("{\"value\":\"Q9\"," S M "}")), BPK_NO_OFFSET },
		{ "value twice", BYTES(Q("{" V V S M "}")), BPK_NO_OFFSET },
		{ "open", BYTES("{\"QFloat\":{" V S M "}"), 68 },
		{ "something behind", BYTES(Q("{" V S M "}") "x"), 69 },
		{ "a comma at the end", BYTES(Q("{" V S M ",}")), 68 },
		{ "no comma", BYTES("{\"a\":1 \"b\":2}"), 7 },
		{ "no colon", BYTES("{\"a\" 1}"), 5 },
		{ "a key that is none", BYTES("{1:2}"), 1 },
		{ "a bracket that fits none", BYTES("[1}"), 2 },
		{ "a fraction", BYTES("[1.5]"), 2 },
		{ "an exponent", BYTES("[1e3]"), 2 },
		{ "a zero in front", BYTES("[01]"), 3 },
		{ "a plus", BYTES("[+1]"), 1 },
		{ "over 64 bits", BYTES("[18446744073709551616]"), 20 },
		{ "below 64 bits", BYTES("[-9223372036854775809]"), 21 },
		{ "a word", BYTES("[nul]"), 1 },
		{ "a string that is open", BYTES("[\"a"), 3 },
		{ "a line in a string", BYTES("[\"a\n\"]"), 3 },
		{ "an escape of no kind", BYTES("[\"\\x\"]"), 4 },
		{ "an escape that ends", BYTES("[\"\\"), 3 },
		{ "a NUL behind a backslash", BYTES("[\"\\\0\"]"), 4 },
		{ "half a character", BYTES("[\"\\ud83d\"]"), 8 },
		{ "three digits", BYTES("[\"\\u00a\"]"), 8 },
		{ "no UTF-8", BYTES("[\"\377\"]"), 4 },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		char untouched;
		void *cbor = &untouched;
		size_t size = 7;

		cr_expect_eq(parse(rows[i].text, rows[i].size, &cbor, &size, &error),
			     -EINVAL, "%s", rows[i].label);
		cr_expect_eq(error.code, BPK_ERR_ARGUMENT, "%s", rows[i].label);
		cr_expect_neq(error.message[0], '\0', "%s", rows[i].label);
		cr_expect_eq(error.offset, rows[i].offset, "%s: at %llu, %s",
			     rows[i].label, (unsigned long long)error.offset,
			     error.message);
		cr_expect(cbor == &untouched && size == 7, "%s", rows[i].label);
		cr_expect_eq(parse(rows[i].text, rows[i].size, &cbor, &size, NULL),
			     -EINVAL, "%s", rows[i].label);
	}
}

Test(scheme, depth)
{
	char text[2 * BPK_SCHEME_DEPTH_MAX + 2];
	struct bpk_error error = { .message = "" };
	size_t size;
	void *cbor;

	/* As deep as may be it is read, and is no scheme; one more is not. */
	memset(text, '[', BPK_SCHEME_DEPTH_MAX + 1);
	memset(text + BPK_SCHEME_DEPTH_MAX + 1, ']', BPK_SCHEME_DEPTH_MAX + 1);
	cr_expect_eq(parse(text, sizeof(text), &cbor, &size, &error), -EFBIG);
	cr_expect_eq(error.code, BPK_ERR_LIMIT);
	cr_expect_eq(parse(text + 1, sizeof(text) - 2, &cbor, &size, &error), -EINVAL);
	cr_expect_eq(error.offset, BPK_NO_OFFSET);
}

/* What Burn wrote is what its text gives, byte for byte. */
Test(scheme, golden)
{
	struct bpk_reader *reader;
	struct bpk_error error = { .message = "" };
	size_t schemes = 0;

	cr_assert_eq(bpk_reader_open(GOLDEN_QUANTIZED, NULL, &reader, &error), 0, "%s",
		     error.message);
	for (size_t i = 0; i < bpk_reader_tensor_count(reader); i++) {
		const struct bpk_tensor *tensor = bpk_reader_tensor(reader, i);
		size_t cbor_size, size = 0;
		const void *cbor = bpk_tensor_dtype_cbor(tensor, &cbor_size);
		char text[512];
		void *made = NULL;

		if (bpk_tensor_dtype(tensor) != BPK_DTYPE_QFLOAT)
			continue;
		schemes++;
		cr_assert_lt(bpk_tensor_dtype_text(tensor, text, sizeof(text)),
			     sizeof(text));
		cr_expect_eq(parse(text, strlen(text), &made, &size, &error), 0, "%s: %s",
			     text, error.message);
		cr_expect(size == cbor_size && made && memcmp(made, cbor, size) == 0,
			  "%s", text);
		free(made);
	}
	cr_expect_eq(schemes, 11);
	bpk_reader_close(reader);
}
