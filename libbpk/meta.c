/*
 * meta.c - the metadata map:
 *
 *	{ "tensors":  { name: { "dtype": ..., "shape": [u64...],
 *	                        "data_offsets": [start, end], "param_id": u64 } },
 *	  "metadata": { key: text },
 *	  "scalars":  { name: { "Int" | "UInt" | "Float" | "Bool": value } } }
 *
 * Known keys come in any order, each at most once; "tensors" must be there. Maps
 * of names may repeat one, the last counts. What is unknown stays as it was
 * written: as bytes, which is why keys are read as words and never moved, while
 * names, metadata keys and values are moved together where they lie.
 *
 * Invariant: a row is made only after its bytes were read, so tables grow with
 * what the file holds and never with what it claims. Room for the tensors is made at
 * once, for as many as their map claims but no more than the bytes behind it can be.
 */
#include "meta.h"
#include "cbor.h"
#include "dtype.h"
#include "error.h"

#include <errno.h>

struct parser {
	struct bpk_cursor cursor;
	struct bpk_meta *meta;
	uint8_t *own; /* cursor.data, writable */
};

static int no_memory(struct parser *parser)
{
	return bpk_fail(parser->cursor.error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
			"out of memory while reading the metadata");
}

/* Say in front of the message whose fault it was. */
static int blame(struct parser *parser, int err, const char *kind,
		 const struct bpk_entry *entry)
{
	struct bpk_error *error = parser->cursor.error;
	char quoted[BPK_QUOTE_SIZE];
	struct bpk_error old;

	if (!error || err == -ENOMEM)
		return err;
	old = *error;
	return bpk_fail(error, err, old.code, old.offset, "%s %s: %s", kind,
			bpk_quote(quoted, entry->name, entry->name_size), old.message);
}

/* Enter a map, whatever its length. */
static int enter_map(struct parser *parser, const char *what, size_t *ret_pos,
		     struct bpk_container *ret_container)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(&parser->cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_MAP)
		return bpk_cbor_refuse(&parser->cursor, item.pos,
				       "%s must be a map, here it is %s", what,
				       bpk_item_type_name(item.type));
	*ret_pos = item.pos;
	return bpk_cbor_enter(&parser->cursor, &item, ret_container);
}

static int enter_array(struct parser *parser, const char *what,
		       struct bpk_container *ret_container)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(&parser->cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_ARRAY)
		return bpk_cbor_refuse(&parser->cursor, item.pos,
				       "%s must be an array, here it is %s", what,
				       bpk_item_type_name(item.type));
	return bpk_cbor_enter(&parser->cursor, &item, ret_container);
}

/* Unknown keys ------------------------------------------------------------- */

/* The pairs of one map that are not known. At most one span before, between and
 * behind the known keys, of which none comes twice. */
#define SPANS 5
struct spans {
	struct {
		size_t start, end;
	} at[SPANS];
	unsigned int count;
	uint32_t pairs;
};

static void spans_add(struct spans *spans, size_t start, size_t end)
{
	spans->pairs++;
	if (spans->count && spans->at[spans->count - 1].end == start) {
		spans->at[spans->count - 1].end = end;
		return;
	}
	spans->at[spans->count].start = start;
	spans->at[spans->count].end = end;
	spans->count++;
}

/* One span stays where it is. Several are copied behind each other, into a block
 * that has room for all that can ever come: spans do not overlap. */
static int spans_join(struct parser *parser, const struct spans *spans,
		      const uint8_t **ret_extra, uint32_t *ret_size)
{
	struct bpk_meta *meta = parser->meta;
	size_t start = meta->arena_used;

	if (!spans->count)
		return 0;
	if (spans->count == 1) {
		*ret_extra = parser->own + spans->at[0].start;
		*ret_size = (uint32_t)(spans->at[0].end - spans->at[0].start);
		return 0;
	}
	if (!meta->arena) {
		meta->arena = malloc(parser->cursor.size);
		if (!meta->arena)
			return no_memory(parser);
	}
	for (unsigned int i = 0; i < spans->count; i++) {
		size_t size = spans->at[i].end - spans->at[i].start;

		memcpy(meta->arena + meta->arena_used, parser->own + spans->at[i].start,
		       size);
		meta->arena_used += size;
	}
	*ret_extra = meta->arena + start;
	*ret_size = (uint32_t)(meta->arena_used - start);
	return 0;
}

/*
 * Read a key and say which of the @count in @keys it is; @count for one that is
 * unknown, whose value was then skipped and noted in @spans. A known key that was
 * in *@seen already is refused.
 */
static int next_key(struct parser *parser, const char *what, const char *const *keys,
		    unsigned int count, unsigned int *seen, struct spans *spans,
		    unsigned int *ret_key)
{
	struct bpk_cursor *cursor = &parser->cursor;
	size_t pos = cursor->pos, size;
	char word[BPK_WORD_SIZE];
	unsigned int i;
	int err;

	err = bpk_cbor_word(cursor, what, word, &size);
	if (err)
		return err;
	for (i = 0; i < count && !bpk_word_is(word, size, keys[i]); i++)
		;
	if (i < count) {
		if (*seen & 1u << i)
			return bpk_cbor_refuse(cursor, pos,
					       "the key \"%s\" is there twice", keys[i]);
		*seen |= 1u << i;
	} else {
		err = bpk_cbor_skip(cursor);
		if (err)
			return err;
		spans_add(spans, pos, cursor->pos);
	}
	*ret_key = i;
	return 0;
}

/* Tensors ------------------------------------------------------------------ */

static int parse_shape(struct parser *parser, struct bpk_tensor *tensor)
{
	struct bpk_cursor *cursor = &parser->cursor;
	struct bpk_container container;
	uint64_t dim;
	size_t end;
	bool more;
	int err;

	err = enter_array(parser, "the shape", &container);
	if (err)
		return err;
	tensor->shape = cursor->data + cursor->pos;
	for (;;) {
		end = cursor->pos;
		err = bpk_cbor_more(cursor, &container, &more);
		if (err)
			return err;
		if (!more)
			break;
		err = bpk_cbor_uint(cursor, "a dimension of the shape", UINT64_MAX, &dim);
		if (err)
			return err;
		tensor->rank++;
	}
	tensor->shape_size = (uint32_t)((size_t)(cursor->data + end - tensor->shape));
	return 0;
}

bool bpk_meta_next_dim(const struct bpk_tensor *tensor, struct bpk_shape_walk *state,
		       uint64_t *ret_dim)
{
	struct bpk_cursor cursor = {
		.data = tensor->shape,
		.size = tensor->shape_size,
		.pos = state->pos,
		.nesting = BPK_CBOR_NESTING_MAX,
	};

	/* What was read once can be read again. */
	if (state->index >= tensor->rank ||
	    bpk_cbor_uint(&cursor, "a dimension", UINT64_MAX, ret_dim))
		return false;
	state->index++;
	state->pos = (uint32_t)cursor.pos;
	return true;
}

static int parse_offsets(struct parser *parser, struct bpk_tensor *tensor)
{
	struct bpk_cursor *cursor = &parser->cursor;
	struct bpk_container container;
	size_t pos = cursor->pos;
	uint64_t offsets[2];
	unsigned int count = 0;
	bool more;
	int err;

	err = enter_array(parser, "data_offsets", &container);
	if (err)
		return err;
	for (;; count++) {
		err = bpk_cbor_more(cursor, &container, &more);
		if (err)
			return err;
		if (!more || count == 2)
			break;
		err = bpk_cbor_uint(cursor, "a data offset", UINT64_MAX, &offsets[count]);
		if (err)
			return err;
	}
	if (more || count != 2)
		return bpk_cbor_refuse(cursor, pos,
				       "data_offsets must be two numbers, start and end");
	tensor->start = offsets[0];
	tensor->end = offsets[1];
	return 0;
}

/* Null is as good as absent, unless it is tagged: then it is no null to serde. */
static int parse_param_id(struct parser *parser, struct bpk_tensor *tensor)
{
	struct bpk_cursor ahead = parser->cursor;
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(&ahead, &item);
	if (err)
		return err;
	if (!item.tags &&
	    (item.type == BPK_ITEM_NULL || item.type == BPK_ITEM_UNDEFINED)) {
		parser->cursor.pos = ahead.pos;
		return 0;
	}
	tensor->has_param_id = true;
	return bpk_cbor_uint(&parser->cursor, "param_id", UINT64_MAX, &tensor->param_id);
}

static int parse_dtype(struct parser *parser, struct bpk_tensor *tensor)
{
	struct bpk_cursor *cursor = &parser->cursor;
	enum bpk_dtype dtype;
	size_t pos = cursor->pos;
	int err;

	err = bpk_dtype_parse(cursor, &dtype);
	if (err)
		return err;
	tensor->dtype = (uint8_t)dtype;
	tensor->dtype_cbor = cursor->data + pos;
	tensor->dtype_size = (uint32_t)(cursor->pos - pos);
	return 0;
}

static int parse_descriptor(struct parser *parser, struct bpk_tensor *tensor)
{
	static const char *const keys[] = { "dtype", "shape", "data_offsets",
					    "param_id" };
	static int (*const parse[])(struct parser *, struct bpk_tensor *) = {
		parse_dtype, parse_shape, parse_offsets, parse_param_id
	};
	struct bpk_container container;
	struct spans spans = { .count = 0 };
	unsigned int seen = 0, key = 0;
	size_t pos = 0;
	bool more;
	int err;

	err = enter_map(parser, "the descriptor", &pos, &container);
	if (err)
		return err;
	for (;;) {
		err = bpk_cbor_more(&parser->cursor, &container, &more);
		if (err)
			return err;
		if (!more)
			break;
		err = next_key(parser, "a key of the descriptor", keys, 4, &seen, &spans,
			       &key);
		if (!err && key < 4)
			err = parse[key](parser, tensor);
		if (err)
			return err;
	}
	for (key = 0; key < 3; key++)
		if (!(seen & 1u << key))
			return bpk_cbor_refuse(&parser->cursor, pos,
					       "the descriptor has no \"%s\"", keys[key]);
	tensor->extra_count = spans.pairs;
	return spans_join(parser, &spans, &tensor->extra, &tensor->extra_size);
}

/* Read the name that starts an entry of a map. */
static int parse_name(struct parser *parser, const char *what, size_t order,
		      struct bpk_entry *ret_entry)
{
	size_t size;
	int err;

	err = bpk_cbor_text(&parser->cursor, parser->own, what, &ret_entry->name, &size);
	if (err)
		return err;
	ret_entry->name_size = (uint32_t)size;
	ret_entry->order = (uint32_t)order;
	return 0;
}

/* Bytes of the least tensor: an empty name, three keys, U8, [] and [0,0]. */
#define TENSOR_SIZE_MIN 34

/* Rows that never grow are never moved, and nothing of their block stays unused. */
static int reserve_tensors(struct parser *parser, uint64_t claimed)
{
	const struct bpk_cursor *cursor = &parser->cursor;
	struct bpk_meta *meta = parser->meta;
	size_t count = (cursor->size - cursor->pos) / TENSOR_SIZE_MIN, size;

	if (claimed < count)
		count = (size_t)claimed;
	if (!count || __builtin_mul_overflow(count, sizeof(*meta->tensors), &size))
		return 0;
	meta->tensors = meta->allocate ? meta->allocate(size) : malloc(size);
	if (!meta->tensors)
		return no_memory(parser);
	meta->tensor_capacity = count;
	return 0;
}

static int parse_tensor(struct parser *parser)
{
	struct bpk_meta *meta = parser->meta;
	struct bpk_tensor tensor = { .rank = 0 };
	int err;

	err = parse_name(parser, "a tensor's name", meta->tensor_count, &tensor.entry);
	if (err)
		return err;
	err = parse_descriptor(parser, &tensor);
	if (err)
		return blame(parser, err, "tensor", &tensor.entry);
	if (bpk_grow((void **)&meta->tensors, &meta->tensor_capacity,
		     meta->tensor_count + 1, sizeof(tensor)))
		return no_memory(parser);
	meta->tensors[meta->tensor_count++] = tensor;
	return 0;
}

/* Scalars ------------------------------------------------------------------ */

static int parse_int(struct bpk_cursor *cursor, struct bpk_scalar_value *value)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_UINT && item.type != BPK_ITEM_NEGINT)
		return bpk_cbor_refuse(cursor, item.pos,
				       "an Int must be an integer, here it is %s",
				       bpk_item_type_name(item.type));
	if (item.number > INT64_MAX)
		return bpk_cbor_refuse(cursor, item.pos,
				       "an Int is out of the range of i64");
	value->i = (int64_t)item.number;
	if (item.type == BPK_ITEM_NEGINT)
		value->i = -1 - value->i;
	return 0;
}

static int parse_uint(struct bpk_cursor *cursor, struct bpk_scalar_value *value)
{
	return bpk_cbor_uint(cursor, "a UInt", UINT64_MAX, &value->u);
}

static int parse_float(struct bpk_cursor *cursor, struct bpk_scalar_value *value)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_FLOAT)
		return bpk_cbor_refuse(cursor, item.pos,
				       "a Float must be a float, here it is %s",
				       bpk_item_type_name(item.type));
	value->float_bits = item.number;
	return 0;
}

static int parse_bool(struct bpk_cursor *cursor, struct bpk_scalar_value *value)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_TRUE && item.type != BPK_ITEM_FALSE)
		return bpk_cbor_refuse(cursor, item.pos,
				       "a Bool must be true or false, here it is %s",
				       bpk_item_type_name(item.type));
	value->b = item.type == BPK_ITEM_TRUE;
	return 0;
}

static int parse_scalar_value(struct bpk_cursor *cursor, struct bpk_scalar_value *value)
{
	static const struct {
		const char *name;
		enum bpk_scalar_type type;
		int (*parse)(struct bpk_cursor *, struct bpk_scalar_value *);
	} types[] = {
		{ "Int", BPK_SCALAR_INT, parse_int },
		{ "UInt", BPK_SCALAR_UINT, parse_uint },
		{ "Float", BPK_SCALAR_FLOAT, parse_float },
		{ "Bool", BPK_SCALAR_BOOL, parse_bool },
	};
	struct bpk_container container;
	char word[BPK_WORD_SIZE], quoted[BPK_QUOTE_SIZE];
	struct bpk_item item;
	size_t pos, size;
	unsigned int i;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (!err)
		err = bpk_cbor_enter_variant(cursor, &item, "a scalar", &container);
	if (err)
		return err;
	pos = cursor->pos;
	err = bpk_cbor_word(cursor, "the type of a scalar", word, &size);
	if (err)
		return err;
	for (i = 0; i < 4 && !bpk_word_is(word, size, types[i].name); i++)
		;
	if (i == 4)
		return bpk_cbor_refuse(
			cursor, pos, "the type is %s, not Int, UInt, Float or Bool",
			bpk_quote(quoted, word,
				  size < BPK_WORD_SIZE ? size : BPK_WORD_SIZE));
	value->type = types[i].type;
	err = types[i].parse(cursor, value);
	return err ? err : bpk_cbor_leave_variant(cursor, &container);
}

static int parse_scalar(struct parser *parser)
{
	struct bpk_meta *meta = parser->meta;
	struct bpk_scalar scalar = { .value.u = 0 };
	int err;

	err = parse_name(parser, "a scalar's name", meta->scalar_count, &scalar.entry);
	if (err)
		return err;
	err = parse_scalar_value(&parser->cursor, &scalar.value);
	if (err)
		return blame(parser, err, "scalar", &scalar.entry);
	if (bpk_grow((void **)&meta->scalars, &meta->scalar_capacity,
		     meta->scalar_count + 1, sizeof(scalar)))
		return no_memory(parser);
	meta->scalars[meta->scalar_count++] = scalar;
	return 0;
}

/* User metadata ------------------------------------------------------------ */

static int parse_metadata(struct parser *parser)
{
	struct bpk_meta *meta = parser->meta;
	struct bpk_metadata entry;
	int err;

	err = parse_name(parser, "a metadata key", meta->entry_count, &entry.entry);
	if (err)
		return err;
	err = bpk_cbor_text(&parser->cursor, parser->own, "the value", &entry.value,
			    &entry.value_size);
	if (err)
		return blame(parser, err, "metadata key", &entry.entry);
	if (bpk_grow((void **)&meta->entries, &meta->entry_capacity,
		     meta->entry_count + 1, sizeof(entry)))
		return no_memory(parser);
	meta->entries[meta->entry_count++] = entry;
	return 0;
}

/* The whole ---------------------------------------------------------------- */

static int parse_map(struct parser *parser, const char *what,
		     int (*parse_entry)(struct parser *parser),
		     int (*reserve)(struct parser *parser, uint64_t claimed))
{
	struct bpk_container container;
	size_t pos = 0;
	bool more;
	int err;

	err = enter_map(parser, what, &pos, &container);
	if (!err && reserve && !container.indefinite)
		err = reserve(parser, container.left);
	while (!err) {
		err = bpk_cbor_more(&parser->cursor, &container, &more);
		if (err || !more)
			break;
		err = parse_entry(parser);
	}
	return err;
}

/*
 * Bytes behind the value are allowed. But text there is the next key of a map
 * whose count is too small: whoever wrote it meant that entry to be in the pack,
 * and it would be lost with the next change.
 */
static int check_trailer(struct parser *parser)
{
	struct bpk_cursor *cursor = &parser->cursor;

	parser->meta->value_size = cursor->pos;
	if (cursor->pos < cursor->size && cursor->data[cursor->pos] >> 5 == 3)
		return bpk_cbor_refuse(
			cursor, cursor->pos,
			"the metadata goes on behind its last entry: the count of "
			"a map is too small");
	return 0;
}

static int parse_root(struct parser *parser)
{
	static const char *const keys[] = { "tensors", "metadata", "scalars" };
	static const char *const what[] = { "\"tensors\"", "\"metadata\"",
					    "\"scalars\"" };
	static int (*const parse[])(struct parser *) = { parse_tensor, parse_metadata,
							 parse_scalar };
	struct bpk_meta *meta = parser->meta;
	struct bpk_container container;
	struct spans spans = { .count = 0 };
	unsigned int seen = 0, key = 0;
	size_t pos = 0;
	bool more;
	int err;

	err = enter_map(parser, "the metadata", &pos, &container);
	if (err)
		return err;
	for (;;) {
		err = bpk_cbor_more(&parser->cursor, &container, &more);
		if (err)
			return err;
		if (!more)
			break;
		err = next_key(parser, "a key of the metadata", keys, 3, &seen, &spans,
			       &key);
		if (!err && key < 3)
			err = parse_map(parser, what[key], parse[key],
					key ? NULL : reserve_tensors);
		if (err)
			return err;
	}
	if (!(seen & 1u))
		return bpk_cbor_refuse(&parser->cursor, pos,
				       "the metadata has no \"tensors\"");
	meta->extra_count = spans.pairs;
	err = spans_join(parser, &spans, &meta->extra, &meta->extra_size);
	return err ? err : check_trailer(parser);
}

int bpk_meta_parse(struct bpk_meta *meta, uint8_t *metadata, size_t size,
		   const struct bpk_limits *limits, struct bpk_error *error)
{
	struct parser parser = {
		.cursor = {
			.data = metadata,
			.size = size,
			.base_off = BPK_HEADER_SIZE,
			.nesting = limits->nesting < BPK_CBOR_NESTING_MAX ?
					   limits->nesting :
					   BPK_CBOR_NESTING_MAX,
			.error = error,
		},
		.meta = meta,
		.own = metadata,
	};
	int err;

	err = parse_root(&parser);
	if (err)
		return err;
	bpk_index_sort(meta->tensors, &meta->tensor_count, sizeof(*meta->tensors));
	bpk_index_sort(meta->scalars, &meta->scalar_count, sizeof(*meta->scalars));
	bpk_index_sort(meta->entries, &meta->entry_count, sizeof(*meta->entries));
	if (meta->tensor_count > limits->tensor_count)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_HEADER_SIZE,
				"the pack holds %zu tensors, the limit is %llu",
				meta->tensor_count,
				(unsigned long long)limits->tensor_count);
	return 0;
}

void bpk_meta_done(struct bpk_meta *meta)
{
	free(meta->tensors);
	free(meta->scalars);
	free(meta->entries);
	free(meta->arena);
	*meta = (struct bpk_meta) { .extra = NULL };
}
