/*
 * paths.c - see paths.h.
 */
#include "paths.h"
#include "name.h"
#include "shell_text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *paths_pack(const char *given)
{
	const char *base = strrchr(given, '/');
	char *path = realpath(given, NULL), *with;

	base = base ? base + 1 : given;
	if (path || errno != ENOENT || strchr(base, '.'))
		return path;
	if (asprintf(&with, "%s.bpk", given) < 0)
		return NULL;
	path = realpath(with, NULL);
	free(with);
	if (!path)
		errno = ENOENT;
	return path;
}

/* The folder of @path resolved, and the name in it. */
static char *resolve_folder(const char *path)
{
	const char *name = strrchr(path, '/');
	char *folder, *real, *whole = NULL;

	name = name ? name + 1 : path;
	if (!*name) {
		errno = EISDIR;
		return NULL;
	}
	folder = name == path ? strdup(".") : strndup(path, (size_t)(name - path));
	real = folder ? realpath(folder, NULL) : NULL;
	if (real && asprintf(&whole, "%s/%s", strcmp(real, "/") ? real : "", name) < 0)
		whole = NULL;
	free(real);
	free(folder);
	return whole;
}

char *paths_new(const char *given, bool *ret_there)
{
	const char *base = strrchr(given, '/');
	char *path = paths_pack(given), *with = NULL;
	struct stat st;

	*ret_there = path != NULL;
	if (path || errno != ENOENT)
		return path;
	if (asprintf(&with, "%s%s", given,
		     strchr(base ? base : given, '.') ? "" : ".bpk") < 0)
		return NULL;
	if (lstat(given, &st) == 0 || lstat(with, &st) == 0)
		errno = EEXIST;
	else if (errno == ENOENT)
		path = resolve_folder(with);
	free(with);
	return path;
}

/* ".NAME" + @end in @where, which ends with a slash. */
static char *beside(const char *where, const char *pack, bool cut, const char *end)
{
	const char *name = strrchr(pack, '/') + 1;
	char *path;
	int result;

	if (!cut && strlen(name) <= 200)
		result = asprintf(&path, "%s.%s%s", where, name, end);
	else
		result = asprintf(&path, "%s.%.200s.%016" PRIx64 "%s", where, name,
				  name_hash(pack, strlen(pack)), end);
	return result < 0 ? NULL : path;
}

static char *folder_of(const char *path)
{
	return strndup(path, (size_t)(strrchr(path, '/') + 1 - path));
}

char *paths_staging(const char *pack, const char *folder)
{
	char *path = NULL, *real = folder ? realpath(folder, NULL) : folder_of(pack),
	     *where = NULL;

	if (real && !folder)
		path = beside(real, pack, false, ".bpkfs");
	else if (real && asprintf(&where, "%s/", real) >= 0)
		path = beside(where, pack, true, ".bpkfs");
	free(where);
	free(real);
	return path;
}

/* "-o staging=" as a word: what ends one there, and what takes that away, is escaped. */
static char *staging_option(const char *folder)
{
	size_t size = strlen("staging=");
	char *option = malloc(size + 2 * strlen(folder) + 1), *word;

	if (!option)
		return NULL;
	strcpy(option, "staging=");
	for (; *folder; folder++) {
		if (*folder == ',' || *folder == '\\')
			option[size++] = '\\';
		option[size++] = *folder;
	}
	option[size] = '\0';
	word = shell_word(option);
	free(option);
	return word;
}

char *paths_discard(const char *pack, const char *folder)
{
	char *real = folder ? realpath(folder, NULL) : NULL, *command = NULL;
	char *option = real ? staging_option(real) : NULL, *word = shell_word(pack);

	if (word && (option || !real) &&
	    asprintf(&command, "bpkfs --discard %s%s%s%s", option ? "-o " : "",
		     option ? option : "", option ? " " : "", word) < 0)
		command = NULL;
	free(word);
	free(option);
	free(real);
	return command;
}

int paths_can_replace(const char *path)
{
	char *where = folder_of(path);
	int result;

	if (!where)
		return -ENOMEM;
	result = faccessat(AT_FDCWD, where, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
	free(where);
	return result;
}

char *paths_scratch(const char *pack, const struct staging *staging)
{
	char *path = NULL, *where = folder_of(pack);
	struct stat there, here;

	if (!where)
		return NULL;
	if (fstat(staging->dir_fd, &there) == 0 && stat(where, &here) == 0 &&
	    there.st_dev == here.st_dev) {
		if (asprintf(&path, "%s/new-pack", staging->path) < 0)
			path = NULL;
	} else {
		path = beside(where, pack, false, ".bpkfs-new");
	}
	free(where);
	return path;
}

bool paths_is_below(const char *path, const char *folder)
{
	size_t size = strlen(folder);

	if (strncmp(path, folder, size) != 0)
		return false;
	return !path[size] || path[size] == '/' || (size && folder[size - 1] == '/');
}
