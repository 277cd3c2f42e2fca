/*
 * scheduler-record.c - a learning-rate scheduler that is made of two others, kept in one
 * record and taken up again.
 *
 *	scheduler-record OUT
 */
#include <stdio.h>

#include <bpk_record.h>

struct cosine {
	uint64_t step;
	double highest, lowest;
};

struct composed {
	struct cosine children[2];
};

static int record_cosine(const struct cosine *cosine, struct bpk_record *record,
			 struct bpk_error *error)
{
	int r = bpk_scheduler_set_u64(record, "current_iter", cosine->step, error);

	if (r >= 0)
		r = bpk_scheduler_set_f64(record, "init_lr", cosine->highest, error);
	if (r >= 0)
		r = bpk_scheduler_set_f64(record, "min_lr", cosine->lowest, error);
	return r;
}

static int load_cosine(struct cosine *cosine, const struct bpk_record *record,
		       struct bpk_error *error)
{
	int r = bpk_scheduler_get_u64(record, "current_iter", &cosine->step, error);

	if (r >= 0)
		r = bpk_scheduler_get_f64(record, "init_lr", &cosine->highest, error);
	if (r >= 0)
		r = bpk_scheduler_get_f64(record, "min_lr", &cosine->lowest, error);
	return r;
}

static const char *const names[] = { "0", "1" };

static int save(const struct composed *composed, const char *path,
		struct bpk_error *error)
{
	struct bpk_record *record, *child;
	int r = bpk_record_new(&record);

	for (int i = 0; r >= 0 && i < 2; i++) {
		r = bpk_record_new(&child);
		if (r < 0)
			break;
		r = record_cosine(&composed->children[i], child, error);
		if (r >= 0)
			r = bpk_scheduler_with_record(record, names[i], child, error);
		bpk_record_free(child);
	}
	if (r >= 0)
		r = bpk_record_save(record, path, error);
	bpk_record_free(record);
	return r;
}

static int load(struct composed *composed, const char *path, struct bpk_error *error)
{
	struct bpk_record *record, *child;
	int r = bpk_record_load(path, NULL, &record, error);

	if (r < 0)
		return r;
	for (int i = 0; r >= 0 && i < 2; i++) {
		r = bpk_scheduler_record(record, names[i], &child, error);
		if (r < 0)
			break;
		r = load_cosine(&composed->children[i], child, error);
		bpk_record_free(child);
	}
	bpk_record_free(record);
	return r;
}

int main(int argc, char **argv)
{
	const struct composed composed = { { { 10, 0.1, 1e-6 }, { 20, 0.5, 1e-3 } } };
	struct composed loaded = { 0 };
	struct bpk_error error = { .message = "no memory" };

	if (argc != 2) {
		fprintf(stderr, "usage: %s OUT\n", argv[0]);
		return 1;
	}
	if (save(&composed, argv[1], &error) < 0 || load(&loaded, argv[1], &error) < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], error.message);
		return 1;
	}
	for (int i = 0; i < 2; i++)
		printf("%d: step %llu, from %g to %g\n", i,
		       (unsigned long long)loaded.children[i].step,
		       loaded.children[i].highest, loaded.children[i].lowest);
	return 0;
}
