/*
 * pack.c - see pack.h.
 */
#include "pack.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

mode_t new_file_mode(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & ~mask;
}

/* The empty pack as a file without a name; or -errno. */
static int write_empty(void)
{
	struct bpk_writer *writer;
	uint64_t size;
	void *data;
	int r = bpk_writer_new(NULL, &writer), fd;

	if (r)
		return r;
	r = bpk_writer_write_new_buffer(writer, NULL, &data, &size, NULL);
	bpk_writer_free(writer);
	if (r)
		return r;
	fd = memfd_create("bpkfs-empty", MFD_CLOEXEC);
	if (fd < 0)
		r = -errno;
	else if (write(fd, data, (size_t)size) != (ssize_t)size)
		r = -ENOMEM;
	free(data);
	if (!r)
		return fd;
	if (fd >= 0)
		close(fd);
	return r;
}

int pack_empty(struct pack **ret_pack)
{
	int fd = write_empty(), r;

	if (fd < 0)
		return fd;
	r = pack_open_fd(fd, ret_pack, NULL);
	close(fd);
	if (r)
		return r;
	(*ret_pack)->unborn = true;
	(*ret_pack)->stat.st_mode = S_IFREG | new_file_mode(0666);
	(*ret_pack)->stat.st_uid = geteuid();
	(*ret_pack)->stat.st_gid = getegid();
	return 0;
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

bool same_state(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

bool pack_is(const struct pack *pack, const struct stat *now)
{
	return same_state(&pack->stat, now);
}

bool pack_intact(const struct pack *pack)
{
	struct stat now;

	return pack->unborn ||
	       (fstat(bpk_reader_fd(pack->reader), &now) == 0 && pack_is(pack, &now));
}
