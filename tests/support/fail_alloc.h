/*
 * fail_alloc.h - one allocation that fails, whichever the test wants. Include it once in
 * a program that is linked with fail_alloc_dep; only what the program itself is made of
 * (libbpk's objects with it) is asked, no shared library.
 */
#ifndef TEST_FAIL_ALLOC_H
#define TEST_FAIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

static long fail_countdown = -1;
static bool fail_hit;

/* From now on the allocation behind @count others fails, and no other one. */
static inline void fail_alloc_after(long count)
{
	fail_countdown = count;
	fail_hit = false;
}

/* None fails any more. Did one? */
static inline bool fail_alloc_end(void)
{
	fail_countdown = -1;
	return fail_hit;
}

static bool fail_now(void)
{
	if (fail_countdown < 0 || fail_countdown-- > 0)
		return false;
	fail_hit = true;
	return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_reallocarray(void *block, size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_reallocarray(void *block, size_t count, size_t size);

void *__wrap_malloc(size_t size)
{
	return fail_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fail_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
	return fail_now() ? NULL : __real_realloc(block, size);
}

void *__wrap_reallocarray(void *block, size_t count, size_t size)
{
	return fail_now() ? NULL : __real_reallocarray(block, count, size);
}

#endif
