/*
 * optimizer.c - an optimizer's state: names of the form "{param_id}.{field}", sorted out
 * by parameter.
 *
 * The name alone says whose an entry is (newer Burn repeats the id in the tensor). What
 * cannot be somebody's state is told and left out: a record may be damaged or of another
 * kind, and a program decides itself whether it goes on without.
 *
 * Invariant: the parts are sorted by id, tensors before scalars, then by field, so each
 * parameter's fields lie together in the two arrays.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>

#define RANK_FIELD "__rank"

/* Names -------------------------------------------------------------------- */

/* "{param_id}.{field}", for free(3); NULL when out of memory. */
static char *make_name(uint64_t param_id, const char *field, size_t *ret_size)
{
	char digits[BPK_DECIMAL_SIZE];
	size_t count = bpk_decimal(param_id, digits), field_size = strlen(field);
	char *name = malloc(count + 1 + field_size + 1);

	if (!name)
		return NULL;
	memcpy(name, digits, count);
	name[count] = '.';
	memcpy(name + count + 1, field, field_size + 1);
	*ret_size = count + 1 + field_size;
	return name;
}

/* Making ------------------------------------------------------------------- */

static int set_scalar(struct bpk_record *record, uint64_t param_id, const char *field,
		      struct bpk_scalar_value value, struct bpk_error *error)
{
	size_t size;
	_cleanup_(bpk_free_at) char *name = make_name(param_id, field, &size);

	if (!name)
		return record_no_memory(error);
	return bpk_record_set_scalar(record, name, size, value, error);
}

BPK_EXPORT int bpk_optimizer_add_param(struct bpk_record *record, uint64_t param_id,
				       uint64_t rank, const char *path,
				       struct bpk_error *error)
{
	char digits[BPK_DECIMAL_SIZE];
	size_t count = bpk_decimal(param_id, digits);
	int r;

	if (rank > BPK_OPTIMIZER_RANK_MAX)
		return record_bad_argument(error,
					   "no parameter has that many dimensions");
	if (path) {
		r = bpk_record_set_metadata(record, digits, count, path, strlen(path),
					    error);
		if (r < 0)
			return r;
	}
	return set_scalar(record, param_id, RANK_FIELD, bpk_scalar_from_u64(rank), error);
}

BPK_EXPORT int bpk_optimizer_set_scalar(struct bpk_record *record, uint64_t param_id,
					const char *field, struct bpk_scalar_value value,
					struct bpk_error *error)
{
	if (strcmp(field, RANK_FIELD) == 0 || !*field)
		return record_bad_argument(error, "no name for a field of an optimizer");
	return set_scalar(record, param_id, field, value, error);
}

BPK_EXPORT int bpk_optimizer_add_tensor(struct bpk_record *record, uint64_t param_id,
					const char *field, const struct bpk_param *param,
					struct bpk_error *error)
{
	struct bpk_record_tensor tensor = {
		.dtype = param->dtype,
		.dtype_cbor = param->dtype_cbor,
		.dtype_cbor_size = param->dtype_cbor_size,
		.shape = param->shape,
		.rank = param->rank,
		.has_param_id = true,
		.param_id = param_id,
		.data = param->data,
	};
	_cleanup_(bpk_free_at) char *name = make_name(param_id, field, &tensor.name_size);
	int r;

	if (!name)
		return record_no_memory(error);
	if (!*field)
		return record_bad_argument(error, "no name for a field of an optimizer");
	tensor.name = name;
	r = bpk_record_collect_size(param, name, tensor.name_size, &tensor.size, error);
	return r < 0 ? r : bpk_record_add_tensor(record, &tensor, error);
}

/* Sorting out -------------------------------------------------------------- */

/* One entry of the record. */
struct part {
	uint64_t id;
	bool is_scalar;
	size_t index; /* in the record's tensors or scalars */
	const char *field;
	size_t field_size;
};

struct bpk_optimizer {
	struct bpk_optimizer_param *params;
	size_t param_count;
	struct bpk_optimizer_tensor *tensors;
	size_t tensor_count;
	struct bpk_optimizer_scalar *scalars;
	size_t scalar_count;
};

/* What goes through bpk_optimizer_open(). */
struct sorting {
	const struct bpk_record *record;
	const char *const *required;
	size_t required_count;
	bpk_optimizer_skip_fn skip;
	void *context;
	struct part *parts;
	size_t part_count;
	struct bpk_optimizer *optimizer;
};

static int by_field(const char *a, size_t a_size, const char *b, size_t b_size)
{
	return bpk_name_compare(a, a_size, b, b_size);
}

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->is_scalar != y->is_scalar)
		return x->is_scalar ? 1 : -1;
	return by_field(x->field, x->field_size, y->field, y->field_size);
}

static void skip_entry(const struct sorting *sorting, const struct bpk_named *named)
{
	if (sorting->skip)
		sorting->skip(sorting->context, named->name, named->name_size,
			      "belongs to no parameter: not \"{param_id}.{field}\"");
}

static void skip_param(const struct sorting *sorting, uint64_t id, const char *message)
{
	char digits[BPK_DECIMAL_SIZE];

	if (sorting->skip)
		sorting->skip(sorting->context, digits, bpk_decimal(id, digits), message);
}

static void add_part(struct sorting *sorting, const struct bpk_named *named,
		     bool is_scalar)
{
	struct part *part = &sorting->parts[sorting->part_count];
	size_t digits =
		bpk_record_parse_decimal(named->name, named->name_size, &part->id);

	if (!digits || named->name_size < digits + 2 || named->name[digits] != '.') {
		skip_entry(sorting, named);
		return;
	}
	part->is_scalar = is_scalar;
	part->index = named->index;
	part->field = named->name + digits + 1;
	part->field_size = named->name_size - digits - 1;
	sorting->part_count++;
}

static bool is_field(const struct part *part, const char *name)
{
	return part->field_size == strlen(name) &&
	       memcmp(part->field, name, part->field_size) == 0;
}

static const struct bpk_record_tensor *part_tensor(const struct sorting *sorting,
						   const struct part *part)
{
	struct bpk_named *named = sorting->record->tensors.items[part->index];

	return &((struct record_tensor *)named)->tensor;
}

static struct bpk_scalar_value part_scalar(const struct sorting *sorting,
					   const struct part *part)
{
	struct bpk_named *named = sorting->record->scalars.items[part->index];

	return ((struct record_scalar *)named)->value;
}

/* NULL, or why there is no rank. */
static const char *find_rank(const struct sorting *sorting, const struct part *parts,
			     size_t count, uint64_t *ret_rank)
{
	for (size_t i = 0; i < count; i++) {
		if (!parts[i].is_scalar || !is_field(&parts[i], RANK_FIELD))
			continue;
		if (bpk_scalar_to_u64(part_scalar(sorting, &parts[i]), ret_rank) < 0 ||
		    *ret_rank > BPK_OPTIMIZER_RANK_MAX)
			return "its " RANK_FIELD " is not the rank of a tensor";
		return NULL;
	}
	/* Tensors come first. */
	if (parts[0].is_scalar)
		return "neither " RANK_FIELD " nor a tensor tells its rank";
	*ret_rank = part_tensor(sorting, &parts[0])->rank;
	return NULL;
}

static bool has_field(const struct part *parts, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (is_field(&parts[i], name))
			return true;
	return false;
}

/* Is that the whole state of a parameter? Tells why not. */
static bool is_complete(const struct sorting *sorting, const struct part *parts,
			size_t count, uint64_t *ret_rank)
{
	const char *why = find_rank(sorting, parts, count, ret_rank);
	char message[160], quoted[BPK_QUOTE_SIZE];

	for (size_t i = 0; !why && i < count && !parts[i].is_scalar; i++) {
		const struct bpk_record_tensor *tensor = part_tensor(sorting, &parts[i]);

		if (!tensor->has_param_id || tensor->param_id == parts[i].id)
			continue;
		snprintf(message, sizeof(message), "its %s carries another id",
			 bpk_quote(quoted, parts[i].field, parts[i].field_size));
		why = message;
	}
	for (size_t i = 0; !why && i < sorting->required_count; i++) {
		const char *name = sorting->required[i];

		if (has_field(parts, count, name))
			continue;
		snprintf(message, sizeof(message), "its state is incomplete: no %s",
			 bpk_quote(quoted, name, strlen(name)));
		why = message;
	}
	if (why)
		skip_param(sorting, parts[0].id, why);
	return !why;
}

static void add_fields(const struct sorting *sorting, const struct part *parts,
		       size_t count, struct bpk_optimizer_param *param)
{
	struct bpk_optimizer *optimizer = sorting->optimizer;

	for (size_t i = 0; i < count; i++) {
		const struct part *part = &parts[i];

		if (!part->is_scalar) {
			optimizer->tensors[optimizer->tensor_count++] =
				(struct bpk_optimizer_tensor) {
					part->field, part->field_size,
					*part_tensor(sorting, part)
				};
			param->tensor_count++;
		} else if (!is_field(part, RANK_FIELD)) {
			optimizer->scalars[optimizer->scalar_count++] =
				(struct bpk_optimizer_scalar) {
					part->field, part->field_size,
					part_scalar(sorting, part)
				};
			param->scalar_count++;
		}
	}
}

static void add_param(const struct sorting *sorting, const struct part *parts,
		      size_t count)
{
	struct bpk_optimizer *optimizer = sorting->optimizer;
	struct bpk_optimizer_param *param = &optimizer->params[optimizer->param_count];
	char digits[BPK_DECIMAL_SIZE];
	uint64_t rank;

	if (!is_complete(sorting, parts, count, &rank))
		return;
	*param = (struct bpk_optimizer_param) {
		.param_id = parts[0].id,
		.rank = rank,
		.tensors = optimizer->tensors + optimizer->tensor_count,
		.scalars = optimizer->scalars + optimizer->scalar_count,
	};
	param->path = bpk_record_find_metadata(sorting->record, digits,
					       bpk_decimal(param->param_id, digits),
					       &param->path_size);
	add_fields(sorting, parts, count, param);
	optimizer->param_count++;
}

static int sort_out(struct sorting *sorting)
{
	const struct bpk_record *record = sorting->record;
	struct bpk_optimizer *optimizer = sorting->optimizer;
	size_t tensors = record->tensors.count, scalars = record->scalars.count;
	size_t first = 0;

	/* One more: calloc(0) may give NULL. */
	sorting->parts = calloc(tensors + scalars + 1, sizeof(*sorting->parts));
	optimizer->params = calloc(tensors + scalars + 1, sizeof(*optimizer->params));
	optimizer->tensors = calloc(tensors + 1, sizeof(*optimizer->tensors));
	optimizer->scalars = calloc(scalars + 1, sizeof(*optimizer->scalars));
	if (!sorting->parts || !optimizer->params || !optimizer->tensors ||
	    !optimizer->scalars)
		return -ENOMEM;
	for (size_t i = 0; i < tensors; i++)
		add_part(sorting, record->tensors.items[i], false);
	for (size_t i = 0; i < scalars; i++)
		add_part(sorting, record->scalars.items[i], true);
	qsort(sorting->parts, sorting->part_count, sizeof(*sorting->parts),
	      compare_parts);
	for (size_t i = 1; i <= sorting->part_count; i++) {
		if (i < sorting->part_count &&
		    sorting->parts[i].id == sorting->parts[first].id)
			continue;
		add_param(sorting, sorting->parts + first, i - first);
		first = i;
	}
	return 0;
}

BPK_EXPORT int bpk_optimizer_open(const struct bpk_record *record,
				  const char *const *required, size_t required_count,
				  bpk_optimizer_skip_fn skip, void *context,
				  struct bpk_optimizer **ret_optimizer,
				  struct bpk_error *error)
{
	struct sorting sorting = {
		.record = record,
		.required = required,
		.required_count = required_count,
		.skip = skip,
		.context = context,
		.optimizer = calloc(1, sizeof(*sorting.optimizer)),
	};
	int r = sorting.optimizer ? sort_out(&sorting) : -ENOMEM;

	free(sorting.parts);
	if (r < 0) {
		bpk_optimizer_close(sorting.optimizer);
		return record_no_memory(error);
	}
	*ret_optimizer = sorting.optimizer;
	return 0;
}

BPK_EXPORT void bpk_optimizer_close(struct bpk_optimizer *optimizer)
{
	if (!optimizer)
		return;
	free(optimizer->params);
	free(optimizer->tensors);
	free(optimizer->scalars);
	free(optimizer);
}

/* Looking ------------------------------------------------------------------ */

BPK_EXPORT size_t bpk_optimizer_param_count(const struct bpk_optimizer *optimizer)
{
	return optimizer->param_count;
}

BPK_EXPORT const struct bpk_optimizer_param *
bpk_optimizer_param(const struct bpk_optimizer *optimizer, size_t index)
{
	return index < optimizer->param_count ? &optimizer->params[index] : NULL;
}

static int compare_id(const void *key, const void *item)
{
	const uint64_t *id = key;
	const struct bpk_optimizer_param *param = item;

	return *id < param->param_id ? -1 : *id > param->param_id;
}

BPK_EXPORT const struct bpk_optimizer_param *
bpk_optimizer_find(const struct bpk_optimizer *optimizer, uint64_t param_id)
{
	return bsearch(&param_id, optimizer->params, optimizer->param_count,
		       sizeof(*optimizer->params), compare_id);
}

BPK_EXPORT const struct bpk_optimizer_tensor *
bpk_optimizer_find_tensor(const struct bpk_optimizer_param *param, const char *field)
{
	for (size_t i = 0; i < param->tensor_count; i++)
		if (!by_field(param->tensors[i].field, param->tensors[i].field_size,
			      field, strlen(field)))
			return &param->tensors[i];
	return NULL;
}

BPK_EXPORT const struct bpk_optimizer_scalar *
bpk_optimizer_find_scalar(const struct bpk_optimizer_param *param, const char *field)
{
	for (size_t i = 0; i < param->scalar_count; i++)
		if (!by_field(param->scalars[i].field, param->scalars[i].field_size,
			      field, strlen(field)))
			return &param->scalars[i];
	return NULL;
}

BPK_EXPORT int bpk_optimizer_read(const struct bpk_optimizer_param *param,
				  const char *field, enum bpk_dtype_policy policy,
				  struct bpk_param *ret_tensor, struct bpk_error *error)
{
	const struct bpk_optimizer_tensor *found =
		bpk_optimizer_find_tensor(param, field);
	char reason[RECORD_REASON_SIZE], quoted[BPK_QUOTE_SIZE];
	enum bpk_misfit misfit;
	int r;

	bpk_quote(quoted, field, strlen(field));
	if (!found)
		return bpk_fail(error, -ENOENT, BPK_ERR_RECORD, BPK_NO_OFFSET,
				"parameter %" PRIu64 " has no tensor %s", param->param_id,
				quoted);
	r = bpk_record_fits(&found->tensor, ret_tensor, policy, &misfit, reason, error);
	if (r > 0)
		return bpk_fail(error, -EINVAL, BPK_ERR_RECORD, BPK_NO_OFFSET,
				"parameter %" PRIu64 ", %s: %s", param->param_id, quoted,
				reason);
	if (r == 0)
		bpk_record_fill(&found->tensor, policy, ret_tensor);
	return r;
}
