/*
 * scheme.h - the dtype of a quantized tensor from its text, the other way round than
 * bpk_tensor_dtype_text(). Knows JSON and the CBOR of it; which schemes there are is
 * asked of dtype.h.
 */
#ifndef BPK_CONVERT_SCHEME_H
#define BPK_CONVERT_SCHEME_H

#include "bpk.h"

/* Containers inside each other; a scheme has four. */
#define BPK_SCHEME_DEPTH_MAX 16

/*
 * The CBOR item of the dtype that the @size bytes at @text say: {"QFloat":{...}} in
 * JSON, white space allowed. Keys keep their order, lengths are definite and heads the
 * shortest, as Burn writes them: for what Burn wrote, the text of a dtype gives its
 * very bytes. Of the keys that no scheme is known to have, floats and byte strings
 * (which have no JSON) come back as the text they are shown as.
 *
 * *@ret_cbor is for free(3). Errors: -EINVAL (BPK_ERR_ARGUMENT: no JSON, or numbers
 * that are not whole or leave 64 bits, or no quantization scheme; the message says
 * why, offsets count from the start of @text), -EFBIG (BPK_ERR_LIMIT: depth), -ENOMEM.
 * Any thread.
 */
int bpk_scheme_parse(const char *text, size_t size, void **ret_cbor, size_t *ret_size,
		     struct bpk_error *error);

#endif
