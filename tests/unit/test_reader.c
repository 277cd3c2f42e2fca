/*
 * test_reader.c - packs in a buffer: what opens, what is odd, what is refused.
 */
#include "bpk.h"
#include "bytes.h"
#include "leak.h"

#include <errno.h>
#include <stdio.h>

TestSuite(reader, .fini = leak_check);

#define START "\241\147tensors"
#define TENSOR(name, shape, offsets)                                                     \
	name "\243\145dtype\143F32\145shape" shape "\154data_offsets" offsets

Test(reader, one_tensor)
{
	static const char metadata[] =
		START "\241" TENSOR("\141w", "\201\2", "\202\0\10");
	size_t size, count = 9, extra_size = 9;
	uint8_t *pack = bytes_pack(metadata, sizeof(metadata) - 1, 8, &size);
	struct bpk_reader *reader = NULL;
	const struct bpk_tensor *tensor;
	uint64_t shape[2] = { 7, 7 }, param_id = 7;
	const uint8_t *data;

	cr_assert_eq(bpk_reader_open_buffer(pack, size, NULL, &reader, NULL), 0);
	cr_expect_eq(bpk_reader_fd(reader), -1);
	cr_expect_eq(bpk_reader_file_size(reader), 264);
	cr_expect_eq(bpk_reader_metadata_size(reader), sizeof(metadata) - 1);
	cr_expect_eq(bpk_reader_data_off(reader), 256);
	cr_expect_eq(bpk_reader_format_version(reader), 1);
	cr_expect_eq(bpk_reader_tensor_count(reader), 1);
	cr_expect_null(bpk_reader_tensor(reader, 1));
	cr_expect_null(bpk_reader_find_tensor(reader, "v", 1));
	cr_expect_null(bpk_reader_find_tensor(reader, "", 0));
	cr_expect_null(bpk_reader_scalar(reader, 0));
	cr_expect_null(bpk_reader_find_scalar(reader, "w", 1));
	cr_expect_null(bpk_reader_metadata(reader, 0));
	cr_expect_null(bpk_reader_find_metadata(reader, "w", 1));
	tensor = bpk_reader_find_tensor(reader, "w", 1);
	cr_assert_eq(tensor, bpk_reader_tensor(reader, 0));
	cr_expect_eq(bpk_tensor_rank(tensor), 1);
	cr_expect_eq(bpk_tensor_shape(tensor, NULL, 0), 1);
	cr_expect_eq(bpk_tensor_shape(tensor, shape, 2), 1);
	cr_expect(shape[0] == 2 && shape[1] == 7);
	cr_expect_not(bpk_tensor_param_id(tensor, &param_id));
	cr_expect_eq(param_id, 7);
	cr_expect_eq(bpk_tensor_size(tensor), 8);
	cr_expect_eq(bpk_tensor_off(tensor), 256);
	data = bpk_tensor_data(reader, tensor);
	cr_expect(data == pack + 256 && data[7] == 7);
	cr_expect_null(bpk_tensor_extra(tensor, &extra_size, &count));
	cr_expect(extra_size == 0 && count == 0);
	cr_expect_null(bpk_reader_extra(reader, &extra_size, &count));
	bpk_reader_close(reader);
	bpk_reader_close(NULL);
	free(pack);
}

Test(reader, finds_each_of_many)
{
	enum { COUNT = 1000 };
	static const char tail[] =
		"\243\145dtype\142U8\145shape\201\1\154data_offsets\202\0\1";
	size_t metadata_size = 12, size, name_size;
	uint8_t *metadata = malloc(COUNT * (8 + sizeof(tail)) + 64), *pack;
	struct bpk_reader *reader = NULL;
	char name[8], before[8] = "";

	memcpy(metadata, START "\271\3\350", 12);
	for (unsigned int i = 0; i < COUNT; i++) {
		/* All of 0 to 999, far from sorted. */
		snprintf((char *)metadata + metadata_size, 8, "\144t%03u",
			 i * 617 % COUNT);
		memcpy(metadata + metadata_size + 5, tail, sizeof(tail) - 1);
		metadata_size += 5 + sizeof(tail) - 1;
	}
	pack = bytes_pack(metadata, metadata_size, 1, &size);
	cr_assert_eq(bpk_reader_open_buffer(pack, size, NULL, &reader, NULL), 0);
	cr_expect_eq(bpk_reader_tensor_count(reader), COUNT);
	for (unsigned int i = 0; i < COUNT; i++) {
		const struct bpk_tensor *tensor;

		snprintf(name, sizeof(name), "t%03u", i);
		tensor = bpk_reader_find_tensor(reader, name, 4);
		cr_assert_eq(tensor, bpk_reader_tensor(reader, i), "%s", name);
		cr_assert_arr_eq(bpk_tensor_name(tensor, &name_size), name, 4);
		cr_expect_gt(strcmp(name, before), 0);
		memcpy(before, name, sizeof(name));
	}
	bpk_reader_close(reader);
	free(pack);
	free(metadata);
}

Test(reader, refuses)
{
	static const struct {
		const char *label, *metadata;
		size_t metadata_size;
		size_t data_size;
		int err;
		enum bpk_code code;
		uint64_t offset;
		const char *message;
	} rows[] = {
		{ "cut short by a byte",
		  BYTES(START "\242" TENSOR("\141b", "\201\2", "\202\0\10")
				TENSOR("\141a", "\201\2", "\202\31\1\0\31\1\10")),
		  263, -ENODATA, BPK_ERR_TRUNCATED, 519,
		  "the file is cut short: it needs 520 bytes, the file has 519; the "
		  "first tensor "
		  "that is missing is \"a\"" },
		{ "the first by place, not by name",
		  BYTES(START "\242" TENSOR("\141b", "\201\2", "\202\0\10")
				TENSOR("\141a", "\201\2", "\202\31\1\0\31\1\10")),
		  7, -ENODATA, BPK_ERR_TRUNCATED, 263,
		  "the file is cut short: it needs 520 bytes, the file has 263; the "
		  "first tensor "
		  "that is missing is \"b\"" },
		{ "only metadata is left",
		  BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\0\10")), 0, -ENODATA,
		  BPK_ERR_TRUNCATED, 57,
		  "the file is cut short: it needs 264 bytes, the file has 57; the first "
		  "tensor "
		  "that is missing is \"w\"" },
		{ "an empty tensor behind the end",
		  BYTES(START "\241" TENSOR("\141w", "\201\0", "\202\11\11")), 8,
		  -ENODATA, BPK_ERR_TRUNCATED, 264,
		  "the file is cut short: it needs 265 bytes, the file has 264; the "
		  "first tensor "
		  "that is missing is \"w\"" },
		{ "reversed", BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\10\0")),
		  8, -EBADMSG, BPK_ERR_MALFORMED, 21,
		  "tensor \"w\": its data ends at 0, before it starts at 8" },
		{ "beyond 64 bits",
		  BYTES(START "\241" TENSOR("\141w", "\201\2",
					    "\202\0\33\377\377\377\377\377\377\377\377")),
		  8, -EBADMSG, BPK_ERR_MALFORMED, 21,
		  "tensor \"w\": its data_offsets are beyond 64 bits" },
		{ "too large",
		  BYTES(START
			"\241" TENSOR("\141w", "\201\2", "\202\0\33\0\0\0\2\200\0\0\1")),
		  8, -EFBIG, BPK_ERR_LIMIT, 21,
		  "tensor \"w\" has 10737418241 bytes, the limit is 10737418240" },
		{ "malformed goes before cut short",
		  BYTES(START "\242" TENSOR("\141a", "\201\2", "\202\0\31\377\377")
				TENSOR("\141b", "\201\2", "\202\10\0")),
		  8, -EBADMSG, BPK_ERR_MALFORMED, 60,
		  "tensor \"b\": its data ends at 0, before it starts at 8" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size;
		uint8_t *pack = bytes_pack(rows[i].metadata, rows[i].metadata_size,
					   rows[i].data_size, &size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_reader *reader = NULL;
		int err = bpk_reader_open_buffer(pack, size, NULL, &reader, &error);

		cr_expect_eq(err, rows[i].err, "%s: %d", rows[i].label, err);
		cr_expect_null(reader, "%s", rows[i].label);
		cr_expect_eq(error.code, rows[i].code, "%s: %d", rows[i].label,
			     error.code);
		cr_expect_eq(error.offset, rows[i].offset, "%s: at %llu", rows[i].label,
			     (unsigned long long)error.offset);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
		free(pack);
	}
}

Test(reader, limits_are_the_callers)
{
	static const char metadata[] =
		START "\241" TENSOR("\141w", "\201\2", "\202\0\10");
	static const struct {
		const char *label;
		struct bpk_limits limits;
		int err;
	} rows[] = {
		{ "exactly", { 264, sizeof(metadata) - 1, 8, 1, 4 }, 0 },
		{ "file", { 263, 100, 8, 1, 4 }, -EFBIG },
		{ "metadata", { 264, sizeof(metadata) - 2, 8, 1, 4 }, -EFBIG },
		{ "tensor", { 264, 100, 7, 1, 4 }, -EFBIG },
		{ "count", { 264, 100, 8, 0, 4 }, -EFBIG },
		{ "nesting", { 264, 100, 8, 1, 3 }, -EFBIG },
		{ "a nesting without bound", { 264, 100, 8, 1, UINT32_MAX }, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size;
		uint8_t *pack = bytes_pack(metadata, sizeof(metadata) - 1, 8, &size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_reader *reader = NULL;

		cr_expect_eq(bpk_reader_open_buffer(pack, size, &rows[i].limits, &reader,
						    &error),
			     rows[i].err, "%s: %s", rows[i].label, error.message);
		cr_expect_eq(error.code, rows[i].err ? BPK_ERR_LIMIT : BPK_OK, "%s",
			     rows[i].label);
		bpk_reader_close(reader);
		free(pack);
	}
}

struct found {
	char text[512];
	size_t at;
	int stop;
};

static int find(void *context, enum bpk_finding finding, const struct bpk_tensor *tensor,
		const char *message)
{
	struct found *found = context;
	size_t size = 0;
	const char *name = tensor ? bpk_tensor_name(tensor, &size) : "";

	found->at +=
		(size_t)snprintf(found->text + found->at, sizeof(found->text) - found->at,
				 "%d %.*s: %s\n", finding, (int)size, name, message);
	return found->stop;
}

Test(reader, check)
{
	static const struct {
		const char *label, *metadata;
		size_t metadata_size;
		size_t data_size;
		const char *findings;
	} rows[] = {
		{ "nothing odd",
		  BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\0\10")), 8, "" },
		{ "no tensors, no data", BYTES(START "\240"), 0, "" },
		{ "size", BYTES(START "\241" TENSOR("\141w", "\201\3", "\202\0\10")), 8,
		  "0 w: tensor \"w\" has 8 bytes, its shape times its dtype is 12\n" },
		{ "size beyond 64 bits",
		  BYTES(START "\241" TENSOR("\141w", "\202\33\200\0\0\0\0\0\0\2\2",
					    "\202\0\10")),
		  8,
		  "0 w: tensor \"w\" has 8 bytes, its shape times its dtype is beyond 64 "
		  "bits\n" },
		{ "a zero in it",
		  BYTES(START "\241" TENSOR("\141w", "\202\33\200\0\0\0\0\0\0\2\0",
					    "\202\0\0")),
		  1, "4 : 1 bytes lie behind the last tensor\n" },
		{ "unaligned", BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\4\14")),
		  12,
		  "1 w: tensor \"w\" starts at byte 260, which is no multiple of 256\n" },
		{ "overlap",
		  BYTES(START "\243" TENSOR("\141a", "\201\2", "\202\0\10")
				TENSOR("\141b", "\201\1", "\202\0\4")
					TENSOR("\141c", "\201\0", "\202\0\0")),
		  8, "2 b: tensor \"b\" shares bytes with tensor \"a\"\n" },
		{ "bytes behind the value",
		  BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\0\10") "\0\0"), 8,
		  "3 : 2 bytes lie behind the value in the metadata\n" },
		{ "bytes behind the data",
		  BYTES(START "\241" TENSOR("\141w", "\201\2", "\202\0\10")), 11,
		  "4 : 3 bytes lie behind the last tensor\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t size;
		uint8_t *pack = bytes_pack(rows[i].metadata, rows[i].metadata_size,
					   rows[i].data_size, &size);
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_reader *reader = NULL;
		struct found found = { .stop = 0 };

		cr_assert_eq(bpk_reader_open_buffer(pack, size, NULL, &reader, &error), 0,
			     "%s: %s", rows[i].label, error.message);
		cr_expect_eq(bpk_reader_check(reader, find, &found), 0, "%s",
			     rows[i].label);
		cr_expect_str_eq(found.text, rows[i].findings, "%s: %s", rows[i].label,
				 found.text);
		found = (struct found) { .stop = 42 };
		cr_expect_eq(bpk_reader_check(reader, find, &found),
			     *rows[i].findings ? 42 : 0, "%s", rows[i].label);
		bpk_reader_close(reader);
		free(pack);
	}
}
