/*
 * look.c - see look.h. O_PATH touches no file and makes no request of a file system but
 * a look-up, and openat2(2) with RESOLVE_NO_XDEV does not even that behind a mount point.
 * A link may cross mounts, so it is followed here, step by step.
 */
#include "look.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* As the kernel has it. */
enum { LINKS_MAX = 40 };

static int open_beneath(int dir_fd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

int look_folder(int dir_fd, const char *path)
{
	return open_beneath(dir_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY,
			    RESOLVE_NO_SYMLINKS);
}

/* In the own mount? What the kernel knows is enough. */
static int check_not_own(int fd, dev_t own)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0, &st) <
	    0)
		return -errno;
	return makedev(st.stx_dev_major, st.stx_dev_minor) == own ? -ELOOP : 0;
}

/* @text and what is left of the path behind the link, in place of *@rest. */
static int put_before(char **rest, const char *text, const char *behind)
{
	size_t size = strlen(text), behind_size = strlen(behind);
	char *path =
		size + behind_size < PATH_MAX ? malloc(size + behind_size + 2) : NULL;

	if (!path)
		return size + behind_size < PATH_MAX ? -ENOMEM : -ENAMETOOLONG;
	memcpy(path, text, size);
	path[size] = '/';
	memcpy(path + size + 1, behind, behind_size + 1);
	free(*rest);
	*rest = path;
	return 0;
}

/* Replace *@at by @fd. */
static void move_to(int *at, int fd)
{
	close(*at);
	*at = fd;
}

/* The link @fd is the next step: from *@at along its text. */
static int take_link(int fd, int *at, char **rest, const char *behind)
{
	char text[PATH_MAX];
	ssize_t got = readlinkat(fd, "", text, sizeof(text) - 1);

	if (got < 0)
		return -errno;
	text[got] = '\0';
	if (text[0] == '/') {
		int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (root < 0)
			return -errno;
		move_to(at, root);
	}
	return put_before(rest, text, behind);
}

/* One step from *@at along the first component of *@rest. */
static int step(int *at, char **rest, dev_t own, unsigned *links)
{
	char name[NAME_MAX + 1];
	char *from = *rest + strspn(*rest, "/");
	size_t size = strcspn(from, "/");
	struct stat st;
	int fd, error;

	if (size > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, size);
	name[size] = '\0';
	fd = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	error = check_not_own(fd, own);
	if (!error && fstat(fd, &st) < 0)
		error = -errno;
	if (!error && !S_ISLNK(st.st_mode)) {
		memmove(*rest, from + size, strlen(from + size) + 1);
		move_to(at, fd);
		return 0;
	}
	if (!error && ++*links > LINKS_MAX)
		error = -ELOOP;
	if (!error)
		error = take_link(fd, at, rest, from + size);
	close(fd);
	return error;
}

/* What the link @name leads to, as an O_PATH descriptor; or -errno. */
static int follow(int folder_fd, const char *name, dev_t own)
{
	char *rest = strdup(name);
	int at = openat(folder_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), error = 0;
	unsigned links = 0;

	if (at < 0)
		error = -errno;
	else if (!rest)
		error = -ENOMEM;
	while (!error && rest[strspn(rest, "/")])
		error = step(&at, &rest, own, &links);
	free(rest);
	if (error && at >= 0)
		close(at);
	return error ? error : at;
}

/* As an O_PATH descriptor, with what look_at() tells. */
static int look(int folder_fd, const char *name, dev_t own, struct stat *ret_st,
		int *ret_why)
{
	int fd = open_beneath(folder_fd, name, O_PATH | O_NOFOLLOW, 0), to;

	if (fd < 0)
		return fd;
	*ret_why = 0;
	if (fstat(fd, ret_st) < 0) {
		to = -errno;
		close(fd);
		return to;
	}
	if (S_ISLNK(ret_st->st_mode)) {
		to = follow(folder_fd, name, own);
		if (to >= 0 && fstat(to, ret_st) == 0) {
			close(fd);
			fd = to;
			if (S_ISDIR(ret_st->st_mode))
				*ret_why = -ELOOP;
		} else {
			*ret_why = to < 0 ? to : -errno;
			if (to >= 0)
				close(to);
		}
	}
	if (!*ret_why && !S_ISDIR(ret_st->st_mode) && !S_ISREG(ret_st->st_mode))
		*ret_why = -ENXIO;
	return fd;
}

int look_at(int folder_fd, const char *name, dev_t own, struct stat *ret_st, int *ret_why)
{
	int fd = look(folder_fd, name, own, ret_st, ret_why);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

int look_open(int folder_fd, const char *name, dev_t own, struct stat *ret_st)
{
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int why, at = look(folder_fd, name, own, ret_st, &why), fd;

	if (at < 0)
		return at;
	if (!why && S_ISDIR(ret_st->st_mode))
		why = -EISDIR;
	if (why) {
		close(at);
		return why;
	}
	/* The very file that was looked at: a regular one, so that nothing waits. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(at);
	return fd;
}
