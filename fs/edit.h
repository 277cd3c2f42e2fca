/*
 * edit.h - what a writable mount can do to its entries: one call an edit, 0 or
 * -errno, nothing changed on failure. No FUSE. Call with the mount's lock.
 */
#ifndef BPKFS_EDIT_H
#define BPKFS_EDIT_H

#include "mount.h"

/* A new file @text in @parent; -EEXIST when there is one, *@ret_entry then. */
int edit_create(struct mount *mount, struct node *parent, const char *text,
		struct entry *ret_entry, bool *ret_alias);
int edit_unlink(struct mount *mount, struct node *parent, const char *text);
int edit_mkdir(struct mount *mount, struct node *parent, const char *text,
	       struct node **ret_node);
int edit_rmdir(struct mount *mount, struct node *parent, const char *text);
int edit_rename(struct mount *mount, struct node *parent, const char *text,
		struct node *new_parent, const char *new_text, bool no_replace);

/* A handle that writes was opened or closed for good. */
int edit_begin(struct mount *mount, struct node *node);
void edit_end(struct mount *mount, struct node *node);
int edit_write(struct mount *mount, struct node *node, const char *data, size_t size,
	       uint64_t off);
int edit_truncate(struct mount *mount, struct node *node, uint64_t size);
/* The file was closed: what was written counts from now on, or is refused. */
int edit_flush(struct mount *mount, struct node *node);
/* Before a commit, when no more requests come: what was emptied is empty. */
void edit_settle(struct mount *mount);
/* Extended attributes; @flags are setxattr(2)'s. -ENOTSUP for those that are none of a
 * pack, -EINVAL or -ERANGE for a value that cannot be. */
int edit_set_attribute(struct mount *mount, struct node *node, const char *name,
		       const char *value, size_t size, int flags);
int edit_remove_attribute(struct mount *mount, struct node *node, const char *name);
/* fallocate(2) of a tensor or scratch file; -EOPNOTSUPP for other files, modes, and
 * where the staging area cannot. */
int edit_allocate(struct mount *mount, struct node *node, int mode, uint64_t off,
		  uint64_t size);
/* What a pack cannot keep: of folders for as long as the mount, of files until a commit.
 * NULL for what is not to be set. */
int edit_attributes(struct mount *mount, struct node *node, const mode_t *mode,
		    const struct timespec *mtime);

#endif
