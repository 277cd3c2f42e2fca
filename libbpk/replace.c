/*
 * replace.c - a file put in the place of another one at once; see io.h.
 *
 * Invariants: while has_scratch is set, the scratch name is a file that this code made
 * and that nobody else knows; it is removed unless it was renamed over the destination.
 * The destination itself is touched by that one rename only.
 */
#include "io_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SYMLINKS_MAX 40 /* as the kernel */
#define SCRATCH_TRIES 100
#define SCRATCH_END ".bpk-tmp"
#define SCRATCH_RANDOM 6
/* "." NAME "." random SCRATCH_END */
#define SCRATCH_EXTRA (2 + SCRATCH_RANDOM + sizeof(SCRATCH_END) - 1)

/* Where a symlink leads ---------------------------------------------------- */

/* *@path, which is a symlink to @target, becomes the path of that. */
static int follow(char **path, const char *target)
{
	const char *slash = strrchr(*path, '/');
	size_t dir_size = *target == '/' || !slash ? 0 : (size_t)(slash + 1 - *path);
	char *joined = malloc(dir_size + strlen(target) + 1);

	if (!joined)
		return -ENOMEM;
	memcpy(joined, *path, dir_size);
	strcpy(joined + dir_size, target);
	free(*path);
	*path = joined;
	return 0;
}

/* realpath(3) of the last component only, and the target need not exist. */
static int resolve(const char *path, char **ret_path)
{
	_cleanup_(bpk_free_at) char *current = strdup(path);
	char target[PATH_MAX];

	if (!current)
		return -ENOMEM;
	for (unsigned int i = 0; i <= SYMLINKS_MAX; i++) {
		ssize_t n = readlink(current, target, sizeof(target) - 1);
		int r;

		if (n < 0 && (errno == EINVAL || errno == ENOENT)) {
			*ret_path = current;
			current = NULL;
			return 0;
		}
		if (n < 0)
			return -errno;
		target[n] = '\0';
		r = follow(&current, target);
		if (r < 0)
			return r;
	}
	return -ELOOP;
}

/* Open the folder of @path and keep the name in it. */
static int open_dir(struct bpk_io_file *file, char *path)
{
	char *slash = strrchr(path, '/');
	const char *dir = ".", *name = path;

	if (slash) {
		name = slash + 1;
		dir = slash == path ? "/" : path;
	}
	if (!*name)
		return *path ? -EISDIR : -ENOENT;
	file->name = strdup(name);
	if (!file->name)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	if (slash == path)
		dir = "/";
	file->dir_fd = bpk_io_open_retrying(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	file->dir_readable = file->dir_fd >= 0;
	/* A folder that one may write in and not list. */
	if (file->dir_fd == -EACCES)
		file->dir_fd =
			bpk_io_open_retrying(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	return file->dir_fd < 0 ? file->dir_fd : 0;
}

/* The file that will be replaced, if there is one. */
static int open_old(struct bpk_io_file *file)
{
	struct stat st;
	uint64_t size;
	int fd, r;

	if (fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = bpk_io_open_retrying(file->dir_fd, file->name,
				  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return fd;
	r = bpk_io_check_regular(fd, &size);
	if (r < 0) {
		close(fd);
		return r;
	}
	file->old_fd = fd;
	return 0;
}

/* Scratch ------------------------------------------------------------------ */

/* "/proc/self/fd/N" */
#define PROC_PATH_SIZE 32
static const char *proc_path(char path[PROC_PATH_SIZE], int fd)
{
	snprintf(path, PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
	return path;
}

/* A name that nothing has, we hope: .NAME.XXXXXX.bpk-tmp, NAME cut so that it fits. */
static int make_scratch_name(const struct bpk_io_file *file, char name[NAME_MAX + 1])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	long max = file->dir_readable ? fpathconf(file->dir_fd, _PC_NAME_MAX) : NAME_MAX;
	size_t keep = strlen(file->name), room;
	uint8_t random[SCRATCH_RANDOM];
	char text[SCRATCH_RANDOM + 1] = { 0 };

	if (max <= (long)SCRATCH_EXTRA || max > NAME_MAX)
		max = NAME_MAX;
	room = (size_t)max - SCRATCH_EXTRA;
	if (keep > room) {
		keep = room;
		/* Not in the middle of a character: some file systems mind. */
		while (keep && ((uint8_t)file->name[keep] & 0xc0) == 0x80)
			keep--;
	}
	while (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		if (errno != EINTR)
			return -errno;
	for (size_t i = 0; i < SCRATCH_RANDOM; i++)
		text[i] = letters[random[i] % (sizeof(letters) - 1)];
	snprintf(name, NAME_MAX + 1, ".%.*s.%s%s", (int)keep, file->name, text,
		 SCRATCH_END);
	return 0;
}

/* Try names with @take until it makes one. */
static int take_scratch_name(struct bpk_io_file *file,
			     int (*take)(struct bpk_io_file *file, const char *name))
{
	char name[NAME_MAX + 1];
	int r;

	if (file->scratch_path) {
		if (unlink(file->scratch_path) < 0 && errno != ENOENT)
			return -errno;
		r = take(file, file->scratch_path);
		file->has_scratch = r >= 0;
		return r;
	}
	for (unsigned int i = 0; i < SCRATCH_TRIES; i++) {
		r = make_scratch_name(file, name);
		if (r < 0)
			return r;
		r = take(file, name);
		if (r == -EEXIST)
			continue;
		if (r < 0)
			return r;
		strcpy(file->scratch, name);
		file->has_scratch = true;
		return 0;
	}
	return -EEXIST;
}

/* Until it has the old file's attributes nobody else may open a replacement. */
static mode_t scratch_mode(const struct bpk_io_file *file)
{
	return file->old_fd < 0 ? 0666 : 0600;
}

/* The scratch file's folder, for the calls that take one and a name. */
static int scratch_dir(const struct bpk_io_file *file)
{
	return file->scratch_path ? AT_FDCWD : file->dir_fd;
}

static const char *scratch_name(const struct bpk_io_file *file)
{
	return file->scratch_path ? file->scratch_path : file->scratch;
}

static int take_by_open(struct bpk_io_file *file, const char *name)
{
	int fd = bpk_io_open_retrying(scratch_dir(file), name,
				      O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
				      scratch_mode(file));

	if (fd < 0)
		return fd;
	file->fd = fd;
	return 0;
}

static int take_by_link(struct bpk_io_file *file, const char *name)
{
	char path[PROC_PATH_SIZE];

	return linkat(AT_FDCWD, proc_path(path, file->fd), scratch_dir(file), name,
		      AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

/*
 * Without a name nothing can be left behind, not even by a kill. It needs a file
 * system that can, and /proc to give it a name in the end.
 */
static bool open_nameless(struct bpk_io_file *file)
{
	char path[PROC_PATH_SIZE];
	int fd = bpk_io_open_retrying(file->dir_fd, ".", O_RDWR | O_TMPFILE,
				      scratch_mode(file));

	if (fd < 0)
		return false;
	if (access(proc_path(path, fd), F_OK) < 0) {
		close(fd);
		return false;
	}
	file->fd = fd;
	return true;
}

static int begin(struct bpk_io_file *file, const char *path,
		 const struct bpk_io_replace *how, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *target = NULL;
	int r;

	r = resolve(path, &target);
	if (r >= 0)
		r = open_dir(file, target);
	if (r < 0)
		return bpk_io_fail(error, r, "cannot find the place of", file->label);
	r = open_old(file);
	if (r == -EINVAL)
		return bpk_io_not_regular(error, r, file->label);
	if (r < 0)
		return bpk_io_fail(error, r, "cannot replace", file->label);
	if (how->exclusive && file->old_fd >= 0)
		return bpk_io_fail(error, -EEXIST, "cannot make", file->label);
	file->exclusive = how->exclusive;
	if (how->scratch) {
		file->scratch_path = strdup(how->scratch);
		if (!file->scratch_path)
			return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
					"no memory");
	}
	if (!how->named && open_nameless(file))
		return 0;
	r = take_scratch_name(file, take_by_open);
	return r < 0 ? bpk_io_fail(error, r, "cannot make a scratch file beside",
				   file->label)
		     : 0;
}

int bpk_io_replace_begin(const char *path, const struct bpk_io_replace *how,
			 struct bpk_io_file *ret_file, struct bpk_error *error)
{
	struct bpk_io_file file;
	int r;

	bpk_io_file_init(&file, path);
	r = begin(&file, path, how, error);
	if (r < 0) {
		bpk_io_done(&file);
		return r;
	}
	*ret_file = file;
	return 0;
}

/* The old file's attributes ------------------------------------------------ */

#define ACL_XATTR "system.posix_acl_access"

/* Labels and the like belong to the system, which may say that we cannot set them.
 * What a user set (user.) and what decides about access (system.) is ours to keep. */
static bool may_be_lost(const char *name)
{
	return strncmp(name, "user.", 5) && strncmp(name, "system.", 7);
}

/* The names of all xattrs, or *@ret_size 0 where there is no such thing. */
static int list_xattrs(int fd, char **ret_list, size_t *ret_size)
{
	_cleanup_(bpk_free_at) char *list = NULL;
	ssize_t size;

	for (;;) {
		size = flistxattr(fd, NULL, 0);
		if (size < 0)
			break;
		free(list);
		list = malloc((size_t)size + 1);
		if (!list)
			return -ENOMEM;
		size = flistxattr(fd, list, (size_t)size);
		if (size >= 0 || errno != ERANGE) /* it grew in between */
			break;
	}
	if (size < 0 && errno != ENOTSUP && errno != ENOSYS)
		return -errno;
	*ret_size = size < 0 ? 0 : (size_t)size;
	*ret_list = list;
	list = NULL;
	return 0;
}

static int copy_xattr(int from, int to, const char *name)
{
	_cleanup_(bpk_free_at) void *value = NULL;
	ssize_t size;

	for (;;) {
		size = fgetxattr(from, name, NULL, 0);
		if (size < 0)
			break;
		free(value);
		value = malloc((size_t)size + 1);
		if (!value)
			return -ENOMEM;
		size = fgetxattr(from, name, value, (size_t)size);
		if (size >= 0 || errno != ERANGE)
			break;
	}
	if (size < 0)
		return errno == ENODATA ? 0 : -errno; /* gone in between */
	return fsetxattr(to, name, value, (size_t)size, 0) < 0 ? -errno : 0;
}

static int copy_xattrs(const struct bpk_io_file *file)
{
	_cleanup_(bpk_free_at) char *list = NULL;
	bool acl = false;
	size_t size = 0;
	int r;

	r = list_xattrs(file->old_fd, &list, &size);
	if (r < 0)
		return r;
	for (size_t at = 0; at < size; at += strlen(list + at) + 1) {
		const char *name = list + at;

		acl |= !strcmp(name, ACL_XATTR);
		r = copy_xattr(file->old_fd, file->fd, name);
		if ((r == -EPERM || r == -EACCES || r == -ENOTSUP || r == -EINVAL) &&
		    may_be_lost(name))
			continue;
		if (r < 0)
			return r;
	}
	/* One that the new file got from its folder and the old one did not have. */
	if (!acl && fremovexattr(file->fd, ACL_XATTR) < 0 && errno != ENODATA &&
	    errno != ENOTSUP)
		return -errno;
	return 0;
}

/* Owner first: a change of it clears set-id bits. Mode last: it is the ACL's mask. */
static int keep_attributes(struct bpk_io_file *file, struct bpk_error *error)
{
	const mode_t bits = 07777;
	struct stat old, now;
	int r;

	if (fstat(file->old_fd, &old) < 0 || fstat(file->fd, &now) < 0)
		return bpk_io_fail(error, -errno, "cannot read the attributes of",
				   file->label);
	if ((old.st_uid != now.st_uid || old.st_gid != now.st_gid) &&
	    fchown(file->fd, old.st_uid == now.st_uid ? (uid_t)-1 : old.st_uid,
		   old.st_gid == now.st_gid ? (gid_t)-1 : old.st_gid) < 0)
		return bpk_io_fail(error, -errno, "cannot keep the owner of",
				   file->label);
	r = copy_xattrs(file);
	if (r < 0)
		return bpk_io_fail(error, r, "cannot keep the ACL or xattrs of",
				   file->label);
	if (fchmod(file->fd, old.st_mode & bits) < 0 || fstat(file->fd, &now) < 0)
		return bpk_io_fail(error, -errno, "cannot keep the mode of", file->label);
	if ((now.st_mode & bits) != (old.st_mode & bits))
		return bpk_io_fail(error, -EPERM, "cannot keep the mode of", file->label);
	return 0;
}

/* Commit ------------------------------------------------------------------- */

int bpk_io_replace_finish(struct bpk_io_file *file, struct bpk_error *error)
{
	int r;

	r = bpk_io_set_size(file);
	if (r < 0)
		return bpk_io_fail(error, r, "cannot write the end of", file->label);
	if (file->old_fd >= 0) {
		r = keep_attributes(file, error);
		if (r < 0)
			return r;
	}
	/* The long flush while it has no name to be left behind. */
	r = bpk_io_flush(file->fd);
	if (r >= 0 && !file->has_scratch) {
		r = take_scratch_name(file, take_by_link);
		if (r < 0)
			return bpk_io_fail(error, r,
					   "cannot name the scratch file beside",
					   file->label);
		r = bpk_io_flush(file->fd);
	}
	if (r < 0)
		return bpk_io_fail(error, r, "cannot flush the new bytes of",
				   file->label);
	/* Needed only where the folder itself cannot be flushed. */
	if (!file->dir_readable)
		return 0;
	r = bpk_io_close_checked(file);
	return r < 0 ? bpk_io_fail(error, r, "cannot write", file->label) : 0;
}

static int flush_dir(struct bpk_io_file *file)
{
	int r;

	if (file->dir_readable)
		return bpk_io_flush(file->dir_fd);
	r = syncfs(file->fd) < 0 ? -errno : 0;
	return r < 0 ? r : bpk_io_close_checked(file);
}

int bpk_io_replace_reopen(const struct bpk_io_file *file, int *ret_fd,
			  struct bpk_error *error)
{
	int fd = bpk_io_open_retrying(scratch_dir(file), scratch_name(file),
				      O_RDONLY | O_NOFOLLOW, 0);

	if (fd < 0)
		return bpk_io_fail(error, fd, "cannot read back", file->label);
	*ret_fd = fd;
	return 0;
}

/* Without RENAME_NOREPLACE a link does it: it fails where something is. */
static int rename_exclusive(const struct bpk_io_file *file)
{
	if (renameat2(scratch_dir(file), scratch_name(file), file->dir_fd, file->name,
		      RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(scratch_dir(file), scratch_name(file), file->dir_fd, file->name, 0) <
	    0)
		return -errno;
	unlinkat(scratch_dir(file), scratch_name(file), 0);
	return 0;
}

static int rename_over(const struct bpk_io_file *file)
{
	if (file->exclusive)
		return rename_exclusive(file);
	return renameat(scratch_dir(file), scratch_name(file), file->dir_fd, file->name) <
			       0
		       ? -errno
		       : 0;
}

int bpk_io_replace_commit(struct bpk_io_file *file, struct bpk_error *error)
{
	int r = rename_over(file);

	if (r < 0)
		return bpk_io_fail(error, r, "cannot rename the new file to",
				   file->label);
	file->has_scratch = false;
	r = flush_dir(file);
	if (r < 0)
		return bpk_io_fail(
			error, r,
			"the new pack is in place, but a crash may undo that: cannot "
			"flush the folder of",
			file->label);
	return 0;
}
