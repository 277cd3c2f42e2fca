/*
 * edit_attr.c - extended attributes that are set and removed: what a tensor's bytes are
 * said to be, and the type of a scalar. See edit.h.
 *
 * A scratch file takes the attributes of what it may become: rsync sets them before
 * its rename. What is set on a .npy file while it is written counts once it is a tensor.
 */
#include "attr_text.h"
#include "convert/scheme.h"
#include "describe.h"
#include "edit.h"
#include "edit_data.h"
#include "npy_draft.h"
#include "scalar_text.h"
#include "tensor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

struct value {
	const char *text;
	size_t size;
};

/* Where dtype and shape go: to @item, or to the draft of its .npy file. */
static int target(const struct node *node, struct item *item, struct item **ret)
{
	struct npy_draft *draft = item->draft;

	*ret = item;
	if (!node->npy || !draft || draft->settled)
		return 0;
	if (!draft->given) {
		draft->given = calloc(1, sizeof(*draft->given));
		if (!draft->given)
			return -ENOMEM;
		draft->given->dtype = BPK_DTYPE_U8;
		draft->given->shape_follows = true;
		draft->given->described = NO_BASE;
	}
	*ret = draft->given;
	return 0;
}

/* Is that the dtype which @item has, to the last byte of its scheme? */
static int same_dtype(struct mount *mount, struct item *item, const struct value *value,
		      bool *ret)
{
	struct entry entry = { item->kind, item->base, item };
	struct tensor tensor = { 0 };
	const char *text;
	size_t size;
	int error = tensor_get(&mount->overlay, &entry, &tensor);

	if (!error) {
		text = tensor_dtype_text(&tensor, &size);
		if (!text)
			error = -ENOMEM;
		else
			*ret = size == value->size &&
			       memcmp(text, value->text, size) == 0;
	}
	tensor_done(&tensor);
	return error;
}

static int set_dtype(struct mount *mount, const struct node *node, struct item *item,
		     const struct value *value)
{
	enum bpk_dtype dtype = BPK_DTYPE_QFLOAT;
	void *cbor = NULL;
	size_t cbor_size = 0;
	struct item *to;
	bool same = false;
	int error = same_dtype(mount, item, value, &same);

	if (!error)
		error = target(node, item, &to);
	if (error)
		return error;
	if (same)
		return to == item ? 0
				  : item_set_dtype(to, item->dtype, item->dtype_cbor,
						   item->dtype_cbor_size);
	if (bpk_dtype_from_name(value->text, value->size, &dtype) < 0)
		error = bpk_scheme_parse(value->text, value->size, &cbor, &cbor_size,
					 NULL);
	if (!error)
		error = item_set_dtype(to, dtype, cbor, cbor_size);
	free(cbor);
	return error && error != -ENOMEM ? -EINVAL : error;
}

static int set_shape(struct mount *mount, const struct node *node, struct item *item,
		     const struct value *value)
{
	struct item *to;
	uint64_t *shape;
	size_t rank;
	int error = attr_parse_shape(value->text, value->size, &shape, &rank);

	(void)mount;
	if (error)
		return error;
	error = target(node, item, &to);
	if (!error)
		error = item_set_shape(to, shape, rank);
	free(shape);
	return error;
}

static int set_param_id(struct mount *mount, const struct node *node, struct item *item,
			const struct value *value)
{
	int error = attr_parse_uint(value->text, value->size, &item->param_id);

	(void)mount;
	(void)node;
	if (!error)
		item->has_param_id = true;
	return error == -ERANGE ? -EINVAL : error;
}

/* Where the bytes lie is a fact and no wish: it is taken, so that cp and rsync go on,
 * and changes nothing. */
static int set_offset(struct mount *mount, const struct node *node, struct item *item,
		      const struct value *value)
{
	(void)mount;
	(void)node;
	(void)item;
	(void)value;
	return 0;
}

static int set_type(struct mount *mount, const struct node *node, struct item *item,
		    const struct value *value)
{
	struct bpk_scalar_value converted = item->value;
	const struct pending *pending = &item->pending;
	enum bpk_scalar_type type;
	int error = attr_parse_type(value->text, value->size, &type);

	(void)node;
	if (error)
		return error;
	/* Text that is being written means what it means in that type: cp sets the
	 * attribute before it closes the file. */
	if (pending->active && pending->written)
		error = scalar_parse(pending->data, pending->size, type, &converted);
	else if (item->kind == ITEM_SCALAR && item->has_value)
		error = attr_convert(item->value, type, &converted);
	else
		converted = (struct bpk_scalar_value) { .type = type };
	if (error)
		return error;
	if (pending->active && pending->written)
		item->has_value = true;
	item->value = converted;
	item->type_known = true;
	overlay_touch(&mount->overlay, item);
	return 0;
}

static const struct attribute {
	const char *name;
	enum item_kind kind;
	int (*set)(struct mount *mount, const struct node *node, struct item *item,
		   const struct value *value);
} attributes[] = {
	{ "user.bpk.dtype", ITEM_TENSOR, set_dtype },
	{ "user.bpk.shape", ITEM_TENSOR, set_shape },
	{ "user.bpk.param_id", ITEM_TENSOR, set_param_id },
	{ "user.bpk.offset", ITEM_TENSOR, set_offset },
	{ "user.bpk.type", ITEM_SCALAR, set_type },
};

static const struct attribute *find(const struct entry *entry, const char *name)
{
	enum item_kind kind = entry->kind;

	if (kind == ITEM_SCRATCH)
		kind = tree_scratch_section(entry->item);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i].kind == kind && strcmp(attributes[i].name, name) == 0)
			return &attributes[i];
	return NULL;
}

/* 0, -ENODATA or -ENOMEM. */
static int exists(struct mount *mount, const struct entry *entry, const char *name)
{
	char *value;
	size_t size;
	int error = describe_xattr(mount, entry, name, &value, &size);

	if (!error)
		free(value);
	return error;
}

int edit_set_attribute(struct mount *mount, struct node *node, const char *name,
		       const char *value, size_t size, int flags)
{
	const struct value given = { value, size };
	const struct attribute *attribute;
	struct entry entry;
	struct item *item;
	int error = 0;

	if (node->type != NODE_ENTRY)
		return -ENOTSUP;
	entry = node_entry(&mount->overlay, node);
	attribute = find(&entry, name);
	if (!attribute)
		return -ENOTSUP;
	if (flags & (XATTR_CREATE | XATTR_REPLACE)) {
		error = exists(mount, &entry, name);
		if (error == -ENOMEM)
			return error;
		if (!error && flags & XATTR_CREATE)
			return -EEXIST;
		if (error && flags & XATTR_REPLACE)
			return error;
	}
	/* No value takes more of the metadata than of its text. */
	if (!overlay_metadata_fits(&mount->overlay, size))
		return -ENOSPC;
	error = edit_take(mount, &entry, &item);
	if (!error)
		error = attribute->set(mount, node, item, &given);
	/* The header in npy/ says so, too. */
	if (!error && entry.kind == ITEM_TENSOR)
		mount_changed_unseen(mount, item, true, 0);
	if (!error && entry.kind < PACK_KIND_COUNT)
		overlay_account(&mount->overlay, size);
	return error;
}

int edit_remove_attribute(struct mount *mount, struct node *node, const char *name)
{
	const struct attribute *attribute;
	struct entry entry;
	struct item *item;
	int error;

	if (node->type != NODE_ENTRY)
		return -ENODATA;
	entry = node_entry(&mount->overlay, node);
	attribute = find(&entry, name);
	error = attribute ? exists(mount, &entry, name) : -ENODATA;
	if (error || attribute->set == set_offset)
		return error;
	if (attribute->set != set_param_id)
		return -ENOTSUP; /* a tensor or scalar without that is none */
	error = edit_take(mount, &entry, &item);
	if (!error)
		item->has_param_id = false;
	return error;
}
