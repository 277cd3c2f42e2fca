/*
 * cut.c - see cut.h.
 */
#include "cut.h"

#include <errno.h>
#include <sys/random.h>

int cuts_init(struct cuts *cuts, const struct overlay *overlay, enum item_kind kind,
	      enum name_dots dots, size_t file_room)
{
	*cuts = (struct cuts) {
		.overlay = overlay,
		.kind = kind,
		.dots = dots,
		.file_room = file_room,
	};
	if (getrandom(&cuts->seed, sizeof(cuts->seed), 0) != sizeof(cuts->seed))
		return -EIO;
	return 0;
}

void cuts_done(struct cuts *cuts)
{
	cut_index_done(&cuts->pack);
	cut_index_done(&cuts->edited);
	*cuts = (struct cuts) { .overlay = NULL };
}

void cuts_forget(struct cuts *cuts)
{
	cut_index_done(&cuts->pack);
	cut_index_done(&cuts->edited);
	cuts->pack = cuts->edited = (struct cut_index) { 0 };
	cuts->pack_made = cuts->edited_made = false;
}

static const char *pack_name(const void *context, size_t index, size_t *ret_size)
{
	const struct cuts *cuts = context;
	const struct entry entry = { cuts->kind, index, NULL };

	return entry_name(cuts->overlay, &entry, ret_size);
}

static const char *edited_name(const void *context, size_t index, size_t *ret_size)
{
	const struct cuts *cuts = context;
	const struct item *item = cuts->overlay->tables[cuts->kind].items[index];

	*ret_size = item->name_size;
	return item->name;
}

static int make(struct cuts *cuts, size_t count,
		const char *(*name)(const void *context, size_t index, size_t *ret_size),
		const struct cut_index *first, struct cut_index *ret)
{
	const struct cut_names names = {
		.name = name,
		.context = cuts,
		.count = count,
		.dots = cuts->dots,
		.file_room = cuts->file_room,
		.seed = cuts->seed,
	};

	return cut_index_build(&names, first, ret);
}

static int make_pack(struct cuts *cuts)
{
	int error;

	if (cuts->pack_made)
		return 0;
	error = make(cuts, overlay_pack_count(cuts->overlay, cuts->kind), pack_name, NULL,
		     &cuts->pack);
	cuts->pack_made = !error;
	return error;
}

static int make_edited(struct cuts *cuts)
{
	const struct item_table *table = &cuts->overlay->tables[cuts->kind];
	int error;

	if (cuts->edited_made && cuts->edited_changes == table->changes)
		return 0;
	cut_index_done(&cuts->edited);
	cuts->edited_made = false;
	error = make(cuts, table->count, edited_name, &cuts->pack, &cuts->edited);
	cuts->edited_made = !error;
	cuts->edited_changes = table->changes;
	return error;
}

int cuts_find(struct cuts *cuts, const struct cut_place *place,
	      const struct name_decoded *decoded, const char **ret_raw, size_t *ret_size)
{
	const char *raw;
	int error = make_pack(cuts);

	if (error)
		return error;
	raw = cut_index_find(&cuts->pack, place, decoded, ret_size);
	if (!raw && cuts->overlay->tables[cuts->kind].count) {
		error = make_edited(cuts);
		if (error)
			return error;
		raw = cut_index_find(&cuts->edited, place, decoded, ret_size);
	}
	if (!raw)
		return -ENOENT;
	*ret_raw = raw;
	return 0;
}

int cuts_encode(struct cuts *cuts, const struct cut_place *place, const char *raw,
		size_t size, char out[NAME_BUFFER], size_t *ret_size)
{
	const bool edits = cuts->overlay->tables[cuts->kind].count;
	size_t room = place->is_file ? cuts->file_room : NAME_SIZE_MAX, head;
	uint64_t probe = 0;
	int error;

	if (name_is_cut(raw, size, room, &head)) {
		error = make_pack(cuts);
		if (error)
			return error;
		/* Mostly no two names collide, and there is nothing to look for. */
		if ((edits || cuts->pack.probes) &&
		    !cut_index_probe(&cuts->pack, place, raw, size, &probe) && edits) {
			error = make_edited(cuts);
			if (error)
				return error;
			cut_index_probe(&cuts->edited, place, raw, size, &probe);
		}
	}
	*ret_size = name_encode(raw, size, room, probe, out);
	return 0;
}
