/*
 * journal.h - edits on disk, so that they outlive the daemon.
 *
 * The journal is one file in the staging folder, written anew and put in place by
 * rename(2): all edits of a mount at one moment, and the pack that they are edits of
 * (inode, size, mtime). The bytes of tensors are in staged files that it names by
 * number. Beside it, while a commit is about to rename, stands which file the new pack
 * is: so whoever comes after a crash knows whether the edits are in the pack already.
 *
 * Nothing in the folder is trusted: another one may have made it.
 */
#ifndef BPKFS_JOURNAL_H
#define BPKFS_JOURNAL_H

#include "mount.h"

enum journal_state {
	JOURNAL_NONE,	 /* nothing to bring back: what is left over may go */
	JOURNAL_EDITS,	 /* edits of this very pack */
	JOURNAL_FOREIGN, /* edits of another pack, or of another state of this one */
	JOURNAL_UNBORN,	 /* edits of a new pack, and this is none */
};

/* Is there something in the staging folder @path that journal_look() would have to look
 * at? Nothing is made or locked. */
bool journal_is_left(const char *path);
/* What the staging folder of a mount has. 0, or -errno when that cannot be read, or
 * -EBADMSG when it is damaged. Before serving. */
int journal_look(const struct mount *mount, enum journal_state *ret_state);

/* Put the edits of a JOURNAL_EDITS back into the mount's overlay, which has none, and
 * remove what the journal does not name. *@ret_count of them. Errors: as above, and
 * -ENOMEM; the overlay is of no more use then. Before serving. */
int journal_replay(struct mount *mount, size_t *ret_count);

/* Write all edits down. On disk, staged bytes included, when this returns 0. Takes the
 * mount's lock itself, and writer_lock for as long as it takes. */
int journal_save(struct mount *mount);

/* A commit is about to rename the file @now tells of over the pack. On disk. */
int journal_announce(struct mount *mount, const struct stat *now);
/* The commit is over: the journal is obsolete (@done), or the pack is as it was. On a
 * @live mount, which is over the new pack by now, edits that were left out and are in
 * the journal are in a new one. The writer lock is held. */
void journal_settle(struct mount *mount, bool done, bool live);

#endif
