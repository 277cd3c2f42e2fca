/*
 * ops_xattr.c - handlers of extended attributes.
 */
#include "describe.h"
#include "edit.h"
#include "ops.h"

#include <errno.h>
#include <stdlib.h>

static void reply_bytes(fuse_req_t req, int error, char *value, size_t value_size,
			size_t size)
{
	if (error)
		fuse_reply_err(req, -error);
	else if (!size)
		fuse_reply_xattr(req, value_size);
	else if (size < value_size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, value, value_size);
	if (!error)
		free(value);
}

void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	char *value = NULL;
	size_t value_size = 0;
	int error = -ENODATA;

	if (!node)
		return;
	if (node->type == NODE_ENTRY) {
		struct entry entry = node_entry(&mount->overlay, node);

		error = describe_xattr(mount, &entry, name, &value, &value_size);
	} else if (node->type == NODE_ROOT) {
		error = describe_root_xattr(mount, name, &value, &value_size);
	}
	ops_end(req, mount);
	reply_bytes(req, error, value, value_size, size);
}

void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	char *names = NULL;
	size_t names_size = 0;
	int error = 0;

	if (!node)
		return;
	if (node->type == NODE_ENTRY) {
		struct entry entry = node_entry(&mount->overlay, node);

		error = describe_xattr_names(mount, &entry, &names, &names_size);
	} else if (node->type == NODE_ROOT) {
		error = describe_root_xattr_names(mount, &names, &names_size);
	}
	ops_end(req, mount);
	reply_bytes(req, error, names, names_size, size);
}

void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		  size_t size, int flags)
{
	struct mount *mount;
	struct node *node = ops_begin_edit(req, ino, &mount);

	if (node)
		ops_fail(req, mount,
			 edit_set_attribute(mount, node, name, value, size, flags));
}

void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	struct mount *mount;
	struct node *node = ops_begin_edit(req, ino, &mount);

	if (node)
		ops_fail(req, mount, edit_remove_attribute(mount, node, name));
}
