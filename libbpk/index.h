/*
 * index.h - a table of rows with names: sorted, each name once, searched.
 */
#ifndef BPK_INDEX_H
#define BPK_INDEX_H

#include "base.h"

/* What every row of a table starts with. */
struct bpk_entry {
	const char *name;
	uint32_t name_size;
	uint32_t order; /* its position when it was read, so that sorting is stable */
};

/*
 * Sort the *@count rows of @row_size bytes by name (bytewise) and leave of equal
 * names the one with the highest order, as a map that is filled in file order
 * would. *@count becomes what is left. A table in order is not moved.
 */
void bpk_index_sort(void *rows, size_t *count, size_t row_size);

/* The row of that name in a sorted table, or NULL. */
const void *bpk_index_find(const void *rows, size_t count, size_t row_size,
			   const char *name, size_t name_size);

#endif
