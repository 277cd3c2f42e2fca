/*
 * mount.c - see mount.h.
 */
#include "mount.h"

#include <errno.h>

void mount_edited(struct mount *mount)
{
	clock_gettime(CLOCK_REALTIME, &mount->changed);
	mount->edits++;
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

void mount_drop_rendered(struct mount *mount)
{
	for (size_t i = 0; i < RENDERED_COUNT; i++) {
		rendered_unref(mount->rendered[i]);
		mount->rendered[i] = NULL;
	}
}

int mount_folder(const struct mount *mount, const struct node *node,
		 struct folder *ret_folder, char **ret_prefix)
{
	if (node->type != NODE_SECTION && node->type != NODE_FOLDER)
		return -EACCES;
	*ret_folder = (struct folder) {
		.overlay = &mount->overlay,
		.kind = node->kind,
		.npy = node->npy,
		.dots = node->kind == ITEM_METADATA ? NAME_DOTS_KEPT : mount->dots,
	};
	*ret_prefix = node_prefix(node, &ret_folder->prefix_size);
	if (!*ret_prefix)
		return -ENOMEM;
	ret_folder->prefix = *ret_prefix;
	return 0;
}
