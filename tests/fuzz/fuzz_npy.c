/*
 * fuzz_npy.c - any bytes at all as a .npy header: no crash, no leak, and what is read
 * is what the same header says when libbpk writes it.
 */
#include "convert/array.h"
#include "convert/npy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                               \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                         \
		}                                                                        \
	} while (0)

static bool same_array(const struct bpk_npy *a, const struct bpk_npy *b)
{
	return a->dtype == b->dtype && a->rank == b->rank &&
	       a->data_size == b->data_size &&
	       (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof(*a->shape)));
}

/* Written and read again. */
static void check_again(const struct bpk_npy *npy)
{
	bool array = bpk_array_is(npy->dtype, npy->shape, npy->rank, npy->data_size);
	struct bpk_npy again;
	char *header;
	size_t size;

	REQUIRE(!bpk_npy_render(npy->dtype, npy->shape, npy->rank, npy->data_size,
				&header, &size));
	REQUIRE(size % 64 == 0 && header[size - 1] == '\n');
	REQUIRE(bpk_npy_render_size(npy->dtype, npy->shape, npy->rank, npy->data_size) ==
		size);
	REQUIRE(!bpk_npy_parse(header, size, &again, NULL));
	REQUIRE(again.header_size == size && !again.big_endian && !again.column_major);
	REQUIRE(again.data_size == npy->data_size);
	if (array)
		REQUIRE(same_array(npy, &again));
	else
		REQUIRE(again.dtype == BPK_DTYPE_U8 && again.rank == 1);
	bpk_npy_done(&again);
	free(header);
}

static void check_parsed(const uint8_t *data, const struct bpk_npy *npy)
{
	uint64_t data_size;
	uint8_t *header;
	struct bpk_npy alone;

	REQUIRE(npy->rank <= BPK_NPY_RANK_MAX && !npy->rank == !npy->shape);
	REQUIRE(npy->header_size <= BPK_NPY_HEADER_MAX);
	REQUIRE(!npy->column_major || npy->rank > 1);
	REQUIRE(!npy->big_endian || bpk_dtype_element_size(npy->dtype) > 1);
	REQUIRE(!bpk_shape_size(npy->dtype, npy->shape, npy->rank, &data_size));
	REQUIRE(data_size == npy->data_size);
	check_again(npy);

	/* What follows the header does not matter. */
	header = malloc((size_t)npy->header_size);
	REQUIRE(header);
	memcpy(header, data, (size_t)npy->header_size);
	REQUIRE(!bpk_npy_parse(header, (size_t)npy->header_size, &alone, NULL));
	REQUIRE(same_array(npy, &alone) && alone.big_endian == npy->big_endian &&
		alone.column_major == npy->column_major);
	bpk_npy_done(&alone);
	free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bpk_error error = { .code = BPK_OK };
	struct bpk_npy npy = { .shape = NULL };
	size_t needed = 0;
	int r, first;

	first = bpk_npy_needed(data, size, &needed, NULL);
	r = bpk_npy_parse(data, size, &npy, &error);
	if (first < 0) {
		REQUIRE(r == first);
	} else {
		REQUIRE(needed >= 10 && needed <= BPK_NPY_HEADER_MAX);
		REQUIRE((r == -ENODATA) == (needed > size));
	}
	if (r == 0) {
		REQUIRE(error.code == BPK_OK && npy.header_size == needed);
		check_parsed(data, &npy);
	} else {
		REQUIRE(error.code != BPK_OK && !npy.shape);
		REQUIRE(error.offset == BPK_NO_OFFSET || error.offset <= size);
		REQUIRE(*error.message && strlen(error.message) < sizeof(error.message));
	}
	bpk_npy_done(&npy);
	return 0;
}
