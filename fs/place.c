/*
 * place.c - see place.h. Nothing here holds a lock while it looks at the disk.
 */
#include "place.h"
#include "listing.h"
#include "look.h"
#include "place_text.h"
#include "shelf.h"
#include "spare.h"
#include "writers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_folder(enum place_type type)
{
	return type == PLACE_FOLDER || type == PLACE_PACK || type == PLACE_LATEST ||
	       type == PLACE_CONTROL;
}

/* Attributes -------------------------------------------------------------------- */

/* What is there on disk now where something changes under the same number. */
static int look_again(const struct library *library, const struct place *place,
		      struct stat *ret_st)
{
	int folder, why, error = 0;

	*ret_st = place->st;
	if (place->type == PLACE_FOLDER) {
		folder = library_folder(library, place);
		if (folder >= 0 && fstat(folder, ret_st) < 0)
			error = -errno;
	} else if (place->type == PLACE_FILE) {
		folder = library_folder(library, place->parent);
		if (folder >= 0)
			error = look_at(folder, place->name, library->catalog.own, ret_st,
					&why);
	} else {
		return 0;
	}
	if (folder < 0)
		return folder;
	close(folder);
	return error == -ENOENT ? -ESTALE : error;
}

static int size_of(struct library *library, const struct place *place,
		   const struct stat *on_disk, off_t *ret_size)
{
	char *text = NULL;
	size_t size = 0;
	int error = 0;

	if (place->type == PLACE_FILE) {
		*ret_size = S_ISREG(on_disk->st_mode) ? on_disk->st_size : 0;
		return 0;
	}
	if (place->type == PLACE_LINK)
		error = place_target(library, place, &text);
	else if (place->type == PLACE_STATUS || place->type == PLACE_CHANGES)
		error = place_tell(library, place, &text, &size);
	if (!error)
		*ret_size = (off_t)(place->type == PLACE_LINK ? strlen(text) : size);
	free(text);
	return error;
}

int place_attributes(struct library *library, const struct place *place,
		     struct stat *ret_st)
{
	struct shown_attributes shown;
	struct stat on_disk,
		st = { .st_ino = place->id, .st_nlink = 1, .st_blksize = 4096 };
	int error = look_again(library, place, &on_disk);

	/* The rest is as the directory itself. */
	if (!error && !on_disk.st_mode)
		on_disk = library->root.st;
	if (!error)
		error = size_of(library, place, &on_disk, &st.st_size);
	if (error)
		return error;
	options_attributes(library->options, &on_disk, 0, &shown);
	st.st_uid = shown.uid;
	st.st_gid = shown.gid;
	if (place->type == PLACE_LINK)
		st.st_mode = S_IFLNK | 0777;
	else if (is_folder(place->type))
		st.st_mode = S_IFDIR | shown.folder_mode;
	else
		st.st_mode = S_IFREG | shown.file_mode;
	st.st_blocks = (st.st_size + 511) / 512;
	st.st_atim = st.st_ctim = st.st_mtim = on_disk.st_mtim;
	*ret_st = st;
	return 0;
}

/* Names ------------------------------------------------------------------------- */

static const struct stat nothing;

/* What is held of a pack without an edit left stands for its file; when that has gone or
 * is another one, it goes, and what is on disk is what there is. @busy as in shelf.h. */
static bool drop_outdated(struct library *library, struct place *place, int folder,
			  unsigned busy)
{
	struct stat was, now;
	int error, why;

	if (!shelf_is_settled(library, place, busy, &was))
		return false;
	error = look_at(folder, place->name, library->catalog.own, &now, &why);
	if (error ? error != -ENOENT : !why && same_state(&was, &now))
		return false;
	return shelf_drop(library, place, busy, &was);
}

/* library_held() without what is outdated. */
static struct place *find_current(struct library *library, const struct place *parent,
				  const char *name, int folder)
{
	struct place *place = library_held(library, parent, name);

	if (!place || !drop_outdated(library, place, folder, 0))
		return place;
	library_unref(library, place);
	return NULL;
}

/* What is held of what @shown was found as, or with an error was not: it is there
 * whatever lies there on disk. *@ret_place stays NULL without. */
static int find_held(struct library *library, const struct place *parent, int folder,
		     const char *name, int error, const struct shown *shown,
		     struct place **ret_place)
{
	char *file = NULL;
	struct place *place;
	bool whole;

	if (error && error != -ENOENT)
		return error;
	place = find_current(library, parent, error ? name : shown->file, folder);
	if (place && (error || shown->type != SHOWN_PACK)) {
		/* A file that came in its place: it has the name of the pack, which may
		 * be shown without the extension. */
		pthread_mutex_lock(&library->lock);
		whole = place->whole_name;
		pthread_mutex_unlock(&library->lock);
		if (!whole) {
			library_unref(library, place);
			return -ENOENT;
		}
	}
	if (!place && error) {
		if (asprintf(&file, "%s" CATALOG_EXTENSION, name) < 0)
			return -ENOMEM;
		place = find_current(library, parent, file, folder);
		free(file);
	}
	if (place)
		*ret_place = place;
	return place ? 0 : error;
}

/* In a folder of the directory. */
static int find_in_folder(struct library *library, struct place *parent, const char *name,
			  struct place **ret_place)
{
	static const enum place_type types[] = { [SHOWN_FOLDER] = PLACE_FOLDER,
						 [SHOWN_PACK] = PLACE_PACK,
						 [SHOWN_FILE] = PLACE_FILE };
	struct shown shown;
	int folder, error;

	if (!parent->parent && strcmp(name, ".bpkfs") == 0) {
		*ret_place = library_make(library, parent, PLACE_CONTROL, name, &nothing);
		return *ret_place ? 0 : -ENOMEM;
	}
	folder = library_folder(library, parent);
	if (folder < 0)
		return folder;
	error = catalog_find(&library->catalog, folder, name, &shown);
	if (library->options->writable)
		error = find_held(library, parent, folder, name, error, &shown,
				  ret_place);
	if (!error && !*ret_place)
		*ret_place = library_make(library, parent, types[shown.type], shown.file,
					  &shown.st);
	else if (error == -ENOENT && strcmp(name, CATALOG_LATEST) == 0 &&
		 catalog_has_latest(folder)) {
		*ret_place = library_make(library, parent, PLACE_LATEST, name, &nothing);
		error = 0;
	}
	close(folder);
	return !error && !*ret_place ? -ENOMEM : error;
}

int place_find(struct library *library, struct place *parent, const char *name,
	       struct place **ret_place)
{
	enum place_type type;
	int folder, error;
	char *target;

	switch (parent->type) {
	case PLACE_FOLDER:
		return find_in_folder(library, parent, name, ret_place);
	case PLACE_LATEST:
		folder = library_folder(library, parent->parent);
		if (folder < 0)
			return folder;
		error = catalog_latest(&library->catalog, folder, name, &target);
		close(folder);
		if (error)
			return error;
		free(target);
		type = PLACE_LINK;
		break;
	case PLACE_CONTROL:
		if (strcmp(name, "status") != 0 && strcmp(name, "changes") != 0)
			return -ENOENT;
		type = name[0] == 's' ? PLACE_STATUS : PLACE_CHANGES;
		break;
	case PLACE_PACK:
	case PLACE_FILE:
	case PLACE_LINK:
	case PLACE_STATUS:
	case PLACE_CHANGES:
	default:
		return -ENOTDIR;
	}
	*ret_place = library_make(library, parent, type, name, &nothing);
	return *ret_place ? 0 : -ENOMEM;
}

/* Listing ----------------------------------------------------------------------- */

struct lister {
	struct library *library;
	struct place *folder;
	int fd;
	struct listing *listing;
};

static int list_number(struct lister *lister, enum place_type type, const char *name,
		       uint64_t number)
{
	return listing_add(lister->listing, name, strlen(name), number,
			   is_folder(type)	? S_IFDIR
			   : type == PLACE_LINK ? S_IFLNK
						: S_IFREG);
}

static int list_one(struct lister *lister, enum place_type type, const char *name,
		    const char *file, const struct stat *st)
{
	return list_number(
		lister, type, name,
		library_number(lister->library, lister->folder, type, file, st));
}

static int list_shown(void *context, const char *name, const struct shown *shown)
{
	struct lister *lister = context;
	struct place *held =
		find_current(lister->library, lister->folder, shown->file, lister->fd);

	/* Those come behind the others, with names that are known. */
	if (held) {
		library_unref(lister->library, held);
		return 0;
	}
	return list_one(context,
			shown->type == SHOWN_FOLDER ? PLACE_FOLDER
			: shown->type == SHOWN_PACK ? PLACE_PACK
						    : PLACE_FILE,
			name, shown->file, &shown->st);
}

static int list_link(void *context, const char *name)
{
	return list_one(context, PLACE_LINK, name, name, &nothing);
}

static bool is_listed(const struct listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->names + listing->entries[i].name_at, name) == 0)
			return true;
	return false;
}

static int list_held(void *context, struct place *place)
{
	struct lister *lister = context;
	const char *name;
	char *path;
	bool held;
	int error = 0;

	pthread_mutex_lock(&lister->library->lock);
	held = place->held;
	pthread_mutex_unlock(&lister->library->lock);
	if (!held || place->parent != lister->folder ||
	    drop_outdated(lister->library, place, lister->fd, 1))
		return 0;
	path = library_path(lister->library, place, true);
	if (!path)
		return -ENOMEM;
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	/* What it was told as may be another file's by now, as when it is looked up. */
	if (is_listed(lister->listing, name) &&
	    catalog_keeps_extension(&lister->library->catalog, lister->fd, place->name))
		name = place->name;
	/* It may have become held since it was listed. */
	if (!is_listed(lister->listing, name))
		error = list_number(lister, PLACE_PACK, name, place->id);
	free(path);
	return error;
}

static int list_folder(struct lister *lister)
{
	struct catalog *catalog = &lister->library->catalog;
	bool latest = lister->folder->type == PLACE_LATEST;
	int error = 0,
	    fd = library_folder(lister->library,
				latest ? lister->folder->parent : lister->folder);

	if (fd < 0)
		return fd;
	lister->fd = fd;
	if (latest) {
		error = catalog_list_latest(catalog, fd, list_link, lister);
	} else {
		if (!lister->folder->parent)
			error = list_one(lister, PLACE_CONTROL, ".bpkfs", ".bpkfs",
					 &nothing);
		if (!error)
			error = catalog_list(catalog, fd, list_shown, lister);
		if (!error)
			error = writers_each(lister->library, lister->folder, list_held,
					     lister);
		if (!error && catalog_has_latest(fd))
			error = list_one(lister, PLACE_LATEST, CATALOG_LATEST,
					 CATALOG_LATEST, &nothing);
	}
	close(fd);
	return error == -ENOENT ? 0 : error;
}

int place_list(struct library *library, struct place *place, struct listing **ret_listing)
{
	struct lister lister = { .library = library,
				 .folder = place,
				 .fd = -1,
				 .listing = calloc(1, sizeof(struct listing)) };
	const struct place *up = place->parent ? place->parent : place;
	int error;

	if (!lister.listing)
		return -ENOMEM;
	error = listing_add(lister.listing, ".", 1, place->id, S_IFDIR);
	if (!error)
		error = listing_add(lister.listing, "..", 2, up->id, S_IFDIR);
	if (!error && place->type == PLACE_CONTROL) {
		error = list_one(&lister, PLACE_STATUS, "status", "status", &nothing);
		if (!error)
			error = list_one(&lister, PLACE_CHANGES, "changes", "changes",
					 &nothing);
	} else if (!error) {
		error = list_folder(&lister);
	}
	if (error)
		listing_free(lister.listing);
	else
		*ret_listing = lister.listing;
	return error;
}

/* Files ------------------------------------------------------------------------- */

int place_open(const struct library *library, const struct place *place)
{
	int folder = library_folder(library, place->parent), fd;
	struct stat st;

	if (folder < 0)
		return folder;
	fd = spare_keep(look_open(folder, place->name, library->catalog.own, &st));
	close(folder);
	if (fd < 0 || (st.st_dev == place->st.st_dev && st.st_ino == place->st.st_ino))
		return fd;
	close(fd);
	return -ESTALE;
}
