/*
 * shelf.h - the packs of a library that are open: library.c's other half.
 */
#ifndef BPKFS_SHELF_H
#define BPKFS_SHELF_H

#include "library.h"

/* Of library.c, for here. Locked. */
struct place *library_pack_of(struct library *library, uint64_t number);
void library_release(struct library *library, struct place *place);

/* Of the open ones it is no more; place->mount is the caller's to close. Locked. */
void shelf_take_out(struct library *library, struct place *place);
/* The place is to stay open and to stand for its name, or need not any more. These
 * lock. */
void shelf_hold(struct library *library, struct place *place);
void shelf_let_go(struct library *library, struct place *place);
/* Is it held without an edit, and nobody at work in it but @busy that the caller accounts
 * for? Then *@ret_st is what its file was at last. shelf_drop() closes it for good,
 * if that is so still: the name in its folder is that of what is there. They lock. */
bool shelf_is_settled(struct library *library, const struct place *place, unsigned busy,
		      struct stat *ret_st);
bool shelf_drop(struct library *library, struct place *place, unsigned busy,
		const struct stat *st);
/* Nobody can find it any more. NULL accepted. */
void shelf_close(struct mount *mount);

#endif
