/*
 * signals.c - see signals.h.
 */
#include "signals.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const int ending_signals[] = { SIGTERM, SIGINT, SIGHUP };

/* Blocked signals wait to be read even where they are ignored: one that is to stay
 * ignored must not be among them. */
static void ending_set(sigset_t *ret_set)
{
	struct sigaction action;

	sigemptyset(ret_set);
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(*ending_signals); i++)
		if (sigaction(ending_signals[i], NULL, &action) < 0 ||
		    action.sa_handler != SIG_IGN)
			sigaddset(ret_set, ending_signals[i]);
}

void signals_block(bool keep_nohup)
{
	sigset_t set;

	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	if (!keep_nohup)
		signal(SIGHUP, SIG_DFL);
	ending_set(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int signals_open(void)
{
	sigset_t set;
	int fd;

	ending_set(&set);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int signals_read(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

void signals_child_mask(sigset_t *ret_mask)
{
	pthread_sigmask(SIG_SETMASK, NULL, ret_mask);
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(*ending_signals); i++)
		sigdelset(ret_mask, ending_signals[i]);
}
