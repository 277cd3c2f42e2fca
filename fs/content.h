/*
 * content.h - what reads of an entry see: (entry, offset, size) to bytes.
 *
 * Text (scalars, metadata) is rendered here; the bytes of a tensor are named, not
 * touched: an address in the mapping or a staged file. Call with the mount's lock.
 */
#ifndef BPKFS_CONTENT_H
#define BPKFS_CONTENT_H

#include "overlay.h"

/* Size of an entry as stat(2) shows it. @writer: as a handle that writes sees it. */
uint64_t content_size(const struct overlay *overlay, const struct entry *entry,
		      bool writer);
/* The bytes [@off, @off + @size) of a text to @buffer; how many there were. */
size_t content_text(const struct overlay *overlay, const struct entry *entry, bool writer,
		    uint64_t off, size_t size, char *buffer);
/* True for scalars and metadata. */
bool content_is_text(const struct entry *entry);
/* The bytes of a tensor or scratch file: *@ret_staged (a new reference), or, when
 * that is NULL, *@ret_data in the mapping, *@ret_size bytes. */
void content_data(const struct overlay *overlay, const struct entry *entry,
		  struct staged **ret_staged, const char **ret_data, uint64_t *ret_size);

#endif
