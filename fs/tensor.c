/*
 * tensor.c - see tensor.h.
 */
#include "tensor.h"
#include "base.h"
#include "dtype.h"
#include "staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int set_shape(struct tensor *tensor, const uint64_t *shape, size_t rank)
{
	if (bpk_grow((void **)&tensor->shape, &tensor->capacity, rank,
		     sizeof(*tensor->shape)))
		return -ENOMEM;
	if (rank)
		memcpy(tensor->shape, shape, rank * sizeof(*shape));
	tensor->rank = rank;
	return 0;
}

static int get_base(const struct overlay *overlay, size_t base, struct tensor *tensor)
{
	const struct bpk_tensor *from = bpk_reader_tensor(overlay->reader, base);
	size_t rank = bpk_tensor_rank(from);

	tensor->dtype = bpk_tensor_dtype(from);
	tensor->dtype_cbor = bpk_tensor_dtype_cbor(from, &tensor->dtype_cbor_size);
	tensor->has_param_id = bpk_tensor_param_id(from, &tensor->param_id);
	if (bpk_grow((void **)&tensor->shape, &tensor->capacity, rank,
		     sizeof(*tensor->shape)))
		return -ENOMEM;
	tensor->rank = bpk_tensor_shape(from, tensor->shape, rank);
	return 0;
}

static int get_item(const struct overlay *overlay, const struct item *item,
		    struct tensor *tensor)
{
	const uint64_t *shape;
	uint64_t length;
	size_t rank;

	tensor->dtype = item->dtype;
	tensor->dtype_cbor = item->dtype_cbor;
	tensor->dtype_cbor_size = item->dtype_cbor_size;
	tensor->has_param_id = item->has_param_id;
	tensor->param_id = item->param_id;
	item_shape(overlay, item, &length, &shape, &rank);
	return set_shape(tensor, shape, rank);
}

int tensor_get(const struct overlay *overlay, const struct entry *entry,
	       struct tensor *tensor)
{
	const struct bpk_tensor *from;
	struct pack *pack = overlay->pack;
	int error = entry->item ? get_item(overlay, entry->item, tensor)
				: get_base(overlay, entry->base, tensor);

	if (error)
		return error;
	tensor->name = entry_name(overlay, entry, &tensor->name_size);
	if (entry->item && entry->item->former)
		pack = entry->item->former;
	tensor->pack = pack;
	tensor->data = NULL;
	tensor->off = 0;
	tensor->size = 0;
	tensor->staged = entry->item ? entry->item->staged : NULL;
	if (tensor->staged) {
		tensor->size = staged_size(tensor->staged);
	} else if (entry->base != NO_BASE) {
		from = bpk_reader_tensor(pack->reader, entry->base);
		tensor->data = bpk_tensor_data(pack->reader, from);
		tensor->off = bpk_tensor_off(from);
		tensor->size = bpk_tensor_size(from);
	}
	return 0;
}

void tensor_done(struct tensor *tensor)
{
	free(tensor->shape);
	free(tensor->text);
	*tensor = (struct tensor) { 0 };
}

const char *tensor_dtype_text(struct tensor *tensor, size_t *ret_size)
{
	const char *name;

	if (tensor->dtype != BPK_DTYPE_QFLOAT) {
		name = bpk_dtype_name(tensor->dtype);
		*ret_size = strlen(name);
		return name;
	}
	*ret_size =
		bpk_dtype_text(tensor->dtype, tensor->dtype_cbor, tensor->dtype_cbor_size,
			       tensor->text, tensor->text_capacity);
	if (*ret_size < tensor->text_capacity)
		return tensor->text;
	if (bpk_grow((void **)&tensor->text, &tensor->text_capacity, *ret_size + 1, 1))
		return NULL;
	bpk_dtype_text(tensor->dtype, tensor->dtype_cbor, tensor->dtype_cbor_size,
		       tensor->text, tensor->text_capacity);
	return tensor->text;
}

bool tensor_in_pack(const struct tensor *tensor)
{
	return tensor->data != NULL;
}
