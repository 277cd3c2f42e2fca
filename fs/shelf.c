/*
 * shelf.c - see shelf.h and library.h. A place whose pack a request needs has a reference
 * while it does, and what has handles stays open; all others may be closed, the one that
 * was used longest ago first.
 */
#include "shelf.h"
#include "base.h"
#include "handle.h"
#include "look.h"
#include "spare.h"
#include "writers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void shelf_close(struct mount *mount)
{
	if (!mount)
		return;
	mount->staging.keep = mount->kept;
	handles_done(mount);
	mount_done(mount);
	staging_close(&mount->staging, !mount->kept);
	target_done(&mount->target);
	free(mount->scratch_path);
	free(mount->pack_path);
	free(mount->refusal);
	pthread_mutex_destroy(&mount->writer_lock);
	pthread_mutex_destroy(&mount->lock);
	free(mount);
}

static uint64_t bytes_of(const struct mount *mount)
{
	return bpk_reader_metadata_size(mount->overlay.reader);
}

void shelf_take_out(struct library *library, struct place *place)
{
	*(place->older ? &place->older->newer : &library->oldest) = place->newer;
	*(place->newer ? &place->newer->older : &library->newest) = place->older;
	place->older = place->newer = NULL;
	library->open_count--;
	library->open_bytes -= bytes_of(place->mount);
}

static void put_in(struct library *library, struct place *place)
{
	place->older = library->newest;
	*(library->newest ? &library->newest->newer : &library->oldest) = place;
	library->newest = place;
	library->open_count++;
	library->open_bytes += bytes_of(place->mount);
}

void shelf_hold(struct library *library, struct place *place)
{
	struct place **last = &library->held;

	pthread_mutex_lock(&library->lock);
	while (*last)
		last = &(*last)->next_held;
	*last = place;
	place->next_held = NULL;
	place->held = true;
	pthread_mutex_unlock(&library->lock);
}

/* Locked. */
static void let_go(struct library *library, struct place *place)
{
	struct place **link = &library->held;

	while (*link != place)
		link = &(*link)->next_held;
	*link = place->next_held;
	place->held = false;
}

void shelf_let_go(struct library *library, struct place *place)
{
	pthread_mutex_lock(&library->lock);
	let_go(library, place);
	pthread_mutex_unlock(&library->lock);
}

static bool is_crowded(size_t packs, uint64_t bytes)
{
	return packs > LIBRARY_PACKS_MAX || bytes > LIBRARY_BYTES_MAX;
}

/* Is nobody at work in it, and nothing left that would go with it? Locked. */
static bool is_idle(const struct place *place)
{
	struct mount *mount = place->mount;
	bool unedited;

	if (place->busy || mount->open_handles)
		return false;
	if (!place->held)
		return true;
	pthread_mutex_lock(&mount->lock);
	unedited = mount_is_unedited(mount);
	pthread_mutex_unlock(&mount->lock);
	return unedited;
}

/* Does the kernel know something that would not be found again? What was held has another
 * number when it is opened anew. */
static bool is_known(const struct place *place)
{
	return place->mount->writable &&
	       (place->known || (place->held && (place->lookups || place->refs)));
}

/* Off the shelf, for shelf_close(). Locked. */
static struct mount *take_mount(struct library *library, struct place *place)
{
	struct mount *mount = place->mount;

	shelf_take_out(library, place);
	place->mount = NULL;
	place->refused = false;
	if (place->held)
		let_go(library, place);
	return mount;
}

/* Locked. */
static bool is_settled(const struct place *place, unsigned busy)
{
	bool settled;

	if (!place->held || place->busy > busy || place->mount->open_handles)
		return false;
	pthread_mutex_lock(&place->mount->lock);
	settled = mount_is_settled(place->mount);
	pthread_mutex_unlock(&place->mount->lock);
	return settled;
}

bool shelf_is_settled(struct library *library, const struct place *place, unsigned busy,
		      struct stat *ret_st)
{
	bool settled;

	pthread_mutex_lock(&library->lock);
	settled = is_settled(place, busy);
	if (settled)
		*ret_st = place->mount->target.stat;
	pthread_mutex_unlock(&library->lock);
	return settled;
}

bool shelf_drop(struct library *library, struct place *place, unsigned busy,
		const struct stat *st)
{
	struct mount *mount = NULL;

	pthread_mutex_lock(&library->lock);
	/* After a commit meanwhile it is another file by right. */
	if (is_settled(place, busy) && same_state(&place->mount->target.stat, st)) {
		mount = take_mount(library, place);
		place->outdated = true;
	}
	pthread_mutex_unlock(&library->lock);
	shelf_close(mount);
	return mount != NULL;
}

/* One that has to be closed and can be: off the shelf, for shelf_close(). A place with
 * an open handle is not referred to by it, but its mount tells. Locked. */
static struct mount *take_surplus(struct library *library)
{
	if (!is_crowded(library->open_count, library->open_bytes))
		return NULL;
	for (struct place *place = library->oldest; place; place = place->newer) {
		bool held = place->held;
		struct mount *mount;

		if (is_known(place) || !is_idle(place))
			continue;
		mount = take_mount(library, place);
		if (held)
			library_release(library, place);
		return mount;
	}
	return NULL;
}

/* One that only the kernel knows is in the way, and it was not asked to forget it yet.
 * Locked. */
static struct place *find_forgettable(struct library *library)
{
	size_t packs = library->open_count;
	uint64_t bytes = library->open_bytes;

	for (struct place *place = library->oldest; place; place = place->newer)
		if (place->asked) {
			packs--;
			bytes -= bytes_of(place->mount);
		}
	if (!is_crowded(packs, bytes))
		return NULL;
	for (struct place *place = library->oldest; place; place = place->newer)
		if (!place->asked && is_known(place) && is_idle(place))
			return place;
	return NULL;
}

/* The name of it in its folder, as the kernel was told. */
static char *told_name(const struct place *place)
{
	size_t size = strlen(place->name);

	return strndup(place->name,
		       place->whole_name ? size : size - strlen(CATALOG_EXTENSION));
}

/* Nobody's handler: the kernel may wait for answers to others before it forgets. */
static void *forget(void *context)
{
	struct library *library = context;

	pthread_mutex_lock(&library->lock);
	while (!library->stopping) {
		struct place *place = find_forgettable(library);
		char *name;

		if (!place) {
			pthread_cond_wait(&library->crowded, &library->lock);
			continue;
		}
		place->asked = true;
		place->refs++;
		name = told_name(place);
		pthread_mutex_unlock(&library->lock);
		if (name)
			library->forget(library->forget_context, place->parent->id, name);
		free(name);
		pthread_mutex_lock(&library->lock);
		place->refs--;
		library_release(library, place);
	}
	pthread_mutex_unlock(&library->lock);
	return NULL;
}

int library_start(struct library *library,
		  void (*forget_name)(void *context, uint64_t parent, const char *name),
		  void *context)
{
	int error;

	library->forget = forget_name;
	library->forget_context = context;
	error = pthread_create(&library->thread, NULL, forget, library);
	library->has_thread = !error;
	return -error;
}

void library_stop(struct library *library)
{
	if (!library->has_thread)
		return;
	pthread_mutex_lock(&library->lock);
	library->stopping = true;
	pthread_cond_signal(&library->crowded);
	pthread_mutex_unlock(&library->lock);
	pthread_join(library->thread, NULL);
	library->has_thread = false;
}

static void close_surplus(struct library *library)
{
	struct mount *mount;

	do {
		pthread_mutex_lock(&library->lock);
		mount = take_surplus(library);
		if (!mount && library->has_thread)
			pthread_cond_signal(&library->crowded);
		pthread_mutex_unlock(&library->lock);
		shelf_close(mount);
	} while (mount);
}

/* The file of the place, if it is still that one. */
static int open_pack(const struct library *library, const struct place *place,
		     struct pack **ret_pack)
{
	int folder = library_folder(library, place->parent), fd, error;
	struct pack *pack;
	struct stat st;

	if (folder < 0)
		return folder;
	fd = spare_keep(look_open(folder, place->name, library->catalog.own, &st));
	close(folder);
	if (fd < 0)
		return fd == -ENOENT || fd == -ELOOP || fd == -EISDIR || fd == -ENXIO
			       ? -ESTALE
			       : fd;
	error = pack_open_fd(fd, &pack, NULL);
	close(fd);
	if (!error && !pack_is(pack, &place->st)) {
		pack_unref(pack);
		return -ESTALE;
	}
	if (error && !same_state(&st, &place->st))
		return -ESTALE;
	if (error)
		return error == -ENOMEM || error == -EMFILE || error == -ENFILE ? error
										: -EIO;
	*ret_pack = pack;
	return 0;
}

/* The path of the file, links resolved: what a commit replaces. The kernel tells it, and
 * nothing on the way is looked at. 0 or -errno. */
static int find_paths(struct mount *mount)
{
	const struct pack *pack = mount->overlay.pack;
	char link[sizeof("/proc/self/fd/") + 3 * sizeof(int)], path[PATH_MAX];
	ssize_t got;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", bpk_reader_fd(pack->reader));
	got = readlink(link, path, sizeof(path));
	if (got < 0 || got == sizeof(path))
		return got < 0 ? -errno : -ENAMETOOLONG;
	mount->pack_path = strndup(path, (size_t)got);
	mount->target.path = strndup(path, (size_t)got);
	if (!mount->pack_path || !mount->target.path)
		return -ENOMEM;
	target_is_pack(&mount->target, pack);
	return 0;
}

static int make_mount(const struct library *library, struct place *place,
		      struct pack *pack, struct mount **ret_mount)
{
	const struct options *options = library->options;
	struct mount *mount = calloc(1, sizeof(*mount));
	struct shown_attributes shown;
	int error;

	if (!mount)
		return -ENOMEM;
	mount->writable = options->writable;
	options_attributes(options, &pack->stat,
			   mount->writable ? (pack->stat.st_mode & 0222) | 0200 : 0,
			   &shown);
	mount->place = place;
	mount->dots = options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	mount->uid = shown.uid;
	mount->gid = shown.gid;
	mount->file_mode = shown.file_mode;
	mount->folder_mode = shown.folder_mode;
	mount->staging.dir_fd = mount->staging.lock_fd = mount->target.fd = -1;
	mount->workers = (struct workers)WORKERS_INITIALIZER;
	pthread_mutex_init(&mount->writer_lock, NULL);
	pthread_mutex_init(&mount->lock, NULL);
	overlay_init(&mount->overlay, pack, mount->writable);
	error = mount_init(mount);
	if (!error && mount->writable) {
		nodes_narrow(&mount->nodes, library->seed ^ place->id, NUMBERS_HASH_BITS);
		error = find_paths(mount);
	}
	if (!error && mount->writable)
		writers_bring_back(library, mount);
	if (error)
		shelf_close(mount);
	else
		*ret_mount = mount;
	return error;
}

/* The first range that does not end before @first. */
static size_t range_at(const struct library *library, uint64_t first)
{
	size_t low = 0, high = library->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (library->ranges[middle].first < first)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_range(const struct library *library, size_t at, uint64_t first)
{
	return at < library->range_count && library->ranges[at].first == first;
}

/* Of a pack that may be edited: the same whenever it is opened, as long as no other has
 * it. There is room for millions. */
static uint64_t wide_first(const struct library *library, const struct place *place)
{
	const uint64_t slots = (UINT64_C(3) << 62) / NUMBERS_WIDE - 2;
	uint64_t slot = place->id % slots;

	for (;; slot = (slot + 1) % slots) {
		uint64_t first = (slot + 1) * NUMBERS_WIDE;
		size_t at = range_at(library, first);

		if (!is_range(library, at, first) || !library->ranges[at].place)
			return first;
	}
}

/* The first time: a range of numbers; of a pack that nobody edits behind all that were
 * ever given. */
static int give_numbers(struct library *library, struct place *place,
			struct numbers numbers, uint64_t count)
{
	bool wide = library->options->writable;
	uint64_t first = wide ? wide_first(library, place) : library->next_number, end;
	size_t at = range_at(library, first);

	if (!bpk_add_u64(first, count, &end) || end >= UINT64_C(3) << 62)
		return -ENFILE;
	if (is_range(library, at, first)) {
		library->range_gone--; /* that of one that has gone */
	} else {
		if (bpk_grow((void **)&library->ranges, &library->range_capacity,
			     library->range_count + 1, sizeof(*library->ranges)))
			return -ENOMEM;
		memmove(library->ranges + at + 1, library->ranges + at,
			(library->range_count++ - at) * sizeof(*library->ranges));
	}
	library->ranges[at] = (struct range) { first, count, place };
	if (!wide)
		library->next_number = end;
	numbers.root = place->id;
	numbers.first = first;
	place->numbers = numbers;
	place->has_numbers = true;
	return 0;
}

/* Open it, without the lock. Somebody else may have, meanwhile. */
static int open_place(struct library *library, struct place *place)
{
	struct numbers numbers = { 0 };
	struct mount *mount = NULL;
	struct pack *pack;
	uint64_t count;
	int error;

	if (place->mount) /* set and dropped with both locks only when it is busy */
		return 0;
	if (place->outdated) /* what the kernel knows of it has gone */
		return -ESTALE;
	error = open_pack(library, place, &pack);
	if (error)
		return error;
	error = make_mount(library, place, pack, &mount);
	pack_unref(pack);
	if (error)
		return error;
	count = numbers_init(&numbers, &mount->overlay);
	pthread_mutex_lock(&library->lock);
	if (!place->has_numbers)
		error = give_numbers(library, place, numbers, count);
	if (!error) {
		mount->numbers = place->numbers;
		place->mount = mount;
		place->refused = mount->refusal != NULL;
		put_in(library, place);
	}
	pthread_mutex_unlock(&library->lock);
	if (!error && mount->is_writer)
		shelf_hold(library, place);
	if (error)
		shelf_close(mount);
	return error;
}

int library_enter(struct library *library, uint64_t number, struct mount **ret_mount)
{
	struct place *place;
	int error = 0;
	bool closed;

	pthread_mutex_lock(&library->lock);
	library->requests++;
	place = library_pack_of(library, number);
	if (!place) {
		pthread_mutex_unlock(&library->lock);
		return -ENOENT;
	}
	place->refs++;
	place->busy++;
	place->asked = false;
	closed = !place->mount;
	pthread_mutex_unlock(&library->lock);
	if (closed) {
		pthread_mutex_lock(&library->opening);
		error = open_place(library, place);
		pthread_mutex_unlock(&library->opening);
		close_surplus(library);
	}
	pthread_mutex_lock(&library->lock);
	if (error) {
		place->busy--;
		place->refs--;
		library_release(library, place);
	} else if (place != library->newest) {
		shelf_take_out(library, place);
		put_in(library, place);
	}
	pthread_mutex_unlock(&library->lock);
	if (error)
		return error;
	pthread_mutex_lock(&place->mount->lock);
	*ret_mount = place->mount;
	return 0;
}

bool library_enter_open(struct library *library, struct place *place,
			struct mount **ret_mount)
{
	bool open;

	pthread_mutex_lock(&library->lock);
	open = place->mount != NULL;
	if (open) {
		place->refs++;
		place->busy++;
	}
	pthread_mutex_unlock(&library->lock);
	if (!open)
		return false;
	pthread_mutex_lock(&place->mount->lock);
	*ret_mount = place->mount;
	return true;
}

void library_leave(struct library *library, struct mount *mount)
{
	struct place *place = mount->place;
	uint64_t told = mount->nodes.told;
	bool surplus;

	mount->nodes.told = 0;
	pthread_mutex_unlock(&mount->lock);
	pthread_mutex_lock(&library->lock);
	place->known += told;
	place->busy--;
	place->refs--;
	library_release(library, place);
	surplus = is_crowded(library->open_count, library->open_bytes);
	pthread_mutex_unlock(&library->lock);
	if (surplus)
		close_surplus(library);
}
