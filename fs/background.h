/*
 * background.h - going to the background: the caller waits until the child says that
 * the mount answers, or ends; the child's messages are on the caller's stderr till
 * then. It knows nothing of packs or mounts.
 */
#ifndef BPKFS_BACKGROUND_H
#define BPKFS_BACKGROUND_H

#include <stdbool.h>

#include "status.h"

struct background {
	int ready_fd; /* in the child: the caller waits at its other end; else -1 */
};

/*
 * Fork. In the caller, *@ret_caller is true and the result is what it is to exit
 * with: STATUS_OK when the child is ready, else the child's. In the child, false
 * and STATUS_OK. When there is no child, true and STATUS_MOUNT_POINT, said why.
 */
enum status background_start(struct background *background, bool *ret_caller);

/* The child lets the caller go: from here on it has no terminal, and what it says
 * goes to syslog. Nothing in the foreground. */
void background_ready(struct background *background);

#endif
