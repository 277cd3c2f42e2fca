/*
 * io.c - reading, mapping, writing and copying; see io.h. Together with replace.c
 * the only files of libbpk that read and write packs; record/ asks for folders, too.
 *
 * Knows files and nothing of burnpack.
 *
 * Invariant: what was written is closed with a check, and closed only once.
 */
#include "io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SEND_SIZE ((uint64_t)8 << 20)
#define COPY_BUFFER_SIZE ((size_t)1 << 20)

int bpk_io_fail(struct bpk_error *error, int r, const char *what, const char *label)
{
	char reason[128];

	return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET, "%s %s: %s", what, label,
			strerror_r(-r, reason, sizeof(reason)));
}

/* A path for messages. Of a long one the end says more. */
static void make_label(char label[BPK_QUOTE_SIZE], const char *path)
{
	const size_t room = BPK_QUOTE_SIZE - 8;
	size_t size = strlen(path);
	const char *cut = path;

	if (size > room) {
		cut = strchr(path + size - room, '/');
		if (!cut)
			cut = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	}
	bpk_quote(label, cut, strlen(cut));
}

/* Reading ------------------------------------------------------------------ */

int bpk_io_check_regular(int fd, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int bpk_io_not_regular(struct bpk_error *error, int r, const char *label)
{
	if (r == -EINVAL)
		return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
				"%s is not a regular file", label);
	return bpk_io_fail(error, r, "cannot use", label);
}

int bpk_io_open_retrying(int dir_fd, const char *path, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(dir_fd, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int bpk_io_open(const char *path, int *ret_fd, uint64_t *ret_size,
		struct bpk_error *error)
{
	char label[BPK_QUOTE_SIZE];
	int fd, r;

	make_label(label, path);
	/* O_NONBLOCK: a FIFO would wait for its writer before it can be refused. */
	fd = bpk_io_open_retrying(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return bpk_io_fail(error, fd, "cannot open", label);
	r = bpk_io_check_regular(fd, ret_size);
	if (r < 0) {
		close(fd);
		return bpk_io_not_regular(error, r, label);
	}
	*ret_fd = fd;
	return 0;
}

int bpk_io_dup(int fd, int *ret_fd, uint64_t *ret_size, struct bpk_error *error)
{
	int r = bpk_io_check_regular(fd, ret_size), copy;

	if (r < 0)
		return bpk_io_not_regular(error, r, "the open file");
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return bpk_io_fail(error, -errno, "cannot duplicate", "the open file");
	*ret_fd = copy;
	return 0;
}

void bpk_io_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

int bpk_io_map(int fd, uint64_t size, const void **ret_data)
{
	void *data;

	if (size > SIZE_MAX)
		return -EFBIG;
	data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	*ret_data = data;
	return 0;
}

void bpk_io_unmap(const void *data, uint64_t size)
{
	if (data)
		munmap((void *)(uintptr_t)data, (size_t)size);
}

/* Below this, what rounding up costs is not worth it. */
#define LARGE_PAGE_SIZE ((size_t)2 << 20)
#define LARGE_BLOCK_MIN (2 * LARGE_PAGE_SIZE)

void *bpk_io_allocate(size_t size)
{
	uint64_t rounded;
	void *block;

	if (size < LARGE_BLOCK_MIN || !bpk_align_u64(size, LARGE_PAGE_SIZE, &rounded))
		return malloc(size ? size : 1);
	block = aligned_alloc(LARGE_PAGE_SIZE, (size_t)rounded);
	if (block)
		(void)madvise(block, (size_t)rounded, MADV_HUGEPAGE);
	return block;
}

int bpk_io_read(int fd, void *buffer, size_t size, uint64_t off, size_t *ret_done)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (uint8_t *)buffer + done, size - done,
				  (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	*ret_done = done;
	return 0;
}

/* Writing ------------------------------------------------------------------ */

void bpk_io_file_init(struct bpk_io_file *file, const char *path)
{
	*file = (struct bpk_io_file) {
		.fd = -1,
		.dir_fd = -1,
		.old_fd = -1,
		.source_fd = -1,
	};
	make_label(file->label, path);
}

void bpk_io_done(struct bpk_io_file *file)
{
	if (file->has_scratch && file->scratch_path)
		unlink(file->scratch_path);
	else if (file->has_scratch)
		unlinkat(file->dir_fd, file->scratch, 0);
	bpk_io_close(file->fd);
	bpk_io_close(file->old_fd);
	bpk_io_close(file->dir_fd);
	free(file->name);
	free(file->scratch_path);
	free(file->buffer);
	bpk_io_file_init(file, "");
}

int bpk_io_write(struct bpk_io_file *file, const void *data, size_t size)
{
	const uint8_t *at = data;

	while (size) {
		ssize_t n = pwrite(file->fd, at, size, (off_t)file->pos);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n) /* never seen on a regular file; do not turn forever */
			return -EIO;
		at += n;
		size -= (size_t)n;
		file->pos += (uint64_t)n;
		file->size = file->pos;
	}
	return 0;
}

void bpk_io_skip(struct bpk_io_file *file, uint64_t size)
{
	file->pos += size;
}

/* The copied bytes are there. The disk begins with them while the next ones are copied,
 * or it would stand still until the flush at the end and the copy during it. */
static void copied(struct bpk_io_file *file, uint64_t size)
{
	file->pos += size;
	file->size = file->pos;
	if (file->dir_fd < 0 || file->pos - file->sent < SEND_SIZE)
		return;
	(void)sync_file_range(file->fd, (off_t)file->sent,
			      (off_t)(file->pos - file->sent), SYNC_FILE_RANGE_WRITE);
	file->sent = file->pos;
}

/*
 * How many of @size bytes to take at once so that blocks can be shared: those up to
 * the start of the next block (*@ret_clone false), then whole blocks (true). All of
 * them when the offsets do not lie alike, or there is no whole block.
 */
static size_t clone_part(struct bpk_io_file *file, uint64_t off, size_t size,
			 bool *ret_clone)
{
	uint64_t block = file->block_size, head;

	*ret_clone = false;
	if (file->no_clone || off % block != file->pos % block)
		return size;
	head = (block - off % block) % block;
	if (size < head + block)
		return size;
	if (head)
		return (size_t)head;
	*ret_clone = true;
	return size - size % (size_t)block;
}

static void ask_block_size(struct bpk_io_file *file, int fd)
{
	struct statfs fs;

	if (file->source_fd != fd) {
		file->source_fd = fd;
		file->no_clone = false;
		file->no_kernel_copy = false;
	}
	if (!file->block_size) {
		file->block_size = 4096;
		if (fstatfs(file->fd, &fs) == 0 && fs.f_bsize > 0)
			file->block_size = (uint64_t)fs.f_bsize;
	}
	if (file->block_size > COPY_BUFFER_SIZE)
		file->no_clone = true;
}

static bool clone_blocks(struct bpk_io_file *file, int fd, uint64_t off, size_t size)
{
	struct file_clone_range range = {
		.src_fd = fd,
		.src_offset = off,
		.src_length = size,
		.dest_offset = file->pos,
	};
	int r;

	do
		r = ioctl(file->fd, FICLONERANGE, &range);
	while (r < 0 && errno == EINTR);
	/* Whatever the reason, copying will do it or say why not. */
	file->no_clone = r < 0;
	return r == 0;
}

static size_t copy_in_kernel(struct bpk_io_file *file, int fd, uint64_t off, size_t size)
{
	off_t from = (off_t)off, to = (off_t)file->pos;
	ssize_t n;

	do
		n = copy_file_range(fd, &from, file->fd, &to, size, 0);
	while (n < 0 && errno == EINTR);
	/* 0 may be the end of the file, or a file system that pretends so. */
	if (n > 0)
		return (size_t)n;
	file->no_kernel_copy = true;
	return 0;
}

static int copy_by_hand(struct bpk_io_file *file, int fd, uint64_t off, size_t size,
			size_t *ret_done, bool *ret_source_failed)
{
	size_t done = 0;
	int r;

	if (!file->buffer) {
		file->buffer = malloc(COPY_BUFFER_SIZE);
		if (!file->buffer)
			return -ENOMEM;
	}
	if (size > COPY_BUFFER_SIZE)
		size = COPY_BUFFER_SIZE;
	r = bpk_io_read(fd, file->buffer, size, off, &done);
	if (r < 0) {
		*ret_source_failed = true;
		return r;
	}
	r = bpk_io_write(file, file->buffer, done);
	if (r < 0)
		return r;
	*ret_done = done;
	return 0;
}

int bpk_io_copy(struct bpk_io_file *file, int fd, uint64_t off, size_t size,
		size_t *ret_done, bool *ret_source_failed)
{
	bool clone;
	size_t done;

	*ret_source_failed = false;
	ask_block_size(file, fd);
	size = clone_part(file, off, size, &clone);
	if (clone && clone_blocks(file, fd, off, size)) {
		copied(file, size);
		*ret_done = size;
		return 0;
	}
	if (!file->no_kernel_copy) {
		done = copy_in_kernel(file, fd, off, size);
		if (done) {
			copied(file, done);
			*ret_done = done;
			return 0;
		}
	}
	return copy_by_hand(file, fd, off, size, ret_done, ret_source_failed);
}

bool bpk_io_same(const struct bpk_io_file *file, int fd)
{
	struct stat a, b;

	return fstat(file->fd, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Zeros at the end were skipped: make the file as long as it must be. */
int bpk_io_set_size(struct bpk_io_file *file)
{
	int r;

	if (file->size == file->pos)
		return 0;
	do
		r = ftruncate(file->fd, (off_t)file->pos);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	file->size = file->pos;
	return 0;
}

/* Linux has let go of the descriptor also when close() fails, EINTR included. */
int bpk_io_close_checked(struct bpk_io_file *file)
{
	int fd = file->fd;

	file->fd = -1;
	return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

int bpk_io_flush(int fd)
{
	int r;

	do
		r = fsync(fd);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* In place ----------------------------------------------------------------- */

int bpk_io_in_place_open(const char *path, struct bpk_io_file *ret_file,
			 struct bpk_error *error)
{
	struct bpk_io_file file;
	uint64_t size;
	int r;

	bpk_io_file_init(&file, path);
	file.fd = bpk_io_open_retrying(AT_FDCWD, path,
				       O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY, 0666);
	if (file.fd < 0)
		return bpk_io_fail(error, file.fd, "cannot open", file.label);
	r = bpk_io_check_regular(file.fd, &size);
	if (r < 0) {
		close(file.fd);
		return bpk_io_not_regular(error, r, file.label);
	}
	*ret_file = file;
	return 0;
}

int bpk_io_in_place_truncate(struct bpk_io_file *file, struct bpk_error *error)
{
	int r;

	do
		r = ftruncate(file->fd, 0);
	while (r < 0 && errno == EINTR);
	return r < 0 ? bpk_io_fail(error, -errno, "cannot truncate", file->label) : 0;
}

int bpk_io_in_place_close(struct bpk_io_file *file, struct bpk_error *error)
{
	int r = bpk_io_set_size(file), closed = bpk_io_close_checked(file);

	if (r >= 0)
		r = closed;
	return r < 0 ? bpk_io_fail(error, r, "cannot write", file->label) : 0;
}
