/*
 * io.h - everything that libbpk asks of the operating system: read and map a file,
 * write one front to back, replace one atomically.
 *
 * Calls are restarted after EINTR and go on after short counts. They return 0 or
 * -errno; those with a struct bpk_error fill it with BPK_ERR_IO and the file's name.
 */
#ifndef BPK_IO_H
#define BPK_IO_H

#include "bpk.h"
#include "error.h"

#include <limits.h>

/* Reading ------------------------------------------------------------------ */

/* Open a regular file for reading, or duplicate the descriptor of one; its size. */
int bpk_io_open(const char *path, int *ret_fd, uint64_t *ret_size,
		struct bpk_error *error);
int bpk_io_dup(int fd, int *ret_fd, uint64_t *ret_size, struct bpk_error *error);
/* NULL-safe ends of what the others begin. */
void bpk_io_close(int fd);
void bpk_io_unmap(const void *data, uint64_t size);
/* Map @size bytes, which are not 0, for reading. */
int bpk_io_map(int fd, uint64_t size, const void **ret_data);
/* Read until @size bytes or the end of the file; *@ret_done is less only there. */
int bpk_io_read(int fd, void *buffer, size_t size, uint64_t off, size_t *ret_done);

/*
 * A block of @size bytes for free(3), or NULL. One of megabytes, which is going to be
 * filled as a whole, gets large pages where the system has them: the first touch of
 * each of thousands of small ones takes longer than reading a pack's metadata.
 */
void *bpk_io_allocate(size_t size);

/* Writing ------------------------------------------------------------------ */

/*
 * A file that is being written front to back. For a replacement it has no name, or
 * a scratch name beside the destination, until bpk_io_replace_commit().
 */
struct bpk_io_file {
	int fd;	       /* -1 once closed */
	uint64_t pos;  /* where the next byte goes */
	uint64_t size; /* how far bytes were really written */
	uint64_t sent; /* how far the disk has been told to write */

	int dir_fd;		    /* of the destination */
	bool dir_readable;	    /* so that it can be flushed */
	char *name;		    /* of the destination, in there */
	int old_fd;		    /* the file that is replaced, or -1 */
	bool has_scratch;	    /* the new file has its scratch name */
	char scratch[NAME_MAX + 1]; /* in dir_fd, unless there is a scratch_path */
	char *scratch_path;	    /* where the caller wants it */
	bool exclusive;		    /* nothing may be replaced */

	/* How copying from @source_fd goes. */
	int source_fd;
	bool no_clone, no_kernel_copy;
	uint64_t block_size; /* 0: not asked yet */
	uint8_t *buffer;

	char label[BPK_QUOTE_SIZE]; /* the quoted path, for messages */
};

/* Release what @file still holds: a scratch file that was not committed is removed. */
void bpk_io_done(struct bpk_io_file *file);

/* Write all of @size bytes. */
int bpk_io_write(struct bpk_io_file *file, const void *data, size_t size);
/* @size zero bytes, for which nothing is written: the file is new and has a hole. */
void bpk_io_skip(struct bpk_io_file *file, uint64_t size);
/*
 * Copy up to @size bytes at @off of @fd: by sharing blocks where both offsets lie
 * alike in a block and the file system can, else in the kernel, else by reading and
 * writing. *@ret_done may be less than @size and is 0 only at the end of @fd.
 * *@ret_source_failed: the failure was in reading.
 */
int bpk_io_copy(struct bpk_io_file *file, int fd, uint64_t off, size_t size,
		size_t *ret_done, bool *ret_source_failed);

/* Is @fd the same file as what is written? */
bool bpk_io_same(const struct bpk_io_file *file, int fd);

/* What a caller may ask for. */
struct bpk_io_replace {
	bool named;	     /* a name from the start, also where it needs none */
	const char *scratch; /* see struct bpk_write_options */
	bool exclusive;
};

/*
 * Replacing @path: begin, write, finish, commit; and bpk_io_done() in any case.
 * begin follows symlinks, refuses what is no regular file, and makes the scratch
 * file: without a name where the system can.
 * finish gives it the old file's owner, ACL, xattrs and mode, the name, and flushes
 * it to disk. commit renames it and flushes the directory.
 */
int bpk_io_replace_begin(const char *path, const struct bpk_io_replace *how,
			 struct bpk_io_file *ret_file, struct bpk_error *error);
int bpk_io_replace_finish(struct bpk_io_file *file, struct bpk_error *error);
/* The finished file, opened anew for reading. */
int bpk_io_replace_reopen(const struct bpk_io_file *file, int *ret_fd,
			  struct bpk_error *error);
int bpk_io_replace_commit(struct bpk_io_file *file, struct bpk_error *error);

/* In place: open or create, truncate, write, close. */
int bpk_io_in_place_open(const char *path, struct bpk_io_file *ret_file,
			 struct bpk_error *error);
int bpk_io_in_place_truncate(struct bpk_io_file *file, struct bpk_error *error);
int bpk_io_in_place_close(struct bpk_io_file *file, struct bpk_error *error);

#endif
