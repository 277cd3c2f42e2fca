/*
 * ops_write.c - writing to files.
 *
 * Who opens a tensor for nothing but writing (cp, dd, a shell, np.save) needs no pages of
 * it: the bytes come from the caller's memory to us, and no page is made and filled in
 * between. Two writers of the same file both keep the cache, as one of them may have
 * mapped it, and a page that one has written to must not overwrite what came past it.
 *
 * Who has the file open meanwhile may have mapped it. The kernel takes the pages out
 * before such a write, but they can be read again before we have the bytes, so they are
 * taken out once more before the write is answered. That can wait for a page that is
 * being read, by a request to us: so it is done by a thread of its own.
 */
#include "content.h"
#include "edit.h"
#include "ops.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

bool ops_writes_direct(const struct session *session, const struct mount *mount,
		       const struct node *node, int flags)
{
	const struct entry entry = node_entry(&mount->overlay, node);

	return session->can_write_direct && (flags & O_ACCMODE) == O_WRONLY &&
	       !content_is_text(&entry) && entry.item && entry.item->pending.writers == 1;
}

struct answer {
	fuse_req_t req;
	struct fuse_session *fuse;
	fuse_ino_t ino;
	off_t off;
	size_t size;
};

static void drop_pages(void *context)
{
	struct answer answer = *(struct answer *)context;

	free(context);
	(void)fuse_lowlevel_notify_inval_inode(answer.fuse, answer.ino, answer.off,
					       (off_t)answer.size);
	fuse_reply_write(answer.req, answer.size);
}

/* Once nobody sees the old bytes any more. */
static void reply_later(fuse_req_t req, struct mount *mount, fuse_ino_t ino, size_t size,
			off_t off)
{
	const struct session *session = fuse_req_userdata(req);
	struct answer *answer = malloc(sizeof(*answer));
	int error = -ENOMEM;

	if (answer) {
		*answer = (struct answer) { req, session->fuse, ino, off, size };
		error = worker_start(&mount->workers, drop_pages, answer);
	}
	if (!error)
		return;
	free(answer);
	fuse_reply_err(req, -error);
}

void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	       struct fuse_file_info *fi)
{
	struct mount *mount;
	struct node *node = ops_begin(req, ino, &mount);
	const struct handle *handle;
	bool shared;
	int error;

	if (!node)
		return;
	handle = handle_get(mount, fi->fh);
	shared = handle && handle->direct && node->refs > 1;
	error = edit_write(mount, node, data, size, (uint64_t)off);
	if (error) {
		ops_fail(req, mount, error);
		return;
	}
	ops_end(req, mount);
	if (shared)
		reply_later(req, mount, ino, size, off);
	else
		fuse_reply_write(req, size);
}
