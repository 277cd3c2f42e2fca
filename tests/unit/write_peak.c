/*
 * write_peak.c - one tensor of host memory at a time: a pack of 64 tensors of 32 MiB,
 * each allocated by its provider, is written to a file with a peak below 48 MiB.
 *
 * Exit status 77 (skipped) with a sanitizer, which has memory of its own, and where
 * the 2 GiB do not fit.
 */
#include "bpk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define TENSORS 64
#define TENSOR_SIZE (UINT64_C(32) << 20)
#define PEAK_KIB (48L << 10)
#define SKIPPED 77

static int provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	void *data = malloc(TENSOR_SIZE);

	(void)context;
	if (!data)
		return -1;
	memset(data, 0x5a, TENSOR_SIZE);
	*ret_data = data;
	*ret_size = TENSOR_SIZE;
	return 0;
}

static void release(void *context, const void *data, uint64_t size)
{
	(void)context;
	(void)size;
	free((void *)(uintptr_t)data);
}

static int add_all(struct bpk_writer *writer, struct bpk_error *error)
{
	static const uint64_t shape[] = { TENSOR_SIZE };
	const struct bpk_provider provider = { provide, release, NULL };
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < TENSORS; i++) {
		char name[16];
		struct bpk_tensor_desc desc = {
			.name = name,
			.dtype = BPK_DTYPE_U8,
			.shape = shape,
			.rank = 1,
		};

		desc.name_size = (size_t)snprintf(name, sizeof(name), "t%u", i);
		r = bpk_writer_add_deferred(writer, &desc, TENSOR_SIZE, &provider, error);
	}
	return r;
}

static int write_pack(const char *path)
{
	struct bpk_error error = { .message = "" };
	struct bpk_writer *writer = NULL;
	int r = bpk_writer_new(NULL, &writer);

	if (r == 0)
		r = add_all(writer, &error);
	if (r == 0)
		r = bpk_writer_write_file_in_place(writer, path, NULL, &error);
	if (r < 0)
		fprintf(stderr, "%s\n", error.message);
	bpk_writer_free(writer);
	return r;
}

/* A new file where there is room, preferably not on a disk; what a file takes of
 * tmpfs is not this process's memory. */
static int make_file(char path[64])
{
	static const char *const folders[] = { "/dev/shm", "/var/tmp" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		struct statvfs fs;
		int fd;

		if (statvfs(folders[i], &fs) < 0 ||
		    fs.f_bavail * fs.f_frsize < (TENSORS + 8) * TENSOR_SIZE)
			continue;
		snprintf(path, 64, "%s/bpk-write-peak-XXXXXX", folders[i]);
		fd = mkstemp(path);
		if (fd >= 0) {
			close(fd);
			return 0;
		}
	}
	return -1;
}

int main(void)
{
	char path[64];
	struct rusage usage;
	int r;

	if (getenv("BPK_TEST_SANITIZED") || make_file(path) < 0)
		return SKIPPED;
	r = write_pack(path);
	unlink(path);
	getrusage(RUSAGE_SELF, &usage);
	printf("peak %ld KiB, allowed %ld\n", usage.ru_maxrss, PEAK_KIB);
	return r < 0 || usage.ru_maxrss >= PEAK_KIB;
}
