/*
 * describe.c - see describe.h.
 */
#include "describe.h"
#include "attr_text.h"
#include "convert/json.h"
#include "record.h"
#include "tensor.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count_change(void *context, const struct item *item, enum change change)
{
	(void)item;
	(void)change;
	++*(size_t *)context;
	return 0;
}

size_t describe_change_count(const struct mount *mount)
{
	size_t count = 0;

	overlay_each_change(&mount->overlay, count_change, &count);
	return count;
}

char *describe_status(const struct mount *mount, size_t *ret_size)
{
	struct bpk_appender path = { 0 }, output = { 0 }, error = { 0 };
	char *text = NULL;
	size_t changes = describe_change_count(mount);
	FILE *out;

	bpk_json_string(&path, mount->pack_path, strlen(mount->pack_path));
	if (strcmp(mount->target.path, mount->pack_path) != 0)
		bpk_json_string(&output, mount->target.path, strlen(mount->target.path));
	if (mount->message[0])
		bpk_json_string(&error, mount->message, strlen(mount->message));
	else
		bpk_append_raw(&error, "null", 4);
	out = path.failed || output.failed || error.failed
		      ? NULL
		      : open_memstream(&text, ret_size);
	if (!out) {
		bpk_append_done(&path);
		bpk_append_done(&output);
		bpk_append_done(&error);
		return NULL;
	}
	fprintf(out, "{\"pid\":%ld,\"pack\":", (long)getpid());
	fwrite(path.data, 1, path.size, out);
	if (output.size)
		fprintf(out, ",\"output\":%.*s", (int)output.size,
			(const char *)output.data);
	bpk_append_done(&path);
	bpk_append_done(&output);
	fprintf(out, ",\"mode\":\"%s\",\"dirty\":%s,\"changes\":%zu,\"commit\":\"%s\"",
		mount->writable ? "rw" : "ro", changes ? "true" : "false", changes,
		mount->committing ? "running" : "idle");
	fprintf(out, ",\"done\":%" PRIu64 ",\"total\":%" PRIu64,
		__atomic_load_n(&mount->commit_done, __ATOMIC_RELAXED),
		__atomic_load_n(&mount->commit_total, __ATOMIC_RELAXED));
	fprintf(out, ",\"last_status\":%d,\"last_error\":%.*s}\n", (int)mount->result,
		(int)error.size, (const char *)error.data);
	bpk_append_done(&error);
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
	const char *where; /* in front of each path: "" or a folder with a slash */
};

static void print_section(const struct changes *changes, enum item_kind kind)
{
	quoted(changes->out, changes->where, strlen(changes->where));
	fprintf(changes->out, "%s/", section_names[kind]);
}

static int print_change(void *context, const struct item *item, enum change change)
{
	struct changes *changes = context;
	static const char letters[] = { ' ', 'A', 'M', 'R', 'D' };
	struct entry base = { item->kind, item->base, NULL };
	const char *name;
	size_t size;

	fprintf(changes->out, "%c%c ", letters[change],
		overlay_invalid(changes->overlay, item) ? '!' : ' ');
	print_section(changes, item->kind);
	if (change == CHANGE_RENAMED) {
		name = entry_name(changes->overlay, &base, &size);
		quoted(changes->out, name, size);
		fputs(" -> ", changes->out);
		print_section(changes, item->kind);
	}
	name = item->name;
	size = item->name_size;
	if (change == CHANGE_REMOVED) /* it may have been renamed before */
		name = entry_name(changes->overlay, &base, &size);
	quoted(changes->out, name, size);
	putc('\n', changes->out);
	return 0;
}

char *describe_changes(const struct mount *mount, const char *where, size_t *ret_size)
{
	char *text = NULL;
	struct changes changes = { open_memstream(&text, ret_size), &mount->overlay,
				   where };

	if (!changes.out)
		return NULL;
	overlay_each_change(&mount->overlay, print_change, &changes);
	if (fclose(changes.out) == 0)
		return text;
	free(text);
	return NULL;
}

/* Extended attributes ------------------------------------------------------ */

static int print_dtype(struct tensor *tensor, FILE *out)
{
	size_t size;
	const char *text = tensor_dtype_text(tensor, &size);

	if (!text)
		return -ENOMEM;
	fwrite(text, 1, size, out);
	return 0;
}

static int print_shape(struct tensor *tensor, FILE *out)
{
	putc('[', out);
	for (size_t i = 0; i < tensor->rank; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", tensor->shape[i]);
	putc(']', out);
	return 0;
}

static int print_param_id(struct tensor *tensor, FILE *out)
{
	if (!tensor->has_param_id)
		return -ENODATA;
	fprintf(out, "%" PRIu64, tensor->param_id);
	return 0;
}

static int print_offset(struct tensor *tensor, FILE *out)
{
	if (!tensor_in_pack(tensor))
		return -ENODATA;
	fprintf(out, "%" PRIu64, tensor->off);
	return 0;
}

static int print_type(const struct mount *mount, const struct entry *entry, FILE *out)
{
	enum bpk_scalar_type type;

	if (entry->item && !entry->item->has_value && !entry->item->type_known)
		return -ENODATA;
	type = entry->item ? entry->item->value.type
			   : bpk_scalar_value(bpk_reader_scalar(mount->overlay.reader,
								entry->base))
				     .type;
	fputs(attr_type_name(type), out);
	return 0;
}

static const struct attribute {
	const char *name;
	int (*print)(struct tensor *tensor, FILE *out); /* NULL: of a scalar */
} attributes[] = {
	{ "user.bpk.dtype", print_dtype },
	{ "user.bpk.shape", print_shape },
	{ "user.bpk.param_id", print_param_id },
	{ "user.bpk.offset", print_offset },
	{ "user.bpk.type", NULL },
};

/* A scratch file may have those of what it may become. */
static bool attribute_is_of(const struct attribute *attribute, const struct entry *entry)
{
	enum item_kind kind = entry->kind;

	if (kind == ITEM_SCRATCH)
		kind = tree_scratch_section(entry->item);
	return kind == (attribute->print ? ITEM_TENSOR : ITEM_SCALAR);
}

/* Of a scratch file: was it set? */
static bool attribute_is_set(const struct attribute *attribute, const struct item *item)
{
	if (!attribute->print)
		return item->type_known;
	if (attribute->print == print_dtype)
		return !item_is_raw(item);
	return attribute->print != print_shape || !item->shape_follows;
}

static int print_attribute(const struct mount *mount, const struct entry *entry,
			   const struct attribute *attribute, FILE *out)
{
	struct tensor tensor = { 0 };
	int error;

	if (entry->kind == ITEM_SCRATCH && !attribute_is_set(attribute, entry->item))
		return -ENODATA;
	if (!attribute->print)
		return print_type(mount, entry, out);
	error = tensor_get(&mount->overlay, entry, &tensor);
	if (!error)
		error = attribute->print(&tensor, out);
	tensor_done(&tensor);
	return error;
}

int describe_xattr(const struct mount *mount, const struct entry *entry, const char *name,
		   char **ret_value, size_t *ret_size)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++) {
		char *value = NULL;
		FILE *out;
		int error;

		if (!attribute_is_of(&attributes[i], entry) ||
		    strcmp(attributes[i].name, name) != 0)
			continue;
		out = open_memstream(&value, ret_size);
		if (!out)
			return -ENOMEM;
		error = print_attribute(mount, entry, &attributes[i], out);
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

		if (!attribute_is_of(&attributes[i], entry) ||
		    describe_xattr(mount, entry, attributes[i].name, &value, &size) != 0)
			continue;
		free(value);
		/* The shape of ten thousands of dimensions: the kernel hands out no such
		 * value, and whoever copies what is listed would fail. */
		if (size > XATTR_SIZE_MAX)
			continue;
		fwrite(attributes[i].name, 1, strlen(attributes[i].name) + 1, out);
	}
	return fclose(out) == 0 ? 0 : -ENOMEM;
}

#define RECORD_ATTRIBUTE "user.bpk.record"

static int copy_of(const char *text, size_t size, char **ret_value, size_t *ret_size)
{
	char *value = malloc(size + 1);

	if (!value)
		return -ENOMEM;
	memcpy(value, text, size);
	*ret_value = value;
	*ret_size = size;
	return 0;
}

int describe_root_xattr(const struct mount *mount, const char *name, char **ret_value,
			size_t *ret_size)
{
	const char *value = NULL;

	if (strcmp(name, RECORD_ATTRIBUTE) == 0)
		value = record_of(&mount->overlay);
	else if (strcmp(name, DESCRIBE_ERROR_ATTRIBUTE) == 0)
		value = mount->refusal;
	return value ? copy_of(value, strlen(value), ret_value, ret_size) : -ENODATA;
}

int describe_root_xattr_names(const struct mount *mount, char **ret_names,
			      size_t *ret_size)
{
	char names[sizeof(RECORD_ATTRIBUTE) + sizeof(DESCRIBE_ERROR_ATTRIBUTE)];
	size_t size = 0;

	if (record_of(&mount->overlay)) {
		memcpy(names, RECORD_ATTRIBUTE, sizeof(RECORD_ATTRIBUTE));
		size += sizeof(RECORD_ATTRIBUTE);
	}
	if (mount->refusal) {
		memcpy(names + size, DESCRIBE_ERROR_ATTRIBUTE,
		       sizeof(DESCRIBE_ERROR_ATTRIBUTE));
		size += sizeof(DESCRIBE_ERROR_ATTRIBUTE);
	}
	return copy_of(names, size, ret_names, ret_size);
}
