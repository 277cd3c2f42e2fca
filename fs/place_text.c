/*
 * place_text.c - see place_text.h.
 */
#include "place_text.h"
#include "convert/json.h"
#include "look.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int place_target(struct library *library, const struct place *place, char **ret_target)
{
	int folder = library_folder(library, place->parent->parent), error;
	char *shown = NULL, *target;

	if (folder < 0)
		return folder;
	error = catalog_latest(&library->catalog, folder, place->name, &shown);
	close(folder);
	if (!error && asprintf(&target, "../%s", shown) < 0)
		error = -ENOMEM;
	free(shown);
	if (!error)
		*ret_target = target;
	return error;
}

static const char *why_text(int why, const struct stat *st)
{
	if (why == -ELOOP && S_ISDIR(st->st_mode))
		return "a symbolic link to a folder, which is not followed";
	if (why == -ENXIO)
		return "no regular file";
	return strerror(-why);
}

bool place_error(struct library *library, const struct place *place,
		 struct bpk_error *ret_error)
{
	struct bpk_error error = { .offset = BPK_NO_OFFSET };
	int folder, why = 0;
	struct stat st;

	if (place->type != PLACE_FILE)
		return false;
	folder = library_folder(library, place->parent);
	if (folder < 0)
		return false;
	if (look_at(folder, place->name, library->catalog.own, &st, &why) != 0)
		why = -ENOENT;
	if (why)
		snprintf(error.message, sizeof(error.message), "%s", why_text(why, &st));
	else if (catalog_is_named(place->name))
		(void)catalog_check(&library->catalog, folder, place->name, &error);
	close(folder);
	if (!error.message[0])
		return false;
	*ret_error = error;
	if (error.offset != BPK_NO_OFFSET)
		snprintf(ret_error->message, sizeof(ret_error->message),
			 "at byte %" PRIu64 ": %.440s", error.offset, error.message);
	return true;
}

int place_status(struct library *library, char **ret_text, size_t *ret_size)
{
	struct bpk_appender path = { 0 };
	char *text;
	int size = -1;

	bpk_json_string(&path, library->path, strlen(library->path));
	if (!path.failed)
		size = asprintf(&text,
				"{\"pid\":%ld,\"directory\":%.*s,\"mode\":\"ro\","
				"\"dirty\":false,\"changes\":0,\"commit\":\"idle\","
				"\"done\":0,\"total\":0,\"last_status\":0,"
				"\"last_error\":null,\"open\":%zu}\n",
				(long)getpid(), (int)path.size, (const char *)path.data,
				library_open_count(library));
	bpk_append_done(&path);
	if (size < 0)
		return -ENOMEM;
	*ret_text = text;
	*ret_size = (size_t)size;
	return 0;
}
