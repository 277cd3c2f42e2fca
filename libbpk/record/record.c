/*
 * record.c - the record: tables of names, from a pack and into one. Works on memory
 * alone: path.c brings files.
 */
#include "record/record.h"

#include "dtype.h"

static void *new_entry(size_t size, const char *name, size_t name_size)
{
	struct bpk_named *named = calloc(1, size + name_size + 1);
	char *copy;

	if (!named)
		return NULL;
	copy = (char *)named + size;
	if (name_size)
		memcpy(copy, name, name_size);
	named->name = copy;
	named->name_size = name_size;
	return named;
}

/* Put @entry or free it. */
static int put(struct bpk_table *table, struct bpk_named *entry, struct bpk_error *error)
{
	if (bpk_table_put(table, entry) < 0) {
		free(entry);
		return record_no_memory(error);
	}
	return 0;
}

size_t bpk_record_parse_decimal(const char *text, size_t size, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t at = 0;

	for (; at < size && text[at] >= '0' && text[at] <= '9'; at++)
		if ((at && !value) || !bpk_mul_u64(value, 10, &value) ||
		    !bpk_add_u64(value, (uint64_t)(text[at] - '0'), &value))
			return 0;
	*ret_value = value;
	return at;
}

BPK_EXPORT int bpk_record_new(struct bpk_record **ret_record)
{
	struct bpk_record *record = calloc(1, sizeof(*record));

	if (!record)
		return -ENOMEM;
	*ret_record = record;
	return 0;
}

BPK_EXPORT void bpk_record_free(struct bpk_record *record)
{
	if (!record)
		return;
	bpk_table_done(&record->tensors);
	bpk_table_done(&record->scalars);
	bpk_table_done(&record->metadata);
	bpk_reader_close(record->reader);
	free(record);
}

/* Tensors ------------------------------------------------------------------ */

static int put_tensor(struct bpk_record *record, const struct bpk_record_tensor *tensor,
		      const void *extra, size_t extra_size, size_t extra_count,
		      struct bpk_error *error)
{
	size_t shape_size, cbor_size = tensor->dtype_cbor_size, fixed;
	const void *cbor = tensor->dtype_cbor;
	struct record_tensor *entry;
	uint64_t *shape;
	uint8_t *copy;

	if (!cbor)
		cbor = bpk_dtype_cbor(tensor->dtype, &cbor_size);
	/* The shape first, which must be aligned. */
	if (__builtin_mul_overflow(tensor->rank, sizeof(*shape), &shape_size) ||
	    __builtin_add_overflow(shape_size, sizeof(*entry) + cbor_size, &fixed))
		return record_no_memory(error);
	entry = new_entry(fixed, tensor->name, tensor->name_size);
	if (!entry)
		return record_no_memory(error);
	shape = (uint64_t *)(entry + 1);
	copy = (uint8_t *)(shape + tensor->rank);
	if (tensor->rank)
		memcpy(shape, tensor->shape, shape_size);
	if (cbor_size)
		memcpy(copy, cbor, cbor_size);
	entry->tensor = *tensor;
	entry->tensor.name = entry->named.name;
	entry->tensor.shape = shape;
	entry->tensor.dtype_cbor = copy;
	entry->tensor.dtype_cbor_size = cbor_size;
	entry->extra = extra;
	entry->extra_size = extra_size;
	entry->extra_count = extra_count;
	return put(&record->tensors, &entry->named, error);
}

int bpk_record_add_tensor(struct bpk_record *record,
			  const struct bpk_record_tensor *tensor, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE];

	if (!bpk_utf8_valid(tensor->name, tensor->name_size))
		return record_bad_argument(error, "a tensor's name: not UTF-8");
	if (tensor->dtype == BPK_DTYPE_QFLOAT && !tensor->dtype_cbor)
		return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
				"tensor %s: QFloat needs the item of its scheme",
				bpk_quote(quoted, tensor->name, tensor->name_size));
	if (bpk_table_find(&record->tensors, tensor->name, tensor->name_size))
		return bpk_fail(error, -EEXIST, BPK_ERR_DUPLICATE, BPK_NO_OFFSET,
				"tensor %s is there twice",
				bpk_quote(quoted, tensor->name, tensor->name_size));
	return put_tensor(record, tensor, NULL, 0, 0, error);
}

const struct record_tensor *bpk_record_get_tensor(const struct bpk_record *record,
						  const char *name, size_t name_size)
{
	return (const struct record_tensor *)bpk_table_find(&record->tensors, name,
							    name_size);
}

BPK_EXPORT size_t bpk_record_tensor_count(const struct bpk_record *record)
{
	return record->tensors.count;
}

BPK_EXPORT void bpk_record_tensor(const struct bpk_record *record, size_t index,
				  struct bpk_record_tensor *ret_tensor)
{
	*ret_tensor = ((struct record_tensor *)record->tensors.items[index])->tensor;
}

BPK_EXPORT bool bpk_record_find_tensor(const struct bpk_record *record, const char *name,
				       size_t name_size,
				       struct bpk_record_tensor *ret_tensor)
{
	const struct record_tensor *entry =
		bpk_record_get_tensor(record, name, name_size);

	if (entry)
		*ret_tensor = entry->tensor;
	return entry != NULL;
}

/* Scalars and metadata ----------------------------------------------------- */

BPK_EXPORT size_t bpk_record_scalar_count(const struct bpk_record *record)
{
	return record->scalars.count;
}

BPK_EXPORT struct bpk_scalar_value bpk_record_scalar(const struct bpk_record *record,
						     size_t index, const char **ret_name,
						     size_t *ret_name_size)
{
	struct bpk_named *named = record->scalars.items[index];

	*ret_name = named->name;
	*ret_name_size = named->name_size;
	return ((struct record_scalar *)named)->value;
}

BPK_EXPORT bool bpk_record_find_scalar(const struct bpk_record *record, const char *name,
				       size_t name_size,
				       struct bpk_scalar_value *ret_value)
{
	struct bpk_named *named = bpk_table_find(&record->scalars, name, name_size);

	if (named)
		*ret_value = ((struct record_scalar *)named)->value;
	return named != NULL;
}

BPK_EXPORT int bpk_record_set_scalar(struct bpk_record *record, const char *name,
				     size_t name_size, struct bpk_scalar_value value,
				     struct bpk_error *error)
{
	struct record_scalar *entry;

	if (!bpk_utf8_valid(name, name_size))
		return record_bad_argument(error, "a scalar's name: not UTF-8");
	entry = new_entry(sizeof(*entry), name, name_size);
	if (!entry)
		return record_no_memory(error);
	entry->value = value;
	return put(&record->scalars, &entry->named, error);
}

BPK_EXPORT const char *bpk_record_find_metadata(const struct bpk_record *record,
						const char *key, size_t key_size,
						size_t *ret_value_size)
{
	struct bpk_named *named = bpk_table_find(&record->metadata, key, key_size);
	const struct record_metadata *entry = (const struct record_metadata *)named;

	if (!entry)
		return NULL;
	*ret_value_size = entry->value_size;
	return entry->value;
}

BPK_EXPORT int bpk_record_set_metadata(struct bpk_record *record, const char *key,
				       size_t key_size, const char *value,
				       size_t value_size, struct bpk_error *error)
{
	struct record_metadata *entry;
	size_t fixed;
	char *copy;

	if (!bpk_utf8_valid(key, key_size) || !bpk_utf8_valid(value, value_size))
		return record_bad_argument(error, "a metadata key or value: not UTF-8");
	if (__builtin_add_overflow(sizeof(*entry), value_size, &fixed))
		return record_no_memory(error);
	entry = new_entry(fixed, key, key_size);
	if (!entry)
		return record_no_memory(error);
	copy = (char *)(entry + 1);
	if (value_size)
		memcpy(copy, value, value_size);
	entry->value = copy;
	entry->value_size = value_size;
	return put(&record->metadata, &entry->named, error);
}

/* From a pack -------------------------------------------------------------- */

/* Where a tensor lies, so that writing again keeps the order of the data. */
struct place {
	uint64_t off, size;
	size_t index;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static int take_tensor(struct bpk_record *record, const struct bpk_tensor *from,
		       struct bpk_error *error)
{
	size_t rank = bpk_tensor_rank(from), extra_size, extra_count;
	_cleanup_(bpk_free_at) uint64_t *shape = calloc(rank ? rank : 1, sizeof(*shape));
	const void *extra = bpk_tensor_extra(from, &extra_size, &extra_count);
	struct bpk_record_tensor tensor = {
		.dtype = bpk_tensor_dtype(from),
		.shape = shape,
		.rank = rank,
		.data = bpk_tensor_data(record->reader, from),
		.size = bpk_tensor_size(from),
	};

	if (!shape)
		return record_no_memory(error);
	bpk_tensor_shape(from, shape, rank);
	tensor.name = bpk_tensor_name(from, &tensor.name_size);
	tensor.dtype_cbor = bpk_tensor_dtype_cbor(from, &tensor.dtype_cbor_size);
	tensor.has_param_id = bpk_tensor_param_id(from, &tensor.param_id);
	return put_tensor(record, &tensor, extra, extra_size, extra_count, error);
}

static int take_tensors(struct bpk_record *record, struct bpk_error *error)
{
	size_t count = bpk_reader_tensor_count(record->reader);
	_cleanup_(bpk_free_at) struct place *places =
		calloc(count ? count : 1, sizeof(*places));
	int r = 0;

	if (!places)
		return record_no_memory(error);
	for (size_t i = 0; i < count; i++) {
		const struct bpk_tensor *tensor = bpk_reader_tensor(record->reader, i);

		places[i] = (struct place) { bpk_tensor_off(tensor),
					     bpk_tensor_size(tensor), i };
	}
	qsort(places, count, sizeof(*places), by_place);
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = take_tensor(record,
				bpk_reader_tensor(record->reader, places[i].index),
				error);
	return r;
}

static int take_values(struct bpk_record *record, struct bpk_error *error)
{
	const struct bpk_reader *reader = record->reader;
	size_t name_size, value_size;
	const char *name, *value;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < bpk_reader_scalar_count(reader); i++) {
		const struct bpk_scalar *scalar = bpk_reader_scalar(reader, i);

		name = bpk_scalar_name(scalar, &name_size);
		r = bpk_record_set_scalar(record, name, name_size,
					  bpk_scalar_value(scalar), error);
	}
	for (size_t i = 0; r >= 0 && i < bpk_reader_metadata_count(reader); i++) {
		const struct bpk_metadata *metadata = bpk_reader_metadata(reader, i);

		name = bpk_metadata_key(metadata, &name_size);
		value = bpk_metadata_value(metadata, &value_size);
		r = bpk_record_set_metadata(record, name, name_size, value, value_size,
					    error);
	}
	return r;
}

int bpk_record_from_reader(struct bpk_reader *reader, struct bpk_record **ret_record,
			   struct bpk_error *error)
{
	struct bpk_record *record;
	int r = bpk_record_new(&record);

	if (r < 0) {
		bpk_reader_close(reader);
		return record_no_memory(error);
	}
	record->reader = reader;
	r = take_tensors(record, error);
	if (r >= 0)
		r = take_values(record, error);
	if (r < 0)
		bpk_record_free(record);
	else
		*ret_record = record;
	return r;
}

BPK_EXPORT int bpk_record_from_bytes(const void *data, size_t size,
				     const struct bpk_limits *limits,
				     struct bpk_record **ret_record,
				     struct bpk_error *error)
{
	struct bpk_reader *reader;
	int r = bpk_reader_open_buffer(data, size, limits, &reader, error);

	return r < 0 ? r : bpk_record_from_reader(reader, ret_record, error);
}

/* Into a pack -------------------------------------------------------------- */

static int write_tensors(const struct bpk_record *record, struct bpk_writer *writer,
			 struct bpk_error *error)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < record->tensors.count; i++) {
		const struct record_tensor *entry =
			(const struct record_tensor *)record->tensors.items[i];
		const struct bpk_record_tensor *tensor = &entry->tensor;
		const struct bpk_tensor_desc desc = {
			.name = tensor->name,
			.name_size = tensor->name_size,
			.dtype = tensor->dtype,
			.dtype_cbor = tensor->dtype_cbor,
			.dtype_cbor_size = tensor->dtype_cbor_size,
			.shape = tensor->shape,
			.rank = tensor->rank,
			.has_param_id = tensor->has_param_id,
			.param_id = tensor->param_id,
			.extra = entry->extra,
			.extra_size = entry->extra_size,
			.extra_count = entry->extra_count,
		};

		r = bpk_writer_add_bytes(writer, &desc, tensor->data, tensor->size,
					 error);
	}
	return r;
}

static int write_values(const struct bpk_record *record, const char *without,
			struct bpk_writer *writer, struct bpk_error *error)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < record->scalars.count; i++) {
		const struct bpk_named *named = record->scalars.items[i];

		r = bpk_writer_set_scalar(writer, named->name, named->name_size,
					  ((const struct record_scalar *)named)->value,
					  error);
	}
	for (size_t i = 0; r >= 0 && i < record->metadata.count; i++) {
		const struct bpk_named *named = record->metadata.items[i];
		const struct record_metadata *entry =
			(const struct record_metadata *)named;

		if (without && !bpk_name_compare(named->name, named->name_size, without,
						 strlen(without)))
			continue;
		r = bpk_writer_set_metadata(writer, named->name, named->name_size,
					    entry->value, entry->value_size, error);
	}
	return r;
}

/* What the reader knows and the tables do not. */
static int write_rest(const struct bpk_record *record, struct bpk_writer *writer,
		      struct bpk_error *error)
{
	size_t size, count;
	const void *extra;

	if (!record->reader)
		return 0;
	extra = bpk_reader_extra(record->reader, &size, &count);
	return bpk_writer_set_extra(writer, extra, size, count, error);
}

int bpk_record_to_writer(const struct bpk_record *record, const char *without,
			 struct bpk_writer **ret_writer, struct bpk_error *error)
{
	struct bpk_writer *writer;
	int r = bpk_writer_new(NULL, &writer);

	if (r < 0)
		return record_no_memory(error);
	bpk_writer_allow_odd_sizes(writer, record->reader != NULL);
	r = write_tensors(record, writer, error);
	if (r >= 0)
		r = write_values(record, without, writer, error);
	if (r >= 0)
		r = write_rest(record, writer, error);
	if (r < 0)
		bpk_writer_free(writer);
	else
		*ret_writer = writer;
	return r;
}

BPK_EXPORT int bpk_record_into_bytes(const struct bpk_record *record, void **ret_data,
				     uint64_t *ret_size, struct bpk_error *error)
{
	struct bpk_writer *writer;
	int r = bpk_record_to_writer(record, NULL, &writer, error);

	if (r < 0)
		return r;
	r = bpk_writer_write_new_buffer(writer, NULL, ret_data, ret_size, error);
	bpk_writer_free(writer);
	return r;
}
