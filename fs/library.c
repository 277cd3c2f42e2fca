/*
 * library.c - see library.h: places, numbers and handles. The packs that are open are
 * shelf.c's.
 */
#include "library.h"
#include "base.h"
#include "listing.h"
#include "log.h"
#include "look.h"
#include "shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* In the number of a place, and in none of a range. */
#define PLACE_BITS (UINT64_C(3) << 62)

/* The life of it ---------------------------------------------------------------- */

enum status library_open(struct library *library, const struct options *options)
{
	struct stat st;

	library->options = options;
	library->path = realpath(options->pack, NULL);
	if (library->path)
		library->dir_fd = open(library->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (library->dir_fd < 0 || fstat(library->dir_fd, &st) < 0) {
		log_line("%s: %s", options->pack, strerror(errno));
		return STATUS_CANNOT_OPEN;
	}
	if (options->staging && options->writable) {
		library->staging = realpath(options->staging, NULL);
		if (!library->staging) {
			log_line("%s: %s", options->staging, strerror(errno));
			return STATUS_CANNOT_STAGE;
		}
	}
	library->bucket_count = 256;
	library->buckets = calloc(library->bucket_count, sizeof(*library->buckets));
	if (!library->buckets || catalog_init(&library->catalog)) {
		log_line("no memory");
		return STATUS_CANNOT_OPEN;
	}
	library->seed = ~library->catalog.seed;
	library->next_number = UINT64_C(1) << 32;
	library->root = (struct place) {
		.id = PLACE_ID_ROOT, .type = PLACE_FOLDER, .st = st, .refs = 1
	};
	pthread_mutex_init(&library->opening, NULL);
	pthread_mutex_init(&library->lock, NULL);
	pthread_cond_init(&library->crowded, NULL);
	library->workers = (struct workers)WORKERS_INITIALIZER;
	return STATUS_OK;
}

void library_done(struct library *library)
{
	for (size_t i = 0; i < library->handle_count; i++)
		library_handle_free(library, i);
	free(library->handles);
	for (size_t i = 0; library->buckets && i < library->bucket_count; i++)
		while (library->buckets[i]) {
			struct place *place = library->buckets[i];

			library->buckets[i] = place->next;
			shelf_close(place->mount);
			free(place->name);
			free(place);
		}
	free(library->buckets);
	free(library->ranges);
	catalog_done(&library->catalog);
	if (library->dir_fd >= 0)
		close(library->dir_fd);
	free(library->staging);
	free(library->path);
	*library = (struct library) { .dir_fd = -1 };
}

void library_set_device(struct library *library, dev_t own)
{
	library->catalog.own = own;
}

bool library_is_edited(struct library *library)
{
	bool edited;

	pthread_mutex_lock(&library->lock);
	edited = library->held != NULL;
	pthread_mutex_unlock(&library->lock);
	return edited;
}

bool library_in_use(struct library *library, uint64_t *requests)
{
	bool used;

	pthread_mutex_lock(&library->lock);
	used = library->requests != *requests || library->open_handles;
	*requests = library->requests;
	for (struct place *place = library->oldest; place && !used;
	     place = place->newer) {
		pthread_mutex_lock(&place->mount->lock);
		used = place->mount->open_handles;
		pthread_mutex_unlock(&place->mount->lock);
	}
	pthread_mutex_unlock(&library->lock);
	return used;
}

size_t library_open_count(struct library *library)
{
	size_t count;

	pthread_mutex_lock(&library->lock);
	count = library->open_count;
	pthread_mutex_unlock(&library->lock);
	return count;
}

/* Places ------------------------------------------------------------------------ */

static uint64_t mixed(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static struct place **bucket(const struct library *library, uint64_t id)
{
	uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15);

	return &library->buckets[(hash >> 32) & (library->bucket_count - 1)];
}

static struct place *find(struct library *library, uint64_t id)
{
	struct place *place;

	if (id == PLACE_ID_ROOT)
		return &library->root;
	for (place = *bucket(library, id); place && place->id != id; place = place->next)
		;
	return place;
}

/* The place of the pack that has the number in its range. */
static struct place *find_in_range(const struct library *library, uint64_t number)
{
	size_t low = 0, high = library->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (library->ranges[middle].first <= number)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low ||
	    number - library->ranges[low - 1].first >= library->ranges[low - 1].count)
		return NULL;
	return library->ranges[low - 1].place;
}

struct place *library_pack_of(struct library *library, uint64_t number)
{
	struct place *place = number == PLACE_ID_ROOT ? NULL
			      : (number & PLACE_BITS) == PLACE_BITS
				      ? find(library, number)
				      : find_in_range(library, number);

	return place && place->type == PLACE_PACK ? place : NULL;
}

bool library_is_pack(struct library *library, uint64_t number)
{
	bool is;

	pthread_mutex_lock(&library->lock);
	is = library_pack_of(library, number) != NULL;
	pthread_mutex_unlock(&library->lock);
	return is;
}

static void grow(struct library *library)
{
	struct library bigger = { .bucket_count = library->bucket_count * 2 };

	bigger.buckets = calloc(bigger.bucket_count, sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return; /* longer chains, still right */
	for (size_t i = 0; i < library->bucket_count; i++)
		while (library->buckets[i]) {
			struct place *place = library->buckets[i], **to;

			library->buckets[i] = place->next;
			to = bucket(&bigger, place->id);
			place->next = *to;
			*to = place;
		}
	free(library->buckets);
	library->buckets = bigger.buckets;
	library->bucket_count = bigger.bucket_count;
}

/* The range of a pack that goes. Its numbers are not given again. */
static void drop_range(struct library *library, const struct place *place)
{
	size_t kept = 0;

	for (size_t i = 0; i < library->range_count; i++)
		if (library->ranges[i].place == place) {
			library->ranges[i].place = NULL;
			library->range_gone++;
			break;
		}
	if (library->range_gone < 64 || library->range_gone * 2 < library->range_count)
		return;
	for (size_t i = 0; i < library->range_count; i++)
		if (library->ranges[i].place)
			library->ranges[kept++] = library->ranges[i];
	library->range_count = kept;
	library->range_gone = 0;
}

/* A loop, not a recursion: folders may lie deep. Locked. */
void library_release(struct library *library, struct place *place)
{
	while (place && !place->refs && !place->lookups && !place->known &&
	       !place->held) {
		struct place **link = bucket(library, place->id), *parent = place->parent;

		while (*link != place)
			link = &(*link)->next;
		*link = place->next;
		library->count--;
		if (place->mount)
			shelf_take_out(library, place);
		if (place->has_numbers)
			drop_range(library, place);
		shelf_close(place->mount);
		free(place->name);
		free(place);
		if (parent)
			parent->refs--;
		place = parent;
	}
}

struct place *library_place(struct library *library, uint64_t number)
{
	struct place *place;

	pthread_mutex_lock(&library->lock);
	library->requests++;
	place = find(library, number);
	if (place)
		place->refs++;
	pthread_mutex_unlock(&library->lock);
	return place;
}

uint64_t library_number(const struct library *library, const struct place *parent,
			enum place_type type, const char *name, const struct stat *st)
{
	uint64_t hash = mixed(mixed(library->seed, parent->id), type);

	for (; *name; name++)
		hash = mixed(hash, (unsigned char)*name);
	hash = mixed(mixed(hash, st->st_dev), st->st_ino);
	if (type == PLACE_PACK) {
		hash = mixed(hash, (uint64_t)st->st_size);
		hash = mixed(hash, (uint64_t)st->st_mtim.tv_sec);
		hash = mixed(hash, (uint64_t)st->st_mtim.tv_nsec);
	}
	return hash | PLACE_BITS;
}

static bool is_same(const struct place *place, const struct place *parent,
		    enum place_type type, const char *name, const struct stat *st)
{
	return place->type == type && place->parent == parent && !place->outdated &&
	       strcmp(place->name, name) == 0 && place->st.st_dev == st->st_dev &&
	       place->st.st_ino == st->st_ino &&
	       (type != PLACE_PACK || same_state(&place->st, st));
}

static struct place *make(struct library *library, struct place *parent,
			  enum place_type type, const char *name, const struct stat *st,
			  uint64_t id)
{
	struct place *place = calloc(1, sizeof(*place)), **to;

	if (!place)
		return NULL;
	place->name = strdup(name);
	if (!place->name) {
		free(place);
		return NULL;
	}
	if (library->count >= library->bucket_count)
		grow(library);
	place->id = id;
	place->type = type;
	place->parent = parent;
	place->st = *st;
	parent->refs++;
	to = bucket(library, id);
	place->next = *to;
	*to = place;
	library->count++;
	return place;
}

struct place *library_make(struct library *library, struct place *parent,
			   enum place_type type, const char *name, const struct stat *st)
{
	uint64_t id = library_number(library, parent, type, name, st);
	struct place *place;

	pthread_mutex_lock(&library->lock);
	while ((place = find(library, id)) && !is_same(place, parent, type, name, st))
		id = (id + 1) | PLACE_BITS;
	if (!place)
		place = make(library, parent, type, name, st, id);
	if (place)
		place->refs++;
	pthread_mutex_unlock(&library->lock);
	return place;
}

void library_unref(struct library *library, struct place *place)
{
	pthread_mutex_lock(&library->lock);
	place->refs--;
	library_release(library, place);
	pthread_mutex_unlock(&library->lock);
}

void library_told(struct library *library, struct place *place, const char *name)
{
	pthread_mutex_lock(&library->lock);
	if (place->parent)
		place->lookups++;
	if (place->type == PLACE_PACK)
		place->whole_name = strcmp(place->name, name) == 0;
	pthread_mutex_unlock(&library->lock);
}

struct place *library_pack_place(struct library *library, uint64_t number)
{
	struct place *place;

	pthread_mutex_lock(&library->lock);
	place = library_pack_of(library, number);
	if (place)
		place->refs++;
	pthread_mutex_unlock(&library->lock);
	return place;
}

struct place *library_held(struct library *library, const struct place *parent,
			   const char *name)
{
	struct place *place;

	pthread_mutex_lock(&library->lock);
	for (place = library->held; place; place = place->next_held)
		if (place->parent == parent && strcmp(place->name, name) == 0)
			break;
	if (place)
		place->refs++;
	pthread_mutex_unlock(&library->lock);
	return place;
}

/* Of a mount that keeps nodes for it, which is entered. */
static void forget_node(struct library *library, struct mount *mount, uint64_t number,
			uint64_t lookups)
{
	uint64_t id;

	pthread_mutex_lock(&mount->lock);
	if (numbers_find(&mount->numbers, number, &id))
		nodes_forget(&mount->nodes, &mount->overlay, id, lookups);
	library_leave(library, mount);
}

void library_forget(struct library *library, uint64_t number, uint64_t lookups)
{
	struct place *place;
	uint64_t *count;

	pthread_mutex_lock(&library->lock);
	place = find(library, number);
	count = place ? &place->lookups : NULL;
	if (!place && (place = find_in_range(library, number)))
		count = &place->known;
	if (place && count == &place->known && place->mount && place->mount->writable) {
		struct mount *mount = place->mount;

		place->refs++;
		place->busy++;
		pthread_mutex_unlock(&library->lock);
		forget_node(library, mount, number, lookups);
		return;
	}
	if (place) {
		*count -= lookups < *count ? lookups : *count;
		library_release(library, place);
	}
	pthread_mutex_unlock(&library->lock);
}

/* "a/b/c" below the directory; malloc'd. What is above a place does not change. */
static char *path_of(const struct place *place)
{
	size_t size = 0;
	char *path, *at;

	for (const struct place *up = place; up->parent; up = up->parent)
		size += strlen(up->name) + 1;
	path = malloc(size + 1);
	if (!path)
		return NULL;
	at = path + size;
	*at = '\0';
	for (const struct place *up = place; up->parent; up = up->parent) {
		size_t length = strlen(up->name);

		at -= length + 1;
		memcpy(at, up->name, length);
		at[length] = up == place ? '\0' : '/';
	}
	return path;
}

char *library_path(struct library *library, const struct place *place, bool shown)
{
	char *path = path_of(place);
	bool cut;

	pthread_mutex_lock(&library->lock);
	cut = shown && place->type == PLACE_PACK && !place->whole_name;
	pthread_mutex_unlock(&library->lock);
	if (path && cut)
		path[strlen(path) - strlen(CATALOG_EXTENSION)] = '\0';
	return path;
}

int library_folder(const struct library *library, const struct place *place)
{
	char *path = path_of(place);
	int fd = path ? look_folder(library->dir_fd, path) : -ENOMEM;
	struct stat st;

	free(path);
	if (fd >= 0 && place->parent &&
	    (fstat(fd, &st) < 0 || st.st_dev != place->st.st_dev ||
	     st.st_ino != place->st.st_ino)) {
		close(fd);
		return -ESTALE;
	}
	return fd == -ENOTDIR || fd == -ELOOP || fd == -EXDEV || fd == -ENOENT ? -ESTALE
									       : fd;
}

/* Handles ----------------------------------------------------------------------- */

static void close_handle(struct library *library, struct place_handle *handle)
{
	library_unref(library, handle->place);
	if (handle->fd >= 0)
		close(handle->fd);
	listing_free(handle->listing);
	free(handle->text);
}

int library_handle_new(struct library *library, const struct place_handle *opened,
		       uint64_t *ret_number)
{
	struct place_handle *handle = malloc(sizeof(*handle)), taken = *opened;
	size_t at = 0;
	int error = handle ? 0 : -ENOMEM;

	pthread_mutex_lock(&library->lock);
	while (at < library->handle_count && library->handles[at])
		at++;
	if (!error && at == library->handle_count) {
		size_t count = library->handle_count ? library->handle_count * 2 : 16;
		struct place_handle **grown =
			reallocarray(library->handles, count, sizeof(*library->handles));

		if (grown) {
			memset(grown + library->handle_count, 0,
			       (count - library->handle_count) * sizeof(*grown));
			library->handles = grown;
			library->handle_count = count;
		} else {
			error = -ENOMEM;
		}
	}
	if (!error) {
		*handle = taken;
		handle->refs = 1;
		library->handles[at] = handle;
		library->open_handles++;
		*ret_number = at;
	}
	pthread_mutex_unlock(&library->lock);
	if (error) {
		close_handle(library, &taken);
		free(handle);
	}
	return error;
}

struct place_handle *library_handle(struct library *library, uint64_t number)
{
	struct place_handle *handle;

	pthread_mutex_lock(&library->lock);
	library->requests++;
	handle = number < library->handle_count ? library->handles[number] : NULL;
	if (handle)
		handle->refs++;
	pthread_mutex_unlock(&library->lock);
	return handle;
}

void library_handle_put(struct library *library, struct place_handle *handle)
{
	bool last;

	if (!handle)
		return;
	pthread_mutex_lock(&library->lock);
	last = !--handle->refs;
	pthread_mutex_unlock(&library->lock);
	if (!last)
		return;
	close_handle(library, handle);
	free(handle);
}

void library_handle_free(struct library *library, uint64_t number)
{
	struct place_handle *handle = NULL;

	pthread_mutex_lock(&library->lock);
	library->requests++;
	if (number < library->handle_count && library->handles[number]) {
		handle = library->handles[number];
		library->handles[number] = NULL;
		library->open_handles--;
	}
	pthread_mutex_unlock(&library->lock);
	library_handle_put(library, handle);
}
