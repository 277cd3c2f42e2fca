/*
 * listing.h - what a folder held when somebody began to read it. Offsets of readdir are
 * positions in it, so what is read is whole whatever happens meanwhile.
 */
#ifndef BPKFS_LISTING_H
#define BPKFS_LISTING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct listed {
	size_t name_at; /* in names, with a NUL behind it */
	uint64_t id;	/* as the kernel is told */
	mode_t type;	/* S_IFDIR, S_IFREG, S_IFLNK */
};

struct listing {
	struct listed *entries;
	size_t count;
	size_t capacity;
	char *names;
	size_t names_size;
	size_t names_capacity;
};

/* 0 or -ENOMEM. */
int listing_add(struct listing *listing, const char *name, size_t size, uint64_t id,
		mode_t type);
void listing_free(struct listing *listing); /* NULL accepted */

#endif
