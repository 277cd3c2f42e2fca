/*
 * test_numbers.c - the inode numbers of one pack among many: every number that a pack can
 * need, there and back, and those of other packs.
 */
#include "leak.h"
#include "node.h"
#include "numbers.h"
#include "pack.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TestSuite(numbers, .fini = leak_check);

/* Names of @name_size bytes, and one metadata value of @value_size. */
struct content {
	size_t tensors, scalars, name_size, value_size;
};

/* The digits at the end tell them apart. */
static void fill_name(char *name, size_t size, size_t index)
{
	memset(name, 'n', size);
	for (size_t i = size; i-- && index; index /= 10)
		name[i] = (char)('0' + index % 10);
}

static void *make_bytes(const struct content *content, uint64_t *ret_size)
{
	char *text = malloc(content->name_size + content->value_size + 1);
	struct bpk_tensor_desc desc = { .name = text,
					.name_size = content->name_size,
					.dtype = BPK_DTYPE_U8,
					.shape = &(const uint64_t) { 0 },
					.rank = 1 };
	const struct bpk_scalar_value value = { .type = BPK_SCALAR_BOOL };
	struct bpk_writer *writer;
	void *bytes;

	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	for (size_t i = 0; i < content->tensors; i++) {
		fill_name(text, content->name_size, i);
		cr_assert_eq(bpk_writer_add_bytes(writer, &desc, "", 0, NULL), 0);
	}
	for (size_t i = 0; i < content->scalars; i++) {
		fill_name(text, content->name_size, i);
		cr_assert_eq(bpk_writer_set_scalar(writer, text, content->name_size,
						   value, NULL),
			     0);
	}
	memset(text, 'v', content->value_size);
	if (content->value_size)
		cr_assert_eq(bpk_writer_set_metadata(writer, "a longer key than the rest",
						     26, text, content->value_size, NULL),
			     0);
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &bytes, ret_size, NULL),
		     0);
	bpk_writer_free(writer);
	free(text);
	return bytes;
}

static void open_overlay(struct overlay *overlay, const struct content *content)
{
	uint64_t size;
	void *bytes = make_bytes(content, &size);
	int fd = memfd_create("pack", MFD_CLOEXEC);
	struct pack *pack;

	cr_assert(fd >= 0 && write(fd, bytes, (size_t)size) == (ssize_t)size);
	cr_assert_eq(pack_open_fd(fd, &pack, NULL), 0);
	close(fd);
	free(bytes);
	overlay_init(overlay, pack, false);
	pack_unref(pack);
}

/* How many numbers are asked for: fixed ones and classes of them times indexes times
 * lengths, each up to a power of two. */
Test(numbers, width)
{
	static const struct {
		const char *label;
		struct content content;
		unsigned index_bits, prefix_bits;
		uint64_t count;
	} rows[] = {
		{ "nothing", { 0, 0, 0, 0 }, 0, 0, 256 },
		{ "one of one byte", { 1, 0, 1, 0 }, 1, 1, 256 },
		{ "three of three", { 3, 0, 3, 0 }, 2, 2, 256 },
		{ "four", { 4, 0, 3, 0 }, 3, 2, 512 },
		{ "seven of seven", { 7, 0, 7, 0 }, 3, 3, 1024 },
		{ "eight", { 8, 0, 7, 0 }, 4, 3, 2048 },
		{ "seven of eight", { 7, 0, 8, 0 }, 3, 4, 2048 },
		{ "more scalars than tensors", { 3, 9, 4, 0 }, 4, 3, 2048 },
		{ "of 255 bytes", { 1, 0, 255, 0 }, 1, 8, 8192 },
		{ "of 256 bytes", { 1, 0, 256, 0 }, 1, 9, 16384 },
		{ "a value, which may be a path", { 1, 0, 1, 300 }, 1, 9, 16384 },
		{ "the longest path", { 1, 0, 1, 4096 }, 1, 13, 262144 },
		{ "too long to be one", { 1, 0, 1, 4097 }, 1, 1, 256 },
		{ "1024", { 1024, 0, 4, 0 }, 11, 3, 262144 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct numbers numbers = { 0 };
		struct overlay overlay;
		uint64_t count;

		open_overlay(&overlay, &rows[i].content);
		count = numbers_init(&numbers, &overlay);
		cr_expect_eq(count, rows[i].count, "%s: %ju", rows[i].label,
			     (uintmax_t)count);
		cr_expect_eq(numbers.index_bits, rows[i].index_bits, "%s", rows[i].label);
		cr_expect_eq(numbers.prefix_bits, rows[i].prefix_bits, "%s",
			     rows[i].label);
		overlay_done(&overlay);
	}
}

struct check {
	const char *label;
	struct numbers numbers;
	uint64_t count;
	bool *told; /* of the range */
	size_t wrong;
};

/* It is told as a number of the range that nothing else has, and found by it. */
static void check_id(struct check *check, uint64_t id)
{
	uint64_t told = numbers_tell(&check->numbers, id), found = 0;
	uint64_t at = told - check->numbers.first;

	if (at >= check->count || check->told[at])
		check->wrong++;
	else
		check->told[at] = true;
	if (!numbers_find(&check->numbers, told, &found) || found != id)
		check->wrong++;
}

static void check_entries(struct check *check, const struct overlay *overlay)
{
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++)
		for (size_t i = 0; i < overlay_pack_count(overlay, kind); i++) {
			const struct entry entry = { kind, i, NULL };
			uint64_t id = entry_id(overlay, &entry);

			check_id(check, id);
			if (kind == ITEM_TENSOR)
				check_id(check, id | NODE_ID_NPY);
			if (kind != ITEM_METADATA)
				check_id(check, id | NODE_ID_LINK);
		}
}

/* Whether there is such a folder or not: of any first entry, any length. */
static void check_folders(struct check *check, const struct overlay *overlay,
			  size_t longest)
{
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++)
		for (size_t i = 0; i < overlay_pack_count(overlay, kind); i++)
			for (size_t size = 1; size <= longest; size++) {
				const struct entry entry = { kind, i, NULL };

				check_id(check,
					 nodes_constant_folder_id(&entry, false, size));
				if (kind == ITEM_TENSOR)
					check_id(check, nodes_constant_folder_id(
								&entry, true, size));
				if (kind == ITEM_METADATA)
					check_id(check, nodes_path_id(i, size));
			}
}

Test(numbers, there_and_back)
{
	static const struct {
		const char *label;
		struct content content;
		size_t longest;
	} rows[] = {
		{ "nothing", { 0, 0, 0, 0 }, 0 },
		{ "one", { 1, 1, 1, 1 }, 1 },
		{ "a value alone", { 0, 0, 0, 3 }, 3 },
		{ "three of three", { 3, 2, 3, 2 }, 3 },
		{ "four of four", { 4, 3, 4, 4 }, 4 },
		{ "seven of eight", { 7, 7, 8, 8 }, 8 },
		{ "eight of seven", { 8, 1, 7, 7 }, 7 },
		{ "scalars", { 2, 33, 15, 16 }, 16 },
		{ "long names", { 5, 5, 256, 1 }, 256 },
		{ "the longest path", { 3, 3, 2, 4096 }, 4096 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct check check = { .label = rows[i].label };
		struct overlay overlay;

		open_overlay(&overlay, &rows[i].content);
		check.count = numbers_init(&check.numbers, &overlay);
		check.numbers.root = 77;
		check.numbers.first = UINT64_C(0x123456789abc);
		check.told = calloc((size_t)check.count, sizeof(*check.told));
		cr_assert_not_null(check.told);
		for (uint64_t id = NODE_ID_ROOT + 1; id < NODE_ID_FIXED_END; id++)
			check_id(&check, id);
		check_entries(&check, &overlay);
		check_folders(&check, &overlay, rows[i].longest);
		cr_expect_eq(check.wrong, 0, "%s: %zu are wrong", check.label,
			     check.wrong);
		free(check.told);
		overlay_done(&overlay);
	}
}

Test(numbers, of_others)
{
	static const struct content content = { 5, 4, 6, 7 };
	struct numbers numbers = { 0 };
	uint64_t count, id = 99, told, refused = 0;
	struct overlay overlay;

	open_overlay(&overlay, &content);
	count = numbers_init(&numbers, &overlay);
	overlay_done(&overlay);
	numbers.root = 77;
	numbers.first = 4096;
	cr_expect_eq(numbers_tell(&numbers, NODE_ID_ROOT), 77, "the root");
	cr_expect(numbers_find(&numbers, 77, &id) && id == NODE_ID_ROOT, "the root");
	for (told = 0; told < numbers.first; told++) {
		id = 99;
		if (told != 77 && !numbers_find(&numbers, told, &id) && id == 99)
			refused++;
	}
	cr_expect_eq(refused, numbers.first - 1, "before the range");
	refused = 0;
	for (told = numbers.first + count; told < numbers.first + 5 * count; told++)
		refused += !numbers_find(&numbers, told, &id);
	cr_expect_eq(refused, 4 * count, "behind the range");
	cr_expect(!numbers_find(&numbers, UINT64_MAX, &id), "the last number");
	cr_expect(!numbers_find(&numbers, numbers.first + count - 1, &id),
		  "a class that is none");
}

/* A mount of one pack tells them as they are. */
Test(numbers, alone)
{
	static const uint64_t ids[] = {
		0,	    NODE_ID_ROOT,
		15,	    UINT64_C(1) << NODE_ID_ENTRY_SHIFT,
		UINT64_MAX, NODE_ID_FOLDER | NODE_ID_NPY | 5,
	};
	const struct numbers numbers = { 0 };

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
		uint64_t id = 99;

		cr_expect_eq(numbers_tell(&numbers, ids[i]), ids[i]);
		cr_expect(numbers_find(&numbers, ids[i], &id) && id == ids[i]);
	}
}

/* The largest pack there can be: 100 000 entries, with a name as long as the metadata. */
Test(numbers, largest)
{
	const struct numbers numbers = { 77, UINT64_C(1) << 62, 17, 27, false };
	const uint64_t count = UINT64_C(1) << (4 + 17 + 27);
	const uint64_t indexes[] = { 0, 1, 65535, 65536, 99999 };
	const size_t sizes[] = { 1, 2, (1 << 26) - 1, 1 << 26, (1 << 27) - 1 };

	for (size_t i = 0; i < sizeof(indexes) / sizeof(*indexes); i++)
		for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
			const struct entry entry = { ITEM_TENSOR, indexes[i], NULL };
			const uint64_t ids[] = {
				nodes_constant_folder_id(&entry, false, sizes[j]),
				nodes_constant_folder_id(&entry, true, sizes[j]),
				nodes_path_id(indexes[i], sizes[j]),
				(UINT64_C(1) << NODE_ID_ENTRY_SHIFT) + indexes[i],
				((UINT64_C(2) << NODE_ID_ENTRY_SHIFT) + indexes[i]) |
					NODE_ID_LINK,
			};

			for (size_t k = 0; k < sizeof(ids) / sizeof(*ids); k++) {
				uint64_t told = numbers_tell(&numbers, ids[k]), found = 0;

				cr_expect(told - numbers.first < count);
				cr_expect(numbers_find(&numbers, told, &found));
				cr_expect_eq(found, ids[k]);
			}
		}
}
