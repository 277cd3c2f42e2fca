/*
 * make-sample.c - write a small checkpoint with libbpk.
 *
 *	make-sample OUT.bpk
 *
 * Shows the three things a pack is made of (tensors, scalars, metadata) and two of
 * the ways to hand over a tensor: bytes that are in memory anyway, and bytes that
 * are made only when their turn has come, so that a model need not fit into memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpk.h>

/* A tensor whose values are made when the writer asks for them. */
struct ramp {
	uint64_t count;
};

static int ramp_provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	const struct ramp *ramp = context;
	float *values = malloc(ramp->count * sizeof(*values));

	if (!values)
		return -1;
	/* Packs are little-endian, as is every machine this is likely to run on. */
	for (uint64_t i = 0; i < ramp->count; i++)
		values[i] = (float)i / (float)ramp->count;
	*ret_data = values;
	*ret_size = ramp->count * sizeof(*values);
	return 0;
}

/* Called before the next tensor is asked for: one tensor in memory at a time. */
static void ramp_release(void *context, const void *data, uint64_t size)
{
	void *values;

	(void)context;
	(void)size;
	memcpy(&values, &data, sizeof(values));
	free(values);
}

static int add_tensors(struct bpk_writer *writer, struct ramp *ramp, const float bias[3],
		       struct bpk_error *error)
{
	const uint64_t matrix[] = { 64, 3 }, vector[] = { 3 };
	struct bpk_tensor_desc weight = {
		.name = "encoder.layer1.weight",
		.name_size = strlen("encoder.layer1.weight"),
		.dtype = BPK_DTYPE_F32,
		.shape = matrix,
		.rank = 2,
		.has_param_id = true,
		.param_id = 1,
	};
	struct bpk_tensor_desc bias_desc = weight;
	struct bpk_provider provider = { ramp_provide, ramp_release, ramp };
	int result;

	bias_desc.name = "encoder.layer1.bias";
	bias_desc.name_size = strlen(bias_desc.name);
	bias_desc.shape = vector;
	bias_desc.rank = 1;
	bias_desc.param_id = 2;

	/* The size is checked against dtype and shape here; no value is made yet. */
	result = bpk_writer_add_deferred(writer, &weight, ramp->count * sizeof(float),
					 &provider, error);
	if (!result)
		result = bpk_writer_add_bytes(writer, &bias_desc, bias, 3 * sizeof(float),
					      error);
	return result;
}

static int add_values(struct bpk_writer *writer, struct bpk_error *error)
{
	const double rate = 0.001;
	struct bpk_scalar_value lr = { .type = BPK_SCALAR_FLOAT };
	struct bpk_scalar_value epoch = { .type = BPK_SCALAR_UINT, .u = 3 };
	int result;

	/* Floats are given as their bits, so that every NaN survives. */
	memcpy(&lr.float_bits, &rate, sizeof(rate));
	result = bpk_writer_set_scalar(writer, "lr", 2, lr, error);
	if (!result)
		result = bpk_writer_set_scalar(writer, "epoch", 5, epoch, error);
	if (!result)
		result = bpk_writer_set_metadata(writer, "made by", 7, "make-sample", 11,
						 error);
	return result;
}

int main(int argc, char **argv)
{
	static const float bias[3] = { 0.0f, 0.5f, -1.0f };
	struct ramp ramp = { .count = 64 * 3 };
	struct bpk_error error = { .message = "no memory" };
	struct bpk_writer *writer = NULL;
	uint64_t size = 0;
	int result;

	if (argc != 2) {
		fprintf(stderr, "usage: %s OUT.bpk\n", argv[0]);
		return 1;
	}
	result = bpk_writer_new(NULL, &writer);
	if (!result)
		result = add_tensors(writer, &ramp, bias, &error);
	if (!result)
		result = add_values(writer, &error);
	/* How large it will be is known before anything is written. */
	if (!result)
		result = bpk_writer_plan(writer, &size, &error);
	/* Whoever looks at OUT.bpk meanwhile sees the old file or the whole new one. */
	if (!result)
		result = bpk_writer_write_file(writer, argv[1], NULL, &error);
	bpk_writer_free(writer);
	if (result) {
		fprintf(stderr, "%s: %s\n", argv[1], error.message);
		return 1;
	}
	printf("%s: %llu bytes\n", argv[1], (unsigned long long)size);
	return 0;
}
