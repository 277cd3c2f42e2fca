/*
 * table.c - things with a name; see table.h.
 *
 * Invariant: items[i]->index == i, and the tree holds exactly the items.
 */
#include "table.h"

#include <errno.h>
#include <search.h>

static int compare(const void *a, const void *b)
{
	const struct bpk_named *x = a, *y = b;

	return bpk_name_compare(x->name, x->name_size, y->name, y->name_size);
}

static int compare_items(const void *a, const void *b)
{
	return compare(*(struct bpk_named *const *)a, *(struct bpk_named *const *)b);
}

static void keep(void *node)
{
	(void)node; /* the items array owns it */
}

void bpk_table_done(struct bpk_table *table)
{
	if (!table)
		return;
	tdestroy(table->tree, keep);
	for (size_t i = 0; i < table->count; i++)
		free(table->items[i]);
	free(table->items);
	*table = (struct bpk_table) { 0 };
}

struct bpk_named *bpk_table_find(const struct bpk_table *table, const char *name,
				 size_t name_size)
{
	struct bpk_named key = { .name = name, .name_size = name_size };
	struct bpk_named *const *node = tfind(&key, &table->tree, compare);

	return node ? *node : NULL;
}

int bpk_table_put(struct bpk_table *table, struct bpk_named *named)
{
	void *items = table->items;
	struct bpk_named **node, *old;

	if (bpk_grow(&items, &table->capacity, table->count + 1, sizeof(*table->items)) <
	    0)
		return -ENOMEM;
	table->items = items;
	node = tsearch(named, &table->tree, compare);
	if (!node)
		return -ENOMEM;
	old = *node;
	if (old == named) {
		named->index = table->count++;
	} else {
		named->index = old->index;
		*node = named;
		free(old);
	}
	table->items[named->index] = named;
	return 0;
}

struct bpk_named **bpk_table_sorted(const struct bpk_table *table)
{
	/* calloc(0) may be NULL, which would read as out of memory. */
	struct bpk_named **sorted =
		calloc(table->count ? table->count : 1, sizeof(struct bpk_named *));

	if (!sorted || !table->count)
		return sorted;
	memcpy(sorted, table->items, table->count * sizeof(*sorted));
	/* No two names are equal, so a sort that is not stable gives the same. */
	qsort(sorted, table->count, sizeof(*sorted), compare_items);
	return sorted;
}
