/*
 * content.c - see content.h.
 */
#include "content.h"
#include "scalar_text.h"
#include "staging.h"

#include <string.h>

/* A text in two pieces: a value, and the newline behind it. */
struct view {
	const char *data;
	size_t size;
	bool newline;
	char scalar[SCALAR_TEXT_BUFFER];
};

static void view_scalar(struct view *view, struct bpk_scalar_value value)
{
	view->size = scalar_format(value, view->scalar);
	view->data = view->scalar;
	view->newline = true;
}

static void view_of(const struct overlay *overlay, const struct entry *entry, bool writer,
		    struct view *view)
{
	const struct item *item = entry->item;

	*view = (struct view) { .data = "" };
	if (item && item->pending.active && (writer || !item->pending.refused)) {
		view->data = item->pending.data;
		view->size = item->pending.size;
	} else if (entry->kind == ITEM_SCALAR) {
		if (!item)
			view_scalar(view, bpk_scalar_value(bpk_reader_scalar(
						  overlay->reader, entry->base)));
		else if (item->has_value)
			view_scalar(view, item->value);
	} else if (!item) {
		view->data = bpk_metadata_value(
			bpk_reader_metadata(overlay->reader, entry->base), &view->size);
		view->newline = true;
	} else if (item->has_value) {
		view->data = item->text->data;
		view->size = item->text->size;
		view->newline = true;
	}
}

bool content_is_text(const struct entry *entry)
{
	return entry->kind == ITEM_SCALAR || entry->kind == ITEM_METADATA;
}

uint64_t content_size(const struct overlay *overlay, const struct entry *entry,
		      bool writer)
{
	struct view view;

	if (!content_is_text(entry)) {
		if (entry->item)
			return item_data_size(overlay, entry->item);
		return bpk_tensor_size(bpk_reader_tensor(overlay->reader, entry->base));
	}
	view_of(overlay, entry, writer, &view);
	return view.size + view.newline;
}

size_t content_text(const struct overlay *overlay, const struct entry *entry, bool writer,
		    uint64_t off, size_t size, char *buffer)
{
	struct view view;
	size_t done = 0;

	view_of(overlay, entry, writer, &view);
	if (off < view.size) {
		done = view.size - off < size ? view.size - (size_t)off : size;
		memcpy(buffer, view.data + off, done);
	}
	if (view.newline && done < size && off <= view.size)
		buffer[done++] = '\n';
	return done;
}

void content_data(const struct overlay *overlay, const struct entry *entry,
		  struct staged **ret_staged, const char **ret_data, uint64_t *ret_size)
{
	const struct bpk_tensor *tensor;

	*ret_staged = NULL;
	*ret_data = NULL;
	*ret_size = 0;
	if (entry->item && entry->item->staged) {
		*ret_staged = staged_ref(entry->item->staged);
		*ret_size = staged_size(*ret_staged);
		return;
	}
	if (entry->kind != ITEM_TENSOR || entry->base == NO_BASE)
		return;
	tensor = bpk_reader_tensor(overlay->reader, entry->base);
	*ret_data = bpk_tensor_data(overlay->reader, tensor);
	*ret_size = bpk_tensor_size(tensor);
}
