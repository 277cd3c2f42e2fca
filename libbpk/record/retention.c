/*
 * retention.c - which epochs are removed after one was saved, and the metric that
 * decides it, which each pack has in its own metadata: so it is there after a restart,
 * and never without the pack.
 *
 * Invariant: the epoch that was just saved, and the highest, are never removed.
 */
#include "record/checkpoint.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <unistd.h>

struct candidate {
	uint64_t epoch;
	bool keep;
	bool has_metric;
	double metric; /* the lower the better */
};

/* Metrics ------------------------------------------------------------------ */

void bpk_checkpoint_metric_text(double metric, char ret_text[CHECKPOINT_METRIC_SIZE])
{
	const char *point = localeconv()->decimal_point;
	char *found;

	/* 17 digits give the same double again. */
	snprintf(ret_text, CHECKPOINT_METRIC_SIZE, "%.17g", metric);
	found = *point ? strstr(ret_text, point) : NULL;
	if (found) {
		memmove(found + 1, found + strlen(point),
			strlen(found + strlen(point)) + 1);
		*found = '.';
	}
}

/* True when @text is a number as a whole. */
static bool parse_metric(const char *text, size_t size, double *ret_metric)
{
	char copy[CHECKPOINT_METRIC_SIZE], *end;
	locale_t c_locale;
	double metric;

	if (!size || size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c_locale)
		return false;
	metric = strtod_l(copy, &end, c_locale);
	freelocale(c_locale);
	if (end != copy + size || metric != metric)
		return false;
	*ret_metric = metric;
	return true;
}

/* A pack that cannot be opened, or whose metric is no number, is not judged. */
static int read_metric(const struct checkpoint_place *place, struct candidate *candidate)
{
	_cleanup_(bpk_free_at) char *path = bpk_checkpoint_path(place, candidate->epoch);
	const struct bpk_metadata *metadata;
	struct bpk_reader *reader;
	const char *text;
	size_t size;
	int r;

	if (!path)
		return -ENOMEM;
	r = bpk_reader_open(path, NULL, &reader, NULL);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		candidate->keep = true;
		return 0;
	}
	metadata =
		bpk_reader_find_metadata(reader, BPK_METRIC_KEY, strlen(BPK_METRIC_KEY));
	if (metadata) {
		text = bpk_metadata_value(metadata, &size);
		candidate->has_metric = parse_metric(text, size, &candidate->metric);
	}
	if (candidate->has_metric && place->options.highest_is_best)
		candidate->metric = -candidate->metric;
	bpk_reader_close(reader);
	return 0;
}

/* The best first; of equals the newest. */
static int compare_metric(const void *a, const void *b)
{
	const struct candidate *x = *(const struct candidate *const *)a;
	const struct candidate *y = *(const struct candidate *const *)b;

	if (x->has_metric != y->has_metric)
		return x->has_metric ? -1 : 1;
	if (x->has_metric && x->metric != y->metric)
		return x->metric < y->metric ? -1 : 1;
	return x->epoch > y->epoch ? -1 : x->epoch < y->epoch;
}

/* Choosing ----------------------------------------------------------------- */

static int keep_best(const struct checkpoint_place *place, struct candidate *candidates,
		     size_t count)
{
	_cleanup_(bpk_free_at) struct candidate **ranked =
		calloc(count, sizeof(struct candidate *));

	if (!ranked)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int r = read_metric(place, &candidates[i]);

		if (r < 0)
			return r;
		ranked[i] = &candidates[i];
	}
	qsort(ranked, count, sizeof(struct candidate *), compare_metric);
	for (size_t i = 0; i < count && i < place->options.keep_best; i++)
		if (ranked[i]->has_metric)
			ranked[i]->keep = true;
	return 0;
}

/* Remove what is not marked. The first failure is told, the others are tried. */
static int remove_rest(const struct checkpoint_place *place,
		       const struct candidate *candidates, size_t count, uint64_t saved,
		       struct bpk_error *error)
{
	char reason[128];
	int failed = 0;

	for (size_t i = 0; i < count; i++) {
		_cleanup_(bpk_free_at) char *path = NULL;
		int r = 0;

		if (candidates[i].keep)
			continue;
		path = bpk_checkpoint_path(place, candidates[i].epoch);
		if (!path)
			r = -ENOMEM;
		else if (unlink(path) < 0 && errno != ENOENT)
			r = -errno;
		if (r < 0 && !failed)
			failed = bpk_fail(error, r,
					  r == -ENOMEM ? BPK_ERR_MEMORY : BPK_ERR_IO,
					  BPK_NO_OFFSET,
					  "epoch %" PRIu64 " is saved, but epoch %" PRIu64
					  " cannot be removed: %s",
					  saved, candidates[i].epoch,
					  strerror_r(-r, reason, sizeof(reason)));
	}
	return failed;
}

int bpk_checkpoint_retain(const struct checkpoint_place *place, uint64_t saved,
			  struct bpk_error *error)
{
	const struct bpk_checkpointer_options *options = &place->options;
	uint64_t last = options->keep_last ? options->keep_last : 1;
	_cleanup_(bpk_free_at) struct candidate *candidates = NULL;
	_cleanup_(bpk_free_at) uint64_t *epochs = NULL;
	size_t count;
	int r;

	if (!options->keep_last && !options->keep_best)
		return 0;
	r = bpk_checkpoint_list(place, &epochs, &count, error);
	if (r < 0 || !count)
		return r;
	candidates = calloc(count, sizeof(*candidates));
	if (!candidates)
		return record_no_memory(error);
	for (size_t i = 0; i < count; i++) {
		candidates[i].epoch = epochs[i];
		candidates[i].keep = epochs[i] == saved || count - i <= last;
	}
	if (options->keep_best && keep_best(place, candidates, count) < 0)
		return record_no_memory(error);
	return remove_rest(place, candidates, count, saved, error);
}
