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
	char *discard; /* the command that drops what is left in it, or NULL */
	struct mount_point point;
	struct background background;
	struct notify notify;
	struct channel channel;
	struct mount mount;
	struct session session;
	struct control_pace pace;
};

/* The pack ----------------------------------------------------------------- */

static enum status open_pack(struct daemon *daemon)
{
	struct bpk_error error = { .message = "" };
	struct pack *pack;
	int result;

	if (daemon->options->create) {
		result = pack_empty(&pack);
		if (result) {
			log_line("%s: cannot make an empty pack: %s",
				 daemon->options->pack, strerror(-result));
			return STATUS_CANNOT_OPEN;
		}
	} else if (pack_open(daemon->pack_path, &pack, &error)) {
		if (error.offset == BPK_NO_OFFSET)
			log_line("%s: %s", daemon->options->pack, error.message);
		else
			log_line("%s: at byte %" PRIu64 ": %s", daemon->options->pack,
				 error.offset, error.message);
		return status_of_error(&error);
	}
	overlay_init(&daemon->mount.overlay, pack, daemon->options->writable);
	pack_unref(pack);
	return STATUS_OK;
}

/* The file that commits make or replace, and what is there now. */
static enum status open_target(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	const struct options *options = daemon->options;
	const struct stat *pack = &mount->overlay.pack->stat;
	int error;

	if (!options->output) {
		if (!options->create)
			target_is_pack(&mount->target, mount->overlay.pack);
		return STATUS_OK;
	}
	if (!mount->target.there)
		return STATUS_OK;
	error = target_open(&mount->target);
	if (!error && mount->target.stat.st_dev == pack->st_dev &&
	    mount->target.stat.st_ino == pack->st_ino) {
		log_line("option \"output=%s\": that is the pack itself, which is not to "
			 "be touched; leave the option out to write to it",
			 options->output);
		return STATUS_USAGE;
	}
	if (error) {
		log_line("%s: cannot be replaced: %s", options->output,
			 error == -EINVAL ? "no regular file" : strerror(-error));
		return STATUS_CANNOT_OPEN;
	}
	if (options->overwrite)
		return STATUS_OK;
	log_line("%s: is there already; with \"-o overwrite\" a commit replaces it",
		 options->output);
	return STATUS_CANNOT_OPEN;
}

/* Of a new file for the edits of @pack: the pack's, less the umask, as cp(1) has it,
 * but the owner can go on with it. */
static mode_t output_mode(const struct pack *pack)
{
	return new_file_mode(pack->stat.st_mode & 0666) | 0600;
}

/* Owner and permissions of what is in the mount: those of what a commit makes. */
static void set_attributes(struct daemon *daemon)
{
	const struct options *options = daemon->options;
	struct mount *mount = &daemon->mount;
	struct stat st = mount->overlay.pack->stat;
	mode_t readable, writable;

	if (options->output && mount->target.there) {
		st = mount->target.stat;
	} else if (options->output) {
		st.st_mode = output_mode(mount->overlay.pack);
		st.st_uid = geteuid();
		st.st_gid = getegid();
	}
	readable = st.st_mode & 0444;
	writable = mount->writable ? (st.st_mode & 0222) | 0200 : 0;
	mount->uid = options->has_uid ? options->uid : st.st_uid;
	mount->gid = options->has_gid ? options->gid : st.st_gid;
	mount->file_mode = (readable | writable) & ~options->file_mask;
	mount->folder_mode =
		(readable | readable >> 2 | writable) & ~options->folder_mask;
}

static enum status open_files(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	enum status status = open_pack(daemon);

	mount->pack_path = daemon->pack_path;
	mount->writable = daemon->options->writable;
	mount->dots = daemon->options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	if (!status)
		status = open_target(daemon);
	if (!status)
		set_attributes(daemon);
	return status;
}

static void tell_in_use(const struct daemon *daemon, pid_t owner)
{
	const char *path = daemon->mount.target.path;

	if (owner)
		log_line("%s: already mounted writable by process %ld", path,
			 (long)owner);
	else
		log_line("%s: already mounted writable, or locked, by another process",
			 path);
}

static enum status open_staging(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	pid_t owner = 0;
	int error = staging_open(&mount->staging, daemon->staging_path, &owner);

	if (error == -EBUSY) {
		tell_in_use(daemon, owner);
		return STATUS_IN_USE;
	}
	if (error) {
		log_line("%s: cannot stage edits in %s: %s", daemon->options->pack,
			 daemon->staging_path, strerror(-error));
		return STATUS_CANNOT_STAGE;
	}
	error = target_lock(&mount->target, mount->overlay.pack, &owner);
	if (error) {
		tell_in_use(daemon, owner);
		staging_leave(&mount->staging);
		return STATUS_IN_USE;
	}
	if (!target_unchanged(&mount->target)) {
		log_line("%s: was replaced while it was opened; try again",
			 mount->target.path);
		staging_leave(&mount->staging);
		return STATUS_CANNOT_OPEN;
	}
	/* Bytes of a pack that others may not read are not to be readable in a new
	 * file, not even while it is written. */
	if (daemon->options->output && !mount->target.there)
		umask(0777 & ~output_mode(mount->overlay.pack));
	mount->scratch_path = paths_scratch(mount->target.path, &mount->staging);
	if (!mount->scratch_path) {
		log_line("no memory");
		staging_close(&mount->staging, false);
		return STATUS_CANNOT_STAGE;
	}
	return STATUS_OK;
}

/* Edits that cannot be brought back, and what can be done. */
static void tell_left(const struct daemon *daemon, int error, enum journal_state state)
{
	const char *why, *then = "";

	if (error) {
		why = " and cannot be read: ";
	} else if (state == JOURNAL_NONE) {
		why = ", where " STAGING_KEPT " lists them, but cannot be brought back";
	} else if (state == JOURNAL_UNBORN) {
		why = ", and they are of a new pack, not of this one";
		then = "move this one away and mount with \"-o create\" to have them, "
		       "or ";
	} else if (daemon->options->create) {
		why = ", and they are of a pack that was there";
	} else {
		why = ", but the pack is another one now";
		then = "put the one that they are of back in its place to have them, or ";
	}
	log_line("%s: edits that were not committed are in %s%s%s; %s\"%s\" drops them",
		 daemon->mount.target.path, daemon->staging_path, why,
		 error ? strerror(-error) : "", then, daemon->discard);
}

/* What an earlier mount left in the staging folder comes back, or may go. */
static enum status bring_back(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	enum journal_state state;
	size_t count = 0;
	int error = journal_look(mount, &state);
	bool listed = faccessat(mount->staging.dir_fd, STAGING_KEPT, F_OK, 0) == 0;

	if (!error && state == JOURNAL_EDITS)
		error = journal_replay(mount, &count);
	if (error || state == JOURNAL_FOREIGN || state == JOURNAL_UNBORN ||
	    (state == JOURNAL_NONE && listed)) {
		tell_left(daemon, error, state);
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
	control_progress(&daemon->pace, daemon->session.report_to, done, total);
	return 0;
}

/* After the last request: commit, and tell whoever can hear. */
static enum status finish(struct daemon *daemon)
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
	control_report(daemon->session.report_to, mount->result, mount->message);
	return mount->result;
}

static enum status serve_mounted(struct daemon *daemon)
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
	status = finish(daemon);
	return !error && watch.is_ready ? status : STATUS_MOUNT_POINT;
}

static enum status serve(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	enum status status = mount->writable ? open_staging(daemon) : STATUS_OK;

	if (!status && mount->writable)
		status = bring_back(daemon);
	if (status)
		return status;
	daemon->session.mount = mount;
	if (mount_init(mount) || channel_open(&daemon->channel, daemon->options,
					      daemon->pack_path, &daemon->session)) {
		log_line("no memory");
		status = STATUS_MOUNT_POINT;
	} else {
		status = channel_mount(&daemon->channel, daemon->point.path);
	}
	if (!status) {
		if (chdir("/") < 0)
			log_line("cannot leave the folder: %s", strerror(errno));
		status = serve_mounted(daemon);
	} else {
		mount_done(mount);
		staging_close(&mount->staging, true);
	}
	channel_close(&daemon->channel);
	return status;
}

/* The path of what commits write: @given is the pack, or the file of -o output. */
static enum status find_target(struct daemon *daemon, const char *given)
{
	struct target *target = &daemon->mount.target;

	target->path = paths_new(given, &target->there);
	if (target->path)
		return STATUS_OK;
	if (errno == EEXIST)
		log_line("%s: is a symbolic link that leads nowhere", given);
	else
		log_line("%s: %s", given, strerror(errno));
	return STATUS_CANNOT_OPEN;
}

/* A pack that is not there may have edits that wait for it: of -o create. */
static enum status tell_missing(const struct options *options)
{
	int error = errno;
	bool there;
	char *path = options->writable ? paths_new(options->pack, &there) : NULL,
	     *staging = path ? paths_staging(path, options->staging) : NULL;

	if (error == ENOENT && staging && access(staging, F_OK) == 0)
		log_line("%s: %s; edits of one that was not committed are in %s: see "
			 "\"-o create\"",
			 options->pack, strerror(error), staging);
	else
		log_line("%s: %s", options->pack, strerror(error));
	free(staging);
	free(path);
	return STATUS_CANNOT_OPEN;
}

static enum status find_paths(struct daemon *daemon)
{
	const struct options *options = daemon->options;
	struct target *target = &daemon->mount.target;
	enum status status = STATUS_OK;

	if (options->create || options->output)
		status = find_target(daemon,
				     options->create ? options->pack : options->output);
	if (!status && options->create && target->there) {
		log_line("%s: is there already; mount it without \"-o create\"",
			 options->pack);
		status = STATUS_CANNOT_OPEN;
	}
	if (status)
		return status;
	daemon->pack_path =
		options->create ? strdup(target->path) : paths_pack(options->pack);
	if (!daemon->pack_path)
		return tell_missing(options);
	if (!target->path)
		target->path = strdup(daemon->pack_path);
	if (target->path && !options->writable)
		return STATUS_OK;
	if (target->path)
		daemon->staging_path = paths_staging(target->path, options->staging);
	if (daemon->staging_path)
		daemon->discard = paths_discard(target->path, options->staging);
	if (daemon->discard)
		return STATUS_OK;
	log_line("%s: %s", options->staging ? options->staging : options->pack,
		 strerror(errno));
	return options->staging ? STATUS_CANNOT_STAGE : STATUS_CANNOT_OPEN;
}

/* A commit, also one that is made while mounted, goes by these paths. */
static enum status check_not_hidden(const struct daemon *daemon)
{
	const char *point = daemon->point.path;

	const char *target = daemon->mount.target.path;

	if (!daemon->mount.writable || (!paths_is_below(target, point) &&
					!paths_is_below(daemon->staging_path, point)))
		return STATUS_OK;
	log_line("%s: a writable mount there would hide %s from its own commit", point,
		 paths_is_below(target, point) ? target : daemon->staging_path);
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
			   .staging = { .dir_fd = -1, .lock_fd = -1 },
			   .target = { .fd = -1 } },
	};
	bool caller = false;
	enum status status = find_paths(&daemon);

	if (!options->foreground)
		background_close_inherited();
	notify_init(&daemon.notify, options->foreground);
	if (!status)
		status = open_files(&daemon);
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
	target_done(&daemon.mount.target);
	free(daemon.mount.scratch_path);
	free(daemon.discard);
	free(daemon.staging_path);
	free(daemon.pack_path);
	return status;
}

/* Of a mount, or of a pack whose edits an earlier mount left behind; the pack need not
 * be there. */
static enum status discard(const struct options *options)
{
	char *pack = NULL, *staging = NULL;
	enum status status = STATUS_CANNOT_OPEN;
	bool there = true;
	struct stat st;

	if (stat(options->mount_point, &st) == 0 ? S_ISDIR(st.st_mode) : errno != ENOENT)
		return control_discard(options->mount_point);
	pack = paths_new(options->mount_point, &there);
	staging = pack ? paths_staging(pack, options->staging) : NULL;
	if (!staging)
		log_line("%s: %s", pack ? options->staging : options->mount_point,
			 strerror(errno));
	else if (!there && lstat(staging, &st) < 0)
		status = control_discard(options->mount_point);
	else
		status = control_discard_left(pack, staging);
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
