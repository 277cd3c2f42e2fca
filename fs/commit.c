/*
 * commit.c - see commit.h.
 *
 * Order of the data: what the pack had, in the pack's own order whatever was
 * renamed or rewritten, then what was made, in the order of making.
 */
#include "commit.h"
#include "describe.h"
#include "edit.h"
#include "error.h"
#include "scalar_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct commit {
	struct mount *mount;
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	bool changed; /* the pack is another file now */
	char left_out[512];
	size_t left_out_count;
};

struct source {
	struct entry entry;
	uint64_t order;
};

static int by_order(const void *a, const void *b)
{
	const struct source *x = a, *y = b;
	bool x_new = x->entry.base == NO_BASE, y_new = y->entry.base == NO_BASE;

	if (x_new != y_new)
		return x_new - y_new;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->entry.base < y->entry.base ? -1 : x->entry.base > y->entry.base;
}

static void leave_out(struct commit *commit, const struct item *item)
{
	char quoted[BPK_QUOTE_SIZE];
	size_t at = strlen(commit->left_out);

	commit->left_out_count++;
	snprintf(commit->left_out + at, sizeof(commit->left_out) - at, "%s%s",
		 at ? ", " : "", bpk_quote(quoted, item->name, item->name_size));
}

static int add_base_tensor(struct commit *commit, struct bpk_writer *writer,
			   const struct source *source, struct bpk_error *error)
{
	const struct bpk_reader *reader = commit->mount->overlay.reader;
	const struct bpk_tensor *tensor = bpk_reader_tensor(reader, source->entry.base);
	struct bpk_tensor_desc desc;
	uint64_t *shape;
	int result;

	shape = reallocarray(NULL, bpk_tensor_rank(tensor) + 1, sizeof(*shape));
	if (!shape)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory");
	bpk_tensor_describe(tensor, shape, &desc);
	if (source->entry.item) {
		desc.name = source->entry.item->name;
		desc.name_size = source->entry.item->name_size;
	}
	bpk_writer_allow_odd_sizes(writer, true);
	result = bpk_writer_add_range(writer, &desc, bpk_reader_fd(reader),
				      bpk_tensor_off(tensor), bpk_tensor_size(tensor),
				      error);
	free(shape);
	return result;
}

static int add_staged_tensor(struct commit *commit, struct bpk_writer *writer,
			     const struct item *item, struct bpk_error *error)
{
	uint64_t size = item_data_size(&commit->mount->overlay, item);
	struct bpk_tensor_desc desc = {
		.name = item->name,
		.name_size = item->name_size,
		.dtype = item->dtype,
		.dtype_cbor = item->dtype_cbor,
		.dtype_cbor_size = item->dtype_cbor_size,
		.shape = item->shape_follows ? &size : item->shape,
		.rank = item->shape_follows ? 1 : item->rank,
		.has_param_id = item->has_param_id,
		.param_id = item->param_id,
	};

	if (item->described != NO_BASE)
		desc.extra = bpk_tensor_extra(
			bpk_reader_tensor(commit->mount->overlay.reader, item->described),
			&desc.extra_size, &desc.extra_count);
	bpk_writer_allow_odd_sizes(writer, item->described != NO_BASE);
	return bpk_writer_add_range(writer, &desc, item->staged->fd, 0, size, error);
}

static int add_tensors(struct commit *commit, struct bpk_writer *writer,
		       struct bpk_error *error)
{
	const struct overlay *overlay = &commit->mount->overlay;
	size_t capacity = overlay->live[ITEM_TENSOR], count = 0;
	struct source *sources = reallocarray(NULL, capacity + 1, sizeof(*sources));
	struct entry entry;
	int result = 0;

	if (!sources)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory");
	for (bool more = overlay_seek(overlay, ITEM_TENSOR, "", 0, &entry);
	     more && count < capacity; more = overlay_next(overlay, &entry, &entry)) {
		struct source *source = &sources[count++];

		source->entry = entry;
		source->order =
			entry.base != NO_BASE
				? bpk_tensor_off(bpk_reader_tensor(
					  commit->mount->overlay.reader, entry.base))
				: entry.item->order;
	}
	qsort(sources, count, sizeof(*sources), by_order);
	for (size_t i = 0; i < count && !result; i++) {
		const struct item *item = sources[i].entry.item;

		if (item && item->staged && item_data_valid(overlay, item)) {
			result = add_staged_tensor(commit, writer, item, error);
			continue;
		}
		if (item && item->staged)
			leave_out(commit, item);
		if (sources[i].entry.base != NO_BASE)
			result = add_base_tensor(commit, writer, &sources[i], error);
	}
	free(sources);
	return result;
}

static int add_scalars(struct commit *commit, struct bpk_writer *writer,
		       struct bpk_error *error)
{
	const struct overlay *overlay = &commit->mount->overlay;
	struct entry entry;
	int result = 0;

	for (bool more = overlay_seek(overlay, ITEM_SCALAR, "", 0, &entry);
	     more && !result; more = overlay_next(overlay, &entry, &entry)) {
		struct bpk_scalar_value value;
		size_t size;
		const char *name = entry_name(overlay, &entry, &size);

		/* One that was only touched has no value to leave out. */
		if (entry.item && entry.item->pending.active &&
		    !entry.item->pending.refused)
			leave_out(commit, entry.item);
		if (entry.item && !entry.item->has_value)
			continue;
		value = entry.item ? entry.item->value
				   : bpk_scalar_value(bpk_reader_scalar(
					     commit->mount->overlay.reader, entry.base));
		result = bpk_writer_set_scalar(writer, name, size, value, error);
	}
	return result;
}

static int add_metadata(struct commit *commit, struct bpk_writer *writer,
			struct bpk_error *error)
{
	const struct overlay *overlay = &commit->mount->overlay;
	struct entry entry;
	int result = 0;

	for (bool more = overlay_seek(overlay, ITEM_METADATA, "", 0, &entry);
	     more && !result; more = overlay_next(overlay, &entry, &entry)) {
		size_t size, value_size;
		const char *name = entry_name(overlay, &entry, &size), *value;

		if (entry.item) {
			if (overlay_invalid(overlay, entry.item))
				leave_out(commit, entry.item);
			value = entry.item->text->data;
			value_size = entry.item->text->size;
		} else {
			value = bpk_metadata_value(
				bpk_reader_metadata(commit->mount->overlay.reader,
						    entry.base),
				&value_size);
		}
		result = bpk_writer_set_metadata(writer, name, size, value, value_size,
						 error);
	}
	return result;
}

static int still_the_same(void *context, int fd)
{
	struct commit *commit = context;
	struct stat now;

	(void)fd;
	if (stat(commit->mount->pack_path, &now) == 0 &&
	    pack_is(commit->mount->overlay.pack, &now))
		return 0;
	commit->changed = true;
	return -ESTALE;
}

static int pass_progress(void *context, uint64_t done, uint64_t total)
{
	struct commit *commit = context;

	return commit->progress ? commit->progress(commit->context, done, total) : 0;
}

static int write_pack(struct commit *commit, struct bpk_error *error)
{
	const struct bpk_write_options options = {
		.progress = pass_progress,
		.confirm = still_the_same,
		.context = commit,
	};
	struct bpk_writer *writer;
	const void *extra;
	size_t size, count;
	int result = bpk_writer_new(NULL, &writer);

	if (result)
		return bpk_fail(error, result, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory");
	result = add_tensors(commit, writer, error);
	if (!result)
		result = add_scalars(commit, writer, error);
	if (!result)
		result = add_metadata(commit, writer, error);
	extra = bpk_reader_extra(commit->mount->overlay.reader, &size, &count);
	if (!result && extra)
		result = bpk_writer_set_extra(writer, extra, size, count, error);
	if (!result)
		result = bpk_writer_write_file(writer, commit->mount->pack_path, &options,
					       error);
	bpk_writer_free(writer);
	return result;
}

/*
 * Say beside the staged data what it is: a list that a person can act on. The
 * next writable mount finds it and does not start over it.
 */
/* Every value, and which staged file holds which tensor. */
static int print_value(void *context, const struct item *item, enum change change)
{
	FILE *out = context;
	char text[SCALAR_TEXT_BUFFER], quoted[BPK_QUOTE_SIZE];

	if (change == CHANGE_REMOVED || !item->linked)
		return 0;
	bpk_quote(quoted, item->name, item->name_size);
	if (item->kind == ITEM_SCALAR && item->has_value) {
		scalar_format(item->value, text);
		fprintf(out, "scalar %s = %s\n", quoted, text);
	} else if (item->kind == ITEM_METADATA && item->has_value) {
		fprintf(out, "metadata %s, %zu bytes:\n", quoted, item->text->size);
		fwrite(item->text->data, 1, item->text->size, out);
		putc(0x0a, out);
	} else if (item->staged) {
		fprintf(out, "tensor %s = file %s\n", quoted, item->staged->name);
	}
	return 0;
}

static int keep_edits(const struct mount *mount)
{
	size_t size;
	char *text = describe_changes(mount, &size);
	int fd = openat(mount->staging.dir_fd, STAGING_RESERVE,
			O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int result = -EIO;

	if (out && text) {
		fwrite(text, 1, size, out);
		result = overlay_each_change(&mount->overlay, print_value, out);
		if (fflush(out) != 0 || ftruncate(fd, ftello(out)) < 0 || fsync(fd) < 0 ||
		    renameat(mount->staging.dir_fd, STAGING_RESERVE,
			     mount->staging.dir_fd, STAGING_KEPT) < 0 ||
		    fsync(mount->staging.dir_fd) < 0)
			result = -errno;
	}
	free(text);
	if (out)
		fclose(out);
	else if (fd >= 0)
		close(fd);
	return result;
}

void commit_at_unmount(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context)
{
	struct commit commit = { .mount = mount,
				 .progress = progress,
				 .context = context };
	struct bpk_error error = { .message = "" };
	const char *why = error.message;

	mount->result = STATUS_OK;
	mount->message[0] = '\0';
	if (mount->writable)
		edit_settle(mount);
	if (!mount->writable || !overlay_dirty(&mount->overlay))
		return;
	if (still_the_same(&commit, -1) || write_pack(&commit, &error)) {
		int kept = keep_edits(mount);

		mount->result =
			commit.changed ? STATUS_PACK_CHANGED : STATUS_COMMIT_FAILED;
		if (commit.changed)
			why = "the pack changed on disk since it was mounted, nothing "
			      "was "
			      "overwritten";
		snprintf(mount->message, sizeof(mount->message),
			 "%s: not committed: %s; %s %s", mount->pack_path, why,
			 kept ? "the list of edits could not be kept, staged bytes are in"
			      : "the edits are kept in",
			 mount->staging.path);
		return;
	}
	if (commit.left_out_count) {
		mount->result = STATUS_INVALID_LEFT_OUT;
		snprintf(mount->message, sizeof(mount->message),
			 "%s: committed, but %zu invalid edit%s left out: %s",
			 mount->pack_path, commit.left_out_count,
			 commit.left_out_count == 1 ? " was" : "s were", commit.left_out);
	}
}
