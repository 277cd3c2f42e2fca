/*
 * node.c - see node.h.
 */
#include "node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

const struct fixed_node fixed_nodes[] = {
	{ NODE_ID_SECTION + ITEM_TENSOR, NODE_ID_ROOT, "tensors", NODE_SECTION,
	  ITEM_TENSOR, 0 },
	{ NODE_ID_SECTION + ITEM_SCALAR, NODE_ID_ROOT, "scalars", NODE_SECTION,
	  ITEM_SCALAR, 0 },
	{ NODE_ID_SECTION + ITEM_METADATA, NODE_ID_ROOT, "metadata", NODE_SECTION,
	  ITEM_METADATA, 0 },
	{ NODE_ID_NPY_SECTION, NODE_ID_ROOT, "npy", NODE_SECTION, ITEM_TENSOR, 0 },
	{ NODE_ID_RENDERED + RENDERED_INDEX, NODE_ID_ROOT, "index.tsv", NODE_RENDERED, 0,
	  RENDERED_INDEX },
	{ NODE_ID_RENDERED + RENDERED_JSON, NODE_ID_ROOT, "pack.json", NODE_RENDERED, 0,
	  RENDERED_JSON },
	{ NODE_ID_RENDERED + RENDERED_SAFETENSORS, NODE_ID_ROOT, "pack.safetensors",
	  NODE_RENDERED, 0, RENDERED_SAFETENSORS },
	{ NODE_ID_BY_PATH, NODE_ID_ROOT, "by-path", NODE_PATH, 0, 0 },
	{ NODE_ID_CONTROL, NODE_ID_ROOT, ".bpkfs", NODE_CONTROL, 0, 0 },
	{ NODE_ID_STATUS, NODE_ID_CONTROL, "status", NODE_STATUS, 0, 0 },
	{ NODE_ID_CHANGES, NODE_ID_CONTROL, "changes", NODE_CHANGES, 0, 0 },
};
const size_t fixed_node_count = sizeof(fixed_nodes) / sizeof(*fixed_nodes);

static size_t bucket_of(const struct nodes *nodes, uint64_t id)
{
	uint64_t mixed = id * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(mixed >> 32) & (nodes->bucket_count - 1);
}

int nodes_init(struct nodes *nodes, const struct overlay *constant)
{
	*nodes = (struct nodes) { .constant = constant,
				  .bucket_count = 256,
				  .hashes = UINT64_MAX };
	nodes->buckets = calloc(nodes->bucket_count, sizeof(*nodes->buckets));
	if (!nodes->buckets)
		return -ENOMEM;
	if (getrandom(&nodes->seed, sizeof(nodes->seed), 0) != sizeof(nodes->seed)) {
		free(nodes->buckets);
		return -EIO;
	}
	nodes->fixed[NODE_ID_ROOT].id = NODE_ID_ROOT;
	nodes->fixed[NODE_ID_ROOT].type = NODE_ROOT;
	for (size_t i = 0; i < fixed_node_count; i++) {
		struct node *node = &nodes->fixed[fixed_nodes[i].id];

		if (fixed_nodes[i].type == NODE_RENDERED)
			continue; /* comes and goes as the others do */
		node->id = fixed_nodes[i].id;
		node->type = fixed_nodes[i].type;
		node->kind = fixed_nodes[i].kind;
		node->npy = node->id == NODE_ID_NPY_SECTION;
	}
	return 0;
}

void nodes_narrow(struct nodes *nodes, uint64_t seed, unsigned bits)
{
	nodes->seed = seed;
	nodes->hashes = (UINT64_C(1) << bits) - 1;
}

static void node_free(struct overlay *overlay, struct node *node)
{
	if (node->item)
		item_unref(overlay, node->item);
	rendered_unref(node->rendered);
	free(node->attributes);
	free(node->component);
	free(node);
}

void nodes_done(struct nodes *nodes, struct overlay *overlay)
{
	for (size_t i = 0; i < nodes->bucket_count; i++)
		while (nodes->buckets[i]) {
			struct node *node = nodes->buckets[i];

			nodes->buckets[i] = node->next;
			node_free(overlay, node);
		}
	for (size_t i = 0; i < NODE_ID_FIXED_END; i++)
		free(nodes->fixed[i].attributes);
	free(nodes->buckets);
	*nodes = (struct nodes) { 0 };
}

/* One that is kept. */
static struct node *find(const struct nodes *nodes, uint64_t id)
{
	struct node *node;

	for (node = nodes->buckets[bucket_of(nodes, id)]; node; node = node->next)
		if (node->id == id)
			return node;
	return NULL;
}

static void grow(struct nodes *nodes)
{
	struct nodes bigger = *nodes;

	bigger.bucket_count *= 2;
	bigger.buckets = calloc(bigger.bucket_count, sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return; /* longer chains, still right */
	for (size_t i = 0; i < nodes->bucket_count; i++)
		while (nodes->buckets[i]) {
			struct node *node = nodes->buckets[i];
			size_t to = bucket_of(&bigger, node->id);

			nodes->buckets[i] = node->next;
			node->next = bigger.buckets[to];
			bigger.buckets[to] = node;
		}
	free(nodes->buckets);
	nodes->buckets = bigger.buckets;
	nodes->bucket_count = bigger.bucket_count;
}

static struct node *add(struct nodes *nodes, uint64_t id, enum node_type type,
			enum item_kind kind)
{
	struct node *node = calloc(1, sizeof(*node));
	size_t at;

	if (!node)
		return NULL;
	if (nodes->count >= nodes->bucket_count)
		grow(nodes);
	node->id = id;
	node->type = type;
	node->kind = kind;
	node->base = NO_BASE;
	at = bucket_of(nodes, id);
	node->next = nodes->buckets[at];
	nodes->buckets[at] = node;
	nodes->count++;
	return node;
}

/* It goes with the next request, unless there are references then. */
static struct node *add_loose(struct nodes *nodes, uint64_t id, enum node_type type,
			      enum item_kind kind)
{
	struct node *node = add(nodes, id, type, kind);

	if (!node)
		return NULL;
	node->loose = true;
	node->npy = id & NODE_ID_NPY;
	node->next_loose = nodes->loose;
	nodes->loose = node;
	return node;
}

/* Of an entry: those of one kind are numbered one after the other. */
static struct node *remake_entry(struct nodes *nodes, uint64_t id)
{
	for (enum item_kind kind = 0; kind < PACK_KIND_COUNT; kind++) {
		const struct entry first = { kind, 0, NULL };
		const uint64_t views = NODE_ID_NPY | NODE_ID_LINK;
		uint64_t index = (id & ~views) - entry_id(nodes->constant, &first);
		struct node *node;

		if (index >= overlay_pack_count(nodes->constant, kind) ||
		    (id & NODE_ID_NPY && kind != ITEM_TENSOR))
			continue;
		node = add_loose(nodes, id, id & NODE_ID_LINK ? NODE_LINK : NODE_ENTRY,
				 kind);
		if (node)
			node->base = (size_t)index;
		return node;
	}
	return NULL;
}

static struct node *remake_folder(struct nodes *nodes, uint64_t id)
{
	unsigned kind = id >> NODE_ID_KIND_SHIFT & ((1U << NODE_ID_KIND_BITS) - 1);
	size_t prefix_size =
		       id >> NODE_ID_PREFIX_SHIFT & ((1U << NODE_ID_PREFIX_BITS) - 1),
	       size;
	const struct entry first = { (enum item_kind)kind, (uint32_t)id, NULL };
	struct node *node;
	const char *name;

	if (kind == NODE_ID_PATH_KIND) {
		node = add_loose(nodes, id, NODE_PATH, 0);
		if (node) {
			node->base = (uint32_t)id;
			node->prefix_size = prefix_size;
		}
		return node;
	}
	if (kind >= PACK_KIND_COUNT ||
	    first.base >= overlay_pack_count(nodes->constant, first.kind))
		return NULL;
	name = entry_name(nodes->constant, &first, &size);
	if (!prefix_size || prefix_size > size || name[prefix_size - 1] != '.')
		return NULL;
	node = add_loose(nodes, id, NODE_FOLDER, first.kind);
	if (!node)
		return NULL;
	node->prefix = name;
	node->prefix_size = prefix_size;
	return node;
}

struct node *nodes_find(struct nodes *nodes, uint64_t id)
{
	struct node *node;

	if (id < NODE_ID_FIXED_END && nodes->fixed[id].id)
		return &nodes->fixed[id];
	node = find(nodes, id);
	if (node || !nodes->constant)
		return node;
	return (id & NODE_ID_FOLDER) == NODE_ID_FOLDER ? remake_folder(nodes, id)
						       : remake_entry(nodes, id);
}

struct node *nodes_entry(struct nodes *nodes, const struct overlay *overlay,
			 const struct entry *entry, bool npy)
{
	uint64_t id = entry_id(overlay, entry) | (npy ? NODE_ID_NPY : 0);
	struct node *node = nodes_find(nodes, id);

	if (node || nodes->constant)
		return node;
	node = add(nodes, id, NODE_ENTRY, entry->kind);
	if (!node)
		return NULL;
	node->npy = npy;
	node->base = entry->base;
	if (entry->item) {
		node->item = entry->item;
		item_ref(node->item);
	}
	return node;
}

void nodes_bind(struct nodes *nodes, struct item *item)
{
	const uint64_t ids[] = { item->id, item->id | NODE_ID_NPY };

	for (size_t i = 0; i < 2; i++) {
		struct node *node = nodes_find(nodes, ids[i]);

		if (node && node->type == NODE_ENTRY && !node->item) {
			node->item = item;
			item_ref(item);
		}
	}
}

struct node *nodes_rendered(struct nodes *nodes, struct rendered *rendered)
{
	struct node *node = nodes_find(nodes, rendered->id);

	if (node)
		return node;
	node = add(nodes, rendered->id, NODE_RENDERED, 0);
	if (node)
		node->rendered = rendered_ref(rendered);
	return node;
}

struct node *nodes_twin(struct nodes *nodes, const struct node *node)
{
	if (node->id == NODE_ID_NPY_SECTION)
		return &nodes->fixed[NODE_ID_SECTION + ITEM_TENSOR];
	if (node->id == NODE_ID_SECTION + ITEM_TENSOR)
		return &nodes->fixed[NODE_ID_NPY_SECTION];
	return nodes_find(nodes, node->id ^ NODE_ID_NPY);
}

static uint64_t hashed_id(const struct nodes *nodes, uint64_t hash, bool npy)
{
	return (hash & nodes->hashes & ~NODE_ID_NPY) | NODE_ID_FOLDER |
	       (npy ? NODE_ID_NPY : 0);
}

uint64_t nodes_folder_id(const struct nodes *nodes, const struct node *parent,
			 const char *component, size_t size)
{
	uint64_t above = parent->id == NODE_ID_NPY_SECTION ? NODE_ID_SECTION + ITEM_TENSOR
							   : parent->id & ~NODE_ID_NPY;
	uint64_t hash = nodes->seed ^ above * UINT64_C(0x9e3779b97f4a7c15);

	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ (uint8_t)component[i]) * UINT64_C(0x100000001b3);
		hash ^= hash >> 29;
	}
	return hashed_id(nodes, hash, parent->npy);
}

uint64_t nodes_constant_folder_id(const struct entry *first, bool npy, size_t prefix_size)
{
	return NODE_ID_FOLDER | (npy ? NODE_ID_NPY : 0) |
	       (uint64_t)first->kind << NODE_ID_KIND_SHIFT |
	       (uint64_t)prefix_size << NODE_ID_PREFIX_SHIFT | (uint32_t)first->base;
}

uint64_t nodes_path_id(size_t first, size_t size)
{
	return NODE_ID_FOLDER | (uint64_t)NODE_ID_PATH_KIND << NODE_ID_KIND_SHIFT |
	       (uint64_t)size << NODE_ID_PREFIX_SHIFT | (uint32_t)first;
}

uint64_t node_parent_id(const struct nodes *nodes, const struct node *node)
{
	size_t size = node->prefix_size;
	struct entry first;

	if (node->type != NODE_FOLDER)
		return NODE_ID_ROOT;
	if (node->parent)
		return node->parent->id;
	for (size--; size && node->prefix[size - 1] != '.'; size--)
		;
	if (!size ||
	    !overlay_seek(nodes->constant, node->kind, node->prefix, size, &first))
		return node->npy ? NODE_ID_NPY_SECTION
				 : NODE_ID_SECTION + (uint64_t)node->kind;
	return nodes_constant_folder_id(&first, node->npy, size);
}

static bool is_folder(const struct node *node, const struct node *parent,
		      const char *component, size_t size)
{
	return node->type == NODE_FOLDER && node->parent == parent &&
	       node->component_size == size &&
	       (!size || memcmp(node->component, component, size) == 0);
}

struct node *nodes_folder(struct nodes *nodes, struct node *parent, enum item_kind kind,
			  const char *component, size_t size, uint64_t made_id)
{
	uint64_t id = made_id ? made_id | (parent->npy ? NODE_ID_NPY : 0)
			      : nodes_folder_id(nodes, parent, component, size);
	struct node *node;
	char *copy;

	while ((node = nodes_find(nodes, id))) {
		if (is_folder(node, parent, component, size))
			return node;
		id = hashed_id(nodes, id + 1, parent->npy);
	}
	copy = malloc(size + 1);
	node = copy ? add(nodes, id, NODE_FOLDER, kind) : NULL;
	if (!node) {
		free(copy);
		return NULL;
	}
	if (size)
		memcpy(copy, component, size);
	node->component = copy;
	node->component_size = size;
	node->parent = parent;
	node->npy = parent->npy;
	node_ref(parent);
	return node;
}

void node_move(struct nodes *nodes, struct overlay *overlay, struct node *node,
	       struct node *parent, char *component, size_t size)
{
	free(node->component);
	node->component = component;
	node->component_size = size;
	node_ref(parent);
	node_unref(nodes, overlay, node->parent);
	node->parent = parent;
}

bool node_is_folder(const struct node *node)
{
	return node->type == NODE_ROOT || node->type == NODE_SECTION ||
	       node->type == NODE_CONTROL || node->type == NODE_FOLDER ||
	       node->type == NODE_PATH;
}

void node_ref(struct node *node)
{
	node->refs++;
}

struct folder_attributes *node_attributes(struct node *node)
{
	if (!node->attributes) {
		node->attributes = calloc(1, sizeof(*node->attributes));
		if (node->attributes)
			node_ref(node);
	}
	return node->attributes;
}

/* A loop, not a recursion: a chain of folders may be as long as a name. */
static void free_unused(struct nodes *nodes, struct overlay *overlay, struct node *node)
{
	while (node && (node->id >= NODE_ID_FIXED_END || node->rendered) && !node->refs &&
	       !node->lookups && !node->loose) {
		struct node **link = &nodes->buckets[bucket_of(nodes, node->id)];
		struct node *parent = node->parent;

		while (*link != node)
			link = &(*link)->next;
		*link = node->next;
		nodes->count--;
		node_free(overlay, node);
		if (parent)
			parent->refs--;
		node = parent;
	}
}

void node_unref(struct nodes *nodes, struct overlay *overlay, struct node *node)
{
	node->refs--;
	free_unused(nodes, overlay, node);
}

void nodes_sweep(struct nodes *nodes, struct overlay *overlay)
{
	while (nodes->loose) {
		struct node *node = nodes->loose;

		nodes->loose = node->next_loose;
		node->loose = false;
		free_unused(nodes, overlay, node);
	}
}

void node_told(struct nodes *nodes, struct node *node)
{
	nodes->told++;
	/* What can be made of its number is not kept for the kernel. */
	if (!nodes->constant || node->type == NODE_RENDERED)
		node->lookups++;
}

void node_forget(struct nodes *nodes, struct overlay *overlay, struct node *node,
		 uint64_t lookups)
{
	nodes->told -= lookups;
	node->lookups -= lookups < node->lookups ? lookups : node->lookups;
	free_unused(nodes, overlay, node);
}

void nodes_forget(struct nodes *nodes, struct overlay *overlay, uint64_t id,
		  uint64_t lookups)
{
	struct node *node = find(nodes, id);

	if (node)
		node_forget(nodes, overlay, node, lookups);
	else
		nodes->told -= lookups;
}

char *node_prefix(const struct node *node, size_t *ret_size)
{
	size_t size = 0;
	char *prefix, *end;

	if (node->prefix) {
		prefix = malloc(node->prefix_size);
		if (!prefix)
			return NULL;
		memcpy(prefix, node->prefix, node->prefix_size);
		*ret_size = node->prefix_size;
		return prefix;
	}
	for (const struct node *up = node; up->type == NODE_FOLDER; up = up->parent)
		size += up->component_size + 1;
	prefix = malloc(size + 1);
	if (!prefix)
		return NULL;
	end = prefix + size;
	for (const struct node *up = node; up->type == NODE_FOLDER; up = up->parent) {
		*--end = '.';
		end -= up->component_size;
		if (up->component_size)
			memcpy(end, up->component, up->component_size);
	}
	*ret_size = size;
	return prefix;
}

struct entry node_entry(const struct overlay *overlay, const struct node *node)
{
	struct entry entry = { node->kind, node->base, node->item };

	if (!entry.item && overlay->promoted[node->kind])
		entry.item = overlay->promoted[node->kind][node->base];
	/* The node keeps the index it was made with, which a commit may outdate. */
	if (entry.item) {
		entry.kind = entry.item->kind;
		entry.base = entry.item->base;
	}
	return entry;
}
