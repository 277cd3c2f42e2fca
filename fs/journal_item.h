/*
 * journal_item.h - one item of the overlay as the journal tells it, both ways.
 *
 * What is read is checked as from a stranger: 0, -EBADMSG for what no journal can hold,
 * or -ENOMEM.
 */
#ifndef BPKFS_JOURNAL_ITEM_H
#define BPKFS_JOURNAL_ITEM_H

#include "cbor.h"
#include "mount.h"

int journal_get_uint(struct bpk_cursor *cursor, uint64_t most, uint64_t *ret);
int journal_get_int(struct bpk_cursor *cursor, int64_t *ret);
/* Enter an array of a definite size. */
int journal_get_array(struct bpk_cursor *cursor, uint64_t *ret_count);

/* @linked: it has a name; else it says that an entry is gone. */
void journal_put_item(struct bpk_appender *out, const struct item *item, bool linked);
/* An item that is in no table, with its staged file opened; for overlay_restore(). Also
 * the errors of opening that file. */
int journal_get_item(struct mount *mount, struct bpk_cursor *cursor,
		     struct item **ret_item);

#endif
