/*
 * bpk-convert.c - libbpk/convert for tests in another language: one request a line on
 * stdin, one answer a line on stdout.
 *
 *	bpk-convert < REQUESTS > ANSWERS
 *
 *	npy DTYPE SIZE [DIM...]		npy HEADER
 *	parse FILE			npy DTYPE HEADER_SIZE DATA_SIZE ENDIAN ORDER
 *[DIM...] json TEXT			json STRING number TEXT			json
 *NUMBER tensor NAME DTYPE DTYPE_TEXT SIZE ORDER [DIM...]	(no answer) pair KEY VALUE
 *(no answer) safetensors			safetensors HEADER DATA_SIZE
 *[INDEX:OFF...]
 *
 * or "error ERRNO CODE OFFSET MESSAGE" (OFFSET is - when there is none). Whatever is
 * text or bytes is hex, "-" when empty; dtypes are as bpk_dtype_name() has them; ENDIAN
 * is little or big, ORDER row or column. safetensors shows the tensors and pairs since
 * the last one. A request that makes no sense is status 2.
 */
#include "convert/json.h"
#include "convert/npy.h"
#include "convert/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	char *data;
	size_t size;
};

struct tensor {
	struct bytes name, text;
	struct bpk_safetensors_desc desc;
	uint64_t *shape;
};

struct pair {
	struct bytes key, value;
};

struct pack {
	struct tensor *tensors;
	struct pair *pairs;
	size_t tensor_count, pair_count;
	size_t tensor_room, pair_room;
};

__attribute__((noreturn)) static void bad(const char *what, const char *word)
{
	fprintf(stderr, "%s: %s\n", what, word ? word : "nothing");
	exit(2);
}

static void *grow(void *array, size_t *room, size_t count, size_t element_size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 16;
	array = reallocarray(array, *room, element_size);
	if (!array)
		bad("memory", NULL);
	return array;
}

/* The next word of a line whose first was given to strtok(3). */
static const char *next(void)
{
	return strtok(NULL, " \n");
}

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a' + 10);
	bad("not hex", (char[]) { c, '\0' });
}

/* Exactly as large as said, so that a sanitizer sees the end. */
static struct bytes read_hex(const char *word)
{
	struct bytes bytes = { NULL, 0 };

	if (!word)
		bad("hex expected", word);
	if (strcmp(word, "-") != 0)
		bytes.size = strlen(word) / 2;
	bytes.data = malloc(bytes.size ? bytes.size : 1);
	if (!bytes.data)
		bad("memory", NULL);
	for (size_t i = 0; i < bytes.size; i++)
		bytes.data[i] = (char)(digit(word[2 * i]) << 4 | digit(word[2 * i + 1]));
	return bytes;
}

static void print_hex(const char *word, const void *data, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *bytes = data;

	printf("%s ", word);
	for (size_t i = 0; i < size; i++) {
		putchar(hex[bytes[i] >> 4]);
		putchar(hex[bytes[i] & 15]);
	}
	if (!size)
		putchar('-');
}

static uint64_t read_number(const char *word)
{
	char *end;
	uint64_t value;

	if (!word)
		bad("number expected", word);
	errno = 0;
	value = strtoull(word, &end, 10);
	if (*end || errno)
		bad("number expected", word);
	return value;
}

static enum bpk_dtype read_dtype(const char *word)
{
	enum bpk_dtype dtype = BPK_DTYPE_QFLOAT;

	if (!word || (strcmp(word, "QFloat") != 0 &&
		      bpk_dtype_from_name(word, strlen(word), &dtype)))
		bad("dtype expected", word);
	return dtype;
}

static uint64_t *read_shape(size_t *ret_rank)
{
	uint64_t *shape = NULL;
	size_t rank = 0, room = 0;
	const char *word;

	while ((word = next())) {
		shape = grow(shape, &room, rank, sizeof(*shape));
		shape[rank++] = read_number(word);
	}
	*ret_rank = rank;
	return shape;
}

static void print_error(int r, const struct bpk_error *error)
{
	printf("error %s %d ", strerrorname_np(-r), error->code);
	if (error->offset == BPK_NO_OFFSET)
		putchar('-');
	else
		printf("%" PRIu64, error->offset);
	printf(" %s\n", error->message);
}

static void render_npy(void)
{
	enum bpk_dtype dtype = read_dtype(next());
	uint64_t size = read_number(next()), *shape;
	char *header;
	size_t rank, header_size;

	shape = read_shape(&rank);
	if (bpk_npy_render(dtype, shape, rank, size, &header, &header_size) < 0)
		bad("memory", NULL);
	if (bpk_npy_render_size(dtype, shape, rank, size) != header_size)
		bad("the size of the header is not what was said", NULL);
	print_hex("npy", header, header_size);
	putchar('\n');
	free(header);
	free(shape);
}

static void parse_npy(void)
{
	struct bytes file = read_hex(next());
	struct bpk_error error;
	struct bpk_npy npy;
	int r;

	r = bpk_npy_parse(file.data, file.size, &npy, &error);
	if (r < 0) {
		print_error(r, &error);
	} else {
		printf("npy %s %" PRIu64 " %" PRIu64 " %s %s", bpk_dtype_name(npy.dtype),
		       npy.header_size, npy.data_size, npy.big_endian ? "big" : "little",
		       npy.column_major ? "column" : "row");
		for (size_t i = 0; i < npy.rank; i++)
			printf(" %" PRIu64, npy.shape[i]);
		putchar('\n');
		bpk_npy_done(&npy);
	}
	free(file.data);
}

static void print_json(void (*append)(struct bpk_appender *, const char *, size_t))
{
	struct bytes text = read_hex(next());
	struct bpk_appender out = { .data = NULL };

	append(&out, text.data, text.size);
	if (out.failed)
		bad("memory", NULL);
	print_hex("json", out.data, out.size);
	putchar('\n');
	bpk_append_done(&out);
	free(text.data);
}

static void add_tensor(struct pack *pack)
{
	struct tensor *tensor;

	pack->tensors = grow(pack->tensors, &pack->tensor_room, pack->tensor_count,
			     sizeof(*pack->tensors));
	tensor = &pack->tensors[pack->tensor_count++];
	tensor->name = read_hex(next());
	tensor->desc.dtype = read_dtype(next());
	tensor->text = read_hex(next());
	tensor->desc.size = read_number(next());
	tensor->desc.order = read_number(next());
	tensor->shape = read_shape(&tensor->desc.rank);
	tensor->desc.name = tensor->name.data;
	tensor->desc.name_size = tensor->name.size;
	tensor->desc.dtype_text = tensor->text.data;
	tensor->desc.dtype_text_size = tensor->text.size;
	tensor->desc.shape = tensor->shape;
}

static void add_pair(struct pack *pack)
{
	struct pair *pair;

	pack->pairs = grow(pack->pairs, &pack->pair_room, pack->pair_count,
			   sizeof(*pack->pairs));
	pair = &pack->pairs[pack->pair_count++];
	pair->key = read_hex(next());
	pair->value = read_hex(next());
}

static int describe(void *context, size_t index, struct bpk_safetensors_desc *ret_desc)
{
	const struct pack *pack = context;

	*ret_desc = pack->tensors[index].desc;
	return 0;
}

static int get_pair(void *context, size_t index, struct bpk_safetensors_pair *ret_pair)
{
	const struct pair *pair = &((const struct pack *)context)->pairs[index];

	*ret_pair = (struct bpk_safetensors_pair) {
		.key = pair->key.data,
		.key_size = pair->key.size,
		.value = pair->value.data,
		.value_size = pair->value.size,
	};
	return 0;
}

static void forget(struct pack *pack)
{
	for (size_t i = 0; i < pack->tensor_count; i++) {
		free(pack->tensors[i].name.data);
		free(pack->tensors[i].text.data);
		free(pack->tensors[i].shape);
	}
	for (size_t i = 0; i < pack->pair_count; i++) {
		free(pack->pairs[i].key.data);
		free(pack->pairs[i].value.data);
	}
	free(pack->tensors);
	free(pack->pairs);
	*pack = (struct pack) { .tensors = NULL };
}

static void render_safetensors(struct pack *pack)
{
	const struct bpk_safetensors_source source = {
		.tensor_count = pack->tensor_count,
		.describe = describe,
		.pair_count = pack->pair_count,
		.pair = get_pair,
		.context = pack,
	};
	struct bpk_safetensors *layout;
	struct bpk_error error;
	int r;

	r = bpk_safetensors_render(&source, &layout, &error);
	if (r < 0) {
		print_error(r, &error);
	} else {
		print_hex("safetensors", layout->header, layout->header_size);
		printf(" %" PRIu64, layout->data_size);
		for (size_t k = 0; k < layout->count; k++)
			printf(" %zu:%" PRIu64, layout->order[k], layout->offs[k]);
		putchar('\n');
		bpk_safetensors_free(layout);
	}
	forget(pack);
}

static void answer(struct pack *pack, const char *word)
{
	if (!strcmp(word, "npy"))
		render_npy();
	else if (!strcmp(word, "parse"))
		parse_npy();
	else if (!strcmp(word, "json"))
		print_json(bpk_json_string);
	else if (!strcmp(word, "number"))
		print_json(bpk_json_number);
	else if (!strcmp(word, "tensor"))
		add_tensor(pack);
	else if (!strcmp(word, "pair"))
		add_pair(pack);
	else if (!strcmp(word, "safetensors"))
		render_safetensors(pack);
	else
		bad("unknown request", word);
}

int main(void)
{
	struct pack pack = { .tensors = NULL };
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		const char *word = strtok(line, " \n");

		if (word)
			answer(&pack, word);
	}
	free(line);
	forget(&pack);
	return ferror(stdin) || fflush(stdout) ? 2 : 0;
}
