/*
 * error.h - the one way to fail: fill a struct bpk_error and give back -errno.
 */
#ifndef BPK_ERROR_H
#define BPK_ERROR_H

#include "base.h"
#include "bpk.h"

/*
 * Fill @error (NULL is accepted) and return @negative_errno, so that a failing
 * function ends with "return bpk_fail(...)". A message that does not fit is cut.
 */
int bpk_fail(struct bpk_error *error, int negative_errno, enum bpk_code code,
	     uint64_t offset, const char *format, ...) BPK_PRINTF(5, 6);

/* A name from a pack, fit for a message: quoted, control and non-ASCII bytes
 * escaped as \xNN, quotes and backslashes escaped, shortened with "..." to fit. */
#define BPK_QUOTE_SIZE 96
const char *bpk_quote(char buffer[BPK_QUOTE_SIZE], const char *name, size_t size);

#endif
