/*
 * worker.h - work that a request asks for and that may take a while, or that has to wait
 * for another request: on a thread of its own, which then gives the answer. All of it is
 * over before the last commit begins.
 */
#ifndef BPKFS_WORKER_H
#define BPKFS_WORKER_H

#include "mount.h"

/* Have @work done, which answers. 0, or -errno and @work is not called. Not with the
 * mount's lock. */
int worker_start(struct mount *mount, void (*work)(void *context), void *context);
/* Until there is none. No more may be started meanwhile. */
void worker_wait(struct mount *mount);

#endif
