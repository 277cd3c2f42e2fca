/*
 * safetensors.h - a whole pack as one safetensors file: the header, and which tensor's
 * bytes lie where behind it. Knows nothing of the bytes: whoever shows the file puts
 * the tensors, as they are in the pack, one behind the other in the order told here.
 *
 * A safetensors file is the length of the JSON in 8 bytes (little endian), the JSON,
 * and the data section: {"__metadata__":{"key":"value",...},"name":{"dtype":"F32",
 * "shape":[2,3],"data_offsets":[0,24]},...}. Its reader wants every byte of the data
 * section to be in one tensor exactly, each as long as dtype and shape say, and a JSON
 * of at most 100 000 000 bytes.
 *
 * Order: by bytes an element, most first, then by desc.order, then by index. So
 * every element is aligned, as the data section starts at a multiple of 8.
 *
 * What has no dtype there: Flex32 is shown as F32, Bool(U8) and the legacy Bool as
 * BOOL, as Bool(Native) is, Bool(U32) as U32. What is no array (bpk_array_is():
 * QFloat, a size that is not shape x dtype) is shown as its bytes, U8 of shape [size].
 *
 * What was shown as something else is told in __metadata__, behind the user's pairs:
 *
 *	bpk.dtype:NAME	the dtype in the pack, when it is not the one whose name
 *			is shown (BOOL is Bool(Native)'s)
 *	bpk.shape:NAME	the shape in the pack, [2,3], when it is not the one shown
 *	bpk.name:NAME	the name in the pack, when it is not NAME, the one shown
 *
 * The user's pairs are never changed. When one of the user's keys begins with "bpk.",
 * the word is "bpk1" instead of "bpk", or "bpk2", ...: the first such that no key of
 * the user's begins with it and a dot. So no two keys are the same.
 *
 * The format keeps the name __metadata__ for itself. A tensor of that name is shown
 * as __metadata__1, or __metadata__2, ...: the first that is no tensor's name.
 */
#ifndef BPK_CONVERT_SAFETENSORS_H
#define BPK_CONVERT_SAFETENSORS_H

#include "bpk.h"

/* Bytes of the JSON, as the format's own reader limits it. */
#define BPK_SAFETENSORS_JSON_MAX UINT64_C(100000000)

/* A tensor, told by the caller. */
struct bpk_safetensors_desc {
	const char *name; /* unique UTF-8 */
	size_t name_size;
	enum bpk_dtype dtype;
	const char *dtype_text; /* of QFloat (bpk_tensor_dtype_text()), else not read */
	size_t dtype_text_size;
	const uint64_t *shape;
	size_t rank;
	uint64_t size;	/* bytes of its data */
	uint64_t order; /* smaller ones first; an offset in the pack keeps its order */
};

/* A pair of the user's metadata; keys are unique, both are UTF-8. */
struct bpk_safetensors_pair {
	const char *key;
	size_t key_size;
	const char *value;
	size_t value_size;
};

/*
 * What is to be shown. The callbacks return 0 or a negative errno, which ends the
 * rendering and is returned. What they point to has to last until the next call of
 * either. Each index is asked for more than once, and has to be told the same.
 */
struct bpk_safetensors_source {
	size_t tensor_count;
	int (*describe)(void *context, size_t index,
			struct bpk_safetensors_desc *ret_desc);
	size_t pair_count;
	int (*pair)(void *context, size_t index, struct bpk_safetensors_pair *ret_pair);
	void *context;
};

struct bpk_safetensors {
	char *header;	      /* length, JSON and the spaces behind it */
	uint64_t header_size; /* a multiple of 8: where the data section starts */
	size_t count;	      /* tensors */
	size_t *order;	      /* order[k] is the index of the one that comes k-th */
	uint64_t *offs;	      /* offs[k] is where it starts, in the data section; it
			       * ends where the next one starts, or at data_size */
	uint64_t data_size;   /* bytes of the data section */
};

/*
 * Work out header and layout, in O(n log n) time. Memory: while sorting 64 bytes a
 * tensor, then no more than the header and 16 bytes a tensor, which is what stays.
 *
 * *@ret_layout is for bpk_safetensors_free(). Errors: those of the callbacks
 * (BPK_ERR_PROVIDER), -EFBIG (BPK_ERR_LIMIT: more JSON than the format allows),
 * -EOVERFLOW (BPK_ERR_OVERFLOW: a file beyond BPK_ARRAY_SIZE_MAX), -ENOMEM. Any thread.
 */
int bpk_safetensors_render(const struct bpk_safetensors_source *source,
			   struct bpk_safetensors **ret_layout, struct bpk_error *error);

/* NULL is accepted. */
void bpk_safetensors_free(struct bpk_safetensors *layout);

#endif
