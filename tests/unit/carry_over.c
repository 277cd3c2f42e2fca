/*
 * carry_over.c - a pack copied tensor by tensor, as a commit of an unchanged mount
 * would do it: descriptions from the reader, data as ranges of its file, in the order
 * of the data section. The copy has the same bytes.
 *
 *	carry_over PACK OUT
 *
 * Prints nothing and exits with 0 when all went well; comparing is the caller's.
 */
#include "bpk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_place(const void *a, const void *b)
{
	const struct bpk_tensor *x = *(const struct bpk_tensor *const *)a;
	const struct bpk_tensor *y = *(const struct bpk_tensor *const *)b;
	uint64_t x_off = bpk_tensor_off(x), y_off = bpk_tensor_off(y);

	if (x_off != y_off)
		return x_off < y_off ? -1 : 1;
	/* An empty tensor lies where the next one does. */
	return bpk_tensor_size(x) < bpk_tensor_size(y)
		       ? -1
		       : bpk_tensor_size(x) > bpk_tensor_size(y);
}

static int add_tensors(struct bpk_writer *writer, const struct bpk_reader *reader,
		       struct bpk_error *error)
{
	size_t count = bpk_reader_tensor_count(reader);
	const struct bpk_tensor **tensors = calloc(count + 1, sizeof(*tensors));
	int r = tensors ? 0 : -1;

	for (size_t i = 0; i < count; i++)
		tensors[i] = bpk_reader_tensor(reader, i);
	qsort(tensors, count, sizeof(*tensors), by_place);
	for (size_t i = 0; r == 0 && i < count; i++) {
		uint64_t *shape = calloc(bpk_tensor_rank(tensors[i]) + 1, sizeof(*shape));
		struct bpk_tensor_desc desc;

		bpk_tensor_describe(tensors[i], shape, &desc);
		r = bpk_writer_add_range(writer, &desc, bpk_reader_fd(reader),
					 bpk_tensor_off(tensors[i]),
					 bpk_tensor_size(tensors[i]), error);
		free(shape);
	}
	free(tensors);
	return r;
}

static int set_rest(struct bpk_writer *writer, const struct bpk_reader *reader,
		    struct bpk_error *error)
{
	size_t name_size, value_size, size, count;
	const char *name, *value;
	const void *extra = bpk_reader_extra(reader, &size, &count);
	int r = bpk_writer_set_extra(writer, extra, size, count, error);

	for (size_t i = 0; r == 0 && i < bpk_reader_scalar_count(reader); i++) {
		const struct bpk_scalar *scalar = bpk_reader_scalar(reader, i);

		name = bpk_scalar_name(scalar, &name_size);
		r = bpk_writer_set_scalar(writer, name, name_size,
					  bpk_scalar_value(scalar), error);
	}
	for (size_t i = 0; r == 0 && i < bpk_reader_metadata_count(reader); i++) {
		const struct bpk_metadata *metadata = bpk_reader_metadata(reader, i);

		name = bpk_metadata_key(metadata, &name_size);
		value = bpk_metadata_value(metadata, &value_size);
		r = bpk_writer_set_metadata(writer, name, name_size, value, value_size,
					    error);
	}
	return r;
}

int main(int argc, char **argv)
{
	struct bpk_error error = { .message = "" };
	struct bpk_reader *reader = NULL;
	struct bpk_writer *writer = NULL;
	int r;

	if (argc != 3)
		return 2;
	r = bpk_reader_open(argv[1], NULL, &reader, &error);
	if (r == 0)
		r = bpk_writer_new(NULL, &writer);
	if (r == 0) {
		bpk_writer_allow_odd_sizes(writer, true);
		r = add_tensors(writer, reader, &error);
	}
	if (r == 0)
		r = set_rest(writer, reader, &error);
	if (r == 0)
		r = bpk_writer_write_file(writer, argv[2], NULL, &error);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], error.message);
	bpk_writer_free(writer);
	bpk_reader_close(reader);
	return r < 0;
}
