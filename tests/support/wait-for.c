/*
 * wait-for.c - wait for a mount or for the end of a process, by the kernel's own
 * signals (poll on mountinfo and on a pidfd), never by sleeping.
 *
 *	wait-for mounted MOUNTPOINT PID	    0: mounted and answering; 1: PID ended
 *	wait-for unmounted MOUNTPOINT	    0: nothing is mounted there
 *	wait-for exited PID		    0: it ended (or was never there)
 *
 * 2: not within 60 seconds. 3: usage or a system call failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { WAIT_MS = 60 * 1000 };

/* Like realpath(3), without touching the last component: it may hang or be missing. */
static bool resolve(const char *path, char *out)
{
	char dir[PATH_MAX], base[PATH_MAX], real[PATH_MAX];

	if (strlen(path) >= PATH_MAX)
		return false;
	strcpy(dir, path);
	strcpy(base, path);
	if (!realpath(dirname(dir), real))
		return false;
	return snprintf(out, PATH_MAX, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
			basename(base)) < PATH_MAX;
}

static bool is_mounted(int fd, const char *path)
{
	char line[2 * PATH_MAX];
	bool found = false;
	FILE *file;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return false;
	file = fdopen(dup(fd), "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		char *at = line, *field = NULL, *to;

		for (int i = 0; i < 5 && at; i++)
			field = strsep(&at, " ");
		if (!at || !field)
			continue;
		/* Space, tab, newline and backslash are written in octal. */
		to = field;
		for (const char *from = field; *from; to++) {
			if (*from == '\\' && strlen(from) >= 4) {
				char digits[] = { from[1], from[2], from[3], '\0' };

				*to = (char)strtol(digits, NULL, 8);
				from += 4;
			} else {
				*to = *from++;
			}
		}
		*to = '\0';
		found |= strcmp(field, path) == 0;
	}
	fclose(file);
	return found;
}

static int pidfd(const char *text)
{
	return (int)syscall(SYS_pidfd_open, (pid_t)strtol(text, NULL, 10), 0);
}

static int wait_mount(const char *mount_point, bool want, const char *pid)
{
	struct pollfd fds[2] = { { .events = POLLPRI }, { .fd = -1, .events = POLLIN } };
	char path[PATH_MAX];
	struct stat st;

	if (!resolve(mount_point, path))
		return 3;
	fds[0].fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fds[0].fd < 0)
		return 3;
	if (pid) {
		fds[1].fd = pidfd(pid);
		if (fds[1].fd < 0)
			return errno == ESRCH ? 1 : 3;
	}
	for (;;) {
		int ready;

		if (is_mounted(fds[0].fd, path) == want)
			/* stat waits until the daemon has answered FUSE_INIT. */
			return want && stat(path, &st) < 0 ? 1 : 0;
		ready = poll(fds, 2, WAIT_MS);
		if (ready == 0)
			return 2;
		if (ready < 0 && errno != EINTR)
			return 3;
		if (fds[1].revents)
			return 1;
	}
}

static int wait_exit(const char *pid)
{
	struct pollfd fd = { .fd = pidfd(pid), .events = POLLIN };

	if (fd.fd < 0)
		return errno == ESRCH ? 0 : 3;
	switch (poll(&fd, 1, WAIT_MS)) {
	case 0:
		return 2;
	case 1:
		return 0;
	default:
		return 3;
	}
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "mounted") == 0)
		return wait_mount(argv[2], true, argv[3]);
	if (argc == 3 && strcmp(argv[1], "unmounted") == 0)
		return wait_mount(argv[2], false, NULL);
	if (argc == 3 && strcmp(argv[1], "exited") == 0)
		return wait_exit(argv[2]);
	fputs("usage: wait-for mounted MOUNTPOINT PID | unmounted MOUNTPOINT | exited "
	      "PID\n",
	      stderr);
	return 3;
}
