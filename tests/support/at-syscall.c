/*
 * at-syscall.c - run a command whose system calls of one name are held or fail, so
 * that a test can look at a moment that would be over too soon (seccomp with user
 * notification; Linux 5.9).
 *
 *	at-syscall hold NAME READY GO COMMAND...
 *	at-syscall fail NAME ERRNO COMMAND...
 *
 * hold: the first such call of the command, or of whatever it starts, waits: the pid
 * of who makes it is written to the FIFO READY, and it goes on once the FIFO GO was
 * opened for writing and closed. Later calls are not held. fail: each gives ERRNO (a
 * number). The command replaces this process; the one that holds ends with it.
 *
 * 77: the system does not allow such filters.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "fsync", SYS_fsync },
	{ "mount", SYS_mount },
	{ "umount2", SYS_umount2 },
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "at-syscall: %s: %s\n", what, strerror(errno));
	exit(77);
}

static int install(int number, uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };
	unsigned flags =
		action == SECCOMP_RET_USER_NOTIF ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

	if (fd < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (fd < 0)
		die("cannot install a filter");
	return (int)fd;
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
		die("cannot pass the filter on");
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

static void tell_and_wait(const char *ready, const char *go, uint32_t pid)
{
	int fd = open(ready, O_WRONLY | O_CLOEXEC);
	char byte;

	if (fd >= 0) {
		dprintf(fd, "%u\n", pid);
		close(fd);
	}
	fd = open(go, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (read(fd, &byte, 1) > 0)
		;
	close(fd);
}

/* Until nobody with the filter is left. */
static _Noreturn void hold(int filter, const char *ready, const char *go)
{
	struct pollfd some = { .fd = filter, .events = POLLIN };
	bool held = false;

	for (;;) {
		struct seccomp_notif call = { .id = 0 };
		struct seccomp_notif_resp reply = {
			.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE
		};

		if (poll(&some, 1, -1) < 0)
			continue;
		if (!(some.revents & POLLIN))
			_exit(0);
		if (ioctl(filter, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
			continue; /* who called has been killed since */
		if (!held)
			tell_and_wait(ready, go, call.pid);
		held = true;
		reply.id = call.id;
		(void)!ioctl(filter, SECCOMP_IOCTL_NOTIF_SEND, &reply);
	}
}

static void start_holder(int number, const char *ready, const char *go)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		die("socketpair");
	switch (fork()) {
	case -1:
		die("fork");
	case 0: {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC), filter;

		/* No part of what the command's caller waits for. */
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		setsid();
		close(sockets[1]);
		filter = receive_fd(sockets[0]);
		if (filter < 0)
			_exit(0);
		hold(filter, ready, go);
	}
	default:
		break;
	}
	send_fd(sockets[1], install(number, SECCOMP_RET_USER_NOTIF));
	close(sockets[0]);
	close(sockets[1]);
}

int main(int argc, char **argv)
{
	bool holds = argc > 5 && strcmp(argv[1], "hold") == 0;
	bool fails = argc > 4 && strcmp(argv[1], "fail") == 0;
	int number = -1;

	for (size_t i = 0; (holds || fails) && i < sizeof(calls) / sizeof(*calls); i++)
		if (strcmp(calls[i].name, argv[2]) == 0)
			number = calls[i].number;
	if (number < 0) {
		fputs("usage: at-syscall hold NAME READY GO COMMAND... |\n"
		      "       at-syscall fail NAME ERRNO COMMAND...\n",
		      stderr);
		return 77;
	}
	if (holds)
		start_holder(number, argv[3], argv[4]);
	else
		install(number,
			SECCOMP_RET_ERRNO | ((uint32_t)atoi(argv[3]) & SECCOMP_RET_DATA));
	argv += holds ? 5 : 4;
	execvp(argv[0], argv);
	die(argv[0]);
}
