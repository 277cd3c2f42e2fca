/*
 * test_optimizer.c - optimizer records: Burn's own (golden 11), made ones, and what
 * somebody may have put into one.
 */
#include "bpk_record.h"
#include "bytes.h"
#include "fail_alloc.h"
#include "leak.h"

#include <errno.h>
#include <stdio.h>

TestSuite(optimizer, .fini = leak_check);

struct skipped {
	char text[1024];
};

static void note(void *context, const char *name, size_t name_size, const char *message)
{
	struct skipped *skipped = context;
	size_t at = strlen(skipped->text);

	snprintf(skipped->text + at, sizeof(skipped->text) - at, "%.*s: %s\n",
		 (int)name_size, name, message);
}

#define FIRST UINT64_C(1152921504606846977)
#define SECOND UINT64_C(7401328710934151)

static struct bpk_optimizer *sort_out(const struct bpk_record *record,
				      const char *required, struct skipped *skipped)
{
	struct bpk_error error = { .message = "" };
	struct bpk_optimizer *optimizer = NULL;

	cr_assert_eq(bpk_optimizer_open(record, &required, required != NULL, note,
					skipped, &optimizer, &error),
		     0, "%s", error.message);
	return optimizer;
}

Test(optimizer, golden)
{
	static const struct {
		uint64_t id, rank;
		size_t scalars;
		uint64_t size;
	} rows[] = {
		{ SECOND, 2, 3, 48 },
		{ FIRST, 1, 2, 16 },
		{ UINT64_MAX, 4, 2, 480 },
	};
	struct skipped skipped = { .text = "" };
	struct bpk_error error = { .message = "" };
	const struct bpk_optimizer_scalar *scalar;
	struct bpk_optimizer *optimizer;
	struct bpk_record *record;
	double lr;

	cr_assert_eq(bpk_record_load(GOLDEN "/11_optimizer", NULL, &record, &error), 0,
		     "%s", error.message);
	optimizer = sort_out(record, "moment_2", &skipped);
	cr_expect_str_eq(skipped.text, "");
	cr_assert_eq(bpk_optimizer_param_count(optimizer), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct bpk_optimizer_param *param =
			bpk_optimizer_param(optimizer, i);

		cr_expect_eq(param->param_id, rows[i].id);
		cr_expect_eq(param->rank, rows[i].rank);
		cr_expect_null(param->path);
		cr_assert_eq(param->tensor_count, 2);
		cr_expect_arr_eq(param->tensors[0].field, "moment_1", 8);
		cr_expect_eq(param->tensors[1].tensor.size, rows[i].size);
		cr_expect_eq(param->scalar_count, rows[i].scalars);
		cr_expect_eq(bpk_optimizer_find(optimizer, rows[i].id), param);
	}
	cr_expect_null(bpk_optimizer_param(optimizer, 3));
	cr_expect_null(bpk_optimizer_find(optimizer, 12));
	scalar = bpk_optimizer_find_scalar(bpk_optimizer_find(optimizer, SECOND), "lr");
	cr_assert_not_null(scalar);
	cr_expect(bpk_scalar_to_f64(scalar->value, &lr) == 0 && lr == 0.001);
	cr_expect_null(bpk_optimizer_find_scalar(bpk_optimizer_find(optimizer, SECOND),
						 "__rank"));
	bpk_optimizer_close(optimizer);
	/* A field that none of them has. */
	optimizer = sort_out(record, "lr", &skipped);
	cr_expect_eq(bpk_optimizer_param_count(optimizer), 1);
	cr_expect_str_eq(skipped.text,
			 "1152921504606846977: its state is incomplete: no \"lr\"\n"
			 "18446744073709551615: its state is incomplete: no \"lr\"\n");
	bpk_optimizer_close(optimizer);
	bpk_record_free(record);
}

/* Byte for byte through a record that was loaded. */
Test(optimizer, golden_again)
{
	FILE *file = fopen(GOLDEN "/11_optimizer.bpk", "rb");
	struct bpk_record *record;
	uint8_t bytes[16384];
	uint64_t again_size;
	size_t size;
	void *again;

	cr_assert_not_null(file);
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	cr_assert_eq(bpk_record_from_bytes(bytes, size, NULL, &record, NULL), 0);
	cr_assert_eq(bpk_record_into_bytes(record, &again, &again_size, NULL), 0);
	cr_assert_eq(again_size, size);
	cr_expect_arr_eq(again, bytes, size);
	free(again);
	bpk_record_free(record);
}

static const uint64_t shape[] = { 2, 2 };
static float moments[] = { 1, 2, 3, 4 };
static const struct bpk_param moment = {
	.dtype = BPK_DTYPE_F32,
	.shape = shape,
	.rank = 2,
	.data = moments,
};

/* The state of one parameter as Adam has it. */
static int add_adam(struct bpk_record *record, uint64_t id, const char *path)
{
	int r = bpk_optimizer_add_param(record, id, 2, path, NULL);

	if (r >= 0)
		r = bpk_optimizer_add_tensor(record, id, "momentum.moment_1", &moment,
					     NULL);
	if (r >= 0)
		r = bpk_optimizer_add_tensor(record, id, "momentum.moment_2", &moment,
					     NULL);
	if (r >= 0)
		r = bpk_optimizer_set_scalar(record, id, "momentum.time",
					     bpk_scalar_from_i64(10), NULL);
	return r;
}

Test(optimizer, made)
{
	struct skipped skipped = { .text = "" };
	struct bpk_record *record, *loaded;
	struct bpk_error error = { .message = "" };
	const struct bpk_optimizer_param *param;
	struct bpk_record_tensor tensor;
	struct bpk_optimizer *optimizer;
	double values[4] = { 0 };
	struct bpk_param target = {
		.dtype = BPK_DTYPE_F64,
		.shape = shape,
		.rank = 2,
		.data = values,
	};
	uint64_t size;
	void *bytes;

	cr_assert_eq(bpk_record_new(&record), 0);
	cr_assert_eq(add_adam(record, 10, "encoder.weight"), 0);
	cr_assert_eq(add_adam(record, 9, NULL), 0);
	cr_assert_eq(bpk_record_into_bytes(record, &bytes, &size, NULL), 0);
	cr_assert_eq(bpk_record_from_bytes(bytes, (size_t)size, NULL, &loaded, NULL), 0);
	cr_assert(bpk_record_find_tensor(loaded, "10.momentum.moment_1", 20, &tensor));
	cr_expect(tensor.has_param_id && tensor.param_id == 10);
	optimizer = sort_out(loaded, "momentum.time", &skipped);
	cr_expect_str_eq(skipped.text, "");
	cr_assert_eq(bpk_optimizer_param_count(optimizer), 2);
	param = bpk_optimizer_param(optimizer, 0);
	cr_expect(param->param_id == 9 && !param->path && param->rank == 2);
	param = bpk_optimizer_param(optimizer, 1);
	cr_expect_eq(param->param_id, 10);
	cr_assert_eq(param->path_size, strlen("encoder.weight"));
	cr_expect_arr_eq(param->path, "encoder.weight", param->path_size);
	cr_assert_eq(bpk_optimizer_read(param, "momentum.moment_1",
					BPK_DTYPE_CAST_TO_MODULE, &target, &error),
		     0, "%s", error.message);
	cr_expect(values[0] == 1 && values[3] == 4 && target.param_id == 10);
	cr_expect_eq(bpk_optimizer_read(param, "moment_1", BPK_DTYPE_CAST_TO_MODULE,
					&target, &error),
		     -ENOENT);
	cr_expect_str_eq(error.message, "parameter 10 has no tensor \"moment_1\"");
	target.rank = 1;
	cr_expect_eq(bpk_optimizer_read(param, "momentum.moment_1",
					BPK_DTYPE_CAST_TO_MODULE, &target, &error),
		     -EINVAL);
	cr_expect_str_eq(error.message,
			 "parameter 10, \"momentum.moment_1\": shape [2,2] in "
			 "the record, [2] in the module");
	bpk_optimizer_close(optimizer);

	cr_expect_eq(bpk_optimizer_set_scalar(record, 1, "__rank", bpk_scalar_from_u64(1),
					      NULL),
		     -EINVAL);
	cr_expect_eq(
		bpk_optimizer_set_scalar(record, 1, "", bpk_scalar_from_u64(1), NULL),
		-EINVAL);
	cr_expect_eq(bpk_optimizer_add_tensor(record, 1, "", &moment, NULL), -EINVAL);
	cr_expect_eq(bpk_optimizer_add_param(record, 1, 65, NULL, NULL), -EINVAL);
	cr_expect_eq(bpk_optimizer_add_param(record, 1, 1, "\xff", NULL), -EINVAL);
	cr_expect_eq(
		bpk_optimizer_add_tensor(record, 9, "momentum.moment_1", &moment, NULL),
		-EEXIST);
	bpk_record_free(record);
	bpk_record_free(loaded);
	free(bytes);
}

/* Names and values that somebody else thought of: one scalar each, or one tensor. */
Test(optimizer, hostile)
{
#define INT(value)                                                                       \
	{                                                                                \
		.type = BPK_SCALAR_INT, .i = (value)                                     \
	}
#define UINT(value)                                                                      \
	{                                                                                \
		.type = BPK_SCALAR_UINT, .u = (value)                                    \
	}
#define STRAY "belongs to no parameter: not \"{param_id}.{field}\"\n"
#define NO_RANK ": its __rank is not the rank of a tensor\n"
	static const struct {
		const char *name;
		struct bpk_scalar_value value;
		size_t params;
		const char *skipped;
	} scalars[] = {
		{ "7.__rank", UINT(64), 1, "" },
		{ "7.__rank", INT(0), 1, "" },
		{ "7.__rank", UINT(65), 0, "7" NO_RANK },
		{ "7.__rank", UINT(UINT64_MAX), 0, "7" NO_RANK },
		{ "7.__rank", INT(-1), 0, "7" NO_RANK },
		{ "7.__rank", INT(INT64_MIN), 0, "7" NO_RANK },
		{ "7.__rank", { .type = BPK_SCALAR_FLOAT }, 0, "7" NO_RANK },
		{ "7.__rank", { .type = BPK_SCALAR_BOOL, .b = true }, 0, "7" NO_RANK },
		{ "7.time", INT(1), 0,
		  "7: neither __rank nor a tensor tells its rank\n" },
		{ "0.__rank", INT(1), 1, "" },
		{ "18446744073709551615.__rank", INT(1), 1, "" },
		{ "18446744073709551616.__rank", INT(1), 0,
		  "18446744073709551616.__rank: " STRAY },
		{ "99999999999999999999999.__rank", INT(1), 0,
		  "99999999999999999999999.__rank: " STRAY },
		{ "07.__rank", INT(1), 0, "07.__rank: " STRAY },
		{ "00.__rank", INT(1), 0, "00.__rank: " STRAY },
		{ "-7.__rank", INT(1), 0, "-7.__rank: " STRAY },
		{ "+7.__rank", INT(1), 0, "+7.__rank: " STRAY },
		{ " 7.__rank", INT(1), 0, " 7.__rank: " STRAY },
		{ "7 .__rank", INT(1), 0, "7 .__rank: " STRAY },
		{ "7__rank", INT(1), 0, "7__rank: " STRAY },
		{ "7.", INT(1), 0, "7.: " STRAY },
		{ "7", INT(1), 0, "7: " STRAY },
		{ ".__rank", INT(1), 0, ".__rank: " STRAY },
		{ "", INT(1), 0, ": " STRAY },
		{ "encoder.weight", INT(1), 0, "encoder.weight: " STRAY },
		{ "7.__rank.x", INT(1), 0,
		  "7: neither __rank nor a tensor tells its rank\n" },
	};

	for (size_t i = 0; i < sizeof(scalars) / sizeof(*scalars); i++) {
		struct skipped skipped = { .text = "" };
		struct bpk_optimizer *optimizer;
		struct bpk_record *record;

		cr_assert_eq(bpk_record_new(&record), 0);
		cr_assert_eq(bpk_record_set_scalar(record, scalars[i].name,
						   strlen(scalars[i].name),
						   scalars[i].value, NULL),
			     0);
		optimizer = sort_out(record, NULL, &skipped);
		cr_expect_eq(bpk_optimizer_param_count(optimizer), scalars[i].params,
			     "%s", scalars[i].name);
		cr_expect_str_eq(skipped.text, scalars[i].skipped, "%s: %s",
				 scalars[i].name, skipped.text);
		bpk_optimizer_close(optimizer);
		bpk_record_free(record);
	}
}

/* A rank comes from a tensor when nothing else tells it; one that contradicts its name
 * makes the whole state doubtful, and leaves the others alone. */
Test(optimizer, tensors_alone)
{
	static const struct {
		const char *name;
		bool has_id;
		uint64_t id;
	} rows[] = {
		{ "7.a", false, 0 }, { "7.b", true, 7 }, { "8.b", true, 7 },
		{ "8.a", true, 8 },  { "x.a", true, 7 },
	};
	struct skipped skipped = { .text = "" };
	struct bpk_optimizer *optimizer;
	struct bpk_record *record;
	struct bpk_writer *writer;
	uint64_t size;
	void *bytes;

	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_tensor_desc desc = {
			.name = rows[i].name,
			.name_size = 3,
			.dtype = BPK_DTYPE_F32,
			.shape = shape,
			.rank = 2,
			.has_param_id = rows[i].has_id,
			.param_id = rows[i].id,
		};

		cr_assert_eq(bpk_writer_add_bytes(writer, &desc, moments, 16, NULL), 0);
	}
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &bytes, &size, NULL), 0);
	bpk_writer_free(writer);
	cr_assert_eq(bpk_record_from_bytes(bytes, (size_t)size, NULL, &record, NULL), 0);
	optimizer = sort_out(record, NULL, &skipped);
	cr_assert_eq(bpk_optimizer_param_count(optimizer), 1);
	cr_expect_eq(bpk_optimizer_param(optimizer, 0)->param_id, 7);
	cr_expect_eq(bpk_optimizer_param(optimizer, 0)->rank, 2);
	cr_expect_str_eq(skipped.text, "x.a: " STRAY "8: its \"b\" carries another id\n");
	bpk_optimizer_close(optimizer);
	/* Nobody has to listen. */
	cr_assert_eq(bpk_optimizer_open(record, NULL, 0, NULL, NULL, &optimizer, NULL),
		     0);
	bpk_optimizer_close(optimizer);
	bpk_record_free(record);
	free(bytes);
}

Test(optimizer, nothing)
{
	struct skipped skipped = { .text = "" };
	struct bpk_optimizer *optimizer;
	struct bpk_record *record;

	cr_assert_eq(bpk_record_new(&record), 0);
	optimizer = sort_out(record, NULL, &skipped);
	cr_expect_eq(bpk_optimizer_param_count(optimizer), 0);
	cr_expect_null(bpk_optimizer_find(optimizer, 1));
	bpk_optimizer_close(optimizer);
	bpk_optimizer_close(NULL);
	bpk_record_free(record);
}

Test(optimizer, no_memory)
{
	bool hit = true;

	for (long n = 0; hit; n++) {
		struct bpk_optimizer *optimizer = NULL;
		struct bpk_record *record;
		int r;

		cr_assert_eq(bpk_record_new(&record), 0);
		fail_alloc_after(n);
		r = add_adam(record, 10, "a.w");
		if (r >= 0)
			r = bpk_optimizer_open(record, NULL, 0, NULL, NULL, &optimizer,
					       NULL);
		hit = fail_alloc_end();
		cr_expect_eq(r, hit ? -ENOMEM : 0, "%ld", n);
		cr_expect_eq(optimizer != NULL, !hit);
		bpk_optimizer_close(optimizer);
		bpk_record_free(record);
	}
}
