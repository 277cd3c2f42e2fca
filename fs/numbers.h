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
 * Pure arithmetic.
 */
#ifndef BPKFS_NUMBERS_H
#define BPKFS_NUMBERS_H

#include "overlay.h"

struct numbers {
	uint64_t root;	/* what the root is told as; 0: all are told as they are */
	uint64_t first; /* of the range */
	unsigned index_bits, prefix_bits;
};

/* For the pack of @overlay, which nobody writes to: all but root and first. Returns how
 * many numbers the range has. */
uint64_t numbers_init(struct numbers *numbers, const struct overlay *overlay);

/* What the kernel is told of the node of number @id. */
uint64_t numbers_tell(const struct numbers *numbers, uint64_t id);
/* And back; false for what no node can have been told as. */
bool numbers_find(const struct numbers *numbers, uint64_t told, uint64_t *ret_id);

#endif
