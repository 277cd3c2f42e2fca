/*
 * staging.c - see staging.h.
 */
#include "staging.h"
#include "base.h"
#include "spare.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "lock"
#define OPEN_TRIES 100

static pid_t read_owner(int fd)
{
	char text[32];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	return (pid_t)strtol(text, NULL, 10);
}

static int open_at(int dir_fd, const char *name, int flags)
{
	int fd;

	do
		fd = openat(dir_fd, name, flags | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int staging_open_at(const struct staging *staging, const char *name, int flags)
{
	return open_at(staging->dir_fd, name, flags);
}

static int truncate_fd(int fd, uint64_t size)
{
	int result;

	do
		result = ftruncate(fd, (off_t)size);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : 0;
}

/* *@off is where it came to, also on failure. */
static int write_at(int fd, const char *from, size_t size, uint64_t *off)
{
	while (size) {
		ssize_t done = pwrite(fd, from, size, (off_t)*off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			return -EIO;
		from += done;
		size -= (size_t)done;
		*off += (uint64_t)done;
	}
	return 0;
}

static int write_owner(int fd)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	uint64_t off = 0;
	int error = truncate_fd(fd, 0);

	return error ? error : write_at(fd, text, (size_t)size, &off);
}

/* A file that lay in the folder is written only where no other name leads to it: a hard
 * link that somebody put there would have us write into a file of someone else. */
static int check_own(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return st.st_nlink > 1 ? -EMLINK : 0;
}

/* Without it the list may not fit, and then the log has it: no error. */
static void reserve(int dir_fd)
{
	int fd;

	unlinkat(dir_fd, STAGING_RESERVE, 0);
	fd = open_at(dir_fd, STAGING_RESERVE, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return;
	(void)!posix_fallocate(fd, 0, STAGING_RESERVE_SIZE);
	close(fd);
}

void staging_free_reserve(const struct staging *staging)
{
	unlinkat(staging->dir_fd, STAGING_RESERVE, 0);
}

static int open_once(struct staging *staging, const char *path, pid_t *ret_owner)
{
	struct stat st;
	struct staging made = { .dir_fd = -1,
				.lock_fd = -1,
				.lock = PTHREAD_MUTEX_INITIALIZER };
	bool is_new;
	int error;

	made.path = strdup(path);
	if (!made.path)
		return -ENOMEM;
	is_new = mkdir(path, 0700) == 0;
	error = !is_new && errno != EEXIST ? -errno : 0;
	if (error)
		goto fail;
	made.dir_fd =
		spare_keep(open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
	error = made.dir_fd;
	if (made.dir_fd < 0)
		goto fail;
	made.lock_fd = open_at(made.dir_fd, LOCK_NAME,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
	error = made.lock_fd;
	if (made.lock_fd < 0)
		goto fail;
	if (flock(made.lock_fd, LOCK_EX | LOCK_NB) < 0) {
		error = errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (error == -EBUSY)
			*ret_owner = read_owner(made.lock_fd);
		goto fail;
	}
	/* Whoever had it is just going, and the folder with it. */
	error = fstat(made.lock_fd, &st) < 0 || !st.st_nlink ? -EAGAIN : 0;
	if (!error)
		error = check_own(made.lock_fd);
	if (error)
		goto fail;
	error = write_owner(made.lock_fd);
	if (error)
		goto fail;
	reserve(made.dir_fd);
	*staging = made;
	return 0;
fail:
	if (is_new && error != -EBUSY && error != -EAGAIN) {
		if (made.lock_fd >= 0)
			unlinkat(made.dir_fd, LOCK_NAME, 0);
		rmdir(path);
	}
	if (made.lock_fd >= 0)
		close(made.lock_fd);
	if (made.dir_fd >= 0)
		close(made.dir_fd);
	free(made.path);
	return error;
}

int staging_open(struct staging *staging, const char *path, pid_t *ret_owner)
{
	int error = -EAGAIN;

	for (int i = 0; i < OPEN_TRIES && error == -EAGAIN; i++)
		error = open_once(staging, path, ret_owner);
	return error;
}

int staging_flush_folder(int dir_fd, const char *path, int inside_fd)
{
	int fd = open_at(dir_fd, path, O_RDONLY | O_DIRECTORY), result;

	/* A folder that one may write in and not list. */
	if (fd < 0)
		return fd != -EACCES ? fd : syncfs(inside_fd) < 0 ? -errno : 0;
	do
		result = fsync(fd);
	while (result < 0 && errno == EINTR);
	result = result < 0 ? -errno : 0;
	close(fd);
	return result;
}

int staging_flush_place(struct staging *staging)
{
	int error = staging->placed ? 0
				    : staging_flush_folder(staging->dir_fd, "..",
							   staging->dir_fd);

	staging->placed = !error;
	return error;
}

/* With @all also what belongs to whoever has the folder locked. */
static void remove_files(int dir_fd, bool all)
{
	int fd = open_at(dir_fd, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    (all || (strcmp(entry->d_name, LOCK_NAME) != 0 &&
			     strcmp(entry->d_name, STAGING_RESERVE) != 0)))
			unlinkat(dir_fd, entry->d_name, 0);
	closedir(dir);
}

void staging_clear(const struct staging *staging)
{
	remove_files(staging->dir_fd, false);
}

void staging_leave(struct staging *staging)
{
	if (!staging->path)
		return;
	staging_free_reserve(staging);
	unlinkat(staging->dir_fd, LOCK_NAME, 0);
	rmdir(staging->path);
	staging_close(staging, false);
}

bool staging_gone(const struct staging *staging)
{
	struct stat st;

	return fstat(staging->dir_fd, &st) == 0 && !st.st_nlink;
}

void staging_make_place(const struct staging *staging)
{
	if (staging_gone(staging))
		(void)!mkdir(staging->path, 0700);
}

void staging_close(struct staging *staging, bool remove)
{
	if (!staging->path)
		return;
	if (remove) {
		remove_files(staging->dir_fd, true);
		rmdir(staging->path);
	}
	close(staging->lock_fd);
	close(staging->dir_fd);
	free(staging->path);
	free(staging->orphans);
	*staging = (struct staging) { .dir_fd = -1, .lock_fd = -1 };
}

/* File names are numbers. */
#define NUMBER_SIZE 24
static void number_name(uint64_t number, char name[NUMBER_SIZE])
{
	snprintf(name, NUMBER_SIZE, "%" PRIu64, number);
}

static bool name_number(const char *name, uint64_t *ret_number)
{
	char again[NUMBER_SIZE];
	char *end;

	errno = 0;
	*ret_number = strtoull(name, &end, 10);
	if (errno || *end)
		return false;
	number_name(*ret_number, again);
	return strcmp(name, again) == 0;
}

static void remove_number(const struct staging *staging, uint64_t number)
{
	char name[NUMBER_SIZE];

	number_name(number, name);
	unlinkat(staging->dir_fd, name, 0);
}

static int staged_make(struct staging *staging, uint64_t number, int flags,
		       struct staged **ret_staged)
{
	struct staged *staged = calloc(1, sizeof(*staged));
	char name[NUMBER_SIZE];

	if (!staged)
		return -ENOMEM;
	number_name(number, name);
	staged->refs = 1;
	staged->staging = staging;
	staged->number = number;
	staged->fd = staging_open_at(staging, name, flags | O_RDWR | O_NOFOLLOW);
	if (staged->fd < 0) {
		int error = staged->fd;

		free(staged);
		return error;
	}
	*ret_staged = staged;
	return 0;
}

int staged_new(struct staging *staging, struct staged **ret_staged)
{
	struct staged *staged;
	int error;

	do {
		uint64_t number = __atomic_fetch_add(&staging->next, 1, __ATOMIC_RELAXED);

		error = staged_make(staging, number, O_CREAT | O_EXCL, &staged);
	} while (error == -EEXIST);
	if (error)
		return error;
	error = spare_keep(staged->fd);
	if (error < 0) {
		remove_number(staging, staged->number);
		free(staged);
		return error;
	}
	*ret_staged = staged;
	return 0;
}

/* What was written behind the end since was not fsynced. */
static int cut_to(struct staged *staged, uint64_t size)
{
	uint64_t there;

	staged->size = size;
	if (size > INT64_MAX)
		return -EFBIG;
	return staged_is_whole(staged, &there) && there > size
		       ? truncate_fd(staged->fd, size)
		       : 0;
}

int staged_open(struct staging *staging, uint64_t number, uint64_t size,
		struct staged **ret_staged)
{
	struct staged *staged;
	int error = staged_make(staging, number, O_NONBLOCK, &staged);

	if (error)
		return error;
	staged->journaled = true;
	error = check_own(staged->fd);
	if (!error)
		error = cut_to(staged, size);
	if (error) {
		close(staged->fd);
		free(staged);
		return error;
	}
	if (number >= staging->next)
		staging->next = number + 1;
	*ret_staged = staged;
	return 0;
}

/* Without memory the file stays until the folder goes. */
static void add_orphan(struct staging *staging, uint64_t number)
{
	pthread_mutex_lock(&staging->lock);
	if (bpk_grow((void **)&staging->orphans, &staging->orphan_capacity,
		     staging->orphan_count + 1, sizeof(*staging->orphans)) == 0)
		staging->orphans[staging->orphan_count++] = number;
	pthread_mutex_unlock(&staging->lock);
}

size_t staging_orphans(struct staging *staging)
{
	size_t count;

	pthread_mutex_lock(&staging->lock);
	count = staging->orphan_count;
	pthread_mutex_unlock(&staging->lock);
	return count;
}

void staging_remove_orphans(struct staging *staging, size_t count)
{
	pthread_mutex_lock(&staging->lock);
	for (size_t i = 0; i < count; i++)
		remove_number(staging, staging->orphans[i]);
	staging->orphan_count -= count;
	if (staging->orphan_count)
		memmove(staging->orphans, staging->orphans + count,
			staging->orphan_count * sizeof(*staging->orphans));
	pthread_mutex_unlock(&staging->lock);
}

void staging_sweep(struct staging *staging,
		   bool (*keep)(const void *context, uint64_t number),
		   const void *context)
{
	int fd = staging_open_at(staging, ".", O_RDONLY | O_DIRECTORY);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t number;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (name_number(entry->d_name, &number) && !keep(context, number))
			remove_number(staging, number);
	closedir(dir);
}

struct staged *staged_ref(struct staged *staged)
{
	__atomic_fetch_add(&staged->refs, 1, __ATOMIC_RELAXED);
	return staged;
}

void staged_unref(struct staged *staged)
{
	if (!staged || __atomic_fetch_sub(&staged->refs, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	if (__atomic_load_n(&staged->journaled, __ATOMIC_RELAXED))
		add_orphan(staged->staging, staged->number);
	else if (!staged->staging->keep)
		remove_number(staged->staging, staged->number);
	close(staged->fd);
	free(staged);
}

uint64_t staged_size(const struct staged *staged)
{
	return staged->size;
}

bool staged_is_whole(const struct staged *staged, uint64_t *ret_there)
{
	struct stat st;

	*ret_there = fstat(staged->fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
	return *ret_there >= staged->size;
}

/* Before a change that would put zeros in the place of bytes before @end that were lost.
 */
static int check_there(const struct staged *staged, uint64_t end)
{
	uint64_t there;

	return staged_is_whole(staged, &there) || there >= end ? 0 : -EIO;
}

int staged_write(struct staged *staged, const void *data, size_t size, uint64_t off)
{
	int error = check_there(staged, off);

	if (error)
		return error;
	error = write_at(staged->fd, data, size, &off);
	if (off > staged->size)
		staged->size = off;
	return error;
}

int staged_read(const struct staged *staged, void *data, size_t size, uint64_t off)
{
	char *to = data;

	while (size) {
		ssize_t got = pread(staged->fd, to, size, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		to += got;
		size -= (size_t)got;
		off += (uint64_t)got;
	}
	return 0;
}

int staged_truncate(struct staged *staged, uint64_t size)
{
	int error = size > INT64_MAX ? -EFBIG : check_there(staged, size);

	if (error)
		return error;
	/* First, for who reads meanwhile: see reading.c. */
	if (size < staged->size)
		__atomic_fetch_add(&staged->cuts, 1, __ATOMIC_SEQ_CST);
	error = truncate_fd(staged->fd, size);
	if (!error)
		staged->size = size;
	return error;
}

int staged_allocate(struct staged *staged, int mode, uint64_t off, uint64_t size)
{
	int result, error = check_there(staged, UINT64_MAX);

	if (off > INT64_MAX || size > INT64_MAX)
		return -EFBIG;
	if (error)
		return error;
	do
		result = fallocate(staged->fd, mode, (off_t)off, (off_t)size);
	while (result < 0 && errno == EINTR);
	if (result < 0)
		return -errno;
	if (!(mode & FALLOC_FL_KEEP_SIZE) && off + size > staged->size)
		staged->size = off + size;
	return 0;
}

/* Where copy_file_range() does not work between two file systems. */
static int copy_by_hand(struct staged *staged, int fd, uint64_t off, uint64_t size)
{
	const size_t chunk = 1 << 20;
	char *buffer = malloc(chunk);
	uint64_t to = 0;
	int error = buffer ? 0 : -ENOMEM;

	while (!error && size) {
		ssize_t got = pread(fd, buffer, size < chunk ? size : chunk, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			error = got < 0 ? -errno : -EIO;
			break;
		}
		error = staged_write(staged, buffer, (size_t)got, to);
		to += (uint64_t)got;
		off += (uint64_t)got;
		size -= (uint64_t)got;
	}
	free(buffer);
	return error;
}

int staged_copy(struct staged *staged, int fd, uint64_t off, uint64_t size)
{
	off_t from = (off_t)off, to = 0;
	uint64_t left = size;

	while (left) {
		ssize_t done = copy_file_range(fd, &from, staged->fd, &to,
					       left < SSIZE_MAX ? left : SSIZE_MAX, 0);

		if (done < 0 && errno == EINTR)
			continue;
		if (done > 0) {
			left -= (uint64_t)done;
			if ((uint64_t)to > staged->size)
				staged->size = (uint64_t)to;
			continue;
		}
		if (done < 0 && left == size &&
		    (errno == EXDEV || errno == EINVAL || errno == ENOSYS ||
		     errno == EOPNOTSUPP))
			return copy_by_hand(staged, fd, off, size);
		return done < 0 ? -errno : -EIO;
	}
	return 0;
}
