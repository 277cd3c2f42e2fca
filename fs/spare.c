/*
 * spare.c - see spare.h. The kernel gives out the lowest number that is free, so a high
 * one tells how many are in use, and nothing has to be counted.
 */
#include "spare.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

/* As many as some commits and look-ups at once need, but not most of what there is. */
#define SPARE_MAX 64
#define SPARE_PART 4

void spare_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int spare_keep(int fd)
{
	struct rlimit limit;
	rlim_t spare;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return fd;
	spare = limit.rlim_cur / SPARE_PART;
	if (spare > SPARE_MAX)
		spare = SPARE_MAX;
	if ((rlim_t)fd < limit.rlim_cur - spare)
		return fd;
	close(fd);
	return -EMFILE;
}
