/*
 * listing.c - see listing.h.
 */
#include "listing.h"
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int listing_add(struct listing *listing, const char *name, size_t size, uint64_t id,
		mode_t type)
{
	if (bpk_grow((void **)&listing->entries, &listing->capacity, listing->count + 1,
		     sizeof(*listing->entries)) ||
	    bpk_grow((void **)&listing->names, &listing->names_capacity,
		     listing->names_size + size + 1, 1))
		return -ENOMEM;
	listing->entries[listing->count++] =
		(struct listed) { listing->names_size, id, type };
	memcpy(listing->names + listing->names_size, name, size);
	listing->names[listing->names_size + size] = '\0';
	listing->names_size += size + 1;
	return 0;
}

void listing_free(struct listing *listing)
{
	if (!listing)
		return;
	free(listing->entries);
	free(listing->names);
	free(listing);
}
