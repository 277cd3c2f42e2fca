/*
 * staging.c - see staging.h.
 */
#include "staging.h"

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

static pid_t read_owner(int fd)
{
	char text[32];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

	if (got <= 0)
		return 0;
	text[got] = '\0';
	return (pid_t)strtol(text, NULL, 10);
}

static int write_owner(int fd)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) < 0)
		return -errno;
	return pwrite(fd, text, (size_t)size, 0) == size ? 0 : -EIO;
}

/* Without it the list may not fit, and then the log has it: no error. */
static void reserve(int dir_fd)
{
	int fd = openat(dir_fd, STAGING_RESERVE,
			O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	(void)!posix_fallocate(fd, 0, STAGING_RESERVE_SIZE);
	close(fd);
}

int staging_open(struct staging *staging, const char *path, pid_t *ret_owner)
{
	struct staging made = { .dir_fd = -1, .lock_fd = -1 };
	int error;

	made.path = strdup(path);
	if (!made.path)
		return -ENOMEM;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		goto fail;
	made.dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (made.dir_fd < 0)
		goto fail;
	made.lock_fd = openat(made.dir_fd, "lock",
			      O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (made.lock_fd < 0)
		goto fail;
	if (flock(made.lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			goto fail;
		*ret_owner = read_owner(made.lock_fd);
		errno = EBUSY;
		goto fail;
	}
	error = write_owner(made.lock_fd);
	if (!error)
		reserve(made.dir_fd);
	if (error) {
		errno = -error;
		goto fail;
	}
	*staging = made;
	return 0;
fail:
	error = -errno;
	if (made.lock_fd >= 0)
		close(made.lock_fd);
	if (made.dir_fd >= 0)
		close(made.dir_fd);
	free(made.path);
	return error;
}

static void remove_all(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(dir_fd, entry->d_name, 0);
	closedir(dir);
}

void staging_close(struct staging *staging, bool remove)
{
	if (!staging->path)
		return;
	if (remove) {
		remove_all(staging->dir_fd);
		rmdir(staging->path);
	}
	close(staging->lock_fd);
	close(staging->dir_fd);
	free(staging->path);
	*staging = (struct staging) { .dir_fd = -1, .lock_fd = -1 };
}

int staged_new(struct staging *staging, struct staged **ret_staged)
{
	struct staged *staged = calloc(1, sizeof(*staged));

	if (!staged)
		return -ENOMEM;
	staged->refs = 1;
	staged->staging = staging;
	do {
		uint64_t number = __atomic_fetch_add(&staging->next, 1, __ATOMIC_RELAXED);

		snprintf(staged->name, sizeof(staged->name), "%" PRIu64, number);
		staged->fd =
			openat(staging->dir_fd, staged->name,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (staged->fd < 0 && errno == EEXIST);
	if (staged->fd < 0) {
		int error = -errno;

		free(staged);
		return error;
	}
	*ret_staged = staged;
	return 0;
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
	if (!staged->staging->keep)
		unlinkat(staged->staging->dir_fd, staged->name, 0);
	close(staged->fd);
	free(staged);
}

uint64_t staged_size(const struct staged *staged)
{
	struct stat st;

	return fstat(staged->fd, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

int staged_write(struct staged *staged, const void *data, size_t size, uint64_t off)
{
	const char *from = data;

	while (size) {
		ssize_t done = pwrite(staged->fd, from, size, (off_t)off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			return -EIO;
		from += done;
		size -= (size_t)done;
		off += (uint64_t)done;
	}
	return 0;
}

int staged_read(struct staged *staged, void *data, size_t size, uint64_t off)
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
	int result;

	if (size > INT64_MAX)
		return -EFBIG;
	do
		result = ftruncate(staged->fd, (off_t)size);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : 0;
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
