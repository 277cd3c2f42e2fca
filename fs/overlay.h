/*
 * overlay.h - what is in the mount: the entries of the pack with the edits on
 * top, in name order.
 *
 * It knows entries and their names, and nothing of folders, files or FUSE. The
 * pack itself is never copied: an entry that was not edited is just an index
 * into the reader. An entry that was edited, made or removed has a struct item.
 *
 * Invariant: promoted[kind][i] is NULL exactly when entry i of the pack is still
 * there under its own name with its own content; otherwise it is the item that
 * took its place (and that may be renamed or no longer linked). The live entries
 * are the un-promoted ones of the pack and the items in the tables.
 *
 * Locking: everything here is guarded by the mount's lock; see mount.h.
 */
#ifndef BPKFS_OVERLAY_H
#define BPKFS_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "bpk.h"
#include "pack.h"

enum item_kind {
	ITEM_TENSOR,
	ITEM_SCALAR,
	ITEM_METADATA,
	/* Only while mounted, never in a pack: */
	ITEM_SCRATCH, /* an editor's or rsync's temporary file */
	ITEM_FOLDER,  /* a folder that exists without an entry in it */
	ITEM_KIND_COUNT,
};
#define PACK_KIND_COUNT 3

#define NO_BASE SIZE_MAX

struct staged;
struct npy_draft;

/* Text that is being written and does not count yet. */
struct pending {
	char *data;
	size_t size;
	size_t capacity;
	unsigned writers; /* handles that may write */
	bool active;	  /* data holds something */
	bool written;	  /* more than emptied by an open that truncates */
	bool refused;	  /* the last close found it invalid: shown to nobody */
};

struct item {
	enum item_kind kind;
	uint64_t id;	/* inode number, never reused */
	unsigned refs;	/* one while linked, one per node */
	bool linked;	/* has a name in its table */
	uint64_t stamp; /* of its last change: struct overlay.stamp */
	size_t base;	/* the entry of the pack whose place it takes, or NO_BASE */
	/* The pack that base and described are of, where a commit has put another one
	 * in its place: of what is gone but still open. Owned; else NULL. */
	struct pack *former;
	size_t place, place_described; /* while rebase.c is at work: of the new pack */
	uint64_t order;		       /* of making, for data without a base */
	struct timespec mtime;
	bool mtime_set; /* by utimensat(2): shown also while nothing else is changed */
	bool mode_set;
	mode_t mode; /* permission bits, if they were set */

	char *name; /* the entry's name; for scratch and folders see tree.c */
	size_t name_size;

	/* ITEM_TENSOR. The bytes: staged, or the base's when staged is NULL; with neither
	 * it was made in npy/ and is none yet. (ITEM_SCRATCH: staged, and what
	 * attributes were set, for the tensor that it may become.) */
	enum bpk_dtype dtype;
	void *dtype_cbor; /* NULL: the canonical form */
	size_t dtype_cbor_size;
	uint64_t *shape;
	size_t rank;
	bool shape_follows; /* no shape was set: as many elements as there are */
	/* The tensor of the pack whose dtype, shape and unknown keys these are, or
	 * NO_BASE. Not always the base: one may take another's place. */
	size_t described;
	bool has_param_id;
	uint64_t param_id;
	struct staged *staged;
	struct npy_draft *draft; /* a .npy file that is being written, or NULL */
	unsigned npy_writers;	 /* handles that may write to it */

	/* ITEM_SCALAR, ITEM_METADATA: the value that counts, if has_value. */
	bool has_value;
	bool type_known; /* a new value must be of value.type; of scratch files, too */
	struct bpk_scalar_value value;
	struct blob *text; /* metadata */
	struct pending pending;
};

/* Immutable bytes that outlive the entry while somebody reads them. */
struct blob {
	unsigned refs; /* atomic */
	size_t size;
	char data[];
};
struct blob *blob_new(const void *data, size_t size);
struct blob *blob_ref(struct blob *blob);
void blob_unref(struct blob *blob); /* NULL accepted */

struct item_table {
	struct item **items; /* in bytewise order of names */
	size_t count;
	size_t capacity;
	uint64_t changes; /* how often it was another one */
};

struct overlay {
	struct pack *pack;		 /* owned reference */
	const struct bpk_reader *reader; /* the pack's */
	bool writable;
	struct item **promoted[PACK_KIND_COUNT]; /* NULL until something is edited */
	/* Inode numbers of the pack's entries, where a commit has put them into
	 * another order; NULL for overlay_base_id()'s own. */
	uint64_t *ids[PACK_KIND_COUNT];
	struct item_table tables[ITEM_KIND_COUNT];
	struct item_table gone;	      /* promoted items without a name: owned */
	size_t live[PACK_KIND_COUNT]; /* entries there are now */
	uint64_t next_id;
	uint64_t next_order;
	uint64_t stamp;		    /* counts changes of items */
	uint64_t metadata_estimate; /* no less than the metadata of a commit now */
	/* No less than the data of a commit now; 0: not known. */
	uint64_t data_estimate;
};

/* An entry: an item, or (item NULL) entry @base of the pack. */
struct entry {
	enum item_kind kind;
	size_t base;
	struct item *item;
};

/* @pack is referred to, until overlay_done(). */
void overlay_init(struct overlay *overlay, struct pack *pack, bool writable);
/* Without any edit again, which nobody refers to; numbers that were given are not given
 * anew. */
void overlay_clear(struct overlay *overlay);
void overlay_done(struct overlay *overlay);

/* Inode numbers: those below OVERLAY_FIRST_ID are the caller's. */
#define OVERLAY_FIRST_ID (UINT64_C(1) << 32)
/* Those of the pack's own entries are kind + 1 shifted by so much, and the index. */
#define OVERLAY_ID_SHIFT 48
uint64_t entry_id(const struct overlay *overlay, const struct entry *entry);
/* A number that no item has or will have. */
uint64_t overlay_new_id(struct overlay *overlay);
const char *entry_name(const struct overlay *overlay, const struct entry *entry,
		       size_t *ret_size);

/* How many entries the pack has of that kind, edited or not. */
size_t overlay_pack_count(const struct overlay *overlay, enum item_kind kind);

/* The live entry of that name. */
bool overlay_find(const struct overlay *overlay, enum item_kind kind, const char *name,
		  size_t size, struct entry *ret_entry);
/* The first live entry whose name is not below @name. */
bool overlay_seek(const struct overlay *overlay, enum item_kind kind, const char *name,
		  size_t size, struct entry *ret_entry);
/* The one behind @entry. */
bool overlay_next(const struct overlay *overlay, const struct entry *entry,
		  struct entry *ret_entry);
/* Is there a live entry whose name begins with @prefix? */
bool overlay_has_prefix(const struct overlay *overlay, enum item_kind kind,
			const char *prefix, size_t size);

/* Edits. All give 0 or -errno and change nothing on failure. */

/* The item of an entry, made from the pack's when it had none. Still unedited. */
int overlay_promote(struct overlay *overlay, const struct entry *entry,
		    struct item **ret_item);
/* A new linked item. -EEXIST when the name is taken; limits of a pack: -ENOSPC. */
int overlay_make(struct overlay *overlay, enum item_kind kind, const char *name,
		 size_t size, struct item **ret_item);
/* Take the name away. The item lives on while somebody refers to it. */
int overlay_remove(struct overlay *overlay, struct item *item);
/* Give @item another name (and kind, for a scratch file that becomes an entry or
 * the other way round). The new name must be free. */
int overlay_rename(struct overlay *overlay, struct item *item, enum item_kind kind,
		   const char *name, size_t size);
/*
 * Other names for many entries of one kind, all or none: add what is to be renamed
 * (0, -ENOMEM, or -ENOSPC for more than the metadata of a pack may be), and when all of
 * it could be, apply. The new names must be free, or belong to what is renamed too.
 */
struct renames {
	struct renamed *list;
	size_t count;
	size_t capacity;
	uint64_t name_bytes;
};
/* The new name is @head and @tail, which are copied. @entry gets an item. */
int overlay_renames_add(struct overlay *overlay, struct renames *renames,
			const struct entry *entry, const char *head, size_t head_size,
			const char *tail, size_t tail_size);
void overlay_renames_apply(struct overlay *overlay, enum item_kind kind,
			   struct renames *renames);
void overlay_renames_done(struct renames *renames);
/*
 * Make @item take the place of @victim: its name, its base, and what a tensor or
 * scalar keeps when its bytes are replaced is for the caller to copy first.
 * @victim loses its name.
 */
int overlay_replace(struct overlay *overlay, struct item *item, struct item *victim);
/* What the pack said of a scalar of that name, even when it was removed since. */
bool overlay_former_type(const struct overlay *overlay, const char *name, size_t size,
			 enum bpk_scalar_type *ret_type);
/* Would @more bytes of names and values still fit into a pack's metadata? */
bool overlay_metadata_fits(const struct overlay *overlay, uint64_t more);
void overlay_account(struct overlay *overlay, uint64_t more);

void item_ref(struct item *item);
void item_unref(struct overlay *overlay, struct item *item);

/* Items as tensors: item.c. */

/* Bytes of a tensor or scratch file as they are now. */
uint64_t item_data_size(const struct overlay *overlay, const struct item *item);
/* May @item, a tensor or what is to be one in the place of @victim (or NULL), have @size
 * bytes? 0, and they are counted, or -EFBIG: Burn reads no such tensor, or no pack with
 * it. */
int overlay_reserve_data(struct overlay *overlay, const struct item *item,
			 const struct item *victim, uint64_t size);
/* Has a length that its dtype and shape allow (or the pack's own odd one). */
bool item_data_valid(const struct overlay *overlay, const struct item *item);
/* A tensor that is none yet: a file made in npy/ of which nothing counts so far. */
bool item_is_hollow(const struct item *item);
/* Has it something that a pack can hold: not a file that was only made? */
bool entry_counts(const struct entry *entry);
/* Raw bytes that nobody gave a dtype or shape. */
bool item_is_raw(const struct item *item);
/* Has it still the dtype and shape of @tensor? */
bool item_is_described_as(const struct item *item, const struct bpk_tensor *tensor);
bool item_has_param_id_of(const struct item *item, const struct bpk_tensor *tensor);
/* Its shape now, which is @ret_length where it follows the length. Borrowed. */
void item_shape(const struct overlay *overlay, const struct item *item,
		uint64_t *ret_length, const uint64_t **ret_shape, size_t *ret_rank);
/* 0 or -ENOMEM, and @item is as before. @cbor is copied; NULL for the canonical form. */
int item_set_shape(struct item *item, const uint64_t *shape, size_t rank);
int item_set_dtype(struct item *item, enum bpk_dtype dtype, const void *cbor,
		   size_t cbor_size);
/* The dtype, the shape and what it is described as in the pack. Likewise. */
int item_describe_as(struct item *item, const struct item *other);

/* The pack that the base of @item is an entry of. */
const struct bpk_reader *item_reader(const struct overlay *overlay,
				     const struct item *item);

/* Something of @item is changed. */
void overlay_touch(struct overlay *overlay, struct item *item);

/*
 * Put back an item that a journal tells of, into an overlay that has no other edits.
 * overlay_blank() makes one to fill (NULL without memory); overlay_restore() takes it,
 * also on failure. Errors: -EINVAL for what no overlay could have been, as a base that
 * does not exist or is taken twice; -ENOMEM.
 */
struct item *overlay_blank(struct overlay *overlay, enum item_kind kind, const char *name,
			   size_t size);
int overlay_restore(struct overlay *overlay, struct item *item);
/* After the last of them: -EINVAL when two entries have one name. */
int overlay_check_restored(const struct overlay *overlay);

/* What an item is against the pack; for commits and .bpkfs/changes. */
enum change {
	CHANGE_NONE,
	CHANGE_ADDED,
	CHANGE_MODIFIED,
	CHANGE_RENAMED,
	CHANGE_REMOVED,
};
enum change overlay_change(const struct overlay *overlay, const struct item *item);
/* Can it not be committed as it is? */
bool overlay_invalid(const struct overlay *overlay, const struct item *item);
/* Call @fn for every item that is edited or removed; non-zero stops. */
int overlay_each_change(const struct overlay *overlay,
			int (*fn)(void *context, const struct item *item,
				  enum change change),
			void *context);
bool overlay_dirty(const struct overlay *overlay);

#endif
