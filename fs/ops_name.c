/*
 * ops_name.c - handlers that make, remove and rename; what they do to names is
 * edit.c's.
 */
#include "edit.h"
#include "ops.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

static void reply_edit(fuse_req_t req, struct mount *mount, int error)
{
	ops_end(req, mount);
	fuse_reply_err(req, -error);
}

void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *mount;
	struct node *folder = ops_begin_edit(req, parent, &mount);

	if (folder)
		reply_edit(req, mount, edit_unlink(mount, folder, name));
}

void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *mount;
	struct node *folder = ops_begin_edit(req, parent, &mount);

	if (folder)
		reply_edit(req, mount, edit_rmdir(mount, folder, name));
}

void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	struct mount *mount;
	struct node *folder = ops_begin_edit(req, parent, &mount), *new_folder;
	int error;

	if (!folder)
		return;
	new_folder = mount_find(mount, new_parent);
	if (!new_folder)
		error = -ENOENT;
	else if (flags & ~(unsigned int)RENAME_NOREPLACE)
		error = -EINVAL;
	else
		error = edit_rename(mount, folder, name, new_folder, new_name,
				    flags & RENAME_NOREPLACE);
	reply_edit(req, mount, error);
}

void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct mount *mount;
	struct node *folder = ops_begin_edit(req, parent, &mount), *node;
	struct fuse_entry_param entry;
	int error;

	(void)mode;
	if (!folder)
		return;
	error = edit_mkdir(mount, folder, name, &node);
	if (!error)
		error = ops_entry(mount, node, false, &entry);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_entry(req, &entry);
}

/* mknod of a plain file is how some tools make one; it is a create without an open. */
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       dev_t device)
{
	struct mount *mount;
	struct node *folder, *node = NULL;
	struct fuse_entry_param reply;
	struct entry entry;
	bool alias;
	int error;

	(void)device;
	if (!S_ISREG(mode)) {
		fuse_reply_err(req, EPERM);
		return;
	}
	folder = ops_begin_edit(req, parent, &mount);
	if (!folder)
		return;
	error = edit_create(mount, folder, name, &entry, &alias);
	if (!error) {
		node = nodes_entry(&mount->nodes, &mount->overlay, &entry, folder->npy);
		error = node ? ops_entry(mount, node, alias, &reply) : -ENOMEM;
	}
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_entry(req, &reply);
}

void ops_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
	(void)link;
	(void)parent;
	(void)name;
	fuse_reply_err(req, EPERM);
}

void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *name)
{
	(void)ino;
	(void)new_parent;
	(void)name;
	fuse_reply_err(req, EPERM);
}
