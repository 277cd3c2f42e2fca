/*
 * place_text.c - see place_text.h.
 */
#include "place_text.h"
#include "convert/json.h"
#include "describe.h"
#include "look.h"
#include "writers.h"

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

/* What all packs that are edited tell together, and a part of the line for each. */
struct told {
	struct library *library;
	FILE *out;
	struct bpk_appender packs;
	size_t changes;
	bool committing;
	uint64_t done, total;
};

static void append_text(struct bpk_appender *out, const char *text)
{
	bpk_append_raw(out, text, strlen(text));
}

/* Of a pack: {"path":...}. Locked. */
static void append_pack(struct bpk_appender *out, const struct mount *mount,
			const char *path, size_t changes)
{
	char numbers[128];

	append_text(out, out->size ? ",{\"path\":" : "{\"path\":");
	bpk_json_string(out, path, strlen(path));
	snprintf(numbers, sizeof(numbers),
		 ",\"dirty\":%s,\"changes\":%zu,\"commit\":\"%s\",\"last_status\":%d",
		 changes ? "true" : "false", changes,
		 mount->committing ? "running" : "idle", (int)mount->result);
	append_text(out, numbers);
	append_text(out, ",\"last_error\":");
	if (mount->message[0])
		bpk_json_string(out, mount->message, strlen(mount->message));
	else
		append_text(out, "null");
	append_text(out, ",\"refused\":");
	if (mount->refusal)
		bpk_json_string(out, mount->refusal, strlen(mount->refusal));
	else
		append_text(out, "null");
	append_text(out, "}");
}

static int tell_pack(void *context, struct place *place)
{
	struct told *told = context;
	struct mount *mount = place->mount;
	char *path = library_path(told->library, place, true);
	size_t changes;

	if (!path)
		return -ENOMEM;
	pthread_mutex_lock(&mount->lock);
	changes = describe_change_count(mount);
	append_pack(&told->packs, mount, path, changes);
	told->changes += changes;
	if (mount->committing) {
		told->committing = true;
		told->done += __atomic_load_n(&mount->commit_done, __ATOMIC_RELAXED);
		told->total += __atomic_load_n(&mount->commit_total, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&mount->lock);
	free(path);
	return 0;
}

static void print_status(const struct told *told, const struct bpk_appender *path,
			 const struct bpk_appender *error, enum status last)
{
	fprintf(told->out, "{\"pid\":%ld,\"directory\":", (long)getpid());
	fwrite(path->data, 1, path->size, told->out);
	fprintf(told->out,
		",\"mode\":\"%s\",\"dirty\":%s,\"changes\":%zu,\"commit\":\"%s\"",
		told->library->options->writable ? "rw" : "ro",
		told->changes ? "true" : "false", told->changes,
		told->committing ? "running" : "idle");
	fprintf(told->out,
		",\"done\":%" PRIu64 ",\"total\":%" PRIu64 ",\"last_status\":%d",
		told->done, told->total, (int)last);
	fputs(",\"last_error\":", told->out);
	fwrite(error->data, 1, error->size, told->out);
	fprintf(told->out, ",\"open\":%zu", library_open_count(told->library));
	if (told->library->options->writable) {
		fputs(",\"packs\":[", told->out);
		if (told->packs.size)
			fwrite(told->packs.data, 1, told->packs.size, told->out);
		putc(']', told->out);
	}
	fputs("}\n", told->out);
}

static int tell_status(struct told *told)
{
	struct bpk_appender path = { 0 }, quoted = { 0 };
	char message[CONTROL_MESSAGE_SIZE];
	enum status last = writers_result(told->library, &told->library->root, message,
					  sizeof(message));
	int error = writers_each(told->library, &told->library->root, tell_pack, told);

	bpk_json_string(&path, told->library->path, strlen(told->library->path));
	if (message[0])
		bpk_json_string(&quoted, message, strlen(message));
	else
		append_text(&quoted, "null");
	if (path.failed || quoted.failed || told->packs.failed)
		error = -ENOMEM;
	if (!error)
		print_status(told, &path, &quoted, last);
	bpk_append_done(&path);
	bpk_append_done(&quoted);
	bpk_append_done(&told->packs);
	return error;
}

static int tell_changes(void *context, struct place *place)
{
	struct told *told = context;
	char *path = library_path(told->library, place, true), *where, *text = NULL;
	size_t size;
	int named = path ? asprintf(&where, "%s/", path) : -1;

	free(path);
	if (named < 0)
		return -ENOMEM;
	pthread_mutex_lock(&place->mount->lock);
	text = describe_changes(place->mount, where, &size);
	pthread_mutex_unlock(&place->mount->lock);
	free(where);
	if (text)
		fwrite(text, 1, size, told->out);
	else
		named = -ENOMEM;
	free(text);
	return named < 0 ? named : 0;
}

int place_tell(struct library *library, const struct place *place, char **ret_text,
	       size_t *ret_size)
{
	struct told told = { .library = library };
	char *text = NULL;
	int error;

	told.out = open_memstream(&text, ret_size);
	if (!told.out)
		return -ENOMEM;
	error = place->type == PLACE_STATUS
			? tell_status(&told)
			: writers_each(library, &library->root, tell_changes, &told);
	if (fclose(told.out) != 0)
		error = -ENOMEM;
	if (error)
		free(text);
	else
		*ret_text = text;
	return error;
}
