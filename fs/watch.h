/*
 * watch.h - what goes on beside the requests of a mount, in a thread of its own: to
 * find out that the mount answers, to wait for a signal that ends it, and to take it
 * down when nobody has used it for long enough. It knows no FUSE and commits nothing;
 * it makes the serving thread end, which does.
 */
#ifndef BPKFS_WATCH_H
#define BPKFS_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct watch {
	/* Filled by the caller; constant while the thread runs. */
	bool writable;
	const char *path; /* of the mount point, absolute */
	int device_fd;	  /* by which the kernel's requests come */
	unsigned timeout; /* seconds that it may be idle; 0: for ever */
	/* Has it been asked for something since the last call, or is a file open? */
	bool (*in_use)(void *context);
	/* The mount answers. When it gives false, the mount is to end. */
	bool (*ready)(void *context);
	/* A writable mount is about to be ended by a signal; requests are still served.
	 */
	void (*save)(void *context);
	/* Make the serving thread end; called again until watch_end(), also when it
	 * has ended. */
	void (*stop)(void *context);
	void *context;

	/* For the caller to read after watch_end(). */
	bool is_ready;
	int signal; /* that ended the mount, or 0 */

	/* The thread's own. */
	pthread_t thread;
	int signal_fd;
	int end_fd;
	uint32_t device[2]; /* what is mounted at @path */
	int64_t used_ms;    /* when it was last found in use */
};

/* Start when mounted, before serving; 0 or -errno. */
int watch_start(struct watch *watch);
/* What is seen at its path is something else: it was unmounted, or another mount lies
 * over it, which must not be unmounted in its place. From any thread. */
bool watch_is_elsewhere(const struct watch *watch);
/* When serving is over and what is mounted was taken down if it can be, so that no
 * request of ours can hang: wait for the thread's end. */
void watch_end(struct watch *watch);

#endif
