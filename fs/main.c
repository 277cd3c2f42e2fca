/*
 * main.c - the life of one mount: open, go to the background, serve, commit, tell.
 *
 * Order. Paths are resolved and the pack is opened first, while there is nothing to
 * clean up. Then signals are blocked, the mount point is found or made, and the
 * process forks. The child takes the staging area, mounts, and lets the caller go
 * when the mount has answered; until then its messages are the caller's. So whatever
 * fails before is one line, an exit status, and nothing left. Threads start after the
 * mount.
 */
#include "background.h"
#include "channel.h"
#include "commit.h"
#include "control.h"
#include "journal.h"
#include "log.h"
#include "mount_point.h"
#include "notify.h"
#include "ops.h"
#include "options.h"
#include "paths.h"
#include "signals.h"
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct daemon {
	const struct options *options;
	char *pack_path;
	char *staging_path;
	struct mount_point point;
	struct background background;
	struct notify notify;
	struct channel channel;
	struct mount mount;
};

/* The pack ----------------------------------------------------------------- */

static enum status open_pack(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	struct bpk_error error = { .message = "" };
	const struct stat *st;
	struct pack *pack;
	mode_t readable;

	if (pack_open(daemon->pack_path, &pack, &error)) {
		if (error.offset == BPK_NO_OFFSET)
			log_line("%s: %s", daemon->options->pack, error.message);
		else
			log_line("%s: at byte %" PRIu64 ": %s", daemon->options->pack,
				 error.offset, error.message);
		return status_of_error(&error);
	}
	overlay_init(&mount->overlay, pack, daemon->options->writable);
	pack_unref(pack);
	mount->pack_path = daemon->pack_path;
	mount->writable = daemon->options->writable;
	mount->dots = daemon->options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	st = &mount->overlay.pack->stat;
	mount->uid = daemon->options->has_uid ? daemon->options->uid : st->st_uid;
	mount->gid = daemon->options->has_gid ? daemon->options->gid : st->st_gid;
	readable = st->st_mode & 0444;
	mount->file_mode =
		(readable | (mount->writable ? (st->st_mode & 0222) | 0200 : 0)) &
		~daemon->options->file_mask;
	mount->folder_mode = (readable | readable >> 2 |
			      (mount->writable ? (st->st_mode & 0222) | 0200 : 0)) &
			     ~daemon->options->folder_mask;
	return STATUS_OK;
}

static enum status open_staging(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	pid_t owner = 0;
	int error = staging_open(&mount->staging, daemon->staging_path, &owner);

	if (error == -EBUSY) {
		log_line("%s: already mounted writable by process %ld",
			 daemon->options->pack, (long)owner);
		return STATUS_IN_USE;
	}
	if (error) {
		log_line("%s: cannot stage edits in %s: %s", daemon->options->pack,
			 daemon->staging_path, strerror(-error));
		return STATUS_CANNOT_STAGE;
	}
	mount->scratch_path = paths_scratch(daemon->pack_path, &mount->staging);
	if (!mount->scratch_path) {
		log_line("no memory");
		staging_close(&mount->staging, false);
		return STATUS_CANNOT_STAGE;
	}
	return STATUS_OK;
}

/* What an earlier mount left in the staging folder comes back, or may go. */
static enum status bring_back(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	enum journal_state state;
	size_t count = 0;
	int error = journal_look(mount, &state);

	if (!error && state == JOURNAL_NONE &&
	    faccessat(mount->staging.dir_fd, STAGING_KEPT, F_OK, 0) == 0)
		state = JOURNAL_FOREIGN;
	if (!error && state == JOURNAL_EDITS)
		error = journal_replay(mount, &count);
	if (error || state == JOURNAL_FOREIGN) {
		log_line("%s: edits that were not committed are in %s%s%s; \"bpkfs "
			 "--discard %s\" drops them",
			 daemon->options->pack, daemon->staging_path,
			 error ? " and cannot be read: "
			       : ", but the pack is another one now",
			 error ? strerror(-error) : "", daemon->options->pack);
		staging_close(&mount->staging, false);
		return STATUS_CANNOT_STAGE;
	}
	unlink(mount->scratch_path);
	if (state == JOURNAL_NONE)
		staging_clear(&mount->staging);
	unlinkat(mount->staging.dir_fd, STAGING_KEPT, 0);
	if (count)
		log_line("%s: %zu edit%s that %s not committed %s back; see "
			 ".bpkfs/changes",
			 daemon->options->pack, count, count == 1 ? "" : "s",
			 count == 1 ? "was" : "were", count == 1 ? "is" : "are");
	return STATUS_OK;
}

/* Serving ------------------------------------------------------------------ */

static bool tell_ready(void *context)
{
	struct daemon *daemon = context;

	notify_ready(&daemon->notify);
	return background_ready(&daemon->background);
}

static void stop_serving(void *context)
{
	struct daemon *daemon = context;

	channel_stop(&daemon->channel);
}

/* Pages of files that are open for writing. A number is not used for another file
 * when the handle is closed meanwhile. */
static void save_mappings(void *context)
{
	struct daemon *daemon = context;
	struct mount *mount = &daemon->mount;
	uint64_t *ids, count = 0;

	pthread_mutex_lock(&mount->lock);
	ids = reallocarray(NULL, mount->handle_count + 1, sizeof(*ids));
	for (size_t i = 0; ids && i < mount->handle_count; i++)
		if (mount->handles[i] && mount->handles[i]->writer)
			ids[count++] = mount->handles[i]->node->id;
	pthread_mutex_unlock(&mount->lock);
	while (count)
		channel_write_back(&daemon->channel, ids[--count]);
	free(ids);
}

static int tell_progress(void *context, uint64_t done, uint64_t total)
{
	struct daemon *daemon = context;

	notify_progress(&daemon->notify, done, total);
	return 0;
}

/* After the last request: commit, and tell whoever can hear. */
static enum status finish(struct daemon *daemon, struct session *session)
{
	struct mount *mount = &daemon->mount;

	commit_at_unmount(mount, tell_progress, daemon);
	if (mount->message[0])
		log_line("%s", mount->message);
	mount->staging.keep = mount->kept;
	for (size_t i = 0; i < mount->handle_count; i++)
		handle_free(mount, i);
	free(mount->handles);
	mount_done(mount);
	staging_close(&mount->staging, !mount->kept);
	control_report(session->report_to, mount->result, mount->message);
	return mount->result;
}

static enum status serve_mounted(struct daemon *daemon, struct session *session)
{
	struct watch watch = { .mount = &daemon->mount,
			       .path = daemon->point.path,
			       .timeout = daemon->options->timeout,
			       .ready = tell_ready,
			       .save = save_mappings,
			       .stop = stop_serving,
			       .context = daemon };
	int error = watch_start(&watch), served = 0;
	enum status status;

	if (!error)
		served = channel_serve(&daemon->channel, daemon->options->single_thread);
	channel_unmount(&daemon->channel);
	if (!error)
		watch_end(&watch);
	if (error || served < 0)
		log_line("cannot serve the mount: %s",
			 strerror(error ? -error : -served));
	else if (!watch.is_ready && watch.signal)
		log_line("ended by SIG%s before the mount was ready",
			 sigabbrev_np(watch.signal));
	else if (!watch.is_ready)
		log_line("%s: unmounted before it was ready", daemon->point.path);
	notify_stopping(&daemon->notify);
	status = finish(daemon, session);
	return !error && watch.is_ready ? status : STATUS_MOUNT_POINT;
}

static enum status serve(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	struct session session = { .mount = mount };
	enum status status = mount->writable ? open_staging(daemon) : STATUS_OK;

	if (!status && mount->writable)
		status = bring_back(daemon);
	if (status)
		return status;
	if (mount_init(mount) || channel_open(&daemon->channel, daemon->options,
					      daemon->pack_path, &session)) {
		log_line("no memory");
		status = STATUS_MOUNT_POINT;
	} else {
		status = channel_mount(&daemon->channel, daemon->point.path);
	}
	if (!status) {
		if (chdir("/") < 0)
			log_line("cannot leave the folder: %s", strerror(errno));
		status = serve_mounted(daemon, &session);
	} else {
		mount_done(mount);
		staging_close(&mount->staging, true);
	}
	channel_close(&daemon->channel);
	return status;
}

static enum status find_paths(struct daemon *daemon)
{
	const struct options *options = daemon->options;

	daemon->pack_path = paths_pack(options->pack);
	if (!daemon->pack_path) {
		log_line("%s: %s", options->pack, strerror(errno));
		return STATUS_CANNOT_OPEN;
	}
	if (!options->writable)
		return STATUS_OK;
	daemon->staging_path = paths_staging(daemon->pack_path, options->staging);
	if (daemon->staging_path)
		return STATUS_OK;
	log_line("%s: %s", options->staging ? options->staging : options->pack,
		 strerror(errno));
	return options->staging ? STATUS_CANNOT_STAGE : STATUS_CANNOT_OPEN;
}

/* A commit, also one that is made while mounted, goes by these paths. */
static enum status check_not_hidden(const struct daemon *daemon)
{
	const char *point = daemon->point.path;

	if (!daemon->mount.writable || (!paths_is_below(daemon->pack_path, point) &&
					!paths_is_below(daemon->staging_path, point)))
		return STATUS_OK;
	log_line("%s: a writable mount there would hide %s from its own commit", point,
		 paths_is_below(daemon->pack_path, point) ? daemon->pack_path
							  : daemon->staging_path);
	return STATUS_MOUNT_POINT;
}

static enum status mount_pack(const struct options *options)
{
	struct daemon daemon = {
		.options = options,
		.background = { .ready_fd = -1 },
		.mount = { .writer_lock = PTHREAD_MUTEX_INITIALIZER,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .idle = PTHREAD_COND_INITIALIZER,
			   .staging = { .dir_fd = -1, .lock_fd = -1 } },
	};
	bool caller = false;
	enum status status = find_paths(&daemon);

	if (!options->foreground)
		background_close_inherited();
	notify_init(&daemon.notify, options->foreground);
	if (!status)
		status = open_pack(&daemon);
	if (!status) {
		signals_block(options->foreground);
		status = mount_point_find(&daemon.point, options->mount_point);
		if (!status)
			status = check_not_hidden(&daemon);
		if (!status && !options->foreground)
			status = background_start(&daemon.background, &caller);
		if (!status && !caller)
			status = serve(&daemon);
		if (caller && !status)
			mount_point_leave(&daemon.point);
		else
			mount_point_done(&daemon.point);
	}
	mount_done(&daemon.mount);
	free(daemon.mount.scratch_path);
	free(daemon.staging_path);
	free(daemon.pack_path);
	return status;
}

/* Of a mount, or of a pack whose edits an earlier mount left behind. */
static enum status discard(const struct options *options)
{
	char *pack, *staging;
	enum status status;
	struct stat st;

	if (stat(options->mount_point, &st) < 0 || !S_ISREG(st.st_mode))
		return control_discard(options->mount_point);
	pack = paths_pack(options->mount_point);
	staging = pack ? paths_staging(pack, NULL) : NULL;
	status = staging ? control_discard_left(pack, staging) : STATUS_CANNOT_OPEN;
	if (!staging)
		log_line("%s: %s", options->mount_point, strerror(errno));
	free(staging);
	free(pack);
	return status;
}

static void print_version(void)
{
	setlinebuf(stdout); /* another process has a line to add */
	printf("bpkfs %s\nlibfuse %s\n", bpk_version(), fuse_pkgversion());
	fuse_lowlevel_version();
}

/* What is large and lives shortly (a text that describes the pack, a listing) goes
 * back to the system when it is freed; and threads share what is free, as they come and
 * go and would each keep some. */
static void set_up_memory(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 1 << 20);
	mallopt(M_ARENA_MAX, 1);
#endif
}

int main(int argc, char **argv)
{
	struct options options;
	enum status status;

	set_up_memory();
	background_fill_standard();
	/* Some start their children with SIGCHLD ignored: then none can be waited for. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	status = options_parse(&options, argc, argv);
	if (!status) {
		switch (options.command) {
		case COMMAND_UNMOUNT:
			status = control_unmount(options.mount_point);
			break;
		case COMMAND_COMMIT:
			status = control_commit(options.mount_point);
			break;
		case COMMAND_DISCARD:
			status = discard(&options);
			break;
		case COMMAND_STATUS:
			status = control_status(options.mount_point);
			break;
		case COMMAND_HELP:
			options_help();
			break;
		case COMMAND_VERSION:
			print_version();
			break;
		case COMMAND_MOUNT:
		default:
			status = mount_pack(&options);
			break;
		}
	}
	options_done(&options);
	return (int)status;
}
