/*
 * collect.c - see collect.h.
 *
 * Order of the data: what the pack had, in the pack's own order whatever was
 * renamed or rewritten, then what was made, in the order of making.
 */
#include "collect.h"
#include "base.h"
#include "error.h"
#include "npy_draft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct bpk_error *error)
{
	return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET, "no memory");
}

struct source {
	struct entry entry;
	uint64_t order;
	uint64_t end; /* in the pack: what is empty lies before what begins there too */
};

static int by_order(const void *a, const void *b)
{
	const struct source *x = a, *y = b;
	bool x_new = x->entry.base == NO_BASE, y_new = y->entry.base == NO_BASE;

	if (x_new != y_new)
		return x_new - y_new;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->entry.base < y->entry.base ? -1 : x->entry.base > y->entry.base;
}

static void leave_out(struct collected *collected, const struct item *item)
{
	char quoted[BPK_QUOTE_SIZE];
	size_t at = strlen(collected->left_out);

	collected->left_out_count++;
	snprintf(collected->left_out + at, sizeof(collected->left_out) - at, "%s%s",
		 at ? ", " : "", bpk_quote(quoted, item->name, item->name_size));
}

static int add_base_tensor(struct collected *collected, struct bpk_writer *writer,
			   const struct source *source, struct bpk_error *error)
{
	const struct bpk_reader *reader = collected->overlay->reader;
	const struct bpk_tensor *tensor = bpk_reader_tensor(reader, source->entry.base);
	struct bpk_tensor_desc desc;
	uint64_t *shape;
	int result;

	shape = reallocarray(NULL, bpk_tensor_rank(tensor) + 1, sizeof(*shape));
	if (!shape)
		return no_memory(error);
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

/* The writer would notice, too, and not know where the bytes were. */
static int check_staged(const struct item *item, struct bpk_error *error)
{
	const struct staged *staged = item->staged;
	char quoted[BPK_QUOTE_SIZE];
	uint64_t there;

	if (staged_is_whole(staged, &there))
		return 0;
	return bpk_fail(error, -EIO, BPK_ERR_IO, BPK_NO_OFFSET,
			"tensor %s has lost bytes: of %" PRIu64 " there are %" PRIu64
			" left in the staged file %" PRIu64
			"; write the tensor anew, or remove it",
			bpk_quote(quoted, item->name, item->name_size), staged->size,
			there, staged->number);
}

/* One with bytes or a description of its own. */
static int add_edited_tensor(struct collected *collected, struct bpk_writer *writer,
			     const struct item *item, struct bpk_error *error)
{
	uint64_t size = item_data_size(collected->overlay, item), length, off = 0;
	const struct bpk_reader *reader = collected->overlay->reader;
	int fd = item->staged ? item->staged->fd : bpk_reader_fd(reader);
	struct bpk_tensor_desc desc = {
		.name = item->name,
		.name_size = item->name_size,
		.dtype = item->dtype,
		.dtype_cbor = item->dtype_cbor,
		.dtype_cbor_size = item->dtype_cbor_size,
		.has_param_id = item->has_param_id,
		.param_id = item->param_id,
	};
	int result;

	item_shape(collected->overlay, item, &length, &desc.shape, &desc.rank);
	if (item->described != NO_BASE)
		desc.extra = bpk_tensor_extra(
			bpk_reader_tensor(collected->overlay->reader, item->described),
			&desc.extra_size, &desc.extra_count);
	if (!item->staged) {
		off = bpk_tensor_off(bpk_reader_tensor(reader, item->base));
	} else {
		result = check_staged(item, error);
		if (result)
			return result;
		if (bpk_grow((void **)&collected->sources, &collected->source_capacity,
			     collected->source_count + 1, sizeof(*collected->sources)))
			return no_memory(error);
		collected->sources[collected->source_count++] = staged_ref(item->staged);
		item->staged->frozen++;
	}
	bpk_writer_allow_odd_sizes(writer, item->described != NO_BASE);
	return bpk_writer_add_range(writer, &desc, fd, off, size, error);
}

/* @entry goes into the pack; within a kind in name order. */
static int freeze(struct collected *collected, const struct entry *entry,
		  struct bpk_error *error)
{
	if (frozen_add(&collected->frozen, collected->overlay, entry))
		return no_memory(error);
	return 0;
}

static int add_tensors(struct collected *collected, struct bpk_writer *writer,
		       struct bpk_error *error)
{
	const struct overlay *overlay = collected->overlay;
	size_t capacity = overlay->live[ITEM_TENSOR], count = 0;
	struct source *sources = reallocarray(NULL, capacity + 1, sizeof(*sources));
	struct entry entry;
	int result = 0;

	if (!sources)
		return no_memory(error);
	for (bool more = overlay_seek(overlay, ITEM_TENSOR, "", 0, &entry);
	     more && count < capacity && !result;
	     more = overlay_next(overlay, &entry, &entry)) {
		struct source *source = &sources[count];
		const struct item *item = entry.item;

		/* Of what was only touched in npy/ there is nothing to leave out. */
		if (item && overlay_invalid(overlay, item) &&
		    (npy_draft_pending(item->draft) || !item_is_hollow(item)))
			leave_out(collected, item);
		if (entry.base == NO_BASE && !item_data_valid(overlay, item))
			continue;
		count++;
		result = freeze(collected, &entry, error);
		source->entry = entry;
		source->order = entry.item ? entry.item->order : 0;
		source->end = 0;
		if (entry.base != NO_BASE) {
			const struct bpk_tensor *tensor =
				bpk_reader_tensor(collected->overlay->reader, entry.base);

			source->order = bpk_tensor_off(tensor);
			source->end = source->order + bpk_tensor_size(tensor);
		}
	}
	qsort(sources, count, sizeof(*sources), by_order);
	for (size_t i = 0; i < count && !result; i++) {
		const struct item *item = sources[i].entry.item;

		if (item && item_data_valid(overlay, item))
			result = add_edited_tensor(collected, writer, item, error);
		else
			result = add_base_tensor(collected, writer, &sources[i], error);
	}
	free(sources);
	return result;
}

static int add_scalars(struct collected *collected, struct bpk_writer *writer,
		       struct bpk_error *error)
{
	const struct overlay *overlay = collected->overlay;
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
			leave_out(collected, entry.item);
		if (entry.item && !entry.item->has_value)
			continue;
		value = entry.item ? entry.item->value
				   : bpk_scalar_value(bpk_reader_scalar(
					     collected->overlay->reader, entry.base));
		result = freeze(collected, &entry, error);
		if (!result)
			result = bpk_writer_set_scalar(writer, name, size, value, error);
	}
	return result;
}

static int add_metadata(struct collected *collected, struct bpk_writer *writer,
			struct bpk_error *error)
{
	const struct overlay *overlay = collected->overlay;
	struct entry entry;
	int result = 0;

	for (bool more = overlay_seek(overlay, ITEM_METADATA, "", 0, &entry);
	     more && !result; more = overlay_next(overlay, &entry, &entry)) {
		size_t size, value_size;
		const char *name = entry_name(overlay, &entry, &size), *value;

		if (entry.item) {
			if (overlay_invalid(overlay, entry.item))
				leave_out(collected, entry.item);
			value = entry.item->text->data;
			value_size = entry.item->text->size;
		} else {
			value = bpk_metadata_value(
				bpk_reader_metadata(collected->overlay->reader,
						    entry.base),
				&value_size);
		}
		result = freeze(collected, &entry, error);
		if (!result)
			result = bpk_writer_set_metadata(writer, name, size, value,
							 value_size, error);
	}
	return result;
}

int collect_overlay(struct collected *collected, struct overlay *overlay,
		    struct bpk_writer *writer, struct bpk_error *error)
{
	size_t size, count;
	const void *extra = bpk_reader_extra(overlay->reader, &size, &count);
	int result;

	collected->overlay = overlay;
	collected->frozen.stamp = overlay->stamp;
	result = add_tensors(collected, writer, error);
	if (!result)
		result = add_scalars(collected, writer, error);
	if (!result)
		result = add_metadata(collected, writer, error);
	if (!result && extra)
		result = bpk_writer_set_extra(writer, extra, size, count, error);
	return result;
}

void collected_release(struct collected *collected)
{
	for (size_t i = 0; i < collected->source_count; i++)
		collected->sources[i]->frozen--;
	frozen_done(&collected->frozen, collected->overlay);
}

void collected_done(struct collected *collected)
{
	for (size_t i = 0; i < collected->source_count; i++)
		staged_unref(collected->sources[i]);
	free(collected->sources);
}
