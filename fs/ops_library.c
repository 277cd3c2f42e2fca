/*
 * ops_library.c - the handlers of a directory of packs. What a number stands for decides
 * here who answers: in a pack, the handlers of a mounted pack, which never know; above,
 * those in this file. Nothing here holds a lock while it looks at the disk.
 */
#include "describe.h"
#include "listing.h"
#include "ops.h"
#include "place.h"
#include "place_text.h"
#include "writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct library *library_of(fuse_req_t req)
{
	const struct session *session = fuse_req_userdata(req);

	return session->library;
}

static bool in_pack(fuse_req_t req, fuse_ino_t ino)
{
	return library_is_pack(library_of(req), ino);
}

/* The place, with a reference; without one it is answered. */
static struct place *begin(fuse_req_t req, fuse_ino_t ino)
{
	struct place *place = library_place(library_of(req), ino);

	if (!place)
		fuse_reply_err(req, ENOENT);
	return place;
}

static void end(fuse_req_t req, struct place *place)
{
	library_unref(library_of(req), place);
}

/* A pack that is replaced is another place, so this one is for good, unless it is
 * edited. */
static double keep_attributes(const struct library *library, const struct place *place)
{
	return place->type == PLACE_PACK && !library->options->writable ? FOREVER : 0;
}

/* Of a pack that may be edited as its mount has them, which is not opened for that. */
static int attributes(struct library *library, struct place *place, struct stat *ret_st)
{
	struct mount *mount;
	int error;

	if (place->type != PLACE_PACK || !library->options->writable ||
	    !library_enter_open(library, place, &mount))
		return place_attributes(library, place, ret_st);
	error = ops_attributes(mount, &mount->nodes.fixed[NODE_ID_ROOT], false, ret_st);
	library_leave(library, mount);
	return error;
}

static void library_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	struct place *place = library_pack_place(library, ino);
	struct stat st;
	int error;

	if (place && (place->id != ino || !library->options->writable)) {
		end(req, place);
		ops_getattr(req, ino, fi);
		return;
	}
	if (!place)
		place = begin(req, ino);
	if (!place)
		return;
	error = attributes(library, place, &st);
	end(req, place);
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_attr(req, &st, 0);
}

/* Names ------------------------------------------------------------------------- */

static void library_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct library *library = library_of(req);
	struct fuse_entry_param entry = { .generation = 1 };
	struct place *folder, *place = NULL;
	int error;

	if (in_pack(req, parent)) {
		ops_lookup(req, parent, name);
		return;
	}
	folder = begin(req, parent);
	if (!folder)
		return;
	error = place_find(library, folder, name, &place);
	if (!error)
		error = attributes(library, place, &entry.attr);
	if (!error) {
		entry.ino = place->id;
		entry.attr_timeout = keep_attributes(library, place);
		library_told(library, place, name);
	}
	if (place)
		end(req, place);
	end(req, folder);
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_entry(req, &entry);
}

static void library_ops_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	library_forget(library_of(req), ino, lookups);
	fuse_reply_none(req);
}

static void library_ops_forget_multi(fuse_req_t req, size_t count,
				     struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		library_forget(library_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void library_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct place *place;
	char *target = NULL;
	int error = -EINVAL;

	if (in_pack(req, ino)) {
		ops_readlink(req, ino);
		return;
	}
	place = begin(req, ino);
	if (!place)
		return;
	if (place->type == PLACE_LINK)
		error = place_target(library_of(req), place, &target);
	end(req, place);
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_readlink(req, target);
	free(target);
}

/* A handle, which takes all that is in @opened. */
static void reply_open(fuse_req_t req, const struct place_handle *opened,
		       struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	int error = library_handle_new(library, opened, &fi->fh);

	if (error)
		fuse_reply_err(req, -error);
	else if (fuse_reply_open(req, fi) == -ENOENT)
		library_handle_free(library, fi->fh);
}

static void library_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct place_handle opened = { .fd = -1 };

	if (in_pack(req, ino)) {
		ops_opendir(req, ino, fi);
		return;
	}
	opened.place = begin(req, ino);
	if (opened.place)
		reply_open(req, &opened, fi);
}

static void library_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			    struct fuse_file_info *fi, bool plus)
{
	struct library *library = library_of(req);
	struct place_handle *handle = library_handle(library, fi->fh);
	char *buffer = malloc(size);
	size_t used = 0;
	int error = !handle ? -EBADF : buffer ? 0 : -ENOMEM;

	(void)ino;
	/* The kernel reads a folder by one request at a time. */
	if (!error && (off == 0 || !handle->listing)) {
		listing_free(handle->listing);
		handle->listing = NULL;
		error = place_list(library, handle->place, &handle->listing);
	}
	for (size_t i = (size_t)off; !error && i < handle->listing->count; i++) {
		const struct listed *listed = &handle->listing->entries[i];
		const char *name = handle->listing->names + listed->name_at;
		/* No number: the kernel is told of nothing that it would have to
		 * forget, and asks when it wants to know. */
		struct fuse_entry_param entry = { .attr = { .st_ino = listed->id,
							    .st_mode = listed->type } };
		off_t next = (off_t)i + 1;
		size_t need =
			plus ? fuse_add_direntry_plus(req, buffer + used, size - used,
						      name, &entry, next)
			     : fuse_add_direntry(req, buffer + used, size - used, name,
						 &entry.attr, next);

		if (need > size - used)
			break;
		used += need;
	}
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_buf(req, buffer, used);
	free(buffer);
	library_handle_put(library, handle);
}

static void library_ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
				struct fuse_file_info *fi)
{
	if (in_pack(req, ino))
		ops_readdir(req, ino, size, off, fi);
	else
		library_readdir(req, ino, size, off, fi, false);
}

static void library_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
				struct fuse_file_info *fi)
{
	if (in_pack(req, ino))
		ops_readdirplus(req, ino, size, off, fi);
	else
		library_readdir(req, ino, size, off, fi, true);
}

static void library_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (in_pack(req, ino)) {
		ops_releasedir(req, ino, fi);
		return;
	}
	library_handle_free(library_of(req), fi->fh);
	fuse_reply_err(req, 0);
}

/* Files that are no packs ------------------------------------------------------- */

static void library_ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	struct place_handle opened = { .fd = -1 };
	enum place_type type;
	int error = 0;

	if (in_pack(req, ino)) {
		ops_open(req, ino, fi);
		return;
	}
	opened.place = begin(req, ino);
	if (!opened.place)
		return;
	type = opened.place->type;
	if ((fi->flags & O_ACCMODE) != O_RDONLY || fi->flags & O_TRUNC)
		error = library->options->writable ? -EACCES : -EROFS;
	else if (type == PLACE_STATUS || type == PLACE_CHANGES)
		error = place_tell(library, opened.place, &opened.text,
				   &opened.text_size);
	else if (type == PLACE_FILE)
		error = opened.fd = place_open(library, opened.place);
	if (error < 0) {
		end(req, opened.place);
		fuse_reply_err(req, -error);
		return;
	}
	fi->direct_io = type != PLACE_FILE;
	reply_open(req, &opened, fi);
}

static void library_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
			 struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	struct place_handle *handle;
	char *buffer;
	ssize_t got;

	if (in_pack(req, ino)) {
		ops_read(req, ino, size, off, fi);
		return;
	}
	handle = library_handle(library, fi->fh);
	if (handle && handle->fd < 0) {
		size_t at =
			(size_t)off < handle->text_size ? (size_t)off : handle->text_size;

		if (size > handle->text_size - at)
			size = handle->text_size - at;
		fuse_reply_buf(req, size ? handle->text + at : NULL, size);
		library_handle_put(library, handle);
		return;
	}
	buffer = handle ? malloc(size) : NULL;
	got = buffer ? pread(handle->fd, buffer, size, off) : 0;
	if (!buffer)
		fuse_reply_err(req, handle ? ENOMEM : EBADF);
	else if (got < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_buf(req, buffer, (size_t)got);
	free(buffer);
	library_handle_put(library, handle);
}

static void library_release_file(fuse_req_t req, fuse_ino_t ino,
				 struct fuse_file_info *fi)
{
	if (in_pack(req, ino)) {
		ops_release(req, ino, fi);
		return;
	}
	library_handle_free(library_of(req), fi->fh);
	fuse_reply_err(req, 0);
}

/* Of other files there is nothing to write back. */
static void library_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
			  struct fuse_file_info *fi)
{
	if (in_pack(req, ino))
		ops_fsync(req, ino, datasync, fi);
	else
		fuse_reply_err(req, 0);
}

static void library_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (in_pack(req, ino))
		ops_flush(req, ino, fi);
	else
		fuse_reply_err(req, 0);
}

static void reply_commit(void *context, int error)
{
	fuse_reply_err(context, -error);
}

/* A commit of the pack that the folder is in, or of all below it. */
static void library_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync,
			     struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	struct place *place = library_pack_place(library, ino);
	int error;

	(void)datasync;
	(void)fi;
	if (!place)
		place = begin(req, ino);
	if (!place)
		return;
	error = writers_commit(library, place, reply_commit, req);
	library_unref(library, place); /* the request may be of the past */
	if (error)
		fuse_reply_err(req, error < 0 ? -error : 0);
}

/* Edits ------------------------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Would it change something? Times of access are not kept. */
static bool is_change(const struct stat *now, const struct stat *wanted, int to_set)
{
	return (to_set & FUSE_SET_ATTR_MODE &&
		(now->st_mode ^ wanted->st_mode) & 07777) ||
	       (to_set & FUSE_SET_ATTR_UID && now->st_uid != wanted->st_uid) ||
	       (to_set & FUSE_SET_ATTR_GID && now->st_gid != wanted->st_gid) ||
	       to_set & FUSE_SET_ATTR_MTIME_NOW ||
	       (to_set & FUSE_SET_ATTR_MTIME &&
		!same_time(&now->st_mtim, &wanted->st_mtim));
}

static void library_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
			    struct fuse_file_info *fi)
{
	struct library *library = library_of(req);
	struct place *place;
	struct stat st;
	int error;

	if (in_pack(req, ino)) {
		ops_setattr(req, ino, attr, to_set, fi);
		return;
	}
	place = begin(req, ino);
	if (!place)
		return;
	error = place_attributes(library, place, &st);
	end(req, place);
	if (!error && to_set & FUSE_SET_ATTR_SIZE)
		error = -EACCES;
	else if (!error && is_change(&st, attr, to_set))
		error = -EPERM;
	if (error)
		fuse_reply_err(req, -error);
	else
		fuse_reply_attr(req, &st, 0);
}

/* In a pack, or it is no edit: of the directory itself nothing is edited. */
static bool may_edit(fuse_req_t req, fuse_ino_t ino)
{
	if (in_pack(req, ino))
		return true;
	fuse_reply_err(req, EPERM);
	return false;
}

static void library_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (may_edit(req, parent))
		ops_unlink(req, parent, name);
}

static void library_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (may_edit(req, parent))
		ops_rmdir(req, parent, name);
}

static void library_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
			  mode_t mode)
{
	if (may_edit(req, parent))
		ops_mkdir(req, parent, name, mode);
}

static void library_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
			  mode_t mode, dev_t device)
{
	if (may_edit(req, parent))
		ops_mknod(req, parent, name, mode, device);
}

/* From one pack to another is what mv(1) copies for. */
static void library_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
			   fuse_ino_t new_parent, const char *new_name,
			   unsigned int flags)
{
	struct library *library = library_of(req);
	struct place *from = library_pack_place(library, parent),
		     *to = library_pack_place(library, new_parent);
	int error = !from || !to ? EPERM : from != to ? EXDEV : 0;

	if (from)
		end(req, from);
	if (to)
		end(req, to);
	if (error)
		fuse_reply_err(req, error);
	else
		ops_rename(req, parent, name, new_parent, new_name, flags);
}

static void library_create(fuse_req_t req, fuse_ino_t parent, const char *name,
			   mode_t mode, struct fuse_file_info *fi)
{
	if (may_edit(req, parent))
		ops_create(req, parent, name, mode, fi);
}

/* What follows is of files that were opened to be written, or have attributes to set. */
static void library_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
			  off_t off, struct fuse_file_info *fi)
{
	if (may_edit(req, ino))
		ops_write(req, ino, data, size, off, fi);
}

static void library_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off,
			      off_t size, struct fuse_file_info *fi)
{
	if (may_edit(req, ino))
		ops_fallocate(req, ino, mode, off, size, fi);
}

static void library_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			     const char *value, size_t size, int flags)
{
	if (in_pack(req, ino))
		ops_setxattr(req, ino, name, value, size, flags);
	else
		fuse_reply_err(req, ENOTSUP);
}

static void library_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	if (in_pack(req, ino))
		ops_removexattr(req, ino, name);
	else
		fuse_reply_err(req, ENODATA);
}

/* Extended attributes ----------------------------------------------------------- */

static void reply_text(fuse_req_t req, const char *text, size_t text_size, size_t size)
{
	if (!size)
		fuse_reply_xattr(req, text_size);
	else if (size < text_size)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, text, text_size);
}

static void library_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
			     size_t size)
{
	struct bpk_error error;
	struct place *place;
	bool has;

	/* What ls(1) asks for is no reason to open a pack. */
	if (strncmp(name, "user.bpk.", strlen("user.bpk.")) != 0) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	if (in_pack(req, ino)) {
		ops_getxattr(req, ino, name, size);
		return;
	}
	place = begin(req, ino);
	if (!place)
		return;
	has = strcmp(name, DESCRIBE_ERROR_ATTRIBUTE) == 0 &&
	      place_error(library_of(req), place, &error);
	end(req, place);
	if (has)
		reply_text(req, error.message, strlen(error.message), size);
	else
		fuse_reply_err(req, ENODATA);
}

static void library_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	struct bpk_error error;
	struct place *place;
	bool has;

	if (in_pack(req, ino)) {
		ops_listxattr(req, ino, size);
		return;
	}
	place = begin(req, ino);
	if (!place)
		return;
	has = place_error(library_of(req), place, &error);
	end(req, place);
	reply_text(req, DESCRIBE_ERROR_ATTRIBUTE,
		   has ? sizeof(DESCRIBE_ERROR_ATTRIBUTE) : 0, size);
}

/* The mount --------------------------------------------------------------------- */

static void library_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs st;

	if (ino && in_pack(req, ino)) {
		ops_statfs(req, ino);
		return;
	}
	if (fstatvfs(library_of(req)->dir_fd, &st) < 0) {
		fuse_reply_err(req, errno);
		return;
	}
	if (!library_of(req)->options->writable)
		st.f_bfree = st.f_bavail = 0;
	st.f_ffree = st.f_favail = 0;
	st.f_namemax = NAME_SIZE_MAX;
	fuse_reply_statfs(req, &st);
}

/* Links are made nowhere. */
const struct fuse_lowlevel_ops library_ops = {
	.init = ops_init,
	.lookup = library_lookup,
	.forget = library_ops_forget,
	.forget_multi = library_ops_forget_multi,
	.getattr = library_getattr,
	.readlink = library_readlink,
	.setattr = library_setattr,
	.statfs = library_statfs,
	.getxattr = library_getxattr,
	.listxattr = library_listxattr,
	.setxattr = library_setxattr,
	.removexattr = library_removexattr,
	.unlink = library_unlink,
	.rmdir = library_rmdir,
	.rename = library_rename,
	.mkdir = library_mkdir,
	.mknod = library_mknod,
	.symlink = ops_symlink,
	.link = ops_link,
	.ioctl = ops_ioctl,
	.opendir = library_opendir,
	.readdir = library_ops_readdir,
	.readdirplus = library_readdirplus,
	.releasedir = library_releasedir,
	.fsyncdir = library_fsyncdir,
	.open = library_ops_open,
	.create = library_create,
	.read = library_read,
	.write = library_write,
	.flush = library_flush,
	.release = library_release_file,
	.fsync = library_fsync,
	.fallocate = library_fallocate,
};
