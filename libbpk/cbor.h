/*
 * cbor.h - a bounded cursor and an appender over libcbor's streaming calls.
 *
 * The cursor reads one item head at a time from bytes in memory. It knows no
 * tree and never recurses: what a caller does not understand it skips with
 * bpk_cbor_skip(), which keeps its depth in a counter. It refuses: reserved
 * encodings, unassigned simple values, text that is not UTF-8, more than
 * @nesting containers and tags inside each other, and anything that does not
 * fit into the bytes that are there. A claimed count allocates nothing.
 */
#ifndef BPK_CBOR_H
#define BPK_CBOR_H

#include "base.h"
#include "bpk.h"

/* The stack of bpk_cbor_skip() and of the JSON text of a dtype: a larger
 * bpk_limits.nesting is taken as this. */
#define BPK_CBOR_NESTING_MAX 1024u

struct bpk_cursor {
	const uint8_t *data;
	size_t size;
	size_t pos;		 /* of the next item */
	uint64_t base_off;	 /* added to pos for an error's offset in the pack */
	uint32_t depth;		 /* containers and tags that are open now */
	uint32_t nesting;	 /* the most there may be, BPK_CBOR_NESTING_MAX at most */
	struct bpk_error *error; /* filled when a call fails; may be NULL */
};

enum bpk_item_type {
	BPK_ITEM_UINT,	      /* number */
	BPK_ITEM_NEGINT,      /* -1 - number */
	BPK_ITEM_BYTES,	      /* text, size */
	BPK_ITEM_TEXT,	      /* text, size: checked UTF-8 */
	BPK_ITEM_BYTES_START, /* indefinite: chunks follow, then BREAK */
	BPK_ITEM_TEXT_START,
	BPK_ITEM_ARRAY, /* number of elements, or indefinite */
	BPK_ITEM_MAP,	/* number of pairs, or indefinite */
	BPK_ITEM_FLOAT, /* number is the f64 bits; see bpk_float_widen() */
	BPK_ITEM_FALSE,
	BPK_ITEM_TRUE,
	BPK_ITEM_NULL,
	BPK_ITEM_UNDEFINED,
	BPK_ITEM_BREAK,
};

struct bpk_item {
	enum bpk_item_type type;
	bool indefinite; /* ARRAY, MAP */
	uint32_t tags;	 /* in front of it */
	uint64_t number;
	const char *text;
	size_t size;
	size_t pos; /* where the item starts, its tags included */
};

/* One end of a container, kept by the caller while it is inside. */
struct bpk_container {
	uint64_t left;
	uint32_t levels; /* itself and its tags: what leaving it gives back */
	bool indefinite;
};

/* Every call below returns 0, -EBADMSG (BPK_ERR_MALFORMED) or, where nesting is
 * over cursor->nesting, -EFBIG (BPK_ERR_LIMIT). After a failure the cursor is of
 * no more use. */

/* Read one head (and the bytes of a definite string), tags before it skipped and
 * counted against the nesting. Does not change cursor->depth. */
int bpk_cbor_next(struct bpk_cursor *cursor, struct bpk_item *ret_item);

/* Enter the container that @item (ARRAY or MAP) started: one level deeper. */
int bpk_cbor_enter(struct bpk_cursor *cursor, const struct bpk_item *item,
		   struct bpk_container *ret_container);
/* *ret_more: is there another element (or pair)? Eats the break of an indefinite
 * one. When there is none, the level is left. */
int bpk_cbor_more(struct bpk_cursor *cursor, struct bpk_container *container,
		  bool *ret_more);

/*
 * The same for a map of one, the way serde writes an enum's variant with what it
 * carries: name and payload are next. Refuses other maps, and indefinite ones as
 * Burn's reader does. To be left after the payload.
 */
int bpk_cbor_enter_variant(struct bpk_cursor *cursor, const struct bpk_item *item,
			   const char *what, struct bpk_container *ret_container);
int bpk_cbor_leave_variant(struct bpk_cursor *cursor, struct bpk_container *container);

/* Skip one whole item of any kind, checking it. */
int bpk_cbor_skip(struct bpk_cursor *cursor);

/*
 * Read a text item, definite or not. The chunks of an indefinite one are moved
 * together inside the buffer, which must therefore be the caller's own: pass it
 * as @own (== cursor->data). Refuses any other type with a message that says
 * what it was reading: @what.
 */
int bpk_cbor_text(struct bpk_cursor *cursor, uint8_t *own, const char *what,
		  const char **ret_text, size_t *ret_size);

/*
 * Read a text item, definite or not, of which only the start matters: a key or
 * the name of a variant. The first BPK_WORD_SIZE bytes are copied and nothing is
 * moved, so that the bytes of the item stay as they are. *ret_size is its whole
 * size, and may be more than were copied.
 */
#define BPK_WORD_SIZE 32
int bpk_cbor_word(struct bpk_cursor *cursor, const char *what,
		  char ret_word[BPK_WORD_SIZE], size_t *ret_size);

/* Is the word of @size bytes that bpk_cbor_word() gave @text? */
static inline bool bpk_word_is(const char *word, size_t size, const char *text)
{
	return size == strlen(text) && size <= BPK_WORD_SIZE && !memcmp(word, text, size);
}

/* Read an unsigned integer of at most @max; @what it is, for the message. */
int bpk_cbor_uint(struct bpk_cursor *cursor, const char *what, uint64_t max,
		  uint64_t *ret_value);

/* Refuse: fill cursor->error with the offset of @pos; returns -EBADMSG. */
int bpk_cbor_refuse(struct bpk_cursor *cursor, size_t pos, const char *format, ...)
	BPK_PRINTF(3, 4);

/* A name for messages: "text", "map", ... */
const char *bpk_item_type_name(enum bpk_item_type type);

/* Appender: a growing buffer. Once an allocation has failed it stays failed, so
 * that only the end needs a check. Definite lengths, minimal heads. */
struct bpk_appender {
	uint8_t *data;
	size_t size;
	size_t capacity;
	bool failed;
};

void bpk_append_done(struct bpk_appender *appender); /* frees; NULL accepted */
void bpk_append_raw(struct bpk_appender *appender, const void *data, size_t size);
void bpk_append_uint(struct bpk_appender *appender, uint64_t value);
void bpk_append_int(struct bpk_appender *appender, int64_t value);
void bpk_append_text(struct bpk_appender *appender, const char *text, size_t size);
void bpk_append_array(struct bpk_appender *appender, uint64_t count);
void bpk_append_map(struct bpk_appender *appender, uint64_t count);
void bpk_append_bool(struct bpk_appender *appender, bool value);
/* The shortest of f16, f32, f64 that reads back to the same 64 bits; a
 * signaling NaN is always f64 (FORMAT.md, "Floats"). */
void bpk_append_float(struct bpk_appender *appender, uint64_t bits);

/* f16 and f32 bits to f64 bits; a signaling NaN becomes quiet, as Burn reads it. */
uint64_t bpk_float_widen_f16(uint16_t bits);
uint64_t bpk_float_widen_f32(uint32_t bits);

#endif
