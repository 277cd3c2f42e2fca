/*
 * reading.h - the bytes of one reply to a read, named piece by piece.
 *
 * A file is told as the pieces that it is made of, from its first byte on; what
 * the read asked for is kept. Bytes in the pack stay where they are: the reply
 * hands the kernel their addresses in the mapping, and nothing here follows one.
 * Knows nothing of entries or FUSE.
 *
 * Locks: the add functions with the mount's lock, as what is named belongs to it;
 * reading_finish() without, as it may read from disk.
 */
#ifndef BPKFS_READING_H
#define BPKFS_READING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "pack.h"
#include "staging.h"

struct reading {
	uint64_t off; /* what is asked for */
	size_t size;
	uint64_t at; /* where the next piece starts in the file */
	size_t used; /* bytes that are named */
	struct piece *pieces;
	size_t count;
	size_t capacity;
	struct pack *pack; /* owned reference, once a piece lies in it */
	struct iovec *iov;
};

void reading_init(struct reading *reading, uint64_t off, size_t size);
/* After the reply. */
void reading_done(struct reading *reading);

/* True when no later piece can add anything. */
bool reading_full(const struct reading *reading);

/* The next @size bytes of the file. 0 or -ENOMEM. */

/* A copy of @text. */
int reading_add_text(struct reading *reading, const char *text, uint64_t size);
/* Bytes of @pack, mapped at @data, that lie at @pack_off in it. All such pieces are
 * of one pack. */
int reading_add_pack(struct reading *reading, struct pack *pack, const char *data,
		     uint64_t pack_off, uint64_t size);
/* The start of a staged file (takes a reference of its own); zeros where an edit has made
 * it shorter than @size by now. */
int reading_add_staged(struct reading *reading, struct staged *staged, uint64_t size);

/*
 * Make an array of it all for writev(2), reading->used bytes; it lives until
 * reading_done(). Many small pieces of the pack are read from its file instead, since
 * one writev takes no more than IOV_MAX. 0, -ENOMEM, or an error of pread(2) (-EIO
 * where the pack has become shorter, or a staged file without an edit of it).
 */
int reading_finish(struct reading *reading, const struct iovec **ret_iov, int *ret_count);

#endif
