/*
 * checkpoint.c - epochs in a folder, saved here or on a thread.
 *
 * The thread is given bytes and a place of which nothing changes, and shares nothing
 * else: whoever wants to know how it went joins it. So there is no lock.
 *
 * Invariants: job.running says that there is a thread to join, and until that is done
 * only it touches the job. A file that has an epoch's name is complete.
 */
#include "record/checkpoint.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXTENSION ".bpk"

/* What a thread saves. */
struct job {
	bool running;
	pthread_t thread;
	const struct checkpoint_place *place;
	uint64_t epoch;
	void *bytes;
	uint64_t size;
	int result;
	struct bpk_error error;
};

struct bpk_checkpointer {
	struct checkpoint_place place;
	struct job job;
};

/* Names -------------------------------------------------------------------- */

char *bpk_checkpoint_path(const struct checkpoint_place *place, uint64_t epoch)
{
	size_t dir_size = strlen(place->dir), name_size = strlen(place->name);
	size_t size = dir_size + name_size + BPK_DECIMAL_SIZE + sizeof("/-" EXTENSION);
	char *path = malloc(size);

	if (path)
		snprintf(path, size, "%s/%s-%" PRIu64 EXTENSION, place->dir, place->name,
			 epoch);
	return path;
}

/* Is @file an epoch of @name? */
static bool parse_name(const char *name, const char *file, uint64_t *ret_epoch)
{
	size_t name_size = strlen(name), digits;

	if (strncmp(file, name, name_size) != 0 || file[name_size] != '-')
		return false;
	file += name_size + 1;
	digits = bpk_record_parse_decimal(file, strlen(file), ret_epoch);
	return digits && strcmp(file + digits, EXTENSION) == 0;
}

static int folder_error(const struct checkpoint_place *place, int r,
			struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE], reason[128];

	return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
			"cannot read the folder %s: %s",
			bpk_quote(quoted, place->dir, strlen(place->dir)),
			strerror_r(-r, reason, sizeof(reason)));
}

static int compare_epochs(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Everything in @dir that is an epoch, in any order. */
static int read_epochs(const struct checkpoint_place *place, DIR *dir,
		       uint64_t **ret_epochs, size_t *ret_count, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) uint64_t *epochs = NULL;
	size_t count = 0, capacity = 0;

	for (;;) {
		const struct dirent *entry;
		void *grown = epochs;

		errno = 0;
		entry = readdir(dir);
		if (!entry && errno)
			return folder_error(place, -errno, error);
		if (!entry)
			break;
		if (bpk_grow(&grown, &capacity, count + 1, sizeof(*epochs)) < 0)
			return record_no_memory(error);
		epochs = grown;
		if (parse_name(place->name, entry->d_name, &epochs[count]))
			count++;
	}
	*ret_epochs = epochs;
	*ret_count = count;
	epochs = NULL;
	return 0;
}

int bpk_checkpoint_list(const struct checkpoint_place *place, uint64_t **ret_epochs,
			size_t *ret_count, struct bpk_error *error)
{
	DIR *dir = opendir(place->dir);
	uint64_t *epochs = NULL;
	size_t count = 0;
	int r;

	if (!dir)
		return folder_error(place, -errno, error);
	r = read_epochs(place, dir, &epochs, &count, error);
	closedir(dir);
	if (r < 0)
		return r;
	if (count)
		qsort(epochs, count, sizeof(*epochs), compare_epochs);
	*ret_epochs = epochs;
	*ret_count = count;
	return 0;
}

/* Life --------------------------------------------------------------------- */

static int find_dir(struct checkpoint_place *place, const char *dir,
		    struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE], reason[128];
	int r;

	if (mkdir(dir, 0777) == 0 || errno == EEXIST) {
		place->dir = realpath(dir, NULL);
		if (place->dir)
			return 0;
	}
	r = -errno;
	return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
			"cannot use the folder %s: %s",
			bpk_quote(quoted, dir, strlen(dir)),
			strerror_r(-r, reason, sizeof(reason)));
}

static void free_checkpointer(struct bpk_checkpointer *checkpointer)
{
	free(checkpointer->place.dir);
	free(checkpointer->place.name);
	free(checkpointer);
}

BPK_EXPORT int bpk_checkpointer_new(const char *dir, const char *name,
				    const struct bpk_checkpointer_options *options,
				    struct bpk_checkpointer **ret_checkpointer,
				    struct bpk_error *error)
{
	struct bpk_checkpointer *checkpointer;
	size_t name_size = strlen(name);
	int r;

	if (!name_size || strchr(name, '/') || !bpk_utf8_valid(name, name_size))
		return record_bad_argument(error, "no name for checkpoints");
	checkpointer = calloc(1, sizeof(*checkpointer));
	if (!checkpointer)
		return record_no_memory(error);
	if (options)
		checkpointer->place.options = *options;
	checkpointer->place.name = malloc(name_size + 1);
	if (!checkpointer->place.name) {
		r = record_no_memory(error);
	} else {
		memcpy(checkpointer->place.name, name, name_size + 1);
		r = find_dir(&checkpointer->place, dir, error);
	}
	if (r < 0)
		free_checkpointer(checkpointer);
	else
		*ret_checkpointer = checkpointer;
	return r;
}

BPK_EXPORT int bpk_checkpointer_close(struct bpk_checkpointer *checkpointer,
				      struct bpk_error *error)
{
	int r;

	if (!checkpointer)
		return 0;
	r = bpk_checkpointer_wait(checkpointer, error);
	free_checkpointer(checkpointer);
	return r;
}

/* Saving ------------------------------------------------------------------- */

static int make_writer(const struct bpk_record *record, const double *metric,
		       struct bpk_writer **ret_writer, struct bpk_error *error)
{
	char text[CHECKPOINT_METRIC_SIZE];
	struct bpk_writer *writer;
	/* What an earlier epoch was worth says nothing of this one. */
	int r = bpk_record_to_writer(record, BPK_METRIC_KEY, &writer, error);

	if (r < 0)
		return r;
	if (metric) {
		bpk_checkpoint_metric_text(*metric, text);
		r = bpk_writer_set_metadata(writer, BPK_METRIC_KEY,
					    strlen(BPK_METRIC_KEY), text, strlen(text),
					    error);
	}
	if (r < 0)
		bpk_writer_free(writer);
	else
		*ret_writer = writer;
	return r;
}

static int write_epoch(const struct checkpoint_place *place, uint64_t epoch,
		       struct bpk_writer *writer, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *path = bpk_checkpoint_path(place, epoch);
	int r;

	if (!path)
		return record_no_memory(error);
	r = bpk_writer_write_file(writer, path, NULL, error);
	return r < 0 ? r : bpk_checkpoint_retain(place, epoch, error);
}

static int run_job(struct job *job)
{
	struct bpk_record *record;
	struct bpk_writer *writer;
	int r = bpk_record_from_bytes(job->bytes, (size_t)job->size, NULL, &record,
				      &job->error);

	if (r < 0)
		return r;
	r = bpk_record_to_writer(record, NULL, &writer, &job->error);
	if (r >= 0) {
		r = write_epoch(job->place, job->epoch, writer, &job->error);
		bpk_writer_free(writer);
	}
	bpk_record_free(record);
	return r;
}

static void *thread_main(void *context)
{
	struct job *job = context;

	job->result = run_job(job);
	free(job->bytes);
	job->bytes = NULL;
	return NULL;
}

/* The program's signals are the program's: its handlers do not run on this thread. */
static bool start_thread(struct job *job)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
		return false;
	r = pthread_create(&job->thread, NULL, thread_main, job);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r == 0;
}

static int save_async(struct bpk_checkpointer *checkpointer, uint64_t epoch,
		      struct bpk_writer *writer, struct bpk_error *error)
{
	struct job *job = &checkpointer->job;
	int r;

	*job = (struct job) { .place = &checkpointer->place, .epoch = epoch };
	r = bpk_writer_write_new_buffer(writer, NULL, &job->bytes, &job->size, error);
	if (r < 0)
		return r;
	job->running = start_thread(job);
	if (job->running)
		return 0;
	/* Without a thread it takes longer, and is saved all the same. */
	free(job->bytes);
	return write_epoch(&checkpointer->place, epoch, writer, error);
}

BPK_EXPORT int bpk_checkpointer_save(struct bpk_checkpointer *checkpointer,
				     uint64_t epoch, const struct bpk_record *record,
				     const double *metric, struct bpk_error *error)
{
	struct bpk_writer *writer;
	int r = bpk_checkpointer_wait(checkpointer, error);

	if (r < 0)
		return r;
	r = make_writer(record, metric, &writer, error);
	if (r < 0)
		return r;
	if (checkpointer->place.options.async)
		r = save_async(checkpointer, epoch, writer, error);
	else
		r = write_epoch(&checkpointer->place, epoch, writer, error);
	bpk_writer_free(writer);
	return r;
}

BPK_EXPORT int bpk_checkpointer_wait(struct bpk_checkpointer *checkpointer,
				     struct bpk_error *error)
{
	struct job *job = &checkpointer->job;

	if (!job->running)
		return 0;
	pthread_join(job->thread, NULL);
	job->running = false;
	if (job->result < 0 && error)
		*error = job->error;
	return job->result;
}

/* Looking back ------------------------------------------------------------- */

BPK_EXPORT int bpk_checkpointer_restore(struct bpk_checkpointer *checkpointer,
					uint64_t epoch, struct bpk_record **ret_record,
					struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *path = NULL;
	int r = bpk_checkpointer_wait(checkpointer, error);

	if (r < 0)
		return r;
	path = bpk_checkpoint_path(&checkpointer->place, epoch);
	if (!path)
		return record_no_memory(error);
	return bpk_record_load(path, NULL, ret_record, error);
}

BPK_EXPORT int bpk_checkpointer_delete(struct bpk_checkpointer *checkpointer,
				       uint64_t epoch, struct bpk_error *error)
{
	_cleanup_(bpk_free_at) char *path = NULL;
	char quoted[BPK_QUOTE_SIZE], reason[128];
	int r = bpk_checkpointer_wait(checkpointer, error);

	if (r < 0)
		return r;
	path = bpk_checkpoint_path(&checkpointer->place, epoch);
	if (!path)
		return record_no_memory(error);
	if (unlink(path) == 0)
		return 0;
	r = -errno;
	return bpk_fail(error, r, BPK_ERR_IO, BPK_NO_OFFSET,
			"cannot remove epoch %" PRIu64 " of %s: %s", epoch,
			bpk_quote(quoted, checkpointer->place.name,
				  strlen(checkpointer->place.name)),
			strerror_r(-r, reason, sizeof(reason)));
}

BPK_EXPORT int bpk_checkpointer_list(struct bpk_checkpointer *checkpointer,
				     uint64_t **ret_epochs, size_t *ret_count,
				     struct bpk_error *error)
{
	int r = bpk_checkpointer_wait(checkpointer, error);

	return r < 0 ? r
		     : bpk_checkpoint_list(&checkpointer->place, ret_epochs, ret_count,
					   error);
}
