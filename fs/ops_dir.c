/*
 * ops_dir.c - reading folders. A folder is listed once, at the start, so that what
 * is read is whole whatever is edited meanwhile; offsets are positions in that.
 */
#include "commit.h"
#include "listing.h"
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A listing that is being made. */
struct lister {
	struct listing *listing;
	struct mount *mount;
	struct node *folder;
};

static int list_one(struct lister *lister, const char *name, size_t size, uint64_t id,
		    mode_t type)
{
	return listing_add(lister->listing, name, size,
			   numbers_tell(&lister->mount->numbers, id), type);
}

static int list_callback(void *context, const char *file_name, size_t size,
			 bool is_folder, const char *component, size_t component_size,
			 const struct entry *entry, uint64_t id)
{
	struct lister *lister = context;
	const struct node *folder = lister->folder;

	if (folder->npy)
		id |= NODE_ID_NPY;
	if (is_folder && !lister->mount->writable)
		id = nodes_constant_folder_id(entry, folder->npy,
					      folder->prefix_size + component_size + 1);
	else if (is_folder && !(id & ~NODE_ID_NPY))
		id = nodes_folder_id(&lister->mount->nodes, lister->folder, component,
				     component_size);
	return list_one(lister, file_name, size, id, is_folder ? S_IFDIR : S_IFREG);
}

static int list_path(void *context, const char *file_name, size_t size,
		     const struct path_found *found)
{
	struct lister *lister = context;
	const struct overlay *overlay = &lister->mount->overlay;

	if (found->folder.size)
		return list_one(lister, file_name, size,
				nodes_path_id(found->folder.first, found->folder.size),
				S_IFDIR);
	return list_one(lister, file_name, size,
			entry_id(overlay, &found->entry) | NODE_ID_LINK, S_IFLNK);
}

static int list_by_path(struct lister *lister)
{
	const struct node *node = lister->folder;
	const struct path_folder folder = { node->id == NODE_ID_BY_PATH ? 0 : node->base,
					    node->prefix_size };

	return by_path_list(&lister->mount->by_path, &lister->mount->overlay, folder,
			    list_path, lister);
}

static int list_fixed(struct lister *lister, uint64_t parent)
{
	int error = 0;

	for (size_t i = 0; i < fixed_node_count && !error; i++) {
		const struct fixed_node *fixed = &fixed_nodes[i];
		bool file = fixed->type == NODE_RENDERED || fixed->type == NODE_STATUS ||
			    fixed->type == NODE_CHANGES;
		struct rendered *now;
		uint64_t id = fixed->id;

		if (fixed->parent != parent || !mount_shows(lister->mount, fixed))
			continue;
		if (fixed->type == NODE_RENDERED &&
		    mount_rendered(lister->mount, fixed->rendered, &now) == 0)
			id = now->id;
		error = list_one(lister, fixed->name, strlen(fixed->name), id,
				 file ? S_IFREG : S_IFDIR);
	}
	return error;
}

static int make_listing(struct mount *mount, struct node *node,
			struct listing **ret_listing)
{
	struct lister lister = { calloc(1, sizeof(struct listing)), mount, node };
	uint64_t up = node_parent_id(&mount->nodes, node);
	int error;

	if (!lister.listing)
		return -ENOMEM;
	error = list_one(&lister, ".", 1, node->id, S_IFDIR);
	if (!error)
		error = list_one(&lister, "..", 2, up, S_IFDIR);
	if (!error && (node->type == NODE_ROOT || node->type == NODE_CONTROL)) {
		error = list_fixed(&lister, node->id);
	} else if (!error && node->type == NODE_PATH) {
		error = list_by_path(&lister);
	} else if (!error) {
		struct folder folder;
		char *prefix;

		error = mount_folder(mount, node, &folder, &prefix);
		if (!error) {
			error = tree_list(&folder, list_callback, &lister);
			free(prefix);
		}
	}
	if (error)
		listing_free(lister.listing);
	else
		*ret_listing = lister.listing;
	return error;
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	bool constant;
	int error;

	if (!node)
		return;
	error = handle_new(mount, node, &fi->fh);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	constant = !mount->writable;
	ops_end(req, mount);
	if (constant)
		fi->cache_readdir = fi->keep_cache = 1;
	if (fuse_reply_open(req, fi) == -ENOENT && !ops_enter(session, ino, &mount)) {
		handle_free(mount, fi->fh);
		ops_leave(session, mount);
	}
}

static size_t add_plain(fuse_req_t req, char *buffer, size_t room,
			const struct listed *listed, const char *name, off_t next)
{
	struct stat st = { .st_ino = listed->id, .st_mode = listed->type };

	return fuse_add_direntry(req, buffer, room, name, &st, next);
}

/* As add_plain(), and what a lookup would tell; "." and ".." are no lookups. */
static size_t add_plus(fuse_req_t req, struct mount *mount, char *buffer, size_t room,
		       struct node *folder, const struct listed *listed, const char *name,
		       off_t next)
{
	struct fuse_entry_param entry = { 0 };
	struct node *node = NULL;
	bool alias;
	size_t size;

	entry.attr.st_ino = listed->id;
	entry.attr.st_mode = listed->type;
	if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
	    ops_find(mount, folder, name, &node, &alias) == 0 &&
	    ops_entry(mount, node, alias, &entry) != 0)
		node = NULL;
	size = fuse_add_direntry_plus(req, buffer, room, name, &entry, next);
	if (node && size > room)
		node_forget(&mount->nodes, &mount->overlay, node, 1);
	return size;
}

static void read_folder(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			const struct fuse_file_info *fi, bool plus)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	struct handle *handle;
	size_t used = 0;
	char *buffer;
	int error = 0;

	if (!node)
		return;
	handle = handle_get(mount, fi->fh);
	buffer = malloc(size);
	if (!handle || !buffer)
		error = handle ? -ENOMEM : -EBADF;
	if (!error && (off == 0 || !handle->listing)) {
		listing_free(handle->listing);
		handle->listing = NULL;
		error = make_listing(mount, node, &handle->listing);
	}
	if (error) {
		free(buffer);
		ops_fail(req, mount, error);
		return;
	}
	for (size_t i = (size_t)off; i < handle->listing->count; i++) {
		const struct listed *listed = &handle->listing->entries[i];
		const char *name = handle->listing->names + listed->name_at;
		size_t need = plus ? add_plus(req, mount, buffer + used, size - used,
					      node, listed, name, (off_t)i + 1)
				   : add_plain(req, buffer + used, size - used, listed,
					       name, (off_t)i + 1);

		if (need > size - used)
			break;
		used += need;
	}
	ops_end(req, mount);
	fuse_reply_buf(req, buffer, used);
	free(buffer);
}

void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		 struct fuse_file_info *fi)
{
	read_folder(req, ino, size, off, fi, false);
}

void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi)
{
	read_folder(req, ino, size, off, fi, true);
}

void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount;

	if (!ops_enter(fuse_req_userdata(req), ino, &mount)) {
		handle_free(mount, fi->fh);
		ops_end(req, mount);
	}
	fuse_reply_err(req, 0);
}

static void reply_commit(void *context, int error)
{
	fuse_reply_err(context, -error);
}

/* fsync(2) of a folder, as sync(1) does it: a commit. */
void ops_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount = session->mount;
	int error = 0;

	(void)ino;
	(void)datasync;
	(void)fi;
	if (mount->writable)
		error = commit_request(mount, reply_commit, req);
	if (error || !mount->writable)
		fuse_reply_err(req, -error);
}
