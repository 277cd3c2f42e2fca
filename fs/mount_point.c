/*
 * mount_point.c - see mount_point.h.
 */
#include "mount_point.h"
#include "log.h"
#include "signals.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* For a shell to read back; malloc'd, or NULL. */
static char *shell_word(const char *text)
{
	char *word = malloc(4 * strlen(text) + 3), *to = word;

	if (!word)
		return NULL;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to = stpcpy(to, "'\\'");
		*to++ = *text;
	}
	strcpy(to, "'");
	return word;
}

/* Cut @path, something in a mount whose daemon is gone, down to where that is mounted. */
static void cut_to_mount(char *path)
{
	struct statfs fs;
	char *slash;

	while ((slash = strrchr(path, '/')) && slash > path) {
		*slash = '\0';
		if (statfs(path, &fs) < 0 && errno == ENOTCONN)
			continue;
		*slash = '/';
		break;
	}
}

void mount_point_complain(const char *path, int error)
{
	char *top = error == ENOTCONN ? strdup(path) : NULL, *word = NULL;

	if (top) {
		cut_to_mount(top);
		word = shell_word(top);
	}
	if (word)
		log_line("%s: a mount whose daemon is gone; clear it with: fusermount3 "
			 "-u -- %s",
			 path, word);
	else
		log_line("%s: %s", path, strerror(error));
	free(word);
	free(top);
}

/* What is at @path: 0 or an errno. stat(2) may be answered from the kernel's memory
 * after the daemon of a mount is gone; statfs(2) never is. */
static int look(const char *path, struct stat *st)
{
	struct statfs fs;

	if (stat(path, st) < 0)
		return errno;
	return statfs(path, &fs) < 0 && errno == ENOTCONN ? ENOTCONN : 0;
}

static enum status make(struct mount_point *point, const char *given, struct stat *st)
{
	int error;

	if (mkdir(given, 0755) == 0) {
		point->made = true;
		return STATUS_OK;
	}
	error = errno;
	/* Another process was faster. */
	if (error == EEXIST && look(given, st) == 0)
		return STATUS_OK;
	log_line("%s: cannot make the mount point: %s", given,
		 error == EEXIST ? "it is a symbolic link that leads nowhere"
				 : strerror(error));
	return STATUS_MOUNT_POINT;
}

static void unmake(struct mount_point *point, const char *given)
{
	if (point->made)
		rmdir(given);
	point->made = false;
}

enum status mount_point_find(struct mount_point *point, const char *given)
{
	struct stat st = { .st_mode = S_IFDIR };
	int error = look(given, &st);

	if (error == ENOENT && make(point, given, &st) != STATUS_OK)
		return STATUS_MOUNT_POINT;
	if (error && error != ENOENT) {
		mount_point_complain(given, error);
		return STATUS_MOUNT_POINT;
	}
	if (!S_ISDIR(st.st_mode)) {
		log_line("%s: cannot mount there: not a folder", given);
		return STATUS_MOUNT_POINT;
	}
	point->path = realpath(given, NULL);
	if (!point->path) {
		log_line("%s: %s", given, strerror(errno));
		unmake(point, given);
		return STATUS_MOUNT_POINT;
	}
	/* Nobody, and no umount(8), would ever get to what is mounted over it. */
	if (strcmp(point->path, "/") == 0) {
		log_line("%s: cannot mount there: it is the root of everything", given);
		mount_point_leave(point);
		return STATUS_MOUNT_POINT;
	}
	return STATUS_OK;
}

bool mount_point_again(struct mount_point *point)
{
	if (mkdir(point->path, 0755) < 0)
		return false;
	point->made = true;
	return true;
}

void mount_point_leave(struct mount_point *point)
{
	free(point->path);
	*point = (struct mount_point) { .path = NULL };
}

void mount_point_done(struct mount_point *point)
{
	if (point->made)
		rmdir(point->path);
	mount_point_leave(point);
}

int mount_point_detach(const char *path)
{
	const char *argv[] = { "fusermount3", "-u", "-q", "--", path, NULL };
	char *const *args;
	extern char **environ;
	posix_spawnattr_t attr;
	sigset_t mask;
	pid_t child;
	int status, error;

	if (umount2(path, UMOUNT_NOFOLLOW) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	memcpy(&args, &(const char **) { argv }, sizeof(args));
	error = posix_spawnattr_init(&attr);
	if (error)
		return -error;
	signals_child_mask(&mask);
	posix_spawnattr_setsigmask(&attr, &mask);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	error = posix_spawnp(&child, argv[0], NULL, &attr, args, environ);
	posix_spawnattr_destroy(&attr);
	if (error)
		return -error;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}
