/*
 * npy_draft.c - see npy_draft.h.
 */
#include "npy_draft.h"
#include "base.h"
#include "npy_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* From so many bytes bpk_npy_needed() tells how long any header is. */
#define TELLING_SIZE 12

struct npy_draft *npy_draft_new(void)
{
	return calloc(1, sizeof(struct npy_draft));
}

struct npy_draft *npy_draft_of(const char *head, size_t head_size, struct staged *staged)
{
	struct npy_draft *draft = npy_draft_new();
	void *copy = malloc(head_size ? head_size : 1);

	if (!draft || !copy) {
		free(copy);
		free(draft);
		return NULL;
	}
	memcpy(copy, head, head_size);
	draft->head = copy;
	draft->head_size = draft->head_capacity = draft->split = head_size;
	draft->split_known = true;
	draft->staged = staged;
	return draft;
}

void npy_draft_free(struct npy_draft *draft)
{
	if (!draft)
		return;
	if (draft->given) {
		free(draft->given->dtype_cbor);
		free(draft->given->shape);
		free(draft->given);
	}
	staged_unref(draft->staged);
	free(draft->head);
	free(draft);
}

uint64_t npy_draft_size(const struct npy_draft *draft)
{
	uint64_t size = draft->staged ? staged_size(draft->staged) : 0;

	return size ? draft->split + size : draft->head_size;
}

/* Writing ------------------------------------------------------------------ */

static int resize_head(struct npy_draft *draft, size_t size)
{
	int error = bpk_grow((void **)&draft->head, &draft->head_capacity, size, 1);

	if (error)
		return error;
	if (size > draft->head_size)
		memset(draft->head + draft->head_size, 0, size - draft->head_size);
	draft->head_size = size;
	return 0;
}

/* From now on the staged file holds what is behind @split. */
static int split_at(struct npy_draft *draft, struct staging *staging, size_t split)
{
	int error = draft->staged ? 0 : staged_new(staging, &draft->staged);

	if (!error && draft->head_size > split)
		error = staged_write(draft->staged, draft->head + split,
				     draft->head_size - split, 0);
	if (error)
		return error;
	if (draft->head_size > split)
		draft->head_size = split;
	draft->split = split;
	draft->split_known = true;
	return 0;
}

/* Where does the header end? Not yet known, or nowhere: what is no .npy file lies in
 * the staged file as a whole, so that the head never grows beyond a header. */
static int find_split(struct npy_draft *draft, struct staging *staging)
{
	size_t needed;

	if (bpk_npy_needed(draft->head, draft->head_size, &needed, NULL) < 0)
		return split_at(draft, staging, 0);
	return draft->head_size < TELLING_SIZE ? 0 : split_at(draft, staging, needed);
}

/* The first bytes; *@ret_done of them are taken. */
static int write_head(struct npy_draft *draft, const char *data, size_t size,
		      uint64_t off, size_t *ret_done)
{
	size_t room = draft->split_known ? draft->split : TELLING_SIZE, end;
	int error;

	*ret_done = 0;
	if (off >= room)
		return 0;
	if (size > room - off)
		size = room - (size_t)off;
	end = (size_t)off + size;
	error = end > draft->head_size ? resize_head(draft, end) : 0;
	if (error)
		return error;
	if (size)
		memcpy(draft->head + off, data, size);
	*ret_done = size;
	return 0;
}

int npy_draft_write(struct npy_draft *draft, struct staging *staging, const char *data,
		    size_t size, uint64_t off)
{
	int error = 0;

	draft->changed = true;
	draft->refused = false;
	while (!error && size) {
		size_t done;

		if (!draft->split_known && off > draft->head_size)
			error = split_at(draft, staging, 0);
		if (!error)
			error = write_head(draft, data, size, off, &done);
		if (error)
			break;
		if (!done) {
			/* All of it lies behind the head, whole by now. */
			if (draft->head_size < draft->split)
				error = resize_head(draft, draft->split);
			if (!error && !draft->staged)
				error = staged_new(staging, &draft->staged);
			return error ? error
				     : staged_write(draft->staged, data, size,
						    off - draft->split);
		}
		data += done;
		size -= done;
		off += done;
		if (!draft->split_known)
			error = find_split(draft, staging);
	}
	return error;
}

int npy_draft_truncate(struct npy_draft *draft, struct staging *staging, uint64_t size)
{
	int error = 0;

	draft->changed = true;
	draft->refused = false;
	if (!size) {
		staged_unref(draft->staged);
		draft->staged = NULL;
		draft->head_size = draft->split = 0;
		draft->split_known = false;
		return 0;
	}
	if (!draft->split_known) {
		if (size <= draft->head_size) {
			draft->head_size = (size_t)size;
			return 0;
		}
		error = split_at(draft, staging, 0);
	}
	if (!error && !draft->staged)
		error = staged_new(staging, &draft->staged);
	if (error)
		return error;
	if (size <= draft->split) {
		error = staged_truncate(draft->staged, 0);
		return error ? error : resize_head(draft, (size_t)size);
	}
	error = resize_head(draft, draft->split);
	return error ? error : staged_truncate(draft->staged, size - draft->split);
}

int npy_draft_read(const struct npy_draft *draft, struct reading *reading)
{
	int error = reading_add_text(reading, draft->head, draft->head_size);

	if (!error && draft->staged)
		error = reading_add_staged(reading, draft->staged,
					   staged_size(draft->staged));
	return error;
}

/* Making a tensor ---------------------------------------------------------- */

/* @size bytes of the file from @off, all of which are there. */
static int read_at(const struct npy_draft *draft, char *to, size_t size, size_t off)
{
	size_t part = 0;

	if (off < draft->head_size) {
		part = draft->head_size - off < size ? draft->head_size - off : size;
		memcpy(to, draft->head + off, part);
	}
	return part == size ? 0
			    : staged_read(draft->staged, to + part, size - part,
					  off + part - draft->split);
}

int npy_draft_parse(const struct npy_draft *draft, struct bpk_npy *ret_npy)
{
	uint64_t size = npy_draft_size(draft);
	size_t needed = TELLING_SIZE;
	char telling[TELLING_SIZE], *header;
	int error;

	if (size < TELLING_SIZE)
		return -EINVAL;
	error = read_at(draft, telling, sizeof(telling), 0);
	if (error)
		return error;
	if (bpk_npy_needed(telling, sizeof(telling), &needed, NULL) < 0 || size < needed)
		return -EINVAL;
	header = malloc(needed);
	if (!header)
		return -ENOMEM;
	error = read_at(draft, header, needed, 0);
	if (!error)
		error = bpk_npy_parse(header, needed, ret_npy, NULL);
	free(header);
	return error && error != -ENOMEM && error != -EIO ? -EINVAL : error;
}

/* What follows the header, alone in a new file. */
static int cut_out(const struct npy_draft *draft, struct staging *staging,
		   const struct bpk_npy *npy, struct staged **ret_staged)
{
	size_t off = (size_t)npy->header_size, part = 0;
	struct staged *staged;
	int error = staged_new(staging, &staged);

	if (error)
		return error;
	if (off < draft->head_size) {
		part = draft->head_size - off;
		if (part > npy->data_size)
			part = (size_t)npy->data_size;
	}
	if (part) {
		error = staged_write(staged, draft->head + off, part, 0);
		if (!error && npy->data_size > part)
			error = npy_order_append(staged, part, draft->staged->fd, 0,
						 npy->data_size - part);
	} else if (npy->data_size) {
		error = staged_copy(staged, draft->staged->fd, off - draft->split,
				    npy->data_size);
	}
	if (error)
		staged_unref(staged);
	else
		*ret_staged = staged;
	return error;
}

int npy_draft_data(const struct npy_draft *draft, struct staging *staging,
		   const struct bpk_npy *npy, struct staged **ret_staged, bool *ret_same)
{
	bool converted = npy->column_major || npy->big_endian;
	struct staged *data, *ordered;
	int error;

	if (npy_draft_size(draft) - npy->header_size != npy->data_size)
		return -EINVAL;
	*ret_same = draft->staged && draft->split == npy->header_size;
	if (*ret_same) {
		data = staged_ref(draft->staged);
	} else {
		error = cut_out(draft, staging, npy, &data);
		if (error)
			return error;
	}
	if (!converted) {
		*ret_staged = data;
		return 0;
	}
	*ret_same = false;
	error = staged_new(staging, &ordered);
	if (!error) {
		error = npy_order(ordered, data, npy);
		if (error)
			staged_unref(ordered);
	}
	staged_unref(data);
	if (!error)
		*ret_staged = ordered;
	return error;
}
