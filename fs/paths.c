/*
 * paths.c - see paths.h.
 */
#include "paths.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

char *paths_staging(const char *pack, const char *folder)
{
	const char *name = strrchr(pack, '/') + 1;
	char *path = NULL, *where;
	struct stat st;

	where = folder ? realpath(folder, NULL) : strndup(pack, (size_t)(name - pack));
	if (!where || stat(pack, &st) < 0) {
		free(where);
		return NULL;
	}
	if (!folder && strlen(name) <= 200) {
		if (asprintf(&path, "%s.%s.bpkfs", where, name) < 0)
			path = NULL;
	} else if (asprintf(&path, "%s/.%.200s.%ju.bpkfs", where, name,
			    (uintmax_t)st.st_ino) < 0) {
		path = NULL;
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
