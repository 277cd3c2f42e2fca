/*
 * dtype.c - data types: one table, and the parser of their CBOR forms.
 *
 * A dtype is a name ("F32"), or a map of one from a name to what belongs to it
 * ({"Bool":"Native"}, {"QFloat":scheme}): the way serde writes a Rust enum. Burn's
 * reader takes only definite maps there, and a name without a payload only as
 * plain text; so does this one. A scheme is a serde struct: unknown fields are
 * passed over (releases up to 0.20 had param and level), a known one twice is
 * refused. It is checked and kept as bytes, and never understood.
 */
#include "dtype.h"
#include "error.h"

#include <errno.h>

static const struct {
	const char *name;  /* bpk_dtype_name() */
	const char *plain; /* the text in a pack, NULL when it is a map */
	const char *store; /* of {"Bool":store} */
	const char *cbor;  /* canonical */
	uint8_t cbor_size;
	uint8_t element_size;
} dtypes[BPK_DTYPE_COUNT] = {
/* Octal escapes end after three digits, hexadecimal ones would go on into a name. */
#define CBOR(text) text, sizeof(text) - 1
	[BPK_DTYPE_F64] = { "F64", "F64", NULL, CBOR("\143F64"), 8 },
	[BPK_DTYPE_F32] = { "F32", "F32", NULL, CBOR("\143F32"), 4 },
	[BPK_DTYPE_FLEX32] = { "Flex32", "Flex32", NULL, CBOR("\146Flex32"), 4 },
	[BPK_DTYPE_F16] = { "F16", "F16", NULL, CBOR("\143F16"), 2 },
	[BPK_DTYPE_BF16] = { "BF16", "BF16", NULL, CBOR("\144BF16"), 2 },
	[BPK_DTYPE_I64] = { "I64", "I64", NULL, CBOR("\143I64"), 8 },
	[BPK_DTYPE_I32] = { "I32", "I32", NULL, CBOR("\143I32"), 4 },
	[BPK_DTYPE_I16] = { "I16", "I16", NULL, CBOR("\143I16"), 2 },
	[BPK_DTYPE_I8] = { "I8", "I8", NULL, CBOR("\142I8"), 1 },
	[BPK_DTYPE_U64] = { "U64", "U64", NULL, CBOR("\143U64"), 8 },
	[BPK_DTYPE_U32] = { "U32", "U32", NULL, CBOR("\143U32"), 4 },
	[BPK_DTYPE_U16] = { "U16", "U16", NULL, CBOR("\143U16"), 2 },
	[BPK_DTYPE_U8] = { "U8", "U8", NULL, CBOR("\142U8"), 1 },
	[BPK_DTYPE_BOOL_NATIVE] = { "Bool(Native)", NULL, "Native",
				    CBOR("\241\144Bool\146Native"), 1 },
	[BPK_DTYPE_BOOL_U8] = { "Bool(U8)", NULL, "U8", CBOR("\241\144Bool\142U8"), 1 },
	[BPK_DTYPE_BOOL_U32] = { "Bool(U32)", NULL, "U32", CBOR("\241\144Bool\143U32"),
				 4 },
	[BPK_DTYPE_BOOL_LEGACY] = { "Bool", "Bool", NULL, CBOR("\144Bool"), 1 },
	[BPK_DTYPE_QFLOAT] = { "QFloat", NULL, NULL, NULL, 0, 0 },
#undef CBOR
};

static bool dtype_known(enum bpk_dtype dtype)
{
	return (unsigned int)dtype < BPK_DTYPE_COUNT;
}

BPK_EXPORT uint64_t bpk_dtype_element_size(enum bpk_dtype dtype)
{
	return dtype_known(dtype) ? dtypes[dtype].element_size : 0;
}

BPK_EXPORT const char *bpk_dtype_name(enum bpk_dtype dtype)
{
	return dtype_known(dtype) ? dtypes[dtype].name : "?";
}

BPK_EXPORT int bpk_dtype_from_name(const char *text, size_t size,
				   enum bpk_dtype *ret_dtype)
{
	for (unsigned int i = 0; i < BPK_DTYPE_COUNT; i++) {
		if (i == BPK_DTYPE_QFLOAT || strlen(dtypes[i].name) != size ||
		    memcmp(dtypes[i].name, text, size))
			continue;
		*ret_dtype = (enum bpk_dtype)i;
		return 0;
	}
	return -EINVAL;
}

BPK_EXPORT int bpk_shape_size(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
			      uint64_t *ret_size)
{
	uint64_t size = bpk_dtype_element_size(dtype);
	bool overflow = false;

	if (!size)
		return -EINVAL;
	for (size_t i = 0; i < rank; i++) {
		/* Nothing times anything is nothing, also where that is too large. */
		if (!shape[i]) {
			*ret_size = 0;
			return 0;
		}
		overflow |= !bpk_mul_u64(size, shape[i], &size);
	}
	if (overflow)
		return -EOVERFLOW;
	*ret_size = size;
	return 0;
}

const void *bpk_dtype_cbor(enum bpk_dtype dtype, size_t *ret_size)
{
	if (!dtype_known(dtype) || !dtypes[dtype].cbor)
		return NULL;
	*ret_size = dtypes[dtype].cbor_size;
	return dtypes[dtype].cbor;
}

/* The parser -------------------------------------------------------------- */

static int refuse_word(struct bpk_cursor *cursor, size_t pos, const char *what,
		       const char *word, size_t size)
{
	char quoted[BPK_QUOTE_SIZE];

	bpk_quote(quoted, word, size < BPK_WORD_SIZE ? size : BPK_WORD_SIZE);
	return bpk_cbor_refuse(cursor, pos, "%s is %s%s, which is not known", what,
			       quoted, size > BPK_WORD_SIZE ? " and more" : "");
}

/* Read a text that must be one of @words. */
static int parse_word(struct bpk_cursor *cursor, const char *what,
		      const char *const *words)
{
	char word[BPK_WORD_SIZE];
	size_t pos = cursor->pos, size;
	int err;

	err = bpk_cbor_word(cursor, what, word, &size);
	if (err)
		return err;
	for (; *words; words++)
		if (bpk_word_is(word, size, *words))
			return 0;
	return refuse_word(cursor, pos, what, word, size);
}

/* Is the next item a bare null or undefined? If so, it is eaten. As for serde's
 * Option, a tag makes it something that is there. */
static int parse_absent(struct bpk_cursor *cursor, bool *ret_absent)
{
	struct bpk_cursor ahead = *cursor;
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(&ahead, &item);
	if (err)
		return err;
	*ret_absent = !item.tags &&
		      (item.type == BPK_ITEM_NULL || item.type == BPK_ITEM_UNDEFINED);
	if (*ret_absent)
		cursor->pos = ahead.pos;
	return 0;
}

typedef int (*field_fn)(struct bpk_cursor *cursor, const char *what);

struct field {
	const char *name;
	const char *what; /* for messages */
	field_fn parse;
	bool required;
};

/* A serde struct: a map with each of @fields at most once, others passed over. */
static int parse_struct(struct bpk_cursor *cursor, const char *what,
			const struct field *fields, unsigned int count)
{
	struct bpk_container container;
	struct bpk_item item;
	unsigned int seen = 0;
	bool more;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_MAP)
		return bpk_cbor_refuse(cursor, item.pos,
				       "%s must be a map, here it is %s", what,
				       bpk_item_type_name(item.type));
	err = bpk_cbor_enter(cursor, &item, &container);
	if (err)
		return err;
	for (;;) {
		char key[BPK_WORD_SIZE];
		size_t key_size, pos;
		unsigned int i;

		err = bpk_cbor_more(cursor, &container, &more);
		if (err)
			return err;
		if (!more)
			break;
		pos = cursor->pos;
		err = bpk_cbor_word(cursor, "a key of a quantization scheme", key,
				    &key_size);
		if (err)
			return err;
		for (i = 0; i < count && !bpk_word_is(key, key_size, fields[i].name); i++)
			;
		if (i == count) {
			err = bpk_cbor_skip(cursor);
			if (err)
				return err;
			continue;
		}
		if (seen & 1u << i)
			return bpk_cbor_refuse(cursor, pos, "%s has the key \"%s\" twice",
					       what, fields[i].name);
		seen |= 1u << i;
		err = fields[i].parse(cursor, fields[i].what);
		if (err)
			return err;
	}
	for (unsigned int i = 0; i < count; i++)
		if (fields[i].required && !(seen & 1u << i))
			return bpk_cbor_refuse(cursor, item.pos, "%s has no \"%s\"", what,
					       fields[i].name);
	return 0;
}

static int parse_value(struct bpk_cursor *cursor, const char *what)
{
	static const char *const words[] = { "Q8F", "Q8S",  "Q4F",  "Q4S",  "Q2F",
					     "Q2S", "E5M2", "E4M3", "E2M1", NULL };

	return parse_word(cursor, what, words);
}

static int parse_mode(struct bpk_cursor *cursor, const char *what)
{
	static const char *const words[] = { "Symmetric", "Lookup", NULL };

	return parse_word(cursor, what, words);
}

static int parse_scale(struct bpk_cursor *cursor, const char *what)
{
	static const char *const words[] = {
		"F32", "F16", "BF16", "UE8M0", "UE4M3", NULL
	};

	return parse_word(cursor, what, words);
}

static int parse_store(struct bpk_cursor *cursor, const char *what)
{
	static const char *const plain[] = { "Native", NULL };
	static const char *const packed[] = { "PackedNative", "PackedU32", NULL };
	struct bpk_container container;
	struct bpk_cursor ahead = *cursor;
	struct bpk_item item;
	uint64_t dim;
	int err;

	err = bpk_cbor_next(&ahead, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_MAP)
		return parse_word(cursor, what, plain);
	cursor->pos = ahead.pos;
	err = bpk_cbor_enter_variant(cursor, &item, what, &container);
	if (!err)
		err = parse_word(cursor, what, packed);
	if (!err)
		err = bpk_cbor_uint(cursor, "the packed dimension", UINT64_MAX, &dim);
	return err ? err : bpk_cbor_leave_variant(cursor, &container);
}

static int parse_tensor(struct bpk_cursor *cursor, const char *what)
{
	bool absent;
	int err = parse_absent(cursor, &absent);

	return err || absent ? err : parse_scale(cursor, what);
}

/* How many dimensions a block size has room for. */
#define BLOCK_DIMS 5

static int parse_storage(struct bpk_cursor *cursor, const char *what)
{
	struct bpk_container container;
	struct bpk_item item;
	unsigned int count = 0;
	uint64_t dim;
	bool more;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_ARRAY)
		return bpk_cbor_refuse(cursor, item.pos,
				       "%s must be an array, here it is %s", what,
				       bpk_item_type_name(item.type));
	err = bpk_cbor_enter(cursor, &item, &container);
	if (err)
		return err;
	for (;; count++) {
		err = bpk_cbor_more(cursor, &container, &more);
		if (err)
			return err;
		if (!more || count == BLOCK_DIMS)
			break;
		err = bpk_cbor_uint(cursor, what, UINT8_MAX, &dim);
		if (err)
			return err;
	}
	if (more || count != BLOCK_DIMS)
		return bpk_cbor_refuse(cursor, item.pos, "%s must have %d numbers", what,
				       BLOCK_DIMS);
	return 0;
}

static int parse_byte(struct bpk_cursor *cursor, const char *what)
{
	uint64_t value;

	return bpk_cbor_uint(cursor, what, UINT8_MAX, &value);
}

static int parse_block_size(struct bpk_cursor *cursor, const char *what)
{
	static const struct field fields[] = {
		{ "storage", "the storage of a block size", parse_storage, true },
		{ "len", "the length of a block size", parse_byte, true },
	};

	return parse_struct(cursor, what, fields, 2);
}

static int parse_block(struct bpk_cursor *cursor, const char *what)
{
	static const struct field fields[] = {
		{ "size", "the size of a block scale", parse_block_size, true },
		{ "dtype", "the dtype of a block scale", parse_scale, true },
	};
	bool absent;
	int err = parse_absent(cursor, &absent);

	return err || absent ? err : parse_struct(cursor, what, fields, 2);
}

static int parse_scheme(struct bpk_cursor *cursor)
{
	static const struct field fields[] = {
		{ "value", "the value of a quantization scheme", parse_value, true },
		{ "store", "the store of a quantization scheme", parse_store, true },
		{ "mode", "the mode of a quantization scheme", parse_mode, true },
		{ "tensor", "the tensor scale of a quantization scheme", parse_tensor,
		  false },
		{ "block", "the block scale of a quantization scheme", parse_block,
		  false },
	};

	return parse_struct(cursor, "a quantization scheme", fields, 5);
}

static int parse_plain(struct bpk_cursor *cursor, enum bpk_dtype *ret_dtype)
{
	char word[BPK_WORD_SIZE];
	size_t pos = cursor->pos, size;
	int err;

	err = bpk_cbor_word(cursor, "the dtype", word, &size);
	if (err)
		return err;
	for (unsigned int i = 0; i < BPK_DTYPE_COUNT; i++) {
		if (!dtypes[i].plain || !bpk_word_is(word, size, dtypes[i].plain))
			continue;
		*ret_dtype = (enum bpk_dtype)i;
		return 0;
	}
	return refuse_word(cursor, pos, "the dtype", word, size);
}

static int parse_bool(struct bpk_cursor *cursor, enum bpk_dtype *ret_dtype)
{
	char word[BPK_WORD_SIZE];
	size_t pos = cursor->pos, size;
	int err;

	err = bpk_cbor_word(cursor, "the store of a Bool", word, &size);
	if (err)
		return err;
	for (unsigned int i = 0; i < BPK_DTYPE_COUNT; i++) {
		if (!dtypes[i].store || !bpk_word_is(word, size, dtypes[i].store))
			continue;
		*ret_dtype = (enum bpk_dtype)i;
		return 0;
	}
	return refuse_word(cursor, pos, "the store of a Bool", word, size);
}

int bpk_dtype_parse(struct bpk_cursor *cursor, enum bpk_dtype *ret_dtype)
{
	struct bpk_container container;
	struct bpk_cursor ahead = *cursor;
	enum bpk_dtype dtype = BPK_DTYPE_QFLOAT;
	char word[BPK_WORD_SIZE];
	struct bpk_item item;
	size_t pos, size;
	int err;

	err = bpk_cbor_next(&ahead, &item);
	if (err)
		return err;
	if (item.type == BPK_ITEM_TEXT || item.type == BPK_ITEM_TEXT_START)
		return parse_plain(cursor, ret_dtype);
	if (item.type != BPK_ITEM_MAP)
		return bpk_cbor_refuse(cursor, item.pos,
				       "the dtype must be text or a map, here it is %s",
				       bpk_item_type_name(item.type));
	cursor->pos = ahead.pos;
	err = bpk_cbor_enter_variant(cursor, &item, "the dtype", &container);
	if (err)
		return err;
	pos = cursor->pos;
	err = bpk_cbor_word(cursor, "the dtype", word, &size);
	if (err)
		return err;
	if (bpk_word_is(word, size, "Bool"))
		err = parse_bool(cursor, &dtype);
	else if (bpk_word_is(word, size, "QFloat"))
		err = parse_scheme(cursor);
	else
		err = refuse_word(cursor, pos, "the dtype (as a map)", word, size);
	if (!err)
		err = bpk_cbor_leave_variant(cursor, &container);
	if (!err)
		*ret_dtype = dtype;
	return err;
}
