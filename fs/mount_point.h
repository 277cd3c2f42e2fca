/*
 * mount_point.h - the folder a pack is mounted on: found or made, unmounted, and
 * removed again when bpkfs made it. It knows nothing of FUSE.
 */
#ifndef BPKFS_MOUNT_POINT_H
#define BPKFS_MOUNT_POINT_H

#include <stdbool.h>

#include "status.h"

struct mount_point {
	char *path; /* absolute, symlinks resolved */
	bool made;  /* by us: goes with the mount */
};

/* Find @given, or make it when it is missing. Says what is wrong. */
enum status mount_point_find(struct mount_point *point, const char *given);
/* Make it if it has gone since it was found: is it there anew? */
bool mount_point_again(struct mount_point *point);
/* Free, and remove the folder if mount_point_find() made it and it is empty. */
void mount_point_done(struct mount_point *point);
/* Free; the folder stays for another process to remove. */
void mount_point_leave(struct mount_point *point);

/* Say why @path cannot be looked at, with what to do about a stale mount. */
void mount_point_complain(const char *path, int error);

/*
 * Unmount what is at @path (absolute), as the kernel or fusermount3 allows. 0,
 * -EBUSY when it is in use (or fusermount3 refused), -EINVAL when nothing is mounted
 * there, -ENOENT when fusermount3 is needed and missing. Any thread.
 */
int mount_point_detach(const char *path);

#endif
