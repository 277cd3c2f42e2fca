/*
 * record.c - see record.h.
 */
#include "record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RANK "__rank"

/* How many digits of a param_id, as Burn writes it, @name begins with; 0 for none. */
static size_t param_id_size(const char *name, size_t size, uint64_t *ret_id)
{
	uint64_t id = 0;
	size_t at = 0;

	for (; at < size && name[at] >= '0' && name[at] <= '9'; at++) {
		unsigned digit = (unsigned)(name[at] - '0');

		if (at && !id)
			return 0; /* "07" */
		if (__builtin_mul_overflow(id, 10, &id) ||
		    __builtin_add_overflow(id, digit, &id))
			return 0;
	}
	*ret_id = id;
	return at;
}

static bool has_own_id(const struct overlay *overlay, const struct entry *entry,
		       uint64_t id)
{
	uint64_t own;

	if (entry->kind != ITEM_TENSOR)
		return false;
	if (entry->item)
		return entry->item->has_param_id && entry->item->param_id == id;
	return bpk_tensor_param_id(bpk_reader_tensor(overlay->reader, entry->base),
				   &own) &&
	       own == id;
}

size_t record_parameter(const struct overlay *overlay, const struct entry *entry)
{
	char rank[sizeof("18446744073709551615." RANK)];
	struct entry found;
	uint64_t id;
	size_t size, digits;
	const char *name = entry_name(overlay, entry, &size);
	int rank_size;

	digits = param_id_size(name, size, &id);
	if (!digits || digits == size || name[digits] != '.')
		return 0;
	rank_size = snprintf(rank, sizeof(rank), "%" PRIu64 "." RANK, id);
	if (has_own_id(overlay, entry, id) ||
	    overlay_find(overlay, ITEM_SCALAR, rank, (size_t)rank_size, &found) ||
	    overlay_find(overlay, ITEM_METADATA, name, digits, &found))
		return digits;
	return 0;
}

/* Is there state, and is there something else? */
static void look_through(const struct overlay *overlay, enum item_kind kind,
			 bool *ret_state, bool *ret_other)
{
	struct entry entry;
	bool more = overlay_seek(overlay, kind, "", 0, &entry);

	*ret_other = false;
	for (; more && !(*ret_state && *ret_other);
	     more = overlay_next(overlay, &entry, &entry))
		if (entry_counts(&entry))
			*(record_parameter(overlay, &entry) ? ret_state : ret_other) =
				true;
}

const char *record_of(const struct overlay *overlay)
{
	bool optimizer = false, module, scheduler;

	look_through(overlay, ITEM_TENSOR, &optimizer, &module);
	look_through(overlay, ITEM_SCALAR, &optimizer, &scheduler);
	if (optimizer + module + scheduler > 1)
		return "mixed";
	return optimizer   ? "optimizer"
	       : module	   ? "module"
	       : scheduler ? "scheduler"
			   : NULL;
}
