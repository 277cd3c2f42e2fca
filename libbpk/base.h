/*
 * base.h - checked arithmetic and byte order. Every sum, product and rounding
 * of a number that came from a file or a caller goes through these.
 */
#ifndef BPK_BASE_H
#define BPK_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef BPK_BUILD
#define BPK_EXPORT __attribute__((visibility("default")))
#else
#define BPK_EXPORT
#endif
#define BPK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* For _cleanup_: free(3) what the variable points to. */
static inline void bpk_free_at(void *variable)
{
	free(*(void **)variable);
}

/* All return false, with *ret untouched, when the result leaves 64 bits. */
static inline bool bpk_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*ret = sum;
	return true;
}

static inline bool bpk_mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*ret = product;
	return true;
}

/* Round up to a multiple of @align, a power of two. */
static inline bool bpk_align_u64(uint64_t value, uint64_t align, uint64_t *ret)
{
	uint64_t sum;

	if (!bpk_add_u64(value, align - 1, &sum))
		return false;
	*ret = sum & ~(align - 1);
	return true;
}

static inline uint16_t bpk_get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t bpk_get_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

static inline void bpk_put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void bpk_put_le32(uint8_t *p, uint32_t v)
{
	bpk_put_le16(p, (uint16_t)v);
	bpk_put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline uint64_t bpk_get_le64(const uint8_t *p)
{
	return bpk_get_le32(p) | (uint64_t)bpk_get_le32(p + 4) << 32;
}

static inline void bpk_put_le64(uint8_t *p, uint64_t v)
{
	bpk_put_le32(p, (uint32_t)v);
	bpk_put_le32(p + 4, (uint32_t)(v >> 32));
}

/* A double and its 64 bits. */
static inline double bpk_f64_from_bits(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline uint64_t bpk_f64_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Bytewise order of two names: memcmp(), then the shorter first. */
static inline int bpk_name_compare(const char *a, size_t a_size, const char *b,
				   size_t b_size)
{
	size_t common = a_size < b_size ? a_size : b_size;
	int order = common ? memcmp(a, b, common) : 0;

	if (order)
		return order;
	return a_size < b_size ? -1 : a_size > b_size;
}

/* True when the @size bytes at @text are UTF-8: no overlong form, no surrogate,
 * nothing above U+10FFFF. */
bool bpk_utf8_valid(const char *text, size_t size);

/* The decimal digits of @value, at most 20, without a NUL. Returns how many. */
#define BPK_DECIMAL_SIZE 20
size_t bpk_decimal(uint64_t value, char ret_digits[BPK_DECIMAL_SIZE]);

/*
 * Grow the array at *@array (elements of @element_size bytes, room for
 * *@capacity) so that @needed elements fit; doubles. 0 or -ENOMEM.
 */
int bpk_grow(void **array, size_t *capacity, size_t needed, size_t element_size);

#endif
