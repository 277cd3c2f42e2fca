/*
 * bytes.h - bytes for tables of tests, and packs made of them.
 */
#ifndef TEST_BYTES_H
#define TEST_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A string literal and its size. Escapes in octal end after three digits, so a
 * letter may follow: CBOR's text of one byte "a" is "\141a". */
#define BYTES(literal) literal, sizeof(literal) - 1

/* A copy in a block of exactly that size, so that a sanitizer sees its end. */
static inline uint8_t *bytes_copy(const void *bytes, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	return copy;
}

/* Header, @metadata, padding and @data_size bytes 0, 1, 2, ...; without padding
 * when @data_size is 0. For free(3). */
static inline uint8_t *bytes_pack(const void *metadata, size_t metadata_size,
				  size_t data_size, size_t *ret_size)
{
	size_t end = 10 + metadata_size, data_off = (end + 255) / 256 * 256;
	size_t size = data_size ? data_off + data_size : end;
	uint8_t *pack = calloc(1, size);

	if (!pack)
		abort();
	memcpy(pack, "NRUB\1", 6);
	for (unsigned int i = 0; i < 4; i++)
		pack[6 + i] = (uint8_t)(metadata_size >> 8 * i);
	memcpy(pack + 10, metadata, metadata_size);
	for (size_t i = 0; i < data_size; i++)
		pack[data_off + i] = (uint8_t)i;
	*ret_size = size;
	return pack;
}

#endif
