/*
 * edit.c - edits of names: making, removing, renaming. See edit.h; what the files
 * hold is edit_data.c's.
 */
#include "edit.h"
#include "edit_data.h"
#include "edit_npy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* For a name that is to be there afterwards: a cut one must stand for something. */
static int resolve_target(struct mount *mount, struct node *parent, const char *text,
			  struct folder *ret_folder, char **ret_prefix,
			  struct resolved *ret)
{
	int error = resolve(mount, parent, text, ret_folder, ret_prefix, ret);

	return error == -ENOENT ? -EINVAL : error;
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
		item->id = node->id & ~NODE_ID_NPY;
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
	int error = resolve_target(mount, parent, text, &folder, &prefix, &resolved);

	if (error)
		return error;
	*ret_alias = resolved.alias;
	if (resolved.found != FOUND_FREE) {
		*ret_entry = resolved.entry;
		error = resolved.found == FOUND_FOLDER ? -EISDIR : -EEXIST;
		goto out;
	}
	if (resolved.no_file) {
		error = -EINVAL; /* in npy/, and not called so */
		goto out;
	}
	error = overlay_make(&mount->overlay, resolved.kind, resolved.name,
			     resolved.name_size, &item);
	if (error)
		goto out;
	if ((resolved.kind == ITEM_TENSOR && !folder.npy) ||
	    resolved.kind == ITEM_SCRATCH)
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
	mount_edited(mount);
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
		error = edit_take(mount, &resolved.entry, &item);
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
	error = resolve_target(mount, parent, text, &folder, &prefix, &resolved);
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
	struct folder folder, gone, twin;
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
	twin = gone;
	twin.npy = !gone.npy;
	if (!tree_empty(&gone) || !tree_empty(&twin))
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

static int rename_file(struct mount *mount, struct node *parent,
		       const struct folder *folder, const struct resolved *from,
		       const struct resolved *to, bool no_replace)
{
	struct item *item, *victim = NULL;
	int error;

	if (to->found == FOUND_FOLDER)
		return -EISDIR;
	if (to->no_file)
		return -EINVAL; /* in npy/, and not called so */
	if (to->found == FOUND_ENTRY && no_replace)
		return -EEXIST;
	if (to->found == FOUND_ENTRY && entry_id(&mount->overlay, &to->entry) ==
						entry_id(&mount->overlay, &from->entry))
		return 0;
	error = edit_take(mount, &from->entry, &item);
	if (!error && to->found == FOUND_ENTRY)
		error = edit_take(mount, &to->entry, &victim);
	if (!error)
		error = keep_folder(mount, parent, folder);
	if (!error && item->kind < PACK_KIND_COUNT)
		error = keep_folder_of(mount, folder, item->name, item->name_size);
	if (!error && folder->npy)
		error = edit_npy_fit(mount, item, to->kind, victim);
	if (!error)
		error = edit_fit(mount, item, to->kind, victim, to->name, to->name_size);
	if (error)
		return error;
	if (victim)
		return overlay_replace(&mount->overlay, item, victim);
	return overlay_rename(&mount->overlay, item, to->kind, to->name, to->name_size);
}

/* The folder's node, and the one of the same folder in npy/ or tensors/. It takes the
 * component, twice. */
static void move_nodes(struct mount *mount, struct node *node, struct node *parent,
		       char *components[2], size_t size)
{
	struct node *twin = node->kind == ITEM_TENSOR ? nodes_twin(&mount->nodes, node)
						      : NULL,
		    *above = twin ? nodes_twin(&mount->nodes, parent) : NULL;

	node_move(&mount->nodes, &mount->overlay, node, parent, components[0], size);
	components[0] = NULL;
	/* Where the kernel does not know the new place, it looks it up anew. */
	if (!above)
		return;
	node_move(&mount->nodes, &mount->overlay, twin, above, components[1], size);
	components[1] = NULL;
}

static int rename_folder(struct mount *mount, struct node *parent,
			 const struct folder *folder, const struct resolved *from,
			 struct node *new_parent, const struct folder *new_folder,
			 struct resolved *to, bool no_replace)
{
	struct folder source = *folder, target = *new_folder;
	struct tree_renames renames = { 0 };
	struct item *made, *old = NULL;
	struct node *node;
	char *old_prefix = NULL, *new_prefix = NULL, *components[2] = { NULL, NULL };
	size_t part_size = to->name_size, skip = 0;
	int error = -ENOMEM;

	if (folder->kind != new_folder->kind)
		return -EXDEV;
	if (to->found == FOUND_ENTRY)
		return -ENOTDIR;
	if (to->kind == ITEM_SCRATCH || to->alias || (folder->npy && !to->no_file))
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
	components[0] = malloc(part_size + 1);
	components[1] = malloc(part_size + 1);
	if (!node || !old_prefix || !new_prefix || !components[0] || !components[1])
		goto out;
	for (size_t i = 0; i < 2; i++)
		memcpy(components[i], to->name + skip, part_size);
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
		old = tree_folder_item(&target);
		if (source.prefix_size == target.prefix_size &&
		    memcmp(source.prefix, target.prefix, source.prefix_size) == 0)
			goto out;
		if (no_replace)
			error = -EEXIST;
		else if (!tree_empty(&target))
			error = -ENOTEMPTY;
		if (error)
			goto out;
	}
	error = keep_folder(mount, parent, folder);
	if (!error)
		error = keep_folder(mount, node, &source);
	if (!error)
		error = tree_rename_prepare(&mount->overlay, &source, target.prefix,
					    target.prefix_size, &renames);
	if (!error && old)
		error = overlay_remove(&mount->overlay, old);
	if (!error) {
		tree_rename_apply(&mount->overlay, &renames);
		if (node->type == NODE_FOLDER)
			move_nodes(mount, node, new_parent, components, part_size);
	}
	mount_edited(mount);
out:
	tree_renames_done(&renames);
	free(components[0]);
	free(components[1]);
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

/*
 * Where a rename goes. What keeps its file name keeps its own, also when that is cut
 * and stands for nothing over there.
 */
static int resolve_renamed(struct mount *mount, const struct folder *folder,
			   const struct resolved *from, const char *text,
			   struct node *new_parent, const char *new_text,
			   struct folder *ret_folder, char **ret_prefix,
			   struct resolved *ret)
{
	int error = resolve(mount, new_parent, new_text, ret_folder, ret_prefix, ret);
	const char *component = from->name;
	size_t size = from->name_size;

	if (error != -ENOENT)
		return error;
	if (strcmp(text, new_text) != 0 || from->found == FOUND_FREE ||
	    from->kind == ITEM_SCRATCH)
		return -EINVAL;
	if (from->found == FOUND_ENTRY) {
		component += folder->prefix_size;
		size -= folder->prefix_size;
	}
	error = mount_folder(mount, new_parent, ret_folder, ret_prefix);
	return error ? error
		     : tree_resolve_component(ret_folder, component, size,
					      from->found == FOUND_ENTRY, ret);
}

int edit_rename(struct mount *mount, struct node *parent, const char *text,
		struct node *new_parent, const char *new_text, bool no_replace)
{
	struct folder folder, new_folder;
	struct resolved from = { 0 }, to = { 0 };
	char *prefix = NULL, *new_prefix = NULL;
	int error = resolve(mount, parent, text, &folder, &prefix, &from);

	if (!error)
		error = resolve_renamed(mount, &folder, &from, text, new_parent, new_text,
					&new_folder, &new_prefix, &to);
	if (!error && parent == new_parent && from.found == FOUND_ENTRY &&
	    to.found == FOUND_FREE && is_backup(&folder, text, new_text))
		error = tree_resolve_backup(&new_folder, new_text, strlen(new_text), &to);
	if (!error && (folder.kind != new_folder.kind || folder.npy != new_folder.npy))
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
