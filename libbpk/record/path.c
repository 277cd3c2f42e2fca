/*
 * path.c - records from and to files: which file a path without an extension means.
 *
 * An extension is what Rust's Path::extension() calls one, as Burn goes by that: what
 * follows the last dot of the last component, unless that dot is its first byte.
 */
#include "record/record.h"

#include <stdio.h>
#include <sys/stat.h>

static bool has_extension(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	/* Nothing can be appended to a folder's path, and ".." is no name. */
	return !*name || strcmp(name, "..") == 0 || (dot && dot != name);
}

static int append_extension(const char *path, char **ret_path, struct bpk_error *error)
{
	static const char extension[] = ".bpk";
	size_t size = strlen(path);
	char *longer = malloc(size + sizeof(extension));

	if (!longer)
		return record_no_memory(error);
	memcpy(longer, path, size);
	memcpy(longer + size, extension, sizeof(extension));
	*ret_path = longer;
	return 0;
}

BPK_EXPORT int bpk_record_load(const char *path, const struct bpk_limits *limits,
			       struct bpk_record **ret_record, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *longer = NULL;
	struct bpk_reader *reader;
	struct stat st;
	int r;

	if (!has_extension(path) && stat(path, &st) < 0 && errno == ENOENT) {
		r = append_extension(path, &longer, error);
		if (r < 0)
			return r;
		/* When neither is there, the user knows the one that he gave. */
		if (stat(longer, &st) == 0 || errno != ENOENT)
			path = longer;
	}
	r = bpk_reader_open(path, limits, &reader, error);
	return r < 0 ? r : bpk_record_from_reader(reader, ret_record, error);
}

BPK_EXPORT int bpk_record_save(const struct bpk_record *record, const char *path,
			       struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *longer = NULL;
	struct bpk_writer *writer;
	int r;

	if (!has_extension(path)) {
		r = append_extension(path, &longer, error);
		if (r < 0)
			return r;
		path = longer;
	}
	r = bpk_record_to_writer(record, NULL, &writer, error);
	if (r < 0)
		return r;
	r = bpk_writer_write_file(writer, path, NULL, error);
	bpk_writer_free(writer);
	return r;
}
