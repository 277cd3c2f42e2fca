/*
 * library.h - a directory of packs, mounted: which places in it the kernel knows, which
 * packs are open, and which of them a number belongs to.
 *
 * A place is what stands in a folder of the directory: a folder, a file, a pack, a link.
 * What is there is read from disk whenever somebody asks (catalog.h); a place is kept
 * while the kernel knows it, an open file or a place below needs it, or the kernel knows
 * something in the pack. Its number is a seeded hash of what it is: the same as long as
 * it is the same, and another one when another file takes its place. So a pack that was
 * replaced is another inode, and what the kernel kept of the old one is not shown.
 *
 * Below the place of a pack begins a struct mount, as of a pack that is mounted alone;
 * its numbers are in a range of their own (numbers.h). It is made when a request first
 * needs it and goes when too many others are open and nothing in it is
 * (LIBRARY_PACKS_MAX, LIBRARY_BYTES_MAX); the next request makes it again, of the same
 * file in the same state or not at all (-ESTALE).
 *
 * In a writable directory a mount keeps nodes for what the kernel knows, as a writable
 * mount of one pack does, so it stays open until the kernel has forgotten all of them.
 * When too many are open, a thread has the kernel forget the name of one that nobody
 * uses, and so all below it (shelf.c). A pack that is edited is held (writers.h): it
 * stays, and its place is that of its name, whatever comes to lie there on disk. One
 * whose edits are all committed gives way to another file.
 *
 * Locks: opening, lock, then that of a struct mount. opening is held while a pack is
 * opened or becomes a writer's. lock is over all but what is constant, and is held for
 * work in memory alone.
 */
#ifndef BPKFS_LIBRARY_H
#define BPKFS_LIBRARY_H

#include "catalog.h"
#include "mount.h"
#include "options.h"
#include "worker.h"

/* Open at once, as far as nothing is in use: packs, and bytes of their metadata. */
#define LIBRARY_PACKS_MAX 64
#define LIBRARY_BYTES_MAX (UINT64_C(32) << 20)

#define PLACE_ID_ROOT 1

enum place_type {
	PLACE_FOLDER,
	PLACE_PACK,
	PLACE_FILE,
	PLACE_LATEST,
	PLACE_LINK,    /* in latest/ */
	PLACE_CONTROL, /* .bpkfs/, and what is in it */
	PLACE_STATUS,
	PLACE_CHANGES,
};

struct place {
	/* Constant. */
	uint64_t id;
	enum place_type type;
	struct place *parent; /* owned reference; NULL for the root */
	char *name;	      /* on disk, where it is there */
	struct stat st;	      /* of a pack: of the very file, as it was opened first */

	uint64_t lookups; /* what the kernel was told and has not forgotten */
	unsigned refs;	  /* places below, handles, requests */
	struct place *next;

	/* PLACE_PACK */
	struct mount *mount; /* NULL while it is closed */
	bool has_numbers;    /* it was opened */
	struct numbers numbers;
	uint64_t known; /* lookups of what is in it */
	unsigned busy;	/* requests that are at work in it, each with a reference */
	struct place *older, *newer; /* of the open ones, by their last use */
	bool whole_name;	     /* it was told with its extension */
	bool asked;    /* the kernel was asked to forget it, and nobody came since */
	bool held;     /* in library.held, which keeps it */
	bool refused;  /* the last edit of it was: mount->refusal */
	bool outdated; /* it was held, and another file came: it is not opened again */
	struct place *next_held;
};

struct place_handle {
	unsigned refs;	     /* the kernel's, and requests */
	struct place *place; /* owned reference */
	int fd;		     /* PLACE_FILE; else -1 */
	struct listing *listing;
	char *text; /* PLACE_STATUS */
	size_t text_size;
};

struct range {
	uint64_t first;
	uint64_t count;
	struct place *place; /* NULL when it has gone */
};

struct library {
	/* Constant while mounted. */
	const struct options *options;
	char *path;
	int dir_fd;
	char *staging;		/* of -o staging, or NULL */
	struct catalog catalog; /* has a lock of its own */
	uint64_t seed;

	pthread_mutex_t opening;
	pthread_mutex_t lock; /* guards all below */
	struct place root;
	struct place **buckets;
	size_t bucket_count;
	size_t count;
	struct range *ranges; /* by first */
	size_t range_count, range_capacity, range_gone;
	uint64_t next_number;
	struct place *oldest, *newest;
	size_t open_count;
	uint64_t open_bytes;
	struct place *held; /* by their first edits */
	struct place_handle **handles;
	size_t handle_count;
	size_t open_handles;
	uint64_t requests; /* so far; tells who is idle */

	struct workers workers; /* commits that were asked for */

	/* The thread that has the kernel forget: constant while it runs; then the
	 * condition is that there is something to do for it. */
	void (*forget)(void *context, uint64_t parent, const char *name);
	void *forget_context;
	pthread_t thread;
	pthread_cond_t crowded;
	bool has_thread;
	bool stopping; /* lock */
};

/* The directory that options->pack is. It says what is wrong. library_done() takes what
 * is half made, and one that is all zeros but dir_fd, which is -1. */
enum status library_open(struct library *library, const struct options *options);
void library_done(struct library *library);
/* Known once mounted, before the first request. */
void library_set_device(struct library *library, dev_t own);
/* Of a writable one, before the first request, too: @forget has the kernel forget a name
 * in a folder, and may take until other requests are answered. 0 or -errno. */
int library_start(struct library *library,
		  void (*forget)(void *context, uint64_t parent, const char *name),
		  void *context);
/* No more of that; before the last request is answered, or when all requests are of the
 * past. From any thread that answers none; twice, too. */
void library_stop(struct library *library);
/* Has it been asked for something, or has somebody a file open? @requests is that of the
 * last call. */
bool library_in_use(struct library *library, uint64_t *requests);
/* Is there a pack that is held? */
bool library_is_edited(struct library *library);
/* How many packs are open. */
size_t library_open_count(struct library *library);

/* The mount of the pack that the number belongs to, locked; it stays open until
 * library_leave(). 0, -ENOENT for a number of no pack, -ESTALE when the file has gone or
 * is another one, -ENOMEM, -EMFILE, -EIO. */
int library_enter(struct library *library, uint64_t number, struct mount **ret_mount);
/* The same for the pack of a place, if it is open. */
bool library_enter_open(struct library *library, struct place *place,
			struct mount **ret_mount);
void library_leave(struct library *library, struct mount *mount);
/* Is it the number of a pack or of something in one? */
bool library_is_pack(struct library *library, uint64_t number);
void library_forget(struct library *library, uint64_t number, uint64_t lookups);

/* @mount, which was entered and is not locked, becomes the writer of its pack, which is
 * held from then on. One that is already, and has no edit, is asked whether it still is
 * what is on disk. 0, or -errno as the edit is to be answered; mount->refusal says why.
 * writers.c */
int library_make_writer(struct library *library, struct mount *mount);

/* Places. A reference keeps one; all these lock. */

/* The place of that number, with a reference; NULL when there is none. */
struct place *library_place(struct library *library, uint64_t number);
/* What stands in @parent, made when it is not known; with a reference. NULL without
 * memory. @st is what it is on disk, or zeros. */
struct place *library_make(struct library *library, struct place *parent,
			   enum place_type type, const char *name, const struct stat *st);
/* The number that library_make() would give it (or, where two collide, the next). */
uint64_t library_number(const struct library *library, const struct place *parent,
			enum place_type type, const char *name, const struct stat *st);
void library_unref(struct library *library, struct place *place);
/* The kernel is told of it in a reply, as @name. */
void library_told(struct library *library, struct place *place, const char *name);
/* The place of the pack that the number belongs to, with a reference; or NULL. */
struct place *library_pack_place(struct library *library, uint64_t number);
/* What is held of the file @name in @parent, with a reference; or NULL. */
struct place *library_held(struct library *library, const struct place *parent,
			   const char *name);
/* "a/b/c" below the directory, malloc'd; NULL without memory. @shown: as it was told to
 * the kernel, or else as it is on disk. */
char *library_path(struct library *library, const struct place *place, bool shown);
/* The folder on disk that a PLACE_FOLDER is: a descriptor or -errno. */
int library_folder(const struct library *library, const struct place *place);

/* Handles. One takes all that is in @opened, also on failure. 0 or -ENOMEM. */
int library_handle_new(struct library *library, const struct place_handle *opened,
		       uint64_t *ret_number);
/* With a reference, for library_handle_put(); NULL when there is none. */
struct place_handle *library_handle(struct library *library, uint64_t number);
void library_handle_put(struct library *library, struct place_handle *handle);
/* The kernel has closed it. */
void library_handle_free(struct library *library, uint64_t number);

#endif
