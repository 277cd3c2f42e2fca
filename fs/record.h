/*
 * record.h - which of Burn's records a pack is, by its content: FORMAT.md knows nothing
 * of them, they are a use of names.
 *
 * An optimizer record has the state of parameters: tensors and scalars
 * {param_id}.{field}, where the scalar {param_id}.__rank or the metadata {param_id} is
 * there, or the tensor has that very param_id. A scheduler record has other scalars and
 * no tensors, a module record tensors and no scalars. Call with the mount's lock.
 */
#ifndef BPKFS_RECORD_H
#define BPKFS_RECORD_H

#include "overlay.h"

/* "module", "optimizer", "scheduler", or "mixed" for what is more than one of them; NULL
 * for a pack without tensors and scalars. */
const char *record_of(const struct overlay *overlay);

/* The size of the param_id that the name of a tensor or scalar of state begins with; 0
 * for another name. */
size_t record_parameter(const struct overlay *overlay, const struct entry *entry);

#endif
