/*
 * error.c - filling a struct bpk_error.
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int bpk_fail(struct bpk_error *error, int negative_errno, enum bpk_code code,
	     uint64_t offset, const char *format, ...)
{
	va_list args;

	if (!error)
		return negative_errno;
	error->code = code;
	error->offset = offset;
	va_start(args, format);
	vsnprintf(error->message, sizeof(error->message), format, args);
	va_end(args);
	return negative_errno;
}

const char *bpk_quote(char buffer[BPK_QUOTE_SIZE], const char *name, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	const size_t room = BPK_QUOTE_SIZE - sizeof("...\"");
	size_t at = 0;

	buffer[at++] = '"';
	for (size_t i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)name[i];
		bool plain = byte >= 0x20 && byte < 0x7f;
		bool escaped = byte == '"' || byte == '\\';

		if (at + (plain ? escaped ? 2u : 1u : 4u) > room) {
			memcpy(buffer + at, "...", 3);
			at += 3;
			break;
		}
		if (plain) {
			if (escaped)
				buffer[at++] = '\\';
			buffer[at++] = (char)byte;
		} else {
			buffer[at++] = '\\';
			buffer[at++] = 'x';
			buffer[at++] = hex[byte >> 4];
			buffer[at++] = hex[byte & 15];
		}
	}
	buffer[at++] = '"';
	buffer[at] = '\0';
	return buffer;
}
