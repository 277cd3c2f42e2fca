/*
 * overlay.c - see overlay.h.
 */
#include "base.h"
#include "npy_draft.h"
#include "overlay_impl.h"
#include "staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blobs -------------------------------------------------------------------- */

struct blob *blob_new(const void *data, size_t size)
{
	struct blob *blob;

	if (size > SIZE_MAX - sizeof(*blob))
		return NULL;
	blob = malloc(sizeof(*blob) + size);
	if (!blob)
		return NULL;
	blob->refs = 1;
	blob->size = size;
	if (size)
		memcpy(blob->data, data, size);
	return blob;
}

struct blob *blob_ref(struct blob *blob)
{
	__atomic_fetch_add(&blob->refs, 1, __ATOMIC_RELAXED);
	return blob;
}

void blob_unref(struct blob *blob)
{
	if (blob && __atomic_fetch_sub(&blob->refs, 1, __ATOMIC_ACQ_REL) == 1)
		free(blob);
}

/* The pack's side ---------------------------------------------------------- */

size_t overlay_pack_count(const struct overlay *overlay, enum item_kind kind)
{
	switch (kind) {
	case ITEM_TENSOR:
		return bpk_reader_tensor_count(overlay->reader);
	case ITEM_SCALAR:
		return bpk_reader_scalar_count(overlay->reader);
	case ITEM_METADATA:
		return bpk_reader_metadata_count(overlay->reader);
	case ITEM_SCRATCH:
	case ITEM_FOLDER:
	case ITEM_KIND_COUNT:
	default:
		return 0;
	}
}

const char *overlay_base_name(const struct overlay *overlay, enum item_kind kind,
			      size_t index, size_t *ret_size)
{
	if (kind == ITEM_TENSOR)
		return bpk_tensor_name(bpk_reader_tensor(overlay->reader, index),
				       ret_size);
	if (kind == ITEM_SCALAR)
		return bpk_scalar_name(bpk_reader_scalar(overlay->reader, index),
				       ret_size);
	return bpk_metadata_key(bpk_reader_metadata(overlay->reader, index), ret_size);
}

/* The first entry of the pack, edited or not, whose name is not below @name. */
size_t overlay_base_lower_bound(const struct overlay *overlay, enum item_kind kind,
				const char *name, size_t size)
{
	size_t low = 0, high = overlay_pack_count(overlay, kind);

	while (low < high) {
		size_t middle = low + (high - low) / 2, other_size;
		const char *other = overlay_base_name(overlay, kind, middle, &other_size);

		if (bpk_name_compare(other, other_size, name, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t overlay_base_find(const struct overlay *overlay, enum item_kind kind,
			 const char *name, size_t size)
{
	size_t index = overlay_base_lower_bound(overlay, kind, name, size), other_size;
	const char *other;

	if (index >= overlay_pack_count(overlay, kind))
		return NO_BASE;
	other = overlay_base_name(overlay, kind, index, &other_size);
	return bpk_name_compare(other, other_size, name, size) == 0 ? index : NO_BASE;
}

struct item *overlay_promoted(const struct overlay *overlay, enum item_kind kind,
			      size_t index)
{
	if (kind >= PACK_KIND_COUNT || !overlay->promoted[kind])
		return NULL;
	return overlay->promoted[kind][index];
}

struct item **overlay_promoted_new(size_t count)
{
	return calloc(count ? count : 1, sizeof(struct item *) + sizeof(uint32_t));
}

/*
 * The first entry from @index on that is not promoted. What is promoted stays so as
 * long as the table, so the way is noted behind the table, and the next time it is
 * short: else whoever edits all entries would make every look-up walk past them all.
 */
static size_t skip_promoted(const struct overlay *overlay, enum item_kind kind,
			    size_t index)
{
	size_t count = overlay_pack_count(overlay, kind), at = index;
	struct item **table = kind < PACK_KIND_COUNT ? overlay->promoted[kind] : NULL;
	uint32_t *steps;

	if (!table)
		return index;
	steps = (uint32_t *)(void *)(table + count);
	while (at < count && table[at])
		at += steps[at] ? steps[at] : 1;
	while (index < at) {
		size_t next = index + (steps[index] ? steps[index] : 1);

		steps[index] = (uint32_t)(at - index);
		index = next;
	}
	return at;
}

uint64_t overlay_base_id(const struct overlay *overlay, enum item_kind kind, size_t index)
{
	if (overlay->ids[kind])
		return overlay->ids[kind][index];
	return ((uint64_t)kind + 1) << OVERLAY_ID_SHIFT | index;
}

/* Tables ------------------------------------------------------------------- */

size_t overlay_table_lower_bound(const struct item_table *table, const char *name,
				 size_t size)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct item *item = table->items[middle];

		if (bpk_name_compare(item->name, item->name_size, name, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int overlay_table_reserve(struct item_table *table)
{
	return bpk_grow((void **)&table->items, &table->capacity, table->count + 1,
			sizeof(*table->items));
}

void overlay_table_insert_at(struct item_table *table, size_t at, struct item *item)
{
	memmove(table->items + at + 1, table->items + at,
		(table->count - at) * sizeof(*table->items));
	table->items[at] = item;
	table->count++;
	table->changes++;
}

void overlay_table_delete(struct item_table *table, size_t at)
{
	table->count--;
	table->changes++;
	memmove(table->items + at, table->items + at + 1,
		(table->count - at) * sizeof(*table->items));
}

size_t overlay_table_index(const struct item_table *table, const struct item *item)
{
	return overlay_table_lower_bound(table, item->name, item->name_size);
}

/* Items -------------------------------------------------------------------- */

void item_ref(struct item *item)
{
	item->refs++;
}

void overlay_item_free(struct item *item)
{
	free(item->name);
	free(item->dtype_cbor);
	free(item->shape);
	free(item->pending.data);
	blob_unref(item->text);
	staged_unref(item->staged);
	npy_draft_free(item->draft);
	pack_unref(item->former);
	free(item);
}

const struct bpk_reader *item_reader(const struct overlay *overlay,
				     const struct item *item)
{
	return item->former ? item->former->reader : overlay->reader;
}

void item_unref(struct overlay *overlay, struct item *item)
{
	(void)overlay;
	if (--item->refs == 0)
		overlay_item_free(item);
}

/* The whole ---------------------------------------------------------------- */

void overlay_init(struct overlay *overlay, struct pack *pack, bool writable)
{
	*overlay = (struct overlay) {
		.pack = pack_ref(pack),
		.reader = pack->reader,
		.writable = writable,
		.next_id = OVERLAY_FIRST_ID,
		.metadata_estimate = bpk_reader_metadata_size(pack->reader),
	};
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++)
		overlay->live[kind] = overlay_pack_count(overlay, kind);
}

void overlay_done(struct overlay *overlay)
{
	for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++) {
		for (size_t i = 0; i < overlay->tables[kind].count; i++)
			item_unref(overlay, overlay->tables[kind].items[i]);
		free(overlay->tables[kind].items);
	}
	for (size_t i = 0; i < overlay->gone.count; i++)
		item_unref(overlay, overlay->gone.items[i]);
	free(overlay->gone.items);
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++) {
		free(overlay->promoted[kind]);
		free(overlay->ids[kind]);
	}
	pack_unref(overlay->pack);
	*overlay = (struct overlay) { 0 };
}

void overlay_clear(struct overlay *overlay)
{
	struct pack *pack = pack_ref(overlay->pack);
	bool writable = overlay->writable;
	uint64_t next_id = overlay->next_id;

	overlay_done(overlay);
	overlay_init(overlay, pack, writable);
	overlay->next_id = next_id;
	pack_unref(pack);
}

uint64_t overlay_new_id(struct overlay *overlay)
{
	return overlay->next_id++;
}

uint64_t entry_id(const struct overlay *overlay, const struct entry *entry)
{
	return entry->item ? entry->item->id
			   : overlay_base_id(overlay, entry->kind, entry->base);
}

const char *entry_name(const struct overlay *overlay, const struct entry *entry,
		       size_t *ret_size)
{
	if (entry->item) {
		*ret_size = entry->item->name_size;
		return entry->item->name;
	}
	return overlay_base_name(overlay, entry->kind, entry->base, ret_size);
}

/* The first live entry whose name is not below @name, or is above it. */
static bool seek(const struct overlay *overlay, enum item_kind kind, const char *name,
		 size_t size, bool above, struct entry *ret_entry)
{
	const struct item_table *table = &overlay->tables[kind];
	size_t at = overlay_table_lower_bound(table, name, size);
	size_t index = overlay_base_lower_bound(overlay, kind, name, size);
	size_t count = overlay_pack_count(overlay, kind), other_size;
	const char *other;
	struct item *item;

	/* No name is twice in a table or in the pack. */
	if (above && at < table->count &&
	    bpk_name_compare(table->items[at]->name, table->items[at]->name_size, name,
			     size) == 0)
		at++;
	if (above && index < count) {
		other = overlay_base_name(overlay, kind, index, &other_size);
		index += bpk_name_compare(other, other_size, name, size) == 0;
	}
	item = at < table->count ? table->items[at] : NULL;
	index = skip_promoted(overlay, kind, index);
	if (index < count && item) {
		other = overlay_base_name(overlay, kind, index, &other_size);
		if (bpk_name_compare(item->name, item->name_size, other, other_size) > 0)
			item = NULL;
	}
	if (!item && index >= count)
		return false;
	*ret_entry = (struct entry) { kind, item ? item->base : index, item };
	return true;
}

bool overlay_seek(const struct overlay *overlay, enum item_kind kind, const char *name,
		  size_t size, struct entry *ret_entry)
{
	return seek(overlay, kind, name, size, false, ret_entry);
}

bool overlay_find(const struct overlay *overlay, enum item_kind kind, const char *name,
		  size_t size, struct entry *ret_entry)
{
	struct entry entry;
	size_t other_size;
	const char *other;

	if (!overlay_seek(overlay, kind, name, size, &entry))
		return false;
	other = entry_name(overlay, &entry, &other_size);
	if (bpk_name_compare(other, other_size, name, size) != 0)
		return false;
	*ret_entry = entry;
	return true;
}

bool overlay_next(const struct overlay *overlay, const struct entry *entry,
		  struct entry *ret_entry)
{
	size_t size, count = overlay_pack_count(overlay, entry->kind);
	const char *name;

	/* Nothing edited: the pack's own order is all there is. */
	if (!overlay->promoted[entry->kind < PACK_KIND_COUNT ? entry->kind : 0] &&
	    !overlay->tables[entry->kind].count) {
		if (entry->base + 1 >= count)
			return false;
		*ret_entry = (struct entry) { entry->kind, entry->base + 1, NULL };
		return true;
	}
	name = entry_name(overlay, entry, &size);
	return seek(overlay, entry->kind, name, size, true, ret_entry);
}

bool overlay_has_prefix(const struct overlay *overlay, enum item_kind kind,
			const char *prefix, size_t size)
{
	struct entry entry;
	size_t other_size;
	const char *other;

	if (!overlay_seek(overlay, kind, prefix, size, &entry))
		return false;
	other = entry_name(overlay, &entry, &other_size);
	return other_size >= size && (!size || memcmp(other, prefix, size) == 0);
}

bool overlay_former_type(const struct overlay *overlay, const char *name, size_t size,
			 enum bpk_scalar_type *ret_type)
{
	const struct bpk_scalar *scalar =
		bpk_reader_find_scalar(overlay->reader, name, size);

	if (!scalar)
		return false;
	*ret_type = bpk_scalar_value(scalar).type;
	return true;
}

/* Changes ------------------------------------------------------------------ */

static bool same_scalar(struct bpk_scalar_value a, struct bpk_scalar_value b)
{
	return a.type == b.type && (a.type == BPK_SCALAR_BOOL ? a.b == b.b : a.u == b.u);
}

static const struct bpk_tensor *tensor_of(const struct overlay *overlay, size_t base)
{
	return bpk_reader_tensor(overlay->reader, base);
}

static bool same_content(const struct overlay *overlay, const struct item *item)
{
	if (item->kind == ITEM_TENSOR)
		return !item->staged &&
		       item_has_param_id_of(item, tensor_of(overlay, item->base)) &&
		       item_is_described_as(item, tensor_of(overlay, item->base));
	if (item->kind == ITEM_SCALAR)
		return same_scalar(item->value, bpk_scalar_value(bpk_reader_scalar(
							overlay->reader, item->base)));
	if (item->kind == ITEM_METADATA) {
		size_t size;
		const char *value = bpk_metadata_value(
			bpk_reader_metadata(overlay->reader, item->base), &size);

		return bpk_name_compare(value, size, item->text->data,
					item->text->size) == 0;
	}
	return true;
}

enum change overlay_change(const struct overlay *overlay, const struct item *item)
{
	const char *name;
	size_t size;

	if (item->kind >= PACK_KIND_COUNT)
		return CHANGE_NONE;
	if (item->base == NO_BASE)
		return item->linked ? CHANGE_ADDED : CHANGE_NONE;
	if (!item->linked)
		return CHANGE_REMOVED;
	name = overlay_base_name(overlay, item->kind, item->base, &size);
	if (bpk_name_compare(name, size, item->name, item->name_size) != 0)
		return CHANGE_RENAMED;
	if (npy_draft_pending(item->draft))
		return CHANGE_MODIFIED;
	return same_content(overlay, item) ? CHANGE_NONE : CHANGE_MODIFIED;
}

bool overlay_invalid(const struct overlay *overlay, const struct item *item)
{
	if (!item->linked)
		return false;
	if (item->kind == ITEM_TENSOR)
		return !item_data_valid(overlay, item) || npy_draft_pending(item->draft);
	return item->kind < PACK_KIND_COUNT &&
	       (!item->has_value || (item->pending.active && !item->pending.refused));
}

int overlay_each_change(const struct overlay *overlay,
			int (*fn)(void *context, const struct item *item,
				  enum change change),
			void *context)
{
	int result = 0;

	for (size_t kind = 0; kind < PACK_KIND_COUNT && !result; kind++)
		for (size_t i = 0; i < overlay->tables[kind].count && !result; i++) {
			const struct item *item = overlay->tables[kind].items[i];
			enum change change = overlay_change(overlay, item);

			if (change != CHANGE_NONE)
				result = fn(context, item, change);
		}
	for (size_t i = 0; i < overlay->gone.count && !result; i++) {
		const struct item *item = overlay->gone.items[i];

		/* Its place may have been taken again since. */
		if (!item->linked && item->base != NO_BASE &&
		    overlay_promoted(overlay, item->kind, item->base) == item)
			result = fn(context, item, CHANGE_REMOVED);
	}
	return result;
}

static int any_change(void *context, const struct item *item, enum change change)
{
	(void)context;
	(void)item;
	(void)change;
	return 1;
}

bool overlay_dirty(const struct overlay *overlay)
{
	return overlay_each_change(overlay, any_change, NULL) != 0;
}
