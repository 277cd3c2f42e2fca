/*
 * lock.c - see lock.h.
 *
 * flock(2), not fcntl(2): it belongs to the open file, so a copy of the descriptor that
 * is closed, as a commit does, does not take it away.
 */
#include "lock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Lines of /proc/locks: "1: FLOCK  ADVISORY  WRITE 4711 08:01:131 0 EOF". */
static pid_t find_owner(const struct stat *st)
{
	FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	pid_t owner = 0;

	while (locks && !owner && fgets(line, sizeof(line), locks)) {
		unsigned major, minor;
		uint64_t inode;
		int pid;

		if (sscanf(line, "%*u: FLOCK %*s %*s %d %x:%x:%" SCNu64, &pid, &major,
			   &minor, &inode) == 4 &&
		    inode == st->st_ino && makedev(major, minor) == st->st_dev && pid > 0)
			owner = pid;
	}
	if (locks)
		fclose(locks);
	return owner;
}

void unlock_file(int fd)
{
	(void)flock(fd, LOCK_UN);
}

int lock_file(int fd, pid_t *ret_owner)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	*ret_owner = fstat(fd, &st) < 0 ? 0 : find_owner(&st);
	return -EBUSY;
}
