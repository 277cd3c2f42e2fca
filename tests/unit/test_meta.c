/*
 * test_meta.c - the metadata map, as tables and as refusals.
 */
#include "bytes.h"
#include "leak.h"
#include "meta.h"

#include <errno.h>
#include <stdio.h>

TestSuite(meta, .fini = leak_check);

#define TENSORS "\147tensors"
#define METADATA "\150metadata"
#define SCALARS "\147scalars"
#define DTYPE "\145dtype\143F32"
#define SHAPE "\145shape\201\2"
#define OFFSETS "\154data_offsets\202\0\10"
#define DESCRIPTOR "\243" DTYPE SHAPE OFFSETS

struct parsed {
	struct bpk_meta meta;
	uint8_t *metadata;
	struct bpk_error error;
	int err;
};

static struct parsed parse(const void *bytes, size_t size)
{
	struct parsed parsed = { .metadata = bytes_copy(bytes, size) };
	struct bpk_limits limits;

	bpk_limits_init(&limits);
	limits.tensor_count = 3;
	limits.nesting = 6;
	parsed.err = bpk_meta_parse(&parsed.meta, parsed.metadata, size, &limits,
				    &parsed.error);
	return parsed;
}

static void parsed_done(struct parsed *parsed)
{
	bpk_meta_done(&parsed->meta);
	free(parsed->metadata);
}

/* The names of a table in one line, "a,b". */
static const char *names(const void *rows, size_t count, size_t row_size)
{
	static char text[256];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const struct bpk_entry *row =
			(const void *)((const char *)rows + i * row_size);

		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.*s",
				       i ? "," : "", (int)row->name_size, row->name);
	}
	return text;
}

#define NAMES(parsed, table, count)                                                      \
	names((parsed).meta.table, (parsed).meta.count, sizeof(*(parsed).meta.table))

Test(meta, accepts)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		const char *tensors, *scalars, *entries;
		uint32_t extra_count;
		const char *extra;
		size_t extra_size;
		size_t trailer;
	} rows[] = {
		{ "nothing", BYTES("\241" TENSORS "\240"), "", "", "", 0, NULL, 0, 0 },
		{ "one tensor", BYTES("\241" TENSORS "\241\141w" DESCRIPTOR), "w", "", "",
		  0, NULL, 0, 0 },
		{ "any order",
		  BYTES("\243" SCALARS "\241\141s\241\143Int\1" METADATA
			"\241\141k\141v" TENSORS "\240"),
		  "", "s", "k", 0, NULL, 0, 0 },
		{ "sorted",
		  BYTES("\242" TENSORS "\240" METADATA
			"\245\141b\140\141a\140\142ab\140\140\140\141Z\140"),
		  "", "", ",Z,a,ab,b", 0, NULL, 0, 0 },
		{ "the last of equal names",
		  BYTES("\242" TENSORS "\240" METADATA
			"\243\141b\1411\141a\140\141b\1412"),
		  "", "", "a,b", 0, NULL, 0, 0 },
		{ "names in chunks",
		  BYTES("\242" TENSORS "\241\177\141a\142.b\377" DESCRIPTOR SCALARS
			"\241\177\377\241\144Bool\365"),
		  "a.b", "", "", 0, NULL, 0, 0 },
		{ "keys in chunks",
		  BYTES("\241\177\143ten\144sors\377\241\141w\243\177\145dtype\377\143F3"
			"2" SHAPE OFFSETS),
		  "w", "", "", 0, NULL, 0, 0 },
		{ "unknown keys in one place", BYTES("\243\141a\1\141b\2" TENSORS "\240"),
		  "", "", "", 2, BYTES("\141a\1\141b\2"), 0 },
		{ "unknown keys all over",
		  BYTES("\245\141a\1" TENSORS "\240\141b\177\141x\377" METADATA
			"\240\141a\3"),
		  "", "", "", 3, BYTES("\141a\1\141b\177\141x\377\141a\3"), 0 },
		{ "an unknown key in chunks stays so",
		  BYTES("\242" TENSORS "\240\177\141a\141b\377\1"), "", "", "", 1,
		  BYTES("\177\141a\141b\377\1"), 0 },
		{ "indefinite", BYTES("\277" TENSORS "\277\377" SCALARS "\277\377\377"),
		  "", "", "", 0, NULL, 0, 0 },
		{ "tagged", BYTES("\331\331\367\241\301" TENSORS "\302\240"), "", "", "",
		  0, NULL, 0, 0 },
		{ "zeros behind", BYTES("\241" TENSORS "\240\0\0"), "", "", "", 0, NULL,
		  0, 2 },
		{ "a map behind", BYTES("\241" TENSORS "\240\240"), "", "", "", 0, NULL,
		  0, 1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parsed p = parse(rows[i].bytes, rows[i].size);

		cr_expect_eq(p.err, 0, "%s: %s", rows[i].label, p.error.message);
		cr_expect_str_eq(NAMES(p, tensors, tensor_count), rows[i].tensors, "%s",
				 rows[i].label);
		cr_expect_str_eq(NAMES(p, scalars, scalar_count), rows[i].scalars, "%s",
				 rows[i].label);
		cr_expect_str_eq(NAMES(p, entries, entry_count), rows[i].entries, "%s",
				 rows[i].label);
		cr_expect_eq(p.meta.extra_count, rows[i].extra_count, "%s",
			     rows[i].label);
		cr_expect_eq(p.meta.extra_size, rows[i].extra_size, "%s: %u",
			     rows[i].label, p.meta.extra_size);
		cr_expect_eq(!p.meta.extra, !rows[i].extra, "%s", rows[i].label);
		if (p.meta.extra && p.meta.extra_size == rows[i].extra_size)
			cr_expect_arr_eq(p.meta.extra, rows[i].extra, rows[i].extra_size,
					 "%s", rows[i].label);
		cr_expect_eq(p.meta.value_size + rows[i].trailer, rows[i].size, "%s",
			     rows[i].label);
		parsed_done(&p);
	}
}

Test(meta, descriptors)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		uint32_t rank;
		bool has_param_id;
		uint64_t param_id;
		const char *extra;
		size_t extra_size;
	} rows[] = {
#define TENSOR(literal) BYTES("\241" TENSORS "\241\141w" literal)
		{ "plain", TENSOR(DESCRIPTOR), 1, false, 0, NULL, 0 },
		{ "param_id",
		  TENSOR("\244" DTYPE SHAPE OFFSETS
			 "\150param_id\33\377\377\377\377\377\377\377\377"),
		  1, true, UINT64_MAX, NULL, 0 },
		{ "param_id null", TENSOR("\244" DTYPE SHAPE OFFSETS "\150param_id\366"),
		  1, false, 0, NULL, 0 },
		{ "param_id undefined",
		  TENSOR("\244" DTYPE SHAPE OFFSETS "\150param_id\370\27"), 1, false, 0,
		  NULL, 0 },
		{ "param_id tagged",
		  TENSOR("\244" DTYPE SHAPE OFFSETS "\150param_id\301\5"), 1, true, 5,
		  NULL, 0 },
		{ "rank 0", TENSOR("\243" DTYPE "\145shape\200" OFFSETS), 0, false, 0,
		  NULL, 0 },
		{ "indefinite, tagged shape",
		  TENSOR("\243" DTYPE "\145shape\301\237\2\301\30\2\377" OFFSETS), 2,
		  false, 0, NULL, 0 },
		{ "indefinite all over",
		  TENSOR("\277" DTYPE SHAPE "\154data_offsets\237\0\10\377\377"), 1,
		  false, 0, NULL, 0 },
		{ "unknown keys between",
		  TENSOR("\247\141a\1" DTYPE "\141b\2" SHAPE OFFSETS
			 "\141c\177\141x\377\141d\200"),
		  1, false, 0, BYTES("\141a\1\141b\2\141c\177\141x\377\141d\200") },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parsed p = parse(rows[i].bytes, rows[i].size);
		const struct bpk_tensor *t = p.meta.tensors;
		struct bpk_shape_walk walk = { 0 };
		uint64_t dim = 0;

		cr_assert_eq(p.err, 0, "%s: %s", rows[i].label, p.error.message);
		cr_expect_eq(t->rank, rows[i].rank, "%s", rows[i].label);
		for (uint32_t d = 0; d < rows[i].rank; d++)
			cr_expect(bpk_meta_next_dim(t, &walk, &dim) && dim == 2,
				  "%s: %llu", rows[i].label, (unsigned long long)dim);
		cr_expect_not(bpk_meta_next_dim(t, &walk, &dim), "%s", rows[i].label);
		cr_expect_eq(t->has_param_id, rows[i].has_param_id, "%s", rows[i].label);
		cr_expect_eq(t->param_id, rows[i].param_id, "%s", rows[i].label);
		cr_expect(t->start == 0 && t->end == 8, "%s", rows[i].label);
		cr_expect_eq(t->extra_size, rows[i].extra_size, "%s", rows[i].label);
		if (t->extra_size == rows[i].extra_size && t->extra)
			cr_expect_arr_eq(t->extra, rows[i].extra, t->extra_size, "%s",
					 rows[i].label);
		parsed_done(&p);
	}
}

Test(meta, scalars)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		enum bpk_scalar_type type;
		uint64_t bits;
	} rows[] = {
#define SCALAR(literal) BYTES("\242" TENSORS "\240" SCALARS "\241\141s" literal)
		{ "Int", SCALAR("\241\143Int\44"), BPK_SCALAR_INT, (uint64_t)-5 },
		{ "least Int", SCALAR("\241\143Int\73\177\377\377\377\377\377\377\377"),
		  BPK_SCALAR_INT, (uint64_t)1 << 63 },
		{ "most Int", SCALAR("\241\143Int\33\177\377\377\377\377\377\377\377"),
		  BPK_SCALAR_INT, INT64_MAX },
		{ "UInt", SCALAR("\241\144UInt\33\377\377\377\377\377\377\377\377"),
		  BPK_SCALAR_UINT, UINT64_MAX },
		{ "Float", SCALAR("\241\145Float\371\200\0"), BPK_SCALAR_FLOAT,
		  (uint64_t)1 << 63 },
		{ "Float, tagged", SCALAR("\301\241\302\145Float\303\371\76\0"),
		  BPK_SCALAR_FLOAT, 0x3ff8000000000000 },
		{ "true", SCALAR("\241\144Bool\365"), BPK_SCALAR_BOOL, 1 },
		{ "false", SCALAR("\241\144Bool\364"), BPK_SCALAR_BOOL, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parsed p = parse(rows[i].bytes, rows[i].size);
		struct bpk_scalar_value value;

		cr_assert_eq(p.err, 0, "%s: %s", rows[i].label, p.error.message);
		value = p.meta.scalars[0].value;
		cr_expect_eq(value.type, rows[i].type, "%s", rows[i].label);
		cr_expect_eq(value.type == BPK_SCALAR_BOOL ? value.b : value.u,
			     rows[i].bits, "%s: %llx", rows[i].label,
			     (unsigned long long)value.u);
		parsed_done(&p);
	}
}

Test(meta, refuses)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		uint64_t offset; /* in the pack: 10 is the first byte of the metadata */
		enum bpk_code code;
		const char *message;
	} rows[] = {
		{ "empty", BYTES(""), 10, BPK_ERR_MALFORMED,
		  "the metadata ends inside a value: the size in the header or a count "
		  "is wrong, "
		  "or bytes are missing" },
		{ "no map", BYTES("\200"), 10, BPK_ERR_MALFORMED,
		  "the metadata must be a map, here it is an array" },
		{ "no tensors", BYTES("\241" METADATA "\240"), 10, BPK_ERR_MALFORMED,
		  "the metadata has no \"tensors\"" },
		{ "tensors null", BYTES("\241" TENSORS "\366"), 19, BPK_ERR_MALFORMED,
		  "\"tensors\" must be a map, here it is null" },
		{ "scalars null", BYTES("\242" TENSORS "\240" SCALARS "\366"), 28,
		  BPK_ERR_MALFORMED, "\"scalars\" must be a map, here it is null" },
		{ "tensors twice", BYTES("\242" TENSORS "\240" TENSORS "\240"), 20,
		  BPK_ERR_MALFORMED, "the key \"tensors\" is there twice" },
		{ "key is a number", BYTES("\242" TENSORS "\240\1\2"), 20,
		  BPK_ERR_MALFORMED,
		  "a key of the metadata must be text, here it is an unsigned integer" },
		{ "text behind", BYTES("\241" TENSORS "\240\141x\1"), 20,
		  BPK_ERR_MALFORMED,
		  "the metadata goes on behind its last entry: the count of a map is too "
		  "small" },
		{ "shape missing", TENSOR("\242" DTYPE OFFSETS), 22, BPK_ERR_MALFORMED,
		  "tensor \"w\": the descriptor has no \"shape\"" },
		{ "a dimension too negative", TENSOR("\242" DTYPE "\145shape\201\40"), 40,
		  BPK_ERR_MALFORMED,
		  "tensor \"w\": a dimension of the shape must be an unsigned integer, "
		  "here it is "
		  "a negative integer" },
		{ "three offsets", TENSOR("\241\154data_offsets\203\0\10\11"), 36,
		  BPK_ERR_MALFORMED,
		  "tensor \"w\": data_offsets must be two numbers, start and end" },
		{ "param_id a tagged null", TENSOR("\241\150param_id\301\366"), 32,
		  BPK_ERR_MALFORMED,
		  "tensor \"w\": param_id must be an unsigned integer, here it is null" },
		{ "a name that needs quotes",
		  BYTES("\241" TENSORS "\241\144\"\n\303\251\1"), 25, BPK_ERR_MALFORMED,
		  "tensor \"\\\"\\x0a\\xc3\\xa9\": the descriptor must be a map, here it "
		  "is an "
		  "unsigned integer" },
		{ "dtype twice", TENSOR("\242" DTYPE DTYPE), 33, BPK_ERR_MALFORMED,
		  "tensor \"w\": the key \"dtype\" is there twice" },
		{ "value no text", BYTES("\242" TENSORS "\240" METADATA "\241\141k\1"),
		  32, BPK_ERR_MALFORMED,
		  "metadata key \"k\": the value must be text, here it is an unsigned "
		  "integer" },
		{ "an Int too large", SCALAR("\241\143Int\33\200\0\0\0\0\0\0\0"), 36,
		  BPK_ERR_MALFORMED, "scalar \"s\": an Int is out of the range of i64" },
		{ "a Float that is none", SCALAR("\241\145Float\1"), 38,
		  BPK_ERR_MALFORMED,
		  "scalar \"s\": a Float must be a float, here it is an unsigned "
		  "integer" },
		{ "a type with more to it", SCALAR("\241\144Ints\1"), 32,
		  BPK_ERR_MALFORMED,
		  "scalar \"s\": the type is \"Ints\", not Int, UInt, Float or Bool" },
		{ "too many tensors",
		  BYTES("\241" TENSORS "\244\141a" DESCRIPTOR "\141b" DESCRIPTOR
			"\141c" DESCRIPTOR "\141d" DESCRIPTOR),
		  10, BPK_ERR_LIMIT, "the pack holds 4 tensors, the limit is 3" },
		{ "too deep", BYTES("\242" TENSORS "\240\141x\201\201\201\201\201\201\1"),
		  27, BPK_ERR_LIMIT,
		  "more than 6 containers and tags inside each other" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct parsed p = parse(rows[i].bytes, rows[i].size);

		cr_expect_eq(p.err, rows[i].code == BPK_ERR_LIMIT ? -EFBIG : -EBADMSG,
			     "%s: %d", rows[i].label, p.err);
		cr_expect_eq(p.error.code, rows[i].code, "%s", rows[i].label);
		cr_expect_eq(p.error.offset, rows[i].offset, "%s: at %llu", rows[i].label,
			     (unsigned long long)p.error.offset);
		cr_expect_str_eq(p.error.message, rows[i].message, "%s: %s",
				 rows[i].label, p.error.message);
		parsed_done(&p);
	}
}

Test(meta, equal_names_do_not_count_twice)
{
	static const char bytes[] =
		"\241" TENSORS "\244\141a" DESCRIPTOR "\141a" DESCRIPTOR
		"\141a" DESCRIPTOR "\141b" DESCRIPTOR;
	struct parsed p = parse(bytes, sizeof(bytes) - 1);

	cr_expect_eq(p.err, 0, "%s", p.error.message);
	cr_expect_eq(p.meta.tensor_count, 2);
	cr_expect_eq(p.meta.tensors[0].entry.order, 2);
	parsed_done(&p);
}
