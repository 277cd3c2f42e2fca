/*
 * test_checkpoint.c - epochs in a folder: what is kept and removed, and that a save that
 * fails leaves the others, whether it runs here or on a thread.
 */
#include "bpk_record.h"
#include "fail_alloc.h"
#include "leak.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void enter_dir(void)
{
	strcpy(dir, "/tmp/bpk-checkpoint-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void leave_dir(void)
{
	char command[128];

	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
	leak_check();
}

TestSuite(checkpoint, .init = enter_dir, .fini = leave_dir);

/* A record of one scalar. */
static struct bpk_record *state(uint64_t value)
{
	struct bpk_record *record = NULL;

	cr_assert_eq(bpk_record_new(&record), 0);
	cr_assert_eq(bpk_scheduler_set_u64(record, "value", value, NULL), 0);
	return record;
}

static struct bpk_checkpointer *open_at(const char *name,
					const struct bpk_checkpointer_options *options)
{
	struct bpk_checkpointer *checkpointer = NULL;
	struct bpk_error error = { .message = "" };

	cr_assert_eq(bpk_checkpointer_new("runs", name, options, &checkpointer, &error),
		     0, "%s", error.message);
	return checkpointer;
}

static int save(struct bpk_checkpointer *checkpointer, uint64_t epoch,
		const double *metric, struct bpk_error *error)
{
	struct bpk_record *record = state(100 + epoch);
	int r = bpk_checkpointer_save(checkpointer, epoch, record, metric, error);

	bpk_record_free(record);
	return r;
}

/* "1 2 5 " */
static const char *listed(struct bpk_checkpointer *checkpointer)
{
	static char text[256];
	uint64_t *epochs = NULL;
	size_t count = 0, at = 0;

	cr_assert_eq(bpk_checkpointer_list(checkpointer, &epochs, &count, NULL), 0);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%llu ",
				       (unsigned long long)epochs[i]);
	free(epochs);
	return text;
}

static uint64_t restored(struct bpk_checkpointer *checkpointer, uint64_t epoch)
{
	struct bpk_record *record = NULL;
	struct bpk_error error = { .message = "" };
	uint64_t value = 0;

	cr_assert_eq(bpk_checkpointer_restore(checkpointer, epoch, &record, &error), 0,
		     "%s", error.message);
	cr_assert_eq(bpk_scheduler_get_u64(record, "value", &value, &error), 0, "%s",
		     error.message);
	bpk_record_free(record);
	return value;
}

Test(checkpoint, save_list_restore_delete)
{
	struct bpk_checkpointer *model = open_at("model", NULL),
				*other = open_at("model-1", NULL);
	struct bpk_error error = { .message = "" };
	struct bpk_record *record = NULL;
	static const char *const strangers[] = {
		"model-07.bpk",
		"model-.bpk",
		"model-7.bpk~",
		"model-7",
		"model7.bpk",
		"amodel-7.bpk",
		".model-7.bpk.abc.bpk-tmp",
		"model--7.bpk",
		"model-18446744073709551616.bpk",
	};

	cr_expect_str_eq(listed(model), "");
	cr_expect_eq(save(model, 10, NULL, NULL), 0);
	cr_expect_eq(save(model, 9, NULL, NULL), 0);
	cr_expect_eq(save(model, UINT64_MAX, NULL, NULL), 0);
	cr_expect_eq(save(other, 2, NULL, NULL), 0);
	cr_assert_eq(access("runs/model-18446744073709551615.bpk", F_OK), 0);
	cr_assert_eq(chdir("runs"), 0); /* which changes nothing */
	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
		FILE *file = fopen(strangers[i], "w");

		cr_assert_not_null(file);
		fclose(file);
	}
	cr_expect_str_eq(listed(model), "9 10 18446744073709551615 ");
	cr_expect_str_eq(listed(other), "2 ");
	cr_expect_eq(restored(model, 9), 109);
	cr_expect_eq(restored(model, 10), 110);
	/* The same epoch once more replaces it. */
	record = state(7);
	cr_expect_eq(bpk_checkpointer_save(model, 9, record, NULL, NULL), 0);
	bpk_record_free(record);
	cr_expect_eq(restored(model, 9), 7);
	cr_expect_eq(bpk_checkpointer_delete(model, 10, NULL), 0);
	cr_expect_str_eq(listed(model), "9 18446744073709551615 ");
	cr_expect_eq(bpk_checkpointer_delete(model, 10, &error), -ENOENT);
	cr_expect_str_eq(
		error.message,
		"cannot remove epoch 10 of \"model\": No such file or directory");
	cr_expect_eq(bpk_checkpointer_restore(model, 10, &record, &error), -ENOENT);
	cr_expect_eq(bpk_checkpointer_close(model, NULL), 0);
	cr_expect_eq(bpk_checkpointer_close(other, NULL), 0);
	cr_expect_eq(bpk_checkpointer_close(NULL, NULL), 0);
}

Test(checkpoint, names_and_folders)
{
	struct bpk_checkpointer *checkpointer = NULL;
	struct bpk_error error = { .message = "" };

	cr_expect_eq(bpk_checkpointer_new(".", "", NULL, &checkpointer, NULL), -EINVAL);
	cr_expect_eq(bpk_checkpointer_new(".", "a/b", NULL, &checkpointer, NULL),
		     -EINVAL);
	cr_expect_eq(bpk_checkpointer_new(".", "\xff", NULL, &checkpointer, NULL),
		     -EINVAL);
	cr_expect_eq(bpk_checkpointer_new("no/where", "m", NULL, &checkpointer, &error),
		     -ENOENT);
	cr_expect_str_eq(error.message,
			 "cannot use the folder \"no/where\": No such file or directory");
	cr_expect_null(checkpointer);
}

/* Which epochs are left, after saving them in this order with these metrics. */
Test(checkpoint, retention)
{
#define NONE (-1e9)
	static const struct {
		const char *label;
		struct bpk_checkpointer_options options;
		struct {
			uint64_t epoch;
			double metric;
		} saves[6]; /* up to epoch 0 */
		const char *left;
	} rows[] = {
		/* clang-format off */
		{ "all", { 0 }, { { 1, NONE }, { 2, 3 }, { 3, NONE } }, "1 2 3 " },
		{ "the last two", { .keep_last = 2 },
		  { { 1, 0 }, { 2, 3 }, { 3, NONE }, { 4, 9 } }, "3 4 " },
		{ "numbers, not letters", { .keep_last = 2 },
		  { { 9, 0 }, { 10, 3 }, { 11, NONE } }, "10 11 " },
		{ "the two best, and the highest", { .keep_best = 2 },
		  { { 1, 0.5 }, { 2, 0.25 }, { 3, 0.75 }, { 4, 0.3 }, { 5, 0.9 } }, "2 4 5 " },
		{ "highest is best", { .keep_best = 2, .highest_is_best = true },
		  { { 1, 0.5 }, { 2, 0.25 }, { 3, 0.75 }, { 4, 0.3 }, { 5, 0.1 } }, "1 3 5 " },
		{ "both", { .keep_last = 2, .keep_best = 1 },
		  { { 1, 0.5 }, { 2, 0.25 }, { 3, 0.75 }, { 4, 0.3 }, { 5, 0.9 } }, "2 4 5 " },
		{ "no metric is not good", { .keep_best = 1 },
		  { { 1, NONE }, { 2, 1e300 }, { 3, NONE }, { 4, NONE } }, "2 4 " },
		{ "nor is NaN", { .keep_best = 1 },
		  { { 1, (double)NAN }, { 2, 5 }, { 3, (double)NAN }, { 4, 6 } }, "2 4 " },
		{ "infinite is a number", { .keep_best = 1 },
		  { { 1, 5 }, { 2, -(double)INFINITY }, { 3, 1 } }, "2 3 " },
		{ "of equals the newest", { .keep_best = 1 },
		  { { 1, 5 }, { 2, 5 }, { 3, 6 } }, "2 3 " },
		{ "a 17th digit counts", { .keep_best = 1 },
		  { { 1, 0.1 }, { 2, 0.10000000000000002 }, { 3, 1 } }, "1 3 " },
		{ "what was just saved stays", { .keep_last = 1 },
		  { { 5, NONE }, { 2, NONE } }, "2 5 " },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (int async = 0; async < 2; async++) {
			struct bpk_checkpointer_options options = rows[i].options;
			struct bpk_error error = { .message = "" };
			struct bpk_checkpointer *checkpointer;
			char name[32];

			snprintf(name, sizeof(name), "m%zu-%d", i, async);
			options.async = async;
			for (size_t k = 0; k < 6 && rows[i].saves[k].epoch; k++) {
				const double *metric = &rows[i].saves[k].metric;

				/* Another one each time: nothing is remembered but in
				 * files. */
				checkpointer = open_at(name, &options);
				cr_expect_eq(save(checkpointer, rows[i].saves[k].epoch,
						  *metric == NONE ? NULL : metric,
						  &error),
					     0, "%s: %s", rows[i].label, error.message);
				cr_expect_eq(bpk_checkpointer_close(checkpointer, &error),
					     0, "%s: %s", rows[i].label, error.message);
			}
			checkpointer = open_at(name, NULL);
			cr_expect_str_eq(listed(checkpointer), rows[i].left, "%s: %s",
					 rows[i].label, listed(checkpointer));
			bpk_checkpointer_close(checkpointer, NULL);
		}
}

/* A restored record that is saved again does not bring its old metric along. */
Test(checkpoint, metrics_belong_to_epochs)
{
	struct bpk_checkpointer *checkpointer = open_at("m", NULL);
	struct bpk_record *record;
	const char *value;
	double metric = 0.1;
	size_t size = 0;

	cr_assert_eq(save(checkpointer, 1, &metric, NULL), 0);
	cr_assert_eq(bpk_checkpointer_restore(checkpointer, 1, &record, NULL), 0);
	value = bpk_record_find_metadata(record, BPK_METRIC_KEY, strlen(BPK_METRIC_KEY),
					 &size);
	cr_assert_not_null(value);
	cr_assert_eq(size, strlen("0.10000000000000001"));
	cr_expect_arr_eq(value, "0.10000000000000001", size);
	cr_assert_eq(bpk_checkpointer_save(checkpointer, 2, record, NULL, NULL), 0);
	bpk_record_free(record);
	cr_assert_eq(bpk_checkpointer_restore(checkpointer, 2, &record, NULL), 0);
	cr_expect_null(bpk_record_find_metadata(record, BPK_METRIC_KEY,
						strlen(BPK_METRIC_KEY), &size));
	bpk_record_free(record);
	bpk_checkpointer_close(checkpointer, NULL);
}

/* What cannot be judged is left alone, and what cannot be removed is told. */
Test(checkpoint, strange_epochs)
{
	struct bpk_checkpointer_options options = { .keep_best = 1 };
	struct bpk_checkpointer *checkpointer = open_at("m", &options);
	struct bpk_error error = { .message = "" };
	FILE *file = fopen("runs/m-1.bpk", "w");
	double metric = 1;

	fputs("no pack", file);
	fclose(file);
	cr_expect_eq(save(checkpointer, 2, &metric, &error), 0, "%s", error.message);
	cr_expect_eq(save(checkpointer, 3, &metric, &error), 0, "%s", error.message);
	cr_expect_str_eq(listed(checkpointer), "1 3 ");
	bpk_checkpointer_close(checkpointer, NULL);

	options = (struct bpk_checkpointer_options) { .keep_last = 1 };
	checkpointer = open_at("m", &options);
	cr_assert_eq(mkdir("runs/m-2.bpk", 0777), 0);
	cr_expect_eq(save(checkpointer, 4, NULL, &error), -EISDIR);
	cr_expect_str_eq(error.message,
			 "epoch 4 is saved, but epoch 2 cannot be removed: Is a "
			 "directory");
	cr_expect_str_eq(listed(checkpointer), "2 4 ");
	bpk_checkpointer_close(checkpointer, NULL);
}

/* A save that runs out of room in the middle of the file. */
Test(checkpoint, failed_save)
{
	static uint8_t large[1 << 20];
	const uint64_t shape[] = { sizeof(large) };
	struct bpk_param param = {
		.dtype = BPK_DTYPE_U8,
		.shape = shape,
		.rank = 1,
		.data = large,
	};
	struct rlimit unlimited, limit;

	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
	signal(SIGXFSZ, SIG_IGN);
	for (int async = 0; async < 2; async++) {
		struct bpk_checkpointer_options options = { .keep_last = 1,
							    .async = async };
		struct bpk_checkpointer *checkpointer = open_at("m", &options);
		struct bpk_error error = { .message = "" };
		struct bpk_record *record = state(2);
		int r;

		cr_assert_eq(bpk_optimizer_add_tensor(record, 1, "m", &param, NULL), 0);
		cr_assert_eq(save(checkpointer, 1, NULL, NULL), 0);
		cr_assert_eq(bpk_checkpointer_wait(checkpointer, NULL), 0);
		limit = unlimited;
		limit.rlim_cur = 100000;
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		for (uint64_t epoch = 1; epoch <= 2; epoch++) {
			r = bpk_checkpointer_save(checkpointer, epoch, record, NULL,
						  &error);
			if (async) {
				cr_expect_eq(r, 0);
				r = bpk_checkpointer_wait(checkpointer, &error);
			}
			cr_expect_eq(r, -EFBIG, "%d: %s", r, error.message);
			cr_expect_eq(error.code, BPK_ERR_IO);
		}
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
		cr_expect_str_eq(listed(checkpointer), "1 ");
		cr_expect_eq(restored(checkpointer, 1), 101);
		bpk_record_free(record);
		cr_expect_eq(bpk_checkpointer_close(checkpointer, NULL), 0);
	}
	/* Nothing is left beside it: the folder has one file, and rmdir agrees. */
	cr_assert_eq(unlink("runs/m-1.bpk"), 0);
	cr_expect_eq(rmdir("runs"), 0);
}

/* Each call tells the failure of the save before, once, and does nothing itself. */
Test(checkpoint, async_errors)
{
	struct bpk_checkpointer_options options = { .async = true };
	struct bpk_checkpointer *checkpointer = open_at("m", &options);
	struct bpk_record *record = NULL;
	uint64_t *epochs = NULL;
	size_t count = 0;

	cr_assert_eq(mkdir("runs/m-5.bpk", 0777), 0); /* cannot be replaced */
	for (int call = 0; call < 5; call++) {
		struct bpk_error error = { .message = "" };
		int r = 0;

		cr_assert_eq(save(checkpointer, 5, NULL, &error), 0);
		switch (call) {
		case 0:
			r = save(checkpointer, 6, NULL, &error);
			break;
		case 1:
			r = bpk_checkpointer_restore(checkpointer, 5, &record, &error);
			break;
		case 2:
			r = bpk_checkpointer_delete(checkpointer, 5, &error);
			break;
		case 3:
			r = bpk_checkpointer_list(checkpointer, &epochs, &count, &error);
			break;
		default:
			r = bpk_checkpointer_wait(checkpointer, &error);
			break;
		}
		cr_expect_eq(r, -EISDIR, "%d: %d", call, r);
		cr_expect(strstr(error.message, "m-5.bpk"), "%d: %s", call,
			  error.message);
		cr_expect_eq(bpk_checkpointer_wait(checkpointer, &error), 0, "told once");
		cr_expect(!record && !epochs);
	}
	cr_expect_str_eq(listed(checkpointer), "5 ");
	cr_assert_eq(save(checkpointer, 5, NULL, NULL), 0);
	cr_expect_eq(bpk_checkpointer_close(checkpointer, NULL), -EISDIR);
}

/* What is saved is what was there when save() was called. */
Test(checkpoint, async_snapshot)
{
	static uint8_t data[4 << 20];
	const uint64_t shape[] = { sizeof(data) };
	struct bpk_checkpointer_options options = { .async = true };
	struct bpk_checkpointer *checkpointer = open_at("m", &options);
	struct bpk_param param = {
		.dtype = BPK_DTYPE_U8,
		.shape = shape,
		.rank = 1,
		.data = data,
	};
	struct bpk_record *record, *loaded;
	struct bpk_record_tensor tensor;

	cr_assert_eq(bpk_record_new(&record), 0);
	cr_assert_eq(bpk_optimizer_add_tensor(record, 1, "m", &param, NULL), 0);
	for (uint64_t epoch = 1; epoch < 4; epoch++) {
		memset(data, (int)epoch, sizeof(data));
		cr_assert_eq(
			bpk_checkpointer_save(checkpointer, epoch, record, NULL, NULL),
			0);
	}
	memset(data, 0xff, sizeof(data));
	bpk_record_free(record);
	for (uint64_t epoch = 1; epoch < 4; epoch++) {
		cr_assert_eq(bpk_checkpointer_restore(checkpointer, epoch, &loaded, NULL),
			     0);
		cr_assert(bpk_record_find_tensor(loaded, "1.m", 3, &tensor));
		memset(data, (int)epoch, sizeof(data));
		cr_expect(memcmp(tensor.data, data, sizeof(data)) == 0, "%d", (int)epoch);
		bpk_record_free(loaded);
	}
	cr_expect_eq(bpk_checkpointer_close(checkpointer, NULL), 0);
}

/* A save without memory is one that failed; of retention, one that did not go on. */
Test(checkpoint, no_memory)
{
	struct bpk_checkpointer_options options = { .keep_last = 2, .keep_best = 1 };
	struct bpk_record *record = state(2);
	double metric = 1;
	bool hit = true;

	for (long n = 0; hit; n++) {
		struct bpk_checkpointer *checkpointer = NULL;
		struct bpk_error error = { .message = "" };
		int r;

		fail_alloc_after(n);
		r = bpk_checkpointer_new("runs", "m", &options, &checkpointer, &error);
		for (uint64_t epoch = 1; r >= 0 && epoch <= 4; epoch++) {
			metric = (double)epoch;
			r = bpk_checkpointer_save(checkpointer, epoch, record, &metric,
						  &error);
		}
		hit = fail_alloc_end();
		cr_expect_eq(r, hit ? -ENOMEM : 0, "%ld: %d %s", n, r, error.message);
		if (!hit)
			cr_expect_str_eq(listed(checkpointer), "1 3 4 ");
		bpk_checkpointer_close(checkpointer, NULL);
	}
	bpk_record_free(record);
}
