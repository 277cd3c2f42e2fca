/*
 * item.c - an item as a tensor: its bytes, and what they are said to be. See overlay.h.
 */
#include "base.h"
#include "overlay.h"
#include "staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t item_data_size(const struct overlay *overlay, const struct item *item)
{
	if (item->staged)
		return staged_size(item->staged);
	if (item->kind == ITEM_TENSOR && item->base != NO_BASE)
		return bpk_tensor_size(
			bpk_reader_tensor(item_reader(overlay, item), item->base));
	return 0;
}

/* What @size bytes take in a pack, behind others. */
static bool add_data(uint64_t *total, uint64_t size)
{
	return bpk_align_u64(size, BPK_ALIGNMENT, &size) &&
	       bpk_add_u64(*total, size, total);
}

/* What a commit writes for @item, if its bytes are @size: where they cannot be
 * committed, the old tensor. */
static uint64_t most_of(const struct overlay *overlay, const struct item *item,
			uint64_t size)
{
	uint64_t old = 0;

	if (item->kind == ITEM_TENSOR && item->base != NO_BASE)
		old = bpk_tensor_size(bpk_reader_tensor(overlay->reader, item->base));
	return size > old ? size : old;
}

/* The data of all tensors but these two, as a commit would write it. False when that
 * is beyond 64 bits. */
static bool count_data(const struct overlay *overlay, const struct item *but,
		       const struct item *nor, uint64_t *ret_total)
{
	struct item *const *promoted = overlay->promoted[ITEM_TENSOR];
	const struct item_table *table = &overlay->tables[ITEM_TENSOR];
	size_t count = bpk_reader_tensor_count(overlay->reader);
	uint64_t total = 0;
	bool fits = true;

	for (size_t i = 0; i < count && fits; i++)
		if (!promoted || !promoted[i])
			fits = add_data(&total, bpk_tensor_size(bpk_reader_tensor(
							overlay->reader, i)));
	for (size_t i = 0; i < table->count && fits; i++) {
		const struct item *item = table->items[i];
		uint64_t size = item_data_size(overlay, item);

		if (item != but && item != nor)
			fits = add_data(&total, item_data_valid(overlay, item)
							? size
							: most_of(overlay, item, size));
	}
	*ret_total = total;
	return fits;
}

int overlay_reserve_data(struct overlay *overlay, const struct item *item,
			 const struct item *victim, uint64_t size)
{
	uint64_t now = item->kind == ITEM_TENSOR ? item_data_size(overlay, item) : 0;
	uint64_t most, sum = overlay->data_estimate;
	struct bpk_limits limits;

	bpk_limits_init(&limits);
	if (size > limits.tensor_size)
		return -EFBIG;
	if (size <= now)
		return 0;
	/* Header and metadata come first; they end at a multiple, too. */
	if (!bpk_add_u64(overlay->metadata_estimate, 2 * BPK_ALIGNMENT, &most) ||
	    most > limits.file_size)
		return -EFBIG;
	most = limits.file_size - most;
	now &= ~(uint64_t)(BPK_ALIGNMENT - 1);
	if (sum && add_data(&sum, size - now) && sum <= most) {
		overlay->data_estimate = sum;
		return 0;
	}
	/* What was given back meanwhile is looked at only when it is needed. */
	if (victim && size < most_of(overlay, victim, 0))
		size = most_of(overlay, victim, 0);
	if (!count_data(overlay, item, victim, &sum) ||
	    !add_data(&sum, most_of(overlay, item, size)) || sum > most)
		return -EFBIG;
	overlay->data_estimate = sum;
	return 0;
}

bool item_is_hollow(const struct item *item)
{
	return item->kind == ITEM_TENSOR && !item->staged && item->base == NO_BASE;
}

bool entry_counts(const struct entry *entry)
{
	if (!entry->item)
		return true;
	return entry->kind == ITEM_TENSOR ? !item_is_hollow(entry->item)
					  : entry->item->has_value;
}

bool item_is_raw(const struct item *item)
{
	return item->shape_follows && item->dtype == BPK_DTYPE_U8;
}

/* Is its shape what would follow from the bytes of @tensor? */
static bool follows(const struct item *item, const struct bpk_tensor *tensor)
{
	uint64_t element = bpk_dtype_element_size(item->dtype), length,
		 size = bpk_tensor_size(tensor);

	return element && bpk_tensor_rank(tensor) == 1 &&
	       bpk_tensor_shape(tensor, &length, 1) == 1 && size % element == 0 &&
	       length == size / element;
}

static bool same_shape(const struct item *item, const struct bpk_tensor *tensor)
{
	size_t rank = bpk_tensor_rank(tensor);
	uint64_t *shape;
	bool same;

	if (item->shape_follows)
		return follows(item, tensor);
	if (item->rank != rank)
		return false;
	if (!rank)
		return true;
	shape = reallocarray(NULL, rank, sizeof(*shape));
	if (!shape)
		return false;
	bpk_tensor_shape(tensor, shape, rank);
	same = memcmp(shape, item->shape, rank * sizeof(*shape)) == 0;
	free(shape);
	return same;
}

bool item_is_described_as(const struct item *item, const struct bpk_tensor *tensor)
{
	size_t size;
	const void *cbor = bpk_tensor_dtype_cbor(tensor, &size);

	if (item->dtype != bpk_tensor_dtype(tensor))
		return false;
	if (item->dtype_cbor &&
	    (item->dtype_cbor_size != size || memcmp(item->dtype_cbor, cbor, size) != 0))
		return false;
	return same_shape(item, tensor);
}

bool item_has_param_id_of(const struct item *item, const struct bpk_tensor *tensor)
{
	uint64_t param_id = 0;

	if (bpk_tensor_param_id(tensor, &param_id) != item->has_param_id)
		return false;
	return !item->has_param_id || item->param_id == param_id;
}

void item_shape(const struct overlay *overlay, const struct item *item,
		uint64_t *ret_length, const uint64_t **ret_shape, size_t *ret_rank)
{
	uint64_t element = bpk_dtype_element_size(item->dtype);

	*ret_shape = item->shape;
	*ret_rank = item->rank;
	if (!item->shape_follows)
		return;
	*ret_length = item_data_size(overlay, item) / (element ? element : 1);
	*ret_shape = ret_length;
	*ret_rank = 1;
}

bool item_data_valid(const struct overlay *overlay, const struct item *item)
{
	uint64_t size = item_data_size(overlay, item), wanted,
		 element = bpk_dtype_element_size(item->dtype);
	const struct bpk_tensor *described = NULL;

	if (item_is_hollow(item))
		return false;
	/* A scheme does not tell how many elements there are. */
	if (item->shape_follows)
		return element && size % element == 0;
	if (item->described != NO_BASE)
		described =
			bpk_reader_tensor(item_reader(overlay, item), item->described);
	if (described && item_is_described_as(item, described)) {
		/* A pack may hold odd lengths: as there is right. */
		if (!item->staged || size == bpk_tensor_size(described))
			return true;
		if (item->dtype == BPK_DTYPE_QFLOAT)
			return false;
	}
	if (item->dtype == BPK_DTYPE_QFLOAT)
		return true; /* what its length must be is known to Burn alone */
	return !bpk_shape_size(item->dtype, item->shape, item->rank, &wanted) &&
	       wanted == size;
}

int item_set_shape(struct item *item, const uint64_t *shape, size_t rank)
{
	uint64_t *copy = reallocarray(NULL, rank ? rank : 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (rank)
		memcpy(copy, shape, rank * sizeof(*copy));
	free(item->shape);
	item->shape = copy;
	item->rank = rank;
	item->shape_follows = false;
	return 0;
}

int item_set_dtype(struct item *item, enum bpk_dtype dtype, const void *cbor,
		   size_t cbor_size)
{
	void *copy = NULL;

	if (cbor) {
		copy = malloc(cbor_size ? cbor_size : 1);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, cbor, cbor_size);
	}
	free(item->dtype_cbor);
	item->dtype_cbor = copy;
	item->dtype_cbor_size = copy ? cbor_size : 0;
	item->dtype = dtype;
	return 0;
}

int item_describe_as(struct item *item, const struct item *other)
{
	struct item copy = { .dtype_cbor = NULL };
	int error = item_set_dtype(&copy, other->dtype, other->dtype_cbor,
				   other->dtype_cbor_size);

	if (!error && !other->shape_follows)
		error = item_set_shape(&copy, other->shape, other->rank);
	if (error) {
		free(copy.dtype_cbor);
		return error;
	}
	free(item->dtype_cbor);
	free(item->shape);
	item->dtype = copy.dtype;
	item->dtype_cbor = copy.dtype_cbor;
	item->dtype_cbor_size = copy.dtype_cbor_size;
	item->shape = copy.shape;
	item->rank = copy.rank;
	item->shape_follows = other->shape_follows;
	item->described = other->described;
	return 0;
}
