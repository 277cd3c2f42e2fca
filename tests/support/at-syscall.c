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
#include "supervise.h"

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

struct fifos {
	const char *ready;
	const char *go;
};

/* Until nobody with the filter is left. */
static void hold(int filter, const void *context)
{
	const struct fifos *fifos = context;
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
			return;
		if (ioctl(filter, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
			continue; /* who called has been killed since */
		if (!held)
			tell_and_wait(fifos->ready, fifos->go, call.pid);
		held = true;
		reply.id = call.id;
		(void)!ioctl(filter, SECCOMP_IOCTL_NOTIF_SEND, &reply);
	}
}

int main(int argc, char **argv)
{
	struct fifos fifos;
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
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 holds ? SECCOMP_RET_USER_NOTIF
			       : SECCOMP_RET_ERRNO |
					 ((uint32_t)atoi(argv[3]) & SECCOMP_RET_DATA)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	fifos = (struct fifos) { argv[3], argv[4] };
	if (holds)
		supervise_start(&program, hold, &fifos);
	else
		supervise_install(&program, 0);
	argv += holds ? 5 : 4;
	execvp(argv[0], argv);
	supervise_die(argv[0]);
}
