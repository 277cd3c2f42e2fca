/*
 * edit_npy.c - see edit_npy.h.
 */
#include "edit_npy.h"
#include "base.h"
#include "edit_data.h"
#include "npy_draft.h"
#include "npy_order.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool edit_is_npy(const struct node *node, const struct item *item)
{
	return node->npy && item->kind == ITEM_TENSOR;
}

static void drop(struct item *item)
{
	npy_draft_free(item->draft);
	item->draft = NULL;
}

void edit_npy_forget(struct item *item)
{
	if (!item->npy_writers)
		drop(item);
}

/* The tensor as it is ------------------------------------------------------ */

static int get_tensor(struct mount *mount, const struct item *item, struct tensor *tensor)
{
	struct entry entry = { item->kind, item->base, NULL };

	memcpy(&entry.item, &item, sizeof(item));
	return tensor_get(&mount->overlay, &entry, tensor);
}

/* The header that its file has now; malloc'd. */
static int get_head(struct mount *mount, const struct item *item, char **ret_head,
		    size_t *ret_size)
{
	struct tensor tensor = { 0 };
	int error;

	if (item->draft) {
		*ret_head = malloc(item->draft->head_size + 1);
		if (!*ret_head)
			return -ENOMEM;
		memcpy(*ret_head, item->draft->head, item->draft->head_size);
		*ret_size = item->draft->head_size;
		return 0;
	}
	error = get_tensor(mount, item, &tensor);
	if (!error)
		error = bpk_npy_render(tensor.dtype, tensor.shape, tensor.rank,
				       tensor.size, ret_head, ret_size);
	tensor_done(&tensor);
	return error;
}

/* Where its bytes lie: a file, and the offset in it. */
static int source(struct mount *mount, const struct item *item, uint64_t *ret_off)
{
	const struct bpk_reader *reader = item_reader(&mount->overlay, item);

	*ret_off = 0;
	if (item->staged)
		return item->staged->fd;
	*ret_off = bpk_tensor_off(bpk_reader_tensor(reader, item->base));
	return bpk_reader_fd(reader);
}

/* From now on its file is another one than the tensor. */
static int detach(struct mount *mount, struct item *item)
{
	struct npy_draft *draft = NULL;
	struct staged *staged = NULL;
	size_t head_size;
	uint64_t off;
	char *head;
	int fd, error = get_head(mount, item, &head, &head_size);

	if (error)
		return error;
	fd = source(mount, item, &off);
	error = staged_new(&mount->staging, &staged);
	if (!error)
		error = staged_copy(staged, fd, off,
				    item_data_size(&mount->overlay, item));
	if (!error) {
		draft = npy_draft_of(head, head_size, staged);
		error = draft ? 0 : -ENOMEM;
	}
	free(head);
	if (error) {
		staged_unref(staged);
		return error;
	}
	drop(item);
	item->draft = draft;
	return 0;
}

/* Becoming a tensor -------------------------------------------------------- */

/* Would npy/ show @item with the very header of @npy? Then the file says nothing of
 * what it is beyond that: Flex32, a Bool(U32), a quantized one stay so. */
static int shown_alike(struct mount *mount, const struct item *item,
		       const struct bpk_npy *npy, bool *ret)
{
	struct tensor tensor = { 0 };
	char *a = NULL, *b = NULL;
	size_t a_size, b_size;
	int error = get_tensor(mount, item, &tensor);

	if (!error)
		error = bpk_npy_render(tensor.dtype, tensor.shape, tensor.rank,
				       tensor.size, &a, &a_size);
	if (!error)
		error = bpk_npy_render(npy->dtype, npy->shape, npy->rank, npy->data_size,
				       &b, &b_size);
	if (!error)
		*ret = a_size == b_size && memcmp(a, b, a_size) == 0;
	free(a);
	free(b);
	tensor_done(&tensor);
	return error;
}

/* @item is what the file @npy says; but it stays @was where the file cannot tell, and
 * what attributes of @given were set counts more. NULL for none. */
static int describe(struct mount *mount, struct item *item, const struct item *was,
		    const struct bpk_npy *npy, const struct item *given)
{
	struct item new = { .described = was ? was->described : item->described };
	bool alike = false;
	/* What does not fit its shape is shown with another one, and mended by that. */
	int error = was && item_data_valid(&mount->overlay, was)
			    ? shown_alike(mount, was, npy, &alike)
			    : 0;

	if (!error && alike)
		error = item_describe_as(&new, was);
	else if (!error)
		error = item_set_dtype(&new, npy->dtype, NULL, 0);
	if (!error && !alike)
		error = item_set_shape(&new, npy->shape, npy->rank);
	if (!error && given && !item_is_raw(given))
		error = item_set_dtype(&new, given->dtype, given->dtype_cbor,
				       given->dtype_cbor_size);
	if (!error && given && !given->shape_follows)
		error = item_set_shape(&new, given->shape, given->rank);
	if (!error)
		error = item_describe_as(item, &new);
	free(new.dtype_cbor);
	free(new.shape);
	return error;
}

/* The data of the draft, and what it is, for @item, in the place of @victim if any. */
static int convert(struct mount *mount, const struct item *item,
		   const struct item *victim, const struct npy_draft *draft,
		   const struct bpk_npy *npy, struct staged **ret_staged, bool *ret_same)
{
	int error = overlay_reserve_data(&mount->overlay, item, victim, npy->data_size);

	if (error)
		return error;
	error = npy_draft_data(draft, &mount->staging, npy, ret_staged, ret_same);
	if (!error && !overlay_metadata_fits(&mount->overlay, npy->header_size)) {
		staged_unref(*ret_staged);
		error = -ENOSPC;
	}
	return error;
}

static bool is_header_alone(const struct npy_draft *draft, const struct bpk_npy *npy)
{
	return npy->data_size && npy_draft_size(draft) == npy->header_size;
}

static int settle(struct mount *mount, struct item *item)
{
	struct npy_draft *draft = item->draft;
	struct bpk_npy npy = { .shape = NULL };
	struct staged *staged;
	bool same;
	int error = npy_draft_parse(draft, &npy);

	if (error || is_header_alone(draft, &npy)) {
		bpk_npy_done(&npy);
		return error;
	}
	error = convert(mount, item, NULL, draft, &npy, &staged, &same);
	if (!error) {
		error = describe(mount, item, item_is_hollow(item) ? NULL : item, &npy,
				 draft->given);
		if (error)
			staged_unref(staged);
	}
	if (!error) {
		overlay_account(&mount->overlay, npy.header_size);
		staged_unref(item->staged);
		item->staged = staged;
		draft->changed = false;
		overlay_touch(&mount->overlay, item);
		mount_changed_unseen(mount, item, false, 0);
	}
	if (!error && same) {
		staged_unref(draft->staged);
		draft->staged = NULL;
		draft->settled = true;
	}
	bpk_npy_done(&npy);
	return error;
}

int edit_npy_flush(struct mount *mount, struct item *item)
{
	struct npy_draft *draft = item->draft;
	int error = 0;

	if (npy_draft_pending(draft)) {
		/* touch: made, and nothing in it yet. */
		if (!npy_draft_size(draft) && item_is_hollow(item))
			return 0;
		error = settle(mount, item);
		draft->refused = error != 0;
		/* A header alone: not yet. */
		if (error || npy_draft_pending(draft))
			return error;
	}
	if (item_is_hollow(item))
		return 0;
	return item_data_valid(&mount->overlay, item) ? 0 : -EINVAL;
}

void edit_npy_end(struct mount *mount, struct item *item)
{
	struct npy_draft *draft = item->draft;

	if (npy_draft_pending(draft) && !draft->refused)
		(void)edit_npy_flush(mount, item);
	if (npy_draft_pending(draft) && !draft->refused && npy_draft_size(draft))
		return;
	/* Its header is ours from now on. */
	if (draft)
		mount_changed_unseen(mount, item, true, 1);
	drop(item);
}

/* Writing ------------------------------------------------------------------ */

/* Those of @size bytes that lie in the header are what is there, and the others
 * replace data: *@ret_done, they went to the tensor. */
static int write_in_place(struct mount *mount, struct item *item, const char *data,
			  size_t size, uint64_t off, bool *ret_done)
{
	uint64_t end = off + size;
	size_t head_size, part = 0;
	char *head;
	bool same;
	int error = get_head(mount, item, &head, &head_size);

	*ret_done = false;
	if (error)
		return error;
	if (off < head_size)
		part = head_size - off < size ? head_size - (size_t)off : size;
	same = !part || memcmp(head + off, data, part) == 0;
	free(head);
	if (!same || end > head_size + item_data_size(&mount->overlay, item))
		return 0;
	*ret_done = true;
	if (part == size)
		return 0;
	error = edit_stage(mount, item, UINT64_MAX);
	return error ? error
		     : staged_write(item->staged, data + part, size - part,
				    off + part - head_size);
}

static int start(struct item *item)
{
	if (!item->draft)
		item->draft = npy_draft_new();
	return item->draft ? 0 : -ENOMEM;
}

int edit_npy_write(struct mount *mount, struct item *item, const char *data, size_t size,
		   uint64_t off)
{
	uint64_t end;
	bool done = false;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &item->mtime);
	if (!bpk_add_u64(off, size, &end))
		return -EFBIG;
	if (end > BPK_NPY_HEADER_MAX)
		error = edit_too_large(item, end - BPK_NPY_HEADER_MAX);
	if (!error && !item->draft && item_is_hollow(item))
		error = start(item);
	if (!error && (!item->draft || item->draft->settled)) {
		error = write_in_place(mount, item, data, size, off, &done);
		if (!error && !done)
			error = detach(mount, item);
	}
	if (error || done)
		return error;
	return npy_draft_write(item->draft, &mount->staging, data, size, off);
}

static int truncate_draft(struct mount *mount, struct item *item, uint64_t size)
{
	size_t head_size;
	char *head;
	int error = 0;

	if (size && (!item->draft || item->draft->settled) && !item_is_hollow(item)) {
		error = get_head(mount, item, &head, &head_size);
		if (error)
			return error;
		free(head);
		if (size == head_size + item_data_size(&mount->overlay, item))
			return 0;
		error = detach(mount, item);
	}
	if (!error)
		error = start(item);
	if (error)
		return error;
	item->draft->settled = false;
	return npy_draft_truncate(item->draft, &mount->staging, size);
}

int edit_npy_truncate(struct mount *mount, struct item *item, uint64_t size)
{
	int error = 0;

	if (size > BPK_NPY_HEADER_MAX)
		error = edit_too_large(item, size - BPK_NPY_HEADER_MAX);
	if (!error)
		error = truncate_draft(mount, item, size);
	clock_gettime(CLOCK_REALTIME, &item->mtime);
	/* Without an open file there is no close that could tell. */
	if (!error && !item->npy_writers) {
		error = edit_npy_flush(mount, item);
		edit_npy_end(mount, item);
	}
	return error;
}

/* Renaming ----------------------------------------------------------------- */

static int fit_tensor(struct mount *mount, struct item *item, const struct item *victim)
{
	struct npy_draft draft = { .split_known = true, .staged = item->staged };
	struct bpk_npy npy = { .shape = NULL };
	struct staged *staged, *old = item->staged;
	bool same;
	int error = npy_draft_parse(&draft, &npy);

	if (!error)
		error = convert(mount, item, victim, &draft, &npy, &staged, &same);
	if (!error) {
		item->staged = staged;
		error = describe(mount, item,
				 victim && !item_is_hollow(victim) ? victim : NULL, &npy,
				 item);
		if (!error && !item_data_valid(&mount->overlay, item))
			error = -EINVAL;
		staged_unref(error ? staged : old);
		if (error)
			item->staged = old;
	}
	if (!error)
		overlay_account(&mount->overlay, npy.header_size);
	bpk_npy_done(&npy);
	return error;
}

static int fit_scratch(struct mount *mount, struct item *item)
{
	struct staged *staged;
	size_t head_size;
	uint64_t off;
	char *head;
	int fd, error;

	if (item_is_hollow(item))
		return edit_stage(mount, item, 0);
	error = get_head(mount, item, &head, &head_size);
	if (error)
		return error;
	error = staged_new(&mount->staging, &staged);
	if (!error) {
		fd = source(mount, item, &off);
		error = staged_write(staged, head, head_size, 0);
		if (!error)
			error = npy_order_append(staged, head_size, fd, off,
						 item_data_size(&mount->overlay, item));
		if (error)
			staged_unref(staged);
	}
	free(head);
	if (error)
		return error;
	staged_unref(item->staged);
	item->staged = staged;
	return 0;
}

int edit_npy_fit(struct mount *mount, struct item *item, enum item_kind kind,
		 const struct item *victim)
{
	int error = 0;

	if (npy_draft_pending(item->draft) && kind != item->kind)
		return -EBUSY;
	if (item_is_hollow(item) && victim)
		return -EINVAL; /* what was never written replaces nothing */
	if (item->kind == ITEM_SCRATCH && kind == ITEM_TENSOR)
		error = fit_tensor(mount, item, victim);
	else if (item->kind == ITEM_TENSOR && kind == ITEM_SCRATCH)
		error = fit_scratch(mount, item);
	/* A file tells no param_id, so one that was made here and has none keeps it. */
	if (!error && kind == ITEM_TENSOR && victim && item->base == NO_BASE &&
	    !item->has_param_id) {
		item->has_param_id = victim->has_param_id;
		item->param_id = victim->param_id;
	}
	return error;
}
