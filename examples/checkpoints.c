/*
 * checkpoints.c - ten epochs, of which the last two and the best stay.
 *
 *	checkpoints DIR
 *
 * Saving goes on in the background while the next epoch is trained.
 */
#include <stdio.h>
#include <stdlib.h>

#include <bpk_record.h>

static int train(struct bpk_checkpointer *checkpointer, struct bpk_error *error)
{
	struct bpk_record *record;
	int r = bpk_record_new(&record);

	for (uint64_t epoch = 1; r >= 0 && epoch <= 10; epoch++) {
		/* The loss gets better, and later worse again. */
		double away = (double)epoch - 4, loss = away * away;

		r = bpk_scheduler_set_u64(record, "epoch", epoch, error);
		if (r >= 0)
			r = bpk_checkpointer_save(checkpointer, epoch, record, &loss,
						  error);
	}
	bpk_record_free(record);
	return r;
}

static int show(struct bpk_checkpointer *checkpointer, struct bpk_error *error)
{
	uint64_t *epochs;
	size_t count;
	/* Waits for the last save, and tells if it failed. */
	int r = bpk_checkpointer_list(checkpointer, &epochs, &count, error);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		printf("epoch %llu\n", (unsigned long long)epochs[i]);
	free(epochs);
	return 0;
}

int main(int argc, char **argv)
{
	const struct bpk_checkpointer_options options = {
		.keep_last = 2,
		.keep_best = 1,
		.async = true,
	};
	struct bpk_checkpointer *checkpointer = NULL;
	struct bpk_error error = { .message = "no memory" };
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIR\n", argv[0]);
		return 1;
	}
	r = bpk_checkpointer_new(argv[1], "scheduler", &options, &checkpointer, &error);
	if (r >= 0)
		r = train(checkpointer, &error);
	if (r >= 0)
		r = show(checkpointer, &error);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], error.message);
	bpk_checkpointer_close(checkpointer, NULL);
	return r < 0;
}
