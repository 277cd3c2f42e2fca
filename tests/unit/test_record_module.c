/*
 * test_record_module.c - modules into records and back: what does not fit, lazy loading,
 * and that nothing is half done when memory runs out.
 */
#include "bpk_record.h"
#include "bytes.h"
#include "fail_alloc.h"
#include "leak.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

TestSuite(record_module, .fini = leak_check);

/* A module of two layers, and one parameter of its own. */
struct layer {
	uint64_t weight_shape[2], bias_shape[1];
	float weight[6], bias[3];
	struct bpk_param weight_param, bias_param;
};

struct net {
	struct layer layers[2];
	int64_t step;
	struct bpk_param step_param;
	int give_up_at, visits; /* the parameter where the description gives up, from 1 */
	bool unbalanced, unentered, twice;
	int entered;
};

static void net_init(struct net *net, float first)
{
	*net = (struct net) { .step = (int64_t)first };
	net->step_param = (struct bpk_param) {
		.dtype = BPK_DTYPE_I64,
		.data = &net->step,
		.has_param_id = true,
		.param_id = 9,
	};
	for (unsigned int i = 0; i < 2; i++) {
		struct layer *layer = &net->layers[i];

		layer->weight_shape[0] = 2;
		layer->weight_shape[1] = 3;
		layer->bias_shape[0] = 3;
		for (int k = 0; k < 6; k++)
			layer->weight[k] = first++;
		for (int k = 0; k < 3; k++)
			layer->bias[k] = first++;
		layer->weight_param = (struct bpk_param) {
			.dtype = BPK_DTYPE_F32,
			.shape = layer->weight_shape,
			.rank = 2,
			.data = layer->weight,
			.has_param_id = true,
			.param_id = 100 + i,
		};
		layer->bias_param = (struct bpk_param) {
			.dtype = BPK_DTYPE_F32,
			.shape = layer->bias_shape,
			.rank = 1,
			.data = layer->bias,
		};
	}
}

static int describe(struct bpk_visitor *visitor, void *module)
{
	struct net *net = module;

	bpk_visit_enter(visitor, "layers");
	for (unsigned int i = 0; i < 2; i++) {
		bpk_visit_enter_index(visitor, i);
		bpk_visit_param(visitor, "weight", &net->layers[i].weight_param);
		if (++net->visits == net->give_up_at)
			return -ESTALE;
		bpk_visit_param(visitor, "bias", &net->layers[i].bias_param);
		bpk_visit_exit(visitor);
	}
	if (!net->unbalanced)
		bpk_visit_exit(visitor);
	if (net->unentered)
		bpk_visit_exit(visitor);
	if (net->twice)
		bpk_visit_param(visitor, "step", &net->step_param);
	return bpk_visit_param(visitor, "step", &net->step_param);
}

static struct bpk_record *collect(struct net *net)
{
	struct bpk_error error = { .message = "" };
	struct bpk_record *record = NULL;

	cr_assert_eq(bpk_module_collect(describe, net, &record, &error), 0, "%s",
		     error.message);
	return record;
}

/* The record's pack, opened again. */
static struct bpk_record *again(const struct bpk_record *record, void **ret_bytes)
{
	struct bpk_error error = { .message = "" };
	struct bpk_record *loaded = NULL;
	uint64_t size;

	cr_assert_eq(bpk_record_into_bytes(record, ret_bytes, &size, &error), 0, "%s",
		     error.message);
	cr_assert_eq(
		bpk_record_from_bytes(*ret_bytes, (size_t)size, NULL, &loaded, &error), 0,
		"%s", error.message);
	return loaded;
}

Test(record_module, paths_and_ids)
{
	static const char *const names[] = { "layers.0.weight", "layers.0.bias",
					     "layers.1.weight", "layers.1.bias", "step" };
	struct bpk_record_tensor tensor;
	struct bpk_record *record, *loaded;
	struct net net;
	void *bytes;

	net_init(&net, 0);
	record = collect(&net);
	loaded = again(record, &bytes);
	cr_assert_eq(bpk_record_tensor_count(loaded), 5);
	for (size_t i = 0; i < 5; i++) {
		bpk_record_tensor(loaded, i, &tensor);
		cr_expect_eq(tensor.name_size, strlen(names[i]));
		cr_expect_arr_eq(tensor.name, names[i], tensor.name_size, "%zu", i);
	}
	cr_assert(bpk_record_find_tensor(loaded, "layers.1.weight", 15, &tensor));
	cr_expect(tensor.has_param_id && tensor.param_id == 101);
	cr_expect(tensor.rank == 2 && tensor.shape[0] == 2 && tensor.shape[1] == 3);
	cr_expect_arr_eq(tensor.data, net.layers[1].weight, 24);
	cr_assert(bpk_record_find_tensor(loaded, "layers.1.bias", 13, &tensor));
	cr_expect_not(tensor.has_param_id);
	cr_expect_not(bpk_record_find_tensor(loaded, "layers", 6, &tensor));
	bpk_record_free(record);
	bpk_record_free(loaded);
	free(bytes);
}

/* What was collected is what another module gets, ids as well, where there are some. */
Test(record_module, round_trip)
{
	struct bpk_record *record, *loaded;
	struct net net, other;
	void *bytes;

	net_init(&net, 1);
	net_init(&other, 77);
	other.layers[0].weight_param.has_param_id = false;
	other.layers[1].weight_param.param_id = 5;
	other.layers[1].bias_param.has_param_id = true;
	other.layers[1].bias_param.param_id = 6;
	record = collect(&net);
	loaded = again(record, &bytes);
	cr_assert_eq(bpk_module_load(loaded, describe, &other, NULL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		cr_expect_arr_eq(other.layers[i].weight, net.layers[i].weight, 24);
		cr_expect_arr_eq(other.layers[i].bias, net.layers[i].bias, 12);
		cr_expect(other.layers[i].weight_param.has_param_id);
		cr_expect_eq(other.layers[i].weight_param.param_id, 100 + (uint64_t)i);
	}
	cr_expect_eq(other.step, 1);
	/* The record has none: the module's own stays. */
	cr_expect(other.layers[1].bias_param.has_param_id);
	cr_expect_eq(other.layers[1].bias_param.param_id, 6);
	/* A collected record can be loaded as it is, too. */
	net_init(&other, 77);
	cr_assert_eq(bpk_module_load(record, describe, &other, NULL, NULL), 0);
	cr_expect_arr_eq(other.layers[1].weight, net.layers[1].weight, 24);
	bpk_record_free(record);
	bpk_record_free(loaded);
	free(bytes);
}

struct told {
	char text[1024];
};

static void tell(void *context, enum bpk_misfit misfit, const char *path,
		 size_t path_size, const char *message)
{
	struct told *told = context;
	size_t at = strlen(told->text);

	(void)message;
	snprintf(told->text + at, sizeof(told->text) - at, "%d %.*s\n", (int)misfit,
		 (int)path_size, path);
}

#define CHANGED -1.0f

/* A record that does not fit @net in all ways there are. */
static struct bpk_record *misfit_record(void **ret_bytes)
{
	struct bpk_record *record, *loaded;
	struct net net;

	net_init(&net, 1);
	net.layers[0].weight_shape[0] = 3;
	net.layers[0].weight_shape[1] = 2;
	net.layers[1].bias_param.dtype = BPK_DTYPE_F16;
	net.step_param.rank = 1;
	net.step_param.shape = (const uint64_t[]) { 1 };
	record = collect(&net);
	loaded = again(record, ret_bytes);
	bpk_record_free(record);
	return loaded;
}

Test(record_module, misfits_in_one_error)
{
	struct bpk_load_options options;
	struct bpk_error error = { .message = "" };
	struct told told = { .text = "" };
	struct bpk_record *record;
	struct net net, before;
	void *bytes;

	record = misfit_record(&bytes);
	net_init(&net, 50);
	before = net;
	bpk_load_options_init(&options);
	options.misfit = tell;
	options.context = &told;
	cr_expect_eq(bpk_module_load(record, describe, &net, &options, &error), -EINVAL);
	cr_expect_eq(error.code, BPK_ERR_RECORD);
	cr_expect_str_eq(error.message, "the record does not fit the module: "
					"\"layers.0.weight\": shape [3,2] in the "
					"record, [2,3] in the module; \"step\": shape "
					"[1] in the record, [] in the "
					"module");
	cr_expect_str_eq(told.text, "2 layers.0.weight\n2 step\n");
	/* Nothing was touched, also what would fit. */
	cr_expect_arr_eq(net.layers, before.layers, sizeof(net.layers));

	/* Not validated, those stay as they are and the others are loaded. */
	options.validate = false;
	told.text[0] = '\0';
	cr_expect_eq(bpk_module_load(record, describe, &net, &options, &error), 0);
	cr_expect_arr_eq(net.layers[0].weight, before.layers[0].weight, 24);
	cr_expect_eq(net.step, 50);
	cr_expect(net.layers[0].bias[0] == 7.0f);
	cr_expect(net.layers[1].bias_param.dtype == BPK_DTYPE_F16);
	cr_expect_str_eq(told.text, "2 layers.0.weight\n2 step\n");
	bpk_record_free(record);
	free(bytes);
}

/* A module that has a parameter more than it tells. */
static int describe_less(struct bpk_visitor *visitor, void *module)
{
	struct net *net = module;

	return bpk_visit_param(visitor, "step", &net->step_param);
}

static int describe_more(struct bpk_visitor *visitor, void *module)
{
	struct net *net = module;
	struct bpk_param extra = { .dtype = BPK_DTYPE_F32,
				   .data = net->layers[0].weight };

	bpk_visit_param(visitor, "extra\n", &extra);
	cr_expect(bpk_visit_loading(visitor));
	return describe(visitor, module);
}

Test(record_module, partial_and_unused)
{
	struct bpk_load_options options;
	struct bpk_error error = { .message = "" };
	struct bpk_record *record;
	struct net net, other;

	net_init(&net, 1);
	record = collect(&net);
	net_init(&other, 50);
	bpk_load_options_init(&options);
	cr_expect_eq(bpk_module_load(record, describe_more, &other, NULL, &error),
		     -EINVAL);
	cr_expect_str_eq(error.message,
			 "the record does not fit the module: \"extra\\x0a\": "
			 "missing in the record");
	cr_expect_eq(other.step, 50);
	options.allow_partial = true;
	cr_expect_eq(bpk_module_load(record, describe_more, &other, &options, &error), 0);
	cr_expect_eq(other.step, 1);

	net_init(&other, 50);
	cr_expect_eq(bpk_module_load(record, describe_less, &other, &options, &error),
		     -EINVAL);
	cr_expect_str_eq(
		error.message,
		"the record does not fit the module: \"layers.0.weight\": no "
		"parameter takes it; \"layers.0.bias\": no parameter takes it; "
		"\"layers.1.weight\": no parameter takes it; \"layers.1.bias\": no "
		"parameter takes it");
	cr_expect_eq(other.step, 50);
	options.allow_unused = true;
	cr_expect_eq(bpk_module_load(record, describe_less, &other, &options, &error), 0);
	cr_expect_eq(other.step, 1);
	bpk_record_free(record);
}

static int describe_many(struct bpk_visitor *visitor, void *module)
{
	struct bpk_param param = { .dtype = BPK_DTYPE_U8, .data = module };

	for (uint64_t i = 0; i < 1000; i++) {
		bpk_visit_enter_index(visitor, i);
		bpk_visit_param(visitor, "w", &param);
		bpk_visit_exit(visitor);
	}
	return 0;
}

Test(record_module, a_thousand_misfits)
{
	struct bpk_error error = { .message = "" };
	struct bpk_record *record;
	uint8_t byte = 0;

	cr_assert_eq(bpk_record_new(&record), 0);
	cr_expect_eq(bpk_module_load(record, describe_many, &byte, NULL, &error),
		     -EINVAL);
	cr_expect(strstr(error.message, "\"0.w\": missing in the record; \"1.w\""), "%s",
		  error.message);
	cr_expect(strstr(error.message, " more"), "%s", error.message);
	bpk_record_free(record);
}

Test(record_module, descriptions_that_are_wrong)
{
	static const struct {
		const char *label;
		struct net net;
		int r;
		enum bpk_code code;
		const char *message;
	} rows[] = {
		{ "gives up",
		  { .give_up_at = 2 },
		  -ESTALE,
		  BPK_ERR_PROVIDER,
		  "the description of the module failed: Stale file handle" },
		{ "enters and stays",
		  { .unbalanced = true },
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "a part of the module was entered and never left" },
		{ "leaves what it did not enter",
		  { .unentered = true },
		  -EINVAL,
		  BPK_ERR_ARGUMENT,
		  "a part of the module was left that was not entered" },
		{ "the same twice",
		  { .twice = true },
		  -EEXIST,
		  BPK_ERR_DUPLICATE,
		  "tensor \"step\" is there twice" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		struct bpk_record *record = NULL;
		struct net net;
		int r;

		net_init(&net, 0);
		net.give_up_at = rows[i].net.give_up_at;
		net.unbalanced = rows[i].net.unbalanced;
		net.unentered = rows[i].net.unentered;
		net.twice = rows[i].net.twice;
		r = bpk_module_collect(describe, &net, &record, &error);
		cr_expect_eq(r, rows[i].r, "%s: %d", rows[i].label, r);
		cr_expect_null(record);
		cr_expect_eq(error.code, rows[i].code, "%s", rows[i].label);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
	}
}

static int describe_one(struct bpk_visitor *visitor, void *module)
{
	return bpk_visit_param(visitor, "p", module);
}

Test(record_module, parameters_that_are_wrong)
{
	static const uint64_t huge[] = { UINT64_C(1) << 40, UINT64_C(1) << 40 },
			      two[] = { 2 };
	static float data[2];
	static const struct {
		const char *label;
		struct bpk_param param;
		int r;
		const char *message;
	} rows[] = {
		{ "no shape",
		  { .rank = 1, .data = data },
		  -EINVAL,
		  "a rank without a shape" },
		{ "no dtype",
		  { .dtype = (enum bpk_dtype)50, .data = data },
		  -EINVAL,
		  "there is no such dtype" },
		{ "no buffer", { .dtype = BPK_DTYPE_F32 }, -EINVAL, "no buffer" },
		{ "too large",
		  { .shape = huge, .rank = 2, .data = data },
		  -EOVERFLOW,
		  "its size is beyond 64 bits" },
		{ "a small buffer",
		  { .dtype = BPK_DTYPE_F64,
		    .shape = two,
		    .rank = 1,
		    .data = data,
		    .size = 8 },
		  -EINVAL,
		  "its F64 of that shape are 16 bytes, the buffer has 8" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		struct bpk_record *record = NULL;
		struct bpk_param param = rows[i].param;
		char wanted[128];
		int r = bpk_module_collect(describe_one, &param, &record, &error);

		snprintf(wanted, sizeof(wanted), "parameter \"p\": %s", rows[i].message);
		cr_expect_eq(r, rows[i].r, "%s: %d", rows[i].label, r);
		cr_expect_str_eq(error.message, wanted, "%s: %s", rows[i].label,
				 error.message);
	}
}

/* Tensors nobody asks for are not touched: here they could not be. */
Test(record_module, lazy)
{
	enum { PAGE = 4096 };
	static uint8_t first[4 * PAGE];
	uint64_t shape[] = { sizeof(first) };
	int64_t step = 5, other = 0;
	struct bpk_tensor_desc desc = {
		.name = "large",
		.name_size = 5,
		.dtype = BPK_DTYPE_U8,
		.shape = shape,
		.rank = 1,
	};
	struct bpk_load_options options;
	struct bpk_writer *writer;
	struct bpk_record *record;
	struct net net;
	uint64_t size;
	uint8_t *map;

	net_init(&net, 0);
	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, first, sizeof(first), NULL), 0);
	desc = (struct bpk_tensor_desc) {
		.name = "step",
		.name_size = 4,
		.dtype = BPK_DTYPE_I64,
	};
	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, &step, 8, NULL), 0);
	cr_assert_eq(bpk_writer_plan(writer, &size, NULL), 0);
	map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(map, MAP_FAILED);
	cr_assert_eq(bpk_writer_write_buffer(writer, map, size, NULL, &size, NULL), 0);
	bpk_writer_free(writer);
	cr_assert_eq(bpk_record_from_bytes(map, (size_t)size, NULL, &record, NULL), 0);
	cr_assert_eq(mprotect(map + PAGE, 2 * PAGE, PROT_NONE), 0);
	bpk_load_options_init(&options);
	options.allow_unused = true;
	net.step_param.data = &other;
	cr_assert_eq(bpk_module_load(record, describe_less, &net, &options, NULL), 0);
	cr_expect_eq(other, 5);
	bpk_record_free(record);
	munmap(map, (size_t)size);
}

/* Whichever allocation fails: -ENOMEM, nothing leaked, nothing changed. */
Test(record_module, no_memory)
{
	long failed = 0;

	for (long n = 0;; n++) {
		struct bpk_record *record = NULL, *loaded = NULL;
		struct bpk_error error = { .message = "" };
		struct net net, other;
		void *bytes = NULL;
		uint64_t size = 0;
		int r;

		net_init(&net, 1);
		net_init(&other, 50);
		fail_alloc_after(n);
		r = bpk_module_collect(describe, &net, &record, &error);
		if (r >= 0)
			r = bpk_record_set_scalar(
				record, "s", 1, (struct bpk_scalar_value) { 0 }, &error);
		if (r >= 0)
			r = bpk_record_set_metadata(record, "k", 1, "v", 1, &error);
		if (r >= 0)
			r = bpk_record_into_bytes(record, &bytes, &size, &error);
		if (r >= 0)
			r = bpk_record_from_bytes(bytes, (size_t)size, NULL, &loaded,
						  &error);
		if (r >= 0)
			r = bpk_module_load(loaded, describe, &other, NULL, &error);
		if (!fail_alloc_end()) {
			cr_expect_eq(r, 0, "%s", error.message);
			cr_expect_eq(other.step, 1);
			failed = n;
		} else {
			cr_expect_eq(r, -ENOMEM, "%ld: %d %s", n, r, error.message);
			cr_expect_eq(error.code, BPK_ERR_MEMORY, "%ld: %s", n,
				     error.message);
			cr_expect_eq(other.step, 50);
		}
		bpk_record_free(record);
		bpk_record_free(loaded);
		free(bytes);
		if (failed)
			break;
	}
	cr_expect_gt(failed, 20);
}
