/*
 * cut.h - the cut names of one section of a mount: what the pack has, and what edits
 * have brought.
 *
 * The pack's names are indexed when the first cut name is listed or looked up, and
 * keep what they are called until unmount, whatever is edited. A component that only
 * edited names have (a folder was renamed, with what is below) is looked for in an
 * index of these, made again when they have changed.
 *
 * Locking: the mount's lock, as for the overlay.
 */
#ifndef BPKFS_CUT_H
#define BPKFS_CUT_H

#include "cut_index.h"
#include "overlay.h"

struct cuts {
	const struct overlay *overlay;
	enum item_kind kind;
	enum name_dots dots;
	size_t file_room;
	uint64_t seed;
	struct cut_index pack, edited;
	bool pack_made, edited_made;
	uint64_t edited_changes; /* of the table of items when edited was made */
};

/* @file_room: see struct cut_names. Fails only for want of a seed. */
int cuts_init(struct cuts *cuts, const struct overlay *overlay, enum item_kind kind,
	      enum name_dots dots, size_t file_room);
void cuts_done(struct cuts *cuts);
/* The overlay is over another pack. */
void cuts_forget(struct cuts *cuts);

/*
 * The component whose file name at @place is @decoded, a NAME_CUT: one that the pack
 * has or had, or an edited one. *@ret_raw is good until the next edit.
 *
 * Returns 0, -ENOENT, -ENOMEM or -EFBIG.
 */
int cuts_find(struct cuts *cuts, const struct cut_place *place,
	      const struct name_decoded *decoded, const char **ret_raw, size_t *ret_size);

/*
 * The file name of the component @raw at @place, which is there (or was in the pack),
 * cut or not: as name_encode(). Returns 0, -ENOMEM or -EFBIG.
 */
int cuts_encode(struct cuts *cuts, const struct cut_place *place, const char *raw,
		size_t size, char out[NAME_BUFFER], size_t *ret_size);

#endif
