/*
 * bpk-dump.c - print what a reader says of a pack as JSON, for tests to compare.
 *
 *	bpk-dump [--buffer] PACK
 *
 * --buffer reads the file here and uses bpk_reader_open_buffer(). A pack that is
 * refused: one line "error CODE OFFSET MESSAGE" on stderr (offset "-" when there
 * is none), exit status 1; 2 for anything else that fails.
 *
 * Every accessor of the reader is used once for each thing, so that a sanitizer
 * or valgrind sees them all at work.
 */
#include "bpk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_string(const char *text, size_t size)
{
	putchar('"');
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void put_hex(const void *data, size_t size)
{
	putchar('"');
	for (size_t i = 0; i < size; i++)
		printf("%02x", ((const unsigned char *)data)[i]);
	putchar('"');
}

static uint64_t fnv64(const unsigned char *data, uint64_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint64_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void *allocate(size_t size)
{
	void *block = malloc(size ? size : 1);

	if (!block) {
		fprintf(stderr, "out of memory\n");
		exit(2);
	}
	return block;
}

static void put_dtype(const struct bpk_tensor *tensor)
{
	enum bpk_dtype dtype = bpk_tensor_dtype(tensor);
	size_t size = bpk_tensor_dtype_text(tensor, NULL, 0) + 1;
	char *text = allocate(size);
	size_t length;

	if (bpk_tensor_dtype_text(tensor, text, size) != size - 1 ||
	    strlen(text) != size - 1) {
		fprintf(stderr, "the text of a dtype changes its size\n");
		exit(2);
	}
	length = strlen(text);
	if (dtype == BPK_DTYPE_QFLOAT) {
		printf("%s", text);
	} else if (strncmp(text, "Bool(", 5) == 0) {
		printf("{\"Bool\":");
		put_string(text + 5, length - 6);
		putchar('}');
	} else {
		put_string(text, length);
	}
	free(text);
}

static void put_tensor(const struct bpk_reader *reader, const struct bpk_tensor *tensor)
{
	size_t size, count, rank = bpk_tensor_rank(tensor);
	uint64_t *shape = allocate(rank * sizeof(*shape)), param_id;
	const char *name = bpk_tensor_name(tensor, &size);
	const void *extra;

	printf("{\"name\":");
	put_string(name, size);
	if (bpk_reader_find_tensor(reader, name, size) != tensor) {
		fprintf(stderr, "a tensor is not found by its name\n");
		exit(2);
	}
	printf(",\"dtype\":");
	put_dtype(tensor);
	printf(",\"dtype_cbor\":");
	extra = bpk_tensor_dtype_cbor(tensor, &size);
	put_hex(extra, size);
	printf(",\"shape\":[");
	bpk_tensor_shape(tensor, shape, rank);
	for (size_t i = 0; i < rank; i++)
		printf("%s%" PRIu64, i ? "," : "", shape[i]);
	free(shape);
	printf("],\"param_id\":");
	if (bpk_tensor_param_id(tensor, &param_id))
		printf("%" PRIu64, param_id);
	else
		printf("null");
	printf(",\"byte_len\":%" PRIu64 ",\"off\":%" PRIu64, bpk_tensor_size(tensor),
	       bpk_tensor_off(tensor));
	printf(",\"fnv64\":\"%016" PRIx64 "\"",
	       fnv64(bpk_tensor_data(reader, tensor), bpk_tensor_size(tensor)));
	extra = bpk_tensor_extra(tensor, &size, &count);
	printf(",\"extra_count\":%zu,\"extra\":", count);
	put_hex(extra, size);
	putchar('}');
}

static void put_scalar(const struct bpk_reader *reader, const struct bpk_scalar *scalar)
{
	struct bpk_scalar_value value = bpk_scalar_value(scalar);
	size_t size;
	const char *name = bpk_scalar_name(scalar, &size);

	put_string(name, size);
	if (bpk_reader_find_scalar(reader, name, size) != scalar) {
		fprintf(stderr, "a scalar is not found by its name\n");
		exit(2);
	}
	switch (value.type) {
	case BPK_SCALAR_INT:
		printf(":{\"Int\":%" PRId64 "}", value.i);
		break;
	case BPK_SCALAR_UINT:
		printf(":{\"UInt\":%" PRIu64 "}", value.u);
		break;
	case BPK_SCALAR_FLOAT:
		printf(":{\"bits\":\"0x%016" PRIx64 "\"}", value.float_bits);
		break;
	case BPK_SCALAR_BOOL:
		printf(":{\"Bool\":%s}", value.b ? "true" : "false");
		break;
	}
}

static void put_metadata(const struct bpk_reader *reader,
			 const struct bpk_metadata *metadata)
{
	size_t size;
	const char *text = bpk_metadata_key(metadata, &size);

	put_string(text, size);
	if (bpk_reader_find_metadata(reader, text, size) != metadata) {
		fprintf(stderr, "a metadata key is not found\n");
		exit(2);
	}
	putchar(':');
	text = bpk_metadata_value(metadata, &size);
	put_string(text, size);
}

static int put_finding(void *context, enum bpk_finding finding,
		       const struct bpk_tensor *tensor, const char *message)
{
	static const char *const names[] = { "size_mismatch", "unaligned", "overlap",
					     "metadata_trailer", "data_trailer" };
	bool *first = context;
	size_t size;

	printf("%s[\"%s\",", *first ? "" : ",", names[finding]);
	*first = false;
	if (tensor) {
		const char *name = bpk_tensor_name(tensor, &size);

		put_string(name, size);
	} else {
		printf("null");
	}
	putchar(',');
	put_string(message, strlen(message));
	putchar(']');
	return 0;
}

static void dump(const struct bpk_reader *reader)
{
	bool first = true;
	size_t size, count;
	const void *extra;

	printf("{\"version\":%u,\"file_size\":%" PRIu64 ",\"metadata_size\":%" PRIu64
	       ",\"data_off\":%" PRIu64 ",\"tensors\":[",
	       bpk_reader_format_version(reader), bpk_reader_file_size(reader),
	       bpk_reader_metadata_size(reader), bpk_reader_data_off(reader));
	for (size_t i = 0; i < bpk_reader_tensor_count(reader); i++) {
		if (i)
			putchar(',');
		put_tensor(reader, bpk_reader_tensor(reader, i));
	}
	printf("],\"scalars\":{");
	for (size_t i = 0; i < bpk_reader_scalar_count(reader); i++) {
		if (i)
			putchar(',');
		put_scalar(reader, bpk_reader_scalar(reader, i));
	}
	printf("},\"metadata\":{");
	for (size_t i = 0; i < bpk_reader_metadata_count(reader); i++) {
		if (i)
			putchar(',');
		put_metadata(reader, bpk_reader_metadata(reader, i));
	}
	extra = bpk_reader_extra(reader, &size, &count);
	printf("},\"extra_count\":%zu,\"extra\":", count);
	put_hex(extra, size);
	printf(",\"findings\":[");
	if (bpk_reader_check(reader, put_finding, &first))
		exit(2);
	printf("]}\n");
}

/* An allocation of exactly the file's size, so that a sanitizer sees its end. */
static void *read_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	void *data;
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) {
		perror(path);
		exit(2);
	}
	rewind(file);
	data = allocate((size_t)size);
	*ret_size = fread(data, 1, (size_t)size, file);
	fclose(file);
	if (*ret_size != (size_t)size) {
		fprintf(stderr, "%s: short read\n", path);
		exit(2);
	}
	return data;
}

int main(int argc, char **argv)
{
	bool buffer = argc == 3 && !strcmp(argv[1], "--buffer");
	struct bpk_reader *reader = NULL;
	struct bpk_error error;
	void *data = NULL;
	size_t size;
	int err;

	if (argc != (buffer ? 3 : 2)) {
		fprintf(stderr, "usage: bpk-dump [--buffer] PACK\n");
		return 2;
	}
	if (buffer) {
		data = read_file(argv[2], &size);
		err = bpk_reader_open_buffer(data, size, NULL, &reader, &error);
	} else {
		err = bpk_reader_open(argv[1], NULL, &reader, &error);
	}
	if (err) {
		fprintf(stderr, "error %d ", error.code);
		if (error.offset == BPK_NO_OFFSET)
			fprintf(stderr, "-");
		else
			fprintf(stderr, "%" PRIu64, error.offset);
		fprintf(stderr, " %s\n", error.message);
	} else {
		dump(reader);
	}
	bpk_reader_close(reader);
	free(data);
	return err ? 1 : 0;
}
