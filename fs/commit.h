/*
 * commit.h - the overlay and the pack to a new pack, put in the old one's place.
 */
#ifndef BPKFS_COMMIT_H
#define BPKFS_COMMIT_H

#include "mount.h"

/*
 * Write what is in @mount to its pack, if anything was edited. Nothing else may
 * use the mount meanwhile. Fills mount->result and mount->message (empty when all
 * went well). On failure the pack is as it was and the staging area is kept.
 */
void commit_at_unmount(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context);

#endif
