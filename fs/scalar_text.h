/*
 * scalar_text.h - a scalar as one line of text, and back.
 *
 * Knows the words of the four types. Does not know which scalar is meant, and
 * leaves the newline of a file to the caller. Nothing here depends on the locale
 * the process has set, allocates, or keeps anything between calls.
 *
 * Invariants: scalar_parse() of what scalar_format() gives is the same value, to
 * the bit; scalar_viable() is true for every prefix of a text that scalar_parse()
 * takes, and scalar_viable_any() of one that scalar_infer() takes.
 *
 * The text, as it is understood. One word, with spaces, tabs, CR and LF around
 * it. Letters may be in either case, but for the suffix.
 *
 *	Int, UInt   [+-] digits, or [+-] 0x and hex digits, then nothing or the
 *		    suffix of the type: i64, u64. Leading zeros mean nothing.
 *	Float	    [+-] digits with at most one `.`, e [+-] digits or not, then
 *		    nothing or f64; or hex as C and Python write it, 0x1.8p-3 (an
 *		    f64 that follows hex digits is three more of them: 0x1f64 is
 *		    8036); or [+-] inf, infinity, nan; or nan:0x and the sixteen
 *		    digits of the bits of a NaN.
 *	Bool	    true, false
 */
#ifndef BPKFS_SCALAR_TEXT_H
#define BPKFS_SCALAR_TEXT_H

#include "bpk.h"

/* Room for any formatted scalar and its NUL. */
#define SCALAR_TEXT_BUFFER 64
/*
 * Bytes of the longest text that is looked at, white space included. (The exact
 * decimal value of a double takes less than 1100.)
 */
#define SCALAR_TEXT_SIZE_MAX 4096

/*
 * Write @value to @out, NUL-terminated and without a newline; returns its size.
 *
 * Floats have the fewest digits that read back to the same bits, and of those
 * the nearest. They are written in full for 1e-5 <= |x| < 1e16 and with an
 * exponent otherwise (1e300, 2.5e-8), as Rust's serde_json does it. The quiet NaN
 * 0x7ff8000000000000 is `nan`, any other shows its bits.
 */
size_t scalar_format(struct bpk_scalar_value value, char out[SCALAR_TEXT_BUFFER]);

/*
 * The value of @type that the @size bytes at @text say. Returns 0, -EINVAL when
 * they are no such text (an Int takes neither 5.0 nor 1e3 nor 5u64; a Float takes
 * 5), or -ERANGE when they are but the type cannot hold the value: an integer
 * that is too large or, for UInt, below zero; a float that would round to
 * infinity. A float too small to hold becomes the nearest, which may be zero.
 */
int scalar_parse(const char *text, size_t size, enum bpk_scalar_type type,
		 struct bpk_scalar_value *ret);

/*
 * The value of a scalar that had none: the text says the type too. true and false
 * are Bool; an integer is what its suffix says, else Int with a `-` in front,
 * else UInt; everything else that scalar_parse() takes as a Float is one.
 * Returns what scalar_parse() does.
 */
int scalar_infer(const char *text, size_t size, struct bpk_scalar_value *ret);

/*
 * False when no bytes behind the @size at @text can make them a text of @type, so
 * that a write can be refused with -EINVAL. Says nothing about the range: that is
 * scalar_parse()'s -ERANGE, once the text is whole.
 */
bool scalar_viable(const char *text, size_t size, enum bpk_scalar_type type);

/* Likewise for a scalar whose type is not settled, see scalar_infer(). */
bool scalar_viable_any(const char *text, size_t size);

#endif
