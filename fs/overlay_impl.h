/*
 * overlay_impl.h - what overlay.c shares with overlay_edit.c, restore.c and rebase.c:
 * how an overlay is made, below what edits of it are.
 */
#ifndef BPKFS_OVERLAY_IMPL_H
#define BPKFS_OVERLAY_IMPL_H

#include "overlay.h"

/* What an entry costs in the metadata of a pack beside its name and its value,
 * at the most: heads, keys, type names, offsets. */
#define OVERLAY_ENTRY_OVERHEAD 128

/* A new item of one reference, not linked, with no base. NULL without memory. */
struct item *overlay_item_new(struct overlay *overlay, enum item_kind kind,
			      const char *name, size_t size);
/* A table for struct overlay.promoted, of @count entries: none is promoted, and with
 * room behind it for what overlay_seek() notes. NULL without memory. */
struct item **overlay_promoted_new(size_t count);
uint64_t overlay_base_id(const struct overlay *overlay, enum item_kind kind,
			 size_t index);
const char *overlay_base_name(const struct overlay *overlay, enum item_kind kind,
			      size_t index, size_t *ret_size);
/* The first entry of the pack, edited or not, whose name is not below @name. */
size_t overlay_base_lower_bound(const struct overlay *overlay, enum item_kind kind,
				const char *name, size_t size);
/* The entry of the pack, edited or not, of that name, or NO_BASE. */
size_t overlay_base_find(const struct overlay *overlay, enum item_kind kind,
			 const char *name, size_t size);

/* The item that is in the place of entry @index of the pack, or NULL. */
struct item *overlay_promoted(const struct overlay *overlay, enum item_kind kind,
			      size_t index);
/* One that nothing refers to. */
void overlay_item_free(struct item *item);

int overlay_table_reserve(struct item_table *table);
size_t overlay_table_lower_bound(const struct item_table *table, const char *name,
				 size_t size);
void overlay_table_insert_at(struct item_table *table, size_t at, struct item *item);
void overlay_table_delete(struct item_table *table, size_t at);
/* Where @item is, which is in it. */
size_t overlay_table_index(const struct item_table *table, const struct item *item);

#endif
