/*
 * supervise.c - see supervise.h.
 */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

_Noreturn void supervise_die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		strerror(errno));
	exit(77);
}

int supervise_install(const struct sock_fprog *program, unsigned int flags)
{
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	if (fd < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
	if (fd < 0)
		supervise_die("cannot install a filter");
	return (int)fd;
}

/* With the flag a signal does not take back what was asked (Linux 5.19). */
static int install_listener(const struct sock_fprog *program)
{
#ifdef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	const unsigned int flags =
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);

	if (fd >= 0)
		return (int)fd;
#endif
	return supervise_install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

static void send_fd(int socket, int fd)
{
	char byte = 0;
	struct iovec data = { &byte, 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .room = "" };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	if (sendmsg(socket, &message, 0) < 0)
		supervise_die("cannot pass the filter on");
}

static int receive_fd(int socket)
{
	char byte;
	struct iovec data = { &byte, 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	int fd;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

void supervise_start(const struct sock_fprog *program,
		     void (*serve)(int filter, const void *context), const void *context)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		supervise_die("socketpair");
	switch (fork()) {
	case -1:
		supervise_die("fork");
	case 0: {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC), filter;

		/* No part of what the command's caller waits for. */
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		setsid();
		close(sockets[1]);
		filter = receive_fd(sockets[0]);
		if (filter >= 0)
			serve(filter, context);
		_exit(0);
	}
	default:
		break;
	}
	send_fd(sockets[1], install_listener(program));
	close(sockets[0]);
	close(sockets[1]);
}
