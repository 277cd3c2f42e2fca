/*
 * fuzz_reader.c - any bytes at all, opened from a buffer: no crash, no leak, and
 * what opens keeps the promises of bpk.h to whoever walks it.
 */
#include "bpk.h"

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

/* Touch every byte, so that a sanitizer sees where they lie. */
static volatile unsigned int sink;

static void touch(const void *data, uint64_t size)
{
	const uint8_t *p = data;

	REQUIRE(p || !size);
	for (uint64_t i = 0; i < size; i++)
		sink += p[i];
}

static int finding(void *context, enum bpk_finding kind, const struct bpk_tensor *tensor,
		   const char *message)
{
	(void)context;
	(void)kind;
	(void)tensor;
	touch(message, strlen(message) + 1);
	return 0;
}

static void walk_tensor(const struct bpk_reader *reader, const struct bpk_tensor *tensor)
{
	size_t size, count, rank = bpk_tensor_rank(tensor);
	uint64_t *shape = calloc(rank + 1, sizeof(*shape)), param_id = 0, product;
	const char *name = bpk_tensor_name(tensor, &size);
	const void *bytes;
	char *text;

	touch(name, size);
	REQUIRE(name);
	REQUIRE(bpk_reader_find_tensor(reader, name, size) == tensor);
	REQUIRE(shape);
	REQUIRE(bpk_tensor_shape(tensor, shape, rank) == rank);
	bpk_shape_size(bpk_tensor_dtype(tensor), shape, rank, &product);
	free(shape);
	bytes = bpk_tensor_dtype_cbor(tensor, &size);
	touch(bytes, size);
	REQUIRE(size);
	size = bpk_tensor_dtype_text(tensor, NULL, 0);
	text = malloc(size + 1);
	REQUIRE(text);
	REQUIRE(bpk_tensor_dtype_text(tensor, text, size + 1) == size);
	REQUIRE(strlen(text) == size);
	free(text);
	bytes = bpk_tensor_extra(tensor, &size, &count);
	touch(bytes, size);
	REQUIRE(!bytes == !count && !bytes == !size);
	bpk_tensor_param_id(tensor, &param_id);
	REQUIRE(bpk_tensor_off(tensor) >= bpk_reader_data_off(reader));
	REQUIRE(bpk_tensor_size(tensor) <= bpk_reader_file_size(reader));
	REQUIRE(bpk_tensor_off(tensor) <=
		bpk_reader_file_size(reader) - bpk_tensor_size(tensor));
	touch(bpk_tensor_data(reader, tensor), bpk_tensor_size(tensor));
}

static void walk(const struct bpk_reader *reader)
{
	const char *text;
	const void *bytes;
	size_t size, count;

	for (size_t i = 0; i < bpk_reader_tensor_count(reader); i++)
		walk_tensor(reader, bpk_reader_tensor(reader, i));
	for (size_t i = 0; i < bpk_reader_scalar_count(reader); i++) {
		const struct bpk_scalar *scalar = bpk_reader_scalar(reader, i);

		text = bpk_scalar_name(scalar, &size);
		touch(text, size);
		REQUIRE(bpk_reader_find_scalar(reader, text, size) == scalar);
		REQUIRE(bpk_scalar_value(scalar).type <= BPK_SCALAR_BOOL);
	}
	for (size_t i = 0; i < bpk_reader_metadata_count(reader); i++) {
		const struct bpk_metadata *metadata = bpk_reader_metadata(reader, i);

		text = bpk_metadata_key(metadata, &size);
		touch(text, size);
		REQUIRE(bpk_reader_find_metadata(reader, text, size) == metadata);
		text = bpk_metadata_value(metadata, &size);
		touch(text, size);
	}
	bytes = bpk_reader_extra(reader, &size, &count);
	touch(bytes, size);
	REQUIRE(!bytes == !count && !bytes == !size);
	REQUIRE(!bpk_reader_tensor(reader, bpk_reader_tensor_count(reader)));
	REQUIRE(!bpk_reader_check(reader, finding, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bpk_reader *reader = NULL;
	struct bpk_error error = { .code = BPK_OK };
	int err;

	err = bpk_reader_open_buffer(data, size, NULL, &reader, &error);
	if (err) {
		REQUIRE(!reader && err < 0 && error.code != BPK_OK);
		REQUIRE(error.offset == BPK_NO_OFFSET || error.offset <= size);
		REQUIRE(*error.message && strlen(error.message) < sizeof(error.message));
	} else {
		REQUIRE(error.code == BPK_OK);
		walk(reader);
	}
	bpk_reader_close(reader);
	return 0;
}
