/*
 * test_record.c - records as such: where they go to and come from, and that everything
 * in a pack comes out again, whatever kind it is.
 */
#include "bpk_record.h"
#include "leak.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MALFORMED GOLDEN "/../malformed"

TestSuite(record, .fini = leak_check);

static uint8_t *read_file(const char *folder, const char *name, size_t *ret_size)
{
	char path[512];
	struct stat st;
	uint8_t *bytes;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	cr_assert_eq(stat(path, &st), 0, "%s", path);
	bytes = malloc(st.st_size ? (size_t)st.st_size : 1);
	file = fopen(path, "rb");
	cr_assert(bytes && file);
	cr_assert_eq(fread(bytes, 1, (size_t)st.st_size, file), (size_t)st.st_size);
	fclose(file);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

static void check_golden(const char *name)
{
	struct bpk_error error = { .message = "" };
	struct bpk_record *record = NULL;
	uint64_t again_size = 0;
	size_t size;
	uint8_t *bytes = read_file(GOLDEN, name, &size);
	void *again = NULL;

	cr_assert_eq(bpk_record_from_bytes(bytes, size, NULL, &record, &error), 0,
		     "%s: %s", name, error.message);
	cr_assert_eq(bpk_record_into_bytes(record, &again, &again_size, &error), 0,
		     "%s: %s", name, error.message);
	cr_assert_eq(again_size, size, "%s", name);
	cr_expect(memcmp(again, bytes, size) == 0, "%s", name);
	bpk_record_free(record);
	free(bytes);
	free(again);
}

/* Every pack in @folder; how many there are. */
static int each_pack(const char *folder, void (*check)(const char *name))
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int count = 0;

	cr_assert_not_null(dir, "%s", folder);
	while ((entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');

		if (!dot || strcmp(dot, ".bpk") != 0)
			continue;
		check(entry->d_name);
		count++;
	}
	closedir(dir);
	return count;
}

/* All that Burn's writer made, byte for byte. */
Test(record, golden)
{
	cr_expect_geq(each_pack(GOLDEN, check_golden), 15);
}

/* Whatever opens can be asked for anything; what does not gives no record. */
static void check_malformed(const char *name)
{
	struct bpk_record *record = NULL, *child = NULL;
	struct bpk_optimizer *optimizer = NULL;
	struct bpk_error error = { .message = "" };
	uint64_t again_size = 0;
	size_t size;
	uint8_t *bytes = read_file(MALFORMED, name, &size);
	void *again = NULL;

	if (bpk_record_from_bytes(bytes, size, NULL, &record, &error) < 0) {
		cr_expect(!record && *error.message, "%s", name);
	} else {
		cr_expect_eq(
			bpk_optimizer_open(record, NULL, 0, NULL, NULL, &optimizer, NULL),
			0, "%s", name);
		cr_expect_eq(bpk_scheduler_record(record, "0", &child, NULL), 0, "%s",
			     name);
		if (bpk_record_into_bytes(record, &again, &again_size, &error) < 0)
			cr_expect(!again && *error.message, "%s", name);
	}
	bpk_optimizer_close(optimizer);
	bpk_record_free(child);
	bpk_record_free(record);
	free(again);
	free(bytes);
}

Test(record, malformed)
{
	cr_expect_gt(each_pack(MALFORMED, check_malformed), 20);
}

/* Paths: where a record goes, and from where it comes. */
Test(record, files)
{
	static const struct {
		const char *given, *made;
	} rows[] = {
		{ "model", "model.bpk" },
		{ "model.bin", "model.bin" },
		{ "a.b/model", "a.b/model.bpk" },
		{ ".hidden", ".hidden.bpk" },
		{ "v1.5", "v1.5" },
	};
	char dir[] = "/tmp/bpk-record-XXXXXX", command[64];
	struct bpk_error error = { .message = "" };
	struct bpk_record *record, *loaded;
	struct stat st;

	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	cr_assert_eq(mkdir("a.b", 0777), 0);
	cr_assert_eq(bpk_record_new(&record), 0);
	cr_assert_eq(bpk_scheduler_set_u64(record, "step", 5, NULL), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		cr_expect_eq(bpk_record_save(record, rows[i].given, &error), 0, "%s",
			     error.message);
		cr_expect_eq(stat(rows[i].made, &st), 0, "%s", rows[i].made);
		cr_assert_eq(bpk_record_load(rows[i].given, NULL, &loaded, &error), 0,
			     "%s", error.message);
		cr_expect_eq(bpk_record_scalar_count(loaded), 1);
		/* In the place of what it was loaded from. */
		cr_expect_eq(bpk_record_save(loaded, rows[i].given, &error), 0, "%s",
			     error.message);
		bpk_record_free(loaded);
	}
	/* What is there as given is taken before the one with an extension. */
	cr_assert_eq(rename("v1.5", "model"), 0);
	cr_assert_eq(unlink("model.bpk"), 0);
	cr_assert_eq(mkdir("model.bpk", 0777), 0);
	cr_expect_eq(bpk_record_load("model", NULL, &loaded, &error), 0, "%s",
		     error.message);
	bpk_record_free(loaded);
	cr_expect_eq(bpk_record_load("none", NULL, &loaded, &error), -ENOENT);
	cr_expect(strstr(error.message, "\"none\""), "%s", error.message);
	cr_expect_eq(bpk_record_load("model.bpk", NULL, &loaded, &error), -EISDIR);
	cr_expect_eq(bpk_record_save(record, "a.b/", &error), -EISDIR, "%s",
		     error.message);
	cr_expect_eq(bpk_record_save(record, "nowhere/model", &error), -ENOENT);
	bpk_record_free(record);
	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
}
