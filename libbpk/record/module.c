/*
 * module.c - a module's parameters and a record: one description by the program, walked
 * once to collect and twice to load (check all, then fill all).
 *
 * Invariant: the path in the visitor is that of the parts that were entered, and
 * ends[i] is how long it was before the i-th of them.
 */
#include "record/record.h"

#include <stdio.h>

enum walk {
	WALK_COLLECT,
	WALK_CHECK,
	WALK_FILL,
};

/* Misfits that are errors, as many as one message holds. */
struct complaint {
	size_t count, told;
	size_t size;
	char text[400];
};

struct bpk_visitor {
	enum walk walk;
	char *path;
	size_t path_size, path_capacity;
	size_t *ends;
	size_t depth, depth_capacity;

	struct bpk_record *target;	 /* WALK_COLLECT */
	const struct bpk_record *source; /* the others */
	const struct bpk_load_options *options;
	bool *taken; /* beside source->tensors.items */
	struct complaint complaint;

	int result; /* of the first visit that failed */
	struct bpk_error error;
};

/* The path ----------------------------------------------------------------- */

static int fail(struct bpk_visitor *visitor, int r)
{
	visitor->result = r;
	return r;
}

/* Put @name behind the path. */
static int push(struct bpk_visitor *visitor, const char *name)
{
	size_t size = name ? strlen(name) : 0, needed;
	void *path = visitor->path;

	if (!name || !bpk_utf8_valid(name, size))
		return record_bad_argument(&visitor->error,
					   "a name in the module: not UTF-8");
	if (__builtin_add_overflow(visitor->path_size, size + 1, &needed) ||
	    bpk_grow(&path, &visitor->path_capacity, needed, 1) < 0)
		return record_no_memory(&visitor->error);
	visitor->path = path;
	if (visitor->depth)
		visitor->path[visitor->path_size++] = '.';
	memcpy(visitor->path + visitor->path_size, name, size);
	visitor->path_size += size;
	return 0;
}

BPK_EXPORT int bpk_visit_enter(struct bpk_visitor *visitor, const char *name)
{
	size_t before = visitor->path_size;
	void *ends = visitor->ends;
	int r;

	if (visitor->result < 0)
		return visitor->result;
	if (bpk_grow(&ends, &visitor->depth_capacity, visitor->depth + 1,
		     sizeof(*visitor->ends)) < 0)
		return fail(visitor, record_no_memory(&visitor->error));
	visitor->ends = ends;
	r = push(visitor, name);
	if (r < 0)
		return fail(visitor, r);
	visitor->ends[visitor->depth++] = before;
	return 0;
}

BPK_EXPORT int bpk_visit_enter_index(struct bpk_visitor *visitor, uint64_t index)
{
	char digits[BPK_DECIMAL_SIZE + 1] = { 0 };

	bpk_decimal(index, digits);
	return bpk_visit_enter(visitor, digits);
}

BPK_EXPORT int bpk_visit_exit(struct bpk_visitor *visitor)
{
	if (visitor->result < 0)
		return visitor->result;
	if (!visitor->depth)
		return fail(visitor,
			    record_bad_argument(&visitor->error,
						"a part of the module was left that was "
						"not entered"));
	visitor->path_size = visitor->ends[--visitor->depth];
	return 0;
}

BPK_EXPORT bool bpk_visit_loading(const struct bpk_visitor *visitor)
{
	return visitor->walk != WALK_COLLECT;
}

/* Misfits ------------------------------------------------------------------ */

static void complain(struct complaint *complaint, const char *path, size_t path_size,
		     const char *reason)
{
	char quoted[BPK_QUOTE_SIZE];
	size_t room = sizeof(complaint->text) - complaint->size;
	int n = snprintf(complaint->text + complaint->size, room, "%s%s: %s",
			 complaint->told ? "; " : "", bpk_quote(quoted, path, path_size),
			 reason);

	complaint->count++;
	/* What does not fit as a whole is counted only; the first always does. */
	if (complaint->count == complaint->told + 1 && n > 0 && (size_t)n < room) {
		complaint->size += (size_t)n;
		complaint->told++;
	}
	complaint->text[complaint->size] = '\0';
}

static bool is_allowed(const struct bpk_load_options *options, enum bpk_misfit misfit)
{
	switch (misfit) {
	case BPK_MISFIT_MISSING:
		return options->allow_partial;
	case BPK_MISFIT_UNUSED:
		return options->allow_unused;
	case BPK_MISFIT_SHAPE:
	case BPK_MISFIT_DTYPE:
	case BPK_MISFIT_ROOM:
	case BPK_MISFIT_SIZE:
		return !options->validate;
	}
	return false;
}

/* Told in the first walk. In the second only a description that has changed can have
 * one that is not allowed. */
static int tell(struct bpk_visitor *visitor, enum bpk_misfit misfit, const char *path,
		size_t path_size, const char *reason)
{
	const struct bpk_load_options *options = visitor->options;
	bool allowed = is_allowed(options, misfit);

	if (visitor->walk == WALK_FILL && !allowed)
		return record_bad_argument(&visitor->error,
					   "the module was described in another way the "
					   "second time");
	if (visitor->walk == WALK_FILL)
		return 0;
	if (options->misfit)
		options->misfit(options->context, misfit, path, path_size, reason);
	if (!allowed)
		complain(&visitor->complaint, path, path_size, reason);
	return 0;
}

/* Parameters --------------------------------------------------------------- */

static int collect_param(struct bpk_visitor *visitor, const struct bpk_param *param)
{
	struct bpk_record_tensor tensor = {
		.name = visitor->path,
		.name_size = visitor->path_size,
		.dtype = param->dtype,
		.dtype_cbor = param->dtype_cbor,
		.dtype_cbor_size = param->dtype_cbor_size,
		.shape = param->shape,
		.rank = param->rank,
		.has_param_id = param->has_param_id,
		.param_id = param->has_param_id ? param->param_id : 0,
		.data = param->data,
	};
	int r = bpk_record_collect_size(param, tensor.name, tensor.name_size,
					&tensor.size, &visitor->error);

	if (r < 0)
		return r;
	return bpk_record_add_tensor(visitor->target, &tensor, &visitor->error);
}

static int load_param(struct bpk_visitor *visitor, struct bpk_param *param)
{
	const struct record_tensor *entry =
		bpk_record_get_tensor(visitor->source, visitor->path, visitor->path_size);
	enum bpk_dtype_policy policy = visitor->options->dtype_policy;
	char reason[RECORD_REASON_SIZE], quoted[BPK_QUOTE_SIZE];
	enum bpk_misfit misfit;
	int r;

	if (!entry)
		return tell(visitor, BPK_MISFIT_MISSING, visitor->path,
			    visitor->path_size, "missing in the record");
	if (visitor->taken[entry->named.index])
		return bpk_fail(&visitor->error, -EEXIST, BPK_ERR_DUPLICATE,
				BPK_NO_OFFSET, "parameter %s is in the module twice",
				bpk_quote(quoted, visitor->path, visitor->path_size));
	visitor->taken[entry->named.index] = true;
	r = bpk_record_fits(&entry->tensor, param, policy, &misfit, reason,
			    &visitor->error);
	if (r > 0)
		return tell(visitor, misfit, visitor->path, visitor->path_size, reason);
	if (r == 0 && visitor->walk == WALK_FILL)
		bpk_record_fill(&entry->tensor, policy, param);
	return r;
}

BPK_EXPORT int bpk_visit_param(struct bpk_visitor *visitor, const char *name,
			       struct bpk_param *param)
{
	size_t before = visitor->path_size;
	int r;

	if (visitor->result < 0)
		return visitor->result;
	r = push(visitor, name);
	if (r >= 0)
		r = visitor->walk == WALK_COLLECT ? collect_param(visitor, param)
						  : load_param(visitor, param);
	visitor->path_size = before;
	return r < 0 ? fail(visitor, r) : 0;
}

/* Walks -------------------------------------------------------------------- */

static int walk(struct bpk_visitor *visitor, enum walk which, bpk_module_fn describe,
		void *module)
{
	char reason[128];
	int r;

	visitor->walk = which;
	visitor->path_size = visitor->depth = 0;
	r = describe(visitor, module);
	if (visitor->result < 0)
		return visitor->result;
	if (r) {
		r = r < 0 ? r : -ECANCELED;
		return bpk_fail(&visitor->error, r, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"the description of the module failed: %s",
				strerror_r(-r, reason, sizeof(reason)));
	}
	if (visitor->depth)
		return record_bad_argument(&visitor->error,
					   "a part of the module was entered and never "
					   "left");
	return 0;
}

static int end(struct bpk_visitor *visitor, int r, struct bpk_error *error)
{
	if (r < 0 && error)
		*error = visitor->error;
	free(visitor->path);
	free(visitor->ends);
	free(visitor->taken);
	return r;
}

BPK_EXPORT int bpk_module_collect(bpk_module_fn describe, void *module,
				  struct bpk_record **ret_record, struct bpk_error *error)
{
	struct bpk_visitor visitor = { .error = { .offset = BPK_NO_OFFSET } };
	struct bpk_record *record;
	int r = bpk_record_new(&record);

	if (r < 0)
		return record_no_memory(error);
	visitor.target = record;
	r = end(&visitor, walk(&visitor, WALK_COLLECT, describe, module), error);
	if (r < 0)
		bpk_record_free(record);
	else
		*ret_record = record;
	return r;
}

BPK_EXPORT void bpk_load_options_init(struct bpk_load_options *options)
{
	*options = (struct bpk_load_options) { .validate = true };
}

static int check_all(struct bpk_visitor *visitor, bpk_module_fn describe, void *module)
{
	const struct bpk_table *tensors = &visitor->source->tensors;
	struct complaint *complaint = &visitor->complaint;
	int r = walk(visitor, WALK_CHECK, describe, module);

	for (size_t i = 0; r >= 0 && i < tensors->count; i++)
		if (!visitor->taken[i])
			r = tell(visitor, BPK_MISFIT_UNUSED, tensors->items[i]->name,
				 tensors->items[i]->name_size, "no parameter takes it");
	if (r < 0 || !complaint->count)
		return r;
	if (complaint->count == complaint->told)
		return bpk_fail(&visitor->error, -EINVAL, BPK_ERR_RECORD, BPK_NO_OFFSET,
				"the record does not fit the module: %s",
				complaint->text);
	return bpk_fail(&visitor->error, -EINVAL, BPK_ERR_RECORD, BPK_NO_OFFSET,
			"the record does not fit the module: %s; and %zu more",
			complaint->text, complaint->count - complaint->told);
}

BPK_EXPORT int bpk_module_load(const struct bpk_record *record, bpk_module_fn describe,
			       void *module, const struct bpk_load_options *options,
			       struct bpk_error *error)
{
	struct bpk_visitor visitor = {
		.source = record,
		.error = { .offset = BPK_NO_OFFSET },
	};
	struct bpk_load_options defaults;
	size_t count = record->tensors.count;
	int r;

	if (!options) {
		bpk_load_options_init(&defaults);
		options = &defaults;
	}
	visitor.options = options;
	visitor.taken = calloc(count ? count : 1, sizeof(*visitor.taken));
	if (!visitor.taken)
		return record_no_memory(error);
	r = check_all(&visitor, describe, module);
	if (r >= 0) {
		memset(visitor.taken, 0, count * sizeof(*visitor.taken));
		r = walk(&visitor, WALK_FILL, describe, module);
	}
	return end(&visitor, r, error);
}
