/*
 * pack.h - a pack that is open, and which file it is. Counted: what was told to the
 * kernel of a pack must stay mapped until it was copied, also when a commit has put
 * another pack in its place meanwhile.
 *
 * Immutable but for two counts, which are atomic: no lock.
 */
#ifndef BPKFS_PACK_H
#define BPKFS_PACK_H

#include <stdbool.h>
#include <sys/stat.h>

#include "bpk.h"

struct pack {
	unsigned refs;
	struct bpk_reader *reader;
	struct stat stat; /* as it was opened */
	uint64_t handed;  /* see pack_handed() */
	bool unborn;	  /* pack_empty(): no file that anybody can find */
};

/* The errors are those of bpk_reader_open(); the reference is the caller's. */
int pack_open(const char *path, struct pack **ret_pack, struct bpk_error *error);
/* @fd is duplicated. */
int pack_open_fd(int fd, struct pack **ret_pack, struct bpk_error *error);
/* One with nothing in it, to start from. It is in no folder; its owner is the caller, its
 * mode that of a new file. Errors: -ENOMEM, those of memfd_create(2). */
int pack_empty(struct pack **ret_pack);
struct pack *pack_ref(struct pack *pack);
void pack_unref(struct pack *pack); /* NULL accepted */

/*
 * The kernel has copied @size bytes, in @count pieces, from the mapping, and so has put
 * the pages into it. They are pages of the page cache, but are counted as memory of
 * whoever maps them: whenever it may be some MiB they leave the mapping (not the page
 * cache), or to read a pack would make the daemon as large as the pack.
 */
void pack_handed(struct pack *pack, size_t count, uint64_t size);

/* Is the file that @now tells of still the one, unchanged? */
bool pack_is(const struct pack *pack, const struct stat *now);
/* Are its bytes still those that were opened, whatever name they have now? */
bool pack_intact(const struct pack *pack);
/* Do two of them tell of one file in one state: by inode, size and time? */
bool same_state(const struct stat *a, const struct stat *b);
/* The mode of a file that is made now with @mode. Not beside threads that make files. */
mode_t new_file_mode(mode_t mode);

#endif
