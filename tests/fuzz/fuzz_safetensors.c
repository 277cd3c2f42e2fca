/*
 * fuzz_safetensors.c - a pack made of any bytes, as a safetensors file: strings that
 * end, brackets that match, tensors without holes, elements that are aligned.
 *
 * The input is records: a byte that says what it is, then for a pair two texts, for a
 * tensor its name, dtype, order, rank and dimensions, and how far its size is off. A
 * text is a byte that says its size, and so many bytes.
 */
#include "base.h"
#include "convert/array.h"
#include "convert/safetensors.h"

#include <errno.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                               \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                         \
		}                                                                        \
	} while (0)

#define ITEMS_MAX 64
#define RANK_MAX 4

struct pack {
	struct bpk_safetensors_desc tensors[ITEMS_MAX];
	uint64_t shapes[ITEMS_MAX][RANK_MAX];
	struct bpk_safetensors_pair pairs[ITEMS_MAX];
	size_t tensor_count, pair_count;
};

struct input {
	const uint8_t *at, *end;
};

static uint8_t next(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

static const char *next_text(struct input *input, size_t *ret_size)
{
	size_t size = next(input), left = (size_t)(input->end - input->at);
	const char *text = (const char *)input->at;

	*ret_size = size < left ? size : left;
	input->at += *ret_size;
	return text;
}

/* Small ones mostly, now and then one that overflows. */
static uint64_t next_dim(struct input *input)
{
	uint8_t byte = next(input);

	return byte < 0xf0 ? byte % 7 : UINT64_C(1) << (byte - 0xf0) * 4;
}

static void next_tensor(struct input *input, struct pack *pack)
{
	struct bpk_safetensors_desc *desc = &pack->tensors[pack->tensor_count];
	uint64_t *shape = pack->shapes[pack->tensor_count++];

	desc->name = next_text(input, &desc->name_size);
	desc->dtype = (enum bpk_dtype)(next(input) % BPK_DTYPE_COUNT);
	desc->order = next(input);
	desc->rank = next(input) % (RANK_MAX + 1);
	for (size_t i = 0; i < desc->rank; i++)
		shape[i] = next_dim(input);
	desc->shape = shape;
	desc->dtype_text = desc->name;
	desc->dtype_text_size = desc->name_size;
	if (bpk_shape_size(desc->dtype, shape, desc->rank, &desc->size) < 0)
		desc->size = 7;
	desc->size += next(input) % 16 == 1;
}

static void read_pack(struct input *input, struct pack *pack)
{
	while (input->at < input->end && pack->tensor_count < ITEMS_MAX &&
	       pack->pair_count < ITEMS_MAX) {
		struct bpk_safetensors_pair *pair = &pack->pairs[pack->pair_count];

		if (next(input) % 4) {
			next_tensor(input, pack);
			continue;
		}
		pair->key = next_text(input, &pair->key_size);
		pair->value = next_text(input, &pair->value_size);
		pack->pair_count++;
	}
}

static int describe(void *context, size_t index, struct bpk_safetensors_desc *ret_desc)
{
	const struct pack *pack = context;

	REQUIRE(index < pack->tensor_count);
	*ret_desc = pack->tensors[index];
	return 0;
}

static int get_pair(void *context, size_t index, struct bpk_safetensors_pair *ret_pair)
{
	const struct pack *pack = context;

	REQUIRE(index < pack->pair_count);
	*ret_pair = pack->pairs[index];
	return 0;
}

/* Outside of strings only what a header needs; objects and arrays end as they began. */
static void check_json(const char *json, size_t size)
{
	char open[8];
	size_t depth = 0;
	bool string = false, ended = false;

	REQUIRE(*json == '{' && bpk_utf8_valid(json, size));
	for (size_t i = 0; i < size; i++) {
		char c = json[i];

		REQUIRE((uint8_t)c >= 0x20 && c != 0x7f);
		if (string) {
			if (c == '\\')
				i++;
			string = c != '"';
			continue;
		}
		REQUIRE(!ended || c == ' ');
		REQUIRE(memchr("{}[]\":,0123456789 ", c, 18));
		string = c == '"';
		if (c == '{' || c == '[') {
			REQUIRE(depth < sizeof(open));
			open[depth++] = c;
		} else if (c == '}' || c == ']') {
			REQUIRE(depth && open[--depth] == (c == '}' ? '{' : '['));
			ended = !depth;
		}
	}
	REQUIRE(!string && !depth);
}

static void check_layout(const struct pack *pack, const struct bpk_safetensors *layout)
{
	bool seen[ITEMS_MAX] = { false };
	uint64_t length = 0, at = 0;

	for (unsigned int i = 0; i < 8; i++)
		length |= (uint64_t)(uint8_t)layout->header[i] << 8 * i;
	REQUIRE(layout->header_size == length + 8 && length % 8 == 0);
	check_json(layout->header + 8, (size_t)length);
	REQUIRE(layout->count == pack->tensor_count);
	for (size_t k = 0; k < layout->count; k++) {
		const struct bpk_safetensors_desc *desc;

		REQUIRE(layout->order[k] < pack->tensor_count && !seen[layout->order[k]]);
		seen[layout->order[k]] = true;
		desc = &pack->tensors[layout->order[k]];
		REQUIRE(layout->offs[k] == at);
		if (bpk_array_is(desc->dtype, desc->shape, desc->rank, desc->size))
			REQUIRE(at % bpk_dtype_element_size(desc->dtype) == 0);
		at += desc->size;
	}
	REQUIRE(at == layout->data_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pack pack;
	struct input input = { data, data + size };
	struct bpk_safetensors *layout = NULL;
	struct bpk_safetensors_source source = {
		.describe = describe,
		.pair = get_pair,
		.context = &pack,
	};
	struct bpk_error error = { .code = BPK_OK };
	int r;

	if (!size)
		return 0;
	memset(&pack, 0, sizeof(pack));
	read_pack(&input, &pack);
	source.tensor_count = pack.tensor_count;
	source.pair_count = pack.pair_count;
	r = bpk_safetensors_render(&source, &layout, &error);
	if (r < 0) {
		REQUIRE(!layout && r == -EOVERFLOW && error.code == BPK_ERR_OVERFLOW);
	} else {
		REQUIRE(error.code == BPK_OK);
		check_layout(&pack, layout);
	}
	bpk_safetensors_free(layout);
	return 0;
}
