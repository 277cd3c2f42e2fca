/*
 * table.h - things with a name, in the order they came, found by name.
 *
 * Looking up and adding are O(log n) compares whatever the names are: below is
 * the C library's balanced tree (tsearch(3)), so there is no hash that a hostile
 * pack could aim at and no seed to fetch.
 */
#ifndef BPK_TABLE_H
#define BPK_TABLE_H

#include "base.h"

/* The first member of whatever a table holds; each thing is one malloc() block. */
struct bpk_named {
	const char *name; /* inside the block */
	size_t name_size;
	size_t index; /* in items; the table's */
};

struct bpk_table {
	struct bpk_named **items; /* in the order of bpk_table_put() */
	size_t count;
	size_t capacity;
	void *tree;
};

/* Free the table and everything in it. NULL is accepted. */
void bpk_table_done(struct bpk_table *table);

struct bpk_named *bpk_table_find(const struct bpk_table *table, const char *name,
				 size_t name_size);

/*
 * Take @named, in the place of the one of that name, which is freed, or behind
 * all others. 0, or -ENOMEM: then @named is still the caller's and the table as
 * it was.
 */
int bpk_table_put(struct bpk_table *table, struct bpk_named *named);

/* The items in bytewise order of their names, a new array for free(3); NULL when
 * out of memory, which an empty table never is. */
struct bpk_named **bpk_table_sorted(const struct bpk_table *table);

#endif
