/*
 * pack_text.h - the pack told in text: index.tsv for awk, pack.json for jq. Both
 * say what is in the mount now, edits included. Call with the mount's lock.
 */
#ifndef BPKFS_PACK_TEXT_H
#define BPKFS_PACK_TEXT_H

#include "overlay.h"

/*
 * A header line, then a line for each tensor in name order: name, dtype, shape,
 * bytes, offset, param_id, with a tab between. What a tensor does not have is
 * empty. A tab, new line, carriage return, NUL or backslash in a name is \t, \n,
 * \r, \0 or \\. malloc'd; NULL without memory.
 */
char *pack_text_index(const struct overlay *overlay, size_t *ret_size);

/*
 * One JSON object: format_version, file_size, metadata_size, data_offset, record
 * (see record.h; or null), and the objects tensors, scalars and metadata by name. Values
 * that JSON has no number for (inf, nan) are strings. malloc'd; NULL without memory.
 */
char *pack_text_json(const struct overlay *overlay, size_t *ret_size);

#endif
