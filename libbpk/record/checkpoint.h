/*
 * checkpoint.h - what checkpoint.c and retention.c share: the names of epochs.
 */
#ifndef BPK_RECORD_CHECKPOINT_H
#define BPK_RECORD_CHECKPOINT_H

#include "record/record.h"

/* The epochs of one name in one folder. */
struct checkpoint_place {
	char *dir; /* absolute */
	char *name;
	struct bpk_checkpointer_options options;
};

/* The path of @epoch's pack, for free(3); NULL when out of memory. */
char *bpk_checkpoint_path(const struct checkpoint_place *place, uint64_t epoch);

/* See bpk_checkpointer_list(). */
int bpk_checkpoint_list(const struct checkpoint_place *place, uint64_t **ret_epochs,
			size_t *ret_count, struct bpk_error *error);

/* A metric as text, the same in every locale. */
#define CHECKPOINT_METRIC_SIZE 32
void bpk_checkpoint_metric_text(double metric, char ret_text[CHECKPOINT_METRIC_SIZE]);

/* Remove what is not to be kept now that @saved is on disk. */
int bpk_checkpoint_retain(const struct checkpoint_place *place, uint64_t saved,
			  struct bpk_error *error);

#endif
