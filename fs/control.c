/*
 * control.c - see control.h.
 */
#include "control.h"
#include "log.h"
#include "mount_point.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

struct report {
	int32_t status;
	char message[CONTROL_MESSAGE_SIZE];
};

static socklen_t address_of(const char *name, struct sockaddr_un *ret)
{
	size_t size = strnlen(name, CONTROL_NAME_SIZE);

	_Static_assert(CONTROL_NAME_SIZE < sizeof(ret->sun_path) - 1, "fits an address");

	*ret = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(ret->sun_path + 1, name, size);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

/* Nobody there any more: the exit status and syslog say it too. */
static void tell(const char *name, const void *data, size_t size)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	(void)sendto(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT,
		     (struct sockaddr *)&address, address_of(name, &address));
	close(fd);
}

void control_report(const char *name, enum status status, const char *message)
{
	struct report report = { .status = (int32_t)status };

	if (!name[0])
		return;
	snprintf(report.message, sizeof(report.message), "%s", message);
	tell(name, &report, sizeof(report));
}

/* The socket for progress beside the one of that name. */
static void progress_name(char to[CONTROL_NAME_SIZE], const char *name)
{
	snprintf(to, CONTROL_NAME_SIZE, "%.*s+", CONTROL_NAME_SIZE - 2, name);
}

void control_progress(struct control_pace *pace, const char *name, uint64_t done,
		      uint64_t total)
{
	const struct progress_state state = { done, total };
	int64_t now = progress_now_ms();
	char second[CONTROL_NAME_SIZE];

	if (!name[0] ||
	    (pace->told_ms && done < total && now - pace->told_ms < PROGRESS_EVERY_MS))
		return;
	pace->told_ms = now;
	progress_name(second, name);
	tell(second, &state, sizeof(state));
}

/* A datagram socket of that name. */
static int bind_socket(const char *name)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, address_of(name, &address)) < 0) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

/* A socket with a name that nobody can guess. */
static int open_socket(char name[CONTROL_NAME_SIZE])
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, CONTROL_NAME_SIZE, "bpkfs-%016" PRIx64 "%016" PRIx64, random[0],
		 random[1]);
	return bind_socket(name);
}

/* The one for progress, where there is somebody to show it to; else -1. */
static int open_progress_socket(const char *name)
{
	char second[CONTROL_NAME_SIZE];

	if (!isatty(STDERR_FILENO))
		return -1;
	progress_name(second, name);
	return bind_socket(second);
}

/* The pid in .bpkfs/status, or -1. */
static pid_t daemon_of(int mount_fd)
{
	char text[256];
	const char *at;
	ssize_t got;
	int fd = openat(mount_fd, ".bpkfs/status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	at = strstr(text, "\"pid\":");
	return at ? (pid_t)strtol(at + 6, NULL, 10) : -1;
}

/* How long an unmounted daemon may go without a word before it is told to end. In the
 * middle of a commit that is no harm: it goes on. */
enum { STILL_MOUNTED_MS = 1000 };

/* Who waits for a daemon that commits. */
struct wait {
	int report_fd, process_fd, progress_fd; /* each may be -1 */
	struct progress_bar bar;
	struct progress_state state;
	bool heard; /* it commits */
};

static void show_progress(struct wait *wait)
{
	struct progress_state state;

	while (wait->progress_fd >= 0 && recv(wait->progress_fd, &state, sizeof(state),
					      MSG_DONTWAIT) == sizeof(state)) {
		wait->state = state;
		wait->heard = true;
	}
	progress_bar_draw(&wait->bar, wait->state.done, wait->state.total);
}

/* The report, or STATUS_COMMIT_FAILED when the daemon went without one. */
static enum status await(struct wait *wait, struct report *report)
{
	bool told = false;
	int waited = 0;

	for (;;) {
		struct pollfd fds[] = { { .fd = wait->report_fd, .events = POLLIN },
					{ .fd = wait->process_fd, .events = POLLIN } };
		int ready = poll(
			fds, 2, wait->progress_fd >= 0 || !told ? PROGRESS_EVERY_MS : -1);

		if (ready < 0 && errno != EINTR)
			break;
		show_progress(wait);
		if (ready == 0)
			waited += PROGRESS_EVERY_MS;
		/* Another mount namespace, a container's, has a copy of the mount: for
		 * the daemon that goes on. It ends, and commits, when it is told to. */
		if (ready == 0 && !told && waited >= STILL_MOUNTED_MS) {
			if (!wait->heard)
				syscall(SYS_pidfd_send_signal, wait->process_fd, SIGTERM,
					NULL, 0);
			told = true;
		}
		if (ready == 0)
			continue;
		if (recv(wait->report_fd, report, sizeof(*report), MSG_DONTWAIT) ==
		    sizeof(*report)) {
			report->message[sizeof(report->message) - 1] = '\0';
			/* The staging area and the lock are free when it has gone. */
			while (wait->process_fd >= 0 && poll(&fds[1], 1, -1) < 0 &&
			       errno == EINTR)
				;
			return (enum status)report->status;
		}
		if (fds[1].revents || wait->process_fd < 0)
			break;
	}
	snprintf(report->message, sizeof(report->message),
		 "the daemon ended without telling how the commit went");
	return STATUS_COMMIT_FAILED;
}

/* The mount there, open; -1 when there is none of ours, which is said. */
static int open_mount(const char *mount_point, struct control_info *ret_info)
{
	int fd = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		mount_point_complain(mount_point, errno);
		return -1;
	}
	if (ioctl(fd, CONTROL_INFO, ret_info) == 0) {
		ret_info->message[sizeof(ret_info->message) - 1] = '\0';
		return fd;
	}
	log_line("%s: no bpkfs is mounted there", mount_point);
	close(fd);
	return -1;
}

static enum status unmount(const char *mount_point, bool discard)
{
	struct report report = { .message = "" };
	struct control_info info;
	char name[CONTROL_NAME_SIZE] = "", *path = realpath(mount_point, NULL);
	struct wait wait = { -1, -1, -1, .heard = false };
	int mount_fd = -1, error;
	enum status status = STATUS_MOUNT_POINT;
	int32_t drop = discard;
	pid_t daemon;

	if (path)
		mount_fd = open_mount(path, &info);
	else
		mount_point_complain(mount_point, errno);
	if (mount_fd < 0)
		goto out;
	wait.report_fd = open_socket(name);
	daemon = daemon_of(mount_fd);
	if (wait.report_fd < 0 || daemon <= 0 ||
	    ioctl(mount_fd, CONTROL_REPORT_TO, name) < 0 ||
	    ioctl(mount_fd, CONTROL_DISCARD, &drop) < 0) {
		log_line("%s: %s", mount_point,
			 errno == EPERM ? "it is a mount of another user"
					: "no bpkfs is mounted there");
		goto out;
	}
	wait.process_fd = (int)syscall(SYS_pidfd_open, daemon, 0);
	close(mount_fd);
	mount_fd = -1;
	wait.progress_fd = open_progress_socket(name);
	progress_bar_init(&wait.bar);
	error = mount_point_detach(path);
	if (error) {
		log_line("%s: cannot unmount: %s%s", mount_point, strerror(-error),
			 error == -EBUSY ? " (a file or folder in it is still in use); "
					   "nothing was committed or lost"
					 : "");
		drop = 0;
		mount_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (mount_fd >= 0)
			ioctl(mount_fd, CONTROL_DISCARD, &drop);
		goto out;
	}
	status = await(&wait, &report);
	progress_bar_clear(&wait.bar);
	if (report.message[0])
		log_line("%s", report.message);
out:
	if (mount_fd >= 0)
		close(mount_fd);
	if (wait.report_fd >= 0)
		close(wait.report_fd);
	if (wait.process_fd >= 0)
		close(wait.process_fd);
	if (wait.progress_fd >= 0)
		close(wait.progress_fd);
	free(path);
	return status;
}

enum status control_unmount(const char *mount_point)
{
	return unmount(mount_point, false);
}

enum status control_discard(const char *mount_point)
{
	return unmount(mount_point, true);
}

enum status control_discard_left(const char *pack, const char *path)
{
	struct staging staging;
	struct stat st;
	pid_t owner = 0;
	int error;

	if (lstat(path, &st) < 0 && errno == ENOENT) {
		log_line("%s: no edits are left of an earlier mount", pack);
		return STATUS_OK;
	}
	error = staging_open(&staging, path, &owner);
	if (!error) {
		staging_close(&staging, true);
		return STATUS_OK;
	}
	if (error == -EBUSY)
		log_line("%s: mounted writable by process %ld: \"bpkfs --discard\" wants "
			 "its mount point",
			 pack, (long)owner);
	else
		log_line("%s: cannot drop %s: %s", pack, path, strerror(-error));
	return error == -EBUSY ? STATUS_IN_USE : STATUS_CANNOT_STAGE;
}

enum status control_commit(const char *mount_point)
{
	struct control_info info;
	int fd = open_mount(mount_point, &info);
	struct progress progress;
	enum status status = STATUS_OK;
	int error;

	if (fd < 0)
		return STATUS_MOUNT_POINT;
	if (!info.writable) {
		log_line("%s: mounted read-only: there is nothing to commit",
			 mount_point);
		close(fd);
		return STATUS_OK;
	}
	progress_start(&progress, fd);
	error = fsync(fd) < 0 ? errno : 0;
	progress_end(&progress);
	if (ioctl(fd, CONTROL_INFO, &info) < 0)
		error = errno;
	else
		status = (enum status)info.status;
	info.message[sizeof(info.message) - 1] = '\0';
	close(fd);
	if (status != STATUS_OK)
		log_line("%s", info.message);
	else if (error)
		log_line("%s: %s", mount_point, strerror(error));
	return status != STATUS_OK || !error ? status : STATUS_COMMIT_FAILED;
}

/* A file of .bpkfs/ to stdout. */
static bool print_file(int mount_fd, const char *name)
{
	int fd = openat(mount_fd, name, O_RDONLY | O_CLOEXEC);
	char buffer[4096];
	ssize_t got;

	if (fd < 0)
		return false;
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		fwrite(buffer, 1, (size_t)got, stdout);
	close(fd);
	return got == 0;
}

enum status control_status(const char *mount_point)
{
	struct control_info info;
	int fd = open_mount(mount_point, &info);
	bool printed;

	if (fd < 0)
		return STATUS_MOUNT_POINT;
	printed = print_file(fd, ".bpkfs/status") && print_file(fd, ".bpkfs/changes");
	close(fd);
	if (info.committing)
		printf("a commit is under way: %" PRIu64 " of %" PRIu64 " bytes\n",
		       info.done, info.total);
	else if (info.message[0])
		printf("the last commit: %s\n", info.message);
	if (printed)
		return STATUS_OK;
	log_line("%s: %s", mount_point,
		 errno == ENOENT ? "a folder in a mount, and not where it is mounted"
				 : strerror(errno));
	return STATUS_MOUNT_POINT;
}
