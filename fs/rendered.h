/*
 * rendered.h - the files that describe the whole pack: index.tsv, pack.json and
 * pack.safetensors. Each is a text, and for the last one the bytes of all tensors
 * behind it, which are named and not touched.
 *
 * One struct rendered shows one state of the mount for good: after an edit there
 * is another, as if the file was replaced by rename(2), so whoever has it open
 * goes on reading what fits together. Its size is kept; its text only while
 * somebody has it open, since it may be as large as the metadata of the pack.
 *
 * Locks: all with the mount's lock.
 */
#ifndef BPKFS_RENDERED_H
#define BPKFS_RENDERED_H

#include "overlay.h"
#include "reading.h"

enum rendered_kind {
	RENDERED_INDEX,
	RENDERED_JSON,
	RENDERED_SAFETENSORS,
};
#define RENDERED_COUNT 3

struct rendered {
	unsigned refs;
	uint64_t id; /* inode number */
	enum rendered_kind kind;
	uint64_t edits; /* the state it shows: struct mount.edits */
	struct timespec mtime;
	uint64_t size; /* of the whole file */
	unsigned opens;
	char *text; /* NULL while nobody has it open */
	size_t text_size;
	/* Of pack.safetensors: what follows the text. offs[k] is where part k starts
	 * behind it, offs[part_count] the end. */
	struct pack *pack; /* owned reference, with the text */
	struct part *parts;
	uint64_t *offs;
	size_t part_count;
};

/* Show what @overlay is now. 0 with a reference for the caller, -ENOMEM, or -EFBIG
 * for a header that no reader of safetensors would take. */
int rendered_new(const struct overlay *overlay, enum rendered_kind kind, uint64_t id,
		 uint64_t edits, struct timespec mtime, struct rendered **ret_rendered);
struct rendered *rendered_ref(struct rendered *rendered);
void rendered_unref(struct rendered *rendered); /* NULL accepted */

/* Somebody opens it. @edits is the state that @overlay is in. 0, -ENOMEM, or
 * -ESTALE when that is not what it shows and nobody else has it open. */
int rendered_open(struct rendered *rendered, const struct overlay *overlay,
		  uint64_t edits);
void rendered_close(struct rendered *rendered);
/* Tell @reading what an open one is made of. 0 or -ENOMEM. */
int rendered_read(const struct rendered *rendered, struct reading *reading);

#endif
