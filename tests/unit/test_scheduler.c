/*
 * test_scheduler.c - scalars as C's types, what is out of their range, and records in
 * records; on Burn's own pack (golden 12) and on others.
 */
#include "bpk_record.h"
#include "bytes.h"
#include "fail_alloc.h"
#include "leak.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

TestSuite(scheduler, .fini = leak_check);

static struct bpk_record *new_record(void)
{
	struct bpk_record *record = NULL;

	cr_assert_eq(bpk_record_new(&record), 0);
	return record;
}

Test(scheduler, golden)
{
	struct bpk_error error = { .message = "" };
	struct bpk_record *record;
	uint8_t bytes[4096];
	void *again;
	uint64_t again_size, u;
	size_t size;
	int64_t i;
	double f;
	bool b;
	FILE *file = fopen(GOLDEN "/12_scheduler.bpk", "rb");

	cr_assert_not_null(file);
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	cr_assert_eq(bpk_record_from_bytes(bytes, size, NULL, &record, &error), 0, "%s",
		     error.message);
	cr_expect_eq(bpk_record_scalar_count(record), 6);
	cr_expect(bpk_scheduler_get_u64(record, "current_iter", &u, NULL) == 0 &&
		  u == 1234);
	cr_expect(bpk_scheduler_get_i64(record, "current_iter", &i, NULL) == 0 &&
		  i == 1234);
	cr_expect(bpk_scheduler_get_i64(record, "last_epoch", &i, NULL) == 0 && i == -1);
	cr_expect(bpk_scheduler_get_f64(record, "last_epoch", &f, NULL) == 0 &&
		  f == -1.0);
	cr_expect(bpk_scheduler_get_f64(record, "min_lr", &f, NULL) == 0 && f == 1e-6);
	cr_expect(bpk_scheduler_get_bool(record, "warm", &b, NULL) == 0 && !b);
	cr_expect_eq(bpk_scheduler_get_u64(record, "last_epoch", &u, &error), -ERANGE);
	cr_expect_str_eq(error.message,
			 "scalar \"last_epoch\" is -1, which is out of the range of u64");
	cr_expect_eq(bpk_scheduler_get_u64(record, "gamma", &u, &error), -EINVAL);
	cr_expect_str_eq(error.message, "scalar \"gamma\" is a Float, which is no u64");
	cr_expect_eq(bpk_scheduler_get_u64(record, "gama", &u, &error), -ENOENT);
	cr_expect_eq(error.code, BPK_ERR_RECORD);
	cr_expect_str_eq(error.message, "there is no scalar \"gama\" in the record");
	cr_expect_eq(u, 1234, "untouched on failure");
	/* And back, byte for byte. */
	cr_assert_eq(bpk_record_into_bytes(record, &again, &again_size, NULL), 0);
	cr_assert_eq(again_size, size);
	cr_expect_arr_eq(again, bytes, size);
	free(again);
	bpk_record_free(record);
}

enum { OK = 0, TYPE = -EINVAL, RANGE = -ERANGE };

Test(scheduler, conversions)
{
#define INT(value)                                                                       \
	{                                                                                \
		.type = BPK_SCALAR_INT, .i = (value)                                     \
	}
#define UINT(value)                                                                      \
	{                                                                                \
		.type = BPK_SCALAR_UINT, .u = (value)                                    \
	}
#define FLOAT(bits)                                                                      \
	{                                                                                \
		.type = BPK_SCALAR_FLOAT, .float_bits = (bits)                           \
	}
#define BOOL(value)                                                                      \
	{                                                                                \
		.type = BPK_SCALAR_BOOL, .b = (value)                                    \
	}
	static const struct {
		const char *label;
		struct bpk_scalar_value value;
		int i64, u64, i32, u32, f64, boolean;
	} rows[] = {
		/* clang-format off */
		{ "0", INT(0), OK, OK, OK, OK, OK, TYPE },
		{ "-1", INT(-1), OK, RANGE, OK, RANGE, OK, TYPE },
		{ "i32 max", INT(INT32_MAX), OK, OK, OK, OK, OK, TYPE },
		{ "i32 max + 1", INT(INT32_MAX + INT64_C(1)), OK, OK, RANGE, OK, OK, TYPE },
		{ "i32 min", INT(INT32_MIN), OK, RANGE, OK, RANGE, OK, TYPE },
		{ "i32 min - 1", INT(INT32_MIN - INT64_C(1)), OK, RANGE, RANGE, RANGE, OK, TYPE },
		{ "i64 min", INT(INT64_MIN), OK, RANGE, RANGE, RANGE, OK, TYPE },
		{ "u32 max", UINT(UINT32_MAX), OK, OK, RANGE, OK, OK, TYPE },
		{ "u32 max + 1", UINT(UINT64_C(1) << 32), OK, OK, RANGE, RANGE, OK, TYPE },
		{ "i64 max", UINT(INT64_MAX), OK, OK, RANGE, RANGE, OK, TYPE },
		{ "i64 max + 1", UINT(UINT64_C(1) << 63), RANGE, OK, RANGE, RANGE, OK, TYPE },
		{ "u64 max", UINT(UINT64_MAX), RANGE, OK, RANGE, RANGE, OK, TYPE },
		{ "0.0", FLOAT(0), TYPE, TYPE, TYPE, TYPE, OK, TYPE },
		{ "1.0", FLOAT(UINT64_C(0x3ff0000000000000)), TYPE, TYPE, TYPE, TYPE, OK, TYPE },
		{ "NaN", FLOAT(UINT64_C(0x7ff8000000000000)), TYPE, TYPE, TYPE, TYPE, OK, TYPE },
		{ "true", BOOL(true), TYPE, TYPE, TYPE, TYPE, TYPE, OK },
		{ "a type of no kind", { .type = (enum bpk_scalar_type)9 },
		  TYPE, TYPE, TYPE, TYPE, TYPE, TYPE },
		/* clang-format on */
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
		struct bpk_record *record = new_record();
		const char *label = rows[k].label;
		int64_t i64;
		uint64_t u64;
		int32_t i32;
		uint32_t u32;
		double f64;
		bool b;

		cr_assert_eq(bpk_record_set_scalar(record, "s", 1, rows[k].value, NULL),
			     0);
		cr_expect_eq(bpk_scheduler_get_i64(record, "s", &i64, NULL), rows[k].i64,
			     "%s", label);
		cr_expect_eq(bpk_scheduler_get_u64(record, "s", &u64, NULL), rows[k].u64,
			     "%s", label);
		cr_expect_eq(bpk_scheduler_get_i32(record, "s", &i32, NULL), rows[k].i32,
			     "%s", label);
		cr_expect_eq(bpk_scheduler_get_u32(record, "s", &u32, NULL), rows[k].u32,
			     "%s", label);
		cr_expect_eq(bpk_scheduler_get_f64(record, "s", &f64, NULL), rows[k].f64,
			     "%s", label);
		cr_expect_eq(bpk_scheduler_get_bool(record, "s", &b, NULL),
			     rows[k].boolean, "%s", label);
		if (rows[k].i64 == OK && rows[k].value.type == BPK_SCALAR_INT)
			cr_expect(i64 == rows[k].value.i && f64 == (double)i64, "%s",
				  label);
		if (rows[k].i32 == OK)
			cr_expect_eq(i32, i64, "%s", label);
		if (rows[k].u32 == OK)
			cr_expect_eq(u32, u64, "%s", label);
		bpk_record_free(record);
	}
}

/* What is set is what is got, after a way through a pack, too. */
Test(scheduler, round_trip)
{
	struct bpk_record *record = new_record(), *loaded;
	uint64_t size, u;
	double values[] = { 0.1, -0.0, DBL_MAX, 5e-324, INFINITY, NAN }, f;
	void *bytes;
	int64_t i;
	bool b;

	cr_assert_eq(bpk_scheduler_set_i64(record, "i", INT64_MIN, NULL), 0);
	cr_assert_eq(bpk_scheduler_set_u64(record, "u", UINT64_MAX, NULL), 0);
	cr_assert_eq(bpk_scheduler_set_bool(record, "b", false, NULL), 0);
	cr_assert_eq(bpk_scheduler_set_bool(record, "b", true, NULL), 0);
	for (char k = 0; k < 6; k++)
		cr_assert_eq(bpk_scheduler_set_f64(record,
						   (char[]) { (char)('0' + k), 0 },
						   values[(int)k], NULL),
			     0);
	cr_assert_eq(bpk_record_into_bytes(record, &bytes, &size, NULL), 0);
	cr_assert_eq(bpk_record_from_bytes(bytes, (size_t)size, NULL, &loaded, NULL), 0);
	cr_expect(bpk_scheduler_get_i64(loaded, "i", &i, NULL) == 0 && i == INT64_MIN);
	cr_expect(bpk_scheduler_get_u64(loaded, "u", &u, NULL) == 0 && u == UINT64_MAX);
	cr_expect(bpk_scheduler_get_bool(loaded, "b", &b, NULL) == 0 && b);
	for (char k = 0; k < 6; k++) {
		cr_assert_eq(bpk_scheduler_get_f64(
				     loaded, (char[]) { (char)('0' + k), 0 }, &f, NULL),
			     0);
		cr_expect_arr_eq(&f, &values[(int)k], sizeof(f), "%d", k);
	}
	cr_expect_eq(bpk_scheduler_set_u64(record, "\xff", 0, NULL), -EINVAL);
	bpk_record_free(record);
	bpk_record_free(loaded);
	free(bytes);
}

/* A composed scheduler of two, of which one is composed again. */
Test(scheduler, nesting)
{
	struct bpk_record *outer = new_record(), *middle = new_record(),
			  *inner = new_record();
	struct bpk_record *got, *deeper, *none;
	struct bpk_error error = { .message = "" };
	uint64_t u;

	bpk_scheduler_set_u64(inner, "step", 7, NULL);
	bpk_scheduler_set_u64(middle, "step", 6, NULL);
	bpk_scheduler_set_u64(outer, "step", 5, NULL);
	bpk_scheduler_set_u64(outer, "1x.step", 99, NULL); /* no child of "1" */
	cr_assert_eq(bpk_scheduler_with_record(middle, "0", inner, NULL), 0);
	cr_assert_eq(bpk_scheduler_with_record(outer, "1", middle, NULL), 0);
	cr_expect(bpk_scheduler_get_u64(outer, "1.0.step", &u, NULL) == 0 && u == 7);
	cr_assert_eq(bpk_scheduler_record(outer, "1", &got, NULL), 0);
	cr_expect_eq(bpk_record_scalar_count(got), 2);
	cr_expect(bpk_scheduler_get_u64(got, "step", &u, NULL) == 0 && u == 6);
	cr_assert_eq(bpk_scheduler_record(got, "0", &deeper, NULL), 0);
	cr_expect(bpk_scheduler_get_u64(deeper, "step", &u, NULL) == 0 && u == 7);
	cr_assert_eq(bpk_scheduler_record(outer, "2", &none, NULL), 0);
	cr_expect_eq(bpk_record_scalar_count(none), 0);
	cr_expect_eq(bpk_scheduler_with_record(outer, "1", outer, &error), -EINVAL);
	cr_expect_str_eq(error.message, "a record cannot be put into itself");
	bpk_record_free(outer);
	bpk_record_free(middle);
	bpk_record_free(inner);
	bpk_record_free(got);
	bpk_record_free(deeper);
	bpk_record_free(none);
}

Test(scheduler, tensors_are_refused)
{
	struct bpk_record *record = new_record(), *child = new_record();
	float value = 1;
	struct bpk_param param = { .dtype = BPK_DTYPE_F32, .data = &value };
	struct bpk_error error;

	cr_assert_eq(bpk_optimizer_add_tensor(child, 1, "m", &param, NULL), 0);
	cr_expect_eq(bpk_scheduler_with_record(record, "0", child, &error), -EINVAL);
	cr_expect_str_eq(error.message, "a scheduler's record with tensors in it");
	bpk_record_free(record);
	bpk_record_free(child);
}

Test(scheduler, no_memory)
{
	bool hit = true;

	for (long n = 0; hit; n++) {
		struct bpk_record *record = new_record(), *child = new_record(),
				  *got = NULL;
		int r;

		bpk_scheduler_set_u64(child, "step", 7, NULL);
		fail_alloc_after(n);
		r = bpk_scheduler_with_record(record, "0", child, NULL);
		if (r >= 0)
			r = bpk_scheduler_record(record, "0", &got, NULL);
		hit = fail_alloc_end();
		cr_expect_eq(r, hit ? -ENOMEM : 0, "%ld", n);
		cr_expect_eq(got != NULL, !hit);
		bpk_record_free(record);
		bpk_record_free(child);
		bpk_record_free(got);
	}
}
