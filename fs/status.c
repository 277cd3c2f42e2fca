/*
 * status.c - error codes of the library to exit codes of the command.
 */
#include "status.h"

enum status status_of_error(const struct bpk_error *error)
{
	switch (error->code) {
	case BPK_ERR_NOT_BURNPACK:
		return STATUS_NOT_BURNPACK;
	case BPK_ERR_VERSION:
		return STATUS_NEWER_VERSION;
	case BPK_ERR_TRUNCATED:
		return STATUS_TRUNCATED;
	case BPK_ERR_MALFORMED:
	case BPK_ERR_OVERFLOW:
		return STATUS_MALFORMED;
	case BPK_ERR_LIMIT:
		return STATUS_OVER_LIMIT;
	case BPK_OK:
	case BPK_ERR_IO:
	case BPK_ERR_MEMORY:
	case BPK_ERR_ARGUMENT:
	case BPK_ERR_DUPLICATE:
	case BPK_ERR_SIZE_MISMATCH:
	case BPK_ERR_PROVIDER:
	case BPK_ERR_CANCELLED:
	case BPK_ERR_CONFIRM:
	case BPK_ERR_RECORD:
	default:
		return STATUS_CANNOT_OPEN;
	}
}
