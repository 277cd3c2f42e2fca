/*
 * supervise.h - seccomp filters for the tests: a command whose system calls another
 * process is asked about (user notification; Linux 5.9).
 */
#ifndef BPKFS_TEST_SUPERVISE_H
#define BPKFS_TEST_SUPERVISE_H

#include <linux/filter.h>

/* Say what failed, errno included, and exit: 77, the system does not allow it. */
_Noreturn void supervise_die(const char *what);

/* Put this process under @program; with SECCOMP_FILTER_FLAG_NEW_LISTENER in @flags the
 * descriptor of who is asked. Exits on failure. */
int supervise_install(const struct sock_fprog *program, unsigned int flags);

/*
 * Put this process under @program and have another one, which is no part of what a
 * caller waits for, run @serve with the listening descriptor; it ends when @serve
 * returns. Exits on failure.
 */
void supervise_start(const struct sock_fprog *program,
		     void (*serve)(int filter, const void *context), const void *context);

#endif
