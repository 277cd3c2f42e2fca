/*
 * numbers.h - the inode numbers of one pack among many.
 *
 * In a mount of one pack the kernel is told the numbers of node.h as they are. In a
 * directory of packs two packs have the same ones, so each pack that is opened is given
 * a range of numbers that is its alone, as many as it can need and no more: a number of
 * node.h on a mount where nothing can change is made of an index of an entry and the
 * length of a prefix, and both have as many bits as this pack has use for. So a number
 * says all there is to know, nothing is kept for what the kernel knows, and the pack can
 * be closed and opened again meanwhile.
 *
 * Where a pack may be edited, its numbers are counted or hashes, too, so they are kept as
 * on any writable mount. Each such pack has a range of one size, wide enough for all that
 * can ever be counted in it, and the hashes are no wider (NUMBERS_HASH_BITS; node.h).
 *
 * Pure arithmetic.
 */
#ifndef BPKFS_NUMBERS_H
#define BPKFS_NUMBERS_H

#include "overlay.h"

struct numbers {
	uint64_t root;	/* what the root is told as; 0: all are told as they are */
	uint64_t first; /* of the range */
	unsigned index_bits, prefix_bits;
	bool wide; /* of a pack that may be edited, where these are not used */
};

#define NUMBERS_HASH_BITS 36
/* Of a pack that may be edited. */
#define NUMBERS_WIDE (UINT64_C(1) << (NUMBERS_HASH_BITS + 4))

/* For the pack of @overlay: all but root and first. Returns how many numbers the range
 * has. */
uint64_t numbers_init(struct numbers *numbers, const struct overlay *overlay);

/* What the kernel is told of the node of number @id. */
uint64_t numbers_tell(const struct numbers *numbers, uint64_t id);
/* And back; false for what no node can have been told as. */
bool numbers_find(const struct numbers *numbers, uint64_t told, uint64_t *ret_id);

#endif
