/*
 * index.c - tables of named rows. Knows of a row only its struct bpk_entry.
 *
 * A table beats a hash here: packs come sorted from Burn's writer, all uses walk
 * in name order, and nothing in a file can make it slower than n log n.
 */
#include "index.h"

static const struct bpk_entry *row_at(const void *rows, size_t row_size, size_t index)
{
	return (const void *)((const char *)rows + index * row_size);
}

static int compare_names(const struct bpk_entry *a, const struct bpk_entry *b)
{
	return bpk_name_compare(a->name, a->name_size, b->name, b->name_size);
}

static int compare_rows(const void *left, const void *right)
{
	const struct bpk_entry *a = left, *b = right;
	int order = compare_names(a, b);

	if (order)
		return order;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool is_sorted(const void *rows, size_t count, size_t row_size)
{
	for (size_t i = 1; i < count; i++)
		if (compare_names(row_at(rows, row_size, i - 1),
				  row_at(rows, row_size, i)) >= 0)
			return false;
	return true;
}

void bpk_index_sort(void *rows, size_t *count, size_t row_size)
{
	size_t kept = 0;

	if (is_sorted(rows, *count, row_size))
		return;
	qsort(rows, *count, row_size, compare_rows);
	for (size_t i = 0; i < *count; i++) {
		const struct bpk_entry *row = row_at(rows, row_size, i);

		/* Equal names lie together, the last of them stays. */
		if (i + 1 < *count && !compare_names(row, row_at(rows, row_size, i + 1)))
			continue;
		if (kept != i)
			memcpy((char *)rows + kept * row_size, row, row_size);
		kept++;
	}
	*count = kept;
}

const void *bpk_index_find(const void *rows, size_t count, size_t row_size,
			   const char *name, size_t name_size)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct bpk_entry *row = row_at(rows, row_size, middle);
		int order = bpk_name_compare(row->name, row->name_size, name, name_size);

		if (!order)
			return row;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
