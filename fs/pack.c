/*
 * pack.c - see pack.h.
 */
#include "pack.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The kernel maps some pages around the one that is asked for. */
#define AROUND_BYTES (UINT64_C(64) << 10)
#define MAPPED_BYTES_MAX (UINT64_C(8) << 20)

static int take(struct bpk_reader *reader, struct pack **ret_pack,
		struct bpk_error *error)
{
	struct pack *pack = calloc(1, sizeof(*pack));
	int r = -ENOMEM;

	if (pack) {
		pack->refs = 1;
		pack->reader = reader;
		r = fstat(bpk_reader_fd(reader), &pack->stat) < 0 ? -errno : 0;
	}
	if (r) {
		free(pack);
		bpk_reader_close(reader);
		return bpk_fail(error, r, r == -ENOMEM ? BPK_ERR_MEMORY : BPK_ERR_IO,
				BPK_NO_OFFSET, "%s", strerror(-r));
	}
	*ret_pack = pack;
	return 0;
}

int pack_open(const char *path, struct pack **ret_pack, struct bpk_error *error)
{
	struct bpk_reader *reader;
	int r = bpk_reader_open(path, NULL, &reader, error);

	return r ? r : take(reader, ret_pack, error);
}

int pack_open_fd(int fd, struct pack **ret_pack, struct bpk_error *error)
{
	struct bpk_reader *reader;
	int r = bpk_reader_open_fd(fd, NULL, &reader, error);

	return r ? r : take(reader, ret_pack, error);
}

struct pack *pack_ref(struct pack *pack)
{
	__atomic_fetch_add(&pack->refs, 1, __ATOMIC_RELAXED);
	return pack;
}

void pack_unref(struct pack *pack)
{
	if (!pack || __atomic_fetch_sub(&pack->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	bpk_reader_close(pack->reader);
	free(pack);
}

void pack_handed(struct pack *pack, size_t count, uint64_t size)
{
	uint64_t more = size + count * AROUND_BYTES;

	if (__atomic_add_fetch(&pack->handed, more, __ATOMIC_RELAXED) < MAPPED_BYTES_MAX)
		return;
	__atomic_store_n(&pack->handed, 0, __ATOMIC_RELAXED);
	/* Whoever reads meanwhile maps its pages anew. */
	madvise((void *)(uintptr_t)bpk_reader_data(pack->reader),
		(size_t)bpk_reader_file_size(pack->reader), MADV_DONTNEED);
}

bool pack_is(const struct pack *pack, const struct stat *now)
{
	const struct stat *then = &pack->stat;

	return now->st_dev == then->st_dev && now->st_ino == then->st_ino &&
	       now->st_size == then->st_size &&
	       now->st_mtim.tv_sec == then->st_mtim.tv_sec &&
	       now->st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}
