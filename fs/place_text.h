/*
 * place_text.h - what a directory of packs tells in text: where a link in latest/ leads,
 * why a file is no pack, and .bpkfs/status. No lock is held.
 */
#ifndef BPKFS_PLACE_TEXT_H
#define BPKFS_PLACE_TEXT_H

#include "library.h"

#define PLACE_ERROR_ATTRIBUTE "user.bpk.error"

/* Of a PLACE_LINK, malloc'd. 0, -ENOENT or another -errno. */
int place_target(struct library *library, const struct place *place, char **ret_target);
/* Why it is shown as a file, when it is a *.bpk or something that cannot be opened. */
bool place_error(struct library *library, const struct place *place,
		 struct bpk_error *ret_error);
/* One line of JSON, malloc'd. 0 or -ENOMEM. */
int place_status(struct library *library, char **ret_text, size_t *ret_size);

#endif
