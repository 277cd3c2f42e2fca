/*
 * io.c - the only file of libbpk with system calls; see io.h.
 *
 * Knows files and nothing of burnpack.
 *
 * Invariants: a name in file->scratch is a file that this code made and that nobody
 * else knows; it is removed unless it was renamed over the destination. The
 * destination itself is touched by that one rename only. What was written is closed
 * with a check, and closed only once.
 */
#include "io.h"

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

#define COPY_BUFFER_SIZE ((size_t)1 << 20)
#define SYMLINKS_MAX 40 /* as the kernel */
#define SCRATCH_TRIES 100
#define SCRATCH_END ".bpk-tmp"
#define SCRATCH_RANDOM 6
/* "." NAME "." random SCRATCH_END */
#define SCRATCH_EXTRA (2 + SCRATCH_RANDOM + sizeof(SCRATCH_END) - 1)

static int io_fail(struct bpk_error *error, int r, const char *what, const char *label)
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

static int check_regular(int fd, uint64_t *ret_size)
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

static int not_regular(struct bpk_error *error, int r, const char *label)
{
	if (r == -EINVAL)
		return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
				"%s is not a regular file", label);
	return io_fail(error, r, "cannot use", label);
}

static int open_retrying(int dir_fd, const char *path, int flags, mode_t mode)
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
	fd = open_retrying(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return io_fail(error, fd, "cannot open", label);
	r = check_regular(fd, ret_size);
	if (r < 0) {
		close(fd);
		return not_regular(error, r, label);
	}
	*ret_fd = fd;
	return 0;
}

int bpk_io_dup(int fd, int *ret_fd, uint64_t *ret_size, struct bpk_error *error)
{
	int r = check_regular(fd, ret_size), copy;

	if (r < 0)
		return not_regular(error, r, "the open file");
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return io_fail(error, -errno, "cannot duplicate", "the open file");
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

static void file_init(struct bpk_io_file *file, const char *path)
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
	if (file->scratch[0])
		unlinkat(file->dir_fd, file->scratch, 0);
	bpk_io_close(file->fd);
	bpk_io_close(file->old_fd);
	bpk_io_close(file->dir_fd);
	free(file->name);
	free(file->buffer);
	file_init(file, "");
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

/* The copied bytes are there. */
static void copied(struct bpk_io_file *file, uint64_t size)
{
	file->pos += size;
	file->size = file->pos;
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
static int set_size(struct bpk_io_file *file)
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
static int close_checked(struct bpk_io_file *file)
{
	int fd = file->fd;

	file->fd = -1;
	return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static int flush(int fd)
{
	int r;

	do
		r = fsync(fd);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* Where a symlink leads ---------------------------------------------------- */

/* *@path, which is a symlink to @target, becomes the path of that. */
static int follow(char **path, const char *target)
{
	const char *slash = strrchr(*path, '/');
	size_t dir_size = *target == '/' || !slash ? 0 : (size_t)(slash + 1 - *path);
	char *joined = malloc(dir_size + strlen(target) + 1);

	if (!joined)
		return -ENOMEM;
	memcpy(joined, *path, dir_size);
	strcpy(joined + dir_size, target);
	free(*path);
	*path = joined;
	return 0;
}

/* realpath(3) of the last component only, and the target need not exist. */
static int resolve(const char *path, char **ret_path)
{
	_cleanup_(bpk_free_at) char *current = strdup(path);
	char target[PATH_MAX];

	if (!current)
		return -ENOMEM;
	for (unsigned int i = 0; i <= SYMLINKS_MAX; i++) {
		ssize_t n = readlink(current, target, sizeof(target) - 1);
		int r;

		if (n < 0 && (errno == EINVAL || errno == ENOENT)) {
			*ret_path = current;
			current = NULL;
			return 0;
		}
		if (n < 0)
			return -errno;
		target[n] = '\0';
		r = follow(&current, target);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

/* Open the folder of @path and keep the name in it. */
static int open_dir(struct bpk_io_file *file, char *path)
{
	char *slash = strrchr(path, '/');
	const char *dir = ".", *name = path;

	if (slash) {
		name = slash + 1;
		dir = slash == path ? "/" : path;
	}
	if (!*name)
		return *path ? -EISDIR : -ENOENT;
	file->name = strdup(name);
	if (!file->name)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	if (slash == path)
		dir = "/";
	file->dir_fd = open_retrying(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	file->dir_readable = file->dir_fd >= 0;
	/* A folder that one may write in and not list. */
	if (file->dir_fd == -EACCES)
		file->dir_fd = open_retrying(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	return file->dir_fd < 0 ? file->dir_fd : 0;
}

/* The file that will be replaced, if there is one. */
static int open_old(struct bpk_io_file *file)
{
	struct stat st;
	uint64_t size;
	int fd, r;

	if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = open_retrying(file->dir_fd, file->name,
			   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = check_regular(fd, &size);
	if (r < 0) {
		close(fd);
		return r;
	}
	file->old_fd = fd;
	return 0;
}

/* Scratch ------------------------------------------------------------------ */

/* "/proc/self/fd/N" */
#define PROC_PATH_SIZE 32
static const char *proc_path(char path[PROC_PATH_SIZE], int fd)
{
	snprintf(path, PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
	return path;
}

/* A name that nothing has, we hope: .NAME.XXXXXX.bpk-tmp, NAME cut so that it fits. */
static int make_scratch_name(const struct bpk_io_file *file, char name[NAME_MAX + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	long max = file->dir_readable ? fpathconf(file->dir_fd, _PC_NAME_MAX) : NAME_MAX;
	size_t keep = strlen(file->name), room;
	uint8_t random[SCRATCH_RANDOM];
	char text[SCRATCH_RANDOM + 1] = { 0 };

	if (max <= (long)SCRATCH_EXTRA || max > NAME_MAX)
		max = NAME_MAX;
	room = (size_t)max - SCRATCH_EXTRA;
	if (keep > room) {
		keep = room;
		/* Not in the middle of a character: some file systems mind. */
		while (keep && ((uint8_t)file->name[keep] & 0xc0) == 0x80)
			keep--;
	}
	while (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		if (errno != EINTR)
			return -errno;
	for (size_t i = 0; i < SCRATCH_RANDOM; i++)
		text[i] = letters[random[i] % (sizeof(letters) - 1)];
	snprintf(name, NAME_MAX + 1, ".%.*s.%s%s", (int)keep, file->name, text,
		 SCRATCH_END);
	return 0;
}

/* Try names with @take until it makes one. */
static int take_scratch_name(struct bpk_io_file *file,
			     int (*take)(struct bpk_io_file *file, const char *name))
{
	char name[NAME_MAX + 1];
	int r;

	for (unsigned int i = 0; i < SCRATCH_TRIES; i++) {
		r = make_scratch_name(file, name);
		if (r < 0)
			return r;
		r = take(file, name);
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		strcpy(file->scratch, name);
		return 0;
	}
	return -EEXIST;
}

/* Until it has the old file's attributes nobody else may open a replacement. */
static mode_t scratch_mode(const struct bpk_io_file *file)
{
	return file->old_fd < 0 ? 0666 : 0600;
}

static int take_by_open(struct bpk_io_file *file, const char *name)
{
	int fd = open_retrying(file->dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
			       scratch_mode(file));

	if (fd < 0)
		return fd;
	file->fd = fd;
	return 0;
}

static int take_by_link(struct bpk_io_file *file, const char *name)
{
	char path[PROC_PATH_SIZE];

	return linkat(AT_FDCWD, proc_path(path, file->fd), file->dir_fd, name,
		      AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

/*
 * Without a name nothing can be left behind, not even by a kill. It needs a file
 * system that can, and /proc to give it a name in the end.
 */
static bool open_nameless(struct bpk_io_file *file)
{
	char path[PROC_PATH_SIZE];
	int fd = open_retrying(file->dir_fd, ".", O_RDWR | O_TMPFILE, scratch_mode(file));

	if (fd < 0)
		return false;
	if (access(proc_path(path, fd), F_OK) < 0) {
		close(fd);
		return false;
	}
	file->fd = fd;
	return true;
}

static int begin(struct bpk_io_file *file, const char *path, bool named,
		 struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *target = NULL;
	int r;

	r = resolve(path, &target);
	if (r >= 0)
		r = open_dir(file, target);
	if (r < 0)
		return io_fail(error, r, "cannot find the place of", file->label);
	r = open_old(file);
	if (r == -EINVAL)
		return not_regular(error, r, file->label);
	if (r < 0)
		return io_fail(error, r, "cannot replace", file->label);
	if (!named && open_nameless(file))
		return 0;
	r = take_scratch_name(file, take_by_open);
	return r < 0 ? io_fail(error, r, "cannot make a scratch file beside", file->label)
		     : 0;
}

int bpk_io_replace_begin(const char *path, bool named, struct bpk_io_file *ret_file,
			 struct bpk_error *error)
{
	struct bpk_io_file file;
	int r;

	file_init(&file, path);
	r = begin(&file, path, named, error);
	if (r < 0) {
		bpk_io_done(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

/* The old file's attributes ------------------------------------------------ */

#define ACL_XATTR "system.posix_acl_access"

/* Labels and the like belong to the system, which may say that we cannot set them.
 * What a user set (user.) and what decides about access (system.) is ours to keep. */
static bool may_be_lost(const char *name)
{
	return strncmp(name, "user.", 5) && strncmp(name, "system.", 7);
}

/* The names of all xattrs, or *@ret_size 0 where there is no such thing. */
static int list_xattrs(int fd, char **ret_list, size_t *ret_size)
{
	_cleanup_(bpk_free_at) char *list = NULL;
	ssize_t size;

	for (;;) {
		size = flistxattr(fd, NULL, 0);
		if (size < 0)
			break;
		free(list);
		list = malloc((size_t)size + 1);
		if (!list)
			return -ENOMEM;
		size = flistxattr(fd, list, (size_t)size);
		if (size >= 0 || errno != ERANGE) /* it grew in between */
			break;
	}
	if (size < 0 && errno != ENOTSUP && errno != ENOSYS)
		return -errno;
	*ret_size = size < 0 ? 0 : (size_t)size;
	*ret_list = list;
	list = NULL;
	return 0;
}

static int copy_xattr(int from, int to, const char *name)
{
	_cleanup_(bpk_free_at) void *value = NULL;
	ssize_t size;

	for (;;) {
		size = fgetxattr(from, name, NULL, 0);
		if (size < 0)
			break;
		free(value);
		value = malloc((size_t)size + 1);
		if (!value)
			return -ENOMEM;
		size = fgetxattr(from, name, value, (size_t)size);
		if (size >= 0 || errno != ERANGE)
			break;
	}
	if (size < 0)
		return errno == ENODATA ? 0 : -errno; /* gone in between */
	return fsetxattr(to, name, value, (size_t)size, 0) < 0 ? -errno : 0;
}

static int copy_xattrs(const struct bpk_io_file *file)
{
	_cleanup_(bpk_free_at) char *list = NULL;
	bool acl = false;
	size_t size = 0;
	int r;

	r = list_xattrs(file->old_fd, &list, &size);
	if (r < 0)
		return r;
	for (size_t at = 0; at < size; at += strlen(list + at) + 1) {
		const char *name = list + at;

		acl |= !strcmp(name, ACL_XATTR);
		r = copy_xattr(file->old_fd, file->fd, name);
		if ((r == -EPERM || r == -EACCES || r == -ENOTSUP || r == -EINVAL) &&
		    may_be_lost(name))
			continue;
		if (r < 0)
			return r;
	}
	/* One that the new file got from its folder and the old one did not have. */
	if (!acl && fremovexattr(file->fd, ACL_XATTR) < 0 && errno != ENODATA &&
	    errno != ENOTSUP)
		return -errno;
	return 0;
}

/* Owner first: a change of it clears set-id bits. Mode last: it is the ACL's mask. */
static int keep_attributes(struct bpk_io_file *file, struct bpk_error *error)
{
	const mode_t bits = 07777;
	struct stat old, now;
	int r;

	if (fstat(file->old_fd, &old) < 0 || fstat(file->fd, &now) < 0)
		return io_fail(error, -errno, "cannot read the attributes of",
			       file->label);
	if ((old.st_uid != now.st_uid || old.st_gid != now.st_gid) &&
	    fchown(file->fd, old.st_uid == now.st_uid ? (uid_t)-1 : old.st_uid,
		   old.st_gid == now.st_gid ? (gid_t)-1 : old.st_gid) < 0)
		return io_fail(error, -errno, "cannot keep the owner of", file->label);
	r = copy_xattrs(file);
	if (r < 0)
		return io_fail(error, r, "cannot keep the ACL or xattrs of", file->label);
	if (fchmod(file->fd, old.st_mode & bits) < 0 || fstat(file->fd, &now) < 0)
		return io_fail(error, -errno, "cannot keep the mode of", file->label);
	if ((now.st_mode & bits) != (old.st_mode & bits))
		return io_fail(error, -EPERM, "cannot keep the mode of", file->label);
	return 0;
}

/* Commit ------------------------------------------------------------------- */

int bpk_io_replace_finish(struct bpk_io_file *file, struct bpk_error *error)
{
	int r;

	r = set_size(file);
	if (r < 0)
		return io_fail(error, r, "cannot write the end of", file->label);
	if (file->old_fd >= 0) {
		r = keep_attributes(file, error);
		if (r < 0)
			return r;
	}
	/* The long flush while it has no name to be left behind. */
	r = flush(file->fd);
	if (r >= 0 && !file->scratch[0]) {
		r = take_scratch_name(file, take_by_link);
		if (r < 0)
			return io_fail(error, r, "cannot name the scratch file beside",
				       file->label);
		r = flush(file->fd);
	}
	if (r < 0)
		return io_fail(error, r, "cannot flush the new bytes of", file->label);
	/* Needed only where the folder itself cannot be flushed. */
	if (!file->dir_readable)
		return 0;
	r = close_checked(file);
	return r < 0 ? io_fail(error, r, "cannot write", file->label) : 0;
}

static int flush_dir(struct bpk_io_file *file)
{
	int r;

	if (file->dir_readable)
		return flush(file->dir_fd);
	r = syncfs(file->fd) < 0 ? -errno : 0;
	return r < 0 ? r : close_checked(file);
}

int bpk_io_replace_commit(struct bpk_io_file *file, struct bpk_error *error)
{
	int r;

	if (renameat(file->dir_fd, file->scratch, file->dir_fd, file->name) < 0)
		return io_fail(error, -errno, "cannot rename the new file to",
			       file->label);
	file->scratch[0] = '\0';
	r = flush_dir(file);
	if (r < 0)
		return io_fail(
			error, r,
			"the new pack is in place, but a crash may undo that: cannot "
			"flush the folder of",
			file->label);
	return 0;
}

/* In place ----------------------------------------------------------------- */

int bpk_io_in_place_open(const char *path, struct bpk_io_file *ret_file,
			 struct bpk_error *error)
{
	struct bpk_io_file file;
	uint64_t size;
	int r;

	file_init(&file, path);
	file.fd = open_retrying(AT_FDCWD, path,
				O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY, 0666);
	if (file.fd < 0)
		return io_fail(error, file.fd, "cannot open", file.label);
	r = check_regular(file.fd, &size);
	if (r < 0) {
		close(file.fd);
		return not_regular(error, r, file.label);
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
	return r < 0 ? io_fail(error, -errno, "cannot truncate", file->label) : 0;
}

int bpk_io_in_place_close(struct bpk_io_file *file, struct bpk_error *error)
{
	int r = set_size(file), closed = close_checked(file);

	if (r >= 0)
		r = closed;
	return r < 0 ? io_fail(error, r, "cannot write", file->label) : 0;
}
