/*
 * writer.c - the public writer over plan.c, and the write pass.
 *
 * Knows the three places a tensor's bytes come from and asks for them in the order
 * in which the tensors were added. Refuses to know what a sink is made of: there
 * is no system call here.
 *
 * Invariants: between two providers no memory of the first is held; a provider is
 * called at most once, and released exactly when it succeeded; a sink is given
 * exactly the planned number of bytes or the write has failed.
 */
#include "writer.h"

#include "error.h"
#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum payload_kind {
	PAYLOAD_BYTES,
	PAYLOAD_DEFERRED,
	PAYLOAD_RANGE,
};

/* Where the bytes of one tensor come from; its size is in the plan. */
struct payload {
	enum payload_kind kind;
	union {
		const void *bytes;
		struct bpk_provider provider;
		struct {
			const struct bpk_range_ops *ops;
			int fd;
			uint64_t off;
		} range;
	};
};

struct bpk_writer {
	struct bpk_plan plan;
	struct payload *payloads; /* beside plan.tensors.items */
	size_t payload_capacity;
	bool spent; /* a provider has been called */
};

/* One write pass. */
struct pass {
	struct bpk_sink *sink;
	const struct bpk_write_options *options;
	struct bpk_error *error;
	uint64_t total;
	uint64_t done;
	uint64_t told; /* what the progress callback heard last */
	bool any_told;
};

BPK_EXPORT int bpk_writer_new(const struct bpk_limits *limits,
			      struct bpk_writer **ret_writer)
{
	struct bpk_writer *writer = calloc(1, sizeof(*writer));

	if (!writer)
		return -ENOMEM;
	if (limits)
		writer->plan.limits = *limits;
	else
		bpk_limits_init(&writer->plan.limits);
	*ret_writer = writer;
	return 0;
}

BPK_EXPORT void bpk_writer_free(struct bpk_writer *writer)
{
	if (!writer)
		return;
	bpk_plan_done(&writer->plan);
	free(writer->payloads);
	free(writer);
}

static int add(struct bpk_writer *writer, const struct bpk_tensor_desc *desc,
	       uint64_t size, const struct payload *payload, struct bpk_error *error)
{
	void *payloads = writer->payloads;
	size_t index = writer->plan.tensors.count;
	int r;

	if (bpk_grow(&payloads, &writer->payload_capacity, index + 1,
		     sizeof(*writer->payloads)) < 0)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"out of memory");
	writer->payloads = payloads;
	r = bpk_plan_add_tensor(&writer->plan, desc, size, error);
	if (r < 0)
		return r;
	writer->payloads[index] = *payload;
	return 0;
}

static int bad_source(const struct bpk_tensor_desc *desc, const char *why,
		      struct bpk_error *error)
{
	char name[BPK_QUOTE_SIZE];

	return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET, "tensor %s: %s",
			bpk_quote(name, desc->name, desc->name ? desc->name_size : 0),
			why);
}

BPK_EXPORT int bpk_writer_add_bytes(struct bpk_writer *writer,
				    const struct bpk_tensor_desc *desc, const void *data,
				    uint64_t size, struct bpk_error *error)
{
	const struct payload payload = { .kind = PAYLOAD_BYTES, .bytes = data };

	if (size && !data)
		return bad_source(desc, "a size without data", error);
	return add(writer, desc, size, &payload, error);
}

BPK_EXPORT int bpk_writer_add_deferred(struct bpk_writer *writer,
				       const struct bpk_tensor_desc *desc, uint64_t size,
				       const struct bpk_provider *provider,
				       struct bpk_error *error)
{
	struct payload payload = { .kind = PAYLOAD_DEFERRED };

	if (!provider || !provider->provide)
		return bad_source(desc, "there is no provider", error);
	payload.provider = *provider;
	return add(writer, desc, size, &payload, error);
}

int bpk_writer_add_range_ops(struct bpk_writer *writer,
			     const struct bpk_tensor_desc *desc,
			     const struct bpk_range_ops *ops, int fd, uint64_t off,
			     uint64_t size, struct bpk_error *error)
{
	const struct payload payload = {
		.kind = PAYLOAD_RANGE,
		.range = { .ops = ops, .fd = fd, .off = off },
	};
	char name[BPK_QUOTE_SIZE];
	uint64_t end;

	if (fd < 0)
		return bad_source(desc, "a range without a file", error);
	if (!bpk_add_u64(off, size, &end) || end > INT64_MAX)
		return bpk_fail(
			error, -EOVERFLOW, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
			"tensor %s: its range ends where no file does",
			bpk_quote(name, desc->name, desc->name ? desc->name_size : 0));
	return add(writer, desc, size, &payload, error);
}

BPK_EXPORT void bpk_writer_allow_odd_sizes(struct bpk_writer *writer, bool allow)
{
	writer->plan.allow_odd_sizes = allow;
}

BPK_EXPORT int bpk_writer_set_scalar(struct bpk_writer *writer, const char *name,
				     size_t name_size, struct bpk_scalar_value value,
				     struct bpk_error *error)
{
	return bpk_plan_set_scalar(&writer->plan, name, name_size, value, error);
}

BPK_EXPORT int bpk_writer_set_metadata(struct bpk_writer *writer, const char *key,
				       size_t key_size, const char *value,
				       size_t value_size, struct bpk_error *error)
{
	return bpk_plan_set_metadata(&writer->plan, key, key_size, value, value_size,
				     error);
}

BPK_EXPORT int bpk_writer_set_extra(struct bpk_writer *writer, const void *extra,
				    size_t extra_size, size_t extra_count,
				    struct bpk_error *error)
{
	return bpk_plan_set_extra(&writer->plan, extra, extra_size, extra_count, error);
}

BPK_EXPORT int bpk_writer_plan(struct bpk_writer *writer, uint64_t *ret_size,
			       struct bpk_error *error)
{
	int r = bpk_plan_run(&writer->plan, error);

	if (r < 0)
		return r;
	*ret_size = writer->plan.file_size;
	return 0;
}

size_t bpk_writer_count(const struct bpk_writer *writer)
{
	return writer->plan.tensors.count;
}

int bpk_writer_range_fd(const struct bpk_writer *writer, size_t index)
{
	const struct payload *payload = &writer->payloads[index];

	return payload->kind == PAYLOAD_RANGE ? payload->range.fd : -1;
}

const char *bpk_writer_name(const struct bpk_writer *writer, size_t index,
			    size_t *ret_size)
{
	const struct bpk_named *named = writer->plan.tensors.items[index];

	*ret_size = named->name_size;
	return named->name;
}

int bpk_writer_check_fresh(const struct bpk_writer *writer, struct bpk_error *error)
{
	if (!writer->spent)
		return 0;
	return bpk_fail(
		error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
		"the providers of this writer have been called: it cannot write again");
}

/* The write pass ----------------------------------------------------------- */

static int tell(struct pass *pass)
{
	const struct bpk_write_options *options = pass->options;

	pass->told = pass->done;
	pass->any_told = true;
	if (!options || !options->progress)
		return 0;
	if (!options->progress(options->context, pass->done, pass->total))
		return 0;
	return bpk_fail(pass->error, -ECANCELED, BPK_ERR_CANCELLED, BPK_NO_OFFSET,
			"cancelled after %" PRIu64 " of %" PRIu64 " bytes", pass->done,
			pass->total);
}

/*
 * @size more bytes, at most BPK_PIECE_SIZE, are next: tell first when the callback
 * would hear too late of them. (Not by cutting pieces: a range is shared with its
 * source best in large ones.)
 */
static int before(struct pass *pass, uint64_t size)
{
	return pass->done - pass->told + size > BPK_PIECE_SIZE ? tell(pass) : 0;
}

static size_t piece(uint64_t left)
{
	return (size_t)(left < BPK_PIECE_SIZE ? left : BPK_PIECE_SIZE);
}

/* @what: what was being written, for the message; @verb "write" or "read". */
static int io_failed(struct pass *pass, int r, const char *verb, const char *what)
{
	char reason[128];

	return bpk_fail(pass->error, r, BPK_ERR_IO, BPK_NO_OFFSET, "cannot %s %s%s%s: %s",
			verb, what, *verb == 'w' ? " to " : "",
			*verb == 'w' ? pass->sink->label : "",
			strerror_r(-r, reason, sizeof(reason)));
}

static int write_bytes(struct pass *pass, const void *data, uint64_t size,
		       const char *what)
{
	const uint8_t *at = data;

	while (size) {
		size_t now = piece(size);
		int r = before(pass, now);

		if (r < 0)
			return r;
		r = pass->sink->ops->write(pass->sink, at, now);
		if (r < 0)
			return io_failed(pass, r, "write", what);
		at += now;
		size -= now;
		pass->done += now;
	}
	return 0;
}

/* Zeros up to @off from the start of the pack. */
static int pad_to(struct pass *pass, uint64_t off, const char *what)
{
	uint64_t size = off - pass->done;
	int r;

	if (!size)
		return 0;
	r = before(pass, size);
	if (r < 0)
		return r;
	r = pass->sink->ops->zeros(pass->sink, size);
	if (r < 0)
		return io_failed(pass, r, "write", what);
	pass->done += size;
	return 0;
}

static int check_provided(struct pass *pass, const char *what, uint64_t declared,
			  const void *data, uint64_t given)
{
	if (given != declared)
		return bpk_fail(pass->error, -EPROTO, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"%s: %" PRIu64 " bytes were declared, its provider gave "
				"%" PRIu64,
				what, declared, given);
	if (given && !data)
		return bpk_fail(pass->error, -EPROTO, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"%s: its provider gave no data", what);
	return 0;
}

static int write_provided(struct bpk_writer *writer, struct pass *pass,
			  const struct bpk_provider *provider, uint64_t size,
			  const char *what)
{
	const void *data = NULL;
	uint64_t given = 0;
	char reason[128];
	int r;

	/* A chance to cancel before work that may be long. */
	r = pass->done == pass->told ? 0 : tell(pass);
	if (r < 0)
		return r;
	writer->spent = true;
	r = provider->provide(provider->context, &data, &given);
	if (r > 0)
		return bpk_fail(pass->error, -EPROTO, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"%s: its provider returned %d, which is no errno", what,
				r);
	if (r < 0)
		return bpk_fail(pass->error, r, BPK_ERR_PROVIDER, BPK_NO_OFFSET,
				"%s: its provider failed: %s", what,
				strerror_r(-r, reason, sizeof(reason)));
	r = check_provided(pass, what, size, data, given);
	if (r >= 0)
		r = write_bytes(pass, data, size, what);
	if (provider->release)
		provider->release(provider->context, data, given);
	return r;
}

static int write_range(struct pass *pass, const struct payload *payload, uint64_t size,
		       const char *what)
{
	struct bpk_sink *sink = pass->sink;
	uint64_t off = payload->range.off, left = size;

	while (left) {
		size_t now = piece(left), done = 0;
		int r = before(pass, now);

		if (r < 0)
			return r;
		sink->source_failed = false;
		r = sink->ops->copy(sink, payload->range.ops, payload->range.fd, off, now,
				    &done);
		if (r < 0)
			return io_failed(pass, r, sink->source_failed ? "read" : "write",
					 what);
		if (!done)
			return bpk_fail(pass->error, -ENODATA, BPK_ERR_IO, BPK_NO_OFFSET,
					"%s: its file ends at offset %" PRIu64
					", %" PRIu64 " bytes early",
					what, off, left);
		off += done;
		left -= done;
		pass->done += done;
	}
	return 0;
}

static int write_tensor(struct bpk_writer *writer, struct pass *pass, size_t index)
{
	const struct bpk_plan_tensor *tensor = bpk_plan_tensor(&writer->plan, index);
	const struct payload *payload = &writer->payloads[index];
	char name[BPK_QUOTE_SIZE], what[BPK_QUOTE_SIZE + 16];
	int r;

	snprintf(what, sizeof(what), "tensor %s",
		 bpk_quote(name, tensor->named.name, tensor->named.name_size));
	r = pad_to(pass, writer->plan.data_off + tensor->start, what);
	if (r < 0)
		return r;
	switch (payload->kind) {
	case PAYLOAD_BYTES:
		return write_bytes(pass, payload->bytes, tensor->size, what);
	case PAYLOAD_DEFERRED:
		return write_provided(writer, pass, &payload->provider, tensor->size,
				      what);
	case PAYLOAD_RANGE:
		return write_range(pass, payload, tensor->size, what);
	}
	return -EINVAL; /* not reached: every kind is above */
}

int bpk_writer_run(struct bpk_writer *writer, struct bpk_sink *sink,
		   const struct bpk_write_options *options, struct bpk_error *error)
{
	const struct bpk_plan *plan = &writer->plan;
	struct pass pass = {
		.sink = sink,
		.options = options,
		.error = error,
	};
	int r;

	r = bpk_writer_check_fresh(writer, error);
	if (r < 0)
		return r;
	r = bpk_plan_run(&writer->plan, error);
	if (r < 0)
		return r;
	pass.total = plan->file_size;
	r = write_bytes(&pass, plan->front, plan->front_size, "the metadata");
	if (r < 0)
		return r;
	r = pad_to(&pass, plan->data_off, "the metadata");
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->tensors.count; i++) {
		r = write_tensor(writer, &pass, i);
		if (r < 0)
			return r;
	}
	return pass.any_told && pass.told == pass.total ? 0 : tell(&pass);
}

/* Sinks in memory ---------------------------------------------------------- */

struct buffer_sink {
	struct bpk_sink sink;
	uint8_t *at;
};

/* The sink is the first member. */
static struct buffer_sink *buffer_sink(struct bpk_sink *sink)
{
	return (struct buffer_sink *)sink;
}

static int buffer_write(struct bpk_sink *sink, const void *data, size_t size)
{
	struct buffer_sink *buffer = buffer_sink(sink);

	memcpy(buffer->at, data, size);
	buffer->at += size;
	return 0;
}

static int buffer_zeros(struct bpk_sink *sink, uint64_t size)
{
	struct buffer_sink *buffer = buffer_sink(sink);

	memset(buffer->at, 0, (size_t)size);
	buffer->at += size;
	return 0;
}

static int buffer_copy(struct bpk_sink *sink, const struct bpk_range_ops *ops, int fd,
		       uint64_t off, size_t size, size_t *ret_done)
{
	struct buffer_sink *buffer = buffer_sink(sink);
	int r = ops->read(fd, buffer->at, size, off, ret_done);

	if (r < 0) {
		sink->source_failed = true;
		return r;
	}
	buffer->at += *ret_done;
	return 0;
}

static const struct bpk_sink_ops buffer_ops = {
	.write = buffer_write,
	.zeros = buffer_zeros,
	.copy = buffer_copy,
};

BPK_EXPORT int bpk_writer_write_buffer(struct bpk_writer *writer, void *buffer,
				       uint64_t size,
				       const struct bpk_write_options *options,
				       uint64_t *ret_size, struct bpk_error *error)
{
	struct buffer_sink sink = {
		.sink = { .ops = &buffer_ops, .label = "the buffer" },
		.at = buffer,
	};
	int r;

	r = bpk_plan_run(&writer->plan, error);
	if (r < 0)
		return r;
	if (size < writer->plan.file_size)
		return bpk_fail(error, -ENOBUFS, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
				"the pack needs %" PRIu64
				" bytes, the buffer has %" PRIu64,
				writer->plan.file_size, size);
	r = bpk_writer_run(writer, &sink.sink, options, error);
	if (r < 0)
		return r;
	*ret_size = writer->plan.file_size;
	return 0;
}

BPK_EXPORT int bpk_writer_write_new_buffer(struct bpk_writer *writer,
					   const struct bpk_write_options *options,
					   void **ret_buffer, uint64_t *ret_size,
					   struct bpk_error *error)
{
	uint64_t size;
	void *buffer;
	int r;

	r = bpk_writer_plan(writer, &size, error);
	if (r < 0)
		return r;
	buffer = size > SIZE_MAX ? NULL : malloc((size_t)size);
	if (!buffer)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory for a pack of %" PRIu64 " bytes", size);
	r = bpk_writer_write_buffer(writer, buffer, size, options, ret_size, error);
	if (r < 0) {
		free(buffer);
		return r;
	}
	*ret_buffer = buffer;
	return 0;
}
