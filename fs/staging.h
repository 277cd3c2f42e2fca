/*
 * staging.h - the folder beside a pack where new bytes lie until a commit.
 *
 * One folder a pack, ".NAME.bpkfs" in the pack's own folder (or under the folder
 * that -o staging names), so that there is room where the new pack goes and a
 * commit can copy inside the kernel. It holds a lock file, the pid of its owner,
 * and one file for each tensor or scratch file that was written. It knows
 * nothing of tensors or names.
 */
#ifndef BPKFS_STAGING_H
#define BPKFS_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct staging {
	int dir_fd;
	int lock_fd;
	char *path;
	uint64_t next;
	bool keep;   /* files stay when nobody refers to them any more */
	bool placed; /* the folder's own name is on disk */
	/* Files that nobody refers to any more but the journal on disk. */
	pthread_mutex_t lock; /* guards these two */
	uint64_t *orphans;
	size_t orphan_count;
	size_t orphan_capacity;
};

struct staged {
	unsigned refs; /* atomic */
	int fd;
	struct staging *staging;
	uint64_t number; /* its name */
	/* What was written makes it so long, whatever is on disk. Guarded, as the order
	 * of writes is, by the mount's lock. */
	uint64_t size;
	unsigned cuts;	 /* atomic: how often it was made shorter, by staged_truncate() */
	bool journaled;	 /* atomic: a journal names it, or is about to */
	unsigned frozen; /* commits that copy from it; the mount's lock */
};

/*
 * Make (or take over) the folder at @path and lock it. Errors: -EBUSY with
 * *@ret_owner set when another process has it, else those of mkdir and open.
 */
int staging_open(struct staging *staging, const char *path, pid_t *ret_owner);
/*
 * Where a commit that failed says what the staged files are. The room for it is
 * reserved while the disk may still have some.
 */
#define STAGING_RESERVE "reserve"
#define STAGING_KEPT "kept-edits"
#define STAGING_RESERVE_SIZE (64 << 10)

/* Has somebody removed the folder? What is open can still be committed; nothing in it
 * can be named again, so no journal is saved. */
bool staging_gone(const struct staging *staging);

/* If so, make an empty one, for the scratch file of a commit. */
void staging_make_place(const struct staging *staging);

/* There is no more use in waiting for a worse moment: give the reserve back. */
void staging_free_reserve(const struct staging *staging);

/* A file in the folder: a descriptor, or -errno. */
int staging_open_at(const struct staging *staging, const char *name, int flags);
/* The names in the folder @path, from @dir_fd on, are on disk; @inside_fd is something in
 * it. 0 or -errno. */
int staging_flush_folder(int dir_fd, const char *path, int inside_fd);
/*
 * Before the first thing that must outlast a power cut is said to be on disk: the folder
 * itself is. 0 or -errno. One caller at a time.
 */
int staging_flush_place(struct staging *staging);

/* Remove everything but the lock and the reserve. */
void staging_clear(const struct staging *staging);
/* Close; with @remove everything in it goes, and the folder. */
void staging_close(struct staging *staging, bool remove);
/* Close, and the folder goes if there is nothing in it of an earlier mount. */
void staging_leave(struct staging *staging);

/*
 * Files that went while a journal named them. Ask how many there are before a new
 * journal is written that does not; when it is on disk, the first so many can go.
 */
size_t staging_orphans(struct staging *staging);
void staging_remove_orphans(struct staging *staging, size_t count);

/* Remove every staged file that @keep does not say yes to. */
void staging_sweep(struct staging *staging,
		   bool (*keep)(const void *context, uint64_t number),
		   const void *context);

/* The file of that number, as a journal names it, which knows that it is @size bytes
 * long: what is behind them goes. Errors: those of open(2), -EINVAL for what is no
 * regular file, -EFBIG. */
int staged_open(struct staging *staging, uint64_t number, uint64_t size,
		struct staged **ret_staged);
/* A new, empty file. */
int staged_new(struct staging *staging, struct staged **ret_staged);
struct staged *staged_ref(struct staged *staged);
void staged_unref(struct staged *staged); /* NULL accepted; the last one removes it */
/*
 * Its size now. Somebody may have made the file shorter from outside: what was lost is no
 * zeros, so whoever reads it, writes behind it, or makes the file longer gets -EIO. To be
 * made shorter than that, or written from there on, mends it.
 */
uint64_t staged_size(const struct staged *staged);
/* Are all its bytes still on disk, and how many are? */
bool staged_is_whole(const struct staged *staged, uint64_t *ret_there);
int staged_write(struct staged *staged, const void *data, size_t size, uint64_t off);
/* All @size bytes from @off, or -EIO. */
int staged_read(const struct staged *staged, void *data, size_t size, uint64_t off);
int staged_truncate(struct staged *staged, uint64_t size);
/* As fallocate(2). */
int staged_allocate(struct staged *staged, int mode, uint64_t off, uint64_t size);
/* Fill it with @size bytes from @off of @fd, in the kernel. */
int staged_copy(struct staged *staged, int fd, uint64_t off, uint64_t size);

#endif
