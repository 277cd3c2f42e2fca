/*
 * paths.c - see paths.h.
 */
#include "paths.h"

#include <errno.h>
#include <libgen.h>
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
	char *copy = strdup(pack), *other = strdup(pack), *path = NULL;
	struct stat st;

	if (copy && other && stat(pack, &st) == 0) {
		const char *name = basename(other),
			   *where = folder ? folder : dirname(copy);
		int result;

		if (strlen(name) <= 200 && !folder)
			result = asprintf(&path, "%s/.%s.bpkfs", where, name);
		else
			result = asprintf(&path, "%s/.%.200s.%ju.bpkfs", where, name,
					  (uintmax_t)st.st_ino);
		if (result < 0)
			path = NULL;
	}
	free(copy);
	free(other);
	return path;
}
