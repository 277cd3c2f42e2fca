/*
 * leak.h - Criterion runs each test in a process that ends without the check of
 * LeakSanitizer, and passes one whose sanitizer only printed. As a suite's .fini
 * this makes a leak a failure; without a sanitizer it does nothing.
 */
#ifndef TEST_LEAK_H
#define TEST_LEAK_H

#include <criterion/criterion.h>

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static inline void leak_check(void)
{
	if (__lsan_do_recoverable_leak_check)
		cr_assert_eq(__lsan_do_recoverable_leak_check(), 0, "memory was leaked");
}

#endif
