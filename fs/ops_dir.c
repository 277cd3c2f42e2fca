/*
 * ops_dir.c - reading folders. A folder is listed once, at the start, so that what
 * is read is whole whatever is edited meanwhile; offsets are positions in that.
 */
#include "base.h"
#include "commit.h"
#include "ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct listed {
	size_t name_at;
	uint64_t id;
	mode_t type;
};

struct listing {
	struct listed *entries;
	size_t count;
	size_t capacity;
	char *names;
	size_t names_size;
	size_t names_capacity;
	struct mount *mount;
	struct node *folder;
};

void ops_listing_free(struct listing *listing)
{
	if (!listing)
		return;
	free(listing->entries);
	free(listing->names);
	free(listing);
}

static int list_one(struct listing *listing, const char *name, size_t size, uint64_t id,
		    mode_t type)
{
	if (bpk_grow((void **)&listing->entries, &listing->capacity, listing->count + 1,
		     sizeof(*listing->entries)) ||
	    bpk_grow((void **)&listing->names, &listing->names_capacity,
		     listing->names_size + size + 1, 1))
		return -ENOMEM;
	listing->entries[listing->count++] =
		(struct listed) { listing->names_size, id, type };
	memcpy(listing->names + listing->names_size, name, size);
	listing->names[listing->names_size + size] = '\0';
	listing->names_size += size + 1;
	return 0;
}

static int list_callback(void *context, const char *file_name, size_t size,
			 bool is_folder, const char *component, size_t component_size,
			 const struct entry *entry, uint64_t id)
{
	struct listing *listing = context;
	const struct node *folder = listing->folder;

	if (folder->npy)
		id |= NODE_ID_NPY;
	if (is_folder && !listing->mount->writable)
		id = nodes_constant_folder_id(entry, folder->npy,
					      folder->prefix_size + component_size + 1);
	else if (is_folder && !(id & ~NODE_ID_NPY))
		id = nodes_folder_id(&listing->mount->nodes, listing->folder, component,
				     component_size);
	return list_one(listing, file_name, size, id, is_folder ? S_IFDIR : S_IFREG);
}

static int list_fixed(struct listing *listing, uint64_t parent)
{
	int error = 0;

	for (size_t i = 0; i < fixed_node_count && !error; i++) {
		const struct fixed_node *fixed = &fixed_nodes[i];
		bool file = fixed->type != NODE_SECTION && fixed->type != NODE_CONTROL;
		struct rendered *now;
		uint64_t id = fixed->id;

		if (fixed->parent != parent)
			continue;
		if (fixed->type == NODE_RENDERED &&
		    mount_rendered(listing->mount, fixed->rendered, &now) == 0)
			id = now->id;
		error = list_one(listing, fixed->name, strlen(fixed->name), id,
				 file ? S_IFREG : S_IFDIR);
	}
	return error;
}

static int make_listing(struct mount *mount, struct node *node,
			struct listing **ret_listing)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	uint64_t up = node_parent_id(&mount->nodes, node);
	int error;

	if (!listing)
		return -ENOMEM;
	listing->mount = mount;
	listing->folder = node;
	error = list_one(listing, ".", 1, node->id, S_IFDIR);
	if (!error)
		error = list_one(listing, "..", 2, up, S_IFDIR);
	if (!error && (node->type == NODE_ROOT || node->type == NODE_CONTROL)) {
		error = list_fixed(listing, node->id);
	} else if (!error) {
		struct folder folder;
		char *prefix;

		error = mount_folder(mount, node, &folder, &prefix);
		if (!error) {
			error = tree_list(&folder, list_callback, listing);
			free(prefix);
		}
	}
	if (error)
		ops_listing_free(listing);
	else
		*ret_listing = listing;
	return error;
}

void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount = ops_mount(req);
	struct node *node = ops_begin(req, ino);
	int error;

	if (!node)
		return;
	error = handle_new(mount, node, &fi->fh);
	if (error) {
		ops_fail(req, error);
		return;
	}
	pthread_mutex_unlock(&mount->lock);
	if (!mount->writable)
		fi->cache_readdir = fi->keep_cache = 1;
	if (fuse_reply_open(req, fi) == -ENOENT) {
		pthread_mutex_lock(&mount->lock);
		handle_free(mount, fi->fh);
		pthread_mutex_unlock(&mount->lock);
	}
}

static size_t add_plain(fuse_req_t req, char *buffer, size_t room,
			const struct listed *listed, const char *name, off_t next)
{
	struct stat st = { .st_ino = listed->id, .st_mode = listed->type };

	return fuse_add_direntry(req, buffer, room, name, &st, next);
}

/* As add_plain(), and what a lookup would tell; "." and ".." are no lookups. */
static size_t add_plus(fuse_req_t req, char *buffer, size_t room, struct node *folder,
		       const struct listed *listed, const char *name, off_t next)
{
	struct mount *mount = ops_mount(req);
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
	struct mount *mount = ops_mount(req);
	struct node *node = ops_begin(req, ino);
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
		ops_listing_free(handle->listing);
		handle->listing = NULL;
		error = make_listing(mount, node, &handle->listing);
	}
	if (error) {
		free(buffer);
		ops_fail(req, error);
		return;
	}
	for (size_t i = (size_t)off; i < handle->listing->count; i++) {
		const struct listed *listed = &handle->listing->entries[i];
		const char *name = handle->listing->names + listed->name_at;
		size_t need = plus ? add_plus(req, buffer + used, size - used, node,
					      listed, name, (off_t)i + 1)
				   : add_plain(req, buffer + used, size - used, listed,
					       name, (off_t)i + 1);

		if (need > size - used)
			break;
		used += need;
	}
	pthread_mutex_unlock(&mount->lock);
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
	struct mount *mount = ops_mount(req);

	(void)ino;
	pthread_mutex_lock(&mount->lock);
	handle_free(mount, fi->fh);
	pthread_mutex_unlock(&mount->lock);
	fuse_reply_err(req, 0);
}

static void reply_commit(void *context, int error)
{
	fuse_reply_err(context, -error);
}

/* fsync(2) of a folder, as sync(1) does it: a commit. */
void ops_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct mount *mount = ops_mount(req);
	int error = 0;

	(void)ino;
	(void)datasync;
	(void)fi;
	if (mount->writable)
		error = commit_request(mount, reply_commit, req);
	if (error || !mount->writable)
		fuse_reply_err(req, -error);
}
