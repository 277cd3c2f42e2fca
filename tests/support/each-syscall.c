/*
 * each-syscall.c - run a command, write down every system call by which it or what it
 * starts changes a folder, and have some of them fail, do less, or be its last.
 *
 *	each-syscall FOLDER LOG [NAME:N[+]:WHAT]... -- COMMAND...
 *
 * FOLDER is absolute and without symlinks. A call counts when it names a file in FOLDER
 * or below, or the folder, or does something to such an open file. Answers to requests
 * of the kernel (a write to /dev/fuse) count under the name "reply", opens of a file
 * without a name (O_TMPFILE) under "tmpfile". LOG gets a line for each before it is
 * made, tab separated: its number, from 1; its name; its number among those of that
 * name; pid; inode (0 where it is by path); path; what else there is to say, the old
 * path or the flags of an open in octal; what was done to it, or "-".
 *
 * NAME:N:WHAT: the Nth call of that name, or of "any" name; N+: each from the Nth on.
 * WHAT is "kill" (SIGKILL instead of the call), "short" (half of what a write, pwrite64
 * or copy_file_range asks for; what asks for one byte is as it was), or an errno.
 *
 * The command replaces this process. 77: the system does not allow such filters.
 */
#include "supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Which arguments say what is changed. A folder of NONE is the current one. */
enum { NONE = -1 };
static const struct call {
	const char *name;
	int number;
	int fd;	    /* descriptor of the file, or of the folder of */
	int path;   /* a path */
	int detail; /* the old path's, or the flags' */
} calls[] = {
	{ "open", SYS_open, NONE, 0, 1 },
	{ "openat", SYS_openat, 0, 1, 2 },
	{ "read", SYS_read, 0, NONE, NONE },
	{ "pread64", SYS_pread64, 0, NONE, NONE },
	{ "write", SYS_write, 0, NONE, NONE },
	{ "pwrite64", SYS_pwrite64, 0, NONE, NONE },
	{ "writev", SYS_writev, 0, NONE, NONE },
	{ "pwritev", SYS_pwritev, 0, NONE, NONE },
	{ "copy_file_range", SYS_copy_file_range, 2, NONE, NONE },
	{ "sendfile", SYS_sendfile, 0, NONE, NONE },
	{ "clone", SYS_ioctl, 0, NONE, NONE },
	{ "ftruncate", SYS_ftruncate, 0, NONE, NONE },
	{ "fallocate", SYS_fallocate, 0, NONE, NONE },
	{ "fsync", SYS_fsync, 0, NONE, NONE },
	{ "fdatasync", SYS_fdatasync, 0, NONE, NONE },
	{ "syncfs", SYS_syncfs, 0, NONE, NONE },
	{ "rename", SYS_rename, NONE, 1, 0 },
	{ "renameat", SYS_renameat, 2, 3, 1 },
	{ "renameat2", SYS_renameat2, 2, 3, 1 },
	{ "linkat", SYS_linkat, 2, 3, 1 },
	{ "unlink", SYS_unlink, NONE, 0, NONE },
	{ "unlinkat", SYS_unlinkat, 0, 1, NONE },
	{ "mkdir", SYS_mkdir, NONE, 0, NONE },
	{ "mkdirat", SYS_mkdirat, 0, 1, NONE },
	{ "rmdir", SYS_rmdir, NONE, 0, NONE },
	{ "truncate", SYS_truncate, NONE, 0, NONE },
	{ "fchmod", SYS_fchmod, 0, NONE, NONE },
	{ "fchown", SYS_fchown, 0, NONE, NONE },
	{ "fsetxattr", SYS_fsetxattr, 0, NONE, NONE },
	{ "fremovexattr", SYS_fremovexattr, 0, NONE, NONE },
	{ "flock", SYS_flock, 0, NONE, NONE },
};
enum {
	CALL_COUNT = sizeof(calls) / sizeof(*calls),
	REPLY = CALL_COUNT,
	NAMELESS,
	COUNTERS
};

struct job {
	const char *folder;
	int log;
	char **rules;
};

/* One call that is asked about. */
struct asked {
	const struct seccomp_notif *notif;
	const struct call *call;
	char path[PATH_MAX * 2];
	char detail[PATH_MAX];
	uintmax_t inode;
};

static bool read_text(uint32_t pid, uint64_t from, char *to, size_t size)
{
	char name[64];
	int fd;
	ssize_t got;

	snprintf(name, sizeof(name), "/proc/%u/mem", pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = pread(fd, to, size - 1, (off_t)from);
	close(fd);
	to[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static bool read_link(uint32_t pid, const char *what, int fd, char *to, size_t size)
{
	char name[64];
	ssize_t got;

	if (fd == AT_FDCWD)
		snprintf(name, sizeof(name), "/proc/%u/cwd", pid);
	else
		snprintf(name, sizeof(name), "/proc/%u/%s/%d", pid, what, fd);
	got = readlink(name, to, size - 1);
	to[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static bool find_path(struct asked *asked)
{
	const struct seccomp_notif *notif = asked->notif;
	const struct call *call = asked->call;
	int fd = call->fd == NONE ? AT_FDCWD : (int)notif->data.args[call->fd];
	char name[PATH_MAX] = "";
	struct stat st;

	if (call->path != NONE) {
		if (!read_text(notif->pid, notif->data.args[call->path], name,
			       sizeof(name)))
			return false;
		if (name[0] == '/') {
			snprintf(asked->path, sizeof(asked->path), "%s", name);
			return true;
		}
	}
	if (!read_link(notif->pid, "fd", fd, asked->path, PATH_MAX))
		return false;
	if (name[0]) {
		strcat(asked->path, "/");
		strcat(asked->path, name);
	} else {
		snprintf(name, sizeof(name), "/proc/%u/fd/%d", notif->pid, fd);
		asked->inode = stat(name, &st) == 0 ? st.st_ino : 0;
	}
	return true;
}

static void find_detail(struct asked *asked)
{
	const struct call *call = asked->call;

	strcpy(asked->detail, "-");
	if (call->detail == NONE)
		return;
	if (call->number == SYS_open || call->number == SYS_openat)
		snprintf(asked->detail, sizeof(asked->detail), "%o",
			 (unsigned int)asked->notif->data.args[call->detail]);
	else
		read_text(asked->notif->pid, asked->notif->data.args[call->detail],
			  asked->detail, sizeof(asked->detail));
}

/* The name that a call counts under. */
static const char *name_of(const struct asked *asked, int counter)
{
	if (counter == REPLY)
		return "reply";
	return counter == NAMELESS ? "tmpfile" : asked->call->name;
}

/* The counter of a call that counts, or -1. */
static int counter_of(const struct job *job, struct asked *asked)
{
	size_t size = strlen(job->folder);

	asked->call = NULL;
	for (size_t i = 0; i < CALL_COUNT; i++)
		if (calls[i].number == asked->notif->data.nr)
			asked->call = &calls[i];
	if (!asked->call || !find_path(asked))
		return -1;
	find_detail(asked);
	if (strcmp(asked->path, "/dev/fuse") == 0)
		return strncmp(asked->call->name, "write", 5) == 0 ? REPLY : -1;
	if (strncmp(asked->path, job->folder, size) != 0 ||
	    (asked->path[size] != '/' && asked->path[size] != '\0'))
		return -1;
	if (asked->call->number == SYS_openat &&
	    ((int)asked->notif->data.args[2] & O_TMPFILE) == O_TMPFILE)
		return NAMELESS;
	return (int)(asked->call - calls);
}

/* What is to be done to it, or NULL. */
static const char *rule_for(const struct job *job, const char *name, unsigned long total,
			    unsigned long nth)
{
	for (char **rule = job->rules; strcmp(*rule, "--") != 0; rule++) {
		const char *colon = strchr(*rule, ':');
		size_t size = colon ? (size_t)(colon - *rule) : 0;
		unsigned long number, at;
		bool all;
		char *end;

		if (!colon)
			continue;
		if (strncmp(*rule, "any:", 4) == 0)
			at = total;
		else if (strlen(name) == size && strncmp(*rule, name, size) == 0)
			at = nth;
		else
			continue;
		number = strtoul(colon + 1, &end, 10);
		all = *end == '+';
		end += all;
		if (*end == ':' && (at == number || (all && at > number)))
			return end + 1;
	}
	return NULL;
}

/* The process of a thread. */
static uint32_t leader_of(uint32_t thread)
{
	static struct {
		uint32_t thread, leader;
	} known[64];
	size_t slot = thread % 64;
	char name[64], line[128];
	unsigned int leader = thread;
	FILE *file;

	if (known[slot].thread == thread)
		return known[slot].leader;
	snprintf(name, sizeof(name), "/proc/%u/status", thread);
	file = fopen(name, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %u", &leader) == 1)
			break;
	if (file)
		fclose(file);
	known[slot].thread = thread;
	known[slot].leader = leader;
	return leader;
}

/* A descriptor of the process as our own. */
static int take_fd(uint32_t pid, int fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, leader_of(pid), 0), taken;

	taken = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (pidfd >= 0)
		close(pidfd);
	return taken;
}

static ssize_t write_half(const struct seccomp_notif *notif, int fd, size_t size)
{
	struct iovec from = { (void *)(uintptr_t)notif->data.args[1], size }, to;
	ssize_t done = -1;

	to = (struct iovec) { malloc(size), size };
	if (to.iov_base &&
	    process_vm_readv((pid_t)notif->pid, &to, 1, &from, 1, 0) == (ssize_t)size)
		done = notif->data.nr == SYS_write ? write(fd, to.iov_base, size)
						   : pwrite(fd, to.iov_base, size,
							    (off_t)notif->data.args[3]);
	free(to.iov_base);
	return done;
}

static ssize_t copy_half(const struct seccomp_notif *notif, int fd, size_t size)
{
	int source = take_fd(notif->pid, (int)notif->data.args[0]);
	loff_t offs[2];
	struct iovec here = { offs, sizeof(offs) };
	struct iovec there[2] = {
		{ (void *)(uintptr_t)notif->data.args[1], sizeof(*offs) },
		{ (void *)(uintptr_t)notif->data.args[3], sizeof(*offs) },
	};
	ssize_t done = -1;

	if (process_vm_readv((pid_t)notif->pid, &here, 1, there, 2, 0) == sizeof(offs))
		done = copy_file_range(source, &offs[0], fd, &offs[1], size, 0);
	if (done >= 0 &&
	    process_vm_writev((pid_t)notif->pid, &here, 1, there, 2, 0) != sizeof(offs))
		done = -1;
	if (source >= 0)
		close(source);
	return done;
}

/* Half of it, done here. False where that is not possible. */
static bool do_half(const struct seccomp_notif *notif, __s64 *ret_done)
{
	bool copies = notif->data.nr == SYS_copy_file_range;
	int fd = take_fd(notif->pid, (int)notif->data.args[copies ? 2 : 0]);
	size_t size = notif->data.args[copies ? 4 : 2] / 2;
	ssize_t done = -1;

	/* One that asks for all there is: of a small pack half is still all. */
	if (copies && size > 4096)
		size = 100;
	if (fd >= 0 && size)
		done = copies ? copy_half(notif, fd, size) : write_half(notif, fd, size);
	if (fd >= 0)
		close(fd);
	*ret_done = done;
	return done > 0;
}

/* Of a rule @what the answer; false: there will be none. */
static bool act(const char *what, const struct seccomp_notif *notif,
		struct seccomp_notif_resp *reply)
{
	if (strcmp(what, "kill") == 0) {
		kill((pid_t)notif->pid, SIGKILL);
		return false;
	}
	if (strcmp(what, "short") == 0) {
		if (do_half(notif, &reply->val))
			reply->flags = 0;
		return true;
	}
	reply->flags = 0;
	reply->error = -atoi(what);
	return true;
}

static void answer(const struct job *job, int filter, const struct seccomp_notif *notif,
		   unsigned long counts[COUNTERS + 1])
{
	struct seccomp_notif_resp reply = { .id = notif->id,
					    .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct asked asked = { .notif = notif };
	int counter = counter_of(job, &asked);
	const char *what = NULL;

	if (counter >= 0) {
		const char *name = name_of(&asked, counter);
		unsigned long total = ++counts[COUNTERS], nth = ++counts[counter];

		what = rule_for(job, name, total, nth);
		dprintf(job->log, "%lu\t%s\t%lu\t%u\t%ju\t%s\t%s\t%s\n", total, name, nth,
			leader_of(notif->pid), asked.inode, asked.path, asked.detail,
			what ? what : "-");
	}
	if (!what || act(what, notif, &reply))
		(void)!ioctl(filter, SECCOMP_IOCTL_NOTIF_SEND, &reply);
}

/* Until nobody with the filter is left. */
static void serve(int filter, const void *context)
{
	struct pollfd some = { .fd = filter, .events = POLLIN };
	static unsigned long counts[COUNTERS + 1];

	for (;;) {
		struct seccomp_notif notif = { .id = 0 };

		if (poll(&some, 1, -1) < 0)
			continue;
		if (!(some.revents & POLLIN))
			return;
		if (ioctl(filter, SECCOMP_IOCTL_NOTIF_RECV, &notif) == 0)
			answer(context, filter, &notif, counts);
	}
}

static void start(const struct job *job)
{
	struct sock_filter code[3 + 2 * CALL_COUNT + 5];
	struct sock_fprog program = { 0, code };
	size_t at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < CALL_COUNT; i++) {
		if (calls[i].number == SYS_ioctl)
			continue;
		code[at++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							  SECCOMP_RET_USER_NOTIF);
	}
	code[at++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						  offsetof(struct seccomp_data, args[1]));
	code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FICLONERANGE,
						  0, 1);
	code[at++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)at;
	supervise_start(&program, serve, job);
}

int main(int argc, char **argv)
{
	struct job job;
	int dashes = 3;

	while (dashes < argc && strcmp(argv[dashes], "--") != 0)
		dashes++;
	if (dashes + 1 >= argc) {
		fputs("usage: each-syscall FOLDER LOG [NAME:N[+]:WHAT]... -- "
		      "COMMAND...\n",
		      stderr);
		return 77;
	}
	job = (struct job) {
		.folder = argv[1],
		.log = open(argv[2], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
		.rules = argv + 3,
	};
	if (job.log < 0)
		supervise_die(argv[2]);
	start(&job);
	argv += dashes + 1;
	execvp(argv[0], argv);
	supervise_die(argv[0]);
}
