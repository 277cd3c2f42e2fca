/*
 * tree.h - folders over the names of an overlay.
 *
 * No tree is built: a folder is a prefix of names, which stand together in name
 * order, so it costs nothing until somebody looks, however many or deep they
 * are. Knows how entries, scratch files and made folders share one folder. Knows
 * nothing of inodes or FUSE.
 *
 * A folder's prefix is the raw name up to and with the dot; "" is the section.
 */
#ifndef BPKFS_TREE_H
#define BPKFS_TREE_H

#include "cut.h"
#include "name.h"
#include "overlay.h"

/* A folder of a section (tensors, scalars, metadata). */
struct folder {
	const struct overlay *overlay;
	struct cuts *cuts; /* of this section: [0], and seen through npy/: [1] */
	enum item_kind kind;
	enum name_dots dots;
	bool npy; /* seen through npy/: files are called NAME.npy, folders are not */
	const char *prefix;
	size_t prefix_size;
};

/* What npy/ puts behind the name of a tensor. */
#define TREE_NPY_SUFFIX ".npy"

enum found {
	FOUND_FREE,   /* nothing there; kind and name say what may be made */
	FOUND_ENTRY,  /* entry */
	FOUND_FOLDER, /* name is the component */
};

struct resolved {
	enum found found;
	enum item_kind kind; /* of what is or may be there: entry kind or scratch */
	struct entry entry;
	bool alias;   /* a dotted spelling: never cached */
	bool no_file; /* in npy/, without its suffix: a folder or nothing */
	char *name;   /* full name of an entry, key of a scratch file, or component */
	size_t name_size;
};

/* What @text names in @folder. 0, -ENOMEM, -ENOENT for a cut name that stands for
 * nothing, or the errors of name_decode(). The caller frees with resolved_done(). */
int tree_resolve(const struct folder *folder, const char *text, size_t size,
		 struct resolved *ret);
/* The same for the component @raw, whatever its file name is. @is_file: in npy/, with
 * its suffix. 0 or -ENOMEM. */
int tree_resolve_component(const struct folder *folder, const char *raw, size_t size,
			   bool is_file, struct resolved *ret);
/* Make of @resolved, what @text resolved to, the scratch file of that very name. */
int tree_resolve_backup(const struct folder *folder, const char *text, size_t size,
			struct resolved *resolved);
/* The section that the scratch file @item lies in. */
enum item_kind tree_scratch_section(const struct item *item);
void resolved_done(struct resolved *resolved);

/* Where the entry is listed, from its section on; malloc'd. @section is its folder. NULL
 * without memory. */
char *tree_path(const struct folder *section, const struct entry *entry);

/* Does the folder itself (prefix not "") still exist? */
bool tree_folder_exists(const struct folder *folder);
/* The made folder's item, or NULL for one that only its entries make. */
struct item *tree_folder_item(const struct folder *folder);
/* The key of a made folder in the overlay's table; malloc'd. */
char *tree_folder_key(const struct folder *folder, size_t *ret_size);

/* Call @fn for everything listed. Folders come with the first entry in them, or NULL
 * if there is none, and with id 0 unless they are made. */
typedef int (*tree_list_fn)(void *context, const char *file_name, size_t size,
			    bool is_folder, const char *component, size_t component_size,
			    const struct entry *entry, uint64_t id);
int tree_list(const struct folder *folder, tree_list_fn fn, void *context);
bool tree_empty(const struct folder *folder);

/*
 * The tensor or scalar that is @folder's %self, and every entry, scratch file and made
 * folder below it get @to instead of its prefix, all or none: what can fail is done by
 * tree_rename_prepare(). 0, -ENOMEM, or -ENOSPC. The target must not exist when it is
 * applied.
 */
struct tree_renames {
	enum item_kind kind;
	struct renames entries, made, scratch;
};
int tree_rename_prepare(struct overlay *overlay, const struct folder *folder,
			const char *to, size_t to_size, struct tree_renames *ret_renames);
void tree_rename_apply(struct overlay *overlay, struct tree_renames *renames);
void tree_renames_done(struct tree_renames *renames);

#endif
