/*
 * ops_control.c - what bpkfs --unmount, --commit, --discard and --status ask the daemon
 * for: ioctls on any folder of the mount (ops.h has their numbers), of one pack or of a
 * directory of packs.
 */
#include "describe.h"
#include "ops.h"
#include "writers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Of those who may look at the mount, whose it is. */
static bool is_owner(fuse_req_t req)
{
	uid_t uid = fuse_req_ctx(req)->uid;

	return uid == 0 || uid == getuid();
}

/* Who is told how the commit at unmount went. */
static void report_to(struct session *session, const void *name)
{
	pthread_mutex_t *lock =
		session->library ? &session->library->lock : &session->mount->lock;

	pthread_mutex_lock(lock);
	memcpy(session->report_to, name, CONTROL_NAME_SIZE);
	session->report_to[CONTROL_NAME_SIZE - 1] = '\0';
	pthread_mutex_unlock(lock);
}

/* 0 or -ENOMEM. */
static int discard(struct session *session, bool wanted)
{
	if (session->library)
		return writers_discard(session->library, wanted);
	pthread_mutex_lock(&session->mount->lock);
	session->mount->discard = wanted;
	pthread_mutex_unlock(&session->mount->lock);
	return 0;
}

/* How things are ---------------------------------------------------------------- */

/* Of one pack among those that are asked for. Locked. */
static void add_mount(struct control_info *info, struct mount *mount)
{
	info->changes += (int32_t)describe_change_count(mount);
	if (!mount->committing)
		return;
	info->committing = true;
	info->done += __atomic_load_n(&mount->commit_done, __ATOMIC_RELAXED);
	info->total += __atomic_load_n(&mount->commit_total, __ATOMIC_RELAXED);
}

static int add_place(void *context, struct place *place)
{
	pthread_mutex_lock(&place->mount->lock);
	add_mount(context, place->mount);
	pthread_mutex_unlock(&place->mount->lock);
	return 0;
}

/* Of what is in the folder @ino. 0 or -errno. */
static int tell_library(struct library *library, fuse_ino_t ino,
			struct control_info *info)
{
	struct place *place = library_pack_place(library, ino);
	int error;

	if (!place)
		place = library_place(library, ino);
	if (!place)
		return -ENOENT;
	info->writable = library->options->writable;
	info->status = (int32_t)writers_result(library, place, info->message,
					       sizeof(info->message));
	error = writers_each(library, place, add_place, info);
	library_unref(library, place);
	return error;
}

static void tell_mount(struct mount *mount, struct control_info *info)
{
	pthread_mutex_lock(&mount->lock);
	info->writable = mount->writable;
	info->status = (int32_t)mount->result;
	memcpy(info->message, mount->message, sizeof(mount->message));
	add_mount(info, mount);
	pthread_mutex_unlock(&mount->lock);
}

static int tell(struct session *session, fuse_ino_t ino, struct control_info *info)
{
	if (session->library)
		return tell_library(session->library, ino, info);
	tell_mount(session->mount, info);
	return 0;
}

void ops_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
	       struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
	       size_t out_size)
{
	struct session *session = fuse_req_userdata(req);
	struct control_info info = { .writable = 0 };
	int32_t wanted;
	int error = -ENOTTY;

	(void)arg;
	(void)fi;
	(void)flags;
	if ((command == CONTROL_REPORT_TO || command == CONTROL_DISCARD) &&
	    !is_owner(req)) {
		error = -EPERM;
	} else if (command == CONTROL_REPORT_TO && in_size == CONTROL_NAME_SIZE) {
		report_to(session, in);
		error = 0;
	} else if (command == CONTROL_DISCARD && in_size == sizeof(wanted)) {
		memcpy(&wanted, in, sizeof(wanted));
		error = discard(session, wanted != 0);
	} else if (command == CONTROL_INFO && out_size == sizeof(info)) {
		error = tell(session, ino, &info);
	}
	if (error)
		fuse_reply_err(req, -error);
	else if (command == CONTROL_INFO)
		fuse_reply_ioctl(req, 0, &info, sizeof(info));
	else
		fuse_reply_ioctl(req, 0, NULL, 0);
}
