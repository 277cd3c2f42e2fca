/*
 * read_ahead.c - see read_ahead.h.
 *
 * The kernel takes no more than 128 KiB from the handshake of FUSE; beyond that there is
 * a file in /sys.
 */
#include "read_ahead.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char kib[] = "2048";

void read_ahead_set(uint32_t major, uint32_t minor)
{
	char path[80];
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/class/bdi/%" PRIu32 ":%" PRIu32 "/read_ahead_kb", major, minor);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, kib, strlen(kib));
	close(fd);
}
