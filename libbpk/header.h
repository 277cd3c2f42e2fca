/*
 * header.h - the fixed ten bytes at the start of a pack: what they must be, and
 * what a file that is no pack looks like instead.
 */
#ifndef BPK_HEADER_H
#define BPK_HEADER_H

#include "base.h"
#include "bpk.h"

/* The first four bytes, "NRUB": 0x4255524E in little endian. */
#define BPK_MAGIC UINT32_C(0x4255524e)
/* Bytes to show to bpk_header_parse(), so that it can say what a file that is no
 * burnpack looks like. The header is the first BPK_HEADER_SIZE of them. */
#define BPK_HEADER_PEEK 512u

struct bpk_header {
	uint16_t version;
	uint32_t metadata_size;
	uint64_t data_off; /* where the data section starts: aligned, and behind the
			    * end of a file that holds no data and no padding */
};

/*
 * Check the start of a pack of @file_size bytes: @head are its first @head_size
 * bytes, which must be min(@file_size, BPK_HEADER_PEEK). In this order: the size
 * limit, ten bytes, magic, version, metadata limit, the metadata lies inside the
 * file. After it an allocation of metadata_size bytes is backed by real bytes.
 *
 * Errors: BPK_ERR_LIMIT, _NOT_BURNPACK, _TRUNCATED, _VERSION.
 */
int bpk_header_parse(const void *head, size_t head_size, uint64_t file_size,
		     const struct bpk_limits *limits, struct bpk_header *ret_header,
		     struct bpk_error *error);

#endif
