/*
 * tensor.h - what a tensor of the mount is now, whether the pack says so or an
 * edit. One place that knows where each of its properties is kept; all that shows
 * tensors (attributes, npy/, the files that describe the pack) asks here.
 *
 * Call with the mount's lock.
 */
#ifndef BPKFS_TENSOR_H
#define BPKFS_TENSOR_H

#include <stdio.h>

#include "overlay.h"

struct tensor {
	const char *name; /* borrowed from the entry */
	size_t name_size;
	enum bpk_dtype dtype;
	const void *dtype_cbor; /* borrowed; NULL for the canonical form */
	size_t dtype_cbor_size;
	uint64_t *shape; /* owned; reused by the next tensor_get() */
	size_t rank;
	size_t capacity;
	bool has_param_id;
	uint64_t param_id;
	uint64_t size; /* bytes of data, whatever the shape says */
	/* Where the bytes are: staged (borrowed), or (NULL) in the pack. */
	struct staged *staged;
	struct pack *pack; /* borrowed from the overlay */
	const char *data;  /* in the mapping: never to be followed */
	uint64_t off;	   /* in the pack */
	/* The text of the dtype, once tensor_dtype_text() was asked for it. */
	char *text;
	size_t text_capacity;
};

/* @tensor is { 0 } before the first call and may be used for the next entry as it
 * is. 0 or -ENOMEM. */
int tensor_get(const struct overlay *overlay, const struct entry *entry,
	       struct tensor *tensor);
void tensor_done(struct tensor *tensor);

/* As bpk_tensor_dtype_text(): "F32", or {"QFloat":...}. Lives until the next call
 * with @tensor. NULL without memory. */
const char *tensor_dtype_text(struct tensor *tensor, size_t *ret_size);
/* True when there are bytes of it in the pack. */
bool tensor_in_pack(const struct tensor *tensor);

#endif
