/*
 * catalog.c - see catalog.h.
 */
#include "catalog.h"
#include "base.h"
#include "error.h"
#include "look.h"
#include "pack.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define VERDICTS (UINT64_C(1) << 17)
#define VERDICT_PACK UINT64_C(1)

int catalog_init(struct catalog *catalog)
{
	catalog->verdicts = calloc(VERDICTS, sizeof(*catalog->verdicts));
	if (!catalog->verdicts)
		return -ENOMEM;
	if (getrandom(&catalog->seed, sizeof(catalog->seed), 0) != sizeof(catalog->seed))
		return -EIO;
	return -pthread_mutex_init(&catalog->lock, NULL);
}

void catalog_done(struct catalog *catalog)
{
	free(catalog->verdicts);
	catalog->verdicts = NULL;
}

/* Is it a pack? ----------------------------------------------------------------- */

static uint64_t mixed(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

/* Of the file in this state: never 0, and the lowest bit is free. */
static uint64_t identity(const struct catalog *catalog, const struct stat *st)
{
	uint64_t hash = mixed(catalog->seed, st->st_dev);

	hash = mixed(hash, st->st_ino);
	hash = mixed(hash, (uint64_t)st->st_size);
	hash = mixed(hash, (uint64_t)st->st_mtim.tv_sec);
	hash = mixed(hash, (uint64_t)st->st_mtim.tv_nsec);
	return (hash | 2) & ~VERDICT_PACK;
}

int catalog_check(struct catalog *catalog, int folder_fd, const char *file,
		  struct bpk_error *error)
{
	struct stat st;
	struct pack *pack;
	int fd = look_open(folder_fd, file, catalog->own, &st), result;

	if (fd < 0)
		return bpk_fail(error, fd, BPK_ERR_IO, BPK_NO_OFFSET, "%s",
				strerror(-fd));
	result = pack_open_fd(fd, &pack, error);
	close(fd);
	if (!result)
		pack_unref(pack);
	return result;
}

/* Written to so lately that it may be again in the same tick of the clock. */
static bool is_fresh(const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return st->st_mtim.tv_sec >= now.tv_sec - 1;
}

static bool is_pack(struct catalog *catalog, int folder_fd, const char *file,
		    const struct stat *st)
{
	uint64_t id = identity(catalog, st), known, *at;
	struct bpk_error error;
	bool pack;

	at = &catalog->verdicts[id >> 8 & (VERDICTS - 1)];
	pthread_mutex_lock(&catalog->lock);
	known = *at;
	pthread_mutex_unlock(&catalog->lock);
	if ((known & ~VERDICT_PACK) == id)
		return known & VERDICT_PACK;
	pack = catalog_check(catalog, folder_fd, file, &error) == 0;
	/* What was the fault of the moment is asked again. */
	if (!pack && (error.code == BPK_ERR_IO || error.code == BPK_ERR_MEMORY))
		return false;
	if (is_fresh(st))
		return pack;
	pthread_mutex_lock(&catalog->lock);
	*at = id | (pack ? VERDICT_PACK : 0);
	pthread_mutex_unlock(&catalog->lock);
	return pack;
}

/* Names ------------------------------------------------------------------------- */

static bool is_hidden(const char *name)
{
	return name[0] == '.';
}

/* Its length without the extension; 0 when it has none. */
static size_t stem_size(const char *file)
{
	size_t size = strlen(file), extension = strlen(CATALOG_EXTENSION);

	if (size <= extension || strcmp(file + size - extension, CATALOG_EXTENSION) != 0)
		return 0;
	return size - extension;
}

bool catalog_is_named(const char *file)
{
	return stem_size(file) != 0;
}

static bool is_there(const struct catalog *catalog, int folder_fd, const char *name)
{
	struct stat st;
	int why;

	return look_at(folder_fd, name, catalog->own, &st, &why) != -ENOENT;
}

/* What is there as @file, whatever it is shown as. */
static int look_up(struct catalog *catalog, int folder_fd, const char *file,
		   struct shown *shown)
{
	int error;

	if (is_hidden(file) || strlen(file) >= sizeof(shown->file))
		return -ENOENT;
	error = look_at(folder_fd, file, catalog->own, &shown->st, &shown->why);
	if (error)
		return error == -EXDEV ? -ENOENT : error;
	strcpy(shown->file, file);
	shown->type = SHOWN_FILE;
	if (shown->why)
		return 0;
	if (S_ISDIR(shown->st.st_mode))
		shown->type = SHOWN_FOLDER;
	else if (stem_size(file) && is_pack(catalog, folder_fd, file, &shown->st))
		shown->type = SHOWN_PACK;
	return 0;
}

bool catalog_keeps_extension(const struct catalog *catalog, int folder_fd,
			     const char *file)
{
	char stem[256];
	size_t size = stem_size(file);

	memcpy(stem, file, size);
	stem[size] = '\0';
	return strcmp(stem, CATALOG_LATEST) == 0 || is_there(catalog, folder_fd, stem);
}

int catalog_find(struct catalog *catalog, int folder_fd, const char *name,
		 struct shown *ret_shown)
{
	struct shown shown;
	char file[sizeof(shown.file)];
	int error = look_up(catalog, folder_fd, name, &shown);

	if (!error && shown.type == SHOWN_PACK &&
	    !catalog_keeps_extension(catalog, folder_fd, name))
		return -ENOENT;
	if (!error)
		*ret_shown = shown;
	if (error != -ENOENT || strcmp(name, CATALOG_LATEST) == 0 ||
	    strlen(name) + strlen(CATALOG_EXTENSION) >= sizeof(file))
		return error;
	strcpy(file, name);
	strcat(file, CATALOG_EXTENSION);
	/* What is left out, as a mount point, has the name all the same. */
	if (is_there(catalog, folder_fd, name))
		return -ENOENT;
	error = look_up(catalog, folder_fd, file, &shown);
	if (!error && shown.type != SHOWN_PACK)
		return -ENOENT;
	if (!error)
		*ret_shown = shown;
	return error;
}

/* Listing ----------------------------------------------------------------------- */

/* The names in a folder, sorted. */
struct names {
	char **list;
	size_t count;
	size_t capacity;
};

static void names_done(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(struct names *names, const char *name, size_t size)
{
	if (bpk_grow((void **)&names->list, &names->capacity, names->count + 1,
		     sizeof(*names->list)))
		return -ENOMEM;
	names->list[names->count] = strndup(name, size);
	return names->list[names->count] && ++names->count ? 0 : -ENOMEM;
}

static bool names_have(const struct names *names, const char *name)
{
	return names->count &&
	       bsearch(&name, names->list, names->count, sizeof(*names->list), compare);
}

static int names_read(struct names *names, int folder_fd)
{
	int fd = look_folder(folder_fd, ""), error = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		error = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return error;
	}
	while (!error && (errno = 0, entry = readdir(dir)))
		if (!is_hidden(entry->d_name))
			error = names_add(names, entry->d_name, strlen(entry->d_name));
	if (!error && errno)
		error = -errno;
	closedir(dir);
	if (!error && names->count)
		qsort(names->list, names->count, sizeof(*names->list), compare);
	return error;
}

int catalog_list(struct catalog *catalog, int folder_fd, catalog_fn fn, void *context)
{
	struct names names = { 0 };
	int error = names_read(&names, folder_fd);

	for (size_t i = 0; i < names.count && !error; i++) {
		char *name = names.list[i], stem[256];
		struct shown shown;

		if (look_up(catalog, folder_fd, name, &shown) != 0)
			continue; /* gone again, or left out */
		if (shown.type == SHOWN_PACK) {
			size_t size = stem_size(name);

			memcpy(stem, name, size);
			stem[size] = '\0';
			if (strcmp(stem, CATALOG_LATEST) != 0 &&
			    !names_have(&names, stem))
				name = stem;
		}
		error = fn(context, name, &shown);
	}
	names_done(&names);
	return error;
}

/* latest/ ----------------------------------------------------------------------- */

/* {NAME}-{epoch}.bpk: the length of NAME, or 0; and where the digits are. */
static size_t checkpoint_of(const char *file, const char **ret_epoch, size_t *ret_digits)
{
	size_t stem = stem_size(file), at = stem, end;

	while (at && file[at - 1] >= '0' && file[at - 1] <= '9')
		at--;
	if (at < 2 || at == stem || file[at - 1] != '-')
		return 0;
	end = at - 1;
	while (at + 1 < stem && file[at] == '0')
		at++;
	*ret_epoch = file + at;
	*ret_digits = stem - at;
	return end;
}

/* By name, then by epoch, the highest first. */
static int compare_epochs(const void *a, const void *b)
{
	const char *one = *(char *const *)a, *two = *(char *const *)b, *one_at, *two_at;
	size_t one_digits, two_digits,
		one_name = checkpoint_of(one, &one_at, &one_digits),
		two_name = checkpoint_of(two, &two_at, &two_digits);
	int order = bpk_name_compare(one, one_name, two, two_name);

	if (order)
		return order;
	if (one_digits != two_digits)
		return one_digits > two_digits ? -1 : 1;
	order = memcmp(two_at, one_at, one_digits);
	return order ? order : strcmp(one, two);
}

/* The files that are checkpoints by their names, in that order. */
static int read_checkpoints(struct names *ret_names, int folder_fd)
{
	struct names names = { 0 };
	size_t kept = 0, digits;
	const char *epoch;
	int error = names_read(&names, folder_fd);

	if (!error && names_have(&names, CATALOG_LATEST))
		error = -ENOENT;
	if (error) {
		names_done(&names);
		return error;
	}
	for (size_t i = 0; i < names.count; i++) {
		if (checkpoint_of(names.list[i], &epoch, &digits))
			names.list[kept++] = names.list[i];
		else
			free(names.list[i]);
	}
	names.count = kept;
	if (kept)
		qsort(names.list, kept, sizeof(*names.list), compare_epochs);
	*ret_names = names;
	return 0;
}

bool catalog_has_latest(int folder_fd)
{
	struct names names = { 0 };
	bool any;

	any = read_checkpoints(&names, folder_fd) == 0 && names.count;
	names_done(&names);
	return any;
}

static bool is_checkpoint_of(const char *file, const char *name)
{
	const char *epoch;
	size_t digits, size = checkpoint_of(file, &epoch, &digits);

	return size == strlen(name) && memcmp(file, name, size) == 0;
}

int catalog_latest(struct catalog *catalog, int folder_fd, const char *name,
		   char **ret_shown)
{
	struct names names = { 0 };
	int error = read_checkpoints(&names, folder_fd);
	char *found = NULL;

	for (size_t i = 0; i < names.count && !error && !found; i++) {
		const char *file = names.list[i];
		struct shown shown;

		if (!is_checkpoint_of(file, name) ||
		    look_up(catalog, folder_fd, file, &shown) != 0 ||
		    shown.type != SHOWN_PACK)
			continue;
		found = strndup(file, catalog_keeps_extension(catalog, folder_fd, file)
					      ? strlen(file)
					      : stem_size(file));
		if (!found)
			error = -ENOMEM;
	}
	names_done(&names);
	if (error || !found)
		return error ? error : -ENOENT;
	*ret_shown = found;
	return 0;
}

int catalog_list_latest(struct catalog *catalog, int folder_fd,
			int (*fn)(void *context, const char *name), void *context)
{
	struct names names = { 0 };
	int error = read_checkpoints(&names, folder_fd);
	char last[256] = "";

	for (size_t i = 0; i < names.count && !error; i++) {
		const char *epoch;
		size_t digits, size = checkpoint_of(names.list[i], &epoch, &digits);
		struct shown shown;

		if ((last[0] && is_checkpoint_of(names.list[i], last)) ||
		    look_up(catalog, folder_fd, names.list[i], &shown) != 0 ||
		    shown.type != SHOWN_PACK)
			continue;
		memcpy(last, names.list[i], size);
		last[size] = '\0';
		error = fn(context, last);
	}
	names_done(&names);
	return error;
}
