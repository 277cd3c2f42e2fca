/*
 * content.h - what reads of an entry see: (entry, view) to bytes.
 *
 * Text (scalars, metadata) and the headers of npy/ are rendered here; the bytes of
 * a tensor are named, not touched: see reading.h. Call with the mount's lock.
 */
#ifndef BPKFS_CONTENT_H
#define BPKFS_CONTENT_H

#include "overlay.h"
#include "reading.h"

/* How an entry is looked at. */
struct view {
	bool npy;    /* through npy/ */
	bool writer; /* with a handle that writes: text that does not count yet */
};

/* Its size as stat(2) shows it. 0 or -ENOMEM. */
int content_size(const struct overlay *overlay, const struct entry *entry,
		 struct view view, uint64_t *ret_size);
/* Tell @reading what the file is made of. 0 or -ENOMEM. */
int content_read(const struct overlay *overlay, const struct entry *entry,
		 struct view view, struct reading *reading);
/* The whole of a text, malloc'd. 0 or -ENOMEM. */
int content_text(const struct overlay *overlay, const struct entry *entry,
		 struct view view, char **ret_text, size_t *ret_size);
/* True for scalars and metadata. */
bool content_is_text(const struct entry *entry);

#endif
