/*
 * module-record.c - save the parameters of a model, and load them into another one.
 *
 *	module-record OUT
 *
 * One function describes the model. It names the parts, and the paths come out as Burn
 * has them: "hidden.weight". The second model has half the precision, so loading casts.
 */
#include <stdio.h>

#include <bpk_record.h>

struct linear {
	struct bpk_param weight, bias;
};

struct model {
	struct linear hidden, output;
};

/* Called for saving and for loading alike. */
static int describe(struct bpk_visitor *visitor, void *context)
{
	struct model *model = context;

	bpk_visit_enter(visitor, "hidden");
	bpk_visit_param(visitor, "weight", &model->hidden.weight);
	bpk_visit_param(visitor, "bias", &model->hidden.bias);
	bpk_visit_exit(visitor);
	bpk_visit_enter(visitor, "output");
	bpk_visit_param(visitor, "weight", &model->output.weight);
	bpk_visit_param(visitor, "bias", &model->output.bias);
	/* A visit that failed makes all later ones fail, so the last one tells. */
	return bpk_visit_exit(visitor);
}

static const uint64_t matrix[] = { 2, 3 }, vector[] = { 3 };

static struct bpk_param param(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
			      void *data)
{
	return (struct bpk_param) {
		.dtype = dtype,
		.shape = shape,
		.rank = rank,
		.data = data,
	};
}

static int save(const char *path, struct bpk_error *error)
{
	static float values[4][6] = { { 0.1f, 0.2f }, { 1, 2, 3 }, { -0.5f }, { 65536 } };
	struct model model = {
		{ param(BPK_DTYPE_F32, matrix, 2, values[0]),
		  param(BPK_DTYPE_F32, vector, 1, values[1]) },
		{ param(BPK_DTYPE_F32, matrix, 2, values[2]),
		  param(BPK_DTYPE_F32, vector, 1, values[3]) },
	};
	struct bpk_record *record;
	int r;

	model.hidden.weight.has_param_id = true;
	model.hidden.weight.param_id = 7401328710934151;
	r = bpk_module_collect(describe, &model, &record, error);
	if (r < 0)
		return r;
	r = bpk_record_save(record, path, error);
	bpk_record_free(record);
	return r;
}

static int load(const char *path, struct bpk_error *error)
{
	uint16_t values[4][6] = { { 0 } };
	struct model model = {
		{ param(BPK_DTYPE_F16, matrix, 2, values[0]),
		  param(BPK_DTYPE_F16, vector, 1, values[1]) },
		{ param(BPK_DTYPE_BF16, matrix, 2, values[2]),
		  param(BPK_DTYPE_BF16, vector, 1, values[3]) },
	};
	struct bpk_load_options options;
	struct bpk_record *record;
	int r = bpk_record_load(path, NULL, &record, error);

	if (r < 0)
		return r;
	bpk_load_options_init(&options);
	options.dtype_policy = BPK_DTYPE_CAST_TO_MODULE;
	r = bpk_module_load(record, describe, &model, &options, error);
	bpk_record_free(record);
	if (r < 0)
		return r;
	printf("hidden.weight of parameter %llu: 0x%04x 0x%04x\n",
	       (unsigned long long)model.hidden.weight.param_id, values[0][0],
	       values[0][1]);
	return 0;
}

int main(int argc, char **argv)
{
	struct bpk_error error = { .message = "" };

	if (argc != 2) {
		fprintf(stderr, "usage: %s OUT\n", argv[0]);
		return 1;
	}
	if (save(argv[1], &error) < 0 || load(argv[1], &error) < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], error.message);
		return 1;
	}
	return 0;
}
