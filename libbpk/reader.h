/*
 * reader.h - how a reader is made of bytes that somebody else has fetched. The
 * reader makes no system call: file.c opens, reads and maps, and hands over.
 *
 * To open a file: fstat() it, read min(size, BPK_HEADER_PEEK) bytes, give them to
 * bpk_header_parse(), read header.metadata_size bytes at BPK_HEADER_SIZE into a
 * malloc()ed block (at least one byte), map, and call bpk_reader_parse().
 */
#ifndef BPK_READER_H
#define BPK_READER_H

#include "bpk.h"
#include "header.h"
#include "meta.h"

/* Where the bytes of a pack come from, and how to let go of them. */
struct bpk_source {
	const void *data;   /* the whole pack: a mapping or a caller's buffer */
	uint64_t file_size; /* bytes at data */
	int fd;		    /* for bpk_reader_fd(); -1 for a buffer */
	/* Unmap and close, called once from bpk_reader_close(); NULL when the bytes
	 * belong to somebody else. */
	void (*release)(struct bpk_source *source);
	/* A block for free(3) that will be filled; NULL: malloc(3) does. */
	void *(*allocate)(size_t size);
};

/* For reader.c and check.c only. */
struct bpk_reader {
	struct bpk_source source;
	struct bpk_header header;
	uint8_t *metadata;
	struct bpk_meta meta;
};

/*
 * Make a reader. @metadata is a malloc()ed copy of the metadata, as long as
 * header->metadata_size says; it is changed in place. Reads nothing through
 * source->data.
 *
 * On success *@ret_reader owns @metadata and a copy of *@source. On failure both
 * stay the caller's, to free and to release; the content of @metadata is then
 * undefined. @limits may not be NULL here.
 *
 * Errors: BPK_ERR_MEMORY, _TRUNCATED, _MALFORMED, _LIMIT.
 */
int bpk_reader_parse(const struct bpk_source *source, const struct bpk_header *header,
		     uint8_t *metadata, const struct bpk_limits *limits,
		     struct bpk_reader **ret_reader, struct bpk_error *error);

#endif
