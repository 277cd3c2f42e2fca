/*
 * mount.c - see mount.h.
 */
#include "mount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static enum name_dots dots_of(const struct mount *mount, enum item_kind kind)
{
	return kind == ITEM_METADATA ? NAME_DOTS_KEPT : mount->dots;
}

int mount_init(struct mount *mount)
{
	int error = nodes_init(&mount->nodes, mount->writable ? NULL : &mount->overlay);

	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT && !error; kind++)
		error = cuts_init(&mount->cuts[kind][0], &mount->overlay, kind,
				  dots_of(mount, kind), NAME_SIZE_MAX);
	if (!error)
		error = cuts_init(&mount->cuts[ITEM_TENSOR][1], &mount->overlay,
				  ITEM_TENSOR, dots_of(mount, ITEM_TENSOR),
				  NAME_SIZE_MAX - strlen(TREE_NPY_SUFFIX));
	return error;
}

void mount_done(struct mount *mount)
{
	for (size_t i = 0; i < RENDERED_COUNT; i++) {
		rendered_unref(mount->rendered[i]);
		mount->rendered[i] = NULL;
	}
	if (mount->nodes.buckets)
		nodes_done(&mount->nodes, &mount->overlay);
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++)
		for (size_t npy = 0; npy < 2; npy++)
			cuts_done(&mount->cuts[kind][npy]);
	by_path_done(&mount->by_path);
	trust_done(&mount->trust);
	overlay_done(&mount->overlay);
}

struct node *mount_find(struct mount *mount, uint64_t number)
{
	struct rendered *rendered;
	struct node *node;
	uint64_t id;

	if (!numbers_find(&mount->numbers, number, &id))
		return NULL;
	node = nodes_find(&mount->nodes, id);
	if (node && node->type == NODE_PATH) {
		const struct path_folder folder = { node->base, node->prefix_size };

		if (by_path_make(&mount->by_path, &mount->overlay, mount->dots) ||
		    (node->id != NODE_ID_BY_PATH &&
		     !by_path_valid(&mount->by_path, folder)))
			return NULL;
	}
	/* Told before the pack was closed and opened again. */
	if (!node && mount->place && !mount->writable && id >= NODE_ID_RENDERED &&
	    id < NODE_ID_RENDERED + RENDERED_COUNT &&
	    mount_rendered(mount, (enum rendered_kind)(id - NODE_ID_RENDERED),
			   &rendered) == 0)
		node = nodes_rendered(&mount->nodes, rendered);
	return node;
}

bool mount_shows(struct mount *mount, const struct fixed_node *fixed)
{
	if (fixed->type == NODE_PATH)
		return !mount->writable &&
		       by_path_make(&mount->by_path, &mount->overlay, mount->dots) == 0 &&
		       mount->by_path.count;
	return !mount->place || fixed->type != NODE_CONTROL;
}

char *mount_link_target(struct mount *mount, const struct node *node)
{
	const struct entry entry = node_entry(&mount->overlay, node);
	const struct node *section = &mount->nodes.fixed[NODE_ID_SECTION + node->kind];
	size_t depth = by_path_depth(&mount->by_path, &mount->overlay, &entry);
	char *prefix, *path, *target = NULL;
	struct folder folder;

	if (mount_folder(mount, section, &folder, &prefix))
		return NULL;
	path = tree_path(&folder, &entry);
	if (path)
		target = malloc(depth * 3 + strlen("tensors/") + strlen(path) + 1);
	if (target) {
		for (size_t i = 0; i < depth; i++)
			memcpy(target + i * 3, "../", 3);
		strcpy(target + depth * 3,
		       node->kind == ITEM_TENSOR ? "tensors/" : "scalars/");
		strcat(target + depth * 3, path);
	}
	free(path);
	free(prefix);
	return target;
}

/* Of the last commit nothing is to be said or done. */
static bool is_done_with(struct mount *mount)
{
	return !mount->target.unsure && !mount->message[0] &&
	       worker_idle(&mount->workers);
}

bool mount_is_settled(struct mount *mount)
{
	return is_done_with(mount) && !mount->overlay.tables[ITEM_SCRATCH].count &&
	       !overlay_dirty(&mount->overlay);
}

bool mount_is_unedited(struct mount *mount)
{
	const struct overlay *overlay = &mount->overlay;

	if (overlay->gone.count || !is_done_with(mount))
		return false;
	for (size_t kind = 0; kind < ITEM_KIND_COUNT; kind++)
		if (overlay->tables[kind].count)
			return false;
	for (size_t i = 0; i < NODE_ID_FIXED_END; i++)
		if (mount->nodes.fixed[i].attributes)
			return false;
	return true;
}

void mount_edited(struct mount *mount)
{
	clock_gettime(CLOCK_REALTIME, &mount->changed);
	mount->edits++;
}

void mount_changed_unseen(struct mount *mount, struct item *item, bool npy,
			  unsigned handles)
{
	const struct node *node =
		nodes_find(&mount->nodes, npy ? item->id | NODE_ID_NPY : item->id);

	mount_edited(mount);
	/* Of what nobody has open it stays: cp and rsync set the time before this. */
	if (node && node->refs > handles)
		clock_gettime(CLOCK_REALTIME, &item->mtime);
}

int mount_rendered(struct mount *mount, enum rendered_kind kind,
		   struct rendered **ret_rendered)
{
	struct rendered *now = mount->rendered[kind];
	uint64_t id = NODE_ID_RENDERED + kind;
	int error;

	if (now && now->edits == mount->edits) {
		*ret_rendered = now;
		return 0;
	}
	if (mount->edits)
		id = overlay_new_id(&mount->overlay);
	error = rendered_new(
		&mount->overlay, kind, id, mount->edits,
		mount->edits ? mount->changed : mount->overlay.pack->stat.st_mtim, &now);
	if (error)
		return error;
	rendered_unref(mount->rendered[kind]);
	mount->rendered[kind] = *ret_rendered = now;
	return 0;
}

void mount_pack_changed(struct mount *mount)
{
	for (size_t kind = 0; kind < PACK_KIND_COUNT; kind++)
		for (size_t npy = 0; npy < 2; npy++)
			cuts_forget(&mount->cuts[kind][npy]);
	mount_edited(mount);
}

int mount_folder(struct mount *mount, const struct node *node, struct folder *ret_folder,
		 char **ret_prefix)
{
	if (node->type != NODE_SECTION && node->type != NODE_FOLDER)
		return -EACCES;
	*ret_folder = (struct folder) {
		.overlay = &mount->overlay,
		.cuts = mount->cuts[node->kind],
		.kind = node->kind,
		.npy = node->npy,
		.dots = dots_of(mount, node->kind),
	};
	*ret_prefix = node_prefix(node, &ret_folder->prefix_size);
	if (!*ret_prefix)
		return -ENOMEM;
	ret_folder->prefix = *ret_prefix;
	return 0;
}
