/*
 * channel.c - see channel.h.
 */
#include "channel.h"
#include "log.h"
#include "ops.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

static int make_arguments(const struct options *options, const char *source,
			  struct fuse_args *args)
{
	char *name = escaped(options->fsname ? options->fsname : source), *words;
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

int channel_open(struct channel *channel, const struct options *options,
		 const char *source, struct session *session)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int error = make_arguments(options, source, &args);

	channel->server = pthread_self();
	if (!error) {
		channel->fuse = fuse_session_new(
			&args, session->library ? &library_ops : &bpkfs_ops,
			sizeof(bpkfs_ops), session);
		session->fuse = channel->fuse;
		error = channel->fuse ? 0 : -ENOMEM;
	}
	fuse_opt_free_args(&args);
	return error;
}

/* libfuse's words as ours, but for -d's, which are not meant to be lines of a log. */
__attribute__((format(printf, 2, 0))) static void
pass_on_log(enum fuse_log_level level, const char *format, va_list args)
{
	char line[1024];

	if (level == FUSE_LOG_DEBUG) {
		vfprintf(stderr, format, args);
		return;
	}
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	log_line("%s", line);
}

/* Whoever may not open the device gets no further, and libfuse does not say what to
 * do about it. */
static enum status check_device(void)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	const char *what;

	if (fd >= 0) {
		close(fd);
		return STATUS_OK;
	}
	switch (errno) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		what = "load the kernel's module with \"modprobe fuse\", or give the "
		       "container the device";
		break;
	case EACCES:
		what = "who mounts must be able to read and write it (\"chmod 666 "
		       "/dev/fuse\" as root, which is how most systems have it)";
		break;
	case EPERM:
		what = "this container is not allowed to use the device";
		break;
	default:
		what = "that is nothing bpkfs can help";
		break;
	}
	log_line("cannot open /dev/fuse: %s; %s", strerror(errno), what);
	return STATUS_MOUNT_POINT;
}

/* fuse_session_mount() with what it, or fusermount3, prints in @text: lines are
 * joined, and libfuse's own name for itself is left out. */
static int mount_quietly(struct fuse_session *fuse, const char *path, char *text,
			 size_t size)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0),
	    kept = memfd_create("bpkfs-stderr", MFD_CLOEXEC), result;
	char *at = text, *line, *rest;
	char printed[2048];
	ssize_t got = 0;

	if (saved >= 0 && kept >= 0)
		dup2(kept, STDERR_FILENO);
	result = fuse_session_mount(fuse, path);
	if (saved >= 0 && kept >= 0) {
		dup2(saved, STDERR_FILENO);
		got = pread(kept, printed, sizeof(printed) - 1, 0);
	}
	if (saved >= 0)
		close(saved);
	if (kept >= 0)
		close(kept);
	printed[got > 0 ? got : 0] = '\0';
	*text = '\0';
	for (line = strtok_r(printed, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (strncmp(line, "fuse: ", 6) == 0)
			line += 6;
		at += snprintf(at, size - (size_t)(at - text), "%s%s",
			       at == text ? "" : "; ", line);
		if (at >= text + size)
			break;
	}
	return result;
}

enum status channel_mount(struct channel *channel, struct mount_point *point)
{
	const char *path = point->path;
	enum status status = check_device();
	const char *hint = "";
	char text[1024];

	if (status)
		return status;
	/* A daemon that ends may just have removed the folder, which it had made. */
	if (mount_quietly(channel->fuse, path, text, sizeof(text)) == 0 ||
	    (mount_point_again(point) &&
	     mount_quietly(channel->fuse, path, text, sizeof(text)) == 0)) {
		if (text[0])
			log_line("%s: %s", path, text);
		fuse_set_log_func(pass_on_log);
		return STATUS_OK;
	}
	if (strstr(text, "failed to exec fusermount3"))
		hint = " (who is not root needs it to mount: install the package fuse3)";
	log_line("%s: cannot mount: %s%s", path, text[0] ? text : "libfuse says no more",
		 hint);
	return STATUS_MOUNT_POINT;
}

/* A signal for channel_stop() alone: to others it means nothing, as by default. */
#define WAKE_SIGNAL SIGURG

static void wake(int number)
{
	(void)number;
}

static void heed_wake(int how)
{
	const struct sigaction action = { .sa_handler = wake };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, WAKE_SIGNAL);
	sigaction(WAKE_SIGNAL, &action, NULL);
	pthread_sigmask(how, &set, NULL);
}

void channel_stop(struct channel *channel)
{
	fuse_session_exit(channel->fuse);
	pthread_kill(channel->server, WAKE_SIGNAL);
}

int channel_device(const struct channel *channel)
{
	return fuse_session_fd(channel->fuse);
}

void channel_write_back(struct channel *channel, uint64_t id)
{
	/* syncfs(2) does not wait for FUSE's pages. Dropping them does: dirty ones are
	 * written first. An inode without any gives ENOENT. */
	(void)fuse_lowlevel_notify_inval_inode(channel->fuse, id, 0, 0);
}

void channel_forget(struct channel *channel, uint64_t folder, const char *name)
{
	/* Whoever has something in it open or is in it does not forget it. */
	(void)fuse_lowlevel_notify_inval_entry(channel->fuse, folder, name, strlen(name));
}

static int serve_by_many(struct fuse_session *fuse)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int result;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, 0);
	result = fuse_session_loop_mt(fuse, config);
	fuse_loop_cfg_destroy(config);
	return result;
}

int channel_serve(struct channel *channel, bool single_thread)
{
	int result;

	heed_wake(SIG_UNBLOCK);
	result = single_thread ? fuse_session_loop(channel->fuse)
			       : serve_by_many(channel->fuse);
	/* What follows must not be interrupted by one that comes late. */
	heed_wake(SIG_BLOCK);
	return result;
}

void channel_unmount(struct channel *channel)
{
	fuse_session_unmount(channel->fuse);
}

void channel_abandon(struct channel *channel)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	/* libfuse leaves the mount alone when its device is in error, as a pipe is that
	 * nobody reads. */
	close(fds[0]);
	dup2(fds[1], fuse_session_fd(channel->fuse));
	close(fds[1]);
	fuse_session_unmount(channel->fuse);
}

void channel_close(struct channel *channel)
{
	if (!channel->fuse)
		return;
	fuse_session_destroy(channel->fuse);
	channel->fuse = NULL;
}
