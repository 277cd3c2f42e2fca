/*
 * shelf.c - see shelf.h and library.h. A place whose pack a request needs has a reference
 * while it does, and what has handles stays open; all others may be closed, the one that
 * was used longest ago first.
 */
#include "shelf.h"
#include "base.h"
#include "handle.h"
#include "look.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void shelf_close(struct mount *mount)
{
	if (!mount)
		return;
	handles_done(mount);
	mount_done(mount);
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

/* One that has to be closed and can be: off the shelf, for shelf_close(). A place with
 * an open handle is not referred to by it, but its mount tells. Locked. */
static struct mount *take_surplus(struct library *library)
{
	if (library->open_count <= LIBRARY_PACKS_MAX &&
	    library->open_bytes <= LIBRARY_BYTES_MAX)
		return NULL;
	for (struct place *place = library->oldest; place; place = place->newer) {
		struct mount *mount = place->mount;

		if (place->busy || mount->open_handles)
			continue;
		shelf_take_out(library, place);
		place->mount = NULL;
		return mount;
	}
	return NULL;
}

static void close_surplus(struct library *library)
{
	struct mount *mount;

	do {
		pthread_mutex_lock(&library->lock);
		mount = take_surplus(library);
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
	fd = look_open(folder, place->name, library->catalog.own, &st);
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

static struct mount *make_mount(const struct library *library, struct place *place,
				struct pack *pack)
{
	const struct options *options = library->options;
	struct mount *mount = calloc(1, sizeof(*mount));
	struct shown_attributes shown;

	if (!mount)
		return NULL;
	options_attributes(options, &pack->stat, 0, &shown);
	mount->place = place;
	mount->dots = options->flat ? NAME_DOTS_KEPT : NAME_DOTS_SPLIT;
	mount->uid = shown.uid;
	mount->gid = shown.gid;
	mount->file_mode = shown.file_mode;
	mount->folder_mode = shown.folder_mode;
	mount->staging.dir_fd = mount->staging.lock_fd = mount->target.fd = -1;
	pthread_mutex_init(&mount->lock, NULL);
	overlay_init(&mount->overlay, pack, false);
	if (mount_init(mount) == 0)
		return mount;
	shelf_close(mount);
	return NULL;
}

/* The first time: a range of numbers, behind all that were ever given. */
static int give_numbers(struct library *library, struct place *place,
			struct numbers numbers, uint64_t count)
{
	uint64_t end;

	if (!bpk_add_u64(library->next_number, count, &end) || end >= UINT64_C(3) << 62)
		return -ENFILE;
	if (bpk_grow((void **)&library->ranges, &library->range_capacity,
		     library->range_count + 1, sizeof(*library->ranges)))
		return -ENOMEM;
	numbers.root = place->id;
	numbers.first = library->next_number;
	library->ranges[library->range_count++] =
		(struct range) { numbers.first, count, place };
	library->next_number = end;
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
	error = open_pack(library, place, &pack);
	if (error)
		return error;
	mount = make_mount(library, place, pack);
	pack_unref(pack);
	if (!mount)
		return -ENOMEM;
	count = numbers_init(&numbers, &mount->overlay);
	pthread_mutex_lock(&library->lock);
	if (!place->has_numbers)
		error = give_numbers(library, place, numbers, count);
	if (!error) {
		mount->numbers = place->numbers;
		place->mount = mount;
		put_in(library, place);
	}
	pthread_mutex_unlock(&library->lock);
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
	surplus = library->open_count > LIBRARY_PACKS_MAX ||
		  library->open_bytes > LIBRARY_BYTES_MAX;
	pthread_mutex_unlock(&library->lock);
	if (surplus)
		close_surplus(library);
}
