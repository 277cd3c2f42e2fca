/*
 * cut_index.h - the components that no file name can hold, and what they are called.
 *
 * name.h cuts such a component and puts a hash behind what is left. Components of
 * one folder that are cut behind the same bytes are a group; two of them whose hashes
 * are equal would share a file name. So a group has values, one each, and no two the
 * same: in the order of hashes, and of bytes where those are equal, each value is its
 * hash, or one more than the value before it when that is larger. Where this would
 * pass 2^64 - 1, the last values are moved down instead, as far as they must. What
 * name_encode() calls a probe is the value less the hash.
 *
 * The index is made in one pass over sorted names. It knows names and how they are
 * cut, and nothing of packs or edits. It costs 24 bytes a component that is cut, for
 * those there are; however long, deep, alike or colliding these are, making it costs
 * n log n and a look-up log n of them.
 *
 * Invariant: records are in the order of their groups, then of their values, which in
 * a group is the order of hashes and bytes. No two have the same group and value.
 *
 * Thread rule: none of its own; nothing changes once it is made.
 */
#ifndef BPKFS_CUT_INDEX_H
#define BPKFS_CUT_INDEX_H

#include "name.h"

/* The names, in bytewise order, each once. All must stay as they are. */
struct cut_names {
	const char *(*name)(const void *context, size_t index, size_t *ret_size);
	const void *context;
	size_t count;
	enum name_dots dots;
	size_t file_room; /* for a file's name; a folder's has NAME_SIZE_MAX */
	uint64_t seed;	  /* so that nobody can aim at the hash of a group */
};

struct cut_record {
	uint64_t group; /* hash of folder and head */
	uint64_t value;
	uint32_t index; /* of a name that has the component, */
	uint32_t off;	/* and where in it */
};

struct cut_index {
	struct cut_names names;
	struct cut_record *records;
	size_t count;
	bool probes; /* not every value is the hash */
};

/* Where a component stands: in the folder of that prefix (with its dot; "" for the
 * top), as a file or as a folder. */
struct cut_place {
	const char *prefix;
	size_t prefix_size;
	bool is_file;
};

/*
 * Index @names. With @first (of the same dots, room and seed), what that knows is
 * left out here and keeps its values, and none of them is given again.
 *
 * Returns 0; -ENOMEM; -EFBIG for an index or a name beyond 32 bits.
 */
int cut_index_build(const struct cut_names *names, const struct cut_index *first,
		    struct cut_index *ret);
/* Takes a zeroed one too. */
void cut_index_done(struct cut_index *index);

/* The component whose file name at @place is @decoded (a NAME_CUT): bytes inside one
 * of the names, or NULL. */
const char *cut_index_find(const struct cut_index *index, const struct cut_place *place,
			   const struct name_decoded *decoded, size_t *ret_size);

/* True when the component @raw, which is cut at @place, is in the index: then
 * *@ret_probe is what to give to name_encode(). */
bool cut_index_probe(const struct cut_index *index, const struct cut_place *place,
		     const char *raw, size_t size, uint64_t *ret_probe);

#endif
