/*
 * log.h - what the command says: one line on stderr, and, once it runs in the
 * background, in syslog.
 */
#ifndef BPKFS_LOG_H
#define BPKFS_LOG_H

#include <stdbool.h>

/* From now on (in the background) lines go to syslog. */
void log_to_syslog(void);
void log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
