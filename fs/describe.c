/*
 * describe.c - see describe.h.
 */
#include "describe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void json_string(FILE *out, const char *text, size_t size)
{
	putc('"', out);
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			fprintf(out, "\\u%04x", byte);
		else
			putc(byte, out);
	}
	putc('"', out);
}

static int count_change(void *context, const struct item *item, enum change change)
{
	(void)item;
	(void)change;
	++*(size_t *)context;
	return 0;
}

char *describe_status(const struct mount *mount, size_t *ret_size)
{
	char *text = NULL;
	size_t changes = 0;
	FILE *out = open_memstream(&text, ret_size);

	if (!out)
		return NULL;
	overlay_each_change(&mount->overlay, count_change, &changes);
	fprintf(out, "{\"pid\":%ld,\"pack\":", (long)getpid());
	json_string(out, mount->pack_path, strlen(mount->pack_path));
	fprintf(out, ",\"mode\":\"%s\",\"dirty\":%s,\"changes\":%zu,\"commit\":\"idle\"",
		mount->writable ? "rw" : "ro", changes ? "true" : "false", changes);
	fprintf(out, ",\"last_error\":null}\n");
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static const char *const section_names[] = { "tensors", "scalars", "metadata" };

/* Names may hold anything: what would break a line is escaped as git quotes it. */
static void quoted(FILE *out, const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)name[i];

		if (byte < 0x20 || byte == 0x7f || byte == '\\')
			fprintf(out, "\\%03o", byte);
		else
			putc(byte, out);
	}
}

struct changes {
	FILE *out;
	const struct overlay *overlay;
};

static int print_change(void *context, const struct item *item, enum change change)
{
	struct changes *changes = context;
	static const char letters[] = { ' ', 'A', 'M', 'R', 'D' };
	struct entry base = { item->kind, item->base, NULL };
	const char *name;
	size_t size;

	fprintf(changes->out, "%c%c %s/", letters[change],
		overlay_invalid(changes->overlay, item) ? '!' : ' ',
		section_names[item->kind]);
	if (change == CHANGE_RENAMED) {
		name = entry_name(changes->overlay, &base, &size);
		quoted(changes->out, name, size);
		fprintf(changes->out, " -> %s/", section_names[item->kind]);
	}
	name = item->name;
	size = item->name_size;
	if (change == CHANGE_REMOVED) /* it may have been renamed before */
		name = entry_name(changes->overlay, &base, &size);
	quoted(changes->out, name, size);
	putc('\n', changes->out);
	return 0;
}

char *describe_changes(const struct mount *mount, size_t *ret_size)
{
	char *text = NULL;
	struct changes changes = { open_memstream(&text, ret_size), &mount->overlay };

	if (!changes.out)
		return NULL;
	overlay_each_change(&mount->overlay, print_change, &changes);
	if (fclose(changes.out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Extended attributes ------------------------------------------------------ */

static int tensor_dtype(const struct mount *mount, const struct entry *entry, FILE *out)
{
	size_t index = entry->item ? entry->item->described : entry->base, size;
	const struct bpk_tensor *tensor;
	char *text;

	if (index == NO_BASE) {
		fputs(bpk_dtype_name(entry->item->dtype), out);
		return 0;
	}
	tensor = bpk_reader_tensor(mount->reader, index);
	size = bpk_tensor_dtype_text(tensor, NULL, 0);
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	bpk_tensor_dtype_text(tensor, text, size + 1);
	fwrite(text, 1, size, out);
	free(text);
	return 0;
}

static int tensor_shape(const struct mount *mount, const struct entry *entry, FILE *out)
{
	const struct item *item = entry->item;
	uint64_t *dims = NULL;
	const uint64_t *shape;
	uint64_t length;
	size_t rank;

	if (item && item->shape_follows) {
		length = item_data_size(&mount->overlay, item);
		shape = &length;
		rank = 1;
	} else if (item) {
		shape = item->shape;
		rank = item->rank;
	} else {
		const struct bpk_tensor *tensor =
			bpk_reader_tensor(mount->reader, entry->base);

		rank = bpk_tensor_rank(tensor);
		dims = reallocarray(NULL, rank ? rank : 1, sizeof(*dims));
		if (!dims)
			return -ENOMEM;
		bpk_tensor_shape(tensor, dims, rank);
		shape = dims;
	}
	putc('[', out);
	for (size_t i = 0; i < rank; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", shape[i]);
	putc(']', out);
	free(dims);
	return 0;
}

static int tensor_param_id(const struct mount *mount, const struct entry *entry,
			   FILE *out)
{
	uint64_t id = 0;
	bool has;

	if (entry->item) {
		has = entry->item->has_param_id;
		id = entry->item->param_id;
	} else {
		has = bpk_tensor_param_id(bpk_reader_tensor(mount->reader, entry->base),
					  &id);
	}
	if (!has)
		return -ENODATA;
	fprintf(out, "%" PRIu64, id);
	return 0;
}

static int tensor_offset(const struct mount *mount, const struct entry *entry, FILE *out)
{
	if ((entry->item && entry->item->staged) || entry->base == NO_BASE)
		return -ENODATA;
	fprintf(out, "%" PRIu64,
		bpk_tensor_off(bpk_reader_tensor(mount->reader, entry->base)));
	return 0;
}

static int scalar_type(const struct mount *mount, const struct entry *entry, FILE *out)
{
	static const char *const names[] = { "Int", "UInt", "Float", "Bool" };
	enum bpk_scalar_type type;

	if (entry->item && !entry->item->has_value)
		return -ENODATA;
	type = entry->item
		       ? entry->item->value.type
		       : bpk_scalar_value(bpk_reader_scalar(mount->reader, entry->base))
				 .type;
	fputs(names[type], out);
	return 0;
}

static const struct attribute {
	enum item_kind kind;
	const char *name;
	int (*print)(const struct mount *mount, const struct entry *entry, FILE *out);
} attributes[] = {
	{ ITEM_TENSOR, "user.bpk.dtype", tensor_dtype },
	{ ITEM_TENSOR, "user.bpk.shape", tensor_shape },
	{ ITEM_TENSOR, "user.bpk.param_id", tensor_param_id },
	{ ITEM_TENSOR, "user.bpk.offset", tensor_offset },
	{ ITEM_SCALAR, "user.bpk.type", scalar_type },
};

int describe_xattr(const struct mount *mount, const struct entry *entry, const char *name,
		   char **ret_value, size_t *ret_size)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		char *value = NULL;
		FILE *out;
		int error;

		if (attributes[i].kind != entry->kind ||
		    strcmp(attributes[i].name, name) != 0)
			continue;
		out = open_memstream(&value, ret_size);
		if (!out)
			return -ENOMEM;
		error = attributes[i].print(mount, entry, out);
		if (fclose(out) != 0 && !error)
			error = -ENOMEM;
		if (error)
			free(value);
		else
			*ret_value = value;
		return error;
	}
	return -ENODATA;
}

int describe_xattr_names(const struct mount *mount, const struct entry *entry,
			 char **ret_names, size_t *ret_size)
{
	FILE *out = open_memstream(ret_names, ret_size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		char *value;
		size_t size;

		if (attributes[i].kind != entry->kind ||
		    describe_xattr(mount, entry, attributes[i].name, &value, &size) != 0)
			continue;
		free(value);
		fwrite(attributes[i].name, 1, strlen(attributes[i].name) + 1, out);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}
