/*
 * mount.c - see mount.h.
 */
#include "mount.h"

#include <errno.h>

int mount_folder(const struct mount *mount, const struct node *node,
		 struct folder *ret_folder, char **ret_prefix)
{
	if (node->type != NODE_SECTION && node->type != NODE_FOLDER)
		return -EACCES;
	*ret_folder = (struct folder) {
		.overlay = &mount->overlay,
		.kind = node->kind,
		.dots = node->kind == ITEM_METADATA ? NAME_DOTS_KEPT : mount->dots,
	};
	*ret_prefix = node_prefix(node, &ret_folder->prefix_size);
	if (!*ret_prefix)
		return -ENOMEM;
	ret_folder->prefix = *ret_prefix;
	return 0;
}
