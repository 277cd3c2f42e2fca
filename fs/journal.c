/*
 * journal.c - see journal.h.
 *
 * The file: eight bytes of magic, FNV-1a 64 of what follows (little endian), and a CBOR
 * array of the pack's identity and of one array for each item of the overlay that is
 * not as in the pack. The check is against a torn write, not against malice: every
 * field is checked as one from a stranger.
 */
#include "journal.h"
#include "base.h"
#include "journal_item.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "journal"
#define NEW_NAME "journal.new"
#define ANNOUNCED_NAME "committing"
#define MAGIC "BPKJRNL2"
#define HEAD_SIZE 16
/* No edits can need more: twice the metadata that a pack may have. */
#define SIZE_MAX_FILE (UINT64_C(256) << 20)
#define NESTING 8

static uint64_t checksum(const uint8_t *data, size_t size)
{
	return name_hash((const char *)data, size);
}

/* Files -------------------------------------------------------------------- */

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t done = write(fd, data, size);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		data += done;
		size -= (size_t)done;
	}
	return 0;
}

static int flush(int fd)
{
	int result;

	do
		result = fsync(fd);
	while (result < 0 && errno == EINTR);
	return result < 0 ? -errno : 0;
}

/* Put a file with magic, check and @payload at @name, at once. */
static int put_file(const struct staging *staging, const char *name,
		    const struct bpk_appender *payload)
{
	uint64_t check = checksum(payload->data, payload->size);
	uint8_t head[HEAD_SIZE];
	int fd, error, closed;

	memcpy(head, MAGIC, 8);
	bpk_put_le32(head + 8, (uint32_t)check);
	bpk_put_le32(head + 12, (uint32_t)(check >> 32));
	unlinkat(staging->dir_fd, NEW_NAME, 0);
	fd = staging_open_at(staging, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	error = write_all(fd, head, sizeof(head));
	if (!error)
		error = write_all(fd, payload->data, payload->size);
	if (!error)
		error = flush(fd);
	closed = close(fd) < 0 && errno != EINTR ? -errno : 0;
	if (!error)
		error = closed;
	if (!error && renameat(staging->dir_fd, NEW_NAME, staging->dir_fd, name) < 0)
		error = -errno;
	if (error)
		unlinkat(staging->dir_fd, NEW_NAME, 0);
	return error ? error : flush(staging->dir_fd);
}

/* The payload of such a file, malloc'd; -ENOENT when there is none. */
static int get_file(const struct staging *staging, const char *name, uint8_t **ret_data,
		    size_t *ret_size)
{
	int fd = staging_open_at(staging, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	uint8_t *data = NULL;
	size_t size = 0, done = 0;
	struct stat st;
	int error = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		error = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_size < HEAD_SIZE ||
		 (uint64_t)st.st_size > SIZE_MAX_FILE)
		error = -EBADMSG;
	if (!error) {
		size = (size_t)st.st_size;
		data = malloc(size);
		error = data ? 0 : -ENOMEM;
	}
	while (!error && done < size) {
		ssize_t got = read(fd, data + done, size - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			error = got < 0 ? -errno : -EBADMSG;
		else
			done += (size_t)got;
	}
	close(fd);
	if (!error) {
		uint64_t check =
			bpk_get_le32(data + 8) | (uint64_t)bpk_get_le32(data + 12) << 32;

		if (memcmp(data, MAGIC, 8) != 0 ||
		    check != checksum(data + HEAD_SIZE, size - HEAD_SIZE))
			error = -EBADMSG;
	}
	if (error) {
		free(data);
		return error;
	}
	*ret_size = size - HEAD_SIZE;
	memmove(data, data + HEAD_SIZE, *ret_size);
	*ret_data = data;
	return 0;
}

/* Which file a pack is ----------------------------------------------------- */

static void append_identity(struct bpk_appender *out, const struct stat *st)
{
	bpk_append_array(out, 4);
	bpk_append_uint(out, st->st_ino);
	bpk_append_uint(out, (uint64_t)st->st_size);
	bpk_append_int(out, st->st_mtim.tv_sec);
	bpk_append_uint(out, (uint64_t)st->st_mtim.tv_nsec);
}

static int get_identity(struct bpk_cursor *cursor, const struct stat *st, bool *ret_same)
{
	uint64_t count, inode, size, nanoseconds;
	int64_t seconds;
	int error = journal_get_array(cursor, &count);

	if (!error && count != 4)
		error = -EBADMSG;
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &inode);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &size);
	if (!error)
		error = journal_get_int(cursor, &seconds);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &nanoseconds);
	if (error)
		return error;
	*ret_same = inode == st->st_ino && size == (uint64_t)st->st_size &&
		    seconds == st->st_mtim.tv_sec &&
		    nanoseconds == (uint64_t)st->st_mtim.tv_nsec;
	return 0;
}

/* Which pack the edits of a mount are of. One that is in no folder yet is no file: all
 * zeros, which no pack is. */
static const struct stat unborn;

static const struct stat *identity_of(const struct mount *mount)
{
	const struct pack *pack = mount->overlay.pack;

	return pack->unborn ? &unborn : &pack->stat;
}

int journal_announce(struct mount *mount, const struct stat *now)
{
	struct bpk_appender out = { 0 };
	int error;

	if (faccessat(mount->staging.dir_fd, FILE_NAME, F_OK, 0) < 0)
		return 0; /* no edits that could be brought back twice */
	append_identity(&out, now);
	error = out.failed ? -ENOMEM : put_file(&mount->staging, ANNOUNCED_NAME, &out);
	bpk_append_done(&out);
	return error;
}

/* Saving ------------------------------------------------------------------- */

struct saving {
	struct bpk_appender items;
	size_t count;
	struct staged **files; /* references, to be flushed */
	size_t file_count;
	size_t file_capacity;
	int error;
};

static int save_item(void *context, const struct item *item, enum change change)
{
	struct saving *saving = context;

	/* Made in npy/ and not written yet: nothing that could be brought back. */
	if (change != CHANGE_REMOVED && item_is_hollow(item))
		return 0;
	journal_put_item(&saving->items, item, change != CHANGE_REMOVED);
	saving->count++;
	if (change == CHANGE_REMOVED || !item->staged)
		return 0;
	if (bpk_grow((void **)&saving->files, &saving->file_capacity,
		     saving->file_count + 1, sizeof(*saving->files)))
		return saving->error = -ENOMEM;
	__atomic_store_n(&item->staged->journaled, true, __ATOMIC_RELAXED);
	saving->files[saving->file_count++] = staged_ref(item->staged);
	return 0;
}

/* A commit that could not take away what it outdated: else it would seem that the pack
 * had the edits of the journal that comes now. */
static int clear_announced(struct mount *mount)
{
	const struct staging *staging = &mount->staging;

	if (faccessat(staging->dir_fd, ANNOUNCED_NAME, F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	if ((unlinkat(staging->dir_fd, FILE_NAME, 0) < 0 && errno != ENOENT) ||
	    (unlinkat(staging->dir_fd, ANNOUNCED_NAME, 0) < 0 && errno != ENOENT))
		return -errno;
	return 0;
}

/* The writer lock is held. */
static int save(struct mount *mount)
{
	struct saving saving = { 0 };
	struct bpk_appender out = { 0 };
	size_t orphans;
	int error;

	pthread_mutex_lock(&mount->lock);
	orphans = staging_orphans(&mount->staging);
	overlay_each_change(&mount->overlay, save_item, &saving);
	append_identity(&out, identity_of(mount));
	pthread_mutex_unlock(&mount->lock);
	error = saving.error;
	for (size_t i = 0; i < saving.file_count; i++) {
		if (!error)
			error = flush(saving.files[i]->fd);
		staged_unref(saving.files[i]);
	}
	free(saving.files);
	bpk_append_array(&out, saving.count);
	bpk_append_raw(&out, saving.items.data, saving.items.size);
	if (!error && (out.failed || saving.items.failed))
		error = -ENOMEM;
	if (!error)
		error = staging_flush_place(&mount->staging);
	if (!error)
		error = target_flush(&mount->target, mount->overlay.pack);
	if (!error)
		error = clear_announced(mount);
	if (!error)
		error = put_file(&mount->staging, FILE_NAME, &out);
	if (!error)
		staging_remove_orphans(&mount->staging, orphans);
	bpk_append_done(&out);
	bpk_append_done(&saving.items);
	return error;
}

int journal_save(struct mount *mount)
{
	int error;

	pthread_mutex_lock(&mount->writer_lock);
	error = save(mount);
	pthread_mutex_unlock(&mount->writer_lock);
	return error;
}

/* What a commit left out, and a journal has, stays fsynced. */
static bool save_rest(struct mount *mount)
{
	bool rest;

	pthread_mutex_lock(&mount->lock);
	rest = overlay_dirty(&mount->overlay);
	pthread_mutex_unlock(&mount->lock);
	return rest && faccessat(mount->staging.dir_fd, FILE_NAME, F_OK, 0) == 0 &&
	       save(mount) == 0;
}

void journal_settle(struct mount *mount, bool done, bool live)
{
	if (done && !(live && save_rest(mount))) {
		size_t orphans = staging_orphans(&mount->staging);

		/* As long as it is there, it must be known to be in the pack. */
		if (unlinkat(mount->staging.dir_fd, FILE_NAME, 0) < 0 && errno != ENOENT)
			return;
		staging_remove_orphans(&mount->staging, orphans);
	}
	unlinkat(mount->staging.dir_fd, ANNOUNCED_NAME, 0);
}

/* Bringing back ------------------------------------------------------------ */

static int is_file_of(const struct mount *mount, const char *name, const struct stat *st,
		      bool *ret_same)
{
	struct bpk_cursor cursor = { .nesting = NESTING };
	uint8_t *data;
	int error = get_file(&mount->staging, name, &data, &cursor.size);

	if (error)
		return error;
	cursor.data = data;
	error = get_identity(&cursor, st, ret_same);
	free(data);
	return error;
}

bool journal_is_left(const char *path)
{
	static const char *const names[] = { FILE_NAME, ANNOUNCED_NAME, STAGING_KEPT };
	int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool left = false;

	for (size_t i = 0; fd >= 0 && i < sizeof(names) / sizeof(*names); i++)
		left = left || faccessat(fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (fd >= 0)
		close(fd);
	return left;
}

int journal_look(const struct mount *mount, enum journal_state *ret_state)
{
	const struct target *target = &mount->target;
	bool same;
	int error = is_file_of(mount, ANNOUNCED_NAME, &target->stat, &same);

	if (!error && same && target->there) {
		*ret_state = JOURNAL_NONE; /* what would be replaced has them */
		return 0;
	}
	if (error && error != -ENOENT && error != -EBADMSG)
		return error;
	error = is_file_of(mount, FILE_NAME, identity_of(mount), &same);
	if (error == -ENOENT) {
		*ret_state = JOURNAL_NONE;
		return 0;
	}
	if (!error && same) {
		*ret_state = JOURNAL_EDITS;
		return 0;
	}
	if (!error)
		error = is_file_of(mount, FILE_NAME, &unborn, &same);
	if (!error)
		*ret_state = same ? JOURNAL_UNBORN : JOURNAL_FOREIGN;
	return error;
}

static bool is_named(const void *context, uint64_t number)
{
	const struct item_table *table = context;

	for (size_t i = 0; i < table->count; i++)
		if (table->items[i]->staged && table->items[i]->staged->number == number)
			return true;
	return false;
}

int journal_replay(struct mount *mount, size_t *ret_count)
{
	struct overlay *overlay = &mount->overlay;
	struct bpk_cursor cursor = { .nesting = NESTING };
	uint64_t count = 0;
	uint8_t *data;
	bool same;
	int error = get_file(&mount->staging, FILE_NAME, &data, &cursor.size);

	if (error)
		return error;
	cursor.data = data;
	error = get_identity(&cursor, identity_of(mount), &same);
	if (!error)
		error = journal_get_array(&cursor, &count);
	for (uint64_t i = 0; i < count && !error; i++) {
		struct item *item;

		error = journal_get_item(mount, &cursor, &item);
		if (!error)
			error = overlay_restore(overlay, item);
	}
	free(data);
	if (!error)
		error = overlay_check_restored(overlay);
	if (error == -EINVAL)
		error = -EBADMSG;
	if (error)
		return error;
	staging_sweep(&mount->staging, is_named, &overlay->tables[ITEM_TENSOR]);
	*ret_count = (size_t)count;
	return 0;
}
