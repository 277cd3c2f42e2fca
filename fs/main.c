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
#include "files.h"
#include "log.h"
#include "mount_point.h"
#include "notify.h"
#include "ops.h"
#include "options.h"
#include "paths.h"
#include "signals.h"
#include "spare.h"
#include "watch.h"
#include "writers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct daemon {
	const struct options *options;
	struct files files;
	struct mount_point point;
	struct background background;
	struct notify notify;
	struct channel channel;
	struct mount mount;
	struct library library; /* in its place, when a directory is mounted */
	bool is_library;
	uint64_t requests; /* when it was last looked at */
	struct session session;
	struct control_pace pace;
};

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

	/* While requests are answered: what it waits for may be one. */
	library_stop(&daemon->library);
	channel_stop(&daemon->channel);
}

static void forget_name(void *context, uint64_t folder, const char *name)
{
	struct daemon *daemon = context;

	channel_forget(&daemon->channel, folder, name);
}

static bool in_use(void *context)
{
	struct daemon *daemon = context;
	struct mount *mount = &daemon->mount;
	bool used;

	if (daemon->is_library)
		return library_in_use(&daemon->library, &daemon->requests);
	pthread_mutex_lock(&mount->lock);
	used = mount->requests != daemon->requests || mount->open_handles;
	daemon->requests = mount->requests;
	pthread_mutex_unlock(&mount->lock);
	return used;
}

/* Pages of files that are open for writing. A number is not used for another file
 * when the handle is closed meanwhile. */
static void save_mappings_of(struct daemon *daemon, struct mount *mount)
{
	uint64_t *ids, count = 0;

	pthread_mutex_lock(&mount->lock);
	ids = reallocarray(NULL, mount->handle_count + 1, sizeof(*ids));
	for (size_t i = 0; ids && i < mount->handle_count; i++)
		if (mount->handles[i] && mount->handles[i]->writer)
			ids[count++] = numbers_tell(&mount->numbers,
						    mount->handles[i]->node->id);
	pthread_mutex_unlock(&mount->lock);
	while (count)
		channel_write_back(&daemon->channel, ids[--count]);
	free(ids);
}

static int save_mappings_in(void *context, struct place *place)
{
	save_mappings_of(context, place->mount);
	return 0;
}

static void save_mappings(void *context)
{
	struct daemon *daemon = context;

	if (daemon->is_library)
		(void)writers_each(&daemon->library, &daemon->library.root,
				   save_mappings_in, daemon);
	else
		save_mappings_of(daemon, &daemon->mount);
}

static int tell_progress(void *context, uint64_t done, uint64_t total)
{
	struct daemon *daemon = context;

	notify_progress(&daemon->notify, done, total);
	control_progress(&daemon->pace, daemon->session.report_to, done, total);
	return 0;
}

static enum status finish_library(struct daemon *daemon)
{
	char message[CONTROL_MESSAGE_SIZE];
	enum status status;

	library_stop(&daemon->library);
	status = writers_commit_at_unmount(&daemon->library, tell_progress, daemon,
					   message, sizeof(message));
	library_done(&daemon->library);
	control_report(daemon->session.report_to, status, message);
	return status;
}

/* After the last request: commit, and tell whoever can hear. */
static enum status finish(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;

	if (daemon->is_library)
		return finish_library(daemon);
	commit_at_unmount(mount, tell_progress, daemon);
	if (mount->message[0])
		log_line("%s", mount->message);
	mount->staging.keep = mount->kept;
	handles_done(mount);
	mount_done(mount);
	staging_close(&mount->staging, !mount->kept);
	control_report(daemon->session.report_to, mount->result, mount->message);
	return mount->result;
}

/* By which the library knows what leads into itself. The kernel does not ask. */
static int start_library(struct daemon *daemon)
{
	struct statx st;

	if (statx(AT_FDCWD, daemon->point.path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0,
		  &st) < 0)
		return -errno;
	library_set_device(&daemon->library, makedev(st.stx_dev_major, st.stx_dev_minor));
	return daemon->options->writable
		       ? library_start(&daemon->library, forget_name, daemon)
		       : 0;
}

static enum status serve_mounted(struct daemon *daemon)
{
	struct watch watch = { .writable = daemon->options->writable,
			       .path = daemon->point.path,
			       .device_fd = channel_device(&daemon->channel),
			       .timeout = daemon->options->timeout,
			       .in_use = in_use,
			       .ready = tell_ready,
			       .save = save_mappings,
			       .stop = stop_serving,
			       .context = daemon };
	int error = daemon->is_library ? start_library(daemon) : 0, served = 0;
	enum status status;
	bool hidden, edited;

	if (!error)
		error = watch_start(&watch);
	if (!error)
		served = channel_serve(&daemon->channel, daemon->options->single_thread);
	edited = daemon->is_library ? library_is_edited(&daemon->library)
				    : daemon->mount.edits > 0;
	/* Who asked for a commit is answered while there is somebody to answer; and the
	 * number of the device must not become that of a file that a commit writes. */
	worker_wait(daemon->is_library ? &daemon->library.workers
				       : &daemon->mount.workers);
	/* What lies over it would go in its place. */
	hidden = !error && watch.signal && watch_is_elsewhere(&watch);
	if (hidden)
		channel_abandon(&daemon->channel);
	else
		channel_unmount(&daemon->channel);
	if (!error)
		watch_end(&watch);
	if (error || served < 0)
		log_line("cannot serve the mount: %s",
			 strerror(error ? -error : -served));
	else if (!watch.is_ready && edited)
		; /* somebody was faster than we are: how the commit went counts */
	else if (!watch.is_ready && watch.signal)
		log_line("ended by SIG%s before the mount was ready",
			 sigabbrev_np(watch.signal));
	else if (!watch.is_ready)
		log_line("%s: unmounted before it was ready", daemon->point.path);
	else if (hidden)
		log_line("%s: ended, but not unmounted: something else lies over it",
			 daemon->point.path);
	notify_stopping(&daemon->notify);
	status = finish(daemon);
	return !error && (watch.is_ready || edited) ? status : STATUS_MOUNT_POINT;
}

/* What comes back of an earlier mount is said, too. */
static enum status become_writer(struct daemon *daemon)
{
	struct writer *writer = &daemon->files.writer;
	size_t count = 0;
	enum status status = writer_take(writer);

	if (!status)
		status = writer_bring_back(writer, &count);
	if (status || count)
		log_line("%s", writer->message);
	return status;
}

static enum status serve(struct daemon *daemon)
{
	struct mount *mount = &daemon->mount;
	enum status status;

	spare_raise_limit();
	status = mount->writable ? become_writer(daemon) : STATUS_OK;
	if (status)
		return status;
	daemon->session.mount = daemon->is_library ? NULL : mount;
	daemon->session.library = daemon->is_library ? &daemon->library : NULL;
	if ((!daemon->is_library && mount_init(mount)) ||
	    channel_open(&daemon->channel, daemon->options,
			 daemon->is_library ? daemon->library.path : mount->pack_path,
			 &daemon->session)) {
		log_line("no memory");
		status = STATUS_MOUNT_POINT;
	} else {
		status = channel_mount(&daemon->channel, &daemon->point);
	}
	if (!status) {
		if (chdir("/") < 0)
			log_line("cannot leave the folder: %s", strerror(errno));
		status = serve_mounted(daemon);
	} else {
		/* What an earlier mount left is there for the next. */
		mount_done(mount);
		if (mount->writable)
			staging_leave(&mount->staging);
	}
	channel_close(&daemon->channel);
	return status;
}

/* A commit, also one that is made while mounted, goes by these paths. */
static enum status check_not_hidden(const struct daemon *daemon)
{
	const struct library *library = &daemon->library;
	const char *point = daemon->point.path,
		   *target =
			   daemon->is_library ? library->path : daemon->mount.target.path,
		   *staging = daemon->is_library ? library->staging
						 : daemon->files.writer.staging_path;

	if (!daemon->options->writable || (!paths_is_below(target, point) &&
					   !(staging && paths_is_below(staging, point))))
		return STATUS_OK;
	log_line("%s: a writable mount there would hide %s from its own commit", point,
		 paths_is_below(target, point) ? target : staging);
	return STATUS_MOUNT_POINT;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Options that make no sense for a directory of packs. ("create" is for what is not
 * there.) */
static enum status check_library(const struct options *options)
{
	if (!options->output)
		return STATUS_OK;
	log_line("option \"output=%s\" is for one pack, and %s is a directory",
		 options->output, options->pack);
	return STATUS_USAGE;
}

static enum status mount_pack(const struct options *options)
{
	struct daemon daemon = {
		.options = options,
		.background = { .ready_fd = -1 },
		.library = { .dir_fd = -1 },
		.mount = { .writer_lock = PTHREAD_MUTEX_INITIALIZER,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .workers = WORKERS_INITIALIZER,
			   .staging = { .dir_fd = -1, .lock_fd = -1 },
			   .target = { .fd = -1 } },
	};
	bool caller = false;
	enum status status;

	daemon.files = (struct files) { .options = options,
					.mount = &daemon.mount,
					.writer = { .mount = &daemon.mount,
						    .given = options->pack,
						    .create = options->create,
						    .output = options->output != NULL } };
	daemon.is_library = !options->create && is_directory(options->pack);
	if (daemon.is_library)
		status = check_library(options);
	else
		status = files_find(&daemon.files);
	if (!options->foreground)
		background_close_inherited();
	notify_init(&daemon.notify, options->foreground);
	if (!status)
		status = daemon.is_library ? library_open(&daemon.library, options)
					   : files_open(&daemon.files);
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
	library_done(&daemon.library);
	mount_done(&daemon.mount);
	files_done(&daemon.files);
	return status;
}

/* Of a mount, or of a pack whose edits an earlier mount left behind; the pack need not
 * be there. */
static enum status discard(const struct options *options)
{
	char *pack = NULL, *staging = NULL;
	enum status status;
	bool there = true;
	struct stat st;

	if (stat(options->mount_point, &st) == 0 ? S_ISDIR(st.st_mode) : errno != ENOENT)
		return control_discard(options->mount_point);
	pack = paths_new(options->mount_point, &there);
	staging = pack ? paths_staging(pack, options->staging) : NULL;
	status = pack && options->staging ? STATUS_CANNOT_STAGE : STATUS_CANNOT_OPEN;
	if (!staging)
		log_line("%s: %s",
			 status == STATUS_CANNOT_STAGE ? options->staging
						       : options->mount_point,
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
	/* A limit of the caller's is an error of write(2), not the end of all edits. */
	signal(SIGXFSZ, SIG_IGN);
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
