/*
 * numbers.c - see numbers.h. A number in the range is a class and a value.
 */
#include "numbers.h"
#include "by_path.h"
#include "node.h"

/* What a value is. */
enum {
	CLASS_FIXED, /* the number itself */
	CLASS_ENTRY, /* + kind; the index */
	CLASS_ENTRY_NPY = CLASS_ENTRY + PACK_KIND_COUNT,
	CLASS_FOLDER, /* + kind; length of the prefix, index of the first entry */
	CLASS_FOLDER_NPY = CLASS_FOLDER + PACK_KIND_COUNT,
	CLASS_PATH = CLASS_FOLDER_NPY + PACK_KIND_COUNT, /* likewise, in by-path/ */
	CLASS_LINK, /* + kind; the index: in by-path/, to a tensor or scalar */
	CLASS_END = CLASS_LINK + PACK_KIND_COUNT,
	CLASS_BITS = 4,
};
_Static_assert(CLASS_END <= 1 << CLASS_BITS, "classes have room");
/* Of the fixed numbers. */
#define VALUE_BITS_MIN 4
_Static_assert(NODE_ID_FIXED_END <= 1 << VALUE_BITS_MIN, "fixed numbers are values");

/* Of a pack that may be edited: what a value is, below one bit for npy/. */
enum {
	WIDE_FIXED,
	WIDE_ENTRY, /* + kind; the index */
	WIDE_COUNTED = WIDE_ENTRY + PACK_KIND_COUNT,
	WIDE_FOLDER,
	WIDE_END,
	WIDE_BITS = 3,
};
_Static_assert(WIDE_END <= 1 << WIDE_BITS, "classes have room");
#define WIDE_NPY (UINT64_C(1) << (NUMBERS_HASH_BITS + WIDE_BITS))
#define WIDE_VALUES ((UINT64_C(1) << NUMBERS_HASH_BITS) - 1)
_Static_assert(WIDE_NPY << 1 == NUMBERS_WIDE, "that is all of a number");

static unsigned bits_of(uint64_t most)
{
	unsigned bits = 0;

	for (; most; most >>= 1)
		bits++;
	return bits;
}

static unsigned value_bits(const struct numbers *numbers)
{
	unsigned bits = numbers->index_bits + numbers->prefix_bits;

	return bits < VALUE_BITS_MIN ? VALUE_BITS_MIN : bits;
}

uint64_t numbers_init(struct numbers *numbers, const struct overlay *overlay)
{
	size_t longest = 0, most = 0;

	numbers->wide = overlay->writable;
	if (numbers->wide)
		return NUMBERS_WIDE;
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++) {
		size_t count = overlay_pack_count(overlay, kind);

		if (count > most)
			most = count;
		for (size_t i = 0; i < count; i++) {
			const struct entry entry = { kind, i, NULL };
			size_t size;

			if (kind == ITEM_METADATA)
				bpk_metadata_value(
					bpk_reader_metadata(overlay->reader, i), &size);
			else
				entry_name(overlay, &entry, &size);
			/* Of a path in by-path/, which is no longer. */
			if (kind == ITEM_METADATA && size > BY_PATH_SIZE_MAX)
				continue;
			if (size > longest)
				longest = size;
		}
	}
	numbers->index_bits = bits_of(most);
	numbers->prefix_bits = bits_of(longest);
	return UINT64_C(1) << (CLASS_BITS + value_bits(numbers));
}

static uint64_t entry_base(enum item_kind kind)
{
	return ((uint64_t)kind + 1) << NODE_ID_ENTRY_SHIFT;
}

static uint64_t tell_wide(const struct numbers *numbers, uint64_t id)
{
	uint64_t npy = id & NODE_ID_NPY ? WIDE_NPY : 0, plain = id & ~NODE_ID_NPY, class,
		 value = plain;

	if (plain < NODE_ID_FIXED_END) {
		class = WIDE_FIXED;
	} else if ((plain & NODE_ID_FOLDER) == NODE_ID_FOLDER) {
		class = WIDE_FOLDER;
	} else if (plain >> NODE_ID_ENTRY_SHIFT) {
		class = WIDE_ENTRY + (plain >> NODE_ID_ENTRY_SHIFT) - 1;
	} else {
		class = WIDE_COUNTED;
		value = plain - OVERLAY_FIRST_ID;
	}
	return numbers->first +
	       (npy | class << NUMBERS_HASH_BITS | (value & WIDE_VALUES));
}

static bool find_wide(uint64_t at, uint64_t *ret_id)
{
	uint64_t npy = at & WIDE_NPY ? NODE_ID_NPY : 0,
		 class = (at & ~WIDE_NPY) >> NUMBERS_HASH_BITS, value = at & WIDE_VALUES;

	if (at >= NUMBERS_WIDE || class >= WIDE_END)
		return false;
	if (class == WIDE_FOLDER)
		value |= NODE_ID_FOLDER;
	else if (class == WIDE_COUNTED)
		value += OVERLAY_FIRST_ID;
	else if (class != WIDE_FIXED)
		value += entry_base((enum item_kind)(class - WIDE_ENTRY));
	*ret_id = value | npy;
	return true;
}

uint64_t numbers_tell(const struct numbers *numbers, uint64_t id)
{
	uint64_t npy = id & NODE_ID_NPY ? 1 : 0, class, value;

	if (!numbers->root)
		return id;
	if (id == NODE_ID_ROOT)
		return numbers->root;
	if (numbers->wide)
		return tell_wide(numbers, id);
	if (id < NODE_ID_FIXED_END) {
		class = CLASS_FIXED;
		value = id;
	} else if ((id & NODE_ID_FOLDER) == NODE_ID_FOLDER) {
		uint64_t kind =
			id >> NODE_ID_KIND_SHIFT & ((1U << NODE_ID_KIND_BITS) - 1);

		class = kind == NODE_ID_PATH_KIND
				? CLASS_PATH
				: (npy ? CLASS_FOLDER_NPY : CLASS_FOLDER) + kind;
		value = (id >> NODE_ID_PREFIX_SHIFT &
			 ((UINT64_C(1) << NODE_ID_PREFIX_BITS) -
			  1)) << numbers->index_bits |
			(uint32_t)id;
	} else {
		uint64_t plain = id & ~(NODE_ID_NPY | NODE_ID_LINK),
			 kind = (plain >> NODE_ID_ENTRY_SHIFT) - 1;

		class = npy ? CLASS_ENTRY_NPY
			    : (id & NODE_ID_LINK ? CLASS_LINK : CLASS_ENTRY) + kind;
		value = plain - entry_base((enum item_kind)kind);
	}
	return numbers->first + (class << value_bits(numbers) | value);
}

bool numbers_find(const struct numbers *numbers, uint64_t told, uint64_t *ret_id)
{
	uint64_t at = told - numbers->first, class, value, index, npy = 0;

	if (!numbers->root || told == numbers->root) {
		*ret_id = numbers->root ? NODE_ID_ROOT : told;
		return true;
	}
	if (numbers->wide)
		return find_wide(at, ret_id);
	class = at >> value_bits(numbers);
	value = at & ((UINT64_C(1) << value_bits(numbers)) - 1);
	index = value & ((UINT64_C(1) << numbers->index_bits) - 1);
	if (class == CLASS_FIXED) {
		*ret_id = value;
	} else if (class < CLASS_ENTRY_NPY) {
		*ret_id = entry_base((enum item_kind)(class - CLASS_ENTRY)) + value;
	} else if (class == CLASS_ENTRY_NPY) {
		*ret_id = (entry_base(ITEM_TENSOR) + value) | NODE_ID_NPY;
	} else if (class < CLASS_PATH) {
		if (class >= CLASS_FOLDER_NPY) {
			class -= PACK_KIND_COUNT;
			npy = NODE_ID_NPY;
		}
		*ret_id = NODE_ID_FOLDER | npy |
			  (class - CLASS_FOLDER) << NODE_ID_KIND_SHIFT |
			  value >> numbers->index_bits << NODE_ID_PREFIX_SHIFT | index;
	} else if (class == CLASS_PATH) {
		*ret_id = nodes_path_id(index, value >> numbers->index_bits);
	} else if (class < CLASS_END) {
		*ret_id = (entry_base((enum item_kind)(class - CLASS_LINK)) + value) |
			  NODE_ID_LINK;
	} else {
		return false;
	}
	return true;
}
