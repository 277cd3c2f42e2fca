/*
 * collect.h - what a new pack is made of: the overlay's entries as they are at one
 * moment, given to a writer; which of them those were, for the mount to go over to
 * the new pack; and which edits could not be among them.
 *
 * Zero it; then collect, release (if that was collected, with the lock), done.
 */
#ifndef BPKFS_COLLECT_H
#define BPKFS_COLLECT_H

#include "rebase.h"
#include "staging.h"

struct collected {
	struct overlay *overlay;
	struct frozen frozen;	 /* what goes into the new pack */
	struct staged **sources; /* staged files that are copied: references */
	size_t source_count;
	size_t source_capacity;
	char left_out[512]; /* names of edits that are invalid, for people */
	size_t left_out_count;
};

/* With the mount's lock. From here on edits go elsewhere, until collected_release(). 0,
 * or -errno with what is wrong in @error. */
int collect_overlay(struct collected *collected, struct overlay *overlay,
		    struct bpk_writer *writer, struct bpk_error *error);
/* The writer is done with them. With the mount's lock; also after a failure. */
void collected_release(struct collected *collected);
/* Let go of the rest; without the lock. */
void collected_done(struct collected *collected);

#endif
