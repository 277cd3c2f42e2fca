/*
 * files.h - the files of a mount, from the words of the command line: the pack that is
 * shown, the one that commits write, and the staging folder. Found and opened; what makes
 * a writer of the mount is writer.h. Says what is wrong.
 *
 * In this order, before anything is served; files_done() behind any of them.
 */
#ifndef BPKFS_FILES_H
#define BPKFS_FILES_H

#include "mount.h"
#include "options.h"
#include "writer.h"

struct files {
	const struct options *options;
	struct mount *mount;  /* whose paths, target and overlay are filled */
	struct writer writer; /* of the same, if it is a writable mount */
};

/* The paths. Nothing is opened or made. */
enum status files_find(struct files *files);
/* The pack and what is there of the target; and what follows of the options and their
 * attributes for the mount. */
enum status files_open(struct files *files);
void files_done(struct files *files);

#endif
