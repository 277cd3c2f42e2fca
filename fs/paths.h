/*
 * paths.h - from the words of the command line to absolute paths, before anything is
 * opened, made or mounted. It changes nothing on disk.
 */
#ifndef BPKFS_PATHS_H
#define BPKFS_PATHS_H

#include <stdbool.h>

#include "staging.h"

/* The pack that @given names, with .bpk when it has no extension and is not there as
 * given. Symlinks resolved, malloc'd; NULL with errno set. */
char *paths_pack(const char *given);

/* The file that is to be made or replaced as @given, likewise; *@ret_there: it is there
 * already. The folder must be. NULL with errno set, EEXIST for a symlink that leads
 * nowhere: what is made there might be meant for a disk that is not mounted. */
char *paths_new(const char *given, bool *ret_there);

/* Where edits of @pack (absolute) are staged: ".NAME.bpkfs" beside it or in @folder
 * (NULL for none; must be there). In @folder, and where it would not fit, the name is
 * cut, with a hash of the path to tell it from others. malloc'd; NULL with errno set. */
char *paths_staging(const char *pack, const char *folder);

/* The command that drops what is staged so, for messages, fit to be copied into a shell.
 * malloc'd; NULL without memory. */
char *paths_discard(const char *pack, const char *folder);

/* May a file be made in the folder of @path? 0 or -errno. */
int paths_can_replace(const char *path);

/* What a new pack is called until it is renamed over @pack: in the staging folder, or
 * beside the pack where that is another file system. malloc'd; NULL without memory. */
char *paths_scratch(const char *pack, const struct staging *staging);

/* @path is @folder or in it, both absolute and without symlinks. */
bool paths_is_below(const char *path, const char *folder);

#endif
