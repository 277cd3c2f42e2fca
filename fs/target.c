/*
 * target.c - see target.h.
 */
#include "target.h"
#include "lock.h"
#include "staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void drop_fd(struct target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
}

void target_is_pack(struct target *target, const struct pack *pack)
{
	drop_fd(target);
	target->there = true;
	target->stat = pack->stat;
}

int target_open(struct target *target)
{
	int fd = open(target->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		error = -errno;
	else if (!S_ISREG(st.st_mode))
		error = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (error) {
		close(fd);
		return error;
	}
	drop_fd(target);
	target->fd = fd;
	target->there = true;
	target->stat = st;
	return 0;
}

void target_done(struct target *target)
{
	drop_fd(target);
	free(target->path);
	target->path = NULL;
}

bool target_unchanged(const struct target *target)
{
	struct stat now;

	/* A symlink that leads nowhere is something, too. */
	if (!target->there)
		return lstat(target->path, &now) < 0 && errno == ENOENT;
	return stat(target->path, &now) == 0 && same_state(&target->stat, &now);
}

int target_flush(struct target *target, const struct pack *pack)
{
	char *folder, *slash;
	int error;

	if (!target->unsure)
		return 0;
	folder = strdup(target->path);
	if (!folder)
		return -ENOMEM;
	slash = strrchr(folder, '/');
	slash[slash == folder] = '\0';
	error = staging_flush_folder(AT_FDCWD, folder, bpk_reader_fd(pack->reader));
	free(folder);
	target->unsure = error != 0;
	return error;
}

static int locked_fd(const struct target *target, const struct pack *pack)
{
	return target->fd >= 0 ? target->fd : bpk_reader_fd(pack->reader);
}

int target_lock(const struct target *target, const struct pack *pack, pid_t *ret_owner)
{
	if (!target->there)
		return 0;
	return lock_file(locked_fd(target, pack), ret_owner);
}

void target_unlock(const struct target *target, const struct pack *pack)
{
	if (target->there)
		unlock_file(locked_fd(target, pack));
}
