/*
 * commit.h - the overlay and the pack to a new pack, put in the old one's place.
 */
#ifndef BPKFS_COMMIT_H
#define BPKFS_COMMIT_H

#include "mount.h"

/*
 * Write what is in @mount to its pack while it is mounted, if anything was edited; the
 * mount goes on over the new pack. STATUS_OK, STATUS_INVALID_LEFT_OUT, or why not;
 * mount->message says it in words. Takes the locks itself.
 */
enum status commit_now(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context);

/* The same; what went wrong is a line of the log, too. 0 or -errno. *@ret_old is the pack
 * that was there before, referred to: to close a file that is replaced takes a while if
 * it is large, and nobody has to wait for that, least of all with the mount's lock. */
int commit_and_tell(struct mount *mount, struct pack **ret_old);

/* The same on a thread of its own: @done is told 0 or -errno from there. 0, or -errno
 * and @done is not called. */
int commit_request(struct mount *mount, void (*done)(void *context, int error),
		   void *context);

/*
 * Write what is in @mount to its pack, if anything was edited. Nothing else may
 * use the mount meanwhile. Fills mount->result and mount->message (empty when all
 * went well). On failure the pack is as it was and the staging area is kept.
 */
void commit_at_unmount(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context);

#endif
