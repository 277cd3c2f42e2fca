/*
 * scheme.c - see scheme.h. A cursor that moves forward only, and a stack of bounded
 * depth for what is open: the head of a container goes in front of what it holds once
 * it is closed and counted.
 */
#include "scheme.h"
#include "base.h"
#include "cbor.h"
#include "dtype.h"
#include "error.h"

#include <errno.h>

struct open {
	size_t at; /* in the CBOR, where its head goes */
	uint64_t count;
	bool map;
};

struct json {
	const char *start, *at, *end;
	struct bpk_appender out;
	struct open stack[BPK_SCHEME_DEPTH_MAX];
	size_t depth;
	struct bpk_error *error;
};

static int refuse(struct json *json, const char *why)
{
	return bpk_fail(json->error, -EINVAL, BPK_ERR_ARGUMENT,
			(uint64_t)(json->at - json->start),
			"it is no quantization scheme: %s", why);
}

static void skip_space(struct json *json)
{
	while (json->at < json->end && (*json->at == ' ' || *json->at == '\t' ||
					*json->at == '\n' || *json->at == '\r'))
		json->at++;
}

static bool take(struct json *json, char c)
{
	skip_space(json);
	if (json->at == json->end || *json->at != c)
		return false;
	json->at++;
	return true;
}

static bool take_word(struct json *json, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(json->end - json->at) < size || memcmp(json->at, word, size) != 0)
		return false;
	json->at += size;
	return true;
}

/* Strings ------------------------------------------------------------------ */

/* The four hex digits behind \u. */
static bool take_hex(struct json *json, uint32_t *ret_code)
{
	uint32_t code = 0;

	if (json->end - json->at < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = *json->at++;

		code <<= 4;
		if (c >= '0' && c <= '9')
			code |= (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			code |= (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			code |= (uint32_t)(c - 'A' + 10);
		else
			return false;
	}
	*ret_code = code;
	return true;
}

static void put_utf8(struct bpk_appender *text, uint32_t code)
{
	uint8_t bytes[3];
	size_t size = 0;

	if (code < 0x80) {
		bytes[size++] = (uint8_t)code;
	} else if (code < 0x800) {
		bytes[size++] = (uint8_t)(0xc0 | code >> 6);
		bytes[size++] = (uint8_t)(0x80 | (code & 0x3f));
	} else {
		bytes[size++] = (uint8_t)(0xe0 | code >> 12);
		bytes[size++] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
		bytes[size++] = (uint8_t)(0x80 | (code & 0x3f));
	}
	bpk_append_raw(text, bytes, size);
}

static int parse_escape(struct json *json, struct bpk_appender *text)
{
	static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *letter;
	uint32_t code;

	if (json->at == json->end)
		return refuse(json, "a string does not end");
	letter = *json->at ? strchr(letters, *json->at) : NULL;
	if (letter) {
		json->at++;
		bpk_append_raw(text, &bytes[letter - letters], 1);
		return 0;
	}
	if (*json->at++ != 'u' || !take_hex(json, &code))
		return refuse(json, "an escape in a string is not JSON's");
	/* What needs two of them is shown as itself. */
	if (code >= 0xd800 && code < 0xe000)
		return refuse(json, "a string has half a character");
	put_utf8(text, code);
	return 0;
}

static int parse_string(struct json *json)
{
	struct bpk_appender text = { 0 };
	int r = 0;

	if (!take(json, '"'))
		return refuse(json, "a string is missing");
	while (r == 0) {
		const char *from = json->at;

		while (json->at < json->end && *json->at != '"' && *json->at != '\\' &&
		       (uint8_t)*json->at >= 0x20)
			json->at++;
		bpk_append_raw(&text, from, (size_t)(json->at - from));
		if (json->at == json->end || (uint8_t)*json->at < 0x20) {
			r = refuse(json, "a string does not end");
		} else if (*json->at++ == '"') {
			break;
		} else {
			r = parse_escape(json, &text);
		}
	}
	if (r == 0 && text.size && !bpk_utf8_valid((const char *)text.data, text.size))
		r = refuse(json, "a string is not UTF-8");
	if (r == 0)
		bpk_append_text(&json->out, (const char *)text.data, text.size);
	json->out.failed |= text.failed;
	bpk_append_done(&text);
	return r;
}

/* Values ------------------------------------------------------------------- */

static int parse_number(struct json *json)
{
	bool negative = take(json, '-');
	const char *start = json->at;
	uint64_t value = 0;

	for (; json->at < json->end && *json->at >= '0' && *json->at <= '9'; json->at++)
		if (!bpk_mul_u64(value, 10, &value) ||
		    !bpk_add_u64(value, (uint64_t)(*json->at - '0'), &value))
			return refuse(json, "a number leaves 64 bits");
	if (json->at == start || (*start == '0' && json->at - start > 1))
		return refuse(json, "a value is missing");
	if (json->at < json->end &&
	    (*json->at == '.' || *json->at == 'e' || *json->at == 'E'))
		return refuse(json, "a number is not whole");
	if (!negative)
		bpk_append_uint(&json->out, value);
	else if (value > (uint64_t)INT64_MAX + 1)
		return refuse(json, "a number leaves 64 bits");
	else
		bpk_append_int(&json->out, (int64_t)(0 - value));
	return 0;
}

static int open_container(struct json *json, bool map)
{
	if (json->depth == BPK_SCHEME_DEPTH_MAX)
		return bpk_fail(json->error, -EFBIG, BPK_ERR_LIMIT,
				(uint64_t)(json->at - json->start),
				"the quantization scheme is nested deeper than %d",
				BPK_SCHEME_DEPTH_MAX);
	json->stack[json->depth++] = (struct open) { json->out.size, 0, map };
	return 0;
}

static int close_container(struct json *json)
{
	const struct open *top = &json->stack[--json->depth];
	struct bpk_appender head = { 0 };
	size_t size = json->out.size - top->at;

	if (top->map)
		bpk_append_map(&head, top->count);
	else
		bpk_append_array(&head, top->count);
	bpk_append_raw(&json->out, head.data, head.size);
	json->out.failed |= head.failed;
	if (!json->out.failed) {
		memmove(json->out.data + top->at + head.size, json->out.data + top->at,
			size);
		memcpy(json->out.data + top->at, head.data, head.size);
	}
	bpk_append_done(&head);
	return json->out.failed ? bpk_fail(json->error, -ENOMEM, BPK_ERR_MEMORY,
					   BPK_NO_OFFSET, "out of memory")
				: 0;
}

/* A value, of a container only its start. */
static int parse_value(struct json *json)
{
	static const uint8_t null = 0xf6;

	skip_space(json);
	if (json->at == json->end)
		return refuse(json, "it ends early");
	if (*json->at == '"')
		return parse_string(json);
	if (take(json, '{'))
		return open_container(json, true);
	if (take(json, '['))
		return open_container(json, false);
	if (take_word(json, "null"))
		bpk_append_raw(&json->out, &null, 1);
	else if (take_word(json, "true"))
		bpk_append_bool(&json->out, true);
	else if (take_word(json, "false"))
		bpk_append_bool(&json->out, false);
	else
		return parse_number(json);
	return 0;
}

/* One step: the next element of what is open, or its end. */
static int parse_next(struct json *json)
{
	struct open *top = &json->stack[json->depth - 1];
	int r;

	if (take(json, top->map ? '}' : ']'))
		return close_container(json);
	if (top->count && !take(json, ','))
		return refuse(json, "',' or the end is missing");
	top->count++;
	if (top->map) {
		r = parse_string(json);
		if (r < 0)
			return r;
		if (!take(json, ':'))
			return refuse(json, "':' is missing behind a key");
	}
	return parse_value(json);
}

static int parse(struct json *json)
{
	struct bpk_cursor cursor = { .nesting = BPK_CBOR_NESTING_MAX };
	enum bpk_dtype dtype;
	int r = parse_value(json);

	while (r == 0 && json->depth)
		r = parse_next(json);
	if (r < 0)
		return r;
	skip_space(json);
	if (json->at < json->end)
		return refuse(json, "something follows it");
	if (json->out.failed)
		return bpk_fail(json->error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"out of memory");
	cursor.data = json->out.data;
	cursor.size = json->out.size;
	cursor.error = json->error;
	/* Its offsets are of the CBOR: they say nothing here. */
	if (bpk_dtype_parse(&cursor, &dtype) < 0) {
		if (json->error) {
			json->error->code = BPK_ERR_ARGUMENT;
			json->error->offset = BPK_NO_OFFSET;
		}
		return -EINVAL;
	}
	return dtype == BPK_DTYPE_QFLOAT ? 0 : refuse(json, "it is another dtype");
}

int bpk_scheme_parse(const char *text, size_t size, void **ret_cbor, size_t *ret_size,
		     struct bpk_error *error)
{
	struct json json = {
		.start = text, .at = text, .end = text + size, .error = error
	};
	int r = parse(&json);

	if (r < 0) {
		bpk_append_done(&json.out);
		return r;
	}
	*ret_cbor = json.out.data;
	*ret_size = json.out.size;
	return 0;
}
