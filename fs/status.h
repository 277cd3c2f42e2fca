/*
 * status.h - the exit status of bpkfs, the same for a mount, for --unmount and
 * under -f. The table in README.md and the manual says it to users.
 */
#ifndef BPKFS_STATUS_H
#define BPKFS_STATUS_H

#include "bpk.h"

enum status {
	STATUS_OK = 0,
	STATUS_USAGE = 1,
	STATUS_MOUNT_POINT = 10,
	STATUS_CANNOT_OPEN = 11,
	STATUS_NOT_BURNPACK = 12,
	STATUS_NEWER_VERSION = 13,
	STATUS_TRUNCATED = 14,
	STATUS_MALFORMED = 15,
	STATUS_OVER_LIMIT = 16,
	STATUS_IN_USE = 20,
	STATUS_CANNOT_STAGE = 21,
	STATUS_COMMIT_FAILED = 22,
	STATUS_PACK_CHANGED = 23,
	STATUS_INVALID_LEFT_OUT = 24,
};

/* What a pack that could not be opened exits with. */
enum status status_of_error(const struct bpk_error *error);

#endif
