/*
 * background.c - see background.h.
 */
#include "background.h"
#include "log.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

void background_fill_standard(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void background_close_inherited(void)
{
	/* Kernels before 5.9 cannot: then they stay open, as they do for most. */
	(void)!close_range(STDERR_FILENO + 1, ~0U, 0);
}

/* The child's exit status, once it has ended. */
static enum status status_of(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_MOUNT_POINT;
	if (WIFSIGNALED(status))
		log_line("the daemon was killed by signal %d", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) ? (enum status)WEXITSTATUS(status)
							: STATUS_MOUNT_POINT;
}

/* The caller's side. */
static enum status await_child(int fd, pid_t child)
{
	struct pollfd fds[] = { { .fd = fd, .events = POLLIN },
				{ .fd = signals_open(), .events = POLLIN } };
	ssize_t got = -1;
	char byte;

	while (got < 0) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents && signals_read(fds[1].fd))
			kill(child, SIGTERM);
		if (fds[0].revents)
			got = read(fd, &byte, 1);
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return got == 1 ? STATUS_OK : status_of(child);
}

enum status background_start(struct background *background, bool *ret_caller)
{
	int fds[2], null;
	pid_t child;

	*ret_caller = true;
	/* Opened now, while it can be told that it cannot: a daemon that keeps the
	 * caller's output open keeps whoever reads that waiting. */
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0) {
		log_line("cannot go to the background: %s", strerror(errno));
		return STATUS_MOUNT_POINT;
	}
	if (child) {
		enum status status;

		close(null);
		close(fds[1]);
		status = await_child(fds[0], child);
		close(fds[0]);
		return status;
	}
	close(fds[0]);
	background->ready_fd = fds[1];
	background->null_fd = null;
	setsid();
	*ret_caller = false;
	return STATUS_OK;
}

bool background_ready(struct background *background)
{
	bool heard;

	if (background->ready_fd < 0)
		return true;
	dup2(background->null_fd, STDIN_FILENO);
	dup2(background->null_fd, STDOUT_FILENO);
	dup2(background->null_fd, STDERR_FILENO);
	close(background->null_fd);
	log_to_syslog();
	heard = write(background->ready_fd, "", 1) == 1;
	close(background->ready_fd);
	background->ready_fd = -1;
	return heard;
}
