/*
 * json.h - the values of JSON (RFC 8259), at the end of a growing buffer. Knows
 * nothing of objects and arrays: their brackets and commas are the caller's, with
 * bpk_append_raw(). As for all of cbor.h's appender, only the end needs a check
 * whether memory ran out.
 *
 * Whatever is given, what comes out is valid JSON and UTF-8.
 */
#ifndef BPK_CONVERT_JSON_H
#define BPK_CONVERT_JSON_H

#include "cbor.h"

/*
 * The @size bytes at @text as a string, with its quotes. Quote and backslash are
 * escaped with a backslash, control characters (U+0000..U+001F, U+007F..U+009F, so
 * that a terminal takes none of them for a command) as \u and four digits in lower
 * case. All else stays as it is, but a byte that is no part of UTF-8, which can be in
 * a path though never in a name, becomes \ufffd.
 */
void bpk_json_string(struct bpk_appender *out, const char *text, size_t size);

/* The same without quotes, for a string that is made of pieces. */
void bpk_json_escape(struct bpk_appender *out, const char *text, size_t size);

/* How many bytes bpk_json_escape() appends: up to six times @size. */
uint64_t bpk_json_escaped_size(const char *text, size_t size);

void bpk_json_uint(struct bpk_appender *out, uint64_t value);
void bpk_json_int(struct bpk_appender *out, int64_t value);

/*
 * A number from its text: as it is when JSON has such a number (1.0, -0.0, 1e300),
 * else as a string (inf, nan:0x7ff8000000020000, 1., 0x10). The text is the caller's
 * so that a float is spelled the same wherever it is shown.
 */
void bpk_json_number(struct bpk_appender *out, const char *text, size_t size);

#endif
