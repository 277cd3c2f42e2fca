/*
 * name.h - one component of a path in the mount, and the piece of an entry's
 * name that it stands for.
 *
 * Knows how names are spelled. Does not know what exists: whether a cut name or
 * a dotted name leads anywhere is for the tree to say. Nothing here allocates,
 * fails for want of anything, or depends on the locale.
 *
 * Invariant: name_encode() is one-to-one (but for two cut names whose hashes
 * collide, see @probe), what it gives is never a scratch name, and a text that
 * name_decode() takes as NAME_PLAIN is exactly what name_encode() gives for it.
 *
 * @room everywhere is how many bytes a file name may have: NAME_SIZE_MAX, or less by
 * what a view puts behind every name, NAME_ROOM_MIN at least.
 */
#ifndef BPKFS_NAME_H
#define BPKFS_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the longest file name that Linux passes on. */
#define NAME_SIZE_MAX 255
/* Room for any file name and its NUL. */
#define NAME_BUFFER (NAME_SIZE_MAX + 1)
/* The tail of a cut name, and some of its head. */
#define NAME_ROOM_MIN 32
/* The tensor whose name is also the folder this stands in. */
#define NAME_SELF_TEXT "%self"

/* What a dot in a file name is. */
enum name_dots {
	NAME_DOTS_SPLIT, /* a boundary: the folders of tensors/ and scalars/ */
	NAME_DOTS_KEPT,	 /* a character: metadata/, and everything under -o flat */
};

enum name_kind {
	NAME_PLAIN,  /* raw is the component */
	NAME_DOTTED, /* raw is several components and the dots between them: an
		      * alias for a deeper path, from this folder on */
	NAME_SELF,   /* NAME_SELF_TEXT; raw is empty */
	NAME_CUT,    /* raw is how the component starts, hash is FNV-1a 64 of the
		      * whole, plus the probe */
};

struct name_decoded {
	enum name_kind kind;
	size_t raw_size;
	uint64_t hash;		 /* 0 unless NAME_CUT */
	char raw[NAME_SIZE_MAX]; /* UTF-8, may hold NUL; not NUL-terminated */
};

/*
 * Write the file name of the component @raw (@size bytes of UTF-8; with
 * NAME_DOTS_SPLIT, the caller has split it at the dots) to @out, NUL-terminated.
 * Returns its size, 1 to @room.
 *
 * @probe is added to the hash of a name that has to be cut and ignored for any
 * other: 0, unless another component of the same folder would have that very file
 * name (see cut_index.h).
 */
size_t name_encode(const char *raw, size_t size, size_t room, uint64_t probe,
		   char out[NAME_BUFFER]);

/*
 * Is the file name of @raw cut? *@ret_head is then how many bytes of @raw stay.
 * Looks at no more than @room bytes of it.
 */
bool name_is_cut(const char *raw, size_t size, size_t room, size_t *ret_head);

/* The hash of a cut name, FNV-1a 64 of the whole component. */
uint64_t name_hash(const char *raw, size_t size);

/*
 * What the file name @text (@size bytes) stands for. NAME_DOTTED and NAME_SELF
 * come with NAME_DOTS_SPLIT only.
 *
 * Every piece of a dotted name is spelled like a component, or more loosely:
 * nothing at all is the empty component, as `%` is, and `#` and `~` need no
 * escape where the neighbour is a dot. So several spellings lead to one name.
 * A piece cannot be cut.
 *
 * Returns 0; -ENAMETOOLONG above @room bytes; -EILSEQ for what is no UTF-8;
 * -EINVAL for what name_encode() spells otherwise or never gives: a bad or
 * needless escape, lower-case hex, a byte that needs its escape, a cut name that
 * is too short, a scratch name (ask name_is_scratch() first), no text.
 */
int name_decode(const char *text, size_t size, size_t room, enum name_dots dots,
		struct name_decoded *ret);

/* True when a file of that name is never part of the pack. */
bool name_is_scratch(const char *text, size_t size);

#endif
