/*
 * tree.c - see tree.h.
 */
#include "tree.h"
#include "base.h"
#include "cbor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *join(const char *a, size_t a_size, const char *b, size_t b_size)
{
	char *joined = malloc(a_size + b_size + 2); /* room for a dot, never NULL */

	if (!joined)
		return NULL;
	if (a_size)
		memcpy(joined, a, a_size);
	if (b_size)
		memcpy(joined + a_size, b, b_size);
	return joined;
}

/* Scratch files of a folder stand together: length of the prefix, section, the
 * prefix, then the file name. */
#define SCRATCH_HEAD 5
#define SCRATCH_NPY ((char)0x40) /* in the section's byte */
static char *scratch_key(const struct folder *folder, const char *text, size_t size,
			 size_t *ret_size)
{
	char *key = malloc(SCRATCH_HEAD + folder->prefix_size + size + 1);

	if (!key)
		return NULL;
	for (int i = 0; i < 4; i++)
		key[i] = (char)(folder->prefix_size >> (24 - 8 * i));
	key[4] = (char)((char)folder->kind | (folder->npy ? SCRATCH_NPY : 0));
	if (folder->prefix_size)
		memcpy(key + SCRATCH_HEAD, folder->prefix, folder->prefix_size);
	if (size)
		memcpy(key + SCRATCH_HEAD + folder->prefix_size, text, size);
	*ret_size = SCRATCH_HEAD + folder->prefix_size + size;
	return key;
}

enum item_kind tree_scratch_section(const struct item *item)
{
	return (enum item_kind)(item->name[SCRATCH_HEAD - 1] & ~SCRATCH_NPY);
}

char *tree_folder_key(const struct folder *folder, size_t *ret_size)
{
	char kind = (char)folder->kind;

	*ret_size = folder->prefix_size + 1;
	return join(&kind, 1, folder->prefix, folder->prefix_size);
}

void resolved_done(struct resolved *resolved)
{
	free(resolved->name);
	resolved->name = NULL;
}

static size_t component_size(const struct folder *folder, const char *rest, size_t size)
{
	const char *dot = NULL;

	if (folder->dots == NAME_DOTS_SPLIT && size)
		dot = memchr(rest, '.', size);
	return dot ? (size_t)(dot - rest) : size;
}

/* Is there an entry, or a made folder, below @prefix (which ends with a dot)? */
static bool prefix_exists(const struct folder *folder, const char *prefix, size_t size)
{
	struct folder sub = *folder;
	char *key;
	size_t key_size;
	bool exists;

	if (overlay_has_prefix(folder->overlay, folder->kind, prefix, size))
		return true;
	if (!folder->overlay->tables[ITEM_FOLDER].count)
		return false;
	sub.prefix = prefix;
	sub.prefix_size = size;
	key = tree_folder_key(&sub, &key_size);
	exists = key && overlay_has_prefix(folder->overlay, ITEM_FOLDER, key, key_size);
	free(key);
	return exists;
}

bool tree_folder_exists(const struct folder *folder)
{
	return !folder->prefix_size ||
	       prefix_exists(folder, folder->prefix, folder->prefix_size);
}

struct item *tree_folder_item(const struct folder *folder)
{
	struct entry entry;
	size_t size;
	char *key;
	bool found;

	if (!folder->overlay->tables[ITEM_FOLDER].count)
		return NULL;
	key = tree_folder_key(folder, &size);
	found = key && overlay_find(folder->overlay, ITEM_FOLDER, key, size, &entry);
	free(key);
	return found ? entry.item : NULL;
}

static int resolve_scratch(const struct folder *folder, const char *text, size_t size,
			   struct resolved *ret)
{
	if (size > NAME_SIZE_MAX)
		return -ENAMETOOLONG;
	free(ret->name);
	*ret = (struct resolved) { .found = FOUND_FREE, .kind = ITEM_SCRATCH };
	ret->name = scratch_key(folder, text, size, &ret->name_size);
	if (!ret->name)
		return -ENOMEM;
	if (overlay_find(folder->overlay, ITEM_SCRATCH, ret->name, ret->name_size,
			 &ret->entry))
		ret->found = FOUND_ENTRY;
	return 0;
}

int tree_resolve_backup(const struct folder *folder, const char *text, size_t size,
			struct resolved *resolved)
{
	return resolve_scratch(folder, text, size, resolved);
}

static bool has_suffix(const char *text, size_t size)
{
	size_t suffix = strlen(TREE_NPY_SUFFIX);

	return size > suffix &&
	       memcmp(text + size - suffix, TREE_NPY_SUFFIX, suffix) == 0;
}

/* The entry whose name is @a and @b. */
static int resolve_name(const struct folder *folder, const char *a, size_t a_size,
			const char *b, size_t b_size, struct resolved *ret)
{
	ret->name = join(a, a_size, b, b_size);
	if (!ret->name)
		return -ENOMEM;
	ret->name_size = a_size + b_size;
	if (!ret->no_file && overlay_find(folder->overlay, folder->kind, ret->name,
					  ret->name_size, &ret->entry))
		ret->found = FOUND_ENTRY;
	return 0;
}

/* A component is the folder first: the tensor of that name is its %self. */
static int resolve_component(const struct folder *folder, const char *raw, size_t size,
			     struct resolved *ret)
{
	if (folder->dots == NAME_DOTS_SPLIT) {
		char *name = join(folder->prefix, folder->prefix_size, raw, size);
		size_t name_size = folder->prefix_size + size;

		if (!name)
			return -ENOMEM;
		name[name_size] = '.';
		if (!prefix_exists(folder, name, name_size + 1)) {
			;
		} else if (folder->npy && !ret->no_file) {
			/* No folder is called so: it can only be the %self.npy below. */
			ret->alias = true;
		} else {
			memmove(name, name + folder->prefix_size, size);
			ret->name = name;
			ret->name_size = size;
			ret->found = FOUND_FOLDER;
			return 0;
		}
		free(name);
	}
	return resolve_name(folder, folder->prefix, folder->prefix_size, raw, size, ret);
}

int tree_resolve_component(const struct folder *folder, const char *raw, size_t size,
			   bool is_file, struct resolved *ret)
{
	*ret = (struct resolved) {
		.found = FOUND_FREE,
		.kind = folder->kind,
		.no_file = folder->npy && !is_file,
	};
	return resolve_component(folder, raw, size, ret);
}

int tree_resolve(const struct folder *folder, const char *text, size_t size,
		 struct resolved *ret)
{
	const size_t suffix = strlen(TREE_NPY_SUFFIX);
	struct cut_place place = { folder->prefix, folder->prefix_size, true };
	struct name_decoded decoded;
	size_t room = NAME_SIZE_MAX, raw_size;
	const char *component;
	int error;

	*ret = (struct resolved) { .found = FOUND_FREE, .kind = folder->kind };
	if (name_is_scratch(text, size))
		return resolve_scratch(folder, text, size, ret);
	/* A backup that a tool made: there under the very name it was given. */
	if (folder->overlay->tables[ITEM_SCRATCH].count) {
		error = resolve_scratch(folder, text, size, ret);
		if (error || ret->found == FOUND_ENTRY)
			return error;
		resolved_done(ret);
		*ret = (struct resolved) { .found = FOUND_FREE, .kind = folder->kind };
	}
	if (folder->npy) {
		ret->no_file = !has_suffix(text, size);
		place.is_file = !ret->no_file;
		if (place.is_file) {
			room -= suffix;
			size -= suffix;
		}
	}
	error = name_decode(text, size, room, folder->dots, &decoded);
	if (error)
		return error;
	if (ret->no_file && decoded.kind != NAME_PLAIN && decoded.kind != NAME_CUT)
		return -EINVAL;
	component = decoded.raw;
	raw_size = decoded.raw_size;
	if (decoded.kind == NAME_CUT) {
		error = cuts_find(&folder->cuts[folder->npy], &place, &decoded,
				  &component, &raw_size);
		if (error)
			return error;
	}
	if (decoded.kind == NAME_SELF) {
		if (!folder->prefix_size)
			return -EINVAL;
		return resolve_name(folder, folder->prefix, folder->prefix_size - 1, NULL,
				    0, ret);
	}
	if (decoded.kind == NAME_DOTTED) {
		ret->alias = true;
		return resolve_name(folder, folder->prefix, folder->prefix_size,
				    component, raw_size, ret);
	}
	return resolve_component(folder, component, raw_size, ret);
}

static int list_component(const struct folder *folder, const char *raw, size_t size,
			  bool is_folder, const struct entry *entry, uint64_t id,
			  tree_list_fn fn, void *context)
{
	const struct cut_place place = { folder->prefix, folder->prefix_size,
					 !is_folder };
	char out[NAME_BUFFER];
	size_t out_size;
	int error = cuts_encode(&folder->cuts[folder->npy], &place, raw, size, out,
				&out_size);

	if (error)
		return error;
	if (folder->npy && !is_folder) {
		memcpy(out + out_size, TREE_NPY_SUFFIX, sizeof(TREE_NPY_SUFFIX));
		out_size += strlen(TREE_NPY_SUFFIX);
	}
	return fn(context, out, out_size, is_folder, raw, size, entry, id);
}

char *tree_path(const struct folder *section, const struct entry *entry)
{
	size_t size, done = 0, part;
	const char *name = entry_name(section->overlay, entry, &size);
	struct bpk_appender path = { 0 };
	bool more, self;

	do {
		struct cut_place place = { name, done, false };
		char out[NAME_BUFFER], *below;
		size_t out_size;

		part = component_size(section, name + done, size - done);
		more = done + part < size;
		below = join(name, done + part, ".", 1);
		self = below && !more && section->dots == NAME_DOTS_SPLIT &&
		       prefix_exists(section, below, done + part + 1);
		place.is_file = !more && !self;
		if (!below || cuts_encode(&section->cuts[section->npy], &place,
					  name + done, part, out, &out_size))
			path.failed = true;
		else
			bpk_append_raw(&path, out, out_size);
		if (more)
			bpk_append_raw(&path, "/", 1);
		free(below);
		done += part + 1;
	} while (more);
	if (self)
		bpk_append_raw(&path, "/" NAME_SELF_TEXT, 1 + strlen(NAME_SELF_TEXT));
	bpk_append_raw(&path, "", 1);
	if (!path.failed)
		return (char *)path.data;
	bpk_append_done(&path);
	return NULL;
}

static int list_entries(const struct folder *folder, tree_list_fn fn, void *context)
{
	const struct overlay *overlay = folder->overlay;
	struct entry entry;
	bool more;
	int result = 0;

	if (folder->prefix_size && overlay_find(overlay, folder->kind, folder->prefix,
						folder->prefix_size - 1, &entry)) {
		const char *self =
			folder->npy ? NAME_SELF_TEXT TREE_NPY_SUFFIX : NAME_SELF_TEXT;

		result = fn(context, self, strlen(self), false, NULL, 0, &entry,
			    entry_id(overlay, &entry));
	}
	more = overlay_seek(overlay, folder->kind, folder->prefix, folder->prefix_size,
			    &entry);
	while (more && !result) {
		size_t size, rest_size, part;
		const char *name = entry_name(overlay, &entry, &size), *rest;
		char *sub;

		if (size < folder->prefix_size ||
		    (folder->prefix_size &&
		     memcmp(name, folder->prefix, folder->prefix_size) != 0))
			break;
		rest = name + folder->prefix_size;
		rest_size = size - folder->prefix_size;
		part = component_size(folder, rest, rest_size);
		sub = join(name, folder->prefix_size + part, ".", 1);
		if (!sub)
			return -ENOMEM;
		if (part < rest_size) {
			struct folder below = *folder;
			struct item *made;

			below.prefix = sub;
			below.prefix_size = folder->prefix_size + part + 1;
			made = tree_folder_item(&below);
			result = list_component(folder, rest, part, true, &entry,
						made ? made->id : 0, fn, context);
			/* '/' follows '.': the first name behind the whole folder. */
			sub[below.prefix_size - 1] = '/';
			more = overlay_seek(overlay, folder->kind, sub, below.prefix_size,
					    &entry);
		} else {
			if (folder->dots != NAME_DOTS_SPLIT ||
			    !prefix_exists(folder, sub, folder->prefix_size + part + 1))
				result = list_component(folder, rest, part, false, &entry,
							entry_id(overlay, &entry), fn,
							context);
			more = overlay_next(overlay, &entry, &entry);
		}
		free(sub);
	}
	return result;
}

/* Made folders that hold no entry: those that do were listed with it. */
static int list_made(const struct folder *folder, tree_list_fn fn, void *context)
{
	const struct item_table *table = &folder->overlay->tables[ITEM_FOLDER];
	const char *last = NULL;
	size_t last_size = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct item *item = table->items[i];
		const char *prefix = item->name + 1, *rest;
		size_t size = item->name_size - 1, part;
		int result;

		if (item->name[0] != (char)folder->kind || size <= folder->prefix_size ||
		    (folder->prefix_size &&
		     memcmp(prefix, folder->prefix, folder->prefix_size) != 0))
			continue;
		rest = prefix + folder->prefix_size;
		part = component_size(folder, rest, size - folder->prefix_size);
		if (overlay_has_prefix(folder->overlay, folder->kind, prefix,
				       folder->prefix_size + part + 1))
			continue;
		if (last && bpk_name_compare(last, last_size, rest, part) == 0)
			continue;
		last = rest;
		last_size = part;
		result = list_component(folder, rest, part, true, NULL,
					size == folder->prefix_size + part + 1 ? item->id
									       : 0,
					fn, context);
		if (result)
			return result;
	}
	return 0;
}

static int list_scratch(const struct folder *folder, tree_list_fn fn, void *context)
{
	size_t size;
	char *key;
	struct entry entry;
	bool more;
	int result = 0;

	if (!folder->overlay->tables[ITEM_SCRATCH].count)
		return 0;
	key = scratch_key(folder, NULL, 0, &size);
	if (!key)
		return -ENOMEM;
	more = overlay_seek(folder->overlay, ITEM_SCRATCH, key, size, &entry);
	while (more && !result) {
		const struct item *item = entry.item;

		if (item->name_size < size || memcmp(item->name, key, size) != 0)
			break;
		result = fn(context, item->name + size, item->name_size - size, false,
			    NULL, 0, &entry, item->id);
		more = overlay_next(folder->overlay, &entry, &entry);
	}
	free(key);
	return result;
}

int tree_list(const struct folder *folder, tree_list_fn fn, void *context)
{
	int result = list_entries(folder, fn, context);

	if (!result && folder->dots == NAME_DOTS_SPLIT)
		result = list_made(folder, fn, context);
	return result ? result : list_scratch(folder, fn, context);
}

static int stop_at_first(void *context, const char *file_name, size_t size,
			 bool is_folder, const char *component, size_t component_length,
			 const struct entry *entry, uint64_t id)
{
	(void)context;
	(void)file_name;
	(void)size;
	(void)is_folder;
	(void)component;
	(void)component_length;
	(void)entry;
	(void)id;
	return 1;
}

bool tree_empty(const struct folder *folder)
{
	return tree_list(folder, stop_at_first, NULL) == 0;
}

/* What is below @from, to be below @to instead. */
static int add_prefix(struct overlay *overlay, struct renames *renames,
		      enum item_kind kind, const char *from, size_t from_size,
		      const char *to, size_t to_size)
{
	struct entry entry;
	bool more = overlay_seek(overlay, kind, from, from_size, &entry);

	while (more) {
		size_t size;
		const char *name = entry_name(overlay, &entry, &size);
		int error;

		if (size < from_size || memcmp(name, from, from_size) != 0)
			break;
		error = overlay_renames_add(overlay, renames, &entry, to, to_size,
					    name + from_size, size - from_size);
		if (error)
			return error;
		more = overlay_next(overlay, &entry, &entry);
	}
	return 0;
}

/* Scratch keys carry the length of their prefix in front: one folder at a time. */
static int add_scratch(struct overlay *overlay, struct renames *renames,
		       const struct folder *folder, const char *to, size_t to_size)
{
	struct item_table *table = &overlay->tables[ITEM_SCRATCH];

	for (size_t i = 0; i < table->count; i++) {
		struct item *item = table->items[i];
		const struct entry entry = { ITEM_SCRATCH, NO_BASE, item };
		const char *prefix = item->name + SCRATCH_HEAD;
		size_t old_size = 0, key_size;
		struct folder moved = *folder;
		char *new_prefix, *key;
		int error = -ENOMEM;

		for (int j = 0; j < 4; j++)
			old_size = old_size << 8 | (uint8_t)item->name[j];
		if ((item->name[4] & ~SCRATCH_NPY) != (char)folder->kind ||
		    old_size < folder->prefix_size ||
		    memcmp(prefix, folder->prefix, folder->prefix_size) != 0)
			continue;
		new_prefix = join(to, to_size, prefix + folder->prefix_size,
				  old_size - folder->prefix_size);
		moved.npy = item->name[4] & SCRATCH_NPY;
		moved.prefix = new_prefix;
		moved.prefix_size = to_size + old_size - folder->prefix_size;
		key = new_prefix ? scratch_key(&moved, prefix + old_size,
					       item->name_size - SCRATCH_HEAD - old_size,
					       &key_size)
				 : NULL;
		if (key)
			error = overlay_renames_add(overlay, renames, &entry, key,
						    key_size, NULL, 0);
		free(new_prefix);
		free(key);
		if (error)
			return error;
	}
	return 0;
}

int tree_rename_prepare(struct overlay *overlay, const struct folder *folder,
			const char *to, size_t to_size, struct tree_renames *ret_renames)
{
	struct tree_renames renames = { .kind = folder->kind };
	struct folder target = *folder;
	size_t from_size, target_size;
	char *from = tree_folder_key(folder, &from_size), *key;
	struct entry self;
	int error;

	target.prefix = to;
	target.prefix_size = to_size;
	key = tree_folder_key(&target, &target_size);
	error = from && key ? 0 : -ENOMEM;
	/* The tensor that is the folder's %self goes with it. */
	if (!error && overlay_find(overlay, folder->kind, folder->prefix,
				   folder->prefix_size - 1, &self))
		error = overlay_renames_add(overlay, &renames.entries, &self, to,
					    to_size - 1, NULL, 0);
	if (!error)
		error = add_prefix(overlay, &renames.entries, folder->kind,
				   folder->prefix, folder->prefix_size, to, to_size);
	if (!error)
		error = add_prefix(overlay, &renames.made, ITEM_FOLDER, from, from_size,
				   key, target_size);
	if (!error)
		error = add_scratch(overlay, &renames.scratch, folder, to, to_size);
	free(from);
	free(key);
	if (error)
		tree_renames_done(&renames);
	else
		*ret_renames = renames;
	return error;
}

void tree_rename_apply(struct overlay *overlay, struct tree_renames *renames)
{
	overlay_renames_apply(overlay, renames->kind, &renames->entries);
	overlay_renames_apply(overlay, ITEM_FOLDER, &renames->made);
	overlay_renames_apply(overlay, ITEM_SCRATCH, &renames->scratch);
}

void tree_renames_done(struct tree_renames *renames)
{
	overlay_renames_done(&renames->entries);
	overlay_renames_done(&renames->made);
	overlay_renames_done(&renames->scratch);
}
