/*
 * test_writer.c - the write pass, through the sinks in memory: providers, ranges,
 * progress, and what is refused. The golden bytes are vectors_write.py's.
 */
#include "bpk.h"
#include "bytes.h"
#include "leak.h"
#include "writer.h"

#include <errno.h>
#include <stdio.h>

TestSuite(writer, .fini = leak_check);

#define MIB (UINT64_C(1) << 20)

static struct bpk_tensor_desc u8_desc(const char *name, const uint64_t *size)
{
	return (struct bpk_tensor_desc) {
		.name = name,
		.name_size = strlen(name),
		.dtype = BPK_DTYPE_U8,
		.shape = size,
		.rank = 1,
	};
}

static struct bpk_writer *new_writer(void)
{
	struct bpk_writer *writer = NULL;

	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	return writer;
}

static void expect_error(const char *label, int r, const struct bpk_error *error,
			 int wanted, enum bpk_code code, const char *message)
{
	cr_expect_eq(r, wanted, "%s: %d (%s)", label, r, error->message);
	cr_expect_eq(error->code, code, "%s: code %d", label, error->code);
	cr_expect_str_eq(error->message, message, "%s: %s", label, error->message);
}

/* A provider that notes what is done with it. */
struct fake {
	uint64_t size; /* what it gives */
	int r;
	bool no_data;
	unsigned int *order; /* one counter for all */
	unsigned int provided, released;
	uint8_t *data;
};

static int fake_provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	struct fake *fake = context;

	fake->provided = ++*fake->order;
	if (fake->r)
		return fake->r;
	if (!fake->no_data) {
		fake->data = malloc(fake->size ? (size_t)fake->size : 1);
		memset(fake->data, 0x42, (size_t)fake->size);
	}
	*ret_data = fake->data;
	*ret_size = fake->size;
	return 0;
}

static void fake_release(void *context, const void *data, uint64_t size)
{
	struct fake *fake = context;

	cr_expect_eq(data, fake->data);
	cr_expect_eq(size, fake->size);
	fake->released = ++*fake->order;
	free(fake->data);
	fake->data = NULL;
}

static void add_fake(struct bpk_writer *writer, const char *name, uint64_t size,
		     struct fake *fake)
{
	const struct bpk_provider provider = { fake_provide, fake_release, fake };
	struct bpk_tensor_desc desc = u8_desc(name, &size);

	cr_assert_eq(bpk_writer_add_deferred(writer, &desc, size, &provider, NULL), 0);
}

Test(writer, providers_one_at_a_time)
{
	struct bpk_writer *writer = new_writer();
	unsigned int order = 0;
	struct fake fakes[] = { { .size = 5, .order = &order },
				{ .size = 0, .order = &order },
				{ .size = 300, .order = &order } };
	struct bpk_error error;
	uint64_t size = 0;
	void *buffer = NULL;

	add_fake(writer, "z", 5, &fakes[0]);
	add_fake(writer, "nothing", 0, &fakes[1]);
	add_fake(writer, "a", 300, &fakes[2]);
	cr_assert_eq(bpk_writer_plan(writer, &size, NULL), 0);
	cr_expect_eq(order, 0u, "planning asked a provider");
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &buffer, &size, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		cr_expect_eq(fakes[i].provided, 2 * i + 1);
		cr_expect_eq(fakes[i].released, 2 * i + 2);
	}
	free(buffer);
	buffer = NULL;
	expect_error(
		"again",
		bpk_writer_write_new_buffer(writer, NULL, &buffer, &size, &error), &error,
		-EINVAL, BPK_ERR_ARGUMENT,
		"the providers of this writer have been called: it cannot write again");
	cr_expect_null(buffer);
	cr_expect_eq(order, 6u);
	bpk_writer_free(writer);
}

Test(writer, providers_that_fail)
{
	static const struct {
		const char *label;
		struct fake fake;
		int r;
		const char *message;
	} rows[] = {
		{ "fails",
		  { .r = -EIO },
		  -EIO,
		  "tensor \"b\": its provider failed: Input/output error" },
		{ "short",
		  { .size = 9 },
		  -EPROTO,
		  "tensor \"b\": 10 bytes were declared, its provider gave 9" },
		{ "long",
		  { .size = 11 },
		  -EPROTO,
		  "tensor \"b\": 10 bytes were declared, its provider gave 11" },
		{ "nothing",
		  { .size = 10, .no_data = true },
		  -EPROTO,
		  "tensor \"b\": its provider gave no data" },
		{ "no errno",
		  { .r = 1 },
		  -EPROTO,
		  "tensor \"b\": its provider returned 1, which is no errno" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_writer *writer = new_writer();
		unsigned int order = 0;
		struct fake before = { .size = 1, .order = &order }, after = before;
		struct fake fake = rows[i].fake;
		struct bpk_error error = { .message = "" };
		void *buffer = NULL;
		uint64_t size = 77;

		fake.order = &order;
		add_fake(writer, "a", 1, &before);
		add_fake(writer, "b", 10, &fake);
		add_fake(writer, "c", 1, &after);
		expect_error(
			rows[i].label,
			bpk_writer_write_new_buffer(writer, NULL, &buffer, &size, &error),
			&error, rows[i].r, BPK_ERR_PROVIDER, rows[i].message);
		cr_expect_null(buffer, "%s", rows[i].label);
		cr_expect_eq(size, 77u, "%s", rows[i].label);
		cr_expect_eq(fake.provided, 3u, "%s", rows[i].label);
		cr_expect_eq(fake.released, rows[i].fake.r ? 0u : 4u, "%s",
			     rows[i].label);
		cr_expect_eq(after.provided, 0u, "%s", rows[i].label);
		bpk_writer_free(writer);
	}
}

Test(writer, sources_that_are_none)
{
	static const uint64_t one[] = { 1 };
	const struct bpk_provider nobody = { NULL, NULL, NULL };
	struct bpk_writer *writer = new_writer();
	struct bpk_tensor_desc desc = u8_desc("t", one);
	struct bpk_error error;

	expect_error("bytes", bpk_writer_add_bytes(writer, &desc, NULL, 1, &error),
		     &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "tensor \"t\": a size without data");
	expect_error("no provider",
		     bpk_writer_add_deferred(writer, &desc, 1, NULL, &error), &error,
		     -EINVAL, BPK_ERR_ARGUMENT, "tensor \"t\": there is no provider");
	expect_error("empty provider",
		     bpk_writer_add_deferred(writer, &desc, 1, &nobody, &error), &error,
		     -EINVAL, BPK_ERR_ARGUMENT, "tensor \"t\": there is no provider");
	expect_error("no file", bpk_writer_add_range(writer, &desc, -1, 0, 1, &error),
		     &error, -EINVAL, BPK_ERR_ARGUMENT,
		     "tensor \"t\": a range without a file");
	expect_error("end", bpk_writer_add_range(writer, &desc, 0, INT64_MAX, 1, &error),
		     &error, -EOVERFLOW, BPK_ERR_OVERFLOW,
		     "tensor \"t\": its range ends where no file does");
	/* All of that left nothing behind: the name is free. */
	cr_expect_eq(bpk_writer_count(writer), 0u);
	cr_expect_eq(bpk_writer_add_bytes(writer, &desc, "x", 1, NULL), 0);
	bpk_writer_free(writer);
	bpk_writer_free(NULL);
}

Test(writer, a_buffer_that_is_too_small)
{
	static const uint64_t one[] = { 1 };
	struct bpk_writer *writer = new_writer();
	struct bpk_tensor_desc desc = u8_desc("t", one);
	uint8_t buffer[257];
	uint64_t size = 77;
	struct bpk_error error;
	unsigned int order = 0;
	struct fake fake = { .size = 1, .order = &order };

	(void)desc;
	add_fake(writer, "t", 1, &fake);
	memset(buffer, 0xa5, sizeof(buffer));
	expect_error("256",
		     bpk_writer_write_buffer(writer, buffer, 256, NULL, &size, &error),
		     &error, -ENOBUFS, BPK_ERR_ARGUMENT,
		     "the pack needs 257 bytes, the buffer has 256");
	for (size_t i = 0; i < sizeof(buffer); i++)
		cr_assert_eq(buffer[i], 0xa5);
	/* No provider was called, so it can be tried again. */
	cr_expect_eq(bpk_writer_write_buffer(writer, buffer, 257, NULL, &size, NULL), 0);
	cr_expect_eq(size, 257u);
	cr_expect_eq(buffer[256], 0x42);
	cr_expect_eq(buffer[255], 0);
	bpk_writer_free(writer);
}

Test(writer, more_after_a_plan)
{
	static const uint64_t one[] = { 1 };
	struct bpk_writer *writer = new_writer();
	struct bpk_tensor_desc desc = u8_desc("b", one);
	uint64_t size;
	void *first, *second;

	cr_assert_eq(bpk_writer_plan(writer, &size, NULL), 0);
	cr_expect_eq(size, 256u);
	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, "x", 1, NULL), 0);
	cr_assert_eq(bpk_writer_plan(writer, &size, NULL), 0);
	cr_expect_eq(size, 257u);
	/* Without providers a writer writes as often as one likes. */
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &first, &size, NULL), 0);
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &second, &size, NULL), 0);
	cr_expect_arr_eq(first, second, 257);
	free(first);
	free(second);
	bpk_writer_free(writer);
}

/* Progress ------------------------------------------------------------------- */

struct listener {
	uint64_t last, total, largest_step;
	unsigned int calls, stop_at;
};

static int listen(void *context, uint64_t done_size, uint64_t total_size)
{
	struct listener *listener = context;

	cr_expect_geq(done_size, listener->last);
	if (done_size - listener->last > listener->largest_step)
		listener->largest_step = done_size - listener->last;
	listener->last = done_size;
	listener->total = total_size;
	return ++listener->calls == listener->stop_at;
}

Test(writer, progress)
{
	static const uint64_t sizes[] = { 20 * MIB + 5, 5 * MIB, 3 * MIB, 7, 11 * MIB };
	struct bpk_writer *writer = new_writer();
	struct listener listener = { .calls = 0 };
	const struct bpk_write_options options = { .progress = listen,
						   .context = &listener };
	uint8_t *data = calloc(1, 20 * MIB + 5);
	char name[2] = "a";
	uint64_t size;
	void *buffer;

	for (size_t i = 0; i < 5; i++, name[0]++) {
		struct bpk_tensor_desc desc = u8_desc(name, &sizes[i]);

		cr_assert_eq(bpk_writer_add_bytes(writer, &desc, data, sizes[i], NULL),
			     0);
	}
	cr_assert_eq(bpk_writer_write_new_buffer(writer, &options, &buffer, &size, NULL),
		     0);
	cr_expect_eq(listener.last, size);
	cr_expect_eq(listener.total, size);
	cr_expect_leq(listener.largest_step, 8 * MIB);
	cr_expect_geq(listener.calls, 5u);
	free(buffer);
	bpk_writer_free(writer);
	free(data);
}

Test(writer, cancel)
{
	struct bpk_writer *writer = new_writer();
	struct listener listener = { .stop_at = 2 };
	const struct bpk_write_options options = { .progress = listen,
						   .context = &listener };
	unsigned int order = 0;
	struct fake first = { .size = 20 * MIB, .order = &order };
	struct fake second = { .size = 1, .order = &order };
	struct bpk_error error;
	void *buffer = NULL;
	uint64_t size;

	add_fake(writer, "first", 20 * MIB, &first);
	add_fake(writer, "second", 1, &second);
	expect_error(
		"cancel",
		bpk_writer_write_new_buffer(writer, &options, &buffer, &size, &error),
		&error, -ECANCELED, BPK_ERR_CANCELLED,
		"cancelled after 8388864 of 20971777 bytes");
	cr_expect_null(buffer);
	cr_expect_eq(first.released, 2u);
	cr_expect_eq(second.provided, 0u);
	bpk_writer_free(writer);
}

/* A pack of nothing hears of its end too. */
Test(writer, progress_of_an_empty_pack)
{
	struct bpk_writer *writer = new_writer();
	struct listener listener = { .stop_at = 0 };
	const struct bpk_write_options options = { .progress = listen,
						   .context = &listener };
	uint8_t buffer[256];
	uint64_t size;

	cr_assert_eq(bpk_writer_write_buffer(writer, buffer, 256, &options, &size, NULL),
		     0);
	cr_expect_eq(listener.calls, 1u);
	cr_expect_eq(listener.last, 256u);
	bpk_writer_free(writer);
}

/* Ranges ---------------------------------------------------------------------- */

/* A file of 100 bytes that is read in pieces of 7; descriptor 9 always fails. */
static int fake_read(int fd, void *buffer, size_t size, uint64_t off, size_t *ret_done)
{
	uint64_t there = off < 100 ? 100 - off : 0;

	if (fd == 9)
		return -EIO;
	if (size > there)
		size = (size_t)there;
	if (size > 7)
		size = 7;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buffer)[i] = (uint8_t)(off + i);
	*ret_done = size;
	return 0;
}

Test(writer, ranges)
{
	static const struct bpk_range_ops ops = { fake_read };
	static const struct {
		const char *label;
		int fd;
		uint64_t off, size;
		int r;
		const char *message;
	} rows[] = {
		{ "all", 3, 0, 100, 0, "" },
		{ "a part", 3, 90, 10, 0, "" },
		{ "nothing behind the end", 3, 200, 0, 0, "" },
		{ "a byte more", 3, 90, 11, -ENODATA,
		  "tensor \"t\": its file ends at offset 100, 1 bytes early" },
		{ "all behind the end", 3, 200, 5, -ENODATA,
		  "tensor \"t\": its file ends at offset 200, 5 bytes early" },
		{ "unreadable", 9, 0, 1, -EIO,
		  "cannot read tensor \"t\": Input/output error" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_writer *writer = new_writer();
		struct bpk_tensor_desc desc = u8_desc("t", &rows[i].size);
		struct bpk_error error = { .message = "" };
		uint8_t buffer[512];
		uint64_t size = 0;
		int r;

		cr_assert_eq(bpk_writer_add_range_ops(writer, &desc, &ops, rows[i].fd,
						      rows[i].off, rows[i].size, NULL),
			     0);
		r = bpk_writer_write_buffer(writer, buffer, sizeof(buffer), NULL, &size,
					    &error);
		expect_error(rows[i].label, r, &error, rows[i].r, r ? BPK_ERR_IO : BPK_OK,
			     rows[i].message);
		for (uint64_t j = 0; r == 0 && j < rows[i].size; j++)
			cr_assert_eq(buffer[256 + j], rows[i].off + j, "%s",
				     rows[i].label);
		bpk_writer_free(writer);
	}
}

/* The reader has it back ------------------------------------------------------ */

Test(writer, reads_back)
{
	static const uint64_t shape[] = { 2, 0, 3 };
	static const char item[] = "\x7f\x62"
				   "F3\x61"
				   "2\xff";
	struct bpk_writer *writer = new_writer();
	struct bpk_tensor_desc desc = {
		.name = "a\0b",
		.name_size = 3,
		.dtype = BPK_DTYPE_F32,
		.dtype_cbor = item,
		.dtype_cbor_size = sizeof(item) - 1,
		.shape = shape,
		.rank = 3,
		.has_param_id = true,
		.param_id = UINT64_MAX,
		.extra = "\x61x\x80",
		.extra_size = 3,
		.extra_count = 1,
	};
	struct bpk_tensor_desc back;
	struct bpk_reader *reader = NULL;
	const struct bpk_tensor *tensor;
	struct bpk_error error = { .message = "" };
	uint64_t dims[3], size;
	void *buffer;

	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, NULL, 0, NULL), 0);
	cr_assert_eq(bpk_writer_set_extra(writer, "\x61y\x61z", 4, 1, NULL), 0);
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &buffer, &size, NULL), 0);
	cr_assert_eq(bpk_reader_open_buffer(buffer, (size_t)size, NULL, &reader, &error),
		     0, "%s", error.message);
	tensor = bpk_reader_find_tensor(reader, "a\0b", 3);
	cr_assert_not_null(tensor);
	bpk_tensor_describe(tensor, dims, &back);
	cr_expect_eq(back.dtype, BPK_DTYPE_F32);
	cr_expect_eq(back.dtype_cbor_size, sizeof(item) - 1);
	cr_expect_arr_eq(back.dtype_cbor, item, sizeof(item) - 1);
	cr_expect_eq(back.rank, 3u);
	cr_expect_arr_eq(back.shape, shape, 3);
	cr_expect(back.has_param_id);
	cr_expect_eq(back.param_id, UINT64_MAX);
	cr_expect_eq(back.extra_count, 1u);
	cr_expect_arr_eq(back.extra, "\x61x\x80", 3);
	bpk_reader_close(reader);
	free(buffer);
	bpk_writer_free(writer);
}
