/*
 * attr_text.h - the values of extended attributes as text, the way describe.c shows
 * them, and scalars of one type as another. Knows no entries.
 */
#ifndef BPKFS_ATTR_TEXT_H
#define BPKFS_ATTR_TEXT_H

#include "bpk.h"

/*
 * A shape: [64,1,3,3], [] for rank 0, spaces between allowed. *@ret_shape is for
 * free(3). 0, -EINVAL or -ENOMEM; also -EINVAL for a dimension that leaves 64 bits.
 */
int attr_parse_shape(const char *text, size_t size, uint64_t **ret_shape,
		     size_t *ret_rank);

/* Decimal digits of an unsigned integer. 0, -EINVAL, or -ERANGE over 64 bits. */
int attr_parse_uint(const char *text, size_t size, uint64_t *ret);

/* Int, UInt, Float or Bool. 0 or -EINVAL. */
int attr_parse_type(const char *text, size_t size, enum bpk_scalar_type *ret);
const char *attr_type_name(enum bpk_scalar_type type);

/*
 * @value as one of @type, where nothing is lost: integers that both types hold, floats
 * that are whole and exact (-0.0 has no integer), and Bool as 0 or 1. Else -ERANGE.
 */
int attr_convert(struct bpk_scalar_value value, enum bpk_scalar_type type,
		 struct bpk_scalar_value *ret);

#endif
