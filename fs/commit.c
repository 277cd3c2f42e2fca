/*
 * commit.c - see commit.h.
 */
#include "commit.h"
#include "base.h"
#include "collect.h"
#include "edit.h"
#include "error.h"
#include "journal.h"
#include "kept.h"
#include "lock.h"
#include "log.h"
#include "npy_draft.h"
#include "rebase.h"
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRATCH_TRIES 100

struct commit {
	struct mount *mount;
	int (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
	struct collected collected;
	struct pack *made; /* the new pack, as it was read back */
	bool changed;	   /* the pack is another file now */
};

/* Is what would be replaced what it was, and the pack that is copied from? */
static int check_unchanged(struct commit *commit)
{
	if (target_unchanged(&commit->mount->target) &&
	    pack_intact(commit->mount->overlay.pack))
		return 0;
	commit->changed = true;
	return -ESTALE;
}

/* The new pack is on disk, under its scratch name: does it open, is there still what
 * it replaces, and does a journal know of it? */
static int confirm(void *context, int fd)
{
	struct commit *commit = context;
	int error = pack_open_fd(fd, &commit->made, NULL);
	pid_t owner;

	/* Nobody has it yet: when others can see it, it has its writer. */
	if (!error)
		(void)lock_file(bpk_reader_fd(commit->made->reader), &owner);
	if (!error)
		error = check_unchanged(commit);
	if (!error)
		error = journal_announce(commit->mount, &commit->made->stat);
	return error;
}

static int pass_progress(void *context, uint64_t done, uint64_t total)
{
	struct commit *commit = context;
	struct mount *mount = commit->mount;

	__atomic_store_n(&mount->commit_done, done, __ATOMIC_RELAXED);
	__atomic_store_n(&mount->commit_total, total, __ATOMIC_RELAXED);
	return commit->progress ? commit->progress(commit->context, done, total) : 0;
}

/*
 * The name that the new pack has first, malloc'd; NULL without memory. Where a folder is,
 * which is somebody else's, one behind it. Anything else that is there the writer
 * removes, and follows no link.
 */
static char *scratch_of(const struct mount *mount)
{
	char *path = strdup(mount->scratch_path);
	struct stat st;

	for (int i = 1; path && i <= SCRATCH_TRIES; i++) {
		if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			break;
		free(path);
		if (asprintf(&path, "%s.%d", mount->scratch_path, i) < 0)
			path = NULL;
	}
	return path;
}

static int write_pack(struct commit *commit, struct bpk_error *error)
{
	struct mount *mount = commit->mount;
	char *scratch = scratch_of(mount);
	const struct bpk_write_options options = {
		.progress = pass_progress,
		.confirm = confirm,
		.context = commit,
		.scratch = scratch,
		.exclusive = !mount->target.there,
	};
	struct bpk_writer *writer = NULL;
	struct pack *old;
	int result = scratch ? bpk_writer_new(NULL, &writer) : -ENOMEM;

	if (result) {
		free(scratch);
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory");
	}
	pthread_mutex_lock(&mount->lock);
	/* Ranges are copied from it after the lock is let go. */
	old = pack_ref(mount->overlay.pack);
	result = collect_overlay(&commit->collected, &mount->overlay, writer, error);
	pthread_mutex_unlock(&mount->lock);
	staging_make_place(&mount->staging);
	if (!result)
		result = bpk_writer_write_file(writer, mount->target.path, &options,
					       error);
	bpk_writer_free(writer);
	pack_unref(old);
	free(scratch);
	return result;
}

/* Is the new pack in place, though an error came after the rename? */
static bool is_in_place(const struct commit *commit)
{
	struct stat now;

	return commit->made && stat(commit->mount->target.path, &now) == 0 &&
	       pack_is(commit->made, &now);
}

static void report(struct mount *mount, enum status status, int error,
		   const char *message)
{
	pthread_mutex_lock(&mount->lock);
	mount->result = status;
	mount->commit_error = error;
	snprintf(mount->message, sizeof(mount->message), "%s", message);
	pthread_mutex_unlock(&mount->lock);
}

/* The new pack is where the old one was: the mount goes on over it. */
static int go_over(struct commit *commit)
{
	struct mount *mount = commit->mount;
	int error;

	pthread_mutex_lock(&mount->lock);
	error = mount_rebase(mount, commit->made, &commit->collected.frozen);
	collected_release(&commit->collected);
	/* At once: who sees that nothing is edited any more compares with the target. */
	if (!error)
		target_is_pack(&mount->target, commit->made);
	pthread_mutex_unlock(&mount->lock);
	return error;
}

static void tell_changed(const struct mount *mount, char *message, size_t size)
{
	const struct target *target = &mount->target;

	if (target_unchanged(target))
		snprintf(message, size,
			 "%s: not committed: the pack %s was changed in place since it "
			 "was mounted",
			 target->path, mount->pack_path);
	else if (target->there)
		snprintf(message, size,
			 "%s: not committed: %s changed on disk since %s, nothing was "
			 "overwritten",
			 target->path,
			 target->fd < 0 ? "the pack" : "the file that was to be replaced",
			 target->fd < 0 ? "it was mounted" : "the pack was mounted");
	else
		snprintf(message, size,
			 "%s: not committed: somebody else made it since the mount, "
			 "nothing was overwritten",
			 target->path);
}

static enum status tell_failure(struct commit *commit, const struct bpk_error *error,
				char *message, size_t size)
{
	const char *path = commit->mount->target.path;

	/* Somebody was faster, between the check and the rename. */
	if (!commit->mount->target.there && !is_in_place(commit) &&
	    !target_unchanged(&commit->mount->target))
		commit->changed = true;
	if (commit->changed) {
		tell_changed(commit->mount, message, size);
		return STATUS_PACK_CHANGED;
	}
	snprintf(message, size, "%s: %s%s", path,
		 is_in_place(commit) ? "" : "not committed: ", error->message);
	return STATUS_COMMIT_FAILED;
}

static void tell_left_out(const struct commit *commit, char *message, size_t size)
{
	snprintf(message, size, "%s: committed, but %zu invalid edit%s left out: %s",
		 commit->mount->target.path, commit->collected.left_out_count,
		 commit->collected.left_out_count == 1 ? " was" : "s were",
		 commit->collected.left_out);
}

/* One commit; the writer lock is held. */
static enum status run(struct mount *mount, bool live,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context, bool *ret_in_place)
{
	struct commit commit = { .mount = mount,
				 .progress = progress,
				 .context = context };
	struct bpk_error error = { .message = "" };
	char message[sizeof(mount->message)] = "";
	enum status status = STATUS_OK;
	int result = check_unchanged(&commit);
	bool in_place, unsure;

	if (!result)
		result = write_pack(&commit, &error);
	if (result)
		status = tell_failure(&commit, &error, message, sizeof(message));
	else if (commit.collected.left_out_count)
		status = STATUS_INVALID_LEFT_OUT;
	if (status == STATUS_INVALID_LEFT_OUT)
		tell_left_out(&commit, message, sizeof(message));
	in_place = !result || is_in_place(&commit);
	/* The journal stays where a power failure would bring the old pack back. */
	unsure = result && in_place;
	if (status == STATUS_INVALID_LEFT_OUT)
		result = -EINVAL;
	if (live && in_place) {
		int over = go_over(&commit);

		if (over) {
			live = false;
			result = over;
			status = STATUS_COMMIT_FAILED;
			snprintf(message, sizeof(message),
				 "%s: committed, but the mount cannot go on over the new "
				 "pack: %s; unmount it",
				 mount->target.path, strerror(-over));
		}
	} else {
		pthread_mutex_lock(&mount->lock);
		collected_release(&commit.collected);
		pthread_mutex_unlock(&mount->lock);
	}
	if (in_place)
		mount->target.unsure = unsure;
	if (!unsure)
		journal_settle(mount, in_place, live);
	collected_done(&commit.collected);
	pack_unref(commit.made);
	report(mount, status, result, message);
	*ret_in_place = in_place;
	return status;
}

/* The pack has all edits. Is it sure to stay, if the last commit could not tell? */
static enum status make_sure(struct mount *mount)
{
	bool unsure = mount->target.unsure;
	int error = target_flush(&mount->target, mount->overlay.pack);
	char message[sizeof(mount->message)];

	if (error) {
		snprintf(message, sizeof(message),
			 "%s: committed, but a crash may undo that: cannot flush its "
			 "folder: %s",
			 mount->target.path, strerror(-error));
		report(mount, STATUS_COMMIT_FAILED, error, message);
		return STATUS_COMMIT_FAILED;
	}
	if (unsure)
		journal_settle(mount, true, true);
	report(mount, STATUS_OK, 0, "");
	return STATUS_OK;
}

enum status commit_now(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context)
{
	enum status status = STATUS_OK;
	bool dirty, in_place;

	pthread_mutex_lock(&mount->writer_lock);
	pthread_mutex_lock(&mount->lock);
	dirty = mount->writable && overlay_dirty(&mount->overlay);
	mount->commit_done = mount->commit_total = 0;
	mount->committing = dirty;
	pthread_mutex_unlock(&mount->lock);
	if (dirty)
		status = run(mount, true, progress, context, &in_place);
	else
		status = make_sure(mount);
	pthread_mutex_lock(&mount->lock);
	mount->committing = false;
	pthread_mutex_unlock(&mount->lock);
	pthread_mutex_unlock(&mount->writer_lock);
	return status;
}

void commit_at_unmount(struct mount *mount,
		       int (*progress)(void *context, uint64_t done, uint64_t total),
		       void *context)
{
	enum status status;
	bool in_place;

	/* Commits that somebody asked for while it was mounted are over first. */
	worker_wait(&mount->workers);
	mount->result = STATUS_OK;
	mount->message[0] = '\0';
	if (mount->writable && !mount->discard)
		edit_settle(mount);
	if (!mount->writable || mount->discard)
		return;
	pthread_mutex_lock(&mount->writer_lock);
	in_place = !overlay_dirty(&mount->overlay);
	status = in_place ? make_sure(mount)
			  : run(mount, false, progress, context, &in_place);
	pthread_mutex_unlock(&mount->writer_lock);
	if (!in_place && status != STATUS_OK)
		keep_edits(mount, status);
}

/* A commit that was asked for by fsync(2) -------------------------------------- */

struct request {
	struct mount *mount;
	void (*done)(void *context, int error);
	void *context;
};

static void serve_request(void *context)
{
	struct request *request = context;

	struct pack *old;
	int error = commit_and_tell(request->mount, &old);

	request->done(request->context, error);
	free(request);
	pack_unref(old);
}

int commit_and_tell(struct mount *mount, struct pack **ret_old)
{
	char message[sizeof(mount->message)];
	int error;

	pthread_mutex_lock(&mount->lock);
	*ret_old = pack_ref(mount->overlay.pack);
	pthread_mutex_unlock(&mount->lock);
	commit_now(mount, NULL, NULL);
	pthread_mutex_lock(&mount->lock);
	error = mount->commit_error;
	memcpy(message, mount->message, sizeof(message));
	pthread_mutex_unlock(&mount->lock);
	/* fsync(2) has no words, and not everybody looks at what it says. */
	if (message[0])
		log_line("%s", message);
	return error;
}

int commit_request(struct mount *mount, void (*done)(void *context, int error),
		   void *context)
{
	struct request *request = malloc(sizeof(*request));
	int error;

	if (!request)
		return -ENOMEM;
	*request = (struct request) { mount, done, context };
	error = worker_start(&mount->workers, serve_request, request);
	if (error)
		free(request);
	return error;
}
