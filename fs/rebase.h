/*
 * rebase.h - a mount goes on over the pack that a commit of it has just made.
 *
 * A frozen is what the mount was when the commit began: which entry each entry of
 * the new pack was made of. What was edited since then stays an edit, of the new
 * pack now. Inode numbers stay, so what is open or mapped goes on.
 *
 * All with the mount's lock.
 */
#ifndef BPKFS_REBASE_H
#define BPKFS_REBASE_H

#include "mount.h"

struct frozen_entry {
	size_t base;	   /* of the old pack, or NO_BASE */
	struct item *item; /* owned reference, or NULL */
	uint64_t id;
};

struct frozen {
	uint64_t stamp;				       /* struct overlay.stamp */
	struct frozen_entry *entries[PACK_KIND_COUNT]; /* in name order */
	size_t counts[PACK_KIND_COUNT];
	size_t capacities[PACK_KIND_COUNT];
};

/* The next entry, in name order within its kind, goes into the pack. 0 or -ENOMEM. */
int frozen_add(struct frozen *frozen, struct overlay *overlay, const struct entry *entry);
void frozen_done(struct frozen *frozen, struct overlay *overlay);

/* From now on @mount is over @pack. 0, -ENOMEM, or -EINVAL when @pack is not what
 * @frozen tells; then the mount is as it was. */
int mount_rebase(struct mount *mount, struct pack *pack, const struct frozen *frozen);

#endif
