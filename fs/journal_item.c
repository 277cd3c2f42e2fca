/*
 * journal_item.c - see journal_item.h.
 */
#include "journal_item.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int journal_get_uint(struct bpk_cursor *cursor, uint64_t most, uint64_t *ret)
{
	return bpk_cbor_uint(cursor, "journal", most, ret);
}

int journal_get_int(struct bpk_cursor *cursor, int64_t *ret)
{
	struct bpk_item item;
	int error = bpk_cbor_next(cursor, &item);

	if (error)
		return error;
	if ((item.type != BPK_ITEM_UINT && item.type != BPK_ITEM_NEGINT) ||
	    item.number > INT64_MAX)
		return -EBADMSG;
	*ret = item.type == BPK_ITEM_UINT ? (int64_t)item.number
					  : -1 - (int64_t)item.number;
	return 0;
}

static int get_bool(struct bpk_cursor *cursor, bool *ret)
{
	struct bpk_item item;
	int error = bpk_cbor_next(cursor, &item);

	if (error)
		return error;
	if (item.type != BPK_ITEM_TRUE && item.type != BPK_ITEM_FALSE)
		return -EBADMSG;
	*ret = item.type == BPK_ITEM_TRUE;
	return 0;
}

/* Enter an array of a definite size. */
int journal_get_array(struct bpk_cursor *cursor, uint64_t *ret_count)
{
	struct bpk_item item;
	int error = bpk_cbor_next(cursor, &item);

	if (error)
		return error;
	if (item.type != BPK_ITEM_ARRAY || item.indefinite)
		return -EBADMSG;
	*ret_count = item.number;
	return 0;
}

static void append_index(struct bpk_appender *out, size_t index)
{
	bpk_append_uint(out, index == NO_BASE ? 0 : (uint64_t)index + 1);
}

static int get_index(struct bpk_cursor *cursor, size_t *ret_index)
{
	uint64_t number;
	int error = journal_get_uint(cursor, UINT32_MAX, &number);

	if (!error)
		*ret_index = number ? (size_t)(number - 1) : NO_BASE;
	return error;
}

/* Of one that is gone the bytes are, too. */
static void append_tensor(struct bpk_appender *out, const struct item *item, bool linked)
{
	const uint8_t *cbor = item->dtype_cbor;

	bpk_append_uint(out, item->dtype);
	bpk_append_array(out, item->dtype_cbor ? item->dtype_cbor_size : 0);
	for (size_t i = 0; item->dtype_cbor && i < item->dtype_cbor_size; i++)
		bpk_append_uint(out, cbor[i]);
	bpk_append_bool(out, item->shape_follows);
	bpk_append_array(out, item->rank);
	for (size_t i = 0; i < item->rank; i++)
		bpk_append_uint(out, item->shape[i]);
	append_index(out, item->described);
	bpk_append_bool(out, item->has_param_id);
	bpk_append_uint(out, item->param_id);
	bpk_append_uint(out, linked && item->staged ? item->staged->number + 1 : 0);
	bpk_append_uint(out, linked && item->staged ? staged_size(item->staged) : 0);
}
#define TENSOR_FIELDS 9

static int get_tensor(struct mount *mount, struct bpk_cursor *cursor, struct item *item)
{
	uint64_t dtype, count, number, staged, size;
	uint8_t *cbor;
	int error = journal_get_uint(cursor, BPK_DTYPE_COUNT - 1, &dtype);

	if (!error)
		error = journal_get_array(cursor, &count);
	if (error)
		return error;
	if (count > cursor->size - cursor->pos)
		return -EBADMSG;
	item->dtype = (enum bpk_dtype)dtype;
	if (count) {
		item->dtype_cbor = cbor = malloc((size_t)count);
		if (!cbor)
			return -ENOMEM;
		item->dtype_cbor_size = (size_t)count;
		for (size_t i = 0; i < count && !error; i++) {
			error = journal_get_uint(cursor, UINT8_MAX, &number);
			cbor[i] = (uint8_t)number;
		}
	}
	if (!error)
		error = get_bool(cursor, &item->shape_follows);
	if (!error)
		error = journal_get_array(cursor, &count);
	if (!error && count > cursor->size - cursor->pos)
		error = -EBADMSG;
	if (!error && count) {
		item->shape = reallocarray(NULL, (size_t)count, sizeof(*item->shape));
		error = item->shape ? 0 : -ENOMEM;
	}
	for (; !error && item->rank < count; item->rank++)
		error = journal_get_uint(cursor, UINT64_MAX, &item->shape[item->rank]);
	if (!error)
		error = get_index(cursor, &item->described);
	if (!error)
		error = get_bool(cursor, &item->has_param_id);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &item->param_id);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &staged);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &size);
	if (!error && item->dtype == BPK_DTYPE_QFLOAT && !item->dtype_cbor)
		error = -EBADMSG;
	if (!error && staged)
		error = staged_open(&mount->staging, staged - 1, size, &item->staged);
	/* Bytes without a staged file are those of its place in the pack. */
	if (!error && !staged && item->linked && item->base == NO_BASE)
		error = -EBADMSG;
	return error;
}

static void append_value(struct bpk_appender *out, const struct item *item)
{
	bpk_append_bool(out, item->has_value);
	bpk_append_bool(out, item->type_known);
	bpk_append_uint(out, item->value.type);
	bpk_append_uint(out, item->value.type == BPK_SCALAR_BOOL ? item->value.b
								 : item->value.u);
	bpk_append_text(out, item->text ? item->text->data : "",
			item->text ? item->text->size : 0);
}
#define VALUE_FIELDS 5

static int get_value(struct bpk_cursor *cursor, struct item *item)
{
	struct bpk_item text;
	uint64_t type, bits;
	int error = get_bool(cursor, &item->has_value);

	if (!error)
		error = get_bool(cursor, &item->type_known);
	if (!error)
		error = journal_get_uint(cursor, BPK_SCALAR_BOOL, &type);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX, &bits);
	if (!error)
		error = bpk_cbor_next(cursor, &text);
	if (!error && text.type != BPK_ITEM_TEXT)
		error = -EBADMSG;
	if (error)
		return error;
	item->value.type = (enum bpk_scalar_type)type;
	if (type == BPK_SCALAR_BOOL)
		item->value.b = bits != 0;
	else
		item->value.u = bits;
	if (item->kind == ITEM_METADATA) {
		item->text = blob_new(text.text, text.size);
		if (!item->text)
			return -ENOMEM;
	}
	return 0;
}

#define ITEM_FIELDS 7
void journal_put_item(struct bpk_appender *out, const struct item *item, bool linked)
{
	bool tensor = item->kind == ITEM_TENSOR;

	bpk_append_array(out, ITEM_FIELDS + (tensor ? TENSOR_FIELDS : VALUE_FIELDS));
	bpk_append_uint(out, item->kind);
	bpk_append_text(out, item->name, item->name_size);
	append_index(out, item->base);
	bpk_append_bool(out, linked);
	bpk_append_uint(out, item->order);
	bpk_append_int(out, item->mtime.tv_sec);
	bpk_append_uint(out, (uint64_t)item->mtime.tv_nsec);
	if (tensor)
		append_tensor(out, item, linked);
	else
		append_value(out, item);
}

int journal_get_item(struct mount *mount, struct bpk_cursor *cursor,
		     struct item **ret_item)
{
	uint64_t count, kind, nanoseconds;
	struct bpk_item name;
	struct item *item;
	int64_t seconds;
	int error = journal_get_array(cursor, &count);

	if (!error)
		error = journal_get_uint(cursor, PACK_KIND_COUNT - 1, &kind);
	if (!error)
		error = bpk_cbor_next(cursor, &name);
	if (error)
		return error;
	if (name.type != BPK_ITEM_TEXT ||
	    count != ITEM_FIELDS + (kind == ITEM_TENSOR ? TENSOR_FIELDS : VALUE_FIELDS))
		return -EBADMSG;
	item = overlay_blank(&mount->overlay, (enum item_kind)kind, name.text, name.size);
	if (!item)
		return -ENOMEM;
	error = get_index(cursor, &item->base);
	if (!error)
		error = get_bool(cursor, &item->linked);
	if (!error)
		error = journal_get_uint(cursor, UINT64_MAX - 1, &item->order);
	if (!error)
		error = journal_get_int(cursor, &seconds);
	if (!error)
		error = journal_get_uint(cursor, 999999999, &nanoseconds);
	if (!error) {
		item->mtime.tv_sec = seconds;
		item->mtime.tv_nsec = (long)nanoseconds;
		error = kind == ITEM_TENSOR ? get_tensor(mount, cursor, item)
					    : get_value(cursor, item);
	}
	if (error) {
		item_unref(&mount->overlay, item);
		return error;
	}
	*ret_item = item;
	return 0;
}
