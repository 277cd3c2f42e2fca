/*
 * describe.h - a mount told in text: .bpkfs/status (JSON), .bpkfs/changes (one edit
 * a line) and the extended attributes. Call with the mount's lock.
 */
#ifndef BPKFS_DESCRIBE_H
#define BPKFS_DESCRIBE_H

#include "mount.h"

/* malloc'd text, NULL without memory. */
char *describe_status(const struct mount *mount, size_t *ret_size);
/* @where is in front of each path: "", or the pack's folder in a directory, with a slash
 * behind it. */
char *describe_changes(const struct mount *mount, const char *where, size_t *ret_size);
/* How many lines that are. */
size_t describe_change_count(const struct mount *mount);

/* The value of an extended attribute, malloc'd. 0, -ENODATA or -ENOMEM. */
int describe_xattr(const struct mount *mount, const struct entry *entry, const char *name,
		   char **ret_value, size_t *ret_size);
/* The names that describe_xattr() has for @entry, NUL-separated; malloc'd. */
int describe_xattr_names(const struct mount *mount, const struct entry *entry,
			 char **ret_names, size_t *ret_size);
/* Why something is not as one would have it. */
#define DESCRIBE_ERROR_ATTRIBUTE "user.bpk.error"
/* The same for the root: which record the pack is, and why it cannot be edited. */
int describe_root_xattr(const struct mount *mount, const char *name, char **ret_value,
			size_t *ret_size);
int describe_root_xattr_names(const struct mount *mount, char **ret_names,
			      size_t *ret_size);

#endif
