/*
 * name.c - see name.h.
 *
 * The escapes are those of the contract ("Names"): a `%` in a file name starts
 * `%XX` for a byte, or is all of an empty component, or starts `%self`, or
 * starts the hash of a cut name with `%+`. No two of these can be mistaken for
 * one another, as neither `s` nor `+` is a hex digit.
 */
#include "name.h"

#include "base.h"

#include <errno.h>

#define ESCAPE_SIZE 3
#define HASH_DIGITS 16
#define TAIL_SIZE (2 + HASH_DIGITS) /* %+ and the hash */
/* No character takes more than four bytes, so a cut never has to drop more than
 * three that were free. */
#define CUT_LOSS_MAX 3

static bool needs_escape(uint8_t byte, bool first, bool last)
{
	if (byte < 0x20 || byte == 0x7f || byte == '%' || byte == '/')
		return true;
	return (first && (byte == '.' || byte == '#')) || (last && byte == '~');
}

static char hex_digit(uint64_t nibble)
{
	return "0123456789ABCDEF"[nibble & 0xf];
}

/* The value of an upper-case hex digit, or -1. */
static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

uint64_t name_hash(const char *raw, size_t size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < size; i++) {
		hash ^= (uint8_t)raw[i];
		hash *= UINT64_C(0x100000001b3);
	}
	return hash;
}

/* How a component fits into @room: nothing is written here. */
bool name_is_cut(const char *raw, size_t size, size_t room, size_t *ret_head)
{
	size_t used = 0, head = 0;

	if (size <= room / ESCAPE_SIZE)
		return false;
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)raw[i];

		/* A character starts here: a place where the name can be cut. */
		if ((byte & 0xc0) != 0x80 && used <= room - TAIL_SIZE)
			head = i;
		used += needs_escape(byte, i == 0, i == size - 1) ? ESCAPE_SIZE : 1;
		if (used > room) {
			*ret_head = head;
			return true;
		}
	}
	return false;
}

size_t name_encode(const char *raw, size_t size, size_t room, uint64_t probe,
		   char out[NAME_BUFFER])
{
	size_t used = 0, head = size;
	bool cut = name_is_cut(raw, size, room, &head);

	if (!size)
		out[used++] = '%';
	for (size_t i = 0; i < head; i++) {
		uint8_t byte = (uint8_t)raw[i];

		if (needs_escape(byte, i == 0, i == size - 1)) {
			out[used++] = '%';
			out[used++] = hex_digit(byte >> 4);
			out[used++] = hex_digit(byte);
		} else {
			out[used++] = raw[i];
		}
	}
	if (cut) {
		uint64_t hash = name_hash(raw, size) + probe;

		out[used++] = '%';
		out[used++] = '+';
		for (unsigned int i = 0; i < HASH_DIGITS; i++)
			out[used++] = hex_digit(hash >> (60 - 4 * i));
	}
	out[used] = '\0';
	return used;
}

/*
 * Append what the @size bytes at @text stand for to @decoded->raw, which has the
 * room: no escape is shorter than its byte. That `#` and `~` stand unescaped at
 * the ends of the whole name is ruled out before; inside a dotted name they may.
 */
static int decode_piece(const char *text, size_t size, enum name_dots dots,
			struct name_decoded *decoded)
{
	if (size == 1 && text[0] == '%')
		return 0;
	for (size_t i = 0; i < size; i++) {
		int high, low;
		uint8_t byte = (uint8_t)text[i];
		bool first = i == 0, last;

		if (byte == '%') {
			if (size - i < ESCAPE_SIZE)
				return -EINVAL;
			high = hex_value(text[i + 1]);
			low = hex_value(text[i + 2]);
			if (high < 0 || low < 0)
				return -EINVAL;
			byte = (uint8_t)(high << 4 | low);
			i += ESCAPE_SIZE - 1;
			last = decoded->kind != NAME_CUT && i == size - 1;
			if (!needs_escape(byte, first, last))
				return -EINVAL;
			/* Where dots split, no component has one to escape. */
			if (byte == '.' && dots == NAME_DOTS_SPLIT)
				return -EINVAL;
		} else if (needs_escape(byte, false, false)) {
			return -EINVAL;
		}
		decoded->raw[decoded->raw_size++] = (char)byte;
	}
	return 0;
}

/* Take the tail off a cut name: its hash, and *@size less. */
static int decode_tail(const char *text, size_t *size, size_t room,
		       struct name_decoded *decoded)
{
	size_t head = *size - TAIL_SIZE;

	if (*size < room - CUT_LOSS_MAX)
		return -EINVAL;
	for (size_t i = head + 2; i < *size; i++) {
		int value = hex_value(text[i]);

		if (value < 0)
			return -EINVAL;
		decoded->hash = decoded->hash << 4 | (uint64_t)value;
	}
	decoded->kind = NAME_CUT;
	*size = head;
	return 0;
}

int name_decode(const char *text, size_t size, size_t room, enum name_dots dots,
		struct name_decoded *ret)
{
	struct name_decoded decoded = { .kind = NAME_PLAIN };
	const char *dot;
	int r;

	if (size > room)
		return -ENAMETOOLONG;
	if (!bpk_utf8_valid(text, size))
		return -EILSEQ;
	if (!size || name_is_scratch(text, size))
		return -EINVAL;
	if (dots == NAME_DOTS_SPLIT && size == sizeof(NAME_SELF_TEXT) - 1 &&
	    memcmp(text, NAME_SELF_TEXT, size) == 0) {
		decoded.kind = NAME_SELF;
		*ret = decoded;
		return 0;
	}
	if (size > TAIL_SIZE && memcmp(text + size - TAIL_SIZE, "%+", 2) == 0) {
		r = decode_tail(text, &size, room, &decoded);
		if (r < 0)
			return r;
	}
	while (dots == NAME_DOTS_SPLIT && (dot = memchr(text, '.', size))) {
		size_t piece_size = (size_t)(dot - text);

		if (decoded.kind == NAME_CUT)
			return -EINVAL;
		decoded.kind = NAME_DOTTED;
		r = decode_piece(text, piece_size, dots, &decoded);
		if (r < 0)
			return r;
		decoded.raw[decoded.raw_size++] = '.';
		text += piece_size + 1;
		size -= piece_size + 1;
	}
	r = decode_piece(text, size, dots, &decoded);
	if (r < 0)
		return r;
	*ret = decoded;
	return 0;
}

bool name_is_scratch(const char *text, size_t size)
{
	return size && (text[0] == '.' || text[0] == '#' || text[size - 1] == '~');
}
