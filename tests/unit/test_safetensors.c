/*
 * test_safetensors.c - a pack as a safetensors file: the exact JSON, the order and the
 * offsets. convert_safetensors.py checks the rules of the format on packs at random.
 */
#include "bytes.h"
#include "convert/safetensors.h"
#include "leak.h"

#include <errno.h>
#include <stdio.h>

TestSuite(safetensors, .fini = leak_check);

#define TEXT(text) text, sizeof(text) - 1
#define TENSORS_MAX 8
#define PAIRS_MAX 4

struct pack {
	struct bpk_safetensors_desc tensors[TENSORS_MAX];
	struct bpk_safetensors_pair pairs[PAIRS_MAX];
	size_t fail_tensor, fail_pair; /* the call that fails, from 1; 0: none */
	size_t tensor_calls, pair_calls;
	char *lent; /* what the last call gave, gone with the next one */
};

/* The name is in a block of its own that does not outlive the call after. */
static int describe(void *context, size_t index, struct bpk_safetensors_desc *ret_desc)
{
	struct pack *pack = context;

	cr_assert_lt(index, TENSORS_MAX);
	if (++pack->tensor_calls == pack->fail_tensor)
		return -ESTALE;
	*ret_desc = pack->tensors[index];
	free(pack->lent);
	pack->lent = (char *)bytes_copy(ret_desc->name, ret_desc->name_size);
	ret_desc->name = pack->lent;
	return 0;
}

static int get_pair(void *context, size_t index, struct bpk_safetensors_pair *ret_pair)
{
	struct pack *pack = context;

	cr_assert_lt(index, PAIRS_MAX);
	if (++pack->pair_calls == pack->fail_pair)
		return -EKEYEXPIRED;
	*ret_pair = pack->pairs[index];
	free(pack->lent);
	pack->lent = (char *)bytes_copy(ret_pair->key, ret_pair->key_size);
	ret_pair->key = pack->lent;
	return 0;
}

/* Tensors and pairs up to the first without a name or key. */
static int render(struct pack *pack, struct bpk_safetensors **ret_layout,
		  struct bpk_error *error)
{
	struct bpk_safetensors_source source = {
		.describe = describe,
		.pair = get_pair,
		.context = pack,
	};
	int r;

	while (source.tensor_count < TENSORS_MAX &&
	       pack->tensors[source.tensor_count].name)
		source.tensor_count++;
	while (source.pair_count < PAIRS_MAX && pack->pairs[source.pair_count].key)
		source.pair_count++;
	r = bpk_safetensors_render(&source, ret_layout, error);
	free(pack->lent);
	pack->lent = NULL;
	return r;
}

static void expect_json(const char *label, const struct bpk_safetensors *layout,
			const char *json)
{
	size_t size = strlen(json), padded = (size + 7) / 8 * 8;
	uint64_t length = 0;

	cr_assert_eq(layout->header_size, padded + 8, "%s: %.*s", label,
		     (int)layout->header_size - 8, layout->header + 8);
	for (unsigned int i = 0; i < 8; i++)
		length |= (uint64_t)(uint8_t)layout->header[i] << 8 * i;
	cr_expect_eq(length, padded, "%s", label);
	cr_expect_arr_eq(layout->header + 8, json, size, "%s: %.*s", label, (int)size,
			 layout->header + 8);
	for (size_t i = size; i < padded; i++)
		cr_expect_eq(layout->header[8 + i], ' ', "%s", label);
}

static const uint64_t dims[] = { 2, 3, 5 };

Test(safetensors, headers)
{
#define NAME(text) .name = (text), .name_size = sizeof(text) - 1
#define SHAPE(...)                                                                       \
	.shape = (const uint64_t[]) { __VA_ARGS__ },                                     \
	.rank = sizeof((const uint64_t[]) { __VA_ARGS__ }) / sizeof(uint64_t)
	const struct {
		const char *label;
		struct bpk_safetensors_desc tensors[TENSORS_MAX];
		struct bpk_safetensors_pair pairs[PAIRS_MAX];
		const char *json;
		size_t order[TENSORS_MAX];
		uint64_t offs[TENSORS_MAX];
		uint64_t data_size;
	} rows[] = {
		/* clang-format off */
		{ .label = "nothing", .json = "{}" },
		{ .label = "only metadata",
		  .pairs = { { TEXT("k"), TEXT("v") }, { TEXT(""), TEXT("") } },
		  .json = "{\"__metadata__\":{\"k\":\"v\",\"\":\"\"}}" },
		{ .label = "one tensor",
		  .tensors = { { NAME("w"), BPK_DTYPE_F32, SHAPE(2, 3), .size = 24 } },
		  .json = "{\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
		  .data_size = 24 },
		{ .label = "rank 0 and a name that is empty",
		  .tensors = { { NAME(""), BPK_DTYPE_I64, .size = 8 } },
		  .json = "{\"\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}",
		  .data_size = 8 },
		{ .label = "escapes",
		  .tensors = { { NAME("a\"\0"), BPK_DTYPE_U8, SHAPE(1), .size = 1 } },
		  .pairs = { { TEXT("\n"), TEXT("\\") } },
		  .json = "{\"__metadata__\":{\"\\u000a\":\"\\\\\"},\"a\\\"\\u0000\":"
			  "{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
		  .data_size = 1 },
		{ .label = "large elements first, then by the key, then as they come",
		  .tensors = {
			{ NAME("b1"), BPK_DTYPE_U8, SHAPE(3), .size = 3, .order = 9 },
			{ NAME("b2"), BPK_DTYPE_U16, SHAPE(3), .size = 6, .order = 8 },
			{ NAME("q"), BPK_DTYPE_QFLOAT, SHAPE(9), .size = 9, .order = 2,
			  .dtype_text = "Q", .dtype_text_size = 1 },
			{ NAME("a8"), BPK_DTYPE_F64, SHAPE(1), .size = 8, .order = 7 },
			{ NAME("odd"), BPK_DTYPE_F64, SHAPE(1), .size = 7, .order = 1 },
			{ NAME("c4"), BPK_DTYPE_F32, SHAPE(1), .size = 4, .order = 3 },
			{ NAME("d4"), BPK_DTYPE_F32, SHAPE(1), .size = 4, .order = 3 },
			{ NAME("z8"), BPK_DTYPE_U64, SHAPE(0), .size = 0, .order = 3 },
		  },
		  .json = "{\"__metadata__\":{"
			  "\"bpk.dtype:odd\":\"F64\",\"bpk.shape:odd\":\"[1]\",\"bpk.dtype:q\":\"Q\"},"
			  "\"z8\":{\"dtype\":\"U64\",\"shape\":[0],\"data_offsets\":[0,0]},"
			  "\"a8\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
			  "\"c4\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
			  "\"d4\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
			  "\"b2\":{\"dtype\":\"U16\",\"shape\":[3],\"data_offsets\":[16,22]},"
			  "\"odd\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[22,29]},"
			  "\"q\":{\"dtype\":\"U8\",\"shape\":[9],\"data_offsets\":[29,38]},"
			  "\"b1\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[38,41]}}",
		  .order = { 7, 3, 5, 6, 1, 4, 2, 0 },
		  .offs = { 0, 0, 8, 12, 16, 22, 29, 38 },
		  .data_size = 41 },
		{ .label = "a size that is not shape x dtype",
		  .tensors = { { NAME("w"), BPK_DTYPE_U8, SHAPE(2, 3), .size = 7 } },
		  .json = "{\"__metadata__\":{\"bpk.shape:w\":\"[2,3]\"},"
			  "\"w\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[0,7]}}",
		  .data_size = 7 },
		{ .label = "the same of rank 0",
		  .tensors = { { NAME("w"), BPK_DTYPE_I8, .size = 0 } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:w\":\"I8\",\"bpk.shape:w\":\"[]\"},"
			  "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}" },
		{ .label = "a shape beyond 64 bits, but for a zero",
		  .tensors = { { NAME("w"), BPK_DTYPE_F32, SHAPE(UINT64_MAX, 0), .size = 0 } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:w\":\"F32\",\"bpk.shape:w\":"
			  "\"[18446744073709551615,0]\"},"
			  "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}" },
		{ .label = "a scheme",
		  .tensors = { { NAME("q\""), BPK_DTYPE_QFLOAT, SHAPE(4, 4), .size = 20,
				 .dtype_text = "{\"QFloat\":{}}", .dtype_text_size = 13 } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:q\\\"\":\"{\\\"QFloat\\\":{}}\","
			  "\"bpk.shape:q\\\"\":\"[4,4]\"},"
			  "\"q\\\"\":{\"dtype\":\"U8\",\"shape\":[20],\"data_offsets\":[0,20]}}",
		  .data_size = 20 },
		{ .label = "no scheme at hand",
		  .tensors = { { NAME("q"), BPK_DTYPE_QFLOAT, SHAPE(2), .size = 2 } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:q\":\"QFloat\"},"
			  "\"q\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}",
		  .data_size = 2 },
		{ .label = "the user has a key that begins as ours",
		  .tensors = { { NAME("w"), BPK_DTYPE_FLEX32, SHAPE(1), .size = 4 } },
		  .pairs = { { TEXT("bpk.dtype:w"), TEXT("mine") } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:w\":\"mine\",\"bpk1.dtype:w\":\"Flex32\"},"
			  "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
		  .data_size = 4 },
		{ .label = "and as the next ones",
		  .tensors = { { NAME("w"), BPK_DTYPE_FLEX32, SHAPE(1), .size = 4 } },
		  .pairs = { { TEXT("bpk2."), TEXT("") }, { TEXT("bpk."), TEXT("") },
			     { TEXT("bpk1.x"), TEXT("") }, { TEXT("bpk4.x"), TEXT("") } },
		  .json = "{\"__metadata__\":{\"bpk2.\":\"\",\"bpk.\":\"\",\"bpk1.x\":\"\","
			  "\"bpk4.x\":\"\",\"bpk3.dtype:w\":\"Flex32\"},"
			  "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
		  .data_size = 4 },
		{ .label = "keys that only look like it",
		  .tensors = { { NAME("w"), BPK_DTYPE_FLEX32, SHAPE(1), .size = 4 } },
		  .pairs = { { TEXT("bpk"), TEXT("") }, { TEXT("bpk0.x"), TEXT("") },
			     { TEXT("bpk:x"), TEXT("") },
			     { TEXT("bpk99999999999999999999."), TEXT("") } },
		  .json = "{\"__metadata__\":{\"bpk\":\"\",\"bpk0.x\":\"\",\"bpk:x\":\"\","
			  "\"bpk99999999999999999999.\":\"\",\"bpk.dtype:w\":\"Flex32\"},"
			  "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
		  .data_size = 4 },
		{ .label = "the name that the format keeps",
		  .tensors = { { NAME("__metadata__"), BPK_DTYPE_BOOL_U8, SHAPE(1), .size = 1 },
			       { NAME("__metadata__3"), BPK_DTYPE_I8, SHAPE(1), .size = 1 },
			       { NAME("__metadata__1"), BPK_DTYPE_I8, SHAPE(1), .size = 1 },
			       { NAME("__metadata__02"), BPK_DTYPE_I8, SHAPE(1), .size = 1 },
			       { NAME("__metadata__2x"), BPK_DTYPE_I8, SHAPE(1), .size = 1 } },
		  .json = "{\"__metadata__\":{\"bpk.dtype:__metadata__2\":\"Bool(U8)\","
			  "\"bpk.name:__metadata__2\":\"__metadata__\"},"
			  "\"__metadata__2\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]},"
			  "\"__metadata__3\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[1,2]},"
			  "\"__metadata__1\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[2,3]},"
			  "\"__metadata__02\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[3,4]},"
			  "\"__metadata__2x\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[4,5]}}",
		  .order = { 0, 1, 2, 3, 4 }, .offs = { 0, 1, 2, 3, 4 }, .data_size = 5 },
		{ .label = "as a key of the user's it is any other",
		  .pairs = { { TEXT("__metadata__"), TEXT("x") } },
		  .json = "{\"__metadata__\":{\"__metadata__\":\"x\"}}" },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pack pack = { .lent = NULL };
		struct bpk_safetensors *layout = NULL;
		struct bpk_error error = { .message = "" };

		memcpy(pack.tensors, rows[i].tensors, sizeof(pack.tensors));
		memcpy(pack.pairs, rows[i].pairs, sizeof(pack.pairs));
		cr_assert_eq(render(&pack, &layout, &error), 0, "%s: %s", rows[i].label,
			     error.message);
		expect_json(rows[i].label, layout, rows[i].json);
		cr_expect_eq(layout->data_size, rows[i].data_size, "%s", rows[i].label);
		for (size_t k = 0; k < layout->count; k++) {
			cr_expect_eq(layout->order[k], rows[i].order[k], "%s: %zu",
				     rows[i].label, k);
			cr_expect_eq(layout->offs[k], rows[i].offs[k], "%s: %zu",
				     rows[i].label, k);
		}
		cr_expect(layout->count == TENSORS_MAX ||
			  !rows[i].tensors[layout->count].name);
		bpk_safetensors_free(layout);
	}
}

Test(safetensors, dtypes)
{
	static const struct {
		enum bpk_dtype dtype;
		const char *shown;
		const char *told; /* in __metadata__, NULL when it is not */
	} rows[] = {
		{ BPK_DTYPE_F64, "F64", NULL },
		{ BPK_DTYPE_F32, "F32", NULL },
		{ BPK_DTYPE_FLEX32, "F32", "Flex32" },
		{ BPK_DTYPE_F16, "F16", NULL },
		{ BPK_DTYPE_BF16, "BF16", NULL },
		{ BPK_DTYPE_I64, "I64", NULL },
		{ BPK_DTYPE_I32, "I32", NULL },
		{ BPK_DTYPE_I16, "I16", NULL },
		{ BPK_DTYPE_I8, "I8", NULL },
		{ BPK_DTYPE_U64, "U64", NULL },
		{ BPK_DTYPE_U32, "U32", NULL },
		{ BPK_DTYPE_U16, "U16", NULL },
		{ BPK_DTYPE_U8, "U8", NULL },
		{ BPK_DTYPE_BOOL_NATIVE, "BOOL", NULL },
		{ BPK_DTYPE_BOOL_U8, "BOOL", "Bool(U8)" },
		{ BPK_DTYPE_BOOL_U32, "U32", "Bool(U32)" },
		{ BPK_DTYPE_BOOL_LEGACY, "BOOL", "Bool" },
	};

	cr_assert_eq(sizeof(rows) / sizeof(*rows), BPK_DTYPE_COUNT - 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *label = bpk_dtype_name(rows[i].dtype);
		uint64_t size = 30 * bpk_dtype_element_size(rows[i].dtype);
		struct pack pack = { .tensors = { { TEXT("w"), rows[i].dtype,
						    .shape = dims, .rank = 3,
						    .size = size } } };
		struct bpk_safetensors *layout = NULL;
		char json[256], told[64] = "";

		if (rows[i].told)
			snprintf(told, sizeof(told),
				 "\"__metadata__\":{\"bpk.dtype:w\":\"%s\"},",
				 rows[i].told);
		snprintf(json, sizeof(json),
			 "{%s\"w\":{\"dtype\":\"%s\",\"shape\":[2,3,5],"
			 "\"data_offsets\":[0,%llu]}}",
			 told, rows[i].shown, (unsigned long long)size);
		cr_assert_eq(render(&pack, &layout, NULL), 0, "%s", label);
		expect_json(label, layout, json);
		bpk_safetensors_free(layout);
	}
}

Test(safetensors, sizes)
{
	static const struct {
		const char *label;
		uint64_t first, second;
		int err;
	} rows[] = {
		{ "the most", INT64_MAX / 8 - 1, 1, 0 },
		{ "one more", INT64_MAX / 8, 1, -EOVERFLOW },
		{ "one is too much", INT64_MAX / 8 + 1, 0, -EOVERFLOW },
		{ "64 bits", UINT64_MAX, 0, -EOVERFLOW },
		{ "beyond 64 bits", INT64_MAX / 8, UINT64_MAX, -EOVERFLOW },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pack pack = {
			.tensors = { { TEXT("a"), BPK_DTYPE_U8, .shape = &rows[i].first,
				       .rank = 1, .size = rows[i].first },
				     { TEXT("b"), BPK_DTYPE_U8, .shape = &rows[i].second,
				       .rank = 1, .size = rows[i].second, .order = 1 } },
		};
		struct bpk_safetensors *layout = NULL;
		struct bpk_error error = { .code = BPK_OK };

		cr_expect_eq(render(&pack, &layout, &error), rows[i].err, "%s",
			     rows[i].label);
		if (rows[i].err) {
			cr_expect_null(layout);
			cr_expect_eq(error.code, BPK_ERR_OVERFLOW);
			cr_expect_str_eq(error.message,
					 "the tensors have more bytes than a file can");
		} else {
			cr_expect_eq(layout->data_size, INT64_MAX / 8);
			cr_expect_eq(layout->offs[1], rows[i].first);
		}
		bpk_safetensors_free(layout);
	}
}

/* The JSON may have 100 000 000 bytes: a value that fills it, and one byte more. */
Test(safetensors, as_much_json_as_there_may_be)
{
	const size_t rest = strlen("{\"__metadata__\":{\"k\":\"\"}}");
	const size_t most = 100000000 - rest;
	static const struct {
		const char *label;
		int more;
		char byte;
		int err;
	} rows[] = {
		{ "all of it", 0, 'x', 0 },
		{ "one less, and a space", -1, 'x', 0 },
		{ "one more", 1, 'x', -EFBIG },
		{ "escapes that are too much, though the text is not", 0, '\n', -EFBIG },
	};
	char *value = malloc(most + 1);

	cr_assert_not_null(value);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct pack pack = { .lent = NULL };
		struct bpk_safetensors *layout = NULL;
		struct bpk_error error = { .code = BPK_OK };

		memset(value, rows[i].byte, most + 1);
		pack.pairs[0] = (struct bpk_safetensors_pair) {
			TEXT("k"), value, (size_t)((ptrdiff_t)most + rows[i].more)
		};
		cr_expect_eq(render(&pack, &layout, &error), rows[i].err, "%s",
			     rows[i].label);
		if (rows[i].err) {
			cr_expect_null(layout);
			cr_expect_eq(error.code, BPK_ERR_LIMIT);
			cr_expect_str_eq(error.message,
					 "names and shapes need more than 100000000 "
					 "bytes of JSON, "
					 "which is all that a safetensors file may have");
		} else {
			cr_assert_eq(layout->header_size, 100000008, "%s", rows[i].label);
			cr_expect_eq(layout->header[layout->header_size - 1],
				     rows[i].more ? ' ' : '}');
		}
		bpk_safetensors_free(layout);
	}
	free(value);
}

/* A failing callback ends it, whichever call it is, with its own code. */
Test(safetensors, callbacks_that_fail)
{
	const struct pack pack = {
		.tensors = { { TEXT("__metadata__"), BPK_DTYPE_F32, .shape = dims,
			       .rank = 3, .size = 120 },
			     { TEXT("b"), BPK_DTYPE_U8, .shape = dims, .rank = 1,
			       .size = 2 } },
		.pairs = { { TEXT("k"), TEXT("v") }, { TEXT("l"), TEXT("w") } },
	};
	struct bpk_safetensors *layout = NULL;
	struct pack good = pack;
	struct bpk_error error;

	cr_assert_eq(render(&good, &layout, NULL), 0);
	bpk_safetensors_free(layout);
	layout = NULL;
	for (size_t i = 1; i <= good.tensor_calls; i++) {
		struct pack bad = pack;

		bad.fail_tensor = i;
		cr_expect_eq(render(&bad, &layout, &error), -ESTALE, "call %zu", i);
		cr_expect_null(layout);
		cr_expect_eq(error.code, BPK_ERR_PROVIDER);
		cr_expect_eq(bad.tensor_calls, i);
	}
	for (size_t i = 1; i <= good.pair_calls; i++) {
		struct pack bad = pack;

		bad.fail_pair = i;
		cr_expect_eq(render(&bad, &layout, &error), -EKEYEXPIRED, "call %zu", i);
		cr_expect_null(layout);
		cr_expect_eq(error.code, BPK_ERR_PROVIDER);
		cr_expect_eq(bad.pair_calls, i);
	}
	bpk_safetensors_free(NULL);
}
