/*
 * writers.h - the packs of a writable directory that are edited: how one becomes the
 * writer of its file, and what is done with all of them.
 *
 * Such a pack is held: its place stands for its name in its folder, whatever lies there
 * now, and stays open. Each is written on its own, as if it were mounted alone; what is
 * asked of a folder is asked of each pack below it, and a failure of one is no reason to
 * leave the others alone.
 *
 * All take the locks themselves.
 */
#ifndef BPKFS_WRITERS_H
#define BPKFS_WRITERS_H

#include "library.h"
#include "status.h"

/* The text of how all commits went, in one line of the log. */
#define CONTROL_MESSAGE_SIZE 2000

/* What has been left of an earlier mount comes back, of a pack that is just opened and
 * that nobody else knows, or goes if no edit is in it; nothing is made, and nothing stays
 * locked without an edit. */
void writers_bring_back(const struct library *library, struct mount *mount);

/* Have @fn done with each pack that is held, or was refused an edit, and is @top or below
 * it, in the order of their first edits; no lock is held. Non-zero stops and is given. */
int writers_each(struct library *library, const struct place *top,
		 int (*fn)(void *context, struct place *place), void *context);

/* Commit those at @top and below, one after the other, on a thread of its own: @done is
 * told from there 0 or -errno, that of the first one that failed. 1 when there is none to
 * commit, -errno; then @done is not called. */
int writers_commit(struct library *library, const struct place *top,
		   void (*done)(void *context, int error), void *context);

/* How the last commit of each at @top and below went: one status, of which those come
 * first that left all edits out of a pack, and one line of text, empty when all went
 * well. */
enum status writers_result(struct library *library, const struct place *top,
			   char *message, size_t size);
/* The same, of a commit of all when nobody else uses the library any more. Each that
 * failed is a line of the log. */
enum status writers_commit_at_unmount(struct library *library,
				      int (*progress)(void *context, uint64_t done,
						      uint64_t total),
				      void *context, char *message, size_t size);
/* At unmount the edits are dropped, or not after all. 0 or -ENOMEM, and then it is as it
 * was. */
int writers_discard(struct library *library, bool discard);

#endif
