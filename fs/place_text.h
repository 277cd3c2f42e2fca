/*
 * place_text.h - what a directory of packs tells in text: where a link in latest/ leads,
 * why a file is no pack, .bpkfs/status and .bpkfs/changes. No lock is held.
 */
#ifndef BPKFS_PLACE_TEXT_H
#define BPKFS_PLACE_TEXT_H

#include "library.h"

/* Of a PLACE_LINK, malloc'd. 0, -ENOENT or another -errno. */
int place_target(struct library *library, const struct place *place, char **ret_target);
/* Why it is shown as a file, when it is a *.bpk or something that cannot be opened. */
bool place_error(struct library *library, const struct place *place,
		 struct bpk_error *ret_error);
/* .bpkfs/status, one line of JSON, or .bpkfs/changes, a line for each edit of each pack;
 * malloc'd. 0 or -ENOMEM. */
int place_tell(struct library *library, const struct place *place, char **ret_text,
	       size_t *ret_size);

#endif
