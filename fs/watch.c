/*
 * watch.c - see watch.h.
 *
 * Idle is: no file or folder open, and no request but forget and statfs since the
 * last look. Handlers count requests under the lock that they hold anyway; here is
 * looked four times in the timeout. So a read costs nothing, and a mount goes after
 * the timeout and at most a quarter more. What is in use in a way that no request
 * tells (somebody's current folder) makes the kernel refuse the unmount, and the
 * next look tries again.
 */
#include "watch.h"
#include "mount_point.h"
#include "read_ahead.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long to wait for the serving thread before waking it again. */
enum { STOP_AGAIN_MS = 20 };

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void stop(struct watch *watch)
{
	struct pollfd end = { .fd = watch->end_fd, .events = POLLIN };

	/* A wake-up between the serving thread's look at its flag and its wait is
	 * lost: only its end tells that one came through. */
	do
		watch->stop(watch->context);
	while (poll(&end, 1, STOP_AGAIN_MS) <= 0);
}

struct probe {
	const struct watch *watch;
	struct statx st;
	bool answered;
};

/*
 * A request of ours to ourselves. Who waits for an answer to one that was read cannot
 * be killed, and the kernel gives up on a mount only when nobody has the device open:
 * with the descriptors of the others, a SIGKILL now would leave a process that never
 * ends. Without them (where the system allows that) it is the others' end that ends it.
 */
static void *probe(void *context)
{
	struct probe *probe = context;

	if (unshare(CLONE_FILES) == 0)
		close(probe->watch->device_fd);
	probe->answered = statx(AT_FDCWD, probe->watch->path, AT_NO_AUTOMOUNT, STATX_MODE,
				&probe->st) == 0;
	return NULL;
}

/* The first request of ours: its answer shows that the kernel's are answered. */
static bool become_ready(struct watch *watch)
{
	struct probe asked = { .watch = watch };
	pthread_t thread;

	if (pthread_create(&thread, NULL, probe, &asked) != 0)
		return false;
	pthread_join(thread, NULL);
	if (!asked.answered)
		return false;
	watch->device[0] = asked.st.stx_dev_major;
	watch->device[1] = asked.st.stx_dev_minor;
	read_ahead_set(asked.st.stx_dev_major, asked.st.stx_dev_minor);
	watch->signal = signals_read(watch->signal_fd);
	if (watch->signal || !watch->ready(watch->context))
		return false;
	__atomic_store_n(&watch->is_ready, true, __ATOMIC_RELEASE);
	return true;
}

/* No request is made of our own mount. */
bool watch_is_elsewhere(const struct watch *watch)
{
	struct statx st;

	return __atomic_load_n(&watch->is_ready, __ATOMIC_ACQUIRE) &&
	       statx(AT_FDCWD, watch->path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0,
		     &st) == 0 &&
	       (st.stx_dev_major != watch->device[0] ||
		st.stx_dev_minor != watch->device[1]);
}

static void look(struct watch *watch)
{
	int64_t now = now_ms();

	if (watch->in_use(watch->context))
		watch->used_ms = now;
	else if (now - watch->used_ms >= (int64_t)watch->timeout * 1000 &&
		 !watch_is_elsewhere(watch))
		(void)mount_point_detach(watch->path);
}

static void *run(void *context)
{
	struct watch *watch = context;
	struct pollfd fds[] = { { .fd = watch->end_fd, .events = POLLIN },
				{ .fd = watch->signal_fd, .events = POLLIN } };
	int wait = watch->timeout ? (int)watch->timeout * 250 : -1;

	if (!become_ready(watch)) {
		stop(watch);
		return NULL;
	}
	watch->used_ms = now_ms();
	for (;;) {
		int ready = poll(fds, 2, wait);

		if (ready > 0 && fds[0].revents)
			return NULL;
		if (ready > 0 && (watch->signal = signals_read(watch->signal_fd))) {
			if (watch->writable)
				watch->save(watch->context);
			stop(watch);
			return NULL;
		}
		if (ready == 0)
			look(watch);
	}
}

int watch_start(struct watch *watch)
{
	int error;

	watch->end_fd = eventfd(0, EFD_CLOEXEC);
	if (watch->end_fd < 0)
		return -errno;
	watch->signal_fd = signals_open();
	error = watch->signal_fd < 0 ? -watch->signal_fd
				     : pthread_create(&watch->thread, NULL, run, watch);
	if (!error)
		return 0;
	if (watch->signal_fd >= 0)
		close(watch->signal_fd);
	close(watch->end_fd);
	return -error;
}

void watch_end(struct watch *watch)
{
	uint64_t one = 1;

	(void)!write(watch->end_fd, &one, sizeof(one));
	pthread_join(watch->thread, NULL);
	close(watch->signal_fd);
	close(watch->end_fd);
}
