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

void mount_point_complain(const char *path, int error)
{
	char *word = error == ENOTCONN ? shell_word(path) : NULL;

	if (word)
		log_line("%s: a mount whose daemon is gone; clear it with: fusermount3 "
			 "-u -- %s",
			 path, word);
	else
		log_line("%s: %s", path, strerror(error));
	free(word);
}

enum status mount_point_find(struct mount_point *point, const char *given)
{
	struct stat st;

	if (stat(given, &st) < 0 && errno == ENOENT) {
		if (mkdir(given, 0755) < 0) {
			log_line("%s: cannot make the mount point: %s", given,
				 strerror(errno));
			return STATUS_MOUNT_POINT;
		}
		point->made = true;
	} else if (stat(given, &st) < 0) {
		mount_point_complain(given, errno);
		return STATUS_MOUNT_POINT;
	} else if (!S_ISDIR(st.st_mode)) {
		log_line("%s: cannot mount there: not a folder", given);
		return STATUS_MOUNT_POINT;
	}
	point->path = realpath(given, NULL);
	if (point->path)
		return STATUS_OK;
	log_line("%s: %s", given, strerror(errno));
	if (point->made)
		rmdir(given);
	point->made = false;
	return STATUS_MOUNT_POINT;
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
