/*
 * ops_file.c - opening, reading and writing files.
 *
 * A read of a tensor replies with an address inside the mapping of the pack: the
 * kernel copies from there, the daemon never does, so a pack that was truncated
 * under the mount costs the reader an EIO and the daemon nothing.
 */
#include "content.h"
#include "describe.h"
#include "edit.h"
#include "journal.h"
#include "ops.h"
#include "reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool wants_write(const struct fuse_file_info *fi)
{
	return (fi->flags & O_ACCMODE) != O_RDONLY;
}

/* Is it an edit to open it? */
static bool is_edit(const struct fuse_file_info *fi)
{
	return wants_write(fi) || fi->flags & O_TRUNC;
}

static int open_control(struct mount *mount, const struct node *node,
			struct handle *handle)
{
	handle->text = node->type == NODE_STATUS
			       ? describe_status(mount, &handle->text_size)
			       : describe_changes(mount, "", &handle->text_size);
	return handle->text ? 0 : -ENOMEM;
}

/* Text may be another one after a close than what was written: not cached where
 * it can be edited. A tensor of a read-only mount is the same for good; on another
 * the pages are those of its last open, if nothing was edited since. */
static void caching(const struct mount *mount, struct node *node,
		    struct fuse_file_info *fi)
{
	struct entry entry;

	if (node->type == NODE_RENDERED) {
		fi->keep_cache = 1;
		return;
	}
	if (node->type != NODE_ENTRY) {
		fi->direct_io = 1;
		return;
	}
	entry = node_entry(&mount->overlay, node);
	if (!mount->writable) {
		fi->keep_cache = 1;
	} else if (content_is_text(&entry)) {
		fi->direct_io = 1;
	} else {
		fi->keep_cache = node->paged == mount->edits + 1;
		node->paged = mount->edits + 1;
	}
}

static int open_node(struct mount *mount, struct node *node, struct fuse_file_info *fi)
{
	struct handle *handle;
	uint64_t number;
	int error;

	if (node_is_folder(node))
		return -EISDIR;
	if (is_edit(fi) && !ops_can_write(node))
		return -EACCES;
	error = handle_new(mount, node, &number);
	if (error)
		return error;
	handle = handle_get(mount, number);
	if (node->type == NODE_RENDERED) {
		error = rendered_open(node->rendered, &mount->overlay, mount->edits);
		handle->rendered = error ? NULL : node->rendered;
	} else if (node->type != NODE_ENTRY) {
		error = open_control(mount, node, handle);
	} else if (wants_write(fi)) {
		error = edit_begin(mount, node);
		handle->writer = !error;
		if (!error && fi->flags & O_TRUNC)
			error = edit_truncate(mount, node, 0);
	}
	if (error) {
		if (handle->writer)
			edit_end(mount, node);
		handle_free(mount, number);
		return error;
	}
	fi->fh = number;
	caching(mount, node, fi);
	return 0;
}

static void close_handle(struct mount *mount, uint64_t number)
{
	struct handle *handle = handle_get(mount, number);

	if (handle && handle->writer)
		edit_end(mount, handle->node);
	handle_free(mount, number);
}

void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount;
	struct node *node = is_edit(fi) ? ops_begin_edit(req, ino, &mount)
					: ops_begin(req, ino, &mount);
	int error;

	if (!node)
		return;
	error = open_node(mount, node, fi);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	if (fuse_reply_open(req, fi) == -ENOENT && !ops_enter(session, ino, &mount)) {
		close_handle(mount, fi->fh);
		ops_leave(session, mount);
	}
}

void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi)
{
	struct session *session = fuse_req_userdata(req);
	struct mount *mount;
	struct node *folder = ops_begin_edit(req, parent, &mount), *node;
	struct fuse_entry_param reply;
	struct entry entry;
	bool alias;
	int error;

	(void)mode;
	if (!folder)
		return;
	error = edit_create(mount, folder, name, &entry, &alias);
	if (error == -EEXIST && !(fi->flags & O_EXCL))
		error = 0; /* another spelling of one that is there */
	if (!error) {
		node = nodes_entry(&mount->nodes, &mount->overlay, &entry, folder->npy);
		error = node ? open_node(mount, node, fi) : -ENOMEM;
	}
	if (!error) {
		error = ops_entry(mount, node, alias, &reply);
		if (error)
			close_handle(mount, fi->fh);
	}
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	if (fuse_reply_create(req, &reply, fi) == -ENOENT &&
	    !ops_enter(session, parent, &mount)) {
		close_handle(mount, fi->fh);
		node_forget(&mount->nodes, &mount->overlay, node, 1);
		ops_leave(session, mount);
	}
}

/* Tell @reading what the file is made of. Locked. */
static int name_bytes(struct mount *mount, const struct node *node,
		      const struct handle *handle, struct reading *reading)
{
	struct view view = { .npy = node->npy, .writer = handle->writer };
	struct entry entry;

	if (handle->rendered)
		return rendered_read(handle->rendered, reading);
	if (node->type != NODE_ENTRY)
		return reading_add_text(reading, handle->text, handle->text_size);
	entry = node_entry(&mount->overlay, node);
	return content_read(&mount->overlay, &entry, view, reading);
}

void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	      struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	const struct handle *handle;
	struct reading reading;
	const struct iovec *iov;
	int count, error;

	if (!node)
		return;
	reading_init(&reading, (uint64_t)off, size);
	handle = handle_get(mount, fi->fh);
	error = handle ? name_bytes(mount, node, handle, &reading) : -EBADF;
	ops_end(req, mount);
	if (!error)
		error = reading_finish(&reading, &iov, &count);
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_iov(req, iov, count);
	reading_done(&reading);
}

/* Where the end is the kernel does not ask before it appends, and through the other view
 * it may have moved. Not so for text, which is short and not cached. */
static int find_end(const struct mount *mount, const struct node *node, uint64_t *ret_off)
{
	const struct entry entry = node_entry(&mount->overlay, node);
	const struct view view = { .npy = node->npy, .writer = true };

	return content_is_text(&entry)
		       ? 0
		       : content_size(&mount->overlay, &entry, view, ret_off);
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	uint64_t at = (uint64_t)off;
	int error = 0;

	if (!node)
		return;
	/* What was stored through a mapping has its place. */
	if (fi->flags & O_APPEND && !fi->writepage)
		error = find_end(mount, node, &at);
	if (!error)
		error = edit_write(mount, node, data, size, at);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_write(req, size);
}

void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t size,
		   struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin_edit(req, ino, &mount);
	int error;

	(void)fi;
	if (!node)
		return;
	error = edit_allocate(mount, node, mode, (uint64_t)off, (uint64_t)size);
	ops_end(req, mount);
	fuse_reply_err(req, -error);
}

void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	const struct handle *handle;
	int error = 0;

	if (!node)
		return;
	handle = handle_get(mount, fi->fh);
	if (handle && handle->writer)
		error = edit_flush(mount, node);
	ops_end(req, mount);
	fuse_reply_err(req, -error);
}

void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct session *session = fuse_req_userdata(req);
	const struct handle *handle;
	struct mount *mount;
	bool kept;

	if (!ops_enter(session, ino, &mount)) {
		handle = handle_get(mount, fi->fh);
		kept = handle && trust_remove(&mount->trust, ino, &handle->trusted);
		close_handle(mount, fi->fh);
		ops_end(req, mount);
		if (kept)
			ops_tell_stale(session, ino);
	}
	fuse_reply_err(req, 0);
}

/* What is written counts as on a close, and survives whatever comes. */
void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	struct staged *scratch = NULL;
	const struct handle *handle;
	uint64_t there;
	bool saves;
	int error = 0;

	(void)datasync;
	if (!node)
		return;
	handle = handle_get(mount, fi->fh);
	saves = mount->is_writer;
	if (saves && node->type == NODE_ENTRY) {
		struct entry entry = node_entry(&mount->overlay, node);

		if (handle && handle->writer && (content_is_text(&entry) || node->npy))
			error = edit_flush(mount, node);
		if (entry.item && entry.item->staged &&
		    !staged_is_whole(entry.item->staged, &there))
			error = -EIO;
		if (entry.kind == ITEM_SCRATCH)
			scratch = staged_ref(entry.item->staged);
	}
	ops_end(req, mount);
	if (scratch) {
		if (fsync(scratch->fd) < 0)
			error = -errno;
		staged_unref(scratch);
	} else if (saves && !error) {
		/* Whoever has it open: sync(1) opens files to read. */
		error = journal_save(mount);
	}
	fuse_reply_err(req, -error);
}
