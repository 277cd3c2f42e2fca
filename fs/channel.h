/*
 * channel.h - the kernel's end of a mount: the session with libfuse, mounted on a
 * folder and served until it ends. It knows no pack; the handlers are in ops.
 */
#ifndef BPKFS_CHANNEL_H
#define BPKFS_CHANNEL_H

#include <pthread.h>
#include <stdint.h>

#include "mount_point.h"
#include "options.h"

struct fuse_session;
struct session;

struct channel {
	struct fuse_session *fuse;
	pthread_t server; /* the thread that opened it and is to serve */
};

/* A session for the handlers of ops.h, of a pack or of a directory, with @session as
 * their userdata. The mount table shows @source unless -o fsname says otherwise. 0 or
 * -ENOMEM. */
int channel_open(struct channel *channel, const struct options *options,
		 const char *source, struct session *session);
/* Mount on @point, which is made anew when it is gone. STATUS_OK, or STATUS_MOUNT_POINT
 * with one line that says why not and what to do, whoever noticed: the kernel, libfuse or
 * fusermount3. Called while there is one thread: standard error is somewhere else
 * meanwhile. */
enum status channel_mount(struct channel *channel, struct mount_point *point);
/* Answer requests until the mount is gone or channel_stop(). 0 or -errno. */
int channel_serve(struct channel *channel, bool single_thread);
/* Have the kernel write what was stored in the file of that number through a shared
 * mapping; returns when that was answered. From any thread that answers none. */
void channel_write_back(struct channel *channel, uint64_t id);
/* Have the kernel forget what it knows as @name in the folder of that number, and of all
 * below, as far as nobody uses it. Likewise. */
void channel_forget(struct channel *channel, uint64_t folder, const char *name);
/* Make channel_serve() end; from any other thread, before channel_close(). The
 * wake-up may be lost when it comes just before a wait: call again until it ended. */
void channel_stop(struct channel *channel);
/* The descriptor that requests are read from; -1 when nothing was mounted. */
int channel_device(const struct channel *channel);
/* Unmount, if that has not happened yet; nobody is answered any more. */
void channel_unmount(struct channel *channel);
/* Instead, where something else lies over it, which would go in its place: cut the
 * connection, and leave what is mounted. */
void channel_abandon(struct channel *channel);
void channel_close(struct channel *channel);

#endif
