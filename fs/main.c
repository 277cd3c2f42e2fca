/*
 * main.c - the life of one mount: open, go to the background, serve, commit, tell.
 *
 * The parent resolves every path, then forks; the child opens the pack and mounts,
 * with its messages still on the caller's stderr, and lets the parent go when the
 * first request of the kernel was answered. So whatever fails before is one line,
 * an exit status, and nothing mounted.
 */
#include "commit.h"
#include "control.h"
#include "log.h"
#include "ops.h"
#include "options.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct daemon {
	const struct options *options;
	char *pack_path;
	char *staging_path;
	char *mount_path;
	bool made_mount_point;
	int ready_fd; /* the parent waits at its other end; -1 in the foreground */
};

/* Paths -------------------------------------------------------------------- */

/* PACK as given, else with .bpk when it has no extension. */
static char *find_pack(const char *given)
{
	const char *base = strrchr(given, '/');
	char *path = realpath(given, NULL), *with;

	base = base ? base + 1 : given;
	if (path || errno != ENOENT || strchr(base, '.'))
		return path;
	if (asprintf(&with, "%s.bpk", given) < 0)
		return NULL;
	path = realpath(with, NULL);
	free(with);
	if (!path)
		errno = ENOENT;
	return path;
}

/* ".NAME.bpkfs" beside the pack or in @folder; a name that would not fit is cut,
 * with the pack's inode to tell it from others. */
static char *staging_path(const char *pack, const char *folder)
{
	char *copy = strdup(pack), *other = strdup(pack), *path = NULL;
	struct stat st;

	if (copy && other && stat(pack, &st) == 0) {
		const char *name = basename(other),
			   *where = folder ? folder : dirname(copy);
		int result;

		if (strlen(name) <= 200 && !folder)
			result = asprintf(&path, "%s/.%s.bpkfs", where, name);
		else
			result = asprintf(&path, "%s/.%.200s.%ju.bpkfs", where, name,
					  (uintmax_t)st.st_ino);
		if (result < 0)
			path = NULL;
	}
	free(copy);
	free(other);
	return path;
}

static enum status find_mount_point(struct daemon *daemon)
{
	const char *given = daemon->options->mount_point;
	struct stat st;

	if (stat(given, &st) < 0 && errno == ENOENT) {
		if (mkdir(given, 0755) < 0) {
			log_line("%s: cannot make the mount point: %s", given,
				 strerror(errno));
			return STATUS_MOUNT_POINT;
		}
		daemon->made_mount_point = true;
	} else if (stat(given, &st) < 0) {
		log_line("%s: %s%s", given, strerror(errno),
			 errno == ENOTCONN ? " (a mount whose daemon is gone: "
					     "fusermount3 -u clears it)"
					   : "");
		return STATUS_MOUNT_POINT;
	} else if (!S_ISDIR(st.st_mode)) {
		log_line("%s: not a folder", given);
		return STATUS_MOUNT_POINT;
	}
	daemon->mount_path = realpath(given, NULL);
	if (daemon->mount_path)
		return STATUS_OK;
	log_line("%s: %s", given, strerror(errno));
	return STATUS_MOUNT_POINT;
}

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
	int null;

	if (daemon->ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(null);
	}
	log_to_syslog();
	(void)!write(daemon->ready_fd, "", 1);
	close(daemon->ready_fd);
	daemon->ready_fd = -1;
}

/* libfuse takes commas and backslashes in a value when they are escaped. */
static char *escaped(const char *text)
{
	char *copy = malloc(strlen(text) * 2 + 1), *to = copy;

	if (!copy)
		return NULL;
	for (; *text; text++) {
		if (*text == ',' || *text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	*to = '\0';
	return copy;
}

static int session_arguments(const struct daemon *daemon, struct fuse_args *args)
{
	const struct options *options = daemon->options;
	char *name = escaped(options->fsname ? options->fsname : daemon->pack_path),
	     *words;
	int error = -ENOMEM;

	if (name &&
	    asprintf(&words, "subtype=bpkfs,default_permissions,%s%s%s%s%s,fsname=%s",
		     options->writable ? "rw" : "ro",
		     options->allow_other ? ",allow_other" : "",
		     options->allow_root ? ",allow_root" : "", options->kernel ? "," : "",
		     options->kernel ? options->kernel : "", name) >= 0) {
		error = fuse_opt_add_arg(args, "bpkfs") || fuse_opt_add_arg(args, "-o") ||
					fuse_opt_add_arg(args, words) ||
					(options->debug && fuse_opt_add_arg(args, "-d"))
				? -ENOMEM
				: 0;
		free(words);
	}
	free(name);
	return error;
}

static int loop(struct fuse_session *fuse, bool single_thread)
{
	struct fuse_loop_config *config;
	int result;

	if (single_thread)
		return fuse_session_loop(fuse);
	config = fuse_loop_cfg_create();
	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, 0);
	result = fuse_session_loop_mt(fuse, config);
	fuse_loop_cfg_destroy(config);
	return result;
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
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse_session *fuse = NULL;
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
	if (nodes_init(&mount.nodes) || session_arguments(daemon, &args)) {
		log_line("no memory");
		goto out;
	}
	heed_signals(daemon->options);
	fuse = fuse_session_new(&args, &bpkfs_ops, sizeof(bpkfs_ops), &session);
	if (!fuse || fuse_set_signal_handlers(fuse) < 0)
		goto out;
	if (fuse_session_mount(fuse, daemon->mount_path) < 0) {
		fuse_remove_signal_handlers(fuse);
		goto out;
	}
	mounted = true;
	if (chdir("/") < 0)
		log_line("cannot leave the folder: %s", strerror(errno));
	loop(fuse, daemon->options->single_thread);
	fuse_session_unmount(fuse);
	/* The handlers stay, so that a second signal does not end the commit. */
	status = finish(&mount, &session);
	fuse_remove_signal_handlers(fuse);
out:
	if (fuse)
		fuse_session_destroy(fuse);
	fuse_opt_free_args(&args);
	if (!mounted) {
		if (mount.nodes.buckets)
			nodes_done(&mount.nodes, &mount.overlay);
		overlay_done(&mount.overlay);
		bpk_reader_close(mount.reader);
		staging_close(&mount.staging, true);
	}
	return status;
}

/* The caller's side of going to the background. */
static enum status await_child(int fd, pid_t child)
{
	char byte;
	ssize_t got;
	int status;

	do
		got = read(fd, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return STATUS_OK;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return STATUS_MOUNT_POINT;
	return WIFEXITED(status) && WEXITSTATUS(status) ? (enum status)WEXITSTATUS(status)
							: STATUS_MOUNT_POINT;
}

static enum status go_to_background(struct daemon *daemon, bool *ret_parent)
{
	int fds[2];
	pid_t child;

	*ret_parent = false;
	if (pipe2(fds, O_CLOEXEC) < 0 || (child = fork()) < 0) {
		log_line("cannot go to the background: %s", strerror(errno));
		*ret_parent = true;
		return STATUS_MOUNT_POINT;
	}
	if (child) {
		enum status status;

		close(fds[1]);
		status = await_child(fds[0], child);
		close(fds[0]);
		*ret_parent = true;
		return status;
	}
	close(fds[0]);
	daemon->ready_fd = fds[1];
	setsid();
	return STATUS_OK;
}

static enum status mount_pack(const struct options *options)
{
	struct daemon daemon = { .options = options, .ready_fd = -1 };
	bool parent = false;
	enum status status = STATUS_CANNOT_OPEN;

	daemon.pack_path = find_pack(options->pack);
	if (!daemon.pack_path) {
		log_line("%s: %s", options->pack, strerror(errno));
		return status;
	}
	daemon.staging_path = staging_path(daemon.pack_path, options->staging);
	if (!daemon.staging_path) {
		log_line("%s: %s", options->pack, strerror(errno));
		goto out;
	}
	/* Say what is wrong with the pack before making a mount point for it. */
	status = find_mount_point(&daemon);
	if (!status && !options->foreground)
		status = go_to_background(&daemon, &parent);
	if (!status && !parent)
		status = serve(&daemon);
	if (daemon.made_mount_point && (!parent || status))
		rmdir(daemon.mount_path);
out:
	free(daemon.mount_path);
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
