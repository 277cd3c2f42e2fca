/*
 * spare.h - how many files may be open, and descriptors that are kept back. Each tensor
 * that is written and each pack that is edited has some until a commit, which needs a few
 * more itself, and so do saving and listing: a mount that had spent all could do nothing
 * with its edits any more.
 */
#ifndef BPKFS_SPARE_H
#define BPKFS_SPARE_H

/* From now on as many as the caller may have at all: each tensor that is written has a
 * file, and usually a thousand are allowed until somebody asks for more. */
void spare_raise_limit(void);

/* A descriptor that was opened to stay, or -errno, which is given back. One of those that
 * are kept back is closed: -EMFILE. */
int spare_keep(int fd);

#endif
