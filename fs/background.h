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
	int null_fd;  /* in the child, until it is ready */
};

/* A process that was started with descriptors 0, 1 or 2 closed gets /dev/null there,
 * so that no pack is opened in their place. First of all. */
void background_fill_standard(void);
/* What the caller had open is not to be kept open by a daemon. Before anything else
 * is opened, and when paths like /dev/fd/N are resolved. */
void background_close_inherited(void);

/*
 * Fork. In the caller, *@ret_caller is true and the result is what it is to exit
 * with: STATUS_OK when the child is ready, else the child's. A signal that the caller
 * gets meanwhile (signals_block() has been called) is the child's to heed, which
 * cleans up. In the child, false and STATUS_OK. When there is no child, true and
 * STATUS_MOUNT_POINT, said why.
 */
enum status background_start(struct background *background, bool *ret_caller);

/* The child lets the caller go: from here on it has no terminal, and what it says
 * goes to syslog. False when the caller is gone without having waited: nobody would
 * know of the mount. In the foreground nothing, and true. */
bool background_ready(struct background *background);

#endif
