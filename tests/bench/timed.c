/*
 * timed.c - the clock of the benchmark: does one thing and prints how long it took, in
 * nanoseconds, a number a line. What comes before and after (making a process, opening
 * a file that is not part of what is asked) is not in it.
 *
 *	timed run COMMAND...		start to end, what it prints is thrown away
 *	timed mount FILE MOUNT... -- UNMOUNT...
 *					two numbers: start to return of MOUNT, and from
 *the same start over one byte of FILE to the end of UNMOUNT timed read BUFFER READERS
 *FILE OFFSET SIZE pread, each reader its own part and its own file timed stdio FILE
 *OFFSET SIZE	fread of 4 KiB, with the buffer that stdio chooses timed map FILE OFFSET
 *SIZE	a shared mapping, every word of it timed parse PACK		libbpk's
 *bpk_reader_open
 *	timed cold FILE			no time: takes FILE out of the page cache
 *
 * 1: it failed, and why. 2: usage. 3 (cold): some of FILE stays in the page cache.
 */
#include "bpk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READERS_MAX = 64, STDIO_SIZE = 4096 };

extern char **environ;

struct range {
	const char *path;
	uint64_t off, size;
};

struct part {
	int fd;
	uint64_t off, size;
	size_t buffer_size;
	pthread_barrier_t *ready;
	int error;
};

/* What was read has to go somewhere, or the compiler leaves the reading out. */
static volatile uint64_t sink;

__attribute__((noreturn)) static void die(const char *what, int error)
{
	fprintf(stderr, "timed: %s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void tell(uint64_t since)
{
	printf("%" PRIu64 "\n", now() - since);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-')
		die(text, EINVAL);
	return value;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path, errno);
	return fd;
}

/* Start to end of a command that must succeed. */
static void run(char **command)
{
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	error = posix_spawnp(&pid, command[0], &actions, NULL, command, environ);
	if (error)
		die(command[0], error);
	posix_spawn_file_actions_destroy(&actions);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(command[0], errno);
	if (status) {
		fprintf(stderr, "timed: %s: wait status %#x\n", command[0],
			(unsigned int)status);
		exit(1);
	}
}

static int do_run(int argc, char **argv)
{
	uint64_t since = now();

	if (argc < 1)
		return 2;
	run(argv);
	tell(since);
	return 0;
}

static int do_mount(int argc, char **argv)
{
	char **unmount = argv + 1;
	uint64_t since, mounted;
	char byte;
	int fd;

	while (unmount < argv + argc && strcmp(*unmount, "--") != 0)
		unmount++;
	if (argc < 4 || unmount == argv + 1 || unmount + 1 >= argv + argc)
		return 2;
	*unmount++ = NULL;

	since = now();
	run(argv + 1);
	mounted = now();
	fd = open_file(argv[0]);
	if (read(fd, &byte, 1) != 1)
		die(argv[0], errno);
	close(fd);
	run(unmount);
	printf("%" PRIu64 "\n", mounted - since);
	tell(since);
	return 0;
}

static struct range range_of(char **argv)
{
	return (struct range) {
		.path = argv[0],
		.off = number(argv[1]),
		.size = number(argv[2]),
	};
}

static void *read_part(void *argument)
{
	struct part *part = argument;
	uint64_t done = 0;
	char *buffer = malloc(part->buffer_size);

	if (buffer)
		memset(buffer, 0, part->buffer_size); /* its pages are not to be timed */
	else
		part->error = ENOMEM;
	pthread_barrier_wait(part->ready);
	pthread_barrier_wait(part->ready);
	while (!part->error && done < part->size) {
		uint64_t left = part->size - done;
		size_t want = left < part->buffer_size ? (size_t)left : part->buffer_size;
		ssize_t got = pread(part->fd, buffer, want, (off_t)(part->off + done));

		if (got <= 0)
			part->error = got < 0 ? errno : ENODATA;
		else
			done += (uint64_t)got;
	}
	free(buffer);
	return NULL;
}

static int do_read(int argc, char **argv)
{
	pthread_t threads[READERS_MAX];
	struct part parts[READERS_MAX];
	pthread_barrier_t ready;
	struct range range;
	uint64_t since, buffer_size, count, each;
	int error;

	if (argc != 5)
		return 2;
	buffer_size = number(argv[0]);
	count = number(argv[1]);
	range = range_of(argv + 2);
	if (!buffer_size || buffer_size > SSIZE_MAX || !count || count > READERS_MAX)
		return 2;
	each = range.size / count;
	pthread_barrier_init(&ready, NULL, (unsigned int)count + 1);
	for (uint64_t i = 0; i < count; i++) {
		parts[i] = (struct part) {
			.fd = open_file(range.path),
			.off = range.off + i * each,
			.size = i + 1 < count ? each : range.size - i * each,
			.buffer_size = (size_t)buffer_size,
			.ready = &ready,
		};
		error = pthread_create(&threads[i], NULL, read_part, &parts[i]);
		if (error)
			die("pthread_create", error);
	}
	/* All are ready; then the time is taken, and only then may they go on. */
	pthread_barrier_wait(&ready);
	since = now();
	pthread_barrier_wait(&ready);
	for (uint64_t i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		if (parts[i].error)
			die(range.path, parts[i].error);
	}
	tell(since);
	return 0;
}

static int do_stdio(int argc, char **argv)
{
	char buffer[STDIO_SIZE];
	struct range range;
	uint64_t since, left;
	FILE *file;

	if (argc != 3)
		return 2;
	range = range_of(argv);
	since = now();
	file = fopen(range.path, "re");
	if (!file || fseeko(file, (off_t)range.off, SEEK_SET) != 0)
		die(range.path, errno);
	for (left = range.size; left;) {
		size_t want = left < sizeof(buffer) ? (size_t)left : sizeof(buffer);

		if (fread(buffer, 1, want, file) != want)
			die(range.path, ferror(file) ? errno : ENODATA);
		left -= want;
	}
	fclose(file);
	tell(since);
	return 0;
}

static int do_map(int argc, char **argv)
{
	struct range range;
	uint64_t since, lead, word, sum = 0;
	char *map;
	int fd;

	if (argc != 3)
		return 2;
	range = range_of(argv);
	fd = open_file(range.path);
	lead = range.off % (uint64_t)sysconf(_SC_PAGESIZE);
	since = now();
	map = mmap(NULL, (size_t)(range.size + lead), PROT_READ, MAP_SHARED, fd,
		   (off_t)(range.off - lead));
	if (map == MAP_FAILED)
		die(range.path, errno);
	for (uint64_t at = lead; at + sizeof(word) <= lead + range.size;
	     at += sizeof(word)) {
		memcpy(&word, map + at, sizeof(word));
		sum += word;
	}
	sink = sum;
	tell(since);
	return 0;
}

static int do_parse(int argc, char **argv)
{
	struct bpk_reader *reader = NULL;
	uint64_t since = now();
	int ret;

	if (argc != 1)
		return 2;
	ret = bpk_reader_open(argv[0], NULL, &reader, NULL);
	if (ret < 0)
		die(argv[0], -ret);
	tell(since);
	bpk_reader_close(reader);
	return 0;
}

static int do_cold(int argc, char **argv)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE), page_count;
	unsigned char *resident;
	struct stat info;
	void *map;
	int fd;

	if (argc != 1)
		return 2;
	fd = open_file(argv[0]);
	/* Only clean pages can go. */
	if (fsync(fd) != 0 || fstat(fd, &info) != 0)
		die(argv[0], errno);
	if (!info.st_size)
		return 0;
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	if (errno)
		die(argv[0], errno);
	map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die(argv[0], errno);
	page_count = ((size_t)info.st_size + page_size - 1) / page_size;
	resident = malloc(page_count);
	if (!resident || mincore(map, (size_t)info.st_size, resident) != 0)
		die(argv[0], errno);
	for (size_t i = 0; i < page_count; i++)
		if (resident[i] & 1)
			return 3;
	free(resident);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} things[] = {
	{ "run", do_run },     { "mount", do_mount }, { "read", do_read },
	{ "stdio", do_stdio }, { "map", do_map },     { "parse", do_parse },
	{ "cold", do_cold },
};

int main(int argc, char **argv)
{
	int ret = 2;

	for (size_t i = 0; argc > 1 && i < sizeof(things) / sizeof(things[0]); i++)
		if (strcmp(argv[1], things[i].name) == 0)
			ret = things[i].run(argc - 2, argv + 2);
	if (ret == 2)
		fputs("usage: see the head of timed.c\n", stderr);
	return ret;
}
