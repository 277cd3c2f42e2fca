/*
 * dtype.h - the one table of data types, and the parser of their CBOR forms.
 */
#ifndef BPK_DTYPE_H
#define BPK_DTYPE_H

#include "bpk.h"
#include "cbor.h"

/*
 * Read the dtype item at the cursor: a name, {"Bool":...} or {"QFloat":scheme},
 * tags allowed. The scheme is checked as Burn's reader does (new and older
 * releases' fields); the item's bytes are cursor->data[old pos .. new pos).
 * 0 or -EBADMSG with cursor->error filled.
 */
int bpk_dtype_parse(struct bpk_cursor *cursor, enum bpk_dtype *ret_dtype);

/* The canonical CBOR item of @dtype, a constant; NULL for QFloat. */
const void *bpk_dtype_cbor(enum bpk_dtype dtype, size_t *ret_size);

/* A dtype item as text (dtype_text.c): see bpk_tensor_dtype_text(). */
size_t bpk_dtype_text(enum bpk_dtype dtype, const void *cbor, size_t cbor_size,
		      char *buffer, size_t size);

#endif
