/*
 * io_impl.h - what io.c and replace.c share.
 */
#ifndef BPK_IO_IMPL_H
#define BPK_IO_IMPL_H

#include "io.h"

#include <sys/types.h>

/* Fill @error: "@what @label: the text of @r". Returns @r. */
int bpk_io_fail(struct bpk_error *error, int r, const char *what, const char *label);
/* -EISDIR, -EINVAL for what is no regular file. */
int bpk_io_check_regular(int fd, uint64_t *ret_size);
int bpk_io_not_regular(struct bpk_error *error, int r, const char *label);
/* openat(2) with O_CLOEXEC, restarted. */
int bpk_io_open_retrying(int dir_fd, const char *path, int flags, mode_t mode);
/* Nothing is open; the label says @path. */
void bpk_io_file_init(struct bpk_io_file *file, const char *path);
/* Zeros at the end were skipped: make the file as long as it must be. */
int bpk_io_set_size(struct bpk_io_file *file);
int bpk_io_close_checked(struct bpk_io_file *file);
int bpk_io_flush(int fd);

#endif
