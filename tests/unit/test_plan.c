/*
 * test_plan.c - what a writer accepts, where it puts things, what it refuses.
 */
#include "bpk.h"
#include "bytes.h"
#include "leak.h"
#include "plan.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

TestSuite(plan, .fini = leak_check);

static const uint64_t two_by_two[] = { 2, 2 };

static struct bpk_plan new_plan(void)
{
	struct bpk_plan plan = { .done = false };

	bpk_limits_init(&plan.limits);
	return plan;
}

static struct bpk_tensor_desc u8_desc(const char *name, const uint64_t *size)
{
	return (struct bpk_tensor_desc) {
		.name = name,
		.name_size = strlen(name),
		.dtype = BPK_DTYPE_U8,
		.shape = size,
		.rank = 1,
	};
}

static void expect_error(const char *label, int r, const struct bpk_error *error,
			 int wanted, enum bpk_code code, const char *message)
{
	cr_expect_eq(r, wanted, "%s: %d (%s)", label, r, error->message);
	cr_expect_eq(error->code, code, "%s: code %d", label, error->code);
	cr_expect_eq(error->offset, BPK_NO_OFFSET, "%s", label);
	cr_expect_str_eq(error->message, message, "%s: %s", label, error->message);
}

Test(plan, refuses_tensors)
{
	static const uint64_t large[] = { UINT64_C(1) << 32, UINT64_C(1) << 31 };
	static const uint64_t giants[] = { UINT64_C(10) << 30 | 1 };
	static const uint64_t one[] = { 1 };
	static const struct {
		const char *label;
		struct bpk_tensor_desc desc;
		uint64_t size;
		int r;
		enum bpk_code code;
		const char *message;
	} rows[] = {
#define NAME(text) .name = text, .name_size = sizeof(text) - 1
#define CBOR(text) .dtype_cbor = text, .dtype_cbor_size = sizeof(text) - 1
#define EXTRA(text, count)                                                               \
	.extra = text, .extra_size = sizeof(text) - 1, .extra_count = count
		{ "a name that is no UTF-8",
		  { NAME("\xff") },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "a tensor's name: not UTF-8" },
		{ "no name but a size",
		  { .name_size = 1 },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "a tensor's name: not UTF-8" },
		{ "no such dtype",
		  { NAME("t"), .dtype = (enum bpk_dtype)18 },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": there is no such dtype" },
		{ "a rank without a shape",
		  { NAME("t"), .rank = 1 },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": a rank without a shape" },
		{ "QFloat without a scheme",
		  { NAME("t"), .dtype = BPK_DTYPE_QFLOAT },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": QFloat needs the item of its scheme" },
		{ "another dtype in the item",
		  { NAME("t"), CBOR("\x63"
				    "F32") },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": the dtype item says F32, the description F64" },
		{ "two dtype items",
		  { NAME("t"), CBOR("\x63"
				    "F64\0") },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": bytes follow the dtype item" },
		{ "a dtype item cut short",
		  { NAME("t"), CBOR("\x63"
				    "F6") },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": the dtype item is refused: the metadata ends inside a "
		  "value: the size in the header or a count is wrong, or bytes are "
		  "missing" },
		{ "an extra key in use",
		  { NAME("t"), EXTRA("\x65shape\0", 1) },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": the extra key \"shape\" has its own place" },
		{ "the same in chunks",
		  { NAME("t"), EXTRA("\x7f\x62sh\x63"
				     "ape\xff\0",
				     1) },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": the extra key \"shape\" has its own place" },
		{ "fewer extra pairs than counted",
		  { NAME("t"), EXTRA("\x61"
				     "a\0",
				     2) },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": the extra pairs are refused: the metadata ends inside a "
		  "value: the size in the header or a count is wrong, or bytes are "
		  "missing" },
		{ "more extra pairs than counted",
		  { NAME("t"), EXTRA("\x61"
				     "a\0\x61"
				     "b\0",
				     1) },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": bytes follow the extra pairs" },
		{ "an extra size without bytes",
		  { NAME("t"), .extra_size = 1 },
		  8,
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "tensor \"t\": extra pairs have a size but no bytes" },
		{ "a byte short",
		  { NAME("t"), .shape = two_by_two, .rank = 2 },
		  31,
		  -EINVAL,
		  BPK_ERR_SIZE_MISMATCH,
		  "tensor \"t\": shape [2,2] of F64 is 32 bytes, 31 are given" },
		{ "rank 0 is one element",
		  { NAME("t") },
		  0,
		  -EINVAL,
		  BPK_ERR_SIZE_MISMATCH,
		  "tensor \"t\": shape [] of F64 is 8 bytes, 0 are given" },
		{ "a shape beyond 64 bits",
		  { NAME("t"), .shape = large, .rank = 2 },
		  0,
		  -EOVERFLOW,
		  BPK_ERR_OVERFLOW,
		  "tensor \"t\": shape [4294967296,2147483648] of F64 is more bytes than "
		  "64 "
		  "bits count" },
		{ "over the limit of a tensor",
		  { NAME("t"), .dtype = BPK_DTYPE_U8, .shape = giants, .rank = 1 },
		  (UINT64_C(10) << 30) + 1,
		  -EFBIG,
		  BPK_ERR_LIMIT,
		  "tensor \"t\": 10737418241 bytes, the limit is 10737418240" },
		{ "a name that is there",
		  { NAME("old\n"), .dtype = BPK_DTYPE_U8, .shape = one, .rank = 1 },
		  1,
		  -EEXIST,
		  BPK_ERR_DUPLICATE,
		  "tensor \"old\\x0a\" is already there" },
	};
	struct bpk_plan plan = new_plan();
	struct bpk_tensor_desc old = u8_desc("old\n", one);

	cr_assert_eq(bpk_plan_add_tensor(&plan, &old, 1, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		int r = bpk_plan_add_tensor(&plan, &rows[i].desc, rows[i].size, &error);

		expect_error(rows[i].label, r, &error, rows[i].r, rows[i].code,
			     rows[i].message);
		cr_expect_eq(plan.tensors.count, 1u, "%s", rows[i].label);
	}
	bpk_plan_done(&plan);
}

Test(plan, refuses_the_rest)
{
	struct bpk_plan plan = new_plan();
	struct bpk_scalar_value value = { .type = BPK_SCALAR_BOOL };
	struct bpk_error error;
	int r;

	r = bpk_plan_set_scalar(&plan, "\x80", 1, value, &error);
	expect_error("scalar name", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "a scalar's name: not UTF-8");
	value.type = (enum bpk_scalar_type)4;
	r = bpk_plan_set_scalar(&plan, "s", 1, value, &error);
	expect_error("scalar type", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "scalar \"s\": there is no such type");
	r = bpk_plan_set_metadata(&plan, "\xc0\x80", 2, "", 0, &error);
	expect_error("key", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "a metadata key: not UTF-8");
	r = bpk_plan_set_metadata(&plan, "k", 1, "\xed\xa0\x80", 3, &error);
	expect_error("value", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "metadata \"k\": the value is not UTF-8");
	r = bpk_plan_set_extra(&plan, "\x67scalars\0", 9, 1, &error);
	expect_error("known key", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "the pack: the extra key \"scalars\" has its own place");
	r = bpk_plan_set_extra(&plan, "\0\0", 2, 1, &error);
	expect_error("key no text", r, &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "the pack: the extra pairs are refused: an extra key must be text, "
		     "here it is an unsigned integer");
	cr_expect_eq(plan.scalars.count, 0u);
	cr_expect_eq(plan.metadata.count, 0u);
	bpk_plan_done(&plan);
}

/* Limits on the whole: tensors, metadata, file; and 64 bits. */
Test(plan, refuses_wholes)
{
	static const uint64_t size[] = { 300 };
	struct bpk_plan plan = new_plan();
	struct bpk_tensor_desc desc = u8_desc("a", size);
	struct bpk_error error;
	int r;

	plan.limits.tensor_count = 2;
	cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, 300, NULL), 0);
	desc.name = "b";
	cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, 300, NULL), 0);
	desc.name = "c";
	r = bpk_plan_add_tensor(&plan, &desc, 300, &error);
	expect_error("count", r, &error, -EFBIG, BPK_ERR_LIMIT,
		     "tensor \"c\" is one more than the limit of 2 tensors");

	cr_assert_eq(bpk_plan_run(&plan, NULL), 0);
	cr_expect_eq(plan.data_off, 256u);
	cr_expect_eq(plan.file_size, 256u + 512 + 300);
	plan.done = false;
	free(plan.front);
	plan.front = NULL;
	plan.limits.file_size = 1067;
	r = bpk_plan_run(&plan, &error);
	expect_error("file", r, &error, -EFBIG, BPK_ERR_LIMIT,
		     "the pack is 1068 bytes, the limit is 1067");
	plan.limits.file_size = 1068;
	plan.limits.metadata_size = 50;
	r = bpk_plan_run(&plan, &error);
	expect_error("metadata", r, &error, -EFBIG, BPK_ERR_LIMIT,
		     "the metadata is 92 bytes, the limit is 50");
	bpk_plan_done(&plan);

	plan = new_plan();
	plan.allow_odd_sizes = true;
	plan.limits.tensor_size = plan.limits.file_size = UINT64_MAX;
	desc.name = "a";
	cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, UINT64_MAX - 100, NULL), 0);
	r = bpk_plan_run(&plan, &error);
	expect_error("file size", r, &error, -EOVERFLOW, BPK_ERR_OVERFLOW,
		     "the pack is larger than 64 bits can count");
	desc.name = "b";
	cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, 1, NULL), 0);
	r = bpk_plan_run(&plan, &error);
	expect_error("end", r, &error, -EOVERFLOW, BPK_ERR_OVERFLOW,
		     "tensor \"b\" ends where 64 bits cannot count");
	bpk_plan_done(&plan);
}

/* Places follow the order of the calls, aligned; an empty one at the end counts. */
Test(plan, places)
{
	static const struct {
		const char *name;
		uint64_t size, start;
	} rows[] = {
		{ "z", 1, 0 },	  { "a", 256, 256 }, { "m", 257, 512 },
		{ "e", 0, 1024 }, { "d", 3, 1024 },  { "last", 0, 1280 },
	};
	struct bpk_plan plan = new_plan();

	for (size_t i = 0; i < 6; i++) {
		struct bpk_tensor_desc desc = u8_desc(rows[i].name, &rows[i].size);

		cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, rows[i].size, NULL), 0);
	}
	cr_assert_eq(bpk_plan_run(&plan, NULL), 0);
	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(bpk_plan_tensor(&plan, i)->start, rows[i].start, "%s",
			     rows[i].name);
	cr_expect_eq(plan.file_size, plan.data_off + 1280);
	bpk_plan_done(&plan);
}

/* Replaced values, names in order, extra last, all in the counts; a dtype item that
 * is not the shortest stays as it is. */
Test(plan, metadata_bytes)
{
	static const uint64_t size[] = { 2 };
	static const char wanted[] = "NRUB\1\0\150\0\0\0"
				     "\xa4\x67tensors\xa1\x61t\xa5\x65"
				     "dtype\x7f\x62U8\xff\x65shape\x81\x02"
				     "\x6c"
				     "data_offsets\x82\0\2\x68param_id\x18\x18\x61x\xf6"
				     "\x68metadata\xa2\x60\x61v\x61k\x60"
				     "\x67scalars\xa1\x61s\xa1\x63Int\x20"
				     "\x65"
				     "extra\x82\1\2";
	struct bpk_plan plan = new_plan();
	struct bpk_tensor_desc desc = u8_desc("t", size);
	struct bpk_scalar_value value = { .type = BPK_SCALAR_UINT, .u = 7 };

	desc.dtype_cbor = "\x7f\x62U8\xff";
	desc.dtype_cbor_size = 5;
	desc.has_param_id = true;
	desc.param_id = 24;
	desc.extra = "\x61x\xf6";
	desc.extra_size = 3;
	desc.extra_count = 1;
	cr_assert_eq(bpk_plan_set_extra(&plan, "\x61y\0", 3, 1, NULL), 0);
	cr_assert_eq(bpk_plan_set_extra(&plan,
					"\x65"
					"extra\x82\1\2",
					9, 1, NULL),
		     0);
	cr_assert_eq(bpk_plan_set_scalar(&plan, "s", 1, value, NULL), 0);
	value = (struct bpk_scalar_value) { .type = BPK_SCALAR_INT, .i = -1 };
	cr_assert_eq(bpk_plan_set_scalar(&plan, "s", 1, value, NULL), 0);
	cr_assert_eq(bpk_plan_set_metadata(&plan, "k", 1, "old", 3, NULL), 0);
	cr_assert_eq(bpk_plan_set_metadata(&plan, NULL, 0, "v", 1, NULL), 0);
	cr_assert_eq(bpk_plan_set_metadata(&plan, "k", 1, NULL, 0, NULL), 0);
	cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, 2, NULL), 0);
	cr_assert_eq(bpk_plan_run(&plan, NULL), 0);
	cr_assert_eq(plan.front_size, sizeof(wanted) - 1, "%zu", plan.front_size);
	cr_expect_arr_eq(plan.front, wanted, sizeof(wanted) - 1);
	/* Extra can be taken away again. */
	cr_assert_eq(bpk_plan_set_extra(&plan, NULL, 0, 0, NULL), 0);
	cr_assert_eq(bpk_plan_run(&plan, NULL), 0);
	cr_expect_eq(plan.front_size, sizeof(wanted) - 1 - 9);
	cr_expect_eq(plan.front[10], 0xa3);
	bpk_plan_done(&plan);
}

Test(plan, odd_sizes_when_allowed)
{
	static const uint64_t large[] = { UINT64_MAX, 3 };
	struct bpk_plan plan = new_plan();
	struct bpk_tensor_desc desc = u8_desc("t", large);

	desc.rank = 2;
	cr_expect_eq(bpk_plan_add_tensor(&plan, &desc, 5, NULL), -EOVERFLOW);
	plan.allow_odd_sizes = true;
	cr_expect_eq(bpk_plan_add_tensor(&plan, &desc, 5, NULL), 0);
	plan.allow_odd_sizes = false;
	cr_expect_eq(bpk_plan_run(&plan, NULL), 0);
	bpk_plan_done(&plan);
}

/* As many as a pack may have, in orders that hurt a naive tree, list or hash. */
Test(plan, many, .timeout = 60)
{
	enum { COUNT = 100000 };
	static const uint64_t one[] = { 1 };

	for (unsigned int order = 0; order < 3; order++) {
		struct bpk_plan plan = new_plan();
		struct timespec start, end;
		char name[200];

		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
		memset(name, 'x', sizeof(name));
		for (unsigned int i = 0; i < COUNT; i++) {
			unsigned int n = order == 0   ? i
					 : order == 1 ? COUNT - i
						      : i * 7919;
			struct bpk_tensor_desc desc = u8_desc("", one);

			snprintf(name + 100, 100, "%08u.weight", n % 100003);
			desc.name = name;
			desc.name_size = 100 + strlen(name + 100);
			cr_assert_eq(bpk_plan_add_tensor(&plan, &desc, 1, NULL), 0);
		}
		cr_assert_eq(bpk_plan_run(&plan, NULL), 0);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		cr_expect_lt(end.tv_sec - start.tv_sec, 10, "order %u is slow", order);
		bpk_plan_done(&plan);
	}
}
