/*
 * array.h - which tensors are arrays, as .npy and safetensors know them: elements of
 * one fixed size, as many as the shape says. What is none is shown as its bytes.
 */
#ifndef BPK_CONVERT_ARRAY_H
#define BPK_CONVERT_ARRAY_H

#include "bpk.h"

/*
 * No array is larger. numpy counts the bytes of an array in a signed number of 64
 * bits, safetensors' reader counts its bits in an unsigned one, and both multiply
 * dimensions before they see that one of them is zero.
 */
#define BPK_ARRAY_SIZE_MAX ((uint64_t)INT64_MAX / 8)

/*
 * Is a tensor of @size bytes the array that @dtype and the @rank dimensions at @shape
 * tell? False for QFloat, for a size that is not their product, and for a shape that
 * is too large without its zeros.
 */
bool bpk_array_is(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
		  uint64_t size);

#endif
