/*
 * restore.c - an overlay put together again from what a journal tells. See overlay.h.
 *
 * A journal lies in a folder that anybody may have made, so nothing it says is taken
 * for granted: what no series of edits leads to is refused.
 */
#include "base.h"
#include "overlay_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct item *overlay_blank(struct overlay *overlay, enum item_kind kind, const char *name,
			   size_t size)
{
	struct item *item = overlay_item_new(overlay, kind, name, size);

	if (item)
		item->id = overlay_new_id(overlay);
	return item;
}

/* Say in the pack's place of it that @item took it. */
static int take_place(struct overlay *overlay, struct item *item)
{
	size_t count = overlay_pack_count(overlay, item->kind);

	if (item->base >= count)
		return -EINVAL;
	if (!overlay->promoted[item->kind]) {
		overlay->promoted[item->kind] = overlay_promoted_new(count);
		if (!overlay->promoted[item->kind])
			return -ENOMEM;
	}
	if (overlay->promoted[item->kind][item->base])
		return -EINVAL;
	overlay->promoted[item->kind][item->base] = item;
	overlay->live[item->kind]--;
	return 0;
}

int overlay_restore(struct overlay *overlay, struct item *item)
{
	struct item_table *table =
		item->linked ? &overlay->tables[item->kind] : &overlay->gone;
	int error = overlay_table_reserve(table);

	if (!error && item->kind >= PACK_KIND_COUNT)
		error = -EINVAL;
	if (!error && item->kind == ITEM_TENSOR && item->described != NO_BASE &&
	    item->described >= overlay_pack_count(overlay, ITEM_TENSOR))
		error = -EINVAL;
	if (!error && item->base != NO_BASE)
		error = take_place(overlay, item);
	else if (!error && !item->linked)
		error = -EINVAL; /* neither here nor in the pack */
	if (error) {
		item_unref(overlay, item);
		return error;
	}
	if (item->base != NO_BASE)
		item->id = overlay_base_id(overlay, item->kind, item->base);
	if (item->linked) {
		overlay_table_insert_at(
			table,
			overlay_table_lower_bound(table, item->name, item->name_size),
			item);
		overlay->live[item->kind]++;
		overlay_account(overlay, item->name_size + OVERLAY_ENTRY_OVERHEAD +
						 (item->text ? item->text->size : 0));
	} else {
		table->items[table->count++] = item;
	}
	if (item->order >= overlay->next_order)
		overlay->next_order = item->order + 1;
	return 0;
}

int overlay_check_restored(const struct overlay *overlay)
{
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++) {
		const struct item_table *table = &overlay->tables[kind];

		for (size_t i = 0; i < table->count; i++) {
			const struct item *item = table->items[i],
					  *other = i ? table->items[i - 1] : NULL;
			size_t index = overlay_base_find(overlay, kind, item->name,
							 item->name_size);

			if (index != NO_BASE &&
			    (!overlay->promoted[kind] || !overlay->promoted[kind][index]))
				return -EINVAL;
			if (other && bpk_name_compare(other->name, other->name_size,
						      item->name, item->name_size) == 0)
				return -EINVAL;
		}
	}
	return 0;
}
