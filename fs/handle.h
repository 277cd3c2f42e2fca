/*
 * handle.h - the open files and folders of a mount. The kernel has their numbers.
 * All with the mount's lock.
 */
#ifndef BPKFS_HANDLE_H
#define BPKFS_HANDLE_H

#include "mount.h"

struct listing;

struct handle {
	struct node *node;
	bool writer;
	uint64_t trusted;	   /* see trust.h */
	struct rendered *rendered; /* NODE_RENDERED: the node's, opened */
	char *text;		   /* .bpkfs/status and changes, as they were at open */
	size_t text_size;
	struct listing *listing; /* a folder, as it was at the start of reading */
};

/* 0 or -ENOMEM. */
int handle_new(struct mount *mount, struct node *node, uint64_t *ret_number);
struct handle *handle_get(struct mount *mount, uint64_t number); /* or NULL */
void handle_free(struct mount *mount, uint64_t number);
/* All that are left, when nobody asks any more. */
void handles_done(struct mount *mount);

#endif
