/*
 * safetensors.c - see safetensors.h.
 *
 * Tensors are asked for three times: to sort them, to tell in __metadata__ what is
 * shown as something else, and to tell the tensors themselves. So nothing of a name or
 * shape is kept but in the header.
 */
#include "safetensors.h"
#include "array.h"
#include "error.h"
#include "json.h"

#include <errno.h>

#define LENGTH_SIZE 8u /* before the JSON */
#define ALIGNMENT 8

#define RESERVED "__metadata__"
#define RESERVED_SIZE (sizeof(RESERVED) - 1)

static const struct {
	const char *name;
	bool own; /* says it all: the dtype that the name stands for in a pack */
} shown[BPK_DTYPE_COUNT] = {
	[BPK_DTYPE_F64] = { "F64", true },
	[BPK_DTYPE_F32] = { "F32", true },
	[BPK_DTYPE_FLEX32] = { "F32", false },
	[BPK_DTYPE_F16] = { "F16", true },
	[BPK_DTYPE_BF16] = { "BF16", true },
	[BPK_DTYPE_I64] = { "I64", true },
	[BPK_DTYPE_I32] = { "I32", true },
	[BPK_DTYPE_I16] = { "I16", true },
	[BPK_DTYPE_I8] = { "I8", true },
	[BPK_DTYPE_U64] = { "U64", true },
	[BPK_DTYPE_U32] = { "U32", true },
	[BPK_DTYPE_U16] = { "U16", true },
	[BPK_DTYPE_U8] = { "U8", true },
	[BPK_DTYPE_BOOL_NATIVE] = { "BOOL", true },
	[BPK_DTYPE_BOOL_U8] = { "BOOL", false },
	[BPK_DTYPE_BOOL_U32] = { "U32", false },
	[BPK_DTYPE_BOOL_LEGACY] = { "BOOL", false },
	[BPK_DTYPE_QFLOAT] = { "U8", false }, /* never an array */
};

struct render {
	const struct bpk_safetensors_source *source;
	struct bpk_safetensors *layout;
	struct bpk_error *error;
	struct bpk_appender out; /* length and JSON */
	bool over;		 /* there is more JSON than the format allows */
	bool has_reserved;	 /* a tensor has the name RESERVED */
	uint64_t reserved_number;
	uint64_t word_number; /* of "bpk" */
};

static int fail_memory(struct render *render)
{
	return bpk_fail(render->error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
			"out of memory");
}

/* The caller's side -------------------------------------------------------- */

static int describe(struct render *render, size_t index,
		    struct bpk_safetensors_desc *ret_desc)
{
	int r;

	*ret_desc = (struct bpk_safetensors_desc) { .name = NULL };
	r = render->source->describe(render->source->context, index, ret_desc);
	if (r < 0)
		return bpk_fail(render->error, r, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"tensor %zu of the pack could not be described", index);
	return 0;
}

static int get_pair(struct render *render, size_t index,
		    struct bpk_safetensors_pair *ret_pair)
{
	int r;

	*ret_pair = (struct bpk_safetensors_pair) { .key = NULL };
	r = render->source->pair(render->source->context, index, ret_pair);
	if (r < 0)
		return bpk_fail(render->error, r, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"metadata key %zu of the pack could not be read", index);
	return 0;
}

static bool is_reserved(const struct bpk_safetensors_desc *desc)
{
	return desc->name_size == RESERVED_SIZE &&
	       !memcmp(desc->name, RESERVED, RESERVED_SIZE);
}

static bool is_array(const struct bpk_safetensors_desc *desc)
{
	return bpk_array_is(desc->dtype, desc->shape, desc->rank, desc->size);
}

/* Order -------------------------------------------------------------------- */

struct place {
	uint64_t order;
	size_t index;
	uint64_t element_size;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->element_size != y->element_size)
		return x->element_size > y->element_size ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int find_order(struct render *render)
{
	size_t count = render->source->tensor_count;
	_cleanup_(bpk_free_at) struct place *places = NULL;

	places = reallocarray(NULL, count ? count : 1, sizeof(*places));
	if (!places)
		return fail_memory(render);
	for (size_t i = 0; i < count; i++) {
		struct bpk_safetensors_desc desc;
		int r = describe(render, i, &desc);

		if (r < 0)
			return r;
		places[i] = (struct place) {
			.order = desc.order,
			.index = i,
			.element_size =
				is_array(&desc) ? bpk_dtype_element_size(desc.dtype) : 1,
		};
		render->has_reserved |= is_reserved(&desc);
	}
	qsort(places, count, sizeof(*places), compare_places);
	for (size_t i = 0; i < count; i++)
		render->layout->order[i] = places[i].index;
	return 0;
}

/* Words with a number that nobody uses ------------------------------------- */

/*
 * Numbers 0 (no digits) to limit. Of so many, @limit texts leave one free, so what
 * does not fit need not be remembered.
 */
struct numbers {
	uint8_t *taken; /* a bit each */
	uint64_t limit;
};

static int numbers_init(struct render *render, struct numbers *numbers, size_t limit)
{
	numbers->limit = limit;
	numbers->taken = calloc(limit / 8 + 1, 1);
	return numbers->taken ? 0 : fail_memory(render);
}

/* Is @text the @word and a number? Then *@ret_rest is where that ends. */
static bool parse_number(const char *text, size_t size, const char *word, uint64_t limit,
			 uint64_t *ret_number, size_t *ret_rest)
{
	size_t start = strlen(word), at = start;
	uint64_t number = 0;

	if (size < start || memcmp(text, word, start) != 0)
		return false;
	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
		number = number * 10 + (uint64_t)(text[at] - '0');
		if (number > limit || text[start] == '0')
			return false;
	}
	*ret_number = number;
	*ret_rest = at;
	return true;
}

static void numbers_take(struct numbers *numbers, uint64_t number)
{
	numbers->taken[number / 8] |= (uint8_t)(1u << number % 8);
}

static uint64_t numbers_first_free(const struct numbers *numbers)
{
	uint64_t number = 0;

	while (number < numbers->limit && numbers->taken[number / 8] & 1u << number % 8)
		number++;
	return number;
}

/* The number behind RESERVED, for the one tensor of that name. */
static int find_reserved_number(struct render *render)
{
	_cleanup_(bpk_free_at) uint8_t *taken = NULL;
	struct numbers numbers;
	int r;

	r = numbers_init(render, &numbers, render->source->tensor_count);
	taken = numbers.taken;
	for (size_t i = 0; r == 0 && i < render->source->tensor_count; i++) {
		struct bpk_safetensors_desc desc;
		uint64_t number;
		size_t rest;

		r = describe(render, i, &desc);
		if (r == 0 &&
		    parse_number(desc.name, desc.name_size, RESERVED, numbers.limit,
				 &number, &rest) &&
		    rest == desc.name_size)
			numbers_take(&numbers, number);
	}
	if (r == 0)
		render->reserved_number = numbers_first_free(&numbers);
	return r;
}

/* The number behind "bpk". */
static int find_word_number(struct render *render)
{
	_cleanup_(bpk_free_at) uint8_t *taken = NULL;
	struct numbers numbers;
	int r;

	r = numbers_init(render, &numbers, render->source->pair_count);
	taken = numbers.taken;
	for (size_t i = 0; r == 0 && i < render->source->pair_count; i++) {
		struct bpk_safetensors_pair pair;
		uint64_t number;
		size_t rest;

		r = get_pair(render, i, &pair);
		if (r == 0 &&
		    parse_number(pair.key, pair.key_size, "bpk", numbers.limit, &number,
				 &rest) &&
		    rest < pair.key_size && pair.key[rest] == '.')
			numbers_take(&numbers, number);
	}
	if (r == 0)
		render->word_number = numbers_first_free(&numbers);
	return r;
}

/* JSON --------------------------------------------------------------------- */

/* Is there room for @size more bytes? Once there was not, there is none. */
static bool room(struct render *render, uint64_t size)
{
	uint64_t used = render->out.size - LENGTH_SIZE;

	render->over |= size > BPK_SAFETENSORS_JSON_MAX - used;
	return !render->over;
}

/* Did anything not fit? Then there is no use in going on. */
static int put_result(struct render *render)
{
	if (render->out.failed)
		return fail_memory(render);
	if (render->over)
		return bpk_fail(
			render->error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
			"names and shapes need more than %llu bytes of JSON, which is "
			"all that a safetensors file may have",
			(unsigned long long)BPK_SAFETENSORS_JSON_MAX);
	return 0;
}

static void put(struct render *render, const char *text)
{
	size_t size = strlen(text);

	if (room(render, size))
		bpk_append_raw(&render->out, text, size);
}

static void put_escaped(struct render *render, const char *text, size_t size)
{
	/* Far from the limit there is no need to count. */
	bool certain = size < BPK_SAFETENSORS_JSON_MAX / 8 &&
		       render->out.size < BPK_SAFETENSORS_JSON_MAX / 8;

	if (certain || room(render, bpk_json_escaped_size(text, size)))
		bpk_json_escape(&render->out, text, size);
}

static void put_uint(struct render *render, uint64_t value)
{
	char digits[BPK_DECIMAL_SIZE];
	size_t size = bpk_decimal(value, digits);

	if (room(render, size))
		bpk_append_raw(&render->out, digits, size);
}

static void put_shape(struct render *render, const uint64_t *shape, size_t rank)
{
	put(render, "[");
	for (size_t i = 0; i < rank && !render->over; i++) {
		if (i)
			put(render, ",");
		put_uint(render, shape[i]);
	}
	put(render, "]");
}

/* The name that is shown, without quotes. */
static void put_name(struct render *render, const struct bpk_safetensors_desc *desc)
{
	put_escaped(render, desc->name, desc->name_size);
	if (is_reserved(desc))
		put_uint(render, render->reserved_number);
}

/* A key of ours, and its value up to the quote that ends it. */
static void put_key(struct render *render, bool *first, const char *kind,
		    const struct bpk_safetensors_desc *desc)
{
	put(render, *first ? "\"bpk" : ",\"bpk");
	*first = false;
	if (render->word_number)
		put_uint(render, render->word_number);
	put(render, kind);
	put_name(render, desc);
	put(render, "\":\"");
}

/* What the view does not show of a tensor. */
static void put_origin(struct render *render, bool *first,
		       const struct bpk_safetensors_desc *desc)
{
	bool array = is_array(desc);

	if (array ? !shown[desc->dtype].own : desc->dtype != BPK_DTYPE_U8) {
		const char *name = bpk_dtype_name(desc->dtype);

		put_key(render, first, ".dtype:", desc);
		if (desc->dtype == BPK_DTYPE_QFLOAT && desc->dtype_text)
			put_escaped(render, desc->dtype_text, desc->dtype_text_size);
		else
			put(render, name);
		put(render, "\"");
	}
	if (!array && (desc->rank != 1 || *desc->shape != desc->size)) {
		put_key(render, first, ".shape:", desc);
		put_shape(render, desc->shape, desc->rank);
		put(render, "\"");
	}
	if (is_reserved(desc)) {
		put_key(render, first, ".name:", desc);
		put_escaped(render, desc->name, desc->name_size);
		put(render, "\"");
	}
}

static int put_metadata(struct render *render)
{
	size_t start = render->out.size;
	bool first = true;

	put(render, "\"" RESERVED "\":{");
	for (size_t i = 0; i < render->source->pair_count; i++) {
		struct bpk_safetensors_pair pair;
		int r = get_pair(render, i, &pair);

		if (r < 0)
			return r;
		put(render, first ? "\"" : ",\"");
		first = false;
		put_escaped(render, pair.key, pair.key_size);
		put(render, "\":\"");
		put_escaped(render, pair.value, pair.value_size);
		put(render, "\"");
		r = put_result(render);
		if (r < 0)
			return r;
	}
	for (size_t k = 0; k < render->layout->count; k++) {
		struct bpk_safetensors_desc desc;
		int r = describe(render, render->layout->order[k], &desc);

		if (r == 0) {
			put_origin(render, &first, &desc);
			r = put_result(render);
		}
		if (r < 0)
			return r;
	}
	if (first) /* nothing to tell */
		render->out.size = start;
	else
		put(render, render->layout->count ? "}," : "}");
	return put_result(render);
}

static void put_tensor(struct render *render, const struct bpk_safetensors_desc *desc,
		       uint64_t start, uint64_t end)
{
	bool array = is_array(desc);

	put(render, "\"");
	put_name(render, desc);
	put(render, "\":{\"dtype\":\"");
	put(render, array ? shown[desc->dtype].name : "U8");
	put(render, "\",\"shape\":");
	put_shape(render, array ? desc->shape : &desc->size, array ? desc->rank : 1);
	put(render, ",\"data_offsets\":[");
	put_uint(render, start);
	put(render, ",");
	put_uint(render, end);
	put(render, "]}");
}

static int put_tensors(struct render *render)
{
	struct bpk_safetensors *layout = render->layout;

	for (size_t k = 0; k < layout->count; k++) {
		struct bpk_safetensors_desc desc;
		uint64_t start = layout->data_size, end;
		int r = describe(render, layout->order[k], &desc);

		if (r < 0)
			return r;
		if (!bpk_add_u64(start, desc.size, &end) || end > BPK_ARRAY_SIZE_MAX)
			return bpk_fail(render->error, -EOVERFLOW, BPK_ERR_OVERFLOW,
					BPK_NO_OFFSET,
					"the tensors have more bytes than a file can");
		if (k)
			put(render, ",");
		put_tensor(render, &desc, start, end);
		r = put_result(render);
		if (r < 0)
			return r;
		layout->offs[k] = start;
		layout->data_size = end;
	}
	return 0;
}

/* Spaces to the alignment, the length in front, and no more memory than that. */
static int finish_header(struct render *render)
{
	static const char spaces[ALIGNMENT] = "        ";
	size_t rest = render->out.size % ALIGNMENT;
	uint8_t *header;
	int r;

	if (rest && room(render, ALIGNMENT - rest))
		bpk_append_raw(&render->out, spaces, ALIGNMENT - rest);
	r = put_result(render);
	if (r < 0)
		return r;
	header = render->out.data;
	bpk_put_le32(header, (uint32_t)(render->out.size - LENGTH_SIZE));
	render->layout->header_size = render->out.size;
	header = realloc(header, render->out.size);
	if (!header)
		return fail_memory(render);
	render->out.data = NULL;
	render->layout->header = (char *)header;
	return 0;
}

static int render_all(struct render *render)
{
	static const char length[LENGTH_SIZE];
	int r = find_order(render);

	if (r == 0 && render->has_reserved)
		r = find_reserved_number(render);
	if (r == 0 && render->source->pair_count)
		r = find_word_number(render);
	if (r < 0)
		return r;
	bpk_append_raw(&render->out, length, sizeof(length));
	put(render, "{");
	r = put_metadata(render);
	if (r == 0)
		r = put_tensors(render);
	if (r < 0)
		return r;
	put(render, "}");
	return finish_header(render);
}

int bpk_safetensors_render(const struct bpk_safetensors_source *source,
			   struct bpk_safetensors **ret_layout, struct bpk_error *error)
{
	struct render render = { .source = source, .error = error };
	size_t count = source->tensor_count;
	struct bpk_safetensors *layout;
	int r;

	layout = calloc(1, sizeof(*layout));
	if (!layout)
		return fail_memory(&render);
	render.layout = layout;
	layout->count = count;
	layout->order = reallocarray(NULL, count ? count : 1, sizeof(*layout->order));
	layout->offs = reallocarray(NULL, count ? count : 1, sizeof(*layout->offs));
	r = layout->order && layout->offs ? render_all(&render) : fail_memory(&render);
	bpk_append_done(&render.out);
	if (r < 0) {
		bpk_safetensors_free(layout);
		return r;
	}
	*ret_layout = layout;
	return 0;
}

void bpk_safetensors_free(struct bpk_safetensors *layout)
{
	if (!layout)
		return;
	free(layout->header);
	free(layout->order);
	free(layout->offs);
	free(layout);
}
