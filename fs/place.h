/*
 * place.h - what is at a place of a directory mount: its attributes, what stands in it,
 * its bytes. All is looked for on disk, by the rules of catalog.h; a place that is
 * another one there by now is -ESTALE.
 *
 * A pack's place is a folder here, and what is in it is another mount's
 * (library_enter()). The caller has a reference to the place, and no lock.
 */
#ifndef BPKFS_PLACE_H
#define BPKFS_PLACE_H

#include "library.h"

struct listing;

/* As stat(2) shows it. 0 or -errno. */
int place_attributes(struct library *library, const struct place *place,
		     struct stat *ret_st);
/* What @parent shows as @name, with a reference. 0, -ENOENT, -ENOTDIR or another -errno.
 */
int place_find(struct library *library, struct place *parent, const char *name,
	       struct place **ret_place);
/* All that a folder shows. 0 or -errno. */
int place_list(struct library *library, struct place *place,
	       struct listing **ret_listing);
/* The file that a PLACE_FILE is, to read: a descriptor or -errno. */
int place_open(const struct library *library, const struct place *place);

#endif
