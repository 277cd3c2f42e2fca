/*
 * edit_data.c - edits of what files hold: text that is being written until it is a
 * value, and the staged bytes of tensors. Names are edit.c's.
 */
#include "edit_data.h"
#include "base.h"
#include "content.h"
#include "edit.h"
#include "edit_npy.h"
#include "scalar_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* No metadata value can be larger: that is all the metadata a pack may have. */
#define TEXT_SIZE_MAX (UINT64_C(100) << 20)

int edit_take(struct mount *mount, const struct entry *entry, struct item **ret_item)
{
	int error = overlay_promote(&mount->overlay, entry, ret_item);

	if (error)
		return error;
	nodes_bind(&mount->nodes, *ret_item);
	overlay_touch(&mount->overlay, *ret_item);
	mount_edited(mount);
	return 0;
}

static int node_take(struct mount *mount, const struct node *node, struct item **ret_item)
{
	struct entry entry = node_entry(&mount->overlay, node);

	return edit_take(mount, &entry, ret_item);
}

/* What an entry must hold ------------------------------------------------- */

/* The text of a scratch file or an entry, whole; malloc'd. */
static int whole_text(struct mount *mount, const struct item *item, char **ret_text,
		      size_t *ret_size)
{
	struct entry entry = { item->kind, item->base, NULL };
	uint64_t size;
	char *text;
	int error;

	memcpy(&entry.item, &item, sizeof(item));
	if (content_is_text(&entry))
		return content_text(&mount->overlay, &entry,
				    (struct view) { .writer = true }, ret_text, ret_size);
	size = item_data_size(&mount->overlay, item);
	if (size > TEXT_SIZE_MAX)
		return -EFBIG;
	text = malloc(size ? size : 1);
	if (!text)
		return -ENOMEM;
	error = staged_read(item->staged, text, size, 0);
	if (error) {
		free(text);
		return error;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

/* What a text means for @item's kind and, for a scalar, for the type it must have. */
static int set_scalar(struct item *item, const char *text, size_t size)
{
	struct bpk_scalar_value value;
	int error = item->type_known ? scalar_parse(text, size, item->value.type, &value)
				     : scalar_infer(text, size, &value);

	if (error)
		return error;
	item->value = value;
	item->has_value = true;
	return 0;
}

static int set_metadata(struct mount *mount, struct item *item, const char *text,
			size_t size)
{
	struct blob *blob;

	if (size && text[size - 1] == '\n')
		size--;
	if (!bpk_utf8_valid(text, size))
		return -EILSEQ;
	if (!overlay_metadata_fits(&mount->overlay, size))
		return -ENOSPC;
	blob = blob_new(text, size);
	if (!blob)
		return -ENOMEM;
	overlay_account(&mount->overlay, size);
	blob_unref(item->text);
	item->text = blob;
	item->has_value = true;
	overlay_touch(&mount->overlay, item);
	return 0;
}

static void drop_pending(struct item *item)
{
	free(item->pending.data);
	item->pending.data = NULL;
	item->pending.size = item->pending.capacity = 0;
	item->pending.active = item->pending.refused = item->pending.written = false;
}

static int set_text(struct mount *mount, struct item *item, enum item_kind kind,
		    const char *text, size_t size)
{
	int error = kind == ITEM_SCALAR ? set_scalar(item, text, size)
					: set_metadata(mount, item, text, size);

	if (!error)
		drop_pending(item);
	return error;
}

/* A new file with the first @size bytes of what @item has, as its own. */
static int stage_anew(struct mount *mount, struct item *item, uint64_t size)
{
	struct staged *staged;
	int error = staged_new(&mount->staging, &staged);

	if (error)
		return error;
	if (size && item->staged) {
		error = staged_copy(staged, item->staged->fd, 0, size);
	} else if (size && item->base != NO_BASE) {
		const struct bpk_reader *reader = item_reader(&mount->overlay, item);

		error = staged_copy(staged, bpk_reader_fd(reader),
				    bpk_tensor_off(bpk_reader_tensor(reader, item->base)),
				    size);
	}
	if (error) {
		staged_unref(staged);
		return error;
	}
	staged_unref(item->staged);
	item->staged = staged;
	return 0;
}

int edit_stage(struct mount *mount, struct item *item, uint64_t keep)
{
	uint64_t size = 0;

	if (item->staged && !item->staged->frozen && keep == UINT64_MAX)
		return 0;
	if (item->staged)
		size = staged_size(item->staged);
	else if (item->base != NO_BASE)
		size = bpk_tensor_size(bpk_reader_tensor(
			item_reader(&mount->overlay, item), item->base));
	if (keep > size)
		keep = size;
	/* A commit that is under way copies from it: that goes on with what it was. And
	 * what a journal names is not cut short: whoever is killed before the new bytes
	 * were fsynced has the old ones. */
	if (item->staged && !item->staged->frozen &&
	    (keep == size ||
	     !__atomic_load_n(&item->staged->journaled, __ATOMIC_RELAXED)))
		return 0;
	return stage_anew(mount, item, keep);
}

int edit_fit(struct mount *mount, struct item *item, enum item_kind kind,
	     const struct item *victim, const char *name, size_t name_size)
{
	struct staged *staged;
	char *text;
	size_t size;
	int error;

	if (kind == ITEM_SCALAR || kind == ITEM_METADATA) {
		if (kind == ITEM_METADATA && item->kind == ITEM_METADATA)
			return 0;
		if (kind == ITEM_SCALAR && item->kind == ITEM_SCALAR && !victim)
			return 0;
		/* A scalar that was touched and never written replaces nothing. */
		error = whole_text(mount, item, &text, &size);
		if (error)
			return error;
		if (kind == ITEM_SCALAR) {
			struct item probe = *item;

			probe.type_known =
				victim ? victim->type_known || victim->has_value
				       : overlay_former_type(&mount->overlay, name,
							     name_size,
							     &probe.value.type);
			if (victim)
				probe.value.type = victim->value.type;
			/* An attribute that was copied with it says it. */
			if (item->kind == ITEM_SCRATCH && item->type_known) {
				probe.type_known = true;
				probe.value.type = item->value.type;
			}
			error = set_scalar(&probe, text, size);
			if (!error) {
				item->value = probe.value;
				item->type_known = true;
				item->has_value = true;
			}
		}
		if (!error)
			error = set_text(mount, item, kind, text, size);
		free(text);
		if (!error) {
			staged_unref(item->staged);
			item->staged = NULL;
		}
		return error;
	}
	if (kind == ITEM_SCRATCH && item->kind != ITEM_TENSOR &&
	    item->kind != ITEM_SCRATCH) {
		error = whole_text(mount, item, &text, &size);
		if (error)
			return error;
		error = staged_new(&mount->staging, &staged);
		if (!error) {
			error = staged_write(staged, text, size, 0);
			if (error)
				staged_unref(staged);
		}
		free(text);
		if (!error) {
			item->staged = staged;
			item->type_known = false;
		}
		return error;
	}
	if (kind == ITEM_SCRATCH && item->kind == ITEM_TENSOR && !item->staged) {
		return edit_stage(mount, item, UINT64_MAX);
	}
	if (kind != ITEM_TENSOR)
		return 0;
	if (item->kind == ITEM_SCRATCH) {
		error = overlay_reserve_data(&mount->overlay, item, victim,
					     item_data_size(&mount->overlay, item));
		if (error)
			return error;
	}
	/* Raw bytes, not a tensor with a description of its own. */
	if (victim && item_is_raw(item)) {
		error = item_describe_as(item, victim);
		if (error)
			return error;
		if (!item->has_param_id) {
			item->has_param_id = victim->has_param_id;
			item->param_id = victim->param_id;
		}
	}
	/* Takes another's place in the pack: its own bytes must come along. */
	if (victim && !item->staged) {
		return edit_stage(mount, item, UINT64_MAX);
	}
	return 0;
}

/* Writing ------------------------------------------------------------------ */

int edit_begin(struct mount *mount, struct node *node)
{
	struct item *item;
	int error = node_take(mount, node, &item);

	if (!error) {
		item->pending.writers++;
		item->npy_writers += node->npy;
	}
	return error;
}

/*
 * A key that was opened to be replaced, and nothing written since: a shell closes
 * one copy of the file before it writes through another, so a close does not mean
 * yet that it shall be empty. When the last writer goes, or the mount, it does.
 */
static bool only_emptied(const struct item *item)
{
	return item->kind == ITEM_METADATA && item->pending.active &&
	       !item->pending.refused && !item->pending.written;
}

void edit_settle(struct mount *mount)
{
	const struct item_table *table = &mount->overlay.tables[ITEM_METADATA];

	for (size_t i = 0; i < table->count; i++)
		if (only_emptied(table->items[i]) &&
		    set_metadata(mount, table->items[i], NULL, 0) == 0)
			drop_pending(table->items[i]);
}

void edit_end(struct mount *mount, struct node *node)
{
	struct entry entry = node_entry(&mount->overlay, node);

	if (node->npy && --entry.item->npy_writers == 0)
		edit_npy_end(mount, entry.item);
	if (--entry.item->pending.writers > 0)
		return;
	if (only_emptied(entry.item))
		(void)set_metadata(mount, entry.item, NULL, 0);
	drop_pending(entry.item);
}

/* From now on the text is edited: it starts as what it is. */
static int start_pending(struct mount *mount, struct item *item)
{
	char *text;
	size_t size;
	int error;

	if (item->pending.active)
		return 0;
	error = whole_text(mount, item, &text, &size);
	if (error)
		return error;
	item->pending.data = text;
	item->pending.size = size;
	item->pending.capacity = size ? size : 1;
	item->pending.active = true;
	return 0;
}

static int resize_pending(struct item *item, uint64_t size)
{
	struct pending *pending = &item->pending;
	uint64_t most = item->kind == ITEM_SCALAR ? SCALAR_TEXT_SIZE_MAX : TEXT_SIZE_MAX;
	int error;

	if (size > most)
		return -EFBIG;
	error = bpk_grow((void **)&pending->data, &pending->capacity, (size_t)size, 1);
	if (error)
		return error;
	if (size > pending->size)
		memset(pending->data + pending->size, 0, (size_t)size - pending->size);
	pending->size = (size_t)size;
	return 0;
}

/* Can what is there still become a value? -EINVAL, or -ERANGE once the line is
 * whole and the type cannot hold it. */
static int viable(const struct item *item)
{
	const char *text = item->pending.data;
	size_t size = item->pending.size;
	struct bpk_scalar_value value;
	int error;

	if (item->kind != ITEM_SCALAR)
		return 0;
	if (!(item->type_known ? scalar_viable(text, size, item->value.type)
			       : scalar_viable_any(text, size)))
		return -EINVAL;
	if (!size || text[size - 1] != '\n')
		return 0;
	error = item->type_known ? scalar_parse(text, size, item->value.type, &value)
				 : scalar_infer(text, size, &value);
	return error == -ERANGE ? error : 0;
}

static int write_text(struct mount *mount, struct item *item, const char *data,
		      size_t size, uint64_t off)
{
	size_t old_size;
	char *old;
	uint64_t end;
	int error = start_pending(mount, item);

	if (error)
		return error;
	if (!bpk_add_u64(off, size, &end))
		return -EFBIG;
	/* A scalar is short, and the only text that a write may be refused for. */
	old_size = item->pending.size;
	old = item->kind == ITEM_SCALAR ? malloc(old_size + 1) : NULL;
	if (!old && item->kind == ITEM_SCALAR)
		return -ENOMEM;
	if (old)
		memcpy(old, item->pending.data, old_size);
	error = end > old_size ? resize_pending(item, end) : 0;
	if (!error && size) {
		memcpy(item->pending.data + off, data, size);
		error = viable(item);
		if (error && old) {
			memcpy(item->pending.data, old, old_size);
			item->pending.size = old_size;
		}
	}
	free(old);
	if (!error) {
		item->pending.refused = false;
		item->pending.written = true;
	}
	return error;
}

int edit_too_large(const struct item *item, uint64_t size)
{
	struct bpk_limits limits;

	bpk_limits_init(&limits);
	return item->kind == ITEM_TENSOR && size > limits.tensor_size ? -EFBIG : 0;
}

/* Scratch files may be of any size, until they become a tensor. */
static int reserve(struct mount *mount, const struct item *item, uint64_t size)
{
	return item->kind == ITEM_TENSOR
		       ? overlay_reserve_data(&mount->overlay, item, NULL, size)
		       : 0;
}

int edit_write(struct mount *mount, struct node *node, const char *data, size_t size,
	       uint64_t off)
{
	struct item *item;
	uint64_t end;
	int error = node_take(mount, node, &item);

	if (error)
		return error;
	if (item->kind == ITEM_SCALAR || item->kind == ITEM_METADATA)
		return write_text(mount, item, data, size, off);
	if (edit_is_npy(node, item))
		return edit_npy_write(mount, item, data, size, off);
	if (!bpk_add_u64(off, size, &end))
		return -EFBIG;
	edit_npy_forget(item);
	error = reserve(mount, item, end);
	if (!error)
		error = edit_stage(mount, item, UINT64_MAX);
	if (!error)
		error = staged_write(item->staged, data, size, off);
	clock_gettime(CLOCK_REALTIME, &item->mtime);
	return error;
}

int edit_truncate(struct mount *mount, struct node *node, uint64_t size)
{
	struct item *item;
	int error = node_take(mount, node, &item);

	if (error)
		return error;
	if (item->kind == ITEM_SCALAR || item->kind == ITEM_METADATA) {
		bool opened = item->pending.writers > 0;

		/* Without an open file there is no close that could tell. */
		error = start_pending(mount, item);
		if (!error)
			error = resize_pending(item, size);
		if (!error) {
			item->pending.refused = false;
			item->pending.written = size > 0 || !opened;
		}
		if (!error && !opened) {
			error = edit_flush(mount, node);
			drop_pending(item);
		}
		return error;
	}
	if (edit_is_npy(node, item))
		return edit_npy_truncate(mount, item, size);
	edit_npy_forget(item);
	error = reserve(mount, item, size);
	if (!error)
		error = edit_stage(mount, item, size);
	if (!error)
		error = staged_truncate(item->staged, size);
	clock_gettime(CLOCK_REALTIME, &item->mtime);
	return error;
}

int edit_flush(struct mount *mount, struct node *node)
{
	struct entry entry = node_entry(&mount->overlay, node);
	struct item *item = entry.item;
	int error;

	if (!item)
		return 0;
	if (edit_is_npy(node, item))
		return edit_npy_flush(mount, item);
	if (item->kind == ITEM_TENSOR)
		return item_data_valid(&mount->overlay, item) ? 0 : -EINVAL;
	if (item->kind == ITEM_SCRATCH || !item->pending.active || only_emptied(item))
		return 0;
	/* touch: made, and no value yet. */
	if (item->kind == ITEM_SCALAR && !item->has_value && !item->pending.size)
		return 0;
	error = item->kind == ITEM_SCALAR
			? set_scalar(item, item->pending.data, item->pending.size)
			: set_metadata(mount, item, item->pending.data,
				       item->pending.size);
	item->pending.refused = error != 0;
	if (!error) {
		clock_gettime(CLOCK_REALTIME, &item->mtime);
		overlay_touch(&mount->overlay, item);
		mount_edited(mount);
	}
	if (!error)
		drop_pending(item);
	return error;
}

int edit_allocate(struct mount *mount, struct node *node, int mode, uint64_t off,
		  uint64_t size)
{
	struct entry entry = node_entry(&mount->overlay, node);
	struct item *item;
	uint64_t end;
	int error;

	if (content_is_text(&entry) || (node->npy && entry.kind == ITEM_TENSOR))
		return -EOPNOTSUPP; /* posix_fallocate(3) knows what to do */
	if (!bpk_add_u64(off, size, &end))
		return -EFBIG;
	error = node_take(mount, node, &item);
	if (error)
		return error;
	edit_npy_forget(item);
	if (!(mode & FALLOC_FL_KEEP_SIZE))
		error = reserve(mount, item, end);
	if (!error)
		error = edit_stage(mount, item, UINT64_MAX);
	if (!error)
		error = staged_allocate(item->staged, mode, off, size);
	clock_gettime(CLOCK_REALTIME, &item->mtime);
	return error;
}

/* Attributes of files and folders ------------------------------------------ */

static int folder_attributes(struct node *node, const mode_t *mode,
			     const struct timespec *mtime)
{
	struct folder_attributes *attributes = node_attributes(node);

	if (!attributes)
		return -ENOMEM;
	if (mode) {
		attributes->mode_set = true;
		attributes->mode = *mode & 07777;
	}
	if (mtime) {
		attributes->mtime_set = true;
		attributes->mtime = *mtime;
	}
	return 0;
}

int edit_attributes(struct mount *mount, struct node *node, const mode_t *mode,
		    const struct timespec *mtime)
{
	struct item *item;
	int error;

	if (node->type == NODE_ROOT || node->type == NODE_SECTION ||
	    node->type == NODE_FOLDER)
		return folder_attributes(node, mode, mtime);
	/* What bpkfs itself shows stays as it is, and nobody is stopped by that. */
	if (node->type != NODE_ENTRY)
		return 0;
	error = node_take(mount, node, &item);
	if (error)
		return error;
	if (mode) {
		item->mode_set = true;
		item->mode = *mode & 07777;
	}
	if (mtime) {
		item->mtime_set = true;
		item->mtime = *mtime;
	}
	return 0;
}
