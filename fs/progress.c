/*
 * progress.c - see progress.h.
 */
#include "progress.h"
#include "ops.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 1000, BAR_WIDTH = 24 };

int64_t progress_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int progress_line(char *line, unsigned size, uint64_t done, uint64_t total,
		  uint64_t milliseconds)
{
	double part = total ? (double)done / (double)total : 0,
	       rate = milliseconds ? (double)done * 1000 / (double)milliseconds : 0,
	       left = rate > 0 ? (double)(total - done) / rate : 0;
	char bar[BAR_WIDTH + 1];
	int full = (int)(part * BAR_WIDTH);

	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < full ? '#' : '-';
	bar[BAR_WIDTH] = '\0';
	return snprintf(line, size,
			"[%s] %3d%% of %.1f MB, %.1f MB/s, %" PRIu64 " s left", bar,
			(int)(part * 100), (double)total / 1e6, rate / 1e6,
			(uint64_t)(left + 0.5));
}

void progress_bar_init(struct progress_bar *bar)
{
	*bar = (struct progress_bar) { .start_ms = progress_now_ms(),
				       .terminal = isatty(STDERR_FILENO) };
}

void progress_bar_draw(struct progress_bar *bar, uint64_t done, uint64_t total)
{
	int64_t now = progress_now_ms();
	char line[160];

	if (!bar->terminal || now - bar->start_ms < QUIET_MS || !total || done > total ||
	    (bar->drawn && now - bar->drawn_ms < PROGRESS_EVERY_MS))
		return;
	progress_line(line, sizeof(line), done, total, (uint64_t)(now - bar->start_ms));
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	bar->drawn = true;
	bar->drawn_ms = now;
}

void progress_bar_clear(struct progress_bar *bar)
{
	if (bar->drawn)
		fputs("\r\033[K", stderr);
	bar->drawn = false;
}

static void *watch_commit(void *context)
{
	struct progress *progress = context;
	struct pollfd end = { .fd = progress->end_fd, .events = POLLIN };
	struct progress_bar bar;
	struct control_info info;

	progress_bar_init(&bar);
	while (poll(&end, 1, PROGRESS_EVERY_MS) <= 0)
		if (ioctl(progress->fd, CONTROL_INFO, &info) == 0 && info.committing)
			progress_bar_draw(&bar, info.done, info.total);
	progress_bar_clear(&bar);
	return NULL;
}

void progress_start(struct progress *progress, int fd)
{
	*progress = (struct progress) { .fd = fd, .end_fd = -1 };
	if (!isatty(STDERR_FILENO))
		return;
	progress->end_fd = eventfd(0, EFD_CLOEXEC);
	if (progress->end_fd >= 0)
		progress->running = pthread_create(&progress->thread, NULL, watch_commit,
						   progress) == 0;
}

void progress_end(struct progress *progress)
{
	uint64_t one = 1;

	if (progress->running) {
		(void)!write(progress->end_fd, &one, sizeof(one));
		pthread_join(progress->thread, NULL);
	}
	if (progress->end_fd >= 0)
		close(progress->end_fd);
}
