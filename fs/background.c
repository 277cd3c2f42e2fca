/*
 * background.c - see background.h.
 */
#include "background.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The caller's side. */
static enum status await_child(int fd, pid_t child)
{
	char byte;
	ssize_t got;
	int status;

	do
		got = read(fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return STATUS_OK;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_MOUNT_POINT;
	return WIFEXITED(status) && WEXITSTATUS(status) ? (enum status)WEXITSTATUS(status)
							: STATUS_MOUNT_POINT;
}

enum status background_start(struct background *background, bool *ret_caller)
{
	int fds[2];
	pid_t child;

	*ret_caller = true;
	if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0) {
		log_line("cannot go to the background: %s", strerror(errno));
		return STATUS_MOUNT_POINT;
	}
	if (child) {
		enum status status;

		close(fds[1]);
		status = await_child(fds[0], child);
		close(fds[0]);
		return status;
	}
	close(fds[0]);
	background->ready_fd = fds[1];
	setsid();
	*ret_caller = false;
	return STATUS_OK;
}

void background_ready(struct background *background)
{
	int null;

	if (background->ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	log_to_syslog();
	(void)!write(background->ready_fd, "", 1);
	close(background->ready_fd);
	background->ready_fd = -1;
}
