/*
 * worker.c - see worker.h.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>

struct job {
	struct mount *mount;
	void (*work)(void *context);
	void *context;
};

static void count_less(struct mount *mount)
{
	pthread_mutex_lock(&mount->lock);
	if (!--mount->workers)
		pthread_cond_signal(&mount->idle);
	pthread_mutex_unlock(&mount->lock);
}

static void *run(void *context)
{
	struct job job = *(struct job *)context;

	free(context);
	job.work(job.context);
	count_less(job.mount);
	return NULL;
}

int worker_start(struct mount *mount, void (*work)(void *context), void *context)
{
	struct job *job = malloc(sizeof(*job));
	pthread_attr_t attributes;
	pthread_t thread;
	int error = ENOMEM;

	if (!job)
		return -ENOMEM;
	*job = (struct job) { mount, work, context };
	pthread_mutex_lock(&mount->lock);
	mount->workers++;
	pthread_mutex_unlock(&mount->lock);
	if (pthread_attr_init(&attributes) == 0) {
		pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
		error = pthread_create(&thread, &attributes, run, job);
		pthread_attr_destroy(&attributes);
	}
	if (!error)
		return 0;
	free(job);
	count_less(mount);
	return -error;
}

void worker_wait(struct mount *mount)
{
	pthread_mutex_lock(&mount->lock);
	while (mount->workers)
		pthread_cond_wait(&mount->idle, &mount->lock);
	pthread_mutex_unlock(&mount->lock);
}
