/*
 * signals.h - the signals that end a mount: SIGTERM, SIGINT, SIGHUP.
 *
 * They are blocked before the first thing is made that must be cleaned up, and stay
 * so until the process ends. The first one is read from a descriptor; later ones stay
 * pending, so no signal but SIGKILL can end a commit half way.
 */
#ifndef BPKFS_SIGNALS_H
#define BPKFS_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Block them. Of those that the caller had ignored, as shells have it for jobs in the
 * background, only nohup's SIGHUP stays so, and only with @keep_nohup. */
void signals_block(bool keep_nohup);
/* A descriptor that is readable when one has come, or -errno. */
int signals_open(void);
/* One that has come, or 0. */
int signals_read(int fd);
/* What a child process is to have blocked: what was before signals_block(). */
void signals_child_mask(sigset_t *ret_mask);

#endif
