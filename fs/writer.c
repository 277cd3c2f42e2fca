/*
 * writer.c - see writer.h.
 */
#include "writer.h"
#include "journal.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

mode_t writer_new_mode(const struct pack *pack)
{
	return new_file_mode(pack->stat.st_mode & 0666) | 0600;
}

int writer_find(struct writer *writer, const char *folder)
{
	const char *target = writer->mount->target.path;

	writer->staging_path = paths_staging(target, folder);
	if (writer->staging_path)
		writer->discard = paths_discard(target, folder);
	return writer->discard ? 0 : -1;
}

void writer_done(struct writer *writer)
{
	free(writer->discard);
	free(writer->staging_path);
	writer->discard = writer->staging_path = NULL;
}

/* Say what is wrong, and what an edit is answered. */
__attribute__((format(printf, 4, 5))) static enum status
fail(struct writer *writer, enum status status, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(writer->message, sizeof(writer->message), format, args);
	va_end(args);
	writer->error = error;
	return status;
}

/* The folder and the locks ----------------------------------------------------- */

static enum status in_use(struct writer *writer, pid_t owner)
{
	const char *path = writer->mount->target.path;

	if (owner == getpid())
		return fail(writer, STATUS_IN_USE, -EBUSY,
			    "%s: edited in this mount under another name", path);
	if (owner)
		return fail(writer, STATUS_IN_USE, -EBUSY,
			    "%s: already mounted writable by process %ld", path,
			    (long)owner);
	return fail(writer, STATUS_IN_USE, -EBUSY,
		    "%s: already mounted writable, or locked, by another process", path);
}

/* Behind staging_open(), which the caller undoes. */
static enum status take_target(struct writer *writer)
{
	struct mount *mount = writer->mount;
	pid_t owner = 0;
	/* The edits can lie elsewhere, the new pack cannot. */
	int error = paths_can_replace(mount->target.path);

	if (error)
		return fail(writer, STATUS_CANNOT_STAGE, error,
			    "%s: a commit can make nothing beside it: %s",
			    mount->target.path, strerror(-error));
	if (target_lock(&mount->target, mount->overlay.pack, &owner))
		return in_use(writer, owner);
	if (!target_unchanged(&mount->target))
		return fail(writer, STATUS_CANNOT_OPEN, -ESTALE,
			    "%s: was replaced while it was opened; try again",
			    mount->target.path);
	/* Bytes of a pack that others may not read are not to be readable in a new
	 * file, not even while it is written. */
	if (writer->output && !mount->target.there)
		umask(0777 & ~writer_new_mode(mount->overlay.pack));
	mount->scratch_path = paths_scratch(mount->target.path, &mount->staging);
	return mount->scratch_path
		       ? STATUS_OK
		       : fail(writer, STATUS_CANNOT_STAGE, -ENOMEM, "no memory");
}

/* As it was before it was taken, but for the folder. */
static void let_go(struct writer *writer)
{
	struct mount *mount = writer->mount;

	target_unlock(&mount->target, mount->overlay.pack);
	free(mount->scratch_path);
	mount->scratch_path = NULL;
}

enum status writer_take(struct writer *writer)
{
	struct staging *staging = &writer->mount->staging;
	enum status status;
	pid_t owner = 0;
	int error = staging_open(staging, writer->staging_path, &owner);

	if (error == -EBUSY)
		return in_use(writer, owner);
	if (error)
		return fail(writer, STATUS_CANNOT_STAGE, error,
			    "%s: cannot stage edits in %s: %s", writer->given,
			    writer->staging_path, strerror(-error));
	status = take_target(writer);
	if (status) {
		staging_leave(staging);
		let_go(writer);
	}
	return status;
}

void writer_leave(struct writer *writer)
{
	staging_close(&writer->mount->staging, true);
	let_go(writer);
	writer->mount->is_writer = false;
}

/* What is left of an earlier mount --------------------------------------------- */

bool writer_has_folder(const struct writer *writer)
{
	return faccessat(AT_FDCWD, writer->staging_path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

bool writer_has_left(const struct writer *writer)
{
	return journal_is_left(writer->staging_path);
}

/* Edits that cannot be brought back, and what can be done. */
static enum status tell_left(struct writer *writer, int error, enum journal_state state)
{
	const struct mount *mount = writer->mount;
	const char *why, *then = "";

	if (error) {
		why = " and cannot be read: ";
	} else if (state == JOURNAL_NONE) {
		why = ", where " STAGING_KEPT " lists them, but cannot be brought back";
	} else if (state == JOURNAL_UNBORN) {
		why = ", and they are of a new pack, not of this one";
		then = mount->target.there
			       ? "move this one away and mount with \"-o create\" to "
				 "have them, or "
			       : "mount with \"-o create\" to have them, or ";
	} else if (writer->create) {
		why = ", and they are of a pack that was there";
	} else if (writer->output) {
		why = ", and they are of another pack than this one is now";
		then = "mount that one to have them, or ";
	} else {
		why = ", but the pack is another one now";
		then = "put the one that they are of back in its place to have them, or ";
	}
	return fail(writer, STATUS_CANNOT_STAGE, error ? error : -EBUSY,
		    "%s: edits that were not committed are in %s%s%s; %s\"%s\" drops "
		    "them",
		    mount->target.path, writer->staging_path, why,
		    error ? strerror(-error) : "", then, writer->discard);
}

enum status writer_bring_back(struct writer *writer, size_t *ret_count)
{
	struct mount *mount = writer->mount;
	enum journal_state state;
	size_t count = 0;
	int error = journal_look(mount, &state);
	bool listed = faccessat(mount->staging.dir_fd, STAGING_KEPT, F_OK, 0) == 0;

	if (!error && state == JOURNAL_EDITS)
		error = journal_replay(mount, &count);
	if (error || state == JOURNAL_FOREIGN || state == JOURNAL_UNBORN ||
	    (state == JOURNAL_NONE && listed)) {
		overlay_clear(&mount->overlay);
		staging_close(&mount->staging, false);
		let_go(writer);
		return tell_left(writer, error, state);
	}
	unlink(mount->scratch_path);
	if (state == JOURNAL_NONE)
		staging_clear(&mount->staging);
	unlinkat(mount->staging.dir_fd, STAGING_KEPT, 0);
	mount->is_writer = true;
	*ret_count = count;
	snprintf(writer->message, sizeof(writer->message),
		 "%s: %zu edit%s that %s not committed %s back; see .bpkfs/changes",
		 writer->given, count, count == 1 ? "" : "s", count == 1 ? "was" : "were",
		 count == 1 ? "is" : "are");
	return STATUS_OK;
}
