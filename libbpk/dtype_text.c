/*
 * dtype_text.c - a dtype as people read it: its name, and of a quantization scheme the
 * JSON of its CBOR, in one line.
 */
#include "dtype.h"

struct text_out {
	char *buffer;
	size_t size; /* of buffer */
	size_t at;   /* bytes of the whole text so far */
};

static void put_char(struct text_out *out, char c)
{
	if (out->size && out->at < out->size - 1)
		out->buffer[out->at] = c;
	out->at++;
}

static void put_text(struct text_out *out, const char *text)
{
	while (*text)
		put_char(out, *text++);
}

static void put_hex(struct text_out *out, uint64_t value, unsigned int digits)
{
	while (digits--)
		put_char(out, "0123456789abcdef"[value >> 4 * digits & 15]);
}

static void put_decimal(struct text_out *out, uint64_t value)
{
	char digits[20];
	unsigned int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		put_char(out, digits[--count]);
}

static void put_negative(struct text_out *out, uint64_t number)
{
	put_char(out, '-');
	if (number == UINT64_MAX)
		put_text(out, "18446744073709551616");
	else
		put_decimal(out, number + 1);
}

/* The inside of a JSON string: text escaped, bytes as hex digits. */
static void put_string_part(struct text_out *out, const struct bpk_item *item)
{
	for (size_t i = 0; i < item->size; i++) {
		char c = item->text[i];

		if (item->type == BPK_ITEM_BYTES) {
			put_hex(out, (uint8_t)c, 2);
		} else if (c == '"' || c == '\\') {
			put_char(out, '\\');
			put_char(out, c);
		} else if ((uint8_t)c < 0x20 || c == 0x7f) {
			put_text(out, "\\u00");
			put_hex(out, (uint8_t)c, 2);
		} else {
			put_char(out, c);
		}
	}
}

/* An indefinite string whose start was read; it was checked when opened. */
static int put_chunks(struct bpk_cursor *cursor, struct text_out *out)
{
	size_t open = 1;

	while (open) {
		struct bpk_item chunk;
		int err = bpk_cbor_next(cursor, &chunk);

		if (err)
			return err;
		if (chunk.type == BPK_ITEM_BREAK)
			open--;
		else if (chunk.type == BPK_ITEM_TEXT || chunk.type == BPK_ITEM_BYTES)
			put_string_part(out, &chunk);
		else
			open++;
	}
	return 0;
}

/*
 * Anything that is no container, as JSON; quoted when it is a key. What JSON has
 * no word for (bytes, floats with all their bits) becomes a string.
 */
static int put_simple(struct bpk_cursor *cursor, struct text_out *out,
		      const struct bpk_item *item, bool key)
{
	const char *quote = key ? "\"" : "";
	int err = 0;

	switch (item->type) {
	case BPK_ITEM_UINT:
		put_text(out, quote);
		put_decimal(out, item->number);
		put_text(out, quote);
		break;
	case BPK_ITEM_NEGINT:
		put_text(out, quote);
		put_negative(out, item->number);
		put_text(out, quote);
		break;
	case BPK_ITEM_BYTES:
	case BPK_ITEM_BYTES_START:
	case BPK_ITEM_TEXT:
	case BPK_ITEM_TEXT_START:
		put_char(out, '"');
		if (item->type == BPK_ITEM_BYTES || item->type == BPK_ITEM_BYTES_START)
			put_text(out, "hex:");
		if (item->type == BPK_ITEM_BYTES || item->type == BPK_ITEM_TEXT)
			put_string_part(out, item);
		else
			err = put_chunks(cursor, out);
		put_char(out, '"');
		break;
	case BPK_ITEM_FLOAT:
		put_text(out, "\"f64:0x");
		put_hex(out, item->number, 16);
		put_char(out, '"');
		break;
	case BPK_ITEM_FALSE:
	case BPK_ITEM_TRUE:
		put_text(out, quote);
		put_text(out, item->type == BPK_ITEM_TRUE ? "true" : "false");
		put_text(out, quote);
		break;
	case BPK_ITEM_NULL:
	case BPK_ITEM_UNDEFINED:
		put_text(out, quote);
		put_text(out, "null");
		put_text(out, quote);
		break;
	case BPK_ITEM_ARRAY:
	case BPK_ITEM_MAP:
	case BPK_ITEM_BREAK:
		break;
	}
	return err;
}

/* A map's key. One that is a container has no JSON form: it is named and skipped. */
static int put_key(struct bpk_cursor *cursor, struct text_out *out)
{
	size_t pos = cursor->pos;
	struct bpk_item item;
	int err;

	err = bpk_cbor_next(cursor, &item);
	if (err)
		return err;
	if (item.type != BPK_ITEM_ARRAY && item.type != BPK_ITEM_MAP)
		return put_simple(cursor, out, &item, true);
	put_text(out, item.type == BPK_ITEM_MAP ? "\"(map)\"" : "\"(array)\"");
	cursor->pos = pos;
	return bpk_cbor_skip(cursor);
}

/* The item at the cursor as JSON in one line. Tags are left out. */
static int put_json(struct bpk_cursor *cursor, struct text_out *out)
{
	struct {
		struct bpk_container container;
		bool map, first;
	} stack[BPK_CBOR_NESTING_MAX], *top = NULL;
	size_t used = 0;

	do {
		struct bpk_item item;
		bool more;
		int err;

		if (used) {
			top = &stack[used - 1];
			err = bpk_cbor_more(cursor, &top->container, &more);
			if (err)
				return err;
			if (!more) {
				put_char(out, top->map ? '}' : ']');
				used--;
				continue;
			}
			if (!top->first)
				put_char(out, ',');
			top->first = false;
			if (top->map) {
				err = put_key(cursor, out);
				if (err)
					return err;
				put_char(out, ':');
			}
		}
		err = bpk_cbor_next(cursor, &item);
		if (err)
			return err;
		if (item.type != BPK_ITEM_ARRAY && item.type != BPK_ITEM_MAP) {
			err = put_simple(cursor, out, &item, false);
		} else {
			top = &stack[used];
			err = bpk_cbor_enter(cursor, &item, &top->container);
			if (err)
				return err;
			top->map = item.type == BPK_ITEM_MAP;
			top->first = true;
			used++;
			put_char(out, top->map ? '{' : '[');
		}
		if (err)
			return err;
	} while (used);
	return 0;
}

size_t bpk_dtype_text(enum bpk_dtype dtype, const void *cbor, size_t cbor_size,
		      char *buffer, size_t size)
{
	struct bpk_cursor cursor = {
		.data = cbor,
		.size = cbor_size,
		.nesting = BPK_CBOR_NESTING_MAX,
	};
	struct text_out out = { .buffer = buffer, .size = size };

	/* An item that bpk_dtype_parse() took cannot fail here. */
	if (dtype != BPK_DTYPE_QFLOAT || put_json(&cursor, &out)) {
		out.at = 0;
		put_text(&out, bpk_dtype_name(dtype));
	}
	if (size)
		buffer[out.at < size ? out.at : size - 1] = '\0';
	return out.at;
}
