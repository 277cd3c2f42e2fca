/*
 * files.h - the files of a mount, from the words of the command line: the pack that is
 * shown, the one that commits write, and the staging folder. Found, opened, locked, and
 * what an earlier mount left of edits brought back. Says what is wrong.
 *
 * In this order, before anything is served; files_done() behind any of them.
 */
#ifndef BPKFS_FILES_H
#define BPKFS_FILES_H

#include "mount.h"
#include "options.h"

struct files {
	const struct options *options;
	struct mount *mount; /* whose paths, target, overlay and staging are filled */
	char *staging_path;  /* of a writable mount */
	char *discard;	     /* the command that drops what is left in it */
};

/* The paths. Nothing is opened or made. */
enum status files_find(struct files *files);
/* The pack and what is there of the target; and what follows of the options and their
 * attributes for the mount. */
enum status files_open(struct files *files);
/* The staging folder, with the locks of a writer. In the process that serves. */
enum status files_stage(struct files *files);
/* What an earlier mount left there comes back, or may go. The folder is closed if it
 * fails. */
enum status files_bring_back(struct files *files);
void files_done(struct files *files);

#endif
