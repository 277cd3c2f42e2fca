/*
 * catalog.h - what a folder of a directory mount shows of a folder on disk.
 *
 * - A regular file *.bpk (or a link to one) that is a pack is a folder, called like the
 *   file without its extension; with it, where another entry has that name, or it is
 *   the one of latest/.
 * - A folder is a folder; one that something is mounted on is left out.
 * - All else is a file under its own name; so is a *.bpk that is no pack.
 * - Names that begin with a dot are left out.
 * - latest/ is there when a name is {NAME}-{epoch}.bpk, unless an entry is called so. Its
 *   NAME is a link to the pack of the highest epoch.
 *
 * Whether a file is a pack is found out by opening it, once for each state of a file.
 * The folder is read anew each time; nothing of it is kept.
 */
#ifndef BPKFS_CATALOG_H
#define BPKFS_CATALOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bpk.h"

#define CATALOG_EXTENSION ".bpk"
#define CATALOG_LATEST "latest"

struct catalog {
	dev_t own; /* the device number of the mount itself */
	uint64_t seed;
	pthread_mutex_t lock;
	/* By a hash of a file's identity, one for each place: which file, and the
	 * answer in the lowest bit; 0 for none. What collides is found out anew. */
	uint64_t *verdicts;
};

enum shown_type { SHOWN_FOLDER, SHOWN_PACK, SHOWN_FILE };

struct shown {
	enum shown_type type;
	char file[256]; /* its name on disk */
	struct stat st;
	int why; /* SHOWN_FILE: 0, or what an open of it is answered */
};

/* 0 or -errno; catalog_done() takes what is half made. */
int catalog_init(struct catalog *catalog);
void catalog_done(struct catalog *catalog);

/* What the folder shows as @name. 0, -ENOENT or another -errno. */
int catalog_find(struct catalog *catalog, int folder_fd, const char *name,
		 struct shown *ret_shown);
/* All that it shows, in no order. Not latest/. Non-zero of @fn stops. */
typedef int (*catalog_fn)(void *context, const char *name, const struct shown *shown);
int catalog_list(struct catalog *catalog, int folder_fd, catalog_fn fn, void *context);

/* Has it a latest/? */
bool catalog_has_latest(int folder_fd);
/* The name by which it shows the newest pack of @name: malloc'd. 0, -ENOENT, -errno. */
int catalog_latest(struct catalog *catalog, int folder_fd, const char *name,
		   char **ret_shown);
/* The names in latest/, each once. */
int catalog_list_latest(struct catalog *catalog, int folder_fd,
			int (*fn)(void *context, const char *name), void *context);

/* Has it the name of a pack? */
bool catalog_is_named(const char *file);
/* Is the pack @file shown with it all the same, since its name without is another's? */
bool catalog_keeps_extension(const struct catalog *catalog, int folder_fd,
			     const char *file);
/* Is the regular file a pack? When not, @error says why. 0 or -errno. */
int catalog_check(struct catalog *catalog, int folder_fd, const char *file,
		  struct bpk_error *error);

#endif
