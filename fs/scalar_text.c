/*
 * scalar_text.c - see scalar_text.h.
 *
 * One scanner serves parse, infer and viable: at each place it knows whether the
 * text is complete, is out of bytes, or is wrong. So the three cannot disagree.
 */
#include "scalar_text.h"
#include "base.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAN_BITS UINT64_C(0x7ff8000000000000)
#define SIGN_BIT (UINT64_C(1) << 63)
#define EXPONENT_BITS UINT64_C(0x7ff0000000000000)
#define FRACTION_BITS UINT64_C(0x000fffffffffffff)

/* Any double can be told by 17 digits; any 15 digits survive a normal double. */
#define DIGITS_MAX 17
#define DIGITS_SAFE 15
/* Decimal exponents that are written in full. */
#define PLAIN_EXPONENT_MIN (-5)
#define PLAIN_EXPONENT_MAX 15

static bool bits_are_nan(uint64_t bits)
{
	return (bits & ~SIGN_BIT) > EXPONENT_BITS;
}

/*
 * strtod(3) with `.` for the point, whatever the locale. The C locale is built
 * into the C library: newlocale() neither allocates nor fails for it.
 */
static double double_from_text(const char *text)
{
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	int saved = errno;
	double value = strtod_l(text, NULL, c_locale);

	errno = saved;
	freelocale(c_locale);
	return value;
}

/* Writing ------------------------------------------------------------------ */

/* d.ddd x 10^exponent, with @count digits. */
struct decimal {
	char digits[DIGITS_MAX];
	int count;
	int exponent;
};

/*
 * @value, finite and above zero, rounded to @count digits. Only digits are taken
 * from what printf gives: its decimal point is the locale's.
 */
static struct decimal decimal_round(double value, int count)
{
	struct decimal decimal = { .count = 0 };
	char text[SCALAR_TEXT_BUFFER], *at = text;

	snprintf(text, sizeof(text), "%.*e", count - 1, value);
	for (; *at != 'e'; at++)
		if (*at >= '0' && *at <= '9')
			decimal.digits[decimal.count++] = *at;
	decimal.exponent = atoi(at + 1);
	return decimal;
}

/* The next number of as many digits. */
static struct decimal decimal_next(struct decimal decimal)
{
	int i = decimal.count - 1;

	while (i >= 0 && decimal.digits[i] == '9')
		decimal.digits[i--] = '0';
	if (i >= 0) {
		decimal.digits[i]++;
	} else {
		decimal.digits[0] = '1';
		decimal.exponent++;
	}
	return decimal;
}

static bool decimal_reads_as(const struct decimal *decimal, double value)
{
	char text[SCALAR_TEXT_BUFFER];

	snprintf(text, sizeof(text), "%.*se%d", decimal->count, decimal->digits,
		 decimal->exponent - (decimal->count - 1));
	return double_from_text(text) == value;
}

/*
 * The shortest decimal that reads back as @value, finite and above zero. The
 * numbers that do lie around it; the nearest of n digits is one of them if any of
 * n digits is, as long as they reach as far to both sides. Below a power of two
 * they reach half as far, so there the nearest may fall out on that side while
 * its upper neighbour is still in.
 */
static struct decimal decimal_shortest(double value)
{
	uint64_t bits = bpk_f64_bits(value);
	int count = bits & EXPONENT_BITS ? DIGITS_SAFE : 1;
	struct decimal decimal;

	for (;; count++) {
		decimal = decimal_round(value, count);
		if (count == DIGITS_MAX || decimal_reads_as(&decimal, value))
			break;
		if (!(bits & FRACTION_BITS)) {
			decimal = decimal_next(decimal);
			if (decimal_reads_as(&decimal, value))
				break;
		}
	}
	while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
		decimal.count--;
	return decimal;
}

static char *append(char *at, const char *text, size_t size)
{
	memcpy(at, text, size);
	return at + size;
}

static char *append_zeros(char *at, int count)
{
	while (count-- > 0)
		*at++ = '0';
	return at;
}

static size_t format_float(uint64_t bits, char out[SCALAR_TEXT_BUFFER])
{
	struct decimal decimal = { .digits = "0", .count = 1, .exponent = 0 };
	char *at = out;
	size_t whole; /* digits before the point */

	if (bits == NAN_BITS)
		return (size_t)snprintf(out, SCALAR_TEXT_BUFFER, "nan");
	if (bits_are_nan(bits))
		return (size_t)snprintf(out, SCALAR_TEXT_BUFFER, "nan:0x%016" PRIx64,
					bits);
	if (bits & SIGN_BIT)
		*at++ = '-';
	bits &= ~SIGN_BIT;
	if (bits == EXPONENT_BITS) {
		at = append(at, "inf", sizeof("inf"));
		return (size_t)(at - out) - 1;
	}
	if (bits)
		decimal = decimal_shortest(bpk_f64_from_bits(bits));

	if (decimal.exponent < PLAIN_EXPONENT_MIN ||
	    decimal.exponent > PLAIN_EXPONENT_MAX) {
		*at++ = decimal.digits[0];
		if (decimal.count > 1) {
			*at++ = '.';
			at = append(at, decimal.digits + 1, (size_t)decimal.count - 1);
		}
		at += snprintf(at, SCALAR_TEXT_BUFFER - (size_t)(at - out), "e%d",
			       decimal.exponent);
		return (size_t)(at - out);
	}
	if (decimal.exponent < 0) {
		at = append(at, "0.", 2);
		at = append_zeros(at, -decimal.exponent - 1);
		at = append(at, decimal.digits, (size_t)decimal.count);
	} else if (decimal.count <= decimal.exponent + 1) {
		at = append(at, decimal.digits, (size_t)decimal.count);
		at = append_zeros(at, decimal.exponent + 1 - decimal.count);
		at = append(at, ".0", 2);
	} else {
		whole = (size_t)decimal.exponent + 1;
		at = append(at, decimal.digits, whole);
		*at++ = '.';
		at = append(at, decimal.digits + whole, (size_t)decimal.count - whole);
	}
	*at = '\0';
	return (size_t)(at - out);
}

size_t scalar_format(struct bpk_scalar_value value, char out[SCALAR_TEXT_BUFFER])
{
	int size = 0;

	switch (value.type) {
	case BPK_SCALAR_INT:
		size = snprintf(out, SCALAR_TEXT_BUFFER, "%" PRId64, value.i);
		break;
	case BPK_SCALAR_UINT:
		size = snprintf(out, SCALAR_TEXT_BUFFER, "%" PRIu64, value.u);
		break;
	case BPK_SCALAR_FLOAT:
		return format_float(value.float_bits, out);
	case BPK_SCALAR_BOOL:
		size = snprintf(out, SCALAR_TEXT_BUFFER, "%s",
				value.b ? "true" : "false");
		break;
	}
	return (size_t)size;
}

/* Scanning ----------------------------------------------------------------- */

enum match {
	MATCH_NO,     /* wrong, whatever follows */
	MATCH_PREFIX, /* out of bytes: more could make it right */
	MATCH_YES,
};

enum word_kind {
	WORD_NUMBER,
	WORD_INF,
	WORD_NAN,
	WORD_NAN_BITS,
	WORD_TRUE,
	WORD_FALSE,
};

/* What the scanner found. Only what a complete match left here means anything. */
struct word {
	enum word_kind kind;
	bool negative;
	bool hex;
	bool suffixed;
	const char *start; /* the number: behind sign and 0x, before the suffix */
	const char *end;
};

struct cursor {
	const char *at;
	const char *end;
};

static bool at_end(const struct cursor *cursor)
{
	return cursor->at == cursor->end;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The value of a digit in either base, or -1. */
static int digit_value(char c, bool hex)
{
	c = lower(c);
	if (c >= '0' && c <= '9')
		return c - '0';
	if (hex && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

static bool skip_char(struct cursor *cursor, char c)
{
	if (at_end(cursor) || lower(*cursor->at) != c)
		return false;
	cursor->at++;
	return true;
}

static size_t skip_digits(struct cursor *cursor, bool hex)
{
	const char *start = cursor->at;

	while (!at_end(cursor) && digit_value(*cursor->at, hex) >= 0)
		cursor->at++;
	return (size_t)(cursor->at - start);
}

/* @word, in lower case, from the cursor on. */
static enum match scan_literal(struct cursor *cursor, const char *word, bool any_case)
{
	for (; *word; word++, cursor->at++) {
		if (at_end(cursor))
			return MATCH_PREFIX;
		if ((any_case ? lower(*cursor->at) : *cursor->at) != *word)
			return MATCH_NO;
	}
	return MATCH_YES;
}

static enum match scan_bool(struct cursor *cursor, struct word *word)
{
	if (at_end(cursor))
		return MATCH_PREFIX;
	word->kind = lower(*cursor->at) == 't' ? WORD_TRUE : WORD_FALSE;
	return scan_literal(cursor, word->kind == WORD_TRUE ? "true" : "false", true);
}

/* inf or infinity */
static enum match scan_inf(struct cursor *cursor, struct word *word)
{
	enum match match = scan_literal(cursor, "inf", true);

	word->kind = WORD_INF;
	if (match != MATCH_YES || at_end(cursor) || lower(*cursor->at) != 'i')
		return match;
	return scan_literal(cursor, "inity", true);
}

/* nan or, without a sign, nan:0x and sixteen digits */
static enum match scan_nan(struct cursor *cursor, bool has_sign, struct word *word)
{
	enum match match = scan_literal(cursor, "nan", true);
	size_t count;

	word->kind = WORD_NAN;
	if (match != MATCH_YES || has_sign || !skip_char(cursor, ':'))
		return match;
	match = scan_literal(cursor, "0x", true);
	if (match != MATCH_YES)
		return match;
	word->kind = WORD_NAN_BITS;
	word->start = cursor->at;
	count = skip_digits(cursor, true);
	word->end = cursor->at;
	if (count == 16)
		return MATCH_YES;
	return count < 16 && at_end(cursor) ? MATCH_PREFIX : MATCH_NO;
}

/* A number without its sign; a point and an exponent only if @is_float. */
static enum match scan_number(struct cursor *cursor, bool is_float, const char *suffix,
			      struct word *word)
{
	size_t digits;

	word->kind = WORD_NUMBER;
	word->start = cursor->at;
	digits = skip_digits(cursor, false);
	if (digits == 1 && *word->start == '0' && skip_char(cursor, 'x')) {
		word->hex = true;
		word->start = cursor->at;
		digits = skip_digits(cursor, true);
	}
	if (is_float && skip_char(cursor, '.'))
		digits += skip_digits(cursor, word->hex);
	if (!digits)
		return at_end(cursor) ? MATCH_PREFIX : MATCH_NO;
	if (is_float && skip_char(cursor, word->hex ? 'p' : 'e')) {
		if (!skip_char(cursor, '+'))
			skip_char(cursor, '-');
		if (!skip_digits(cursor, false))
			return at_end(cursor) ? MATCH_PREFIX : MATCH_NO;
	}
	word->end = cursor->at;
	if (at_end(cursor) || *cursor->at != *suffix)
		return MATCH_YES;
	word->suffixed = true;
	return scan_literal(cursor, suffix, false);
}

static enum match scan_word(struct cursor *cursor, enum bpk_scalar_type type,
			    struct word *word)
{
	bool is_float = type == BPK_SCALAR_FLOAT, has_sign;
	const char *suffix = is_float ? "f64" : type == BPK_SCALAR_INT ? "i64" : "u64";

	if (type == BPK_SCALAR_BOOL)
		return scan_bool(cursor, word);
	word->negative = skip_char(cursor, '-');
	has_sign = word->negative || skip_char(cursor, '+');
	if (is_float && !at_end(cursor) && lower(*cursor->at) == 'i')
		return scan_inf(cursor, word);
	if (is_float && !at_end(cursor) && lower(*cursor->at) == 'n')
		return scan_nan(cursor, has_sign, word);
	return scan_number(cursor, is_float, suffix, word);
}

static enum match scan(const char *text, size_t size, enum bpk_scalar_type type,
		       struct word *ret_word)
{
	struct cursor cursor = { text, text + size };
	struct word word = { .kind = WORD_NUMBER };
	enum match match;

	if (size > SCALAR_TEXT_SIZE_MAX)
		return MATCH_NO;
	while (!at_end(&cursor) && is_space(*cursor.at))
		cursor.at++;
	match = scan_word(&cursor, type, &word);
	if (match != MATCH_YES)
		return match;
	while (!at_end(&cursor) && is_space(*cursor.at))
		cursor.at++;
	if (!at_end(&cursor))
		return MATCH_NO;
	*ret_word = word;
	return MATCH_YES;
}

/* Reading ------------------------------------------------------------------ */

static int read_magnitude(const struct word *word, uint64_t *ret)
{
	uint64_t base = word->hex ? 16 : 10, value = 0;

	for (const char *at = word->start; at < word->end; at++) {
		uint64_t digit = (uint64_t)digit_value(*at, word->hex);

		if (__builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return -ERANGE;
	}
	*ret = value;
	return 0;
}

static int read_int(const struct word *word, int64_t *ret)
{
	uint64_t magnitude;
	int r = read_magnitude(word, &magnitude);

	if (r < 0)
		return r;
	if (word->negative ? __builtin_sub_overflow(0, magnitude, ret)
			   : __builtin_add_overflow(0, magnitude, ret))
		return -ERANGE;
	return 0;
}

static int read_uint(const struct word *word, uint64_t *ret)
{
	uint64_t magnitude;
	int r = read_magnitude(word, &magnitude);

	if (r < 0)
		return r;
	if (word->negative && magnitude)
		return -ERANGE;
	*ret = magnitude;
	return 0;
}

static int read_float(const struct word *word, uint64_t *ret)
{
	char text[2 + SCALAR_TEXT_SIZE_MAX + 1], *at = text;
	uint64_t bits;
	double value;

	switch (word->kind) {
	case WORD_INF:
		bits = EXPONENT_BITS;
		break;
	case WORD_NAN:
		bits = NAN_BITS;
		break;
	case WORD_NAN_BITS:
		bits = 0;
		for (const char *digit = word->start; digit < word->end; digit++)
			bits = bits << 4 | (uint64_t)digit_value(*digit, true);
		if (!bits_are_nan(bits))
			return -EINVAL;
		break;
	case WORD_NUMBER:
	case WORD_TRUE:
	case WORD_FALSE:
	default:
		if (word->hex)
			at = append(at, "0x", 2);
		at = append(at, word->start, (size_t)(word->end - word->start));
		*at = '\0';
		value = double_from_text(text);
		if (isinf(value))
			return -ERANGE;
		bits = bpk_f64_bits(value);
		break;
	}
	*ret = word->negative ? bits | SIGN_BIT : bits;
	return 0;
}

static int read_word(const struct word *word, enum bpk_scalar_type type,
		     struct bpk_scalar_value *ret)
{
	struct bpk_scalar_value value = { .type = type };
	int r = -EINVAL;

	switch (type) {
	case BPK_SCALAR_INT:
		r = read_int(word, &value.i);
		break;
	case BPK_SCALAR_UINT:
		r = read_uint(word, &value.u);
		break;
	case BPK_SCALAR_FLOAT:
		r = read_float(word, &value.float_bits);
		break;
	case BPK_SCALAR_BOOL:
		value.b = word->kind == WORD_TRUE;
		r = 0;
		break;
	}
	if (r < 0)
		return r;
	*ret = value;
	return 0;
}

int scalar_parse(const char *text, size_t size, enum bpk_scalar_type type,
		 struct bpk_scalar_value *ret)
{
	struct word word;

	if (scan(text, size, type, &word) != MATCH_YES)
		return -EINVAL;
	return read_word(&word, type, ret);
}

int scalar_infer(const char *text, size_t size, struct bpk_scalar_value *ret)
{
	struct word word;

	/* An Int and a UInt differ in the suffix alone; without one, the sign. */
	if (scan(text, size, BPK_SCALAR_INT, &word) == MATCH_YES &&
	    (word.suffixed || word.negative))
		return read_word(&word, BPK_SCALAR_INT, ret);
	if (scan(text, size, BPK_SCALAR_UINT, &word) == MATCH_YES)
		return read_word(&word, BPK_SCALAR_UINT, ret);
	if (scan(text, size, BPK_SCALAR_FLOAT, &word) == MATCH_YES)
		return read_word(&word, BPK_SCALAR_FLOAT, ret);
	if (scan(text, size, BPK_SCALAR_BOOL, &word) == MATCH_YES)
		return read_word(&word, BPK_SCALAR_BOOL, ret);
	return -EINVAL;
}

bool scalar_viable(const char *text, size_t size, enum bpk_scalar_type type)
{
	struct word word;

	return scan(text, size, type, &word) != MATCH_NO;
}

bool scalar_viable_any(const char *text, size_t size)
{
	return scalar_viable(text, size, BPK_SCALAR_INT) ||
	       scalar_viable(text, size, BPK_SCALAR_UINT) ||
	       scalar_viable(text, size, BPK_SCALAR_FLOAT) ||
	       scalar_viable(text, size, BPK_SCALAR_BOOL);
}
