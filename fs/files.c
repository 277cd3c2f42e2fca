/*
 * files.c - see files.h.
 */
#include "files.h"
#include "log.h"
#include "paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where they are ------------------------------------------------------------- */

/* The path of what commits write: @given is the pack, or the file of -o output. */
static enum status find_target(struct files *files, const char *given)
{
	struct target *target = &files->mount->target;

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
		log_line("%s: %s; edits that were not committed are in %s: mount as they "
			 "were made, with \"-o create\" or \"-o output\", to have them",
			 options->pack, strerror(error), staging);
	else
		log_line("%s: %s", options->pack, strerror(error));
	free(staging);
	free(path);
	return STATUS_CANNOT_OPEN;
}

enum status files_find(struct files *files)
{
	const struct options *options = files->options;
	struct target *target = &files->mount->target;
	enum status status = STATUS_OK;

	if (options->create || options->output)
		status = find_target(files,
				     options->create ? options->pack : options->output);
	if (!status && options->create && target->there) {
		log_line("%s: is there already; mount it without \"-o create\"",
			 options->pack);
		status = STATUS_CANNOT_OPEN;
	}
	if (status)
		return status;
	files->mount->pack_path =
		options->create ? strdup(target->path) : paths_pack(options->pack);
	if (!files->mount->pack_path)
		return tell_missing(options);
	if (!target->path)
		target->path = strdup(files->mount->pack_path);
	if (target->path && !options->writable)
		return STATUS_OK;
	if (target->path && writer_find(&files->writer, options->staging) == 0)
		return STATUS_OK;
	log_line("%s: %s", options->staging ? options->staging : options->pack,
		 strerror(errno));
	return options->staging ? STATUS_CANNOT_STAGE : STATUS_CANNOT_OPEN;
}

/* What is mounted, and what is replaced -------------------------------------- */

static enum status open_pack(struct files *files)
{
	struct bpk_error error = { .message = "" };
	struct pack *pack;
	int result;

	if (files->options->create) {
		result = pack_empty(&pack);
		if (result) {
			log_line("%s: cannot make an empty pack: %s",
				 files->options->pack, strerror(-result));
			return STATUS_CANNOT_OPEN;
		}
	} else if (pack_open(files->mount->pack_path, &pack, &error)) {
		if (error.offset == BPK_NO_OFFSET)
			log_line("%s: %s", files->options->pack, error.message);
		else
			log_line("%s: at byte %" PRIu64 ": %s", files->options->pack,
				 error.offset, error.message);
		return status_of_error(&error);
	}
	overlay_init(&files->mount->overlay, pack, files->options->writable);
	pack_unref(pack);
	return STATUS_OK;
}

/* The file that commits make or replace, and what is there now. */
static enum status open_target(struct files *files)
{
	struct mount *mount = files->mount;
	const struct options *options = files->options;
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

/* Owner and permissions of what is in the mount: those of what a commit makes. */
static void set_attributes(struct files *files)
{
	const struct options *options = files->options;
	struct mount *mount = files->mount;
	struct stat st = mount->overlay.pack->stat;
	struct shown_attributes shown;

	if (options->output && mount->target.there) {
		st = mount->target.stat;
	} else if (options->output) {
		st.st_mode = writer_new_mode(mount->overlay.pack);
		st.st_uid = geteuid();
		st.st_gid = getegid();
	}
	options_attributes(options, &st, mount->writable ? (st.st_mode & 0222) | 0200 : 0,
			   &shown);
	mount->uid = shown.uid;
	mount->gid = shown.gid;
	mount->file_mode = shown.file_mode;
	mount->folder_mode = shown.folder_mode;
}

enum status files_open(struct files *files)
{
	struct mount *mount = files->mount;
	enum status status = open_pack(files);

	mount->writable = files->options->writable;
	mount->dots = files->options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	if (!status)
		status = open_target(files);
	if (!status)
		set_attributes(files);
	return status;
}

void files_done(struct files *files)
{
	target_done(&files->mount->target);
	free(files->mount->scratch_path);
	free(files->mount->pack_path);
	files->mount->scratch_path = files->mount->pack_path = NULL;
	writer_done(&files->writer);
}
