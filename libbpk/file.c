/*
 * file.c - the public calls about files: the reader and the writer, which work on
 * memory alone, meet io.c here.
 */
#include "base.h"
#include "error.h"
#include "header.h"
#include "io.h"
#include "reader.h"
#include "writer.h"

#include <errno.h>
#include <inttypes.h>

/* Reader ------------------------------------------------------------------- */

static void release_file(struct bpk_source *source)
{
	bpk_io_unmap(source->data, source->file_size);
	bpk_io_close(source->fd);
}

/* Exactly @size bytes, which were there when the file's size was asked. */
static int read_all(const struct bpk_source *source, void *buffer, size_t size,
		    uint64_t off, struct bpk_error *error)
{
	char reason[128];
	size_t done;
	int r = bpk_io_read(source->fd, buffer, size, off, &done);

	if (r < 0)
		return bpk_fail(error, r, BPK_ERR_IO, off, "cannot read the pack: %s",
				strerror_r(-r, reason, sizeof(reason)));
	if (done < size)
		return bpk_fail(error, -ENODATA, BPK_ERR_TRUNCATED, off + done,
				"the file became shorter while it was read");
	return 0;
}

/* Read what must be read and make the reader of it. */
static int parse_file(struct bpk_source *source, const struct bpk_limits *limits,
		      struct bpk_reader **ret_reader, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) uint8_t *metadata = NULL;
	uint8_t head[BPK_HEADER_PEEK];
	struct bpk_header header;
	char reason[128];
	size_t head_size = source->file_size < sizeof(head) ? (size_t)source->file_size
							    : sizeof(head);
	int r;

	r = read_all(source, head, head_size, 0, error);
	if (r < 0)
		return r;
	r = bpk_header_parse(head, head_size, source->file_size, limits, &header, error);
	if (r < 0)
		return r;
	metadata = bpk_io_allocate(header.metadata_size);
	if (!metadata)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory for %" PRIu32 " bytes of metadata",
				header.metadata_size);
	r = read_all(source, metadata, header.metadata_size, BPK_HEADER_SIZE, error);
	if (r < 0)
		return r;
	r = bpk_io_map(source->fd, source->file_size, &source->data);
	if (r < 0)
		return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
				"cannot map the pack: %s",
				strerror_r(-r, reason, sizeof(reason)));
	r = bpk_reader_parse(source, &header, metadata, limits, ret_reader, error);
	if (r < 0)
		return r;
	metadata = NULL; /* the reader's now */
	return 0;
}

/* @source has the file open; it is released on failure. */
static int open_source(struct bpk_source *source, const struct bpk_limits *limits,
		       struct bpk_reader **ret_reader, struct bpk_error *error)
{
	struct bpk_limits defaults;
	int r;

	if (!limits) {
		bpk_limits_init(&defaults);
		limits = &defaults;
	}
	source->release = release_file;
	source->allocate = bpk_io_allocate;
	r = parse_file(source, limits, ret_reader, error);
	if (r < 0)
		release_file(source);
	return r;
}

BPK_EXPORT int bpk_reader_open(const char *path, const struct bpk_limits *limits,
			       struct bpk_reader **ret_reader, struct bpk_error *error)
{
	struct bpk_source source = { .fd = -1 };
	int r = bpk_io_open(path, &source.fd, &source.file_size, error);

	return r < 0 ? r : open_source(&source, limits, ret_reader, error);
}

BPK_EXPORT int bpk_reader_open_fd(int fd, const struct bpk_limits *limits,
				  struct bpk_reader **ret_reader, struct bpk_error *error)
{
	struct bpk_source source = { .fd = -1 };
	int r = bpk_io_dup(fd, &source.fd, &source.file_size, error);

	return r < 0 ? r : open_source(&source, limits, ret_reader, error);
}

/* Writer ------------------------------------------------------------------- */

static const struct bpk_range_ops range_ops = {
	.read = bpk_io_read,
};

BPK_EXPORT int bpk_writer_add_range(struct bpk_writer *writer,
				    const struct bpk_tensor_desc *desc, int fd,
				    uint64_t off, uint64_t size, struct bpk_error *error)
{
	return bpk_writer_add_range_ops(writer, desc, &range_ops, fd, off, size, error);
}

struct file_sink {
	struct bpk_sink sink;
	struct bpk_io_file file;
};

/* The sink is the first member. */
static struct bpk_io_file *sink_file(struct bpk_sink *sink)
{
	return &((struct file_sink *)sink)->file;
}

static int sink_write(struct bpk_sink *sink, const void *data, size_t size)
{
	return bpk_io_write(sink_file(sink), data, size);
}

static int sink_zeros(struct bpk_sink *sink, uint64_t size)
{
	bpk_io_skip(sink_file(sink), size);
	return 0;
}

static int sink_copy(struct bpk_sink *sink, const struct bpk_range_ops *ops, int fd,
		     uint64_t off, size_t size, size_t *ret_done)
{
	(void)ops; /* a file is copied to a file without passing through here */
	return bpk_io_copy(sink_file(sink), fd, off, size, ret_done,
			   &sink->source_failed);
}

static const struct bpk_sink_ops file_ops = {
	.write = sink_write,
	.zeros = sink_zeros,
	.copy = sink_copy,
};

/* What must hold before a file is touched. */
static int prepare(struct bpk_writer *writer, struct bpk_error *error)
{
	uint64_t size;
	int r = bpk_writer_check_fresh(writer, error);

	return r < 0 ? r : bpk_writer_plan(writer, &size, error);
}

static int run(struct bpk_writer *writer, struct file_sink *sink,
	       const struct bpk_write_options *options, struct bpk_error *error)
{
	sink->sink = (struct bpk_sink) { .ops = &file_ops, .label = sink->file.label };
	return bpk_writer_run(writer, &sink->sink, options, error);
}

static int confirm(const struct bpk_write_options *options,
		   const struct bpk_io_file *file, struct bpk_error *error)
{
	char reason[128];
	int fd, r;

	if (!options || !options->confirm)
		return 0;
	r = bpk_io_replace_reopen(file, &fd, error);
	if (r < 0)
		return r;
	r = options->confirm(options->context, fd);
	bpk_io_close(fd);
	if (!r)
		return 0;
	if (r > 0) /* no errno, but not a yes either */
		r = -ECANCELED;
	return bpk_fail(error, r, BPK_ERR_CONFIRM, BPK_NO_OFFSET,
			"%s was not replaced, as the caller decided at the end: %s",
			file->label, strerror_r(-r, reason, sizeof(reason)));
}

static int replace(struct bpk_writer *writer, struct file_sink *sink,
		   const struct bpk_write_options *options, struct bpk_error *error)
{
	int r = run(writer, sink, options, error);

	if (r >= 0)
		r = bpk_io_replace_finish(&sink->file, error);
	if (r >= 0)
		r = confirm(options, &sink->file, error);
	if (r >= 0)
		r = bpk_io_replace_commit(&sink->file, error);
	return r;
}

BPK_EXPORT int bpk_writer_write_file(struct bpk_writer *writer, const char *path,
				     const struct bpk_write_options *options,
				     struct bpk_error *error)
{
	const struct bpk_io_replace how = {
		.scratch = options ? options->scratch : NULL,
		.exclusive = options && options->exclusive,
	};
	struct file_sink sink;
	int r = prepare(writer, error);

	if (r >= 0)
		r = bpk_io_replace_begin(path, &how, &sink.file, error);
	if (r < 0)
		return r;
	r = replace(writer, &sink, options, error);
	bpk_io_done(&sink.file);
	return r;
}

/* A range of the file that is about to be truncated would be gone. */
static int check_ranges(const struct bpk_writer *writer, const struct bpk_io_file *file,
			struct bpk_error *error)
{
	for (size_t i = 0; i < bpk_writer_count(writer); i++) {
		int fd = bpk_writer_range_fd(writer, i);
		char quoted[BPK_QUOTE_SIZE];
		const char *name;
		size_t size;

		if (fd < 0 || !bpk_io_same(file, fd))
			continue;
		name = bpk_writer_name(writer, i, &size);
		return bpk_fail(
			error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
			"tensor %s is a range of %s, which cannot be written in place",
			bpk_quote(quoted, name, size), file->label);
	}
	return 0;
}

static int write_in_place(struct bpk_writer *writer, struct file_sink *sink,
			  const struct bpk_write_options *options,
			  struct bpk_error *error)
{
	int r = check_ranges(writer, &sink->file, error);

	if (r >= 0)
		r = bpk_io_in_place_truncate(&sink->file, error);
	if (r >= 0)
		r = run(writer, sink, options, error);
	if (r >= 0)
		r = bpk_io_in_place_close(&sink->file, error);
	return r;
}

BPK_EXPORT int bpk_writer_write_file_in_place(struct bpk_writer *writer, const char *path,
					      const struct bpk_write_options *options,
					      struct bpk_error *error)
{
	struct file_sink sink;
	int r = prepare(writer, error);

	if (r >= 0)
		r = bpk_io_in_place_open(path, &sink.file, error);
	if (r < 0)
		return r;
	r = write_in_place(writer, &sink, options, error);
	bpk_io_done(&sink.file);
	return r;
}
