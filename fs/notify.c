/*
 * notify.c - see notify.h.
 */
#include "notify.h"
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	SEND_SECONDS = 5, /* a manager that reads nothing holds us up no longer */
	EXTEND_EVERY_MS = 5000,
	EXTEND_SECONDS = 120, /* one fsync may take that long */
};

void notify_init(struct notify *notify, bool wanted)
{
	const char *name = getenv("NOTIFY_SOCKET");
	size_t size = wanted && name ? strlen(name) : 0;

	*notify = (struct notify) { .address = { .sun_family = AF_UNIX } };
	if (size && ((name[0] != '/' && name[0] != '@') || size < 2 ||
		     size >= sizeof(notify->address.sun_path))) {
		log_line("$NOTIFY_SOCKET is no socket that can be told: %s", name);
	} else if (size) {
		memcpy(notify->address.sun_path, name, size);
		if (name[0] == '@') /* an abstract name: its length counts, no NUL */
			notify->address.sun_path[0] = '\0';
		notify->address_size =
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
	}
	unsetenv("NOTIFY_SOCKET");
}

static void tell(const struct notify *notify, const char *text)
{
	const struct timeval limit = { .tv_sec = SEND_SECONDS };
	int fd;

	if (!notify->address_size)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL,
		   (const struct sockaddr *)&notify->address, notify->address_size) < 0)
		log_line("$NOTIFY_SOCKET cannot be told: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
}

void notify_ready(struct notify *notify)
{
	tell(notify, "READY=1");
}

void notify_stopping(struct notify *notify)
{
	tell(notify, "STOPPING=1");
}

void notify_progress(struct notify *notify, uint64_t done, uint64_t total)
{
	struct timespec now;
	int64_t now_ms;
	char text[160];

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	if (notify->extended_ms && now_ms - notify->extended_ms < EXTEND_EVERY_MS)
		return;
	notify->extended_ms = now_ms;
	snprintf(text, sizeof(text),
		 "STATUS=Committing: %" PRIu64 " of %" PRIu64
		 " bytes\nEXTEND_TIMEOUT_USEC=%d000000",
		 done, total, EXTEND_SECONDS);
	tell(notify, text);
}
