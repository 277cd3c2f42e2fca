/*
 * pack_text.c - see pack_text.h.
 */
#include "pack_text.h"
#include "convert/json.h"
#include "record.h"
#include "scalar_text.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put(struct bpk_appender *out, const char *text)
{
	bpk_append_raw(out, text, strlen(text));
}

/* The text, now the caller's; NULL when memory ran out. */
static char *take(struct bpk_appender *out, int error, size_t *ret_size)
{
	char *text = NULL;

	if (!error && !out->failed) {
		text = (char *)out->data;
		*ret_size = out->size;
		*out = (struct bpk_appender) { 0 };
	}
	bpk_append_done(out);
	return text;
}

static int each(const struct overlay *overlay, enum item_kind kind,
		int (*fn)(void *context, const struct entry *entry), void *context)
{
	struct entry entry;
	bool more = overlay_seek(overlay, kind, "", 0, &entry);
	int error = 0;

	while (more && !error) {
		if (entry_counts(&entry))
			error = fn(context, &entry);
		more = overlay_next(overlay, &entry, &entry);
	}
	return error;
}

static void put_shape(struct bpk_appender *out, const struct tensor *tensor)
{
	put(out, "[");
	for (size_t i = 0; i < tensor->rank; i++) {
		if (i)
			put(out, ",");
		bpk_json_uint(out, tensor->shape[i]);
	}
	put(out, "]");
}

/* index.tsv ---------------------------------------------------------------- */

struct index {
	struct bpk_appender out;
	const struct overlay *overlay;
	struct tensor tensor;
};

static void put_field(struct bpk_appender *out, const char *text, size_t size)
{
	static const char special[] = "\t\n\r\\", letters[] = "tnr\\0";

	for (size_t i = 0, start = 0; i <= size; i++) {
		const char *found =
			i < size ? memchr(special, text[i], sizeof(special)) : NULL;

		if (i < size && !found)
			continue;
		bpk_append_raw(out, text + start, i - start);
		start = i + 1;
		if (found) {
			put(out, "\\");
			bpk_append_raw(out, &letters[found - special], 1);
		}
	}
}

static int index_line(void *context, const struct entry *entry)
{
	struct index *index = context;
	struct tensor *tensor = &index->tensor;
	struct bpk_appender *out = &index->out;
	const char *dtype;
	size_t size;
	int error = tensor_get(index->overlay, entry, tensor);

	dtype = error ? NULL : tensor_dtype_text(tensor, &size);
	if (!dtype)
		return -ENOMEM;
	put_field(out, tensor->name, tensor->name_size);
	put(out, "\t");
	put_field(out, dtype, size);
	put(out, "\t");
	put_shape(out, tensor);
	put(out, "\t");
	bpk_json_uint(out, tensor->size);
	put(out, "\t");
	if (tensor_in_pack(tensor))
		bpk_json_uint(out, tensor->off);
	put(out, "\t");
	if (tensor->has_param_id)
		bpk_json_uint(out, tensor->param_id);
	put(out, "\n");
	return 0;
}

char *pack_text_index(const struct overlay *overlay, size_t *ret_size)
{
	struct index index = { .overlay = overlay };
	int error;

	put(&index.out, "name\tdtype\tshape\tbytes\toffset\tparam_id\n");
	error = each(overlay, ITEM_TENSOR, index_line, &index);
	tensor_done(&index.tensor);
	return take(&index.out, error, ret_size);
}

/* pack.json ---------------------------------------------------------------- */

struct json {
	struct bpk_appender out;
	const struct overlay *overlay;
	struct tensor tensor;
	bool comma;
};

static void put_key(struct json *json, const char *key, size_t size)
{
	put(&json->out, json->comma ? ",\n  " : "\n  ");
	json->comma = true;
	bpk_json_string(&json->out, key, size);
	put(&json->out, ":");
}

static int json_tensor(void *context, const struct entry *entry)
{
	struct json *json = context;
	struct tensor *tensor = &json->tensor;
	struct bpk_appender *out = &json->out;
	const char *dtype;
	size_t size;
	int error = tensor_get(json->overlay, entry, tensor);

	dtype = error ? NULL : tensor_dtype_text(tensor, &size);
	if (!dtype)
		return -ENOMEM;
	put_key(json, tensor->name, tensor->name_size);
	put(out, "{\"dtype\":");
	if (tensor->dtype == BPK_DTYPE_QFLOAT) /* is JSON */
		bpk_append_raw(out, dtype, size);
	else
		bpk_json_string(out, dtype, size);
	put(out, ",\"shape\":");
	put_shape(out, tensor);
	put(out, ",\"bytes\":");
	bpk_json_uint(out, tensor->size);
	put(out, ",\"offset\":");
	if (tensor_in_pack(tensor))
		bpk_json_uint(out, tensor->off);
	else
		put(out, "null");
	if (tensor->has_param_id) {
		put(out, ",\"param_id\":");
		bpk_json_uint(out, tensor->param_id);
	}
	put(out, "}");
	return 0;
}

static int json_scalar(void *context, const struct entry *entry)
{
	static const char *const types[] = { "Int", "UInt", "Float", "Bool" };
	struct json *json = context;
	struct bpk_scalar_value value;
	char text[SCALAR_TEXT_BUFFER];
	const char *name;
	size_t size;

	value = entry->item ? entry->item->value
			    : bpk_scalar_value(bpk_reader_scalar(json->overlay->reader,
								 entry->base));
	name = entry_name(json->overlay, entry, &size);
	put_key(json, name, size);
	put(&json->out, "{\"type\":\"");
	put(&json->out, types[value.type]);
	put(&json->out, "\",\"value\":");
	size = scalar_format(value, text);
	if (value.type == BPK_SCALAR_BOOL)
		bpk_append_raw(&json->out, text, size);
	else
		bpk_json_number(&json->out, text, size);
	put(&json->out, "}");
	return 0;
}

static int json_metadata(void *context, const struct entry *entry)
{
	struct json *json = context;
	const char *text;
	size_t size;

	text = entry_name(json->overlay, entry, &size);
	put_key(json, text, size);
	if (entry->item) {
		text = entry->item->text->data;
		size = entry->item->text->size;
	} else {
		text = bpk_metadata_value(
			bpk_reader_metadata(json->overlay->reader, entry->base), &size);
	}
	bpk_json_string(&json->out, text, size);
	return 0;
}

char *pack_text_json(const struct overlay *overlay, size_t *ret_size)
{
	static const struct {
		const char *name;
		enum item_kind kind;
		int (*fn)(void *context, const struct entry *entry);
	} sections[] = {
		{ "tensors", ITEM_TENSOR, json_tensor },
		{ "scalars", ITEM_SCALAR, json_scalar },
		{ "metadata", ITEM_METADATA, json_metadata },
	};
	const struct bpk_reader *reader = overlay->reader;
	const char *record = record_of(overlay);
	struct json json = { .overlay = overlay };
	int error = 0;

	put(&json.out, "{\"format_version\":");
	bpk_json_uint(&json.out, bpk_reader_format_version(reader));
	put(&json.out, ",\n\"file_size\":");
	bpk_json_uint(&json.out, bpk_reader_file_size(reader));
	put(&json.out, ",\n\"metadata_size\":");
	bpk_json_uint(&json.out, bpk_reader_metadata_size(reader));
	put(&json.out, ",\n\"data_offset\":");
	bpk_json_uint(&json.out, bpk_reader_data_off(reader));
	put(&json.out, ",\n\"record\":");
	if (record)
		bpk_json_string(&json.out, record, strlen(record));
	else
		put(&json.out, "null");
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections) && !error; i++) {
		put(&json.out, ",\n\"");
		put(&json.out, sections[i].name);
		put(&json.out, "\":{");
		json.comma = false;
		error = each(overlay, sections[i].kind, sections[i].fn, &json);
		put(&json.out, json.comma ? "\n}" : "}");
	}
	put(&json.out, "}\n");
	tensor_done(&json.tensor);
	return take(&json.out, error, ret_size);
}
