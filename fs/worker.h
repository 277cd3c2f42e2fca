/*
 * worker.h - work that a request asks for and that may take a while, or that has to wait
 * for another request: on a thread of its own, which then gives the answer. All of it is
 * over before the last commit begins.
 */
#ifndef BPKFS_WORKER_H
#define BPKFS_WORKER_H

#include <pthread.h>
#include <stdbool.h>

/* Who is at work for one mount. Its lock is behind all others. */
struct workers {
	pthread_mutex_t lock; /* guards count */
	pthread_cond_t idle;  /* the last of them is done */
	unsigned count;
};
#define WORKERS_INITIALIZER                                                              \
	{                                                                                \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0                   \
	}

/* Have @work done, which answers. 0, or -errno and @work is not called. */
int worker_start(struct workers *workers, void (*work)(void *context), void *context);
/* Is nobody at work? */
bool worker_idle(struct workers *workers);
/* Until there is none. No more may be started meanwhile. */
void worker_wait(struct workers *workers);

#endif
