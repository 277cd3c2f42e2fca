/*
 * channel.c - see channel.h.
 */
#include "channel.h"
#include "ops.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

	if (!error) {
		channel->fuse =
			fuse_session_new(&args, &bpkfs_ops, sizeof(bpkfs_ops), session);
		error = channel->fuse ? 0 : -ENOMEM;
	}
	fuse_opt_free_args(&args);
	return error;
}

int channel_mount(struct channel *channel, const char *path)
{
	if (fuse_set_signal_handlers(channel->fuse) < 0)
		return -1;
	return fuse_session_mount(channel->fuse, path);
}

int channel_serve(struct channel *channel, bool single_thread)
{
	struct fuse_loop_config *config;
	int result;

	if (single_thread)
		return fuse_session_loop(channel->fuse);
	config = fuse_loop_cfg_create();
	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_clone_fd(config, 0);
	result = fuse_session_loop_mt(channel->fuse, config);
	fuse_loop_cfg_destroy(config);
	return result;
}

void channel_unmount(struct channel *channel)
{
	fuse_session_unmount(channel->fuse);
}

void channel_close(struct channel *channel)
{
	if (!channel->fuse)
		return;
	fuse_remove_signal_handlers(channel->fuse);
	fuse_session_destroy(channel->fuse);
	channel->fuse = NULL;
}
