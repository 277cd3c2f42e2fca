/*
 * node.h - the inodes that the kernel knows, and how long they live.
 *
 * The kernel names an inode by the number that stat(2) shows. A node is made by
 * the first lookup (or create, mkdir, readdirplus) that tells the kernel of it,
 * and counts how often the kernel was told; it goes when the kernel has forgotten
 * it that often and nobody else refers to it. The fixed nodes never go.
 *
 * Numbers are never pointers and never name another thing while the mount lasts:
 * - fixed nodes: 1 to 15;
 * - an entry of the pack: its section and index;
 * - what was made while mounted: a counter;
 * - a folder that only its entries make: a hash of its parent's number and its
 *   component with the top bits set, seeded for each mount. So it is the same
 *   again when the kernel has forgotten it, and a pack cannot be made so that two
 *   folders collide. Should they, the next free number is taken;
 * - what tensors/ shows has the same number in npy/ with one bit set;
 * - a file that describes the whole pack: a fixed number, or on a writable mount
 *   a new one after each edit, as if it was replaced by rename(2).
 *
 * A folder's node refers to its parent and knows its own component alone, so that
 * a deep path costs no more than a wide one; the prefix is put together by walking
 * up. Renaming a folder moves its node; those below follow by themselves.
 *
 * Where nothing can change, on a read-only mount, none of that is kept: a folder's
 * number is made of the first entry in it and the length of its prefix, so that
 * each number tells all there is to know. A node is made of the number when a request
 * names it, and goes with the next request (nodes_sweep()) unless a handle refers
 * to it. So the kernel may know every file of a large pack, twice in npy/, and the
 * daemon's memory is what it was.
 */
#ifndef BPKFS_NODE_H
#define BPKFS_NODE_H

#include "overlay.h"
#include "rendered.h"

enum node_type {
	NODE_ROOT,
	NODE_SECTION, /* tensors/, scalars/, metadata/, npy/ */
	NODE_CONTROL, /* .bpkfs/ */
	NODE_STATUS,
	NODE_CHANGES,
	NODE_RENDERED, /* index.tsv, pack.json, pack.safetensors */
	NODE_FOLDER,
	NODE_ENTRY, /* an entry or a scratch file */
	NODE_PATH,  /* by-path/ and what is in it: base and prefix_size are a path_folder
		     */
	NODE_LINK,  /* in there, to the entry base */
};

#define NODE_ID_ROOT 1
#define NODE_ID_SECTION 2 /* + kind: 2, 3, 4 */
#define NODE_ID_CONTROL 5
#define NODE_ID_STATUS 6
#define NODE_ID_CHANGES 7
#define NODE_ID_NPY_SECTION 8
#define NODE_ID_RENDERED 9 /* + enum rendered_kind: 9, 10, 11 */
#define NODE_ID_BY_PATH 12
#define NODE_ID_FIXED_END 16
/* An entry of the pack: its section + 1 shifted by so many bits, and its index. */
#define NODE_ID_ENTRY_SHIFT OVERLAY_ID_SHIFT
/* In the number of what npy/ shows. */
#define NODE_ID_NPY (UINT64_C(1) << 61)

/* In the number of the link in by-path/ to an entry. */
#define NODE_ID_LINK (UINT64_C(1) << 60)
/* In place of a section, in the number of a folder there. */
#define NODE_ID_PATH_KIND 3

/* What stands in the root and in .bpkfs/, in the order it is listed. */
struct fixed_node {
	uint64_t id;
	uint64_t parent;
	const char *name;
	enum node_type type;
	enum item_kind kind;	     /* NODE_SECTION */
	enum rendered_kind rendered; /* NODE_RENDERED */
};
extern const struct fixed_node fixed_nodes[];
extern const size_t fixed_node_count;

/* A pack cannot keep them, so they last as long as the mount. */
struct folder_attributes {
	bool mode_set, mtime_set;
	mode_t mode;
	struct timespec mtime;
};

struct node {
	uint64_t id;
	uint64_t lookups; /* what the kernel was told and has not forgotten */
	unsigned refs;	  /* folders below, open handles */
	bool loose;	  /* goes with the next request: in nodes.loose */
	enum node_type type;
	enum item_kind kind;
	bool npy;	     /* seen through npy/ */
	struct node *parent; /* NODE_FOLDER: owned reference */
	char *component;
	size_t component_size;
	/* What was set of a folder, which then has a reference to itself: or NULL. */
	struct folder_attributes *attributes;
	const char *prefix; /* NODE_FOLDER where nothing can change, in place of these */
	size_t prefix_size;
	size_t base;		   /* NODE_ENTRY: of the pack, until promoted */
	struct item *item;	   /* owned reference, or NULL */
	struct rendered *rendered; /* NODE_RENDERED: owned reference */
	/* NODE_ENTRY, where it may change: how many edits there were when it was last
	 * opened for the page cache, and 1; or 0. */
	uint64_t paged;
	struct node *next;
	struct node *next_loose;
};

/* What the number of a folder is made of where nothing can change: these bits; two for
 * npy/ and what is left; section; length of the prefix; index of the first entry. */
#define NODE_ID_FOLDER (UINT64_C(3) << 62)
enum {
	NODE_ID_KIND_SHIFT = 59,
	NODE_ID_KIND_BITS = 2,
	NODE_ID_PREFIX_SHIFT = 32,
	NODE_ID_PREFIX_BITS = 27,
};

struct nodes {
	const struct overlay *constant; /* what never changes, or NULL */
	struct node *loose;
	struct node **buckets;
	size_t bucket_count;
	size_t count;
	uint64_t told; /* what the kernel was told of them, and has not forgotten */
	uint64_t seed;
	uint64_t hashes; /* which bits a hash may have in the number of a folder */
	struct node fixed[NODE_ID_FIXED_END];
};

/* @constant: the overlay, if nothing can change in it while the nodes are; else NULL.
 * It is borrowed and looked at later. */
int nodes_init(struct nodes *nodes, const struct overlay *constant);
/* Where the numbers of many mounts stand side by side: hashes are the same whenever it is
 * opened, and have so many bits. */
void nodes_narrow(struct nodes *nodes, uint64_t seed, unsigned bits);
void nodes_done(struct nodes *nodes, struct overlay *overlay);

/* A request begins: of those before it, nobody holds a node without a reference. */
void nodes_sweep(struct nodes *nodes, struct overlay *overlay);
/* The node of that number, or NULL when the kernel was never told of it (or cannot
 * have been), or without memory. */
struct node *nodes_find(struct nodes *nodes, uint64_t id);
/* The node of an entry; made when there was none. NULL without memory. */
struct node *nodes_entry(struct nodes *nodes, const struct overlay *overlay,
			 const struct entry *entry, bool npy);
/* Whatever the kernel knows of the entry that @item came from is @item from now on. */
void nodes_bind(struct nodes *nodes, struct item *item);
/* The node of a file that describes the pack, likewise. */
struct node *nodes_rendered(struct nodes *nodes, struct rendered *rendered);
/* The same folder, entry or section in the other one of tensors/ and npy/, if the
 * kernel knows it. */
struct node *nodes_twin(struct nodes *nodes, const struct node *node);
/* The node of the folder @component in @parent. @made_id: of a made folder, or 0. */
struct node *nodes_folder(struct nodes *nodes, struct node *parent, enum item_kind kind,
			  const char *component, size_t size, uint64_t made_id);
/* The number that nodes_folder() would give, without making a node. */
uint64_t nodes_folder_id(const struct nodes *nodes, const struct node *parent,
			 const char *component, size_t size);
/* Where nothing can change: the number of the folder whose prefix is as long and is
 * what the name of @first, the first entry in it, begins with. */
uint64_t nodes_constant_folder_id(const struct entry *first, bool npy,
				  size_t prefix_size);
/* Of a folder in by-path/ (by_path.h). */
uint64_t nodes_path_id(size_t first, size_t size);
/* The number of the folder that the folder or section @node is in. */
uint64_t node_parent_id(const struct nodes *nodes, const struct node *node);
/* A folder's node after a rename. It takes @component, which is malloc'd. */
void node_move(struct nodes *nodes, struct overlay *overlay, struct node *node,
	       struct node *parent, char *component, size_t size);

bool node_is_folder(const struct node *node);
void node_ref(struct node *node);
/* To be filled; NULL without memory. */
struct folder_attributes *node_attributes(struct node *node);
void node_unref(struct nodes *nodes, struct overlay *overlay, struct node *node);
/* The kernel is told of it in a reply; and it has forgotten so many of those. */
void node_told(struct nodes *nodes, struct node *node);
void node_forget(struct nodes *nodes, struct overlay *overlay, struct node *node,
		 uint64_t lookups);
void nodes_forget(struct nodes *nodes, struct overlay *overlay, uint64_t id,
		  uint64_t lookups);

/* The prefix of a folder or section; malloc'd. */
char *node_prefix(const struct node *node, size_t *ret_size);
/* What an entry's node stands for now. */
struct entry node_entry(const struct overlay *overlay, const struct node *node);

#endif
