/*
 * log.h - what the command says: one line on stderr, and, once it runs in the
 * background, in syslog. Names may hold anything, so control characters are written
 * as \ooo: a line stays one line, and cannot talk to a terminal.
 */
#ifndef BPKFS_LOG_H
#define BPKFS_LOG_H

/* From now on (in the background) lines go to syslog. Any thread. */
void log_to_syslog(void);
/* Any thread. A line longer than 2 KiB is cut. */
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
