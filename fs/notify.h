/*
 * notify.h - telling a service manager (systemd's sd_notify protocol): one datagram to
 * the socket that $NOTIFY_SOCKET names. Whatever is wrong with that socket is the
 * manager's concern; a mount does not fail for it.
 */
#ifndef BPKFS_NOTIFY_H
#define BPKFS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
	struct sockaddr_un address;
	socklen_t address_size; /* 0: nobody to tell */
	int64_t extended_ms;	/* when notify_progress() last told */
};

/* Take the socket's name out of the environment, so that no child process inherits
 * it, and use it when @wanted. Says when it is none that can be used. */
void notify_init(struct notify *notify, bool wanted);
void notify_ready(struct notify *notify);
void notify_stopping(struct notify *notify);
/* A commit goes on: @done of @total bytes. Asks for time to finish it, at most every
 * few seconds, so that a large one is not killed half way. */
void notify_progress(struct notify *notify, uint64_t done, uint64_t total);

#endif
