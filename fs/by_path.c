/*
 * by_path.c - see by_path.h.
 */
#include "by_path.h"
#include "base.h"
#include "record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
	const struct module_path *one = a, *two = b;
	int order = bpk_name_compare(one->path, one->size, two->path, two->size);

	return order ? order
		     : (one->metadata > two->metadata) - (one->metadata < two->metadata);
}

/* Has the parameter any state? @key is its param_id. */
static bool has_state(const struct overlay *overlay, const char *key, size_t size)
{
	char prefix[32];
	struct entry entry;

	if (size >= sizeof(prefix))
		return false;
	memcpy(prefix, key, size);
	prefix[size++] = '.';
	for (enum item_kind kind = ITEM_TENSOR; kind <= ITEM_SCALAR; kind++) {
		size_t name_size;

		if (!overlay_seek(overlay, kind, prefix, size, &entry))
			continue;
		if (memcmp(entry_name(overlay, &entry, &name_size), prefix,
			   name_size < size ? name_size : size) == 0 &&
		    name_size >= size && record_parameter(overlay, &entry) == size - 1)
			return true;
	}
	return false;
}

int by_path_make(struct by_path *by_path, const struct overlay *overlay,
		 enum name_dots dots)
{
	size_t capacity = 0, kept = 0;

	if (by_path->made)
		return 0;
	for (size_t i = 0; i < overlay_pack_count(overlay, ITEM_METADATA); i++) {
		const struct bpk_metadata *metadata =
			bpk_reader_metadata(overlay->reader, i);
		struct module_path path = { .metadata = i };
		size_t size;
		const char *key = bpk_metadata_key(metadata, &size);

		path.path = bpk_metadata_value(metadata, &path.size);
		if (!path.size || path.size > BY_PATH_SIZE_MAX ||
		    !has_state(overlay, key, size))
			continue;
		if (bpk_grow((void **)&by_path->list, &capacity, by_path->count + 1,
			     sizeof(*by_path->list))) {
			by_path_done(by_path);
			return -ENOMEM;
		}
		by_path->list[by_path->count++] = path;
	}
	if (by_path->count)
		qsort(by_path->list, by_path->count, sizeof(*by_path->list), compare);
	for (size_t i = 0; i < by_path->count; i++)
		if (!kept ||
		    bpk_name_compare(by_path->list[kept - 1].path,
				     by_path->list[kept - 1].size, by_path->list[i].path,
				     by_path->list[i].size) != 0)
			by_path->list[kept++] = by_path->list[i];
	by_path->count = kept;
	by_path->dots = dots;
	by_path->made = true;
	return 0;
}

void by_path_done(struct by_path *by_path)
{
	free(by_path->list);
	*by_path = (struct by_path) { .made = false };
}

bool by_path_valid(const struct by_path *by_path, struct path_folder folder)
{
	const struct module_path *path;

	if (!folder.size || folder.first >= by_path->count)
		return !folder.size;
	path = &by_path->list[folder.first];
	return folder.size <= path->size &&
	       (folder.size == path->size || path->path[folder.size] == '.');
}

/* Does it begin with @prefix? */
static bool begins(const struct module_path *path, const char *prefix, size_t size)
{
	return path->size >= size && (!size || memcmp(path->path, prefix, size) == 0);
}

/* The first path that is not below @name. */
static size_t lower_bound(const struct by_path *by_path, const char *name, size_t size)
{
	size_t low = 0, high = by_path->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct module_path *path = &by_path->list[middle];

		if (bpk_name_compare(path->path, path->size, name, size) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The folder of the path or beginning @name, which has room for a byte more. */
static bool find_folder(const struct by_path *by_path, char *name, size_t size,
			struct path_folder *ret_folder)
{
	size_t at = lower_bound(by_path, name, size);

	/* The path itself, or else the first below it: "a-b" is between "a" and "a.b". */
	if (at == by_path->count || by_path->list[at].size != size ||
	    memcmp(by_path->list[at].path, name, size) != 0) {
		if (by_path->dots != NAME_DOTS_SPLIT)
			return false;
		name[size] = '.';
		at = lower_bound(by_path, name, size + 1);
		if (at == by_path->count || !begins(&by_path->list[at], name, size + 1))
			return false;
	}
	*ret_folder = (struct path_folder) { at, size };
	return true;
}

/* The component @raw in the folder. */
static bool find_below(const struct by_path *by_path, struct path_folder folder,
		       const char *raw, size_t size, struct path_folder *ret_folder)
{
	char name[BY_PATH_SIZE_MAX + 2] = "";
	size_t at = folder.size;

	/* by-path/ itself is the folder of no bytes. */
	if (at + size == 0 || at + 1 + size > BY_PATH_SIZE_MAX ||
	    (by_path->dots == NAME_DOTS_SPLIT && size && memchr(raw, '.', size)))
		return false;
	if (at) {
		memcpy(name, by_path->list[folder.first].path, at);
		name[at++] = '.';
	}
	if (size)
		memcpy(name + at, raw, size);
	return find_folder(by_path, name, at + size, ret_folder);
}

/* "{param_id}." of the path that the folder is; malloc'd. NULL when it is none, or
 * without memory. */
static char *id_prefix(const struct by_path *by_path, const struct overlay *overlay,
		       struct path_folder folder, size_t more, size_t *ret_size)
{
	const struct module_path *path;
	size_t size;
	const char *key;
	char *prefix;

	if (!folder.size || by_path->list[folder.first].size != folder.size)
		return NULL;
	path = &by_path->list[folder.first];
	key = bpk_metadata_key(bpk_reader_metadata(overlay->reader, path->metadata),
			       &size);
	prefix = malloc(size + 1 + more);
	if (!prefix)
		return NULL;
	memcpy(prefix, key, size);
	prefix[size] = '.';
	*ret_size = size + 1;
	return prefix;
}

int by_path_find(const struct by_path *by_path, const struct overlay *overlay,
		 struct path_folder folder, const char *text,
		 struct path_found *ret_found)
{
	struct path_found found = { .entry = { .base = NO_BASE } };
	struct name_decoded decoded;
	size_t size;
	char *name;
	int error =
		name_decode(text, strlen(text), NAME_SIZE_MAX, NAME_DOTS_KEPT, &decoded);

	if (error || decoded.kind != NAME_PLAIN)
		return error == -ENAMETOOLONG ? error : -ENOENT;
	if (find_below(by_path, folder, decoded.raw, decoded.raw_size, &found.folder)) {
		*ret_found = found;
		return 0;
	}
	name = id_prefix(by_path, overlay, folder, decoded.raw_size, &size);
	if (!name)
		return -ENOENT;
	memcpy(name + size, decoded.raw, decoded.raw_size);
	size += decoded.raw_size;
	if (overlay_find(overlay, ITEM_TENSOR, name, size, &found.entry) ||
	    overlay_find(overlay, ITEM_SCALAR, name, size, &found.entry))
		*ret_found = found;
	else
		error = -ENOENT;
	free(name);
	return error;
}

static int list_one(const char *raw, size_t size, const struct path_found *found,
		    by_path_fn fn, void *context)
{
	char out[NAME_BUFFER];
	size_t head;

	if (name_is_cut(raw, size, NAME_SIZE_MAX, &head))
		return 0;
	size = name_encode(raw, size, NAME_SIZE_MAX, 0, out);
	return fn(context, out, size, found);
}

static int list_folders(const struct by_path *by_path, struct path_folder folder,
			by_path_fn fn, void *context)
{
	const char *prefix = folder.size ? by_path->list[folder.first].path : "";
	int result = 0;

	for (size_t i = folder.first; i < by_path->count && !result; i++) {
		const struct module_path *path = &by_path->list[i];
		size_t from = folder.size ? folder.size + 1 : 0;
		const char *dot = NULL;
		struct path_found found = { .entry = { .base = NO_BASE } };
		size_t size;

		if (!begins(path, prefix, folder.size))
			break;
		if (folder.size &&
		    (path->size <= folder.size || path->path[folder.size] != '.'))
			continue; /* the path itself, or "a-b" beside "a" */
		if (by_path->dots == NAME_DOTS_SPLIT)
			dot = memchr(path->path + from, '.', path->size - from);
		size = dot ? (size_t)(dot - path->path) : path->size;
		if (!find_below(by_path, folder, path->path + from, size - from,
				&found.folder) ||
		    found.folder.first != i)
			continue; /* listed with the first that is in it */
		result = list_one(path->path + from, size - from, &found, fn, context);
	}
	return result;
}

static int list_fields(const struct by_path *by_path, const struct overlay *overlay,
		       struct path_folder folder, enum item_kind kind, by_path_fn fn,
		       void *context)
{
	struct path_found found = { .folder = { 0, 0 } }, other;
	size_t prefix_size;
	char *prefix = id_prefix(by_path, overlay, folder, 0, &prefix_size);
	bool more =
		prefix && overlay_seek(overlay, kind, prefix, prefix_size, &found.entry);
	int result = 0;

	for (; more && !result;
	     more = overlay_next(overlay, &found.entry, &found.entry)) {
		size_t size;
		const char *name = entry_name(overlay, &found.entry, &size);
		char text[NAME_BUFFER];
		size_t head;

		if (size < prefix_size || memcmp(name, prefix, prefix_size) != 0)
			break;
		if (name_is_cut(name + prefix_size, size - prefix_size, NAME_SIZE_MAX,
				&head))
			continue;
		name_encode(name + prefix_size, size - prefix_size, NAME_SIZE_MAX, 0,
			    text);
		/* What else has that name comes first. */
		if (by_path_find(by_path, overlay, folder, text, &other) != 0 ||
		    other.folder.size || other.entry.kind != kind)
			continue;
		result = fn(context, text, strlen(text), &found);
	}
	free(prefix);
	return result;
}

int by_path_list(const struct by_path *by_path, const struct overlay *overlay,
		 struct path_folder folder, by_path_fn fn, void *context)
{
	int result = list_folders(by_path, folder, fn, context);

	if (!result)
		result = list_fields(by_path, overlay, folder, ITEM_TENSOR, fn, context);
	if (!result)
		result = list_fields(by_path, overlay, folder, ITEM_SCALAR, fn, context);
	return result;
}

size_t by_path_depth(const struct by_path *by_path, const struct overlay *overlay,
		     const struct entry *entry)
{
	size_t name_size, size, depth = 2;
	const char *name = entry_name(overlay, entry, &name_size), *path;
	const char *dot = name_size ? memchr(name, '.', name_size) : NULL;
	const struct bpk_metadata *metadata =
		dot ? bpk_reader_find_metadata(overlay->reader, name,
					       (size_t)(dot - name))
		    : NULL;

	if (!metadata)
		return 0;
	path = bpk_metadata_value(metadata, &size);
	for (size_t i = 0; i < size && by_path->dots == NAME_DOTS_SPLIT; i++)
		depth += path[i] == '.';
	return depth;
}
