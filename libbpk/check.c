/*
 * check.c - what is odd about a pack that opens. Reads descriptors only.
 *
 * None of it keeps Burn from loading the pack, and files like that exist; a user
 * who wonders about one gets told here.
 */
#include "error.h"
#include "reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

struct check {
	const struct bpk_reader *reader;
	bpk_finding_fn fn;
	void *context;
};

static int tell(const struct check *check, enum bpk_finding finding,
		const struct bpk_tensor *tensor, const char *format, ...)
	BPK_PRINTF(4, 5);

static int tell(const struct check *check, enum bpk_finding finding,
		const struct bpk_tensor *tensor, const char *format, ...)
{
	char text[384], message[512], quoted[BPK_QUOTE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!tensor)
		return check->fn(check->context, finding, NULL, text);
	bpk_quote(quoted, tensor->entry.name, tensor->entry.name_size);
	snprintf(message, sizeof(message), "tensor %s %s", quoted, text);
	return check->fn(check->context, finding, tensor, message);
}

/* As bpk_shape_size(), without a copy of the shape. */
static int expected_size(const struct bpk_tensor *tensor, uint64_t *ret_size)
{
	uint64_t size = bpk_dtype_element_size((enum bpk_dtype)tensor->dtype), dim;
	struct bpk_shape_walk walk = { 0 };
	bool overflow = false;

	while (bpk_meta_next_dim(tensor, &walk, &dim)) {
		if (!dim) {
			*ret_size = 0;
			return 0;
		}
		overflow |= !bpk_mul_u64(size, dim, &size);
	}
	if (overflow)
		return -EOVERFLOW;
	*ret_size = size;
	return 0;
}

static int check_tensor(const struct check *check, const struct bpk_tensor *tensor)
{
	uint64_t size = bpk_tensor_size(tensor), expected;
	int err = 0;

	if (tensor->dtype != BPK_DTYPE_QFLOAT) {
		if (expected_size(tensor, &expected))
			err = tell(check, BPK_FINDING_SIZE_MISMATCH, tensor,
				   "has %llu bytes, its shape times its dtype is beyond "
				   "64 bits",
				   (unsigned long long)size);
		else if (expected != size)
			err = tell(check, BPK_FINDING_SIZE_MISMATCH, tensor,
				   "has %llu bytes, its shape times its dtype is %llu",
				   (unsigned long long)size,
				   (unsigned long long)expected);
	}
	if (!err && tensor->start % BPK_ALIGNMENT)
		err = tell(check, BPK_FINDING_UNALIGNED, tensor,
			   "starts at byte %llu, which is no multiple of %u",
			   (unsigned long long)tensor->start, BPK_ALIGNMENT);
	return err;
}

static int compare_starts(const void *left, const void *right)
{
	const struct bpk_tensor *a = *(const struct bpk_tensor *const *)left;
	const struct bpk_tensor *b = *(const struct bpk_tensor *const *)right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a < b ? -1 : a > b; /* rows of one table, in name order */
}

/* A tensor overlaps when it starts before the furthest end of those that start
 * before it; each is told once, with the one that reaches so far. */
static int check_overlap(const struct check *check)
{
	const struct bpk_meta *meta = &check->reader->meta;
	const struct bpk_tensor **by_start, *furthest = NULL;
	char quoted[BPK_QUOTE_SIZE];
	size_t count = 0;
	int err = 0;

	if (!meta->tensor_count)
		return 0;
	by_start = calloc(meta->tensor_count, sizeof(*by_start));
	if (!by_start)
		return -ENOMEM;
	for (size_t i = 0; i < meta->tensor_count; i++)
		if (bpk_tensor_size(&meta->tensors[i]))
			by_start[count++] = &meta->tensors[i];
	qsort(by_start, count, sizeof(*by_start), compare_starts);
	for (size_t i = 0; i < count && !err; i++) {
		const struct bpk_tensor *tensor = by_start[i];

		if (furthest && tensor->start < furthest->end)
			err = tell(check, BPK_FINDING_OVERLAP, tensor,
				   "shares bytes with tensor %s",
				   bpk_quote(quoted, furthest->entry.name,
					     furthest->entry.name_size));
		if (!furthest || tensor->end > furthest->end)
			furthest = tensor;
	}
	free(by_start);
	return err;
}

static int check_trailers(const struct check *check)
{
	const struct bpk_reader *reader = check->reader;
	uint64_t end = reader->header.data_off;
	int err = 0;

	if (reader->meta.value_size < reader->header.metadata_size)
		err = tell(check, BPK_FINDING_METADATA_TRAILER, NULL,
			   "%llu bytes lie behind the value in the metadata",
			   (unsigned long long)(reader->header.metadata_size -
						reader->meta.value_size));
	for (size_t i = 0; i < reader->meta.tensor_count; i++)
		if (reader->meta.tensors[i].end > end)
			end = reader->meta.tensors[i].end;
	if (!err && end < reader->source.file_size)
		err = tell(check, BPK_FINDING_DATA_TRAILER, NULL,
			   "%llu bytes lie behind the last tensor",
			   (unsigned long long)(reader->source.file_size - end));
	return err;
}

BPK_EXPORT int bpk_reader_check(const struct bpk_reader *reader, bpk_finding_fn fn,
				void *context)
{
	const struct check check = { .reader = reader, .fn = fn, .context = context };
	int err = 0;

	for (size_t i = 0; i < reader->meta.tensor_count && !err; i++)
		err = check_tensor(&check, &reader->meta.tensors[i]);
	if (!err)
		err = check_overlap(&check);
	if (!err)
		err = check_trailers(&check);
	return err;
}
