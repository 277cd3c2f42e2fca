/*
 * content.c - see content.h.
 */
#include "content.h"
#include "npy_draft.h"
#include "scalar_text.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A text in two pieces: a value, and the newline behind it. */
struct text {
	const char *data;
	size_t size;
	bool newline;
	char scalar[SCALAR_TEXT_BUFFER];
};

static void text_of_scalar(struct text *text, struct bpk_scalar_value value)
{
	text->size = scalar_format(value, text->scalar);
	text->data = text->scalar;
	text->newline = true;
}

static void text_of(const struct overlay *overlay, const struct entry *entry, bool writer,
		    struct text *text)
{
	const struct item *item = entry->item;

	*text = (struct text) { .data = "" };
	if (item && item->pending.active && (writer || !item->pending.refused)) {
		text->data = item->pending.data;
		text->size = item->pending.size;
	} else if (entry->kind == ITEM_SCALAR) {
		if (!item)
			text_of_scalar(text, bpk_scalar_value(bpk_reader_scalar(
						     overlay->reader, entry->base)));
		else if (item->has_value)
			text_of_scalar(text, item->value);
	} else if (!item) {
		text->data = bpk_metadata_value(
			bpk_reader_metadata(overlay->reader, entry->base), &text->size);
		text->newline = true;
	} else if (item->has_value) {
		text->data = item->text->data;
		text->size = item->text->size;
		text->newline = true;
	}
}

bool content_is_text(const struct entry *entry)
{
	return entry->kind == ITEM_SCALAR || entry->kind == ITEM_METADATA;
}

/* A .npy file that is being written, or was made and never written. */
static bool is_unmade_npy(const struct entry *entry, struct view view)
{
	const struct item *item = entry->item;

	return view.npy && entry->kind == ITEM_TENSOR && item &&
	       (item->draft ? !item->draft->settled : item_is_hollow(item));
}

/* As the writer of the file spelled it, as long as there is one. */
static uint64_t npy_head_size(const struct entry *entry, const struct tensor *tensor)
{
	if (entry->item && entry->item->draft)
		return entry->item->draft->head_size;
	return bpk_npy_render_size(tensor->dtype, tensor->shape, tensor->rank,
				   tensor->size);
}

int content_size(const struct overlay *overlay, const struct entry *entry,
		 struct view view, uint64_t *ret_size)
{
	struct tensor tensor = { 0 };
	struct text text;
	int error = 0;

	if (content_is_text(entry)) {
		text_of(overlay, entry, view.writer, &text);
		*ret_size = text.size + text.newline;
	} else if (is_unmade_npy(entry, view)) {
		*ret_size = entry->item->draft ? npy_draft_size(entry->item->draft) : 0;
	} else if (entry->kind == ITEM_TENSOR && view.npy) {
		error = tensor_get(overlay, entry, &tensor);
		if (!error)
			*ret_size = npy_head_size(entry, &tensor) + tensor.size;
		tensor_done(&tensor);
	} else if (entry->item) {
		*ret_size = item_data_size(overlay, entry->item);
	} else {
		*ret_size =
			bpk_tensor_size(bpk_reader_tensor(overlay->reader, entry->base));
	}
	return error;
}

static int read_text(const struct overlay *overlay, const struct entry *entry,
		     struct view view, struct reading *reading)
{
	struct text text;
	int error;

	text_of(overlay, entry, view.writer, &text);
	error = reading_add_text(reading, text.data, text.size);
	if (!error && text.newline)
		error = reading_add_text(reading, "\n", 1);
	return error;
}

static int read_npy_header(const struct entry *entry, const struct tensor *tensor,
			   struct reading *reading)
{
	char *header;
	size_t size;
	int error;

	if (entry->item && entry->item->draft)
		return reading_add_text(reading, entry->item->draft->head,
					entry->item->draft->head_size);
	error = bpk_npy_render(tensor->dtype, tensor->shape, tensor->rank, tensor->size,
			       &header, &size);
	if (error)
		return error;
	error = reading_add_text(reading, header, size);
	free(header);
	return error;
}

int content_read(const struct overlay *overlay, const struct entry *entry,
		 struct view view, struct reading *reading)
{
	struct tensor tensor = { 0 };
	int error;

	if (content_is_text(entry))
		return read_text(overlay, entry, view, reading);
	if (entry->kind == ITEM_SCRATCH)
		return reading_add_staged(reading, entry->item->staged,
					  staged_size(entry->item->staged));
	if (is_unmade_npy(entry, view))
		return entry->item->draft ? npy_draft_read(entry->item->draft, reading)
					  : 0;
	error = tensor_get(overlay, entry, &tensor);
	if (!error && view.npy)
		error = read_npy_header(entry, &tensor, reading);
	if (!error && tensor.staged)
		error = reading_add_staged(reading, tensor.staged, tensor.size);
	else if (!error)
		error = reading_add_pack(reading, tensor.pack, tensor.data, tensor.off,
					 tensor.size);
	tensor_done(&tensor);
	return error;
}

int content_text(const struct overlay *overlay, const struct entry *entry,
		 struct view view, char **ret_text, size_t *ret_size)
{
	struct text text;
	char *whole;

	text_of(overlay, entry, view.writer, &text);
	whole = malloc(text.size + 1);
	if (!whole)
		return -ENOMEM;
	if (text.size)
		memcpy(whole, text.data, text.size);
	if (text.newline)
		whole[text.size] = '\n';
	*ret_text = whole;
	*ret_size = text.size + text.newline;
	return 0;
}
