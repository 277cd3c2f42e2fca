/*
 * rendered.c - see rendered.h.
 */
#include "rendered.h"
#include "base.h"
#include "convert/safetensors.h"
#include "pack_text.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of a tensor: staged (owned reference), or in the pack. */
struct part {
	struct staged *staged;
	const char *data; /* in the mapping, never followed */
	uint64_t off;
};

static void drop_text(struct rendered *rendered)
{
	for (size_t i = 0; rendered->parts && i < rendered->part_count; i++)
		staged_unref(rendered->parts[i].staged);
	free(rendered->parts);
	free(rendered->offs);
	free(rendered->text);
	pack_unref(rendered->pack);
	rendered->pack = NULL;
	rendered->parts = NULL;
	rendered->offs = NULL;
	rendered->part_count = 0;
	rendered->text = NULL;
	rendered->text_size = 0;
}

/* pack.safetensors --------------------------------------------------------- */

/* What the layout asks for by number. */
struct source {
	const struct overlay *overlay;
	struct entry *tensors;
	struct entry *pairs;
	struct tensor tensor;
};

static int describe(void *context, size_t index, struct bpk_safetensors_desc *ret_desc)
{
	struct source *source = context;
	struct tensor *tensor = &source->tensor;
	int error = tensor_get(source->overlay, &source->tensors[index], tensor);

	if (error)
		return error;
	*ret_desc = (struct bpk_safetensors_desc) {
		.name = tensor->name,
		.name_size = tensor->name_size,
		.dtype = tensor->dtype,
		.shape = tensor->shape,
		.rank = tensor->rank,
		.size = tensor->size,
		/* As they lie in the pack; what is staged comes behind. */
		.order = tensor_in_pack(tensor) ? tensor->off : UINT64_MAX,
	};
	if (tensor->dtype != BPK_DTYPE_QFLOAT)
		return 0;
	ret_desc->dtype_text = tensor_dtype_text(tensor, &ret_desc->dtype_text_size);
	return ret_desc->dtype_text ? 0 : -ENOMEM;
}

static int pair(void *context, size_t index, struct bpk_safetensors_pair *ret_pair)
{
	struct source *source = context;
	const struct entry *entry = &source->pairs[index];

	ret_pair->key = entry_name(source->overlay, entry, &ret_pair->key_size);
	if (entry->item) {
		ret_pair->value = entry->item->text->data;
		ret_pair->value_size = entry->item->text->size;
	} else {
		ret_pair->value = bpk_metadata_value(
			bpk_reader_metadata(source->overlay->reader, entry->base),
			&ret_pair->value_size);
	}
	return 0;
}

static int collect(const struct overlay *overlay, enum item_kind kind,
		   struct entry **ret_entries, size_t *ret_count)
{
	size_t count = 0, capacity = 0;
	struct entry entry, *entries = NULL;
	bool more = overlay_seek(overlay, kind, "", 0, &entry);

	for (; more; more = overlay_next(overlay, &entry, &entry)) {
		if (!entry_counts(&entry))
			continue;
		if (bpk_grow((void **)&entries, &capacity, count + 1, sizeof(*entries))) {
			free(entries);
			return -ENOMEM;
		}
		entries[count++] = entry;
	}
	*ret_entries = entries;
	*ret_count = count;
	return 0;
}

/* The tensors' bytes in the order of the layout. */
static int name_parts(struct rendered *rendered, struct source *source,
		      const struct bpk_safetensors *layout)
{
	rendered->pack = pack_ref(source->overlay->pack);
	rendered->parts = calloc(layout->count + 1, sizeof(*rendered->parts));
	rendered->offs = calloc(layout->count + 1, sizeof(*rendered->offs));
	if (!rendered->parts || !rendered->offs)
		return -ENOMEM;
	for (size_t i = 0; i < layout->count; i++) {
		struct part *part = &rendered->parts[i];
		int error =
			tensor_get(source->overlay, &source->tensors[layout->order[i]],
				   &source->tensor);

		if (error)
			return error;
		rendered->part_count = i + 1;
		rendered->offs[i] = layout->offs[i];
		if (source->tensor.staged)
			part->staged = staged_ref(source->tensor.staged);
		part->data = source->tensor.data;
		part->off = source->tensor.off;
	}
	rendered->offs[layout->count] = layout->data_size;
	return 0;
}

static int render_safetensors(struct rendered *rendered, const struct overlay *overlay)
{
	struct source source = { .overlay = overlay };
	struct bpk_safetensors_source ask = { .describe = describe,
					      .pair = pair,
					      .context = &source };
	struct bpk_safetensors *layout = NULL;
	int error = collect(overlay, ITEM_TENSOR, &source.tensors, &ask.tensor_count);

	if (!error)
		error = collect(overlay, ITEM_METADATA, &source.pairs, &ask.pair_count);
	if (!error)
		error = bpk_safetensors_render(&ask, &layout, NULL);
	if (!error)
		error = name_parts(rendered, &source, layout);
	if (!error) {
		rendered->text = layout->header;
		rendered->text_size = layout->header_size;
		layout->header = NULL;
	}
	bpk_safetensors_free(layout);
	tensor_done(&source.tensor);
	free(source.tensors);
	free(source.pairs);
	return error;
}

/* Rendering ---------------------------------------------------------------- */

static int render(struct rendered *rendered, const struct overlay *overlay)
{
	int error = 0;

	switch (rendered->kind) {
	case RENDERED_INDEX:
		rendered->text = pack_text_index(overlay, &rendered->text_size);
		break;
	case RENDERED_JSON:
		rendered->text = pack_text_json(overlay, &rendered->text_size);
		break;
	case RENDERED_SAFETENSORS:
	default:
		error = render_safetensors(rendered, overlay);
		break;
	}
	if (!error && !rendered->text)
		error = -ENOMEM;
	if (!error &&
	    !bpk_add_u64(rendered->text_size,
			 rendered->part_count ? rendered->offs[rendered->part_count] : 0,
			 &rendered->size))
		error = -EFBIG;
	if (error)
		drop_text(rendered);
	return error;
}

int rendered_new(const struct overlay *overlay, enum rendered_kind kind, uint64_t id,
		 uint64_t edits, struct timespec mtime, struct rendered **ret_rendered)
{
	struct rendered *rendered = calloc(1, sizeof(*rendered));
	int error;

	if (!rendered)
		return -ENOMEM;
	rendered->refs = 1;
	rendered->id = id;
	rendered->kind = kind;
	rendered->edits = edits;
	rendered->mtime = mtime;
	error = render(rendered, overlay);
	if (error) {
		free(rendered);
		return error;
	}
	drop_text(rendered);
	*ret_rendered = rendered;
	return 0;
}

struct rendered *rendered_ref(struct rendered *rendered)
{
	rendered->refs++;
	return rendered;
}

void rendered_unref(struct rendered *rendered)
{
	if (!rendered || --rendered->refs)
		return;
	drop_text(rendered);
	free(rendered);
}

int rendered_open(struct rendered *rendered, const struct overlay *overlay,
		  uint64_t edits)
{
	int error = 0;

	if (!rendered->text)
		error = edits == rendered->edits ? render(rendered, overlay) : -ESTALE;
	if (!error)
		rendered->opens++;
	return error;
}

void rendered_close(struct rendered *rendered)
{
	if (!--rendered->opens)
		drop_text(rendered);
}

/* The last part that starts at or before @off. */
static size_t find_part(const struct rendered *rendered, uint64_t off)
{
	size_t low = 0, high = rendered->part_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (rendered->offs[middle] <= off)
			low = middle;
		else
			high = middle;
	}
	return low;
}

int rendered_read(const struct rendered *rendered, struct reading *reading)
{
	int error = reading_add_text(reading, rendered->text, rendered->text_size);
	size_t i = 0;

	if (reading->off > rendered->text_size && rendered->part_count) {
		i = find_part(rendered, reading->off - rendered->text_size);
		reading->at += rendered->offs[i];
	}
	for (; i < rendered->part_count && !error && !reading_full(reading); i++) {
		const struct part *part = &rendered->parts[i];
		uint64_t size = rendered->offs[i + 1] - rendered->offs[i];

		error = part->staged ? reading_add_staged(reading, part->staged, size)
				     : reading_add_pack(reading, rendered->pack,
							part->data, part->off, size);
	}
	return error;
}
