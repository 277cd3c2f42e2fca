/*
 * test_trust.c - which files the kernel keeps attributes of, and when it is told that
 * they hold no longer.
 */
#include "leak.h"
#include "trust.h"

#include <stdlib.h>

TestSuite(trust, .fini = leak_check);

Test(trust, taken_once_after_an_edit)
{
	struct trust trust = { 0 };
	uint64_t marks[3] = { 0 }, *numbers;
	size_t count;

	cr_assert(trust_add(&trust, 70, 5, &marks[0]));
	cr_assert(trust_add(&trust, 71, 5, &marks[1]));
	cr_assert(trust_add(&trust, 70, 5, &marks[0]), "it is in already");
	cr_expect_null(trust_take(&trust, 5, &count), "nothing was edited");
	numbers = trust_take(&trust, 6, &count);
	cr_assert_not_null(numbers);
	cr_assert_eq(count, 2);
	cr_expect_eq(numbers[0], 70);
	cr_expect_eq(numbers[1], 71);
	free(numbers);
	cr_expect_null(trust_take(&trust, 7, &count), "nothing is left");

	/* A mark of before counts for nothing. */
	cr_expect_not(trust_remove(&trust, 70, &marks[0]));
	cr_assert(trust_add(&trust, 70, 7, &marks[0]));
	cr_expect_null(trust_take(&trust, 7, &count));
	numbers = trust_take(&trust, 8, &count);
	cr_assert_eq(count, 1);
	free(numbers);
	trust_done(&trust);
	trust_done(&trust);
}

Test(trust, an_edit_that_nobody_told_of_counts)
{
	struct trust trust = { 0 };
	uint64_t marks[2] = { 0 }, *numbers;
	size_t count;

	/* The second knows of the edit, the first does not. */
	cr_assert(trust_add(&trust, 1, 5, &marks[0]));
	cr_assert(trust_add(&trust, 2, 6, &marks[1]));
	numbers = trust_take(&trust, 6, &count);
	cr_assert_eq(count, 2);
	free(numbers);
	trust_done(&trust);
}

Test(trust, as_long_as_there_are_open_files)
{
	struct trust trust = { 0 };
	uint64_t marks[4] = { 0 }, closed = 0, *numbers;
	size_t count;

	for (uint64_t i = 0; i < 4; i++)
		cr_assert(trust_add(&trust, i / 2, 0, &marks[i]));
	cr_expect_not(trust_remove(&trust, 9, &closed), "it never was");
	cr_expect(trust_remove(&trust, 0, &marks[0]));
	for (int i = 0; i < 10000; i++) {
		uint64_t mark = 0;

		cr_assert(trust_add(&trust, 100, 0, &mark));
		cr_assert(trust_remove(&trust, 100, &mark));
	}
	cr_expect_leq(trust.capacity, 64);
	numbers = trust_take(&trust, 1, &count);
	cr_assert_eq(count, 3);
	free(numbers);
	for (uint64_t i = 0; i < 4; i++)
		cr_expect_not(trust_remove(&trust, i / 2, &marks[i]));
	trust_done(&trust);
}
