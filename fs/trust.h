/*
 * trust.h - attributes of files on a writable mount that the kernel keeps.
 *
 * Before each read(2) the kernel asks for the attributes of the file, unless it was told
 * that they hold; for who reads a tensor 4 KiB at a time that is most of the time it
 * takes. So they hold for whoever has a tensor open to read, until anything is edited:
 * the request that edits takes the list of those that hold, and tells the kernel that
 * they do not before it answers. Files that nobody has open are not in it, so it is as
 * long as there are open files.
 *
 * All with the mount's lock.
 */
#ifndef BPKFS_TRUST_H
#define BPKFS_TRUST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trust {
	uint64_t *numbers; /* as the kernel knows them */
	size_t count, capacity;
	uint64_t edits; /* of the mount, when the first was put in */
	uint64_t turn;	/* how often the list was taken */
};

/* The attributes of the file @number hold, if they are those after @edits edits. @mark is
 * the open file's, zero at first: the same is put in once. Returns whether they do; not
 * without memory. */
bool trust_add(struct trust *trust, uint64_t number, uint64_t edits, uint64_t *mark);
/* The file is closed. Returns whether they held; they do not any more. */
bool trust_remove(struct trust *trust, uint64_t number, const uint64_t *mark);
/* After @edits edits, those that hold no longer: the caller's, to be freed; *@ret_count
 * of them. NULL when there are none. */
uint64_t *trust_take(struct trust *trust, uint64_t edits, size_t *ret_count);
void trust_done(struct trust *trust); /* twice, too */

#endif
