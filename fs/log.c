/*
 * log.c - see log.h.
 */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <syslog.h>

enum { LINE_SIZE = 2048 };

static atomic_bool use_syslog;

void log_to_syslog(void)
{
	openlog("bpkfs", LOG_PID, LOG_DAEMON);
	use_syslog = true;
}

static void print_clean(const char *text, char out[4 * LINE_SIZE])
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte == 0x7f)
			out += sprintf(out, "\\%03o", byte);
		else
			*out++ = *text;
	}
	*out = '\0';
}

void log_line(const char *format, ...)
{
	char line[LINE_SIZE], clean[4 * LINE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	print_clean(line, clean);
	if (use_syslog)
		syslog(LOG_ERR, "%s", clean);
	else
		fprintf(stderr, "bpkfs: %s\n", clean);
}
