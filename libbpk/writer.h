/*
 * writer.h - the write pass, and what it needs from a place to write to and from a
 * file to copy from. The writer makes no system call: file.c brings those.
 */
#ifndef BPK_WRITER_H
#define BPK_WRITER_H

#include "bpk.h"

/* The most bytes that are handed to a sink at once. */
#define BPK_PIECE_SIZE (UINT64_C(8) << 20)

/* A file that bytes are copied from. */
struct bpk_range_ops {
	/* Up to @size bytes at @off into @buffer; *@ret_done is 0 only at the end of
	 * the file. 0 or -errno. */
	int (*read)(int fd, void *buffer, size_t size, uint64_t off, size_t *ret_done);
};

/* bpk_writer_add_range() with the way to read @fd; @ops must stay. */
int bpk_writer_add_range_ops(struct bpk_writer *writer,
			     const struct bpk_tensor_desc *desc,
			     const struct bpk_range_ops *ops, int fd, uint64_t off,
			     uint64_t size, struct bpk_error *error);

/*
 * Where a pack is written to, front to back. Embedded in what knows the place; each
 * call takes up where the last one stopped. 0 or -errno.
 */
struct bpk_sink {
	const struct bpk_sink_ops *ops;
	/* In messages, behind "to": "the buffer", or a quoted path. */
	const char *label;
	/* Set by copy() when it was the source that failed. */
	bool source_failed;
};

struct bpk_sink_ops {
	/* All of @size bytes, at most BPK_PIECE_SIZE of them. */
	int (*write)(struct bpk_sink *sink, const void *data, size_t size);
	/* @size zero bytes. */
	int (*zeros)(struct bpk_sink *sink, uint64_t size);
	/* Up to @size bytes at @off of @fd. *@ret_done may be less, and is 0 only
	 * at the end of that file. */
	int (*copy)(struct bpk_sink *sink, const struct bpk_range_ops *ops, int fd,
		    uint64_t off, size_t size, size_t *ret_done);
};

/* Write the whole planned pack to @sink. Errors: those common to the sinks. */
int bpk_writer_run(struct bpk_writer *writer, struct bpk_sink *sink,
		   const struct bpk_write_options *options, struct bpk_error *error);

/* Refuse a writer whose providers are spent: -EINVAL. */
int bpk_writer_check_fresh(const struct bpk_writer *writer, struct bpk_error *error);

/* The file behind the @index-th tensor added, -1 when it is no range. @index is below
 * bpk_writer_count(). */
size_t bpk_writer_count(const struct bpk_writer *writer);
int bpk_writer_range_fd(const struct bpk_writer *writer, size_t index);
/* Its name, borrowed, for messages. */
const char *bpk_writer_name(const struct bpk_writer *writer, size_t index,
			    size_t *ret_size);

#endif
