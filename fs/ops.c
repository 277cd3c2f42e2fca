/*
 * ops.c - the session, look-ups and attributes. See ops.h.
 */
#include "ops.h"
#include "content.h"
#include "describe.h"
#include "edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

int ops_enter(struct session *session, fuse_ino_t ino, struct mount **ret_mount)
{
	if (session->library)
		return library_enter(session->library, ino, ret_mount);
	pthread_mutex_lock(&session->mount->lock);
	*ret_mount = session->mount;
	return 0;
}

void ops_leave(struct session *session, struct mount *mount)
{
	if (session->library)
		library_leave(session->library, mount);
	else
		pthread_mutex_unlock(&mount->lock);
}

struct node *ops_begin(fuse_req_t req, fuse_ino_t ino, struct mount **ret_mount)
{
	struct mount *mount;
	struct node *node;
	int error = ops_enter(fuse_req_userdata(req), ino, &mount);

	if (error) {
		fuse_reply_err(req, -error);
		return NULL;
	}
	mount->requests++;
	nodes_sweep(&mount->nodes, &mount->overlay);
	node = mount_find(mount, ino);
	if (!node)
		ops_fail(req, mount, -ENOENT);
	*ret_mount = mount;
	return node;
}

/* Attributes, not pages: there is nothing to wait for. */
void ops_tell_stale(const struct session *session, fuse_ino_t ino)
{
	(void)fuse_lowlevel_notify_inval_inode(session->fuse, ino, -1, 0);
}

struct node *ops_begin_edit(fuse_req_t req, fuse_ino_t ino, struct mount **ret_mount)
{
	struct session *session = fuse_req_userdata(req);
	struct node *node = ops_begin(req, ino, ret_mount);
	struct mount *mount;
	int error = 0;

	if (!node)
		return NULL;
	mount = *ret_mount;
	if (!mount->writable) {
		error = -EROFS;
	} else if (session->library &&
		   !(mount->is_writer && overlay_dirty(&mount->overlay))) {
		pthread_mutex_unlock(&mount->lock);
		error = library_make_writer(session->library, mount);
		pthread_mutex_lock(&mount->lock);
		node = mount_find(mount, ino);
		if (!error && !node)
			error = -ENOENT;
	}
	if (error) {
		ops_fail(req, mount, error);
		return NULL;
	}
	/* What --discard was to drop was not the end, should it have been killed before
	 * the mount went. */
	mount->discard = false;
	return node;
}

void ops_end(fuse_req_t req, struct mount *mount)
{
	struct session *session = fuse_req_userdata(req);
	size_t count;
	uint64_t *stale = trust_take(&mount->trust, mount->edits, &count);

	ops_leave(session, mount);
	for (size_t i = 0; stale && i < count; i++)
		ops_tell_stale(session, stale[i]);
	free(stale);
}

void ops_fail(fuse_req_t req, struct mount *mount, int negative_errno)
{
	ops_end(req, mount);
	fuse_reply_err(req, -negative_errno);
}

/* Attributes --------------------------------------------------------------- */

bool ops_can_write(const struct node *node)
{
	return node->type == NODE_ENTRY;
}

static int control_size(const struct mount *mount, const struct node *node,
			uint64_t *ret_size)
{
	size_t size = 0;
	char *text = node->type == NODE_STATUS ? describe_status(mount, &size)
					       : describe_changes(mount, "", &size);

	if (!text)
		return -ENOMEM;
	free(text);
	*ret_size = size;
	return 0;
}

static int entry_attributes(struct mount *mount, const struct node *node, bool writer,
			    struct stat *st, uint64_t *ret_size)
{
	struct entry entry = node_entry(&mount->overlay, node);
	struct view view = { .npy = node->npy, .writer = writer };

	st->st_mode = S_IFREG | mount->file_mode;
	if (!content_is_text(&entry))
		st->st_blksize = 1 << 20;
	if (entry.item && entry.item->mode_set)
		st->st_mode = S_IFREG | entry.item->mode;
	if (entry.item &&
	    (entry.item->mtime_set || entry.item->staged || entry.base == NO_BASE ||
	     overlay_change(&mount->overlay, entry.item) != CHANGE_NONE))
		st->st_mtim = entry.item->mtime;
	if (entry.item && !entry.item->linked)
		st->st_nlink = 0;
	return content_size(&mount->overlay, &entry, view, ret_size);
}

static int link_size(struct mount *mount, const struct node *node, uint64_t *ret_size)
{
	char *target = mount_link_target(mount, node);

	if (!target)
		return -ENOMEM;
	*ret_size = strlen(target);
	free(target);
	return 0;
}

int ops_attributes(struct mount *mount, const struct node *node, bool writer,
		   struct stat *ret_stat)
{
	struct stat st = {
		.st_ino = numbers_tell(&mount->numbers, node->id),
		.st_uid = mount->uid,
		.st_gid = mount->gid,
		.st_nlink = 1,
		.st_blksize = 4096,
		.st_mtim = mount->overlay.pack->stat.st_mtim,
	};
	uint64_t size = 0;
	int error = 0;

	switch (node->type) {
	case NODE_ROOT:
	case NODE_SECTION:
	case NODE_CONTROL:
	case NODE_FOLDER:
	case NODE_PATH:
		/* One link: their number is not that of the folders inside, and who
		 * counts on that (find, perl's File::Find) is told so by it. */
		st.st_mode = S_IFDIR | mount->folder_mode;
		if (node->type == NODE_CONTROL || node->type == NODE_ROOT)
			st.st_mode &= ~(mode_t)0222;
		if (mount->changed.tv_sec && node->type != NODE_ROOT)
			st.st_mtim = mount->changed;
		if (node->attributes && node->attributes->mode_set)
			st.st_mode = S_IFDIR | node->attributes->mode;
		if (node->attributes && node->attributes->mtime_set)
			st.st_mtim = node->attributes->mtime;
		break;
	case NODE_STATUS:
	case NODE_CHANGES:
		st.st_mode = S_IFREG | (mount->file_mode & 0444);
		if (mount->changed.tv_sec)
			st.st_mtim = mount->changed;
		error = control_size(mount, node, &size);
		break;
	case NODE_RENDERED:
		st.st_mode = S_IFREG | (mount->file_mode & 0444);
		st.st_blksize = 1 << 20;
		st.st_mtim = node->rendered->mtime;
		size = node->rendered->size;
		break;
	case NODE_LINK:
		st.st_mode = S_IFLNK | 0777;
		error = link_size(mount, node, &size);
		break;
	case NODE_ENTRY:
	default:
		error = entry_attributes(mount, node, writer, &st, &size);
		break;
	}
	if (error)
		return error;
	st.st_size = (off_t)size;
	st.st_blocks = (st.st_size + 511) / 512;
	st.st_atim = st.st_ctim = st.st_mtim;
	*ret_stat = st;
	return 0;
}

int ops_entry(struct mount *mount, struct node *node, bool alias,
	      struct fuse_entry_param *ret_entry)
{
	double timeout = mount->writable ? 0 : FOREVER;
	struct stat st;
	int error = ops_attributes(mount, node, false, &st);

	if (error)
		return error;
	*ret_entry = (struct fuse_entry_param) {
		.ino = st.st_ino,
		.generation = 1,
		.attr = st,
		/* What is rendered never changes: another one takes its place. */
		.attr_timeout = node->type == NODE_RENDERED ? FOREVER : timeout,
		.entry_timeout = alias ? 0 : timeout,
	};
	node_told(&mount->nodes, node);
	return 0;
}

/* What @text is in the root or in .bpkfs/; everything rendered is made on demand. */
static int find_fixed(struct mount *mount, const struct node *parent, const char *text,
		      struct node **ret_node)
{
	for (size_t i = 0; i < fixed_node_count; i++) {
		const struct fixed_node *fixed = &fixed_nodes[i];
		struct rendered *rendered;
		int error;

		if (fixed->parent != parent->id || strcmp(fixed->name, text) != 0 ||
		    !mount_shows(mount, fixed))
			continue;
		if (fixed->type != NODE_RENDERED) {
			*ret_node = nodes_find(&mount->nodes, fixed->id);
			return 0;
		}
		error = mount_rendered(mount, fixed->rendered, &rendered);
		if (error)
			return error;
		*ret_node = nodes_rendered(&mount->nodes, rendered);
		return *ret_node ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/* The node of the folder that was found in @folder, which is @parent's. */
static struct node *find_folder(struct mount *mount, struct node *parent,
				const struct folder *folder,
				const struct resolved *resolved)
{
	struct folder below = *folder;
	size_t size = folder->prefix_size + resolved->name_size + 1;
	char *prefix = malloc(size);
	struct node *node = NULL;
	struct item *made;
	struct entry first;

	if (!prefix)
		return NULL;
	memcpy(prefix, folder->prefix, folder->prefix_size);
	memcpy(prefix + folder->prefix_size, resolved->name, resolved->name_size);
	prefix[size - 1] = '.';
	below.prefix = prefix;
	below.prefix_size = size;
	if (mount->writable) {
		made = tree_folder_item(&below);
		node = nodes_folder(&mount->nodes, parent, folder->kind, resolved->name,
				    resolved->name_size, made ? made->id : 0);
	} else if (overlay_seek(&mount->overlay, folder->kind, prefix, size, &first)) {
		node = nodes_find(&mount->nodes,
				  nodes_constant_folder_id(&first, folder->npy, size));
	}
	free(prefix);
	return node;
}

static int find_by_path(struct mount *mount, const struct node *parent, const char *text,
			struct node **ret_node)
{
	const struct path_folder folder = { parent->id == NODE_ID_BY_PATH ? 0
									  : parent->base,
					    parent->prefix_size };
	struct path_found found;
	int error = by_path_find(&mount->by_path, &mount->overlay, folder, text, &found);
	uint64_t id;

	if (error)
		return error;
	id = found.folder.size ? nodes_path_id(found.folder.first, found.folder.size)
			       : entry_id(&mount->overlay, &found.entry) | NODE_ID_LINK;
	*ret_node = nodes_find(&mount->nodes, id);
	return *ret_node ? 0 : -ENOMEM;
}

int ops_find(struct mount *mount, struct node *parent, const char *text,
	     struct node **ret_node, bool *ret_alias)
{
	struct folder folder;
	struct resolved resolved;
	char *prefix;
	int error;

	*ret_alias = false;
	if (parent->type == NODE_ROOT || parent->type == NODE_CONTROL)
		return find_fixed(mount, parent, text, ret_node);
	if (parent->type == NODE_PATH)
		return find_by_path(mount, parent, text, ret_node);
	error = mount_folder(mount, parent, &folder, &prefix);
	if (error)
		return error == -EACCES ? -ENOTDIR : error;
	error = tree_resolve(&folder, text, strlen(text), &resolved);
	if (error) {
		free(prefix);
		/* What cannot be a name names nothing. */
		return error == -ENOMEM || error == -ENAMETOOLONG ? error : -ENOENT;
	}
	*ret_alias = resolved.alias;
	if (resolved.found == FOUND_FREE) {
		error = -ENOENT;
	} else if (resolved.found == FOUND_ENTRY) {
		*ret_node = nodes_entry(&mount->nodes, &mount->overlay, &resolved.entry,
					parent->npy);
	} else {
		*ret_node = find_folder(mount, parent, &folder, &resolved);
	}
	if (!error && !*ret_node)
		error = -ENOMEM;
	resolved_done(&resolved);
	free(prefix);
	return error;
}

void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct mount *mount;
	struct node *folder = ops_begin(req, parent, &mount), *node;
	struct fuse_entry_param entry;
	bool alias;
	int error;

	if (!folder)
		return;
	error = ops_find(mount, folder, name, &node, &alias);
	if (!error)
		error = ops_entry(mount, node, alias, &entry);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_entry(req, &entry);
}

static void ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount = session->mount;

	pthread_mutex_lock(&mount->lock);
	nodes_forget(&mount->nodes, &mount->overlay, ino, lookups);
	pthread_mutex_unlock(&mount->lock);
	fuse_reply_none(req);
}

static void ops_forget_multi(fuse_req_t req, size_t count,
			     struct fuse_forget_data *forgets)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount = session->mount;

	pthread_mutex_lock(&mount->lock);
	for (size_t i = 0; i < count; i++)
		nodes_forget(&mount->nodes, &mount->overlay, forgets[i].ino,
			     forgets[i].nlookup);
	pthread_mutex_unlock(&mount->lock);
	fuse_reply_none(req);
}

void ops_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	char *target = NULL;
	int error = -EINVAL;

	if (!node)
		return;
	if (node->type == NODE_LINK) {
		target = mount_link_target(mount, node);
		error = -ENOMEM;
	}
	ops_end(req, mount);
	if (target)
		fuse_reply_readlink(req, target);
	else
		fuse_reply_err(req, -error);
	free(target);
}

/* How long the kernel may keep them. */
static double keep_attributes(struct mount *mount, const struct node *node,
			      struct handle *handle, fuse_ino_t ino)
{
	struct entry entry;

	if (!mount->writable || node->type == NODE_RENDERED)
		return FOREVER;
	if (!handle || handle->writer || node->type != NODE_ENTRY)
		return 0;
	entry = node_entry(&mount->overlay, node);
	if (content_is_text(&entry))
		return 0;
	return trust_add(&mount->trust, ino, mount->edits, &handle->trusted) ? FOREVER
									     : 0;
}

void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	struct handle *handle;
	double timeout = 0;
	struct stat st;
	int error;

	if (!node)
		return;
	handle = fi ? handle_get(mount, fi->fh) : NULL;
	error = ops_attributes(mount, node, handle && handle->writer, &st);
	if (!error)
		timeout = keep_attributes(mount, node, handle, ino);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_attr(req, &st, timeout);
}

#define SET_MTIME (FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW)

void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin_edit(req, ino, &mount);
	struct stat st;
	int error = 0;

	if (!node)
		return;
	if ((to_set & FUSE_SET_ATTR_UID && attr->st_uid != mount->uid) ||
	    (to_set & FUSE_SET_ATTR_GID && attr->st_gid != mount->gid))
		error = -EPERM;
	if (!error && to_set & FUSE_SET_ATTR_SIZE)
		error = ops_can_write(node)
				? edit_truncate(mount, node, (uint64_t)attr->st_size)
				: -EACCES;
	if (!error && to_set & (SET_MTIME | FUSE_SET_ATTR_MODE)) {
		struct timespec mtime = attr->st_mtim;

		if (to_set & FUSE_SET_ATTR_MTIME_NOW)
			clock_gettime(CLOCK_REALTIME, &mtime);
		error = edit_attributes(
			mount, node, to_set & FUSE_SET_ATTR_MODE ? &attr->st_mode : NULL,
			to_set & SET_MTIME ? &mtime : NULL);
	}
	if (!error)
		error = ops_attributes(mount, node, fi != NULL, &st);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_attr(req, &st, 0);
}

void ops_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct mount *mount;
	struct statvfs st = { .f_bsize = 512,
			      .f_frsize = 512,
			      .f_namemax = NAME_SIZE_MAX };
	struct statvfs below;
	int error = ops_enter(fuse_req_userdata(req), ino, &mount);

	if (error) {
		fuse_reply_err(req, -error);
		return;
	}
	st.f_blocks = ((uint64_t)mount->overlay.pack->stat.st_size + 511) / 512;
	st.f_files = mount->overlay.live[ITEM_TENSOR] + mount->overlay.live[ITEM_SCALAR] +
		     mount->overlay.live[ITEM_METADATA];
	if (mount->writable &&
	    fstatvfs(mount->is_writer ? mount->staging.dir_fd
				      : bpk_reader_fd(mount->overlay.reader),
		     &below) == 0)
		st.f_bfree = st.f_bavail = below.f_bavail * (below.f_frsize / 512);
	ops_end(req, mount);
	fuse_reply_statfs(req, &st);
}

/* The session -------------------------------------------------------------- */

void ops_init(void *userdata, struct fuse_conn_info *conn)
{
	(void)userdata;
	conn->want |= conn->capable & FUSE_CAP_ATOMIC_O_TRUNC;
}

const struct fuse_lowlevel_ops bpkfs_ops = {
	.init = ops_init,
	.lookup = ops_lookup,
	.forget = ops_forget,
	.forget_multi = ops_forget_multi,
	.getattr = ops_getattr,
	.readlink = ops_readlink,
	.setattr = ops_setattr,
	.statfs = ops_statfs,
	.getxattr = ops_getxattr,
	.listxattr = ops_listxattr,
	.setxattr = ops_setxattr,
	.removexattr = ops_removexattr,
	.unlink = ops_unlink,
	.rmdir = ops_rmdir,
	.rename = ops_rename,
	.mkdir = ops_mkdir,
	.mknod = ops_mknod,
	.symlink = ops_symlink,
	.link = ops_link,
	.ioctl = ops_ioctl,
	.opendir = ops_opendir,
	.readdir = ops_readdir,
	.readdirplus = ops_readdirplus,
	.releasedir = ops_releasedir,
	.fsyncdir = ops_fsyncdir,
	.open = ops_open,
	.create = ops_create,
	.read = ops_read,
	.write = ops_write,
	.flush = ops_flush,
	.release = ops_release,
	.fsync = ops_fsync,
	.fallocate = ops_fallocate,
};
