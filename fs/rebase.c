/*
 * rebase.c - see rebase.h.
 *
 * For each entry j of the new pack there are three cases. It is still the one that
 * was committed: nothing is kept of it but its inode number. It was edited since: the
 * item that has its place keeps it. It was removed or replaced since: an item without
 * a name says so, as always (overlay.h).
 *
 * An item whose entry is still the one that was committed stays all the same where
 * something refers to it that is not in the pack: a file that is open for writing, a mode
 * or time that was set. It is no edit then, and its bytes are the pack's.
 */
#include "rebase.h"
#include "base.h"
#include "overlay_impl.h"
#include "staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int frozen_add(struct frozen *frozen, struct overlay *overlay, const struct entry *entry)
{
	enum item_kind kind = entry->kind;
	struct frozen_entry *to;

	if (bpk_grow((void **)&frozen->entries[kind], &frozen->capacities[kind],
		     frozen->counts[kind] + 1, sizeof(*to)))
		return -ENOMEM;
	to = &frozen->entries[kind][frozen->counts[kind]++];
	*to = (struct frozen_entry) { entry->base, entry->item,
				      entry_id(overlay, entry) };
	if (to->item)
		item_ref(to->item);
	return 0;
}

void frozen_done(struct frozen *frozen, struct overlay *overlay)
{
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++) {
		for (size_t j = 0; j < frozen->counts[kind]; j++)
			if (frozen->entries[kind][j].item)
				item_unref(overlay, frozen->entries[kind][j].item);
		free(frozen->entries[kind]);
	}
	*frozen = (struct frozen) { 0 };
}

/* One kind of entries on its way. */
struct move {
	struct overlay *overlay;
	const struct frozen *frozen;
	enum item_kind kind;
	size_t count;		/* entries of the new pack */
	size_t *places;		/* old base to new, NO_BASE for none */
	struct item **promoted; /* of the new pack */
	uint64_t *ids;
	struct item **gone; /* unlinked stand-ins, made before anything is changed */
	size_t gone_count;
};

static void move_done(struct move *move)
{
	for (size_t i = 0; i < move->gone_count; i++)
		item_unref(move->overlay, move->gone[i]);
	free(move->gone);
	free(move->places);
	free(move->promoted);
	free(move->ids);
}

static size_t new_count(const struct pack *pack, enum item_kind kind)
{
	if (kind == ITEM_TENSOR)
		return bpk_reader_tensor_count(pack->reader);
	return kind == ITEM_SCALAR ? bpk_reader_scalar_count(pack->reader)
				   : bpk_reader_metadata_count(pack->reader);
}

static const char *new_name(const struct pack *pack, enum item_kind kind, size_t j,
			    size_t *ret_size)
{
	if (kind == ITEM_TENSOR)
		return bpk_tensor_name(bpk_reader_tensor(pack->reader, j), ret_size);
	if (kind == ITEM_SCALAR)
		return bpk_scalar_name(bpk_reader_scalar(pack->reader, j), ret_size);
	return bpk_metadata_key(bpk_reader_metadata(pack->reader, j), ret_size);
}

/* Nothing was done to it since, and nobody is about to. */
static bool untouched(const struct move *move, const struct item *item)
{
	return item->stamp <= move->frozen->stamp;
}

/* The new pack has it as it is. */
static bool committed(const struct move *move, const struct item *item)
{
	return item->place != NO_BASE && untouched(move, item) && !item->pending.active &&
	       !overlay_invalid(move->overlay, item);
}

/* And has all there is to know of it. */
static bool at_rest(const struct move *move, const struct item *item)
{
	return committed(move, item) && !item->pending.writers && !item->draft &&
	       !item->npy_writers && !item->mode_set && !item->mtime_set;
}

/* The tensor of the new pack that is described as the old pack's @item->described. Of
 * what is no tensor, a scratch file that was one, @move is that of the tensors, too. */
static size_t described_place(const struct move *move, const struct item *item)
{
	const struct frozen_entry *entries = move->frozen->entries[ITEM_TENSOR];
	size_t place;

	if (committed(move, item))
		return item->place;
	if (item->described == NO_BASE)
		return NO_BASE;
	place = move->places[item->described];
	if (place != NO_BASE &&
	    (!entries[place].item || entries[place].item->described == item->described))
		return place;
	/* It was committed with that description itself. */
	return untouched(move, item) ? item->place : NO_BASE;
}

/* Where each linked item stands in the new pack: place and place_described. */
static void find_places(struct move *move)
{
	const struct item_table *table = &move->overlay->tables[move->kind];
	const struct item_table *scratch = &move->overlay->tables[ITEM_SCRATCH];
	const struct frozen_entry *entries = move->frozen->entries[move->kind];

	for (size_t i = 0; i < table->count; i++)
		table->items[i]->place = NO_BASE;
	for (size_t i = 0; move->kind == ITEM_TENSOR && i < scratch->count; i++)
		scratch->items[i]->place = NO_BASE;
	for (size_t j = 0; j < move->count; j++) {
		move->ids[j] = entries[j].id;
		if (entries[j].base != NO_BASE)
			move->places[entries[j].base] = j;
		if (entries[j].item)
			entries[j].item->place = j;
	}
	for (size_t i = 0; i < table->count; i++) {
		struct item *item = table->items[i];
		size_t place =
			item->base == NO_BASE ? item->place : move->places[item->base];

		/* Two cannot have one place: the second is an entry of its own. */
		if (place != NO_BASE && move->promoted[place])
			place = NO_BASE;
		if (place != NO_BASE)
			move->promoted[place] = item;
		item->place = place;
	}
	for (size_t i = 0; i < table->count; i++)
		table->items[i]->place_described = described_place(move, table->items[i]);
	for (size_t i = 0; move->kind == ITEM_TENSOR && i < scratch->count; i++)
		scratch->items[i]->place_described =
			described_place(move, scratch->items[i]);
}

/* Is entry @j of the new pack one that nobody has edited, before or since? */
static bool plain(const struct move *move, size_t j)
{
	const struct frozen_entry *entry = &move->frozen->entries[move->kind][j];
	struct item *const *promoted = move->overlay->promoted[move->kind];

	return !entry->item && !(promoted && promoted[entry->base]);
}

static int make_stand_ins(struct move *move, const struct pack *pack)
{
	size_t count = 0;

	for (size_t j = 0; j < move->count; j++)
		count += !move->promoted[j] && !plain(move, j);
	move->gone = calloc(count + 1, sizeof(struct item *));
	if (!move->gone)
		return -ENOMEM;
	for (size_t j = 0; j < move->count; j++) {
		const char *name;
		struct item *item;
		size_t size;

		if (move->promoted[j] || plain(move, j))
			continue;
		name = new_name(pack, move->kind, j, &size);
		item = overlay_item_new(move->overlay, move->kind, name, size);
		if (!item)
			return -ENOMEM;
		item->id = overlay_new_id(move->overlay);
		item->base = j;
		move->gone[move->gone_count++] = item;
		move->promoted[j] = item;
	}
	return 0;
}

/* Everything that can fail. Of the mount only item->place and place_described are
 * written, which nobody else reads. */
static int prepare(struct move *move, const struct pack *pack)
{
	size_t old_count = overlay_pack_count(move->overlay, move->kind);

	move->count = move->frozen->counts[move->kind];
	if (new_count(pack, move->kind) != move->count)
		return -EINVAL;
	move->places = reallocarray(NULL, old_count + 1, sizeof(*move->places));
	move->promoted = overlay_promoted_new(move->count);
	move->ids = reallocarray(NULL, move->count + 1, sizeof(*move->ids));
	if (!move->places || !move->promoted || !move->ids)
		return -ENOMEM;
	for (size_t i = 0; i < old_count; i++)
		move->places[i] = NO_BASE;
	find_places(move);
	return make_stand_ins(move, pack);
}

static void move_node(struct mount *mount, const struct move *moves, struct node *node)
{
	struct item *item = node->item;

	if (!item) {
		const struct move *move = &moves[node->kind];
		struct item *const *promoted = mount->overlay.promoted[node->kind];

		item = promoted ? promoted[node->base] : NULL;
		if (!item) {
			node->base = move->places[node->base];
			return;
		}
		node->item = item;
		item_ref(item);
	}
	if (item->kind >= PACK_KIND_COUNT)
		return;
	if (!item->linked) {
		/* Gone but open: it goes on reading the pack that it was in. */
		if (!item->former)
			item->former = pack_ref(mount->overlay.pack);
	} else if (at_rest(&moves[item->kind], item)) {
		node->kind = item->kind;
		node->base = item->place;
		node->item = NULL;
		item_unref(&mount->overlay, item);
	}
}

static void move_nodes(struct mount *mount, const struct move *moves)
{
	for (size_t i = 0; i < mount->nodes.bucket_count; i++)
		for (struct node *node = mount->nodes.buckets[i]; node; node = node->next)
			if (node->type == NODE_ENTRY &&
			    (node->item || node->kind < PACK_KIND_COUNT))
				move_node(mount, moves, node);
}

/* From now on it is an entry of the pack with nothing edited: its bytes are the pack's,
 * until the first write copies them, and a scalar's type stays. */
static void settle(struct item *item)
{
	staged_unref(item->staged);
	item->staged = NULL;
	item->type_known = item->kind == ITEM_SCALAR;
}

/* What the metadata of the new pack may grow by. */
static uint64_t more_metadata(const struct item *item)
{
	return item->name_size + OVERLAY_ENTRY_OVERHEAD +
	       (item->text ? item->text->size : 0);
}

/* Items at rest leave the table, the others get their new base. */
static void move_items(struct move *move)
{
	struct overlay *overlay = move->overlay;
	struct item_table *table = &overlay->tables[move->kind];
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++) {
		struct item *item = table->items[i];

		if (at_rest(move, item)) {
			move->promoted[item->place] = NULL;
			item->linked = false;
			item_unref(overlay, item);
			continue;
		}
		if (committed(move, item))
			settle(item);
		else
			overlay->metadata_estimate += more_metadata(item);
		item->base = item->place;
		item->described = item->place_described;
		table->items[kept++] = item;
	}
	table->count = kept;
	table->changes++;
	free(overlay->promoted[move->kind]);
	free(overlay->ids[move->kind]);
	overlay->promoted[move->kind] = move->promoted;
	overlay->ids[move->kind] = move->ids;
	overlay->live[move->kind] = move->count + table->count;
	for (size_t j = 0; j < move->count; j++)
		overlay->live[move->kind] -= move->promoted[j] != NULL;
	move->promoted = NULL;
	move->ids = NULL;
}

/* What was a tensor and may be one again is described as one of the new pack, or, where
 * that has none so described, by what the item itself knows. */
static void move_scratch(struct overlay *overlay)
{
	const struct item_table *table = &overlay->tables[ITEM_SCRATCH];

	for (size_t i = 0; i < table->count; i++)
		table->items[i]->described = table->items[i]->place_described;
}

static void replace_gone(struct overlay *overlay, struct move *moves, struct item **gone)
{
	struct item_table *table = &overlay->gone;

	for (size_t i = 0; i < table->count; i++)
		item_unref(overlay, table->items[i]);
	free(table->items);
	table->items = gone;
	table->count = 0;
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++) {
		for (size_t i = 0; i < moves[kind].gone_count; i++)
			gone[table->count++] = moves[kind].gone[i];
		moves[kind].gone_count = 0;
	}
	table->capacity = table->count;
}

int mount_rebase(struct mount *mount, struct pack *pack, const struct frozen *frozen)
{
	struct overlay *overlay = &mount->overlay;
	struct move moves[PACK_KIND_COUNT] = { 0 };
	struct item **gone = NULL;
	size_t gone_count = 0;
	int error = 0;

	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT && !error; kind++) {
		moves[kind].overlay = overlay;
		moves[kind].frozen = frozen;
		moves[kind].kind = kind;
		error = prepare(&moves[kind], pack);
		gone_count += moves[kind].gone_count;
	}
	if (!error) {
		gone = calloc(gone_count + 1, sizeof(struct item *));
		error = gone ? 0 : -ENOMEM;
	}
	if (!error) {
		move_nodes(mount, moves);
		overlay->metadata_estimate = bpk_reader_metadata_size(pack->reader);
		overlay->data_estimate = 0;
		for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++)
			move_items(&moves[kind]);
		move_scratch(overlay);
		replace_gone(overlay, moves, gone);
		pack_unref(overlay->pack);
		overlay->pack = pack_ref(pack);
		overlay->reader = pack->reader;
		mount_pack_changed(mount);
	}
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++)
		move_done(&moves[kind]);
	return error;
}
