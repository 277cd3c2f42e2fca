/*
 * writers.c - see writers.h.
 */
#include "writers.h"
#include "base.h"
#include "commit.h"
#include "log.h"
#include "shelf.h"
#include "writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To become the writer of a pack ------------------------------------------------ */

/* An edit of it is refused, for a while: each that comes tries again. Who tries again and
 * again is one line of the log. */
static void refuse(struct mount *mount, const char *why, bool quiet)
{
	bool said = mount->refusal && strcmp(mount->refusal, why) == 0;

	if (said || quiet)
		return;
	log_line("%s", why);
	free(mount->refusal);
	mount->refusal = strdup(why);
}

/* 0 or -errno. Locked. */
static int take(const struct library *library, struct mount *mount, bool is_new)
{
	struct writer writer = { .mount = mount, .given = mount->pack_path };
	enum status status = STATUS_OK;
	size_t count = 0;

	if (writer_find(&writer, library->staging) < 0) {
		writer.error = -errno;
		snprintf(writer.message, sizeof(writer.message), "%s: %s",
			 mount->pack_path, strerror(errno));
	}
	if (!writer.error)
		status = writer_take(&writer);
	if (!writer.error && !status)
		status = writer_bring_back(&writer, &count);
	if (writer.error) {
		/* It is only looked at so far. */
		refuse(mount, writer.message,
		       is_new && (status == STATUS_IN_USE || !writer_has_left(&writer)));
	} else {
		free(mount->refusal);
		mount->refusal = NULL;
		if (count)
			log_line("%s", writer.message);
		else if (is_new)
			writer_leave(&writer);
	}
	/* What was restored, or was and is not, is not what it was. */
	if (!is_new && (count || writer.error))
		mount_pack_changed(mount);
	writer_done(&writer);
	return writer.error;
}

void writers_bring_back(const struct library *library, struct mount *mount)
{
	struct writer writer = { .mount = mount };

	if (writer_find(&writer, library->staging) == 0 && writer_has_folder(&writer))
		(void)take(library, mount, true);
	writer_done(&writer);
}

/* A writer without an edit has nothing that others could not replace, and an edit of what
 * they have replaced could never be committed. 0 or -errno. */
static int check_up_to_date(struct mount *mount)
{
	char why[PATH_MAX + 64];
	int error = 0;

	pthread_mutex_lock(&mount->lock);
	if (!overlay_dirty(&mount->overlay) && !target_unchanged(&mount->target)) {
		snprintf(why, sizeof(why), "%s: was replaced or removed by somebody else",
			 mount->target.path);
		refuse(mount, why, false);
		error = -ESTALE;
	} else {
		free(mount->refusal);
		mount->refusal = NULL;
	}
	pthread_mutex_unlock(&mount->lock);
	return error;
}

int library_make_writer(struct library *library, struct mount *mount)
{
	struct place *place = mount->place;
	int error = 0;

	/* It is held before it is: at no moment is its name another place's. */
	pthread_mutex_lock(&library->opening);
	if (mount->is_writer) {
		error = check_up_to_date(mount);
	} else {
		shelf_hold(library, place);
		pthread_mutex_lock(&mount->lock);
		error = take(library, mount, false);
		pthread_mutex_unlock(&mount->lock);
		if (error)
			shelf_let_go(library, place);
	}
	pthread_mutex_lock(&library->lock);
	place->refused = error != 0;
	pthread_mutex_unlock(&library->lock);
	pthread_mutex_unlock(&library->opening);
	return error;
}

/* All of them ------------------------------------------------------------------- */

struct places {
	struct place **list; /* references */
	size_t count;
};

static bool is_below(const struct place *place, const struct place *top)
{
	while (place && place != top)
		place = place->parent;
	return place != NULL;
}

/* Those at @top and below; -ENOMEM. */
static int collect(struct library *library, const struct place *top, bool refused,
		   struct places *ret)
{
	size_t capacity = 0;
	int error = 0;

	*ret = (struct places) { 0 };
	pthread_mutex_lock(&library->lock);
	for (struct place *place = library->held; place && !error;
	     place = place->next_held) {
		if (!is_below(place, top))
			continue;
		error = bpk_grow((void **)&ret->list, &capacity, ret->count + 1,
				 sizeof(struct place *));
		if (!error)
			ret->list[ret->count++] = place;
	}
	for (struct place *place = library->oldest; refused && place && !error;
	     place = place->newer) {
		if (!place->refused || place->held || !is_below(place, top))
			continue;
		error = bpk_grow((void **)&ret->list, &capacity, ret->count + 1,
				 sizeof(struct place *));
		if (!error)
			ret->list[ret->count++] = place;
	}
	/* Nobody closes what is busy. */
	for (size_t i = 0; i < ret->count; i++) {
		ret->list[i]->refs++;
		ret->list[i]->busy++;
	}
	pthread_mutex_unlock(&library->lock);
	return error ? -ENOMEM : 0;
}

static void places_done(struct library *library, struct places *places)
{
	pthread_mutex_lock(&library->lock);
	for (size_t i = 0; i < places->count; i++) {
		places->list[i]->busy--;
		places->list[i]->refs--;
		library_release(library, places->list[i]);
	}
	pthread_mutex_unlock(&library->lock);
	free(places->list);
}

int writers_each(struct library *library, const struct place *top,
		 int (*fn)(void *context, struct place *place), void *context)
{
	struct places places;
	int result = collect(library, top, true, &places);

	for (size_t i = 0; i < places.count && !result; i++)
		result = fn(context, places.list[i]);
	places_done(library, &places);
	return result;
}

/* Commits ----------------------------------------------------------------------- */

struct request {
	struct library *library;
	struct places places;
	void (*done)(void *context, int error);
	void *context;
};

static void serve_request(void *context)
{
	struct request *request = context;
	struct pack *old = NULL;
	int first = 0;

	for (size_t i = 0; i < request->places.count; i++) {
		struct place *place = request->places.list[i];
		int error;

		/* The room of one may be needed for the next. */
		pack_unref(old);
		error = commit_and_tell(place->mount, &old);
		if (!first)
			first = error;
	}
	request->done(request->context, first);
	places_done(request->library, &request->places);
	free(request);
	pack_unref(old);
}

int writers_commit(struct library *library, const struct place *top,
		   void (*done)(void *context, int error), void *context)
{
	struct request *request = malloc(sizeof(*request));
	int error;

	if (!request)
		return -ENOMEM;
	*request = (struct request) { library, { 0 }, done, context };
	error = collect(library, top, false, &request->places);
	if (!error && !request->places.count)
		error = 1;
	if (!error)
		error = worker_start(&library->workers, serve_request, request);
	if (error) {
		places_done(library, &request->places);
		free(request);
	}
	return error;
}

/* How they went ----------------------------------------------------------------- */

struct summary {
	enum status status;
	char *message;
	size_t size, used;
	size_t left_out; /* messages that there was no room for */
	bool minor;	 /* those that are in the packs but for some edits */
};

static int add_result(void *context, struct place *place)
{
	struct summary *summary = context;
	struct mount *mount = place->mount;
	/* Of the tail that says that there are more. */
	size_t reserve = 48, length;

	pthread_mutex_lock(&mount->lock);
	if (mount->result &&
	    (mount->result == STATUS_INVALID_LEFT_OUT) == summary->minor) {
		if (!summary->status)
			summary->status = mount->result;
		length = strlen(mount->message) + 2;
		if (summary->used + length + reserve <= summary->size)
			summary->used += (size_t)sprintf(
				summary->message + summary->used, "%s%s",
				summary->used ? "; " : "", mount->message);
		else
			summary->left_out++;
	}
	pthread_mutex_unlock(&mount->lock);
	return 0;
}

/* What there was no room for. */
static enum status end_summary(struct summary *summary)
{
	if (summary->left_out)
		snprintf(summary->message + summary->used, summary->size - summary->used,
			 "%sand %zu more: see the log", summary->used ? "; " : "",
			 summary->left_out);
	return summary->status;
}

enum status writers_result(struct library *library, const struct place *top,
			   char *message, size_t size)
{
	struct summary summary = { .message = message, .size = size };
	int error;

	message[0] = '\0';
	error = writers_each(library, top, add_result, &summary);
	summary.minor = true;
	if (!error)
		error = writers_each(library, top, add_result, &summary);
	if (!error)
		return end_summary(&summary);
	snprintf(message, size, "%s", strerror(-error));
	return STATUS_COMMIT_FAILED;
}

enum status writers_commit_at_unmount(struct library *library,
				      int (*progress)(void *context, uint64_t done,
						      uint64_t total),
				      void *context, char *message, size_t size)
{
	struct summary summary = { .message = message, .size = size };

	worker_wait(&library->workers);
	message[0] = '\0';
	/* Whatever memory there still is. */
	for (struct place *place = library->held; place; place = place->next_held) {
		commit_at_unmount(place->mount, progress, context);
		if (place->mount->message[0])
			log_line("%s", place->mount->message);
	}
	for (int pass = 0; pass < 2; pass++) {
		summary.minor = pass;
		for (struct place *place = library->held; place; place = place->next_held)
			(void)add_result(&summary, place);
	}
	return end_summary(&summary);
}

static int set_discard(void *context, struct place *place)
{
	pthread_mutex_lock(&place->mount->lock);
	place->mount->discard = *(const bool *)context;
	pthread_mutex_unlock(&place->mount->lock);
	return 0;
}

int writers_discard(struct library *library, bool discard)
{
	return writers_each(library, &library->root, set_discard, &discard);
}
