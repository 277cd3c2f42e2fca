/*
 * counted.c - work whose instructions are counted (by callgrind, with counted_work() as
 * what is collected): the same each time, where seconds are not.
 *
 *	counted parse|lookup|read PACK
 *
 * parse: the pack is opened, file to table. lookup: every tensor is found by its file
 * name in its folder, as for the kernel's FUSE_LOOKUP. read: 128 KiB of each are named
 * for a reply.
 */
#include "content.h"
#include "mount.h"
#include "reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_SIZE = 128 << 10 };

/* The folder's prefix and the file's name of each tensor. */
struct file {
	char *prefix;
	size_t prefix_size;
	char *text;
};

static struct mount mount;
static struct file *files;
static size_t file_count;

static int list_one(void *context, const char *text, size_t size, bool is_folder,
		    const char *component, size_t component_size,
		    const struct entry *entry, uint64_t id);

static int list(const char *prefix, size_t size)
{
	const struct folder folder = {
		.overlay = &mount.overlay,
		.cuts = mount.cuts[ITEM_TENSOR],
		.kind = ITEM_TENSOR,
		.dots = NAME_DOTS_SPLIT,
		.prefix = prefix,
		.prefix_size = size,
	};

	return tree_list(&folder, list_one, (void *)(uintptr_t)&folder);
}

/* The packs that are counted are two or three folders deep. */
static int list_one(void *context, const char *text, size_t size, bool is_folder,
		    const char *component, size_t component_size,
		    const struct entry *entry, uint64_t id)
{
	const struct folder *folder = context;
	size_t below = folder->prefix_size + component_size + 1;
	char *prefix;
	int error = 0;

	(void)entry;
	(void)id;
	prefix = malloc(below);
	if (!prefix)
		return -1;
	if (folder->prefix_size)
		memcpy(prefix, folder->prefix, folder->prefix_size);
	if (is_folder) {
		memcpy(prefix + folder->prefix_size, component, component_size);
		prefix[below - 1] = '.';
		error = list(prefix, below);
		free(prefix);
	} else {
		files[file_count++] = (struct file) { prefix, folder->prefix_size,
						      strndup(text, size) };
	}
	return error;
}

static int parse(const char *path)
{
	struct pack *pack;
	int error = pack_open(path, &pack, NULL);

	if (!error)
		pack_unref(pack);
	return error;
}

static int look_up(void)
{
	for (size_t i = 0; i < file_count; i++) {
		const struct folder folder = {
			.overlay = &mount.overlay,
			.cuts = mount.cuts[ITEM_TENSOR],
			.kind = ITEM_TENSOR,
			.dots = NAME_DOTS_SPLIT,
			.prefix = files[i].prefix,
			.prefix_size = files[i].prefix_size,
		};
		struct resolved found;

		if (tree_resolve(&folder, files[i].text, strlen(files[i].text), &found) ||
		    found.found != FOUND_ENTRY)
			return -1;
		nodes_sweep(&mount.nodes, &mount.overlay);
		if (!nodes_entry(&mount.nodes, &mount.overlay, &found.entry, false))
			return -1;
		resolved_done(&found);
	}
	return 0;
}

static int read_all(void)
{
	for (size_t i = 0; i < overlay_pack_count(&mount.overlay, ITEM_TENSOR); i++) {
		const struct entry entry = { ITEM_TENSOR, i, NULL };
		struct reading reading;
		const struct iovec *iov;
		int count, error;

		reading_init(&reading, 0, READ_SIZE);
		error = content_read(&mount.overlay, &entry, (struct view) { 0 },
				     &reading);
		if (!error)
			error = reading_finish(&reading, &iov, &count);
		reading_done(&reading);
		if (error)
			return error;
	}
	return 0;
}

/* What callgrind collects. */
__attribute__((noinline)) int counted_work(const char *what, const char *path);
int counted_work(const char *what, const char *path)
{
	if (strcmp(what, "parse") == 0)
		return parse(path);
	return strcmp(what, "lookup") == 0 ? look_up() : read_all();
}

int main(int argc, char **argv)
{
	struct pack *pack;

	if (argc != 3 || pack_open(argv[2], &pack, NULL)) {
		fprintf(stderr, "usage: counted parse|lookup|read PACK\n");
		return 2;
	}
	overlay_init(&mount.overlay, pack, false);
	pack_unref(pack);
	files = calloc(overlay_pack_count(&mount.overlay, ITEM_TENSOR) + 1,
		       sizeof(*files));
	if (!files || mount_init(&mount) || list("", 0) ||
	    counted_work(argv[1], argv[2])) {
		fprintf(stderr, "counted: %s: failed\n", argv[2]);
		return 1;
	}
	for (size_t i = 0; i < file_count; i++) {
		free(files[i].prefix);
		free(files[i].text);
	}
	free(files);
	mount_done(&mount);
	return 0;
}
