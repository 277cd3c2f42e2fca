/*
 * fuzz_plan.c - a writer is driven by the input; whatever it accepts is written into a
 * buffer, read back, and must be the same. What it refuses must leave no trace.
 *
 * The input is a row of commands, see drive(); what a command lacks is zero.
 */
#include "bpk.h"
#include "writer.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			abort();                                                         \
		}                                                                        \
	} while (0)

#define TENSORS_MAX 64
#define RANK_MAX 8

struct input {
	const uint8_t *at;
	size_t left;
};

/* What was accepted, to compare with. */
struct expected {
	char *name;
	size_t name_size;
	enum bpk_dtype dtype;
	uint64_t shape[RANK_MAX];
	size_t rank;
	bool has_param_id;
	uint64_t param_id;
	uint8_t *cbor, *extra, *data;
	size_t cbor_size, extra_size, extra_count;
	uint64_t size;
};

struct state {
	struct input in;
	struct bpk_writer *writer;
	struct expected tensors[TENSORS_MAX];
	size_t count;
	uint8_t *extra;
	size_t extra_size, extra_count;
};

static uint64_t take_number(struct input *in, size_t size)
{
	uint64_t value = 0;

	while (size-- && in->left) {
		value = value << 8 | *in->at++;
		in->left--;
	}
	return value;
}

/* A copy of as many bytes as the next one says, NULL for none. */
static void *take_bytes(struct input *in, size_t *ret_size)
{
	size_t size = (size_t)take_number(in, 1);
	void *bytes;

	if (size > in->left)
		size = in->left;
	*ret_size = size;
	if (!size)
		return NULL;
	bytes = malloc(size);
	CHECK(bytes);
	memcpy(bytes, in->at, size);
	in->at += size;
	in->left -= size;
	return bytes;
}

static void expected_done(struct expected *tensor)
{
	free(tensor->name);
	free(tensor->cbor);
	free(tensor->extra);
	free(tensor->data);
}

static int provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	const struct expected *tensor = context;

	*ret_data = tensor->data;
	*ret_size = tensor->size;
	return 0;
}

/* A "file" that is the writer's own list: fd is an index there. */
static const struct state *range_state;

static int range_read(int fd, void *buffer, size_t size, uint64_t off, size_t *ret_done)
{
	const struct expected *tensor = &range_state->tensors[fd];
	uint64_t there = off < tensor->size ? tensor->size - off : 0;

	if (size > there)
		size = (size_t)there;
	if (size > 100)
		size = 100;
	if (size)
		memcpy(buffer, tensor->data + off, size);
	*ret_done = size;
	return 0;
}

static const struct bpk_range_ops range_ops = { range_read };

static struct expected take_tensor(struct input *in)
{
	struct expected tensor = { .rank = (size_t)take_number(in, 1) % (RANK_MAX + 1) };
	unsigned int flags = (unsigned int)take_number(in, 1);
	uint64_t wanted;

	tensor.dtype = (enum bpk_dtype)(take_number(in, 1) % (BPK_DTYPE_COUNT + 1));
	tensor.name = take_bytes(in, &tensor.name_size);
	for (size_t i = 0; i < tensor.rank; i++)
		tensor.shape[i] = take_number(in, flags & 1 ? 8 : 1);
	tensor.has_param_id = flags & 2;
	if (tensor.has_param_id)
		tensor.param_id = take_number(in, 8);
	if (flags & 4)
		tensor.cbor = take_bytes(in, &tensor.cbor_size);
	if (flags & 8) {
		tensor.extra_count = (size_t)take_number(in, 1);
		tensor.extra = take_bytes(in, &tensor.extra_size);
	}
	tensor.size = take_number(in, 2) % 2000;
	/* Mostly the right size, or next to nothing is ever accepted. */
	if (!(flags & 16) && tensor.dtype < BPK_DTYPE_QFLOAT &&
	    bpk_shape_size(tensor.dtype, tensor.shape, tensor.rank, &wanted) == 0 &&
	    wanted < 1 << 16)
		tensor.size = wanted;
	tensor.data = malloc(tensor.size ? (size_t)tensor.size : 1);
	CHECK(tensor.data);
	for (uint64_t i = 0; i < tensor.size; i++)
		tensor.data[i] = (uint8_t)(i * 31 + tensor.name_size + 1);
	return tensor;
}

static void add_tensor(struct state *state)
{
	struct expected *tensor = &state->tensors[state->count];
	unsigned int how = (unsigned int)take_number(&state->in, 1);
	const struct bpk_provider provider = { provide, NULL, tensor };
	struct bpk_tensor_desc desc;
	int r;

	*tensor = take_tensor(&state->in);
	desc = (struct bpk_tensor_desc) {
		.name = tensor->name,
		.name_size = tensor->name_size,
		.dtype = tensor->dtype,
		.dtype_cbor = tensor->cbor,
		.dtype_cbor_size = tensor->cbor_size,
		.shape = tensor->shape,
		.rank = tensor->rank,
		.has_param_id = tensor->has_param_id,
		.param_id = tensor->param_id,
		.extra = tensor->extra,
		.extra_size = tensor->extra_size,
		.extra_count = tensor->extra_count,
	};
	bpk_writer_allow_odd_sizes(state->writer, how & 4);
	if (how % 3 == 0)
		r = bpk_writer_add_bytes(state->writer, &desc, tensor->data, tensor->size,
					 NULL);
	else if (how % 3 == 1)
		r = bpk_writer_add_deferred(state->writer, &desc, tensor->size, &provider,
					    NULL);
	else
		r = bpk_writer_add_range_ops(state->writer, &desc, &range_ops,
					     (int)state->count, 0, tensor->size, NULL);
	if (r == 0)
		state->count++;
	else
		expected_done(tensor);
}

static void set_scalar(struct state *state)
{
	struct bpk_scalar_value value = {
		.type = (enum bpk_scalar_type)(take_number(&state->in, 1) % 5),
	};
	size_t size;
	char *name;

	value.u = take_number(&state->in, 8);
	if (value.type == BPK_SCALAR_BOOL)
		value.b = value.u & 1;
	name = take_bytes(&state->in, &size);
	bpk_writer_set_scalar(state->writer, name, size, value, NULL);
	free(name);
}

static void set_metadata(struct state *state)
{
	size_t key_size, value_size;
	char *key = take_bytes(&state->in, &key_size);
	char *value = take_bytes(&state->in, &value_size);

	bpk_writer_set_metadata(state->writer, key, key_size, value, value_size, NULL);
	free(key);
	free(value);
}

static void set_extra(struct state *state)
{
	size_t count = (size_t)take_number(&state->in, 1), size;
	uint8_t *extra = take_bytes(&state->in, &size);

	if (bpk_writer_set_extra(state->writer, extra, size, count, NULL) < 0) {
		free(extra);
		return;
	}
	free(state->extra);
	state->extra = extra;
	state->extra_size = size;
	state->extra_count = count;
}

static void drive(struct state *state)
{
	uint64_t size;

	while (state->in.left) {
		switch (take_number(&state->in, 1) % 8) {
		case 0:
			set_metadata(state);
			break;
		case 1:
			set_extra(state);
			break;
		case 2:
		case 3:
			set_scalar(state);
			break;
		case 4:
			bpk_writer_plan(state->writer, &size, NULL);
			break;
		default:
			if (state->count < TENSORS_MAX)
				add_tensor(state);
		}
	}
}

static void check_tensor(const struct bpk_reader *reader, const struct expected *wanted)
{
	const struct bpk_tensor *found =
		bpk_reader_find_tensor(reader, wanted->name, wanted->name_size);
	uint64_t shape[RANK_MAX];
	struct bpk_tensor_desc desc;

	CHECK(found);
	CHECK(bpk_tensor_rank(found) == wanted->rank);
	bpk_tensor_describe(found, shape, &desc);
	CHECK(desc.dtype == wanted->dtype);
	CHECK(!memcmp(shape, wanted->shape, wanted->rank * sizeof(*shape)));
	CHECK(desc.has_param_id == wanted->has_param_id);
	CHECK(!desc.has_param_id || desc.param_id == wanted->param_id);
	if (wanted->cbor) {
		CHECK(desc.dtype_cbor_size == wanted->cbor_size);
		CHECK(!memcmp(desc.dtype_cbor, wanted->cbor, wanted->cbor_size));
	}
	CHECK(desc.extra_count == wanted->extra_count);
	CHECK(desc.extra_size == wanted->extra_size);
	CHECK(!wanted->extra_size ||
	      !memcmp(desc.extra, wanted->extra, wanted->extra_size));
	CHECK(bpk_tensor_off(found) % BPK_ALIGNMENT == 0);
	CHECK(bpk_tensor_size(found) == wanted->size);
	if (wanted->size)
		CHECK(!memcmp(bpk_tensor_data(reader, found), wanted->data,
			      (size_t)wanted->size));
}

/* What was read, given to a new writer, makes the same metadata again. */
static void check_rewrite(const struct state *state, const struct bpk_reader *reader,
			  const uint8_t *pack, uint64_t size)
{
	struct bpk_writer *writer;
	uint64_t again_size = 0;
	void *again = NULL;

	CHECK(bpk_writer_new(NULL, &writer) == 0);
	bpk_writer_allow_odd_sizes(writer, true);
	for (size_t i = 0; i < state->count; i++) {
		const struct expected *tensor = &state->tensors[i];
		const struct bpk_tensor *found =
			bpk_reader_find_tensor(reader, tensor->name, tensor->name_size);
		uint64_t shape[RANK_MAX];
		struct bpk_tensor_desc desc;

		bpk_tensor_describe(found, shape, &desc);
		CHECK(bpk_writer_add_bytes(writer, &desc, bpk_tensor_data(reader, found),
					   bpk_tensor_size(found), NULL) == 0);
	}
	for (size_t i = 0; i < bpk_reader_scalar_count(reader); i++) {
		const struct bpk_scalar *scalar = bpk_reader_scalar(reader, i);
		size_t name_size;
		const char *name = bpk_scalar_name(scalar, &name_size);

		CHECK(bpk_writer_set_scalar(writer, name, name_size,
					    bpk_scalar_value(scalar), NULL) == 0);
	}
	for (size_t i = 0; i < bpk_reader_metadata_count(reader); i++) {
		const struct bpk_metadata *entry = bpk_reader_metadata(reader, i);
		size_t key_size, value_size;
		const char *key = bpk_metadata_key(entry, &key_size);
		const char *value = bpk_metadata_value(entry, &value_size);

		CHECK(bpk_writer_set_metadata(writer, key, key_size, value, value_size,
					      NULL) == 0);
	}
	CHECK(bpk_writer_set_extra(writer, state->extra, state->extra_size,
				   state->extra_count, NULL) == 0);
	CHECK(bpk_writer_write_new_buffer(writer, NULL, &again, &again_size, NULL) == 0);
	CHECK(again_size == size);
	CHECK(!memcmp(again, pack, (size_t)size));
	free(again);
	bpk_writer_free(writer);
}

static void check(const struct state *state, const void *pack, uint64_t size)
{
	struct bpk_error error = { .message = "" };
	struct bpk_reader *reader = NULL;
	size_t extra_size, extra_count;
	const void *extra;

	if (bpk_reader_open_buffer(pack, (size_t)size, NULL, &reader, &error) < 0)
		fprintf(stderr, "%s\n", error.message);
	CHECK(reader);
	CHECK(bpk_reader_tensor_count(reader) == state->count);
	for (size_t i = 0; i < state->count; i++)
		check_tensor(reader, &state->tensors[i]);
	extra = bpk_reader_extra(reader, &extra_size, &extra_count);
	CHECK(extra_count == state->extra_count);
	CHECK(extra_size == state->extra_size);
	CHECK(!extra_size || !memcmp(extra, state->extra, extra_size));
	check_rewrite(state, reader, pack, size);
	bpk_reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct state *state = calloc(1, sizeof(*state));
	uint64_t planned = 0, written = 0;
	void *pack;

	CHECK(state);
	state->in = (struct input) { data, size };
	range_state = state;
	CHECK(bpk_writer_new(NULL, &state->writer) == 0);
	drive(state);
	/* Inputs are far below every limit, so what was added can be written. */
	CHECK(bpk_writer_plan(state->writer, &planned, NULL) == 0);
	CHECK(planned <= 64 << 20);
	CHECK(bpk_writer_write_new_buffer(state->writer, NULL, &pack, &written, NULL) ==
	      0);
	CHECK(planned == written);
	check(state, pack, written);
	free(pack);
	for (size_t i = 0; i < state->count; i++)
		expected_done(&state->tensors[i]);
	free(state->extra);
	bpk_writer_free(state->writer);
	free(state);
	return 0;
}
