/*
 * cbor.c - the cursor. Knows CBOR and nothing of burnpack.
 *
 * Heads are decoded by libcbor's cbor_stream_decode(), which calls one of the
 * functions of a constant table; each notes what it saw. Three things are done
 * here because libcbor 0.8 does not: tags 6 to 20 (it takes them for unassigned),
 * the two-byte forms of false, true, null and undefined, and the exact bits of
 * floats (it hands over a C float, which may lose a signaling NaN).
 *
 * Invariant: pos <= size, and a call that succeeds has moved pos forward, so a
 * loop over items ends after at most size turns whatever the heads claim.
 */
#include "cbor.h"
#include "error.h"

/* Not <cbor.h>: the header of that name here would be found in its place. */
#include <cbor/streaming.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* What the callbacks note. */
struct decoded {
	struct bpk_item *item;
	bool tag;
};

static void note(void *context, enum bpk_item_type type, uint64_t number)
{
	struct decoded *decoded = context;

	decoded->item->type = type;
	decoded->item->number = number;
}

static void on_uint8(void *context, uint8_t value)
{
	note(context, BPK_ITEM_UINT, value);
}

static void on_uint16(void *context, uint16_t value)
{
	note(context, BPK_ITEM_UINT, value);
}

static void on_uint32(void *context, uint32_t value)
{
	note(context, BPK_ITEM_UINT, value);
}

static void on_uint64(void *context, uint64_t value)
{
	note(context, BPK_ITEM_UINT, value);
}

static void on_negint8(void *context, uint8_t value)
{
	note(context, BPK_ITEM_NEGINT, value);
}

static void on_negint16(void *context, uint16_t value)
{
	note(context, BPK_ITEM_NEGINT, value);
}

static void on_negint32(void *context, uint32_t value)
{
	note(context, BPK_ITEM_NEGINT, value);
}

static void on_negint64(void *context, uint64_t value)
{
	note(context, BPK_ITEM_NEGINT, value);
}

/* libcbor 0.8 passes the size of a string as size_t, newer ones as uint64_t: the
 * same type on every machine with 64-bit pointers. */
static void on_bytes(void *context, cbor_data data, size_t size)
{
	struct decoded *decoded = context;

	note(context, BPK_ITEM_BYTES, 0);
	decoded->item->text = (const char *)data;
	decoded->item->size = size;
}

static void on_text(void *context, cbor_data data, size_t size)
{
	struct decoded *decoded = context;

	note(context, BPK_ITEM_TEXT, 0);
	decoded->item->text = (const char *)data;
	decoded->item->size = size;
}

static void on_bytes_start(void *context)
{
	note(context, BPK_ITEM_BYTES_START, 0);
}

static void on_text_start(void *context)
{
	note(context, BPK_ITEM_TEXT_START, 0);
}

static void on_array(void *context, size_t count)
{
	note(context, BPK_ITEM_ARRAY, count);
}

static void on_map(void *context, size_t count)
{
	note(context, BPK_ITEM_MAP, count);
}

static void on_indefinite_array(void *context)
{
	struct decoded *decoded = context;

	note(context, BPK_ITEM_ARRAY, 0);
	decoded->item->indefinite = true;
}

static void on_indefinite_map(void *context)
{
	struct decoded *decoded = context;

	note(context, BPK_ITEM_MAP, 0);
	decoded->item->indefinite = true;
}

static void on_tag(void *context, uint64_t value)
{
	struct decoded *decoded = context;

	(void)value;
	decoded->tag = true;
}

/* The value is taken from the bytes afterwards, see float_bits(). */
static void on_float(void *context, float value)
{
	(void)value;
	note(context, BPK_ITEM_FLOAT, 0);
}

static void on_double(void *context, double value)
{
	(void)value;
	note(context, BPK_ITEM_FLOAT, 0);
}

static void on_bool(void *context, bool value)
{
	note(context, value ? BPK_ITEM_TRUE : BPK_ITEM_FALSE, 0);
}

static void on_null(void *context)
{
	note(context, BPK_ITEM_NULL, 0);
}

static void on_undefined(void *context)
{
	note(context, BPK_ITEM_UNDEFINED, 0);
}

static void on_break(void *context)
{
	note(context, BPK_ITEM_BREAK, 0);
}

static const struct cbor_callbacks callbacks = {
	.uint8 = on_uint8,
	.uint16 = on_uint16,
	.uint32 = on_uint32,
	.uint64 = on_uint64,
	.negint8 = on_negint8,
	.negint16 = on_negint16,
	.negint32 = on_negint32,
	.negint64 = on_negint64,
	.byte_string = on_bytes,
	.byte_string_start = on_bytes_start,
	.string = on_text,
	.string_start = on_text_start,
	.array_start = on_array,
	.indef_array_start = on_indefinite_array,
	.map_start = on_map,
	.indef_map_start = on_indefinite_map,
	.tag = on_tag,
	.float2 = on_float,
	.float4 = on_float,
	.float8 = on_double,
	.boolean = on_bool,
	.null = on_null,
	.undefined = on_undefined,
	.indef_break = on_break,
};

int bpk_cbor_refuse(struct bpk_cursor *cursor, size_t pos, const char *format, ...)
{
	char message[sizeof(cursor->error->message)];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return bpk_fail(cursor->error, -EBADMSG, BPK_ERR_MALFORMED,
			cursor->base_off + pos, "%s", message);
}

const char *bpk_item_type_name(enum bpk_item_type type)
{
	switch (type) {
	case BPK_ITEM_UINT:
		return "an unsigned integer";
	case BPK_ITEM_NEGINT:
		return "a negative integer";
	case BPK_ITEM_BYTES:
	case BPK_ITEM_BYTES_START:
		return "a byte string";
	case BPK_ITEM_TEXT:
	case BPK_ITEM_TEXT_START:
		return "text";
	case BPK_ITEM_ARRAY:
		return "an array";
	case BPK_ITEM_MAP:
		return "a map";
	case BPK_ITEM_FLOAT:
		return "a float";
	case BPK_ITEM_FALSE:
		return "false";
	case BPK_ITEM_TRUE:
		return "true";
	case BPK_ITEM_NULL:
		return "null";
	case BPK_ITEM_UNDEFINED:
		return "undefined";
	case BPK_ITEM_BREAK:
		return "a break";
	}
	return "an item";
}

/*
 * IEEE 754: a float of @exponent_size and @fraction_size bits to binary64. Exact
 * for every number; a NaN keeps its payload and becomes quiet.
 */
static uint64_t widen(uint64_t bits, unsigned int exponent_size,
		      unsigned int fraction_size)
{
	const int64_t exponent_max = (INT64_C(1) << exponent_size) - 1;
	const int64_t bias = exponent_max >> 1;
	uint64_t sign = bits >> (exponent_size + fraction_size) << 63;
	int64_t exponent = (int64_t)(bits >> fraction_size) & exponent_max;
	uint64_t one = UINT64_C(1) << fraction_size;
	uint64_t fraction = bits & (one - 1);

	if (exponent == exponent_max) {
		fraction <<= 52 - fraction_size;
		if (fraction)
			fraction |= UINT64_C(1) << 51;
		return sign | UINT64_C(0x7ff) << 52 | fraction;
	}
	if (!exponent) {
		if (!fraction)
			return sign;
		/* A subnormal is a normal number in binary64. */
		for (exponent = 1; !(fraction & one); exponent--)
			fraction <<= 1;
		fraction &= one - 1;
	}
	return sign | (uint64_t)(exponent - bias + 1023) << 52 |
	       fraction << (52 - fraction_size);
}

uint64_t bpk_float_widen_f16(uint16_t bits)
{
	return widen(bits, 5, 10);
}

uint64_t bpk_float_widen_f32(uint32_t bits)
{
	return widen(bits, 8, 23);
}

/* The float whose head is at @p and whose bytes are all there, as f64 bits. */
static uint64_t float_bits(const uint8_t *p)
{
	unsigned int size = p[0] == 0xf9 ? 2 : p[0] == 0xfa ? 4 : 8;
	uint64_t bits = 0;

	for (unsigned int i = 1; i <= size; i++)
		bits = bits << 8 | p[i];
	if (size == 2)
		return bpk_float_widen_f16((uint16_t)bits);
	if (size == 4)
		return bpk_float_widen_f32((uint32_t)bits);
	return bits;
}

static int refuse_nesting(struct bpk_cursor *cursor, size_t pos)
{
	return bpk_fail(cursor->error, -EFBIG, BPK_ERR_LIMIT, cursor->base_off + pos,
			"more than %u containers and tags inside each other",
			cursor->nesting);
}

static int refuse_end(struct bpk_cursor *cursor, size_t pos)
{
	return bpk_cbor_refuse(
		cursor, pos,
		"the metadata ends inside a value: the size in the header or a "
		"count is wrong, or bytes are missing");
}

/* Simple values in two bytes: only those that have a meaning. */
static int next_simple(struct bpk_cursor *cursor, struct bpk_item *item)
{
	static const enum bpk_item_type types[] = { BPK_ITEM_FALSE, BPK_ITEM_TRUE,
						    BPK_ITEM_NULL, BPK_ITEM_UNDEFINED };
	uint8_t value;

	if (cursor->size - cursor->pos < 2)
		return refuse_end(cursor, cursor->pos);
	value = cursor->data[cursor->pos + 1];
	if (value < 0x14 || value > 0x17)
		return bpk_cbor_refuse(cursor, cursor->pos,
				       "the CBOR simple value %u has no meaning", value);
	item->type = types[value - 0x14];
	cursor->pos += 2;
	return 0;
}

/* One head that is no tag, or *ret_tag. */
static int next_head(struct bpk_cursor *cursor, struct bpk_item *item, bool *ret_tag)
{
	struct decoded decoded = { .item = item };
	struct cbor_decoder_result result;
	const uint8_t *head;

	if (cursor->pos >= cursor->size)
		return refuse_end(cursor, cursor->pos);
	head = cursor->data + cursor->pos;
	*ret_tag = *head >= 0xc0 && *head <= 0xd7;
	if (*ret_tag) {
		cursor->pos++;
		return 0;
	}
	if (*head == 0xf8)
		return next_simple(cursor, item);
	result = cbor_stream_decode(head, cursor->size - cursor->pos, &callbacks,
				    &decoded);
	if (result.status == CBOR_DECODER_NEDATA)
		return refuse_end(cursor, cursor->pos);
	if (result.status != CBOR_DECODER_FINISHED)
		return bpk_cbor_refuse(cursor, cursor->pos,
				       "the byte 0x%02x starts no CBOR item", *head);
	*ret_tag = decoded.tag;
	if (!decoded.tag && item->type == BPK_ITEM_FLOAT)
		item->number = float_bits(head);
	if (!decoded.tag && item->type == BPK_ITEM_TEXT &&
	    !bpk_utf8_valid(item->text, item->size))
		return bpk_cbor_refuse(cursor, cursor->pos, "a text is not UTF-8");
	cursor->pos += result.read;
	return 0;
}

int bpk_cbor_next(struct bpk_cursor *cursor, struct bpk_item *ret_item)
{
	bool tag;
	int err;

	/* In place: of all that parsing costs, copies of items would be a third. */
	*ret_item = (struct bpk_item) { .pos = cursor->pos };
	for (;;) {
		size_t pos = cursor->pos;

		err = next_head(cursor, ret_item, &tag);
		if (err || !tag)
			return err;
		if (++ret_item->tags > cursor->nesting - cursor->depth)
			return refuse_nesting(cursor, pos);
	}
}

int bpk_cbor_enter(struct bpk_cursor *cursor, const struct bpk_item *item,
		   struct bpk_container *ret_container)
{
	uint32_t levels = item->tags + 1;

	if (levels > cursor->nesting - cursor->depth)
		return refuse_nesting(cursor, item->pos);
	cursor->depth += levels;
	*ret_container = (struct bpk_container) {
		.left = item->number,
		.levels = levels,
		.indefinite = item->indefinite,
	};
	return 0;
}

int bpk_cbor_more(struct bpk_cursor *cursor, struct bpk_container *container,
		  bool *ret_more)
{
	bool more;

	if (container->indefinite) {
		if (cursor->pos >= cursor->size)
			return refuse_end(cursor, cursor->pos);
		more = cursor->data[cursor->pos] != 0xff;
		if (!more)
			cursor->pos++;
	} else {
		more = container->left > 0;
		if (more)
			container->left--;
	}
	if (!more)
		cursor->depth -= container->levels;
	*ret_more = more;
	return 0;
}

int bpk_cbor_enter_variant(struct bpk_cursor *cursor, const struct bpk_item *item,
			   const char *what, struct bpk_container *ret_container)
{
	bool more;
	int err;

	if (item->type != BPK_ITEM_MAP)
		return bpk_cbor_refuse(cursor, item->pos,
				       "%s must be a map, here it is %s", what,
				       bpk_item_type_name(item->type));
	if (item->indefinite || item->number != 1)
		return bpk_cbor_refuse(cursor, item->pos,
				       "%s must be a map of exactly one entry", what);
	err = bpk_cbor_enter(cursor, item, ret_container);
	return err ? err : bpk_cbor_more(cursor, ret_container, &more);
}

int bpk_cbor_leave_variant(struct bpk_cursor *cursor, struct bpk_container *container)
{
	bool more;

	return bpk_cbor_more(cursor, container, &more);
}

/*
 * Next chunk of an indefinite string whose start was read. *open counts the
 * starts that wait for their break: chunks may be indefinite again, as Burn's
 * reader allows. *ret_chunk.type is BREAK at the end of the whole string.
 */
static int next_chunk(struct bpk_cursor *cursor, enum bpk_item_type start, size_t *open,
		      struct bpk_item *ret_chunk)
{
	enum bpk_item_type plain =
		start == BPK_ITEM_TEXT_START ? BPK_ITEM_TEXT : BPK_ITEM_BYTES;
	int err;

	for (;;) {
		err = bpk_cbor_next(cursor, ret_chunk);
		if (err)
			return err;
		if (ret_chunk->tags)
			return bpk_cbor_refuse(cursor, ret_chunk->pos,
					       "a tag inside an indefinite string");
		if (ret_chunk->type == plain)
			return 0;
		if (ret_chunk->type == start)
			++*open;
		else if (ret_chunk->type != BPK_ITEM_BREAK)
			return bpk_cbor_refuse(cursor, ret_chunk->pos,
					       "%s inside an indefinite string",
					       bpk_item_type_name(ret_chunk->type));
		else if (!--*open)
			return 0;
	}
}

static int skip_chunks(struct bpk_cursor *cursor, enum bpk_item_type start)
{
	struct bpk_item chunk;
	size_t open = 1;
	int err;

	do {
		err = next_chunk(cursor, start, &open, &chunk);
	} while (!err && chunk.type != BPK_ITEM_BREAK);
	return err;
}

int bpk_cbor_skip(struct bpk_cursor *cursor)
{
	struct frame {
		struct bpk_container container;
		bool map, value; /* a map's next item is a value */
	} stack[BPK_CBOR_NESTING_MAX];
	size_t used = 0;

	do {
		struct bpk_item item;
		bool more = false;
		int err;

		if (used) {
			struct frame *top = &stack[used - 1];

			/* Elements and pairs are counted; a key brings its value. */
			if (top->value) {
				top->value = false;
			} else {
				err = bpk_cbor_more(cursor, &top->container, &more);
				if (err)
					return err;
				if (!more) {
					used--;
					continue;
				}
				top->value = top->map;
			}
		}
		err = bpk_cbor_next(cursor, &item);
		if (err)
			return err;
		if (item.type == BPK_ITEM_BREAK)
			return bpk_cbor_refuse(cursor, item.pos,
					       "a break where a value must be");
		if (item.type == BPK_ITEM_TEXT_START ||
		    item.type == BPK_ITEM_BYTES_START) {
			err = skip_chunks(cursor, item.type);
		} else if (item.type == BPK_ITEM_ARRAY || item.type == BPK_ITEM_MAP) {
			struct frame *top = &stack[used];

			/* What is more than nesting, enter refuses untouched. */
			err = bpk_cbor_enter(cursor, &item, &top->container);
			if (err)
				return err;
			top->map = item.type == BPK_ITEM_MAP;
			top->value = false;
			used++;
		}
		if (err)
			return err;
	} while (used);
	return 0;
}

/* Read a head that must be text. */
static int next_text(struct bpk_cursor *cursor, const char *what,
		     struct bpk_item *ret_item)
{
	int err = bpk_cbor_next(cursor, ret_item);

	if (err)
		return err;
	if (ret_item->type != BPK_ITEM_TEXT && ret_item->type != BPK_ITEM_TEXT_START)
		return bpk_cbor_refuse(cursor, ret_item->pos,
				       "%s must be text, here it is %s", what,
				       bpk_item_type_name(ret_item->type));
	return 0;
}

int bpk_cbor_text(struct bpk_cursor *cursor, uint8_t *own, const char *what,
		  const char **ret_text, size_t *ret_size)
{
	size_t open = 1, size = 0;
	struct bpk_item item;
	char *text;
	int err;

	err = next_text(cursor, what, &item);
	if (err)
		return err;
	if (item.type == BPK_ITEM_TEXT) {
		*ret_text = item.text;
		*ret_size = item.size;
		return 0;
	}
	/* Chunk heads lie in between, so the text is always moved to the front. */
	text = (char *)own + cursor->pos;
	for (;;) {
		err = next_chunk(cursor, BPK_ITEM_TEXT_START, &open, &item);
		if (err)
			return err;
		if (item.type == BPK_ITEM_BREAK)
			break;
		memmove(text + size, item.text, item.size);
		size += item.size;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

int bpk_cbor_word(struct bpk_cursor *cursor, const char *what,
		  char ret_word[BPK_WORD_SIZE], size_t *ret_size)
{
	size_t open = 1, size = 0;
	struct bpk_item item;
	bool chunks;
	int err;

	err = next_text(cursor, what, &item);
	if (err)
		return err;
	chunks = item.type == BPK_ITEM_TEXT_START;
	do {
		if (chunks) {
			err = next_chunk(cursor, BPK_ITEM_TEXT_START, &open, &item);
			if (err)
				return err;
			if (item.type == BPK_ITEM_BREAK)
				break;
		}
		if (size < BPK_WORD_SIZE) {
			size_t room = BPK_WORD_SIZE - size;

			memcpy(ret_word + size, item.text,
			       item.size < room ? item.size : room);
		}
		size += item.size;
	} while (chunks);
	*ret_size = size;
	return 0;
}

int bpk_cbor_uint(struct bpk_cursor *cursor, const char *what, uint64_t max,
		  uint64_t *ret_value)
{
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_UINT)
		return bpk_cbor_refuse(cursor, item.pos,
				       "%s must be an unsigned integer, here it is %s",
				       what, bpk_item_type_name(item.type));
	if (item.number > max)
		return bpk_cbor_refuse(cursor, item.pos, "%s is %llu, more than %llu",
				       what, (unsigned long long)item.number,
				       (unsigned long long)max);
	*ret_value = item.number;
	return 0;
}
