/*
 * ops_write.c - writing to files.
 *
 * Who opens a tensor for nothing but writing (cp, dd, a shell, np.save) needs no pages of
 * it: the bytes come from the caller's memory to us, and no page is made and filled in
 * between. Not to append: where the end is the kernel would not ask. Two writers of the
 * same file both keep the cache, as one of them may have mapped it, and a page that one
 * has written to must not overwrite what came past it.
 *
 * Who has the file open meanwhile may have mapped it: the kernel takes the pages out of
 * its cache, before such a write and, as they can be read again until we have the bytes,
 * after it. That is for the kernel to do: a daemon that waits for a page which it has
 * itself been asked to read could not even be killed.
 */
#include "content.h"
#include "edit.h"
#include "ops.h"

#include <errno.h>
#include <fcntl.h>

bool ops_writes_direct(const struct session *session, const struct mount *mount,
		       const struct node *node, int flags)
{
	const struct entry entry = node_entry(&mount->overlay, node);

	return session->can_write_direct && (flags & O_ACCMODE) == O_WRONLY &&
	       !(flags & O_APPEND) && !content_is_text(&entry) && entry.item &&
	       entry.item->pending.writers == 1;
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	int error;

	(void)fi;
	if (!node)
		return;
	error = edit_write(mount, node, data, size, (uint64_t)off);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	fuse_reply_write(req, size);
}
