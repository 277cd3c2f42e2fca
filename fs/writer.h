/*
 * writer.h - what makes a mount the one writer of its pack: the staging folder, the
 * locks, and what an earlier mount left there of edits, which comes back. A mount of one
 * pack takes it before it serves, a pack in a directory with its first edit.
 *
 * It says what is wrong in a text, for whoever has to be told.
 */
#ifndef BPKFS_WRITER_H
#define BPKFS_WRITER_H

#include "mount.h"
#include "status.h"

struct writer {
	struct mount *mount; /* whose target and overlay are there */
	const char *given;   /* what messages call the pack; borrowed */
	bool create, output; /* the options of that name */
	char *staging_path;
	char *discard; /* the command that drops what is left in it */

	/* What went wrong, or what came back. */
	int error; /* as an edit is answered: -errno */
	char message[2048];
};

/* The paths, from that of the target; @folder is that of -o staging or NULL. 0, or -1
 * with errno. writer_done() takes what is half made. */
int writer_find(struct writer *writer, const char *folder);
/* Is there a staging folder of an earlier mount, or of another one that goes on; and may
 * it have edits? */
bool writer_has_folder(const struct writer *writer);
bool writer_has_left(const struct writer *writer);
/* The staging folder, with the locks of a writer. In the process that serves; locked,
 * where it serves already. */
enum status writer_take(struct writer *writer);
/* What an earlier mount left there comes back, or may go; *@ret_count edits came back,
 * which message tells. The folder is closed if it fails. Likewise. */
enum status writer_bring_back(struct writer *writer, size_t *ret_count);
/* Nothing came back and nothing was edited: it is no writer, and the folder goes. */
void writer_leave(struct writer *writer);
void writer_done(struct writer *writer); /* twice, too */

/* The mode of a new file for the edits of @pack: the pack's, less the umask, as cp(1) has
 * it, but the owner can go on with it. */
mode_t writer_new_mode(const struct pack *pack);

#endif
