/*
 * log.c - see log.h.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

static bool use_syslog;

void log_to_syslog(void)
{
	openlog("bpkfs", LOG_PID, LOG_DAEMON);
	use_syslog = true;
}

void log_line(const char *format, ...)
{
	char line[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (use_syslog)
		syslog(LOG_ERR, "%s", line);
	else
		fprintf(stderr, "bpkfs: %s\n", line);
}
