/*
 * target.h - the file in whose place commits put the new pack: the pack that is
 * mounted, another file (-o output), or none yet (-o create). It knows what has to be
 * there still when a commit comes, and holds the lock that says that it has a writer.
 *
 * Before serving anybody's, then guarded by mount.writer_lock.
 */
#ifndef BPKFS_TARGET_H
#define BPKFS_TARGET_H

#include <sys/types.h>

#include "pack.h"

struct target {
	char *path;	  /* absolute, symlinks resolved */
	bool there;	  /* or nothing may be there when a commit comes */
	struct stat stat; /* of what is there, as of the mount or the last commit */
	int fd;		  /* -o overwrite: open, for the lock; else -1 */
	bool unsure;	  /* the last commit's pack, and its name may not be on disk */
};

/* It is @pack. */
void target_is_pack(struct target *target, const struct pack *pack);
/* It is what is at its path, which has to be a regular file that can be read. 0 or
 * -errno: -EISDIR, -EINVAL for what is no file, those of open(2). */
int target_open(struct target *target);
void target_done(struct target *target); /* twice, too */

/* Is what was there, or nothing, still what is there? */
bool target_unchanged(const struct target *target);
/* When it is unsure, its name is on disk after this. 0 or -errno. */
int target_flush(struct target *target, const struct pack *pack);
/* Keep other writers away; see lock_file(). @pack is what is mounted. */
int target_lock(const struct target *target, const struct pack *pack, pid_t *ret_owner);
void target_unlock(const struct target *target, const struct pack *pack);

#endif
