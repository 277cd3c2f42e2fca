/*
 * overlay_edit.c - edits of an overlay: entries that get an item, a name, another
 * name, or lose theirs. See overlay.h.
 *
 * Each gives 0 or -errno, and what can fail (memory, limits of a pack) comes before
 * the first change.
 */
#include "base.h"
#include "overlay_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool overlay_metadata_fits(const struct overlay *overlay, uint64_t more)
{
	struct bpk_limits limits;
	uint64_t sum;

	bpk_limits_init(&limits);
	return bpk_add_u64(overlay->metadata_estimate, more, &sum) &&
	       sum <= limits.metadata_size;
}

/* An upper bound: what is freed by a removal is not given back, as the estimate
 * must never be below the truth. */
void overlay_account(struct overlay *overlay, uint64_t more)
{
	overlay->metadata_estimate += more;
}

struct item *overlay_item_new(struct overlay *overlay, enum item_kind kind,
			      const char *name, size_t size)
{
	struct item *item = calloc(1, sizeof(*item));

	if (!item)
		return NULL;
	item->name = malloc(size + 1);
	if (!item->name) {
		free(item);
		return NULL;
	}
	if (size)
		memcpy(item->name, name, size);
	item->name_size = size;
	item->kind = kind;
	item->refs = 1;
	item->base = NO_BASE;
	item->described = NO_BASE;
	item->id = overlay->next_id;
	item->stamp = ++overlay->stamp;
	clock_gettime(CLOCK_REALTIME, &item->mtime);
	return item;
}

static int describe_tensor(struct item *item, const struct bpk_tensor *tensor)
{
	size_t rank = bpk_tensor_rank(tensor), cbor_size;
	const void *cbor = bpk_tensor_dtype_cbor(tensor, &cbor_size);

	item->shape = reallocarray(NULL, rank ? rank : 1, sizeof(*item->shape));
	item->dtype_cbor = malloc(cbor_size ? cbor_size : 1);
	if (!item->shape || !item->dtype_cbor)
		return -ENOMEM;
	item->rank = bpk_tensor_shape(tensor, item->shape, rank);
	memcpy(item->dtype_cbor, cbor, cbor_size);
	item->dtype_cbor_size = cbor_size;
	item->dtype = bpk_tensor_dtype(tensor);
	item->has_param_id = bpk_tensor_param_id(tensor, &item->param_id);
	return 0;
}

static int describe_base(const struct overlay *overlay, struct item *item)
{
	switch (item->kind) {
	case ITEM_TENSOR:
		item->described = item->base;
		return describe_tensor(item,
				       bpk_reader_tensor(overlay->reader, item->base));
	case ITEM_SCALAR:
		item->value =
			bpk_scalar_value(bpk_reader_scalar(overlay->reader, item->base));
		item->has_value = true;
		item->type_known = true;
		return 0;
	case ITEM_METADATA: {
		size_t size;
		const char *value = bpk_metadata_value(
			bpk_reader_metadata(overlay->reader, item->base), &size);

		item->text = blob_new(value, size);
		item->has_value = true;
		return item->text ? 0 : -ENOMEM;
	}
	case ITEM_SCRATCH:
	case ITEM_FOLDER:
	case ITEM_KIND_COUNT:
	default:
		return -EINVAL;
	}
}

int overlay_promote(struct overlay *overlay, const struct entry *entry,
		    struct item **ret_item)
{
	struct item_table *table = &overlay->tables[entry->kind];
	struct item *item;
	const char *name;
	size_t size;
	int error;

	if (entry->item) {
		*ret_item = entry->item;
		return 0;
	}
	if (!overlay->promoted[entry->kind]) {
		overlay->promoted[entry->kind] =
			overlay_promoted_new(overlay_pack_count(overlay, entry->kind));
		if (!overlay->promoted[entry->kind])
			return -ENOMEM;
	}
	name = overlay_base_name(overlay, entry->kind, entry->base, &size);
	error = overlay_table_reserve(table);
	if (error)
		return error;
	item = overlay_item_new(overlay, entry->kind, name, size);
	if (!item)
		return -ENOMEM;
	item->base = entry->base;
	item->id = overlay_base_id(overlay, entry->kind, entry->base);
	error = describe_base(overlay, item);
	if (error) {
		overlay_item_free(item);
		return error;
	}
	item->linked = true;
	overlay->promoted[entry->kind][entry->base] = item;
	overlay_table_insert_at(table, overlay_table_lower_bound(table, name, size),
				item);
	*ret_item = item;
	return 0;
}

static int room_for_another(const struct overlay *overlay, enum item_kind kind,
			    size_t name_size)
{
	struct bpk_limits limits;

	if (kind >= PACK_KIND_COUNT)
		return 0;
	bpk_limits_init(&limits);
	if (kind == ITEM_TENSOR && overlay->live[kind] >= limits.tensor_count)
		return -ENOSPC;
	return overlay_metadata_fits(overlay, name_size + OVERLAY_ENTRY_OVERHEAD)
		       ? 0
		       : -ENOSPC;
}

/* What was removed and is made again, or moved away and back, as editors do, is
 * the pack's once more: a change, not another entry. */
static void adopt_base(struct overlay *overlay, struct item *item)
{
	size_t index, size;
	const char *name;
	const struct item *gone;

	if (item->kind >= PACK_KIND_COUNT)
		return;
	index = overlay_base_lower_bound(overlay, item->kind, item->name,
					 item->name_size);
	if (index >= overlay_pack_count(overlay, item->kind))
		return;
	name = overlay_base_name(overlay, item->kind, index, &size);
	/* Bytes are another tensor, unless they have come back with its description. */
	if (item->kind == ITEM_TENSOR && item->described != index)
		return;
	gone = overlay_promoted(overlay, item->kind, index);
	if (!gone || gone->linked ||
	    bpk_name_compare(name, size, item->name, item->name_size) != 0)
		return;
	item->base = index;
	overlay->promoted[item->kind][index] = item;
}

int overlay_make(struct overlay *overlay, enum item_kind kind, const char *name,
		 size_t size, struct item **ret_item)
{
	struct item_table *table = &overlay->tables[kind];
	struct entry taken;
	struct item *item;
	int error;

	if (overlay_find(overlay, kind, name, size, &taken))
		return -EEXIST;
	error = room_for_another(overlay, kind, size);
	if (!error)
		error = overlay_table_reserve(table);
	if (error)
		return error;
	item = overlay_item_new(overlay, kind, name, size);
	if (!item)
		return -ENOMEM;
	if (kind == ITEM_TENSOR || kind == ITEM_SCRATCH) {
		item->dtype = BPK_DTYPE_U8;
		item->shape_follows = true;
	}
	overlay->next_id++;
	item->order = overlay->next_order++;
	item->linked = true;
	adopt_base(overlay, item);
	overlay_table_insert_at(table, overlay_table_lower_bound(table, name, size),
				item);
	if (kind < PACK_KIND_COUNT) {
		overlay->live[kind]++;
		overlay_account(overlay, size + OVERLAY_ENTRY_OVERHEAD);
	}
	*ret_item = item;
	return 0;
}

void overlay_touch(struct overlay *overlay, struct item *item)
{
	item->stamp = ++overlay->stamp;
}

/* Keep what was promoted: it says that the pack's entry is gone. */
static int keep_gone(struct overlay *overlay, struct item *item)
{
	int error;

	if (item->base == NO_BASE ||
	    overlay_promoted(overlay, item->kind, item->base) != item)
		return 0;
	error = overlay_table_reserve(&overlay->gone);
	if (error)
		return error;
	overlay->gone.items[overlay->gone.count++] = item;
	item_ref(item);
	return 0;
}

int overlay_remove(struct overlay *overlay, struct item *item)
{
	struct item_table *table = &overlay->tables[item->kind];
	int error = keep_gone(overlay, item);

	if (error)
		return error;
	overlay_table_delete(table, overlay_table_index(table, item));
	if (item->kind < PACK_KIND_COUNT)
		overlay->live[item->kind]--;
	item->linked = false;
	overlay_touch(overlay, item);
	item_unref(overlay, item);
	return 0;
}

/*
 * An entry that becomes a scratch file (an editor's backup) is gone from the
 * pack: a fresh, unlinked stand-in says so in its place.
 */
static int leave_stand_in(struct overlay *overlay, struct item *item)
{
	struct item *stand_in;
	int error;

	if (item->base == NO_BASE)
		return 0;
	error = overlay_table_reserve(&overlay->gone);
	if (error)
		return error;
	stand_in = overlay_item_new(overlay, item->kind, item->name, item->name_size);
	if (!stand_in)
		return -ENOMEM;
	stand_in->base = item->base;
	stand_in->id = overlay_new_id(overlay);
	overlay->promoted[item->kind][item->base] = stand_in;
	overlay->gone.items[overlay->gone.count++] = stand_in;
	item->base = NO_BASE;
	return 0;
}

int overlay_rename(struct overlay *overlay, struct item *item, enum item_kind kind,
		   const char *name, size_t size)
{
	struct item_table *from = &overlay->tables[item->kind],
			  *to = &overlay->tables[kind];
	enum item_kind old_kind = item->kind;
	char *copy;
	int error;

	error = overlay_table_reserve(to);
	if (!error && kind < PACK_KIND_COUNT) {
		if (kind != old_kind)
			error = room_for_another(overlay, kind, size);
		else if (!overlay_metadata_fits(overlay, size))
			error = -ENOSPC;
	}
	if (error)
		return error;
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size)
		memcpy(copy, name, size);
	if (kind != old_kind) {
		error = leave_stand_in(overlay, item);
		if (error) {
			free(copy);
			return error;
		}
	}
	overlay_table_delete(from, overlay_table_index(from, item));
	free(item->name);
	item->name = copy;
	item->name_size = size;
	item->kind = kind;
	overlay_touch(overlay, item);
	overlay_table_insert_at(to, overlay_table_lower_bound(to, name, size), item);
	if (old_kind < PACK_KIND_COUNT)
		overlay->live[old_kind]--;
	if (kind < PACK_KIND_COUNT) {
		overlay->live[kind]++;
		overlay_account(overlay,
				size + (kind != old_kind ? OVERLAY_ENTRY_OVERHEAD : 0));
		if (kind != old_kind) {
			item->order = overlay->next_order++;
			adopt_base(overlay, item);
		}
	}
	return 0;
}

struct renamed {
	struct item *item;
	char *name; /* owned */
	size_t size;
};

int overlay_renames_add(struct overlay *overlay, struct renames *renames,
			const struct entry *entry, const char *head, size_t head_size,
			const char *tail, size_t tail_size)
{
	size_t size = head_size + tail_size;
	struct item *item;
	char *name;
	int error;

	if (entry->kind < PACK_KIND_COUNT &&
	    !overlay_metadata_fits(overlay, renames->name_bytes + size))
		return -ENOSPC;
	error = bpk_grow((void **)&renames->list, &renames->capacity, renames->count + 1,
			 sizeof(*renames->list));
	if (error)
		return error;
	name = malloc(size + 1);
	if (!name)
		return -ENOMEM;
	if (head_size)
		memcpy(name, head, head_size);
	if (tail_size)
		memcpy(name + head_size, tail, tail_size);
	error = overlay_promote(overlay, entry, &item);
	if (error) {
		free(name);
		return error;
	}
	renames->list[renames->count++] = (struct renamed) { item, name, size };
	renames->name_bytes += size;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;

	return bpk_name_compare(x->name, x->name_size, y->name, y->name_size);
}

void overlay_renames_apply(struct overlay *overlay, enum item_kind kind,
			   struct renames *renames)
{
	struct item_table *table = &overlay->tables[kind];

	for (size_t i = 0; i < renames->count; i++) {
		struct renamed *renamed = &renames->list[i];

		free(renamed->item->name);
		renamed->item->name = renamed->name;
		renamed->item->name_size = renamed->size;
		renamed->name = NULL;
		overlay_touch(overlay, renamed->item);
	}
	if (kind < PACK_KIND_COUNT)
		overlay_account(overlay, renames->name_bytes);
	/* Once for all of them: one by one would be quadratic. */
	if (renames->count)
		qsort(table->items, table->count, sizeof(*table->items), by_name);
	table->changes++;
}

void overlay_renames_done(struct renames *renames)
{
	for (size_t i = 0; i < renames->count; i++)
		free(renames->list[i].name);
	free(renames->list);
	*renames = (struct renames) { 0 };
}

int overlay_replace(struct overlay *overlay, struct item *item, struct item *victim)
{
	struct item_table *from = &overlay->tables[item->kind];
	struct item_table *to = &overlay->tables[victim->kind];
	size_t base = victim->base;
	char *copy = malloc(victim->name_size + 1);
	int error;

	if (!copy)
		return -ENOMEM;
	if (victim->name_size)
		memcpy(copy, victim->name, victim->name_size);
	/* What @item itself came from is gone from the pack by this. */
	error = leave_stand_in(overlay, item);
	if (error) {
		free(copy);
		return error;
	}
	overlay_table_delete(from, overlay_table_index(from, item));
	to->items[overlay_table_index(to, victim)] = item;
	to->changes++;
	if (item->kind < PACK_KIND_COUNT)
		overlay->live[item->kind]--;
	free(item->name);
	item->name = copy;
	item->name_size = victim->name_size;
	item->kind = victim->kind;
	item->base = base;
	item->order = victim->order;
	overlay_touch(overlay, item);
	overlay_touch(overlay, victim);
	if (base != NO_BASE)
		overlay->promoted[item->kind][base] = item;
	/* Whoever has it open goes on reading what it was: it keeps its base. */
	victim->linked = false;
	item_unref(overlay, victim);
	return 0;
}
