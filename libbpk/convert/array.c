/*
 * array.c - see array.h.
 */
#include "array.h"
#include "base.h"

bool bpk_array_is(enum bpk_dtype dtype, const uint64_t *shape, size_t rank, uint64_t size)
{
	uint64_t product = bpk_dtype_element_size(dtype);
	bool empty = false;

	if (!product)
		return false;
	for (size_t i = 0; i < rank; i++) {
		if (!shape[i])
			empty = true;
		else if (!bpk_mul_u64(product, shape[i], &product) ||
			 product > BPK_ARRAY_SIZE_MAX)
			return false;
	}
	return size == (empty ? 0 : product);
}
