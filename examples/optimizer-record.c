/*
 * optimizer-record.c - what an optimizer remembers of each parameter.
 *
 *	optimizer-record FILE		list a record, also one that Burn wrote
 *	optimizer-record --make OUT	write a small one
 */
#include <stdio.h>
#include <string.h>

#include <bpk_record.h>

/* Parameters that have less than this are left out. */
static const char *const required[] = { "momentum.moment_1" };

static void skipped(void *context, const char *name, size_t name_size,
		    const char *message)
{
	(void)context;
	printf("skipped %.*s: %s\n", (int)name_size, name, message);
}

static void print_param(const struct bpk_optimizer_param *param)
{
	printf("%llu: rank %llu", (unsigned long long)param->param_id,
	       (unsigned long long)param->rank);
	if (param->path)
		printf(", %.*s", (int)param->path_size, param->path);
	for (size_t i = 0; i < param->tensor_count; i++)
		printf(", %.*s (%s)", (int)param->tensors[i].field_size,
		       param->tensors[i].field,
		       bpk_dtype_name(param->tensors[i].tensor.dtype));
	for (size_t i = 0; i < param->scalar_count; i++) {
		double value;

		printf(", %.*s", (int)param->scalars[i].field_size,
		       param->scalars[i].field);
		if (bpk_scalar_to_f64(param->scalars[i].value, &value) == 0)
			printf(" = %g", value);
	}
	putchar('\n');
}

static int list(const char *path, struct bpk_error *error)
{
	struct bpk_optimizer *optimizer;
	struct bpk_record *record;
	int r = bpk_record_load(path, NULL, &record, error);

	if (r < 0)
		return r;
	r = bpk_optimizer_open(record, required, 1, skipped, NULL, &optimizer, error);
	if (r >= 0) {
		for (size_t i = 0; i < bpk_optimizer_param_count(optimizer); i++)
			print_param(bpk_optimizer_param(optimizer, i));
		bpk_optimizer_close(optimizer);
	}
	bpk_record_free(record);
	return r;
}

static int fill(struct bpk_record *record, struct bpk_error *error)
{
	static const uint64_t shape[] = { 2 };
	static float moment[] = { 0.5f, -0.5f };
	const struct bpk_param tensor = {
		.dtype = BPK_DTYPE_F32,
		.shape = shape,
		.rank = 1,
		.data = moment,
	};
	int r = bpk_optimizer_add_param(record, 42, 1, "hidden.bias", error);

	if (r >= 0)
		r = bpk_optimizer_add_tensor(record, 42, "momentum.moment_1", &tensor,
					     error);
	if (r >= 0)
		r = bpk_optimizer_set_scalar(record, 42, "momentum.time",
					     bpk_scalar_from_i64(10), error);
	/* What is not complete is not lost on whoever lists it. */
	if (r >= 0)
		r = bpk_optimizer_add_param(record, 43, 2, NULL, error);
	return r;
}

static int make(const char *path, struct bpk_error *error)
{
	struct bpk_record *record;
	int r = bpk_record_new(&record);

	if (r < 0)
		return r;
	r = fill(record, error);
	if (r >= 0)
		r = bpk_record_save(record, path, error);
	bpk_record_free(record);
	return r;
}

int main(int argc, char **argv)
{
	struct bpk_error error = { .message = "no memory" };
	bool making = argc == 3 && strcmp(argv[1], "--make") == 0;
	int r;

	if (argc != 2 && !making) {
		fprintf(stderr, "usage: %s FILE | --make OUT\n", argv[0]);
		return 1;
	}
	r = making ? make(argv[2], &error) : list(argv[1], &error);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", argv[argc - 1], error.message);
		return 1;
	}
	return 0;
}
