/*
 * json.c - see json.h.
 */
#include "json.h"
#include "base.h"

/* Bytes of the character at @p, 0 when it is none. */
static size_t character_size(const uint8_t *p, size_t left)
{
	size_t size = *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;

	return size <= left && bpk_utf8_valid((const char *)p, size) ? size : 0;
}

static bool stays(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* How the character of @size bytes at @p is escaped; 0 when it is not. */
static size_t escape_character(const uint8_t *p, size_t size, char ret_escape[6])
{
	static const char hex[] = "0123456789abcdef";
	uint8_t code;

	if (size == 0) {
		memcpy(ret_escape, "\\ufffd", 6);
		return 6;
	}
	if (*p == '"' || *p == '\\') {
		ret_escape[0] = '\\';
		ret_escape[1] = (char)*p;
		return 2;
	}
	if (size == 1)
		code = *p;
	else if (size == 2 && p[0] == 0xc2 && p[1] < 0xa0)
		code = p[1];
	else
		return 0;
	memcpy(ret_escape, "\\u00", 4);
	ret_escape[4] = hex[code >> 4];
	ret_escape[5] = hex[code & 15];
	return 6;
}

/* Escape to @out, or only count when that is NULL. */
static uint64_t escape(struct bpk_appender *out, const char *text, size_t size)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + size;
	uint64_t total = 0;

	while (p < end) {
		const uint8_t *start = p;
		const void *piece = start;
		char escaped[6];
		size_t piece_size;

		while (p < end && stays(*p))
			p++;
		piece_size = (size_t)(p - start);
		if (!piece_size) {
			size_t taken = character_size(p, (size_t)(end - p));

			p += taken ? taken : 1;
			piece_size = escape_character(start, taken, escaped);
			if (piece_size)
				piece = escaped;
			else
				piece_size = taken;
		}
		total += piece_size;
		if (out)
			bpk_append_raw(out, piece, piece_size);
	}
	return total;
}

void bpk_json_escape(struct bpk_appender *out, const char *text, size_t size)
{
	escape(out, text, size);
}

uint64_t bpk_json_escaped_size(const char *text, size_t size)
{
	return escape(NULL, text, size);
}

void bpk_json_string(struct bpk_appender *out, const char *text, size_t size)
{
	bpk_append_raw(out, "\"", 1);
	escape(out, text, size);
	bpk_append_raw(out, "\"", 1);
}

void bpk_json_uint(struct bpk_appender *out, uint64_t value)
{
	char digits[BPK_DECIMAL_SIZE];

	bpk_append_raw(out, digits, bpk_decimal(value, digits));
}

void bpk_json_int(struct bpk_appender *out, int64_t value)
{
	if (value >= 0) {
		bpk_json_uint(out, (uint64_t)value);
		return;
	}
	bpk_append_raw(out, "-", 1);
	bpk_json_uint(out, -(uint64_t)value);
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* The grammar of RFC 8259, section 6. */
static bool is_number(const char *at, const char *end)
{
	const char *start;

	if (at < end && *at == '-')
		at++;
	start = at;
	at = skip_digits(at, end);
	if (at == start || (*start == '0' && at - start > 1))
		return false;
	if (at < end && *at == '.') {
		start = ++at;
		at = skip_digits(at, end);
		if (at == start)
			return false;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < end && (*at == '+' || *at == '-'))
			at++;
		start = at;
		at = skip_digits(at, end);
		if (at == start)
			return false;
	}
	return at == end;
}

void bpk_json_number(struct bpk_appender *out, const char *text, size_t size)
{
	if (is_number(text, text + size))
		bpk_append_raw(out, text, size);
	else
		bpk_json_string(out, text, size);
}
