/*
 * edit.c - see edit.h.
 */
#include "edit.h"
#include "base.h"
#include "content.h"
#include "scalar_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No metadata value can be larger: that is all the metadata a pack may have. */
#define TEXT_SIZE_MAX (UINT64_C(100) << 20)

/* The item of @entry, and the kernel's node of it bound to it for good. */
static int take(struct mount *mount, const struct entry *entry, struct item **ret_item)
{
	struct node *node;
	int error = overlay_promote(&mount->overlay, entry, ret_item);

	if (error)
		return error;
	node = nodes_find(&mount->nodes, (*ret_item)->id);
	if (node && node->type == NODE_ENTRY && !node->item) {
		node->item = *ret_item;
		item_ref(node->item);
	}
	clock_gettime(CLOCK_REALTIME, &mount->changed);
	return 0;
}

static int node_take(struct mount *mount, const struct node *node, struct item **ret_item)
{
	struct entry entry = node_entry(&mount->overlay, node);

	return take(mount, &entry, ret_item);
}

static int resolve(struct mount *mount, struct node *parent, const char *text,
		   struct folder *ret_folder, char **ret_prefix, struct resolved *ret)
{
	int error = mount_folder(mount, parent, ret_folder, ret_prefix);

	if (error)
		return error;
	error = tree_resolve(ret_folder, text, strlen(text), ret);
	if (error) {
		free(*ret_prefix);
		*ret_prefix = NULL;
	}
	return error;
}

/* A folder stays when its last entry goes: it exists until rmdir, as anywhere. */
static int keep_folder(struct mount *mount, const struct node *node,
		       const struct folder *folder)
{
	struct item *item;
	size_t size;
	char *key;
	int error;

	if (!folder->prefix_size || tree_folder_item(folder))
		return 0;
	key = tree_folder_key(folder, &size);
	if (!key)
		return -ENOMEM;
	error = overlay_make(&mount->overlay, ITEM_FOLDER, key, size, &item);
	free(key);
	if (!error && node->type == NODE_FOLDER)
		item->id = node->id;
	return error;
}

/* Likewise for the folder of an entry that is reached by a dotted name. */
static int keep_folder_of(struct mount *mount, const struct folder *folder,
			  const char *name, size_t size)
{
	struct folder inner = *folder;
	const struct node *node = &mount->nodes.fixed[NODE_ID_ROOT];
	const char *dot = memrchr(name, '.', size);

	if (folder->dots != NAME_DOTS_SPLIT || !dot)
		return 0;
	inner.prefix = name;
	inner.prefix_size = (size_t)(dot - name) + 1;
	return keep_folder(mount, node, &inner);
}

int edit_create(struct mount *mount, struct node *parent, const char *text,
		struct entry *ret_entry, bool *ret_alias)
{
	struct folder folder;
	struct resolved resolved;
	char *prefix;
	struct item *item;
	int error = resolve(mount, parent, text, &folder, &prefix, &resolved);

	if (error)
		return error;
	*ret_alias = resolved.alias;
	if (resolved.found != FOUND_FREE) {
		*ret_entry = resolved.entry;
		error = resolved.found == FOUND_FOLDER ? -EISDIR : -EEXIST;
		goto out;
	}
	error = overlay_make(&mount->overlay, resolved.kind, resolved.name,
			     resolved.name_size, &item);
	if (error)
		goto out;
	if (resolved.kind == ITEM_TENSOR || resolved.kind == ITEM_SCRATCH)
		error = staged_new(&mount->staging, &item->staged);
	if (error) {
		overlay_remove(&mount->overlay, item);
		goto out;
	}
	if (resolved.kind == ITEM_METADATA) {
		item->text = blob_new(NULL, 0);
		item->has_value = item->text != NULL;
	}
	/* Removed and made again, as editors do: it is still of that type. */
	if (resolved.kind == ITEM_SCALAR)
		item->type_known = overlay_former_type(
			&mount->overlay, item->name, item->name_size, &item->value.type);
	clock_gettime(CLOCK_REALTIME, &mount->changed);
	*ret_entry = (struct entry) { resolved.kind, NO_BASE, item };
out:
	resolved_done(&resolved);
	free(prefix);
	return error;
}

int edit_unlink(struct mount *mount, struct node *parent, const char *text)
{
	struct folder folder;
	struct resolved resolved;
	char *prefix;
	struct item *item;
	int error = resolve(mount, parent, text, &folder, &prefix, &resolved);

	if (error)
		return error;
	if (resolved.found != FOUND_ENTRY)
		error = resolved.found == FOUND_FREE ? -ENOENT : -EISDIR;
	if (!error)
		error = take(mount, &resolved.entry, &item);
	if (!error)
		error = keep_folder(mount, parent, &folder);
	if (!error && item->kind != ITEM_SCRATCH)
		error = keep_folder_of(mount, &folder, item->name, item->name_size);
	if (!error)
		error = overlay_remove(&mount->overlay, item);
	resolved_done(&resolved);
	free(prefix);
	return error;
}

int edit_mkdir(struct mount *mount, struct node *parent, const char *text,
	       struct node **ret_node)
{
	struct folder folder, made;
	struct resolved resolved;
	struct item *item;
	char *prefix, *key;
	size_t size;
	int error;

	if (parent->type != NODE_SECTION && parent->type != NODE_FOLDER)
		return -EACCES;
	error = resolve(mount, parent, text, &folder, &prefix, &resolved);
	if (error)
		return error;
	if (resolved.found != FOUND_FREE)
		error = -EEXIST;
	else if (folder.dots != NAME_DOTS_SPLIT || resolved.kind == ITEM_SCRATCH)
		error = -EPERM;
	else if (resolved.alias)
		error = -EINVAL; /* a folder is one component */
	else if (resolved.name_size < folder.prefix_size)
		error = -EINVAL; /* %self names a file */
	if (error)
		goto out;
	made = folder;
	resolved.name[resolved.name_size] = '.';
	made.prefix = resolved.name;
	made.prefix_size = resolved.name_size + 1;
	key = tree_folder_key(&made, &size);
	error = key ? overlay_make(&mount->overlay, ITEM_FOLDER, key, size, &item)
		    : -ENOMEM;
	free(key);
	if (error)
		goto out;
	*ret_node = nodes_folder(&mount->nodes, parent, folder.kind,
				 resolved.name + folder.prefix_size,
				 resolved.name_size - folder.prefix_size, item->id);
	if (!*ret_node) {
		overlay_remove(&mount->overlay, item);
		error = -ENOMEM;
	}
out:
	resolved_done(&resolved);
	free(prefix);
	return error;
}

int edit_rmdir(struct mount *mount, struct node *parent, const char *text)
{
	struct folder folder, gone;
	struct resolved resolved;
	struct item *item;
	char *prefix, *inner = NULL;
	int error = resolve(mount, parent, text, &folder, &prefix, &resolved);

	if (error)
		return error;
	if (resolved.found != FOUND_FOLDER) {
		error = resolved.found == FOUND_FREE ? -ENOENT : -ENOTDIR;
		goto out;
	}
	inner = malloc(folder.prefix_size + resolved.name_size + 1);
	error = inner ? 0 : -ENOMEM;
	if (error)
		goto out;
	memcpy(inner, folder.prefix, folder.prefix_size);
	memcpy(inner + folder.prefix_size, resolved.name, resolved.name_size);
	inner[folder.prefix_size + resolved.name_size] = '.';
	gone = folder;
	gone.prefix = inner;
	gone.prefix_size = folder.prefix_size + resolved.name_size + 1;
	item = tree_folder_item(&gone);
	if (!tree_empty(&gone))
		error = -ENOTEMPTY;
	else if (item)
		error = keep_folder(mount, parent, &folder);
	if (!error && item)
		error = overlay_remove(&mount->overlay, item);
out:
	free(inner);
	resolved_done(&resolved);
	free(prefix);
	return error;
}

/* Rename ------------------------------------------------------------------- */

/* The text of a scratch file or an entry, whole; malloc'd. */
static int whole_text(struct mount *mount, const struct item *item, char **ret_text,
		      size_t *ret_size)
{
	struct entry entry = { item->kind, item->base, NULL };
	uint64_t size;
	char *text;

	memcpy(&entry.item, &item, sizeof(item));
	size = content_size(&mount->overlay, &entry, true);
	if (size > TEXT_SIZE_MAX)
		return -EFBIG;
	text = malloc(size ? size : 1);
	if (!text)
		return -ENOMEM;
	if (content_is_text(&entry)) {
		size = content_text(&mount->overlay, &entry, true, 0, size, text);
	} else {
		int error = staged_read(item->staged, text, size, 0);

		if (error) {
			free(text);
			return error;
		}
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
	return 0;
}

static int set_text(struct mount *mount, struct item *item, enum item_kind kind,
		    const char *text, size_t size)
{
	int error = kind == ITEM_SCALAR ? set_scalar(item, text, size)
					: set_metadata(mount, item, text, size);

	if (!error) {
		free(item->pending.data);
		item->pending.data = NULL;
		item->pending.size = item->pending.capacity = 0;
		item->pending.active = item->pending.refused = item->pending.written =
			false;
	}
	return error;
}

/* Bytes of its own for a tensor that leaves its place in the pack or is written. */
static int make_staged(struct mount *mount, struct item *item, bool copy)
{
	struct staged *staged;
	int error;

	if (item->staged)
		return 0;
	error = staged_new(&mount->staging, &staged);
	if (error)
		return error;
	if (copy && item->base != NO_BASE) {
		const struct bpk_tensor *tensor =
			bpk_reader_tensor(mount->reader, item->base);

		error = staged_copy(staged, bpk_reader_fd(mount->reader),
				    bpk_tensor_off(tensor), bpk_tensor_size(tensor));
		if (error) {
			staged_unref(staged);
			return error;
		}
	}
	item->staged = staged;
	return 0;
}

/*
 * Give @item the bytes that it must hold as an entry of @kind, before its name
 * changes. @victim, or NULL, is whose place it takes: its description stays.
 */
static int fit(struct mount *mount, struct item *item, enum item_kind kind,
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
		if (!error)
			item->staged = staged;
		return error;
	}
	if (kind == ITEM_SCRATCH && item->kind == ITEM_TENSOR && !item->staged) {
		return make_staged(mount, item, true);
	}
	if (kind != ITEM_TENSOR)
		return 0;
	/* Raw bytes, not a tensor with a description of its own. */
	if (victim && (item->kind == ITEM_SCRATCH || item->shape_follows)) {
		void *cbor = NULL;

		if (victim->dtype_cbor) {
			cbor = malloc(victim->dtype_cbor_size);
			if (!cbor)
				return -ENOMEM;
			memcpy(cbor, victim->dtype_cbor, victim->dtype_cbor_size);
		}
		error = item_set_shape(item, victim->shape, victim->rank);
		if (error) {
			free(cbor);
			return error;
		}
		free(item->dtype_cbor);
		item->dtype_cbor = cbor;
		item->dtype_cbor_size = victim->dtype_cbor_size;
		item->dtype = victim->dtype;
		item->shape_follows = victim->shape_follows;
		item->described = victim->described;
		item->has_param_id = victim->has_param_id;
		item->param_id = victim->param_id;
	} else if (item->kind == ITEM_SCRATCH && item->described == NO_BASE) {
		item->dtype = BPK_DTYPE_U8;
		item->shape_follows = true;
	}
	/* Takes another's place in the pack: its own bytes must come along. */
	if (victim && !item->staged) {
		return make_staged(mount, item, true);
	}
	return 0;
}

static int rename_file(struct mount *mount, struct node *parent,
		       const struct folder *folder, const struct resolved *from,
		       const struct resolved *to, bool no_replace)
{
	struct item *item, *victim = NULL;
	int error;

	if (to->found == FOUND_FOLDER)
		return -EISDIR;
	if (to->found == FOUND_ENTRY && no_replace)
		return -EEXIST;
	if (to->found == FOUND_ENTRY && entry_id(&to->entry) == entry_id(&from->entry))
		return 0;
	error = take(mount, &from->entry, &item);
	if (!error && to->found == FOUND_ENTRY)
		error = take(mount, &to->entry, &victim);
	if (!error)
		error = keep_folder(mount, parent, folder);
	if (!error && item->kind < PACK_KIND_COUNT)
		error = keep_folder_of(mount, folder, item->name, item->name_size);
	if (!error)
		error = fit(mount, item, to->kind, victim, to->name, to->name_size);
	if (error)
		return error;
	if (victim)
		return overlay_replace(&mount->overlay, item, victim);
	return overlay_rename(&mount->overlay, item, to->kind, to->name, to->name_size);
}

static int rename_folder(struct mount *mount, struct node *parent,
			 const struct folder *folder, const struct resolved *from,
			 struct node *new_parent, const struct folder *new_folder,
			 struct resolved *to, bool no_replace)
{
	struct folder source = *folder, target = *new_folder;
	struct item *made;
	struct entry self;
	struct node *node;
	char *old_prefix = NULL, *new_prefix = NULL;
	size_t part_size = to->name_size, skip = 0;
	int error = -ENOMEM;

	if (folder->kind != new_folder->kind)
		return -EXDEV;
	if (to->found == FOUND_ENTRY)
		return -ENOTDIR;
	if (to->kind == ITEM_SCRATCH || to->alias)
		return -EINVAL;
	if (to->found == FOUND_FREE) {
		if (to->name_size < new_folder->prefix_size)
			return -EINVAL;
		skip = new_folder->prefix_size;
		part_size -= skip;
	}
	node = nodes_folder(&mount->nodes, parent, folder->kind, from->name,
			    from->name_size, 0);
	old_prefix = malloc(folder->prefix_size + from->name_size + 1);
	new_prefix = malloc(new_folder->prefix_size + part_size + 1);
	if (!node || !old_prefix || !new_prefix)
		goto out;
	memcpy(old_prefix, folder->prefix, folder->prefix_size);
	memcpy(old_prefix + folder->prefix_size, from->name, from->name_size);
	source.prefix = old_prefix;
	source.prefix_size = folder->prefix_size + from->name_size + 1;
	old_prefix[source.prefix_size - 1] = '.';
	memcpy(new_prefix, new_folder->prefix, new_folder->prefix_size);
	memcpy(new_prefix + new_folder->prefix_size, to->name + skip, part_size);
	target.prefix = new_prefix;
	target.prefix_size = new_folder->prefix_size + part_size + 1;
	new_prefix[target.prefix_size - 1] = '.';
	made = tree_folder_item(&source);
	if (made) {
		struct node *other = nodes_find(&mount->nodes, made->id);

		node = other ? other : node;
	}
	error = 0;
	if (to->found == FOUND_FOLDER) {
		struct item *old = tree_folder_item(&target);

		if (source.prefix_size == target.prefix_size &&
		    memcmp(source.prefix, target.prefix, source.prefix_size) == 0)
			goto out;
		if (no_replace)
			error = -EEXIST;
		else if (!tree_empty(&target))
			error = -ENOTEMPTY;
		else if (old)
			error = overlay_remove(&mount->overlay, old);
		if (error)
			goto out;
	}
	error = keep_folder(mount, parent, folder);
	if (!error)
		error = keep_folder(mount, node, &source);
	/* The tensor that is the folder's %self goes with it. */
	if (!error && overlay_find(&mount->overlay, folder->kind, source.prefix,
				   source.prefix_size - 1, &self)) {
		struct item *item;

		error = take(mount, &self, &item);
		if (!error)
			error = overlay_rename(&mount->overlay, item, folder->kind,
					       new_prefix, target.prefix_size - 1);
	}
	if (!error)
		error = tree_rename(&mount->overlay, &source, target.prefix,
				    target.prefix_size);
	if (!error && node->type == NODE_FOLDER)
		error = node_move(&mount->nodes, &mount->overlay, node, new_parent,
				  new_prefix + new_folder->prefix_size, part_size);
	clock_gettime(CLOCK_REALTIME, &mount->changed);
out:
	free(old_prefix);
	free(new_prefix);
	return error;
}

/*
 * sed -i.bak and perl -i.bak move a scalar to its own name with a suffix and write
 * it anew. As a dotted name that would make a folder of the scalar and a scalar of
 * the backup; as everywhere, a backup is a file beside it, and scratch.
 */
static bool is_backup(const struct folder *folder, const char *text, const char *new_text)
{
	size_t size = strlen(text);

	return folder->kind == ITEM_SCALAR && folder->dots == NAME_DOTS_SPLIT &&
	       strncmp(text, new_text, size) == 0 &&
	       (strcmp(new_text + size, ".bak") == 0 ||
		strcmp(new_text + size, ".orig") == 0);
}

int edit_rename(struct mount *mount, struct node *parent, const char *text,
		struct node *new_parent, const char *new_text, bool no_replace)
{
	struct folder folder, new_folder;
	struct resolved from = { 0 }, to = { 0 };
	char *prefix = NULL, *new_prefix = NULL;
	int error = resolve(mount, parent, text, &folder, &prefix, &from);

	if (!error)
		error = resolve(mount, new_parent, new_text, &new_folder, &new_prefix,
				&to);
	if (!error && parent == new_parent && from.found == FOUND_ENTRY &&
	    to.found == FOUND_FREE && is_backup(&folder, text, new_text))
		error = tree_resolve_backup(&new_folder, new_text, strlen(new_text), &to);
	if (!error && folder.kind != new_folder.kind)
		error = -EXDEV;
	if (!error && from.found == FOUND_FREE)
		error = -ENOENT;
	if (!error && from.found == FOUND_ENTRY)
		error = rename_file(mount, parent, &folder, &from, &to, no_replace);
	else if (!error)
		error = rename_folder(mount, parent, &folder, &from, new_parent,
				      &new_folder, &to, no_replace);
	resolved_done(&from);
	resolved_done(&to);
	free(prefix);
	free(new_prefix);
	return error;
}

/* Writing ------------------------------------------------------------------ */

int edit_begin(struct mount *mount, struct node *node)
{
	struct item *item;
	int error = node_take(mount, node, &item);

	if (!error)
		item->pending.writers++;
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

static void drop_pending(struct item *item)
{
	free(item->pending.data);
	item->pending.data = NULL;
	item->pending.size = item->pending.capacity = 0;
	item->pending.active = item->pending.refused = item->pending.written = false;
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

static int too_large(const struct item *item, uint64_t size)
{
	struct bpk_limits limits;

	bpk_limits_init(&limits);
	return item->kind == ITEM_TENSOR && size > limits.tensor_size ? -EFBIG : 0;
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
	if (!bpk_add_u64(off, size, &end))
		return -EFBIG;
	error = too_large(item, end);
	if (!error)
		error = make_staged(mount, item, true);
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
	error = too_large(item, size);
	if (!error)
		error = make_staged(mount, item, size > 0);
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
		clock_gettime(CLOCK_REALTIME, &mount->changed);
	}
	if (!error)
		drop_pending(item);
	return error;
}

int edit_touch(struct mount *mount, struct node *node, struct timespec mtime)
{
	struct item *item;
	int error;

	if (node->type != NODE_ENTRY)
		return 0;
	error = node_take(mount, node, &item);
	if (!error)
		item->mtime = mtime;
	return error;
}
