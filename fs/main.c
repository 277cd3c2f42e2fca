/*
 * main.c - the life of one mount: open, go to the background, serve, commit, tell.
 *
 * The parent resolves every path, then forks; the child opens the pack and mounts,
 * with its messages still on the caller's stderr, and lets the parent go when the
 * first request of the kernel was answered. So whatever fails before is one line,
 * an exit status, and nothing mounted.
 */
#include "background.h"
#include "channel.h"
#include "commit.h"
#include "control.h"
#include "log.h"
#include "mount_point.h"
#include "ops.h"
#include "options.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
};

/* The pack ----------------------------------------------------------------- */

static enum status open_pack(const struct daemon *daemon, struct mount *mount)
{
	struct bpk_error error = { .message = "" };
	mode_t readable;

	if (bpk_reader_open(daemon->pack_path, NULL, &mount->reader, &error)) {
		if (error.offset == BPK_NO_OFFSET)
			log_line("%s: %s", daemon->options->pack, error.message);
		else
			log_line("%s: at byte %" PRIu64 ": %s", daemon->options->pack,
				 error.offset, error.message);
		return status_of_error(&error);
	}
	if (fstat(bpk_reader_fd(mount->reader), &mount->pack) < 0) {
		log_line("%s: %s", daemon->options->pack, strerror(errno));
		return STATUS_CANNOT_OPEN;
	}
	mount->pack_path = daemon->pack_path;
	mount->writable = daemon->options->writable;
	mount->dots = daemon->options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	mount->uid = daemon->options->has_uid ? daemon->options->uid : mount->pack.st_uid;
	mount->gid = daemon->options->has_gid ? daemon->options->gid : mount->pack.st_gid;
	readable = mount->pack.st_mode & 0444;
	mount->file_mode =
		(readable | (mount->writable ? (mount->pack.st_mode & 0222) | 0200 : 0)) &
		~daemon->options->file_mask;
	mount->folder_mode =
		(readable | readable >> 2 |
		 (mount->writable ? (mount->pack.st_mode & 0222) | 0200 : 0)) &
		~daemon->options->folder_mask;
	return STATUS_OK;
}

static enum status open_staging(const struct daemon *daemon, struct mount *mount)
{
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
	if (faccessat(mount->staging.dir_fd, STAGING_KEPT, F_OK, 0) == 0) {
		log_line("%s: edits of a commit that failed are kept in %s (see "
			 "kept-edits "
			 "there): move the folder away first",
			 daemon->options->pack, daemon->staging_path);
		staging_close(&mount->staging, false);
		return STATUS_CANNOT_STAGE;
	}
	return STATUS_OK;
}

/* Serving ------------------------------------------------------------------ */

static void tell_parent(void *context)
{
	struct daemon *daemon = context;

	background_ready(&daemon->background);
}

/* After the last request: commit, and tell whoever can hear. */
static enum status finish(struct mount *mount, struct session *session)
{
	bool failed;

	commit_at_unmount(mount, NULL, NULL);
	failed = mount->result == STATUS_COMMIT_FAILED ||
		 mount->result == STATUS_PACK_CHANGED;
	if (mount->message[0])
		log_line("%s", mount->message);
	mount->staging.keep = failed;
	for (size_t i = 0; i < mount->handle_count; i++)
		handle_free(mount, i);
	free(mount->handles);
	mount_drop_rendered(mount);
	nodes_done(&mount->nodes, &mount->overlay);
	overlay_done(&mount->overlay);
	bpk_reader_close(mount->reader);
	staging_close(&mount->staging, !failed);
	control_report(session->report_to, mount->result, mount->message);
	return mount->result;
}

/* libfuse leaves a signal alone that the caller ignores, as shells have it for
 * what runs in the background. Of these only nohup's means to keep us going. */
static void heed_signals(const struct options *options)
{
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	if (!options->foreground)
		signal(SIGHUP, SIG_DFL);
}

static enum status serve(struct daemon *daemon)
{
	struct mount mount = { .lock = PTHREAD_MUTEX_INITIALIZER,
			       .staging = { .dir_fd = -1, .lock_fd = -1 } };
	struct session session = { .mount = &mount,
				   .ready = tell_parent,
				   .context = daemon };
	struct channel channel = { .fuse = NULL };
	enum status status = open_pack(daemon, &mount);
	bool mounted = false;

	if (status)
		return status;
	if (mount.writable)
		status = open_staging(daemon, &mount);
	if (status)
		goto out;
	overlay_init(&mount.overlay, mount.reader, mount.writable);
	status = STATUS_MOUNT_POINT;
	if (nodes_init(&mount.nodes) ||
	    channel_open(&channel, daemon->options, daemon->pack_path, &session)) {
		log_line("no memory");
		goto out;
	}
	heed_signals(daemon->options);
	if (channel_mount(&channel, daemon->point.path) < 0)
		goto out;
	mounted = true;
	if (chdir("/") < 0)
		log_line("cannot leave the folder: %s", strerror(errno));
	channel_serve(&channel, daemon->options->single_thread);
	channel_unmount(&channel);
	/* Signals are still caught, so that a second one does not end the commit. */
	status = finish(&mount, &session);
out:
	channel_close(&channel);
	if (!mounted) {
		if (mount.nodes.buckets)
			nodes_done(&mount.nodes, &mount.overlay);
		overlay_done(&mount.overlay);
		bpk_reader_close(mount.reader);
		staging_close(&mount.staging, true);
	}
	return status;
}

static enum status mount_pack(const struct options *options)
{
	struct daemon daemon = { .options = options, .background = { .ready_fd = -1 } };
	bool caller = false;
	enum status status = STATUS_CANNOT_OPEN;

	daemon.pack_path = paths_pack(options->pack);
	if (!daemon.pack_path) {
		log_line("%s: %s", options->pack, strerror(errno));
		return status;
	}
	daemon.staging_path = paths_staging(daemon.pack_path, options->staging);
	if (!daemon.staging_path) {
		log_line("%s: %s", options->pack, strerror(errno));
		goto out;
	}
	status = mount_point_find(&daemon.point, options->mount_point);
	if (!status && !options->foreground)
		status = background_start(&daemon.background, &caller);
	if (!status && !caller)
		status = serve(&daemon);
	if (caller && !status)
		mount_point_leave(&daemon.point);
	else
		mount_point_done(&daemon.point);
out:
	free(daemon.staging_path);
	free(daemon.pack_path);
	return status;
}

static void print_version(void)
{
	printf("bpkfs %s\nlibfuse %s\n", bpk_version(), fuse_pkgversion());
	fuse_lowlevel_version();
}

int main(int argc, char **argv)
{
	struct options options;
	enum status status = options_parse(&options, argc, argv);

	if (!status) {
		switch (options.command) {
		case COMMAND_UNMOUNT:
			status = control_unmount(options.mount_point);
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
