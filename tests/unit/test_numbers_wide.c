/*
 * test_numbers_wide.c - numbers.c and the hashes of node.c: in a writable directory each
 * number of a node is told as one that no other node has, in the range of its pack, and
 * found again.
 */
#include "leak.h"
#include "node.h"
#include "numbers.h"

#include <criterion/criterion.h>
#include <inttypes.h>

TestSuite(numbers_wide, .fini = leak_check);

#define FIRST (UINT64_C(77) * NUMBERS_WIDE)
#define ROOT (UINT64_C(3) << 62 | 5)
#define NPY NODE_ID_NPY
#define ENTRY(kind, index) (((uint64_t)(kind) + 1) << NODE_ID_ENTRY_SHIFT | (index))
#define LAST ((UINT64_C(1) << NUMBERS_HASH_BITS) - 1)

static struct numbers wide(void)
{
	struct overlay overlay = { .writable = true };
	struct numbers numbers = { 0 };

	cr_assert_eq(numbers_init(&numbers, &overlay), NUMBERS_WIDE);
	numbers.root = ROOT;
	numbers.first = FIRST;
	return numbers;
}

Test(numbers_wide, of_a_pack_that_may_be_edited)
{
	static const uint64_t ids[] = {
		NODE_ID_SECTION,
		NODE_ID_NPY_SECTION,
		NODE_ID_RENDERED,
		NODE_ID_FIXED_END - 1,
		ENTRY(ITEM_TENSOR, 0),
		ENTRY(ITEM_TENSOR, 0) | NPY,
		ENTRY(ITEM_TENSOR, 99999),
		ENTRY(ITEM_SCALAR, 0),
		ENTRY(ITEM_METADATA, 0),
		ENTRY(ITEM_METADATA, 99999),
		OVERLAY_FIRST_ID,
		OVERLAY_FIRST_ID | NPY,
		OVERLAY_FIRST_ID + 1,
		OVERLAY_FIRST_ID + LAST,
		NODE_ID_FOLDER,
		NODE_ID_FOLDER | NPY,
		NODE_ID_FOLDER | 1,
		NODE_ID_FOLDER | LAST,
		NODE_ID_FOLDER | NPY | LAST,
	};
	enum { COUNT = sizeof(ids) / sizeof(*ids) };
	const struct numbers numbers = wide();
	uint64_t told[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		uint64_t id;

		told[i] = numbers_tell(&numbers, ids[i]);
		cr_expect(told[i] >= FIRST && told[i] - FIRST < NUMBERS_WIDE,
			  "%" PRIx64 " is told outside of the range", ids[i]);
		cr_expect(numbers_find(&numbers, told[i], &id) && id == ids[i],
			  "%" PRIx64 " is found as %" PRIx64, ids[i], id);
		for (size_t j = 0; j < i; j++)
			cr_expect(told[i] != told[j],
				  "%" PRIx64 " and %" PRIx64 " are told alike", ids[i],
				  ids[j]);
	}
}

Test(numbers_wide, root_and_what_is_none)
{
	const struct numbers numbers = wide();
	static const uint64_t none[] = {
		FIRST - 1,
		FIRST + NUMBERS_WIDE,
		FIRST + (UINT64_C(6) << NUMBERS_HASH_BITS),
		FIRST + NUMBERS_WIDE - 1,
		0,
	};
	uint64_t id;

	cr_expect_eq(numbers_tell(&numbers, NODE_ID_ROOT), ROOT);
	cr_expect(numbers_find(&numbers, ROOT, &id) && id == NODE_ID_ROOT);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		cr_expect(!numbers_find(&numbers, none[i], &id), "row %zu is found", i);
}

/* Folders have the same number each time, and one that can be told. */
Test(numbers_wide, folders)
{
	static const char *const names[] = { "encoder", "decoder", "layer1", "layer2",
					     "" };
	struct numbers numbers = wide();

	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct nodes one, two;
		struct node *section;

		cr_assert_eq(nodes_init(&one, NULL), 0);
		cr_assert_eq(nodes_init(&two, NULL), 0);
		nodes_narrow(&one, seed, NUMBERS_HASH_BITS);
		nodes_narrow(&two, seed, NUMBERS_HASH_BITS);
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
			uint64_t id, found;

			section =
				&one.fixed[i % 2 ? NODE_ID_SECTION : NODE_ID_NPY_SECTION];
			id = nodes_folder_id(&one, section, names[i], strlen(names[i]));
			cr_expect_eq(nodes_folder_id(&two, section, names[i],
						     strlen(names[i])),
				     id);
			cr_expect(numbers_find(&numbers, numbers_tell(&numbers, id),
					       &found) &&
				  found == id);
		}
		nodes_done(&one, NULL);
		nodes_done(&two, NULL);
	}
}
