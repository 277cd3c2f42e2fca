/*
 * by_path.h - by-path/: the state in an optimizer record under the module path that it
 * belongs to, where the record's metadata says so ({param_id}: path).
 *
 * A folder here is the beginning of a path, up to where a dot or its end is: so many
 * bytes of the first path that begins so. In the folder of a whole path is a link for
 * each {param_id}.{field}, called {field}, to the tensor or scalar. Where a field has the
 * name of a folder, the folder is there and the link is not; nor is a name that would not
 * fit.
 *
 * For mounts where nothing can change: made once, and folders are numbers of it.
 * Call with the mount's lock.
 */
#ifndef BPKFS_BY_PATH_H
#define BPKFS_BY_PATH_H

#include "name.h"
#include "overlay.h"

/* A longer one is not a module path. */
#define BY_PATH_SIZE_MAX 4096

struct module_path {
	const char *path; /* borrowed from the pack */
	size_t size;
	size_t metadata; /* the index of the key, which is the param_id */
};

struct by_path {
	bool made;
	enum name_dots dots;
	struct module_path *list; /* by path, each once */
	size_t count;
};

/* The folder of the first @size bytes of path @first; { 0, 0 } for by-path/ itself. */
struct path_folder {
	size_t first;
	size_t size;
};

/* What stands in a folder: a folder, or (size 0) the link to an entry. */
struct path_found {
	struct path_folder folder;
	struct entry entry;
};

/* 0 or -ENOMEM. */
int by_path_make(struct by_path *by_path, const struct overlay *overlay,
		 enum name_dots dots);
void by_path_done(struct by_path *by_path);
/* Could it be one? */
bool by_path_valid(const struct by_path *by_path, struct path_folder folder);
/* What @text names in the folder. 0, -ENOENT, -ENAMETOOLONG, -ENOMEM. */
int by_path_find(const struct by_path *by_path, const struct overlay *overlay,
		 struct path_folder folder, const char *text,
		 struct path_found *ret_found);
/* Call @fn for all in it; non-zero stops. */
typedef int (*by_path_fn)(void *context, const char *file_name, size_t size,
			  const struct path_found *found);
int by_path_list(const struct by_path *by_path, const struct overlay *overlay,
		 struct path_folder folder, by_path_fn fn, void *context);
/* How many folders the link to @entry is in, by-path/ included; 0 when there is none. */
size_t by_path_depth(const struct by_path *by_path, const struct overlay *overlay,
		     const struct entry *entry);

#endif
