/*
 * progress.h - a line on the terminal while a commit takes longer than a second: how
 * much is done, how fast, how long it will take. Nothing when stderr is no terminal.
 */
#ifndef BPKFS_PROGRESS_H
#define BPKFS_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One line of text, at most @width columns, for @done of @total bytes after
 * @milliseconds. Needs no terminal. Returns its size, as snprintf(3). */
int progress_line(char *line, unsigned size, uint64_t done, uint64_t total,
		  uint64_t milliseconds);

/* How often it is looked at, told and drawn. */
enum { PROGRESS_EVERY_MS = 200 };
/* As it is told from process to process. */
struct progress_state {
	uint64_t done, total;
};
/* A clock that only goes on. */
int64_t progress_now_ms(void);

/* Draws @done of @total since @start_ms, at most a few times a second; progress_clear()
 * takes the line away. For whoever hears of progress by itself. */
struct progress_bar {
	int64_t start_ms;
	int64_t drawn_ms;
	bool terminal;
	bool drawn;
};
void progress_bar_init(struct progress_bar *bar);
void progress_bar_draw(struct progress_bar *bar, uint64_t done, uint64_t total);
void progress_bar_clear(struct progress_bar *bar);

/* The same for a commit that a call in this thread waits for: another thread asks the
 * mount (open as @fd) how far it is. */
struct progress {
	int fd;
	int end_fd;
	bool running;
	pthread_t thread;
};
void progress_start(struct progress *progress, int fd);
void progress_end(struct progress *progress);

#endif
