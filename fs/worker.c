/*
 * worker.c - see worker.h.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

struct job {
	struct workers *workers;
	void (*work)(void *context);
	void *context;
};

static void count_less(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	if (!--workers->count)
		pthread_cond_signal(&workers->idle);
	pthread_mutex_unlock(&workers->lock);
}

static void *run(void *context)
{
	struct job job = *(struct job *)context;

	free(context);
	job.work(job.context);
	count_less(job.workers);
	return NULL;
}

int worker_start(struct workers *workers, void (*work)(void *context), void *context)
{
	struct job *job = malloc(sizeof(*job));
	pthread_attr_t attributes;
	pthread_t thread;
	int error = ENOMEM;

	if (!job)
		return -ENOMEM;
	*job = (struct job) { workers, work, context };
	pthread_mutex_lock(&workers->lock);
	workers->count++;
	pthread_mutex_unlock(&workers->lock);
	if (pthread_attr_init(&attributes) == 0) {
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		error = pthread_create(&thread, &attributes, run, job);
		pthread_attr_destroy(&attributes);
	}
	if (!error)
		return 0;
	free(job);
	count_less(workers);
	return -error;
}

bool worker_idle(struct workers *workers)
{
	bool idle;

	pthread_mutex_lock(&workers->lock);
	idle = !workers->count;
	pthread_mutex_unlock(&workers->lock);
	return idle;
}

void worker_wait(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	while (workers->count)
		pthread_cond_wait(&workers->idle, &workers->lock);
	pthread_mutex_unlock(&workers->lock);
}
