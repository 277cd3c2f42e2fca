/*
 * cut_index.c - see cut_index.h.
 */
#include "cut_index.h"

#include "base.h"

#include <errno.h>

#define MIXER UINT64_C(0x9e3779b97f4a7c15)

/* Groups ------------------------------------------------------------------- */

static size_t room_of(const struct cut_names *names, bool is_file)
{
	return is_file ? names->file_room : NAME_SIZE_MAX;
}

/* One more piece of a name, so that pieces give the hash of the whole. */
static uint64_t mix(uint64_t state, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		state = (state ^ (uint8_t)bytes[i]) * MIXER;
		state ^= state >> 29;
	}
	return state;
}

/* @state is of the folder's prefix. A prefix ends with a dot and a head has none (or
 * there are no prefixes), so no two groups have the same bytes. */
static uint64_t group_of(uint64_t state, const char *head, size_t head_size, size_t room)
{
	state = (mix(state, head, head_size) ^ room) * MIXER;
	return state ^ state >> 32;
}

/* Making it ---------------------------------------------------------------- */

/* The name that holds a record's component, up to where that ends. */
static const char *name_up_to(const struct cut_names *names,
			      const struct cut_record *record, size_t *ret_size)
{
	size_t size;
	const char *name = names->name(names->context, record->index, &size), *dot = NULL;

	if (names->dots == NAME_DOTS_SPLIT)
		dot = memchr(name + record->off, '.', size - record->off);
	*ret_size = dot ? (size_t)(dot - name) : size;
	return name;
}

static int compare_names(const struct cut_names *names, const struct cut_record *a,
			 const struct cut_record *b)
{
	size_t a_size, b_size;
	const char *a_name = name_up_to(names, a, &a_size);
	const char *b_name = name_up_to(names, b, &b_size);

	return bpk_name_compare(a_name, a_size, b_name, b_size);
}

/* While the values still are hashes. */
static int compare(const void *left, const void *right, void *context)
{
	const struct cut_record *a = left, *b = right;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return compare_names(context, a, b);
}

struct builder {
	struct cut_names names;
	const struct cut_index *first;
	struct cut_record *records;
	size_t count, capacity;
	const char *before; /* the name in front of the one that is read */
	size_t before_size;
};

/* Note the component [start, end) of @name if it is cut. @state is of all in front. */
static int note(struct builder *builder, size_t index, const char *name, size_t start,
		size_t end, bool is_file, uint64_t state)
{
	const struct cut_place place = { name, start, is_file };
	const char *raw = name + start;
	size_t size = end - start, room = room_of(&builder->names, is_file), head;
	uint64_t probe;

	if (!name_is_cut(raw, size, room, &head) ||
	    (builder->first &&
	     cut_index_probe(builder->first, &place, raw, size, &probe)))
		return 0;
	if (index > UINT32_MAX || start > UINT32_MAX)
		return -EFBIG;
	if (bpk_grow((void **)&builder->records, &builder->capacity, builder->count + 1,
		     sizeof(*builder->records)))
		return -ENOMEM;
	builder->records[builder->count++] = (struct cut_record) {
		.group = group_of(state, raw, head, room),
		.value = name_hash(raw, size),
		.index = (uint32_t)index,
		.off = (uint32_t)start,
	};
	return 0;
}

static size_t common_size(const char *a, size_t a_size, const char *b, size_t b_size)
{
	size_t size = a_size < b_size ? a_size : b_size, i = 0;

	while (i < size && a[i] == b[i])
		i++;
	return i;
}

/* A name with a component that may be cut. Names below one folder follow each other:
 * what this one shares with the one before, up to a dot, is noted already. */
static int read_name(struct builder *builder, size_t index, const char *name, size_t size)
{
	size_t known = common_size(builder->before, builder->before_size, name, size);
	uint64_t state = builder->names.seed;
	const char *dot = NULL;
	size_t start = 0;
	int error = 0;

	do {
		size_t end = size;

		if (builder->names.dots == NAME_DOTS_SPLIT)
			dot = memchr(name + start, '.', size - start);
		if (dot)
			end = (size_t)(dot - name);
		if (!dot || known <= end)
			error = note(builder, index, name, start, end, !dot, state);
		if (dot)
			state = mix(state, name + start, end + 1 - start);
		start = end + 1;
	} while (dot && !error);
	return error;
}

static int read_names(struct builder *builder)
{
	const struct cut_names *names = &builder->names;
	size_t least = names->file_room / 3; /* what escapes alone can make too long */

	for (size_t i = 0; i < names->count; i++) {
		size_t size;
		const char *name = names->name(names->context, i, &size);
		int error = size > least ? read_name(builder, i, name, size) : 0;

		if (error)
			return error;
		builder->before = name;
		builder->before_size = size;
	}
	return 0;
}

/* As a file and as a folder a component has one file name, if the room is the same. */
static void drop_doubles(struct builder *builder)
{
	size_t kept = 0;

	for (size_t i = 0; i < builder->count; i++) {
		const struct cut_record *record = &builder->records[i], *last;

		last = kept ? &builder->records[kept - 1] : NULL;
		if (!last || compare(last, record, &builder->names) != 0)
			builder->records[kept++] = *record;
	}
	builder->count = kept;
}

/* The records of a group. */
struct range {
	const struct cut_record *records;
	size_t count;
};

/* The first of the records [low, high) whose value is not below @value. */
static size_t lower_bound(const struct range *range, size_t low, size_t high,
			  uint64_t value)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (range->records[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct range group_range(const struct cut_index *index, uint64_t group)
{
	size_t bounds[2];

	for (unsigned int i = 0; i < 2; i++) {
		size_t low = i ? bounds[0] : 0, high = index->count;

		while (low < high) {
			size_t middle = low + (high - low) / 2;
			uint64_t other = index->records[middle].group;

			if (other < group || (i && other == group))
				low = middle + 1;
			else
				high = middle;
		}
		bounds[i] = low;
	}
	if (bounds[0] == bounds[1])
		return (struct range) { NULL, 0 };
	return (struct range) { index->records + bounds[0], bounds[1] - bounds[0] };
}

/*
 * Give the @count records of a group their values; none that is in @taken.
 *
 * Going up, @next is the least that is free. Nothing is free behind 2^64 - 1: then
 * the others get that for now, and going down makes room, @next being the most that
 * is free. Both ways each of @taken is passed once.
 */
static void assign(struct cut_record *records, size_t count, const struct range *taken)
{
	uint64_t next = 0;
	size_t at = 0;
	bool full = false;

	for (size_t i = 0; i < count; i++) {
		uint64_t value = records[i].value < next ? next : records[i].value;

		if (!full) {
			at = lower_bound(taken, at, taken->count, value);
			while (at < taken->count && taken->records[at].value == value &&
			       value < UINT64_MAX) {
				value++;
				at++;
			}
			full = at < taken->count && taken->records[at].value == value;
		}
		records[i].value = full ? UINT64_MAX : value;
		next = value + 1;
		full = full || !next;
	}
	if (!full)
		return;
	next = UINT64_MAX;
	at = taken->count;
	for (size_t i = count; i--;) {
		uint64_t value = records[i].value > next ? next : records[i].value;
		bool held;
		size_t end = at;

		at = lower_bound(taken, 0, end, value);
		held = at < end && taken->records[at].value == value;
		while (held) {
			value--;
			held = at > 0 && taken->records[at - 1].value == value;
			at -= held;
		}
		records[i].value = value;
		next = value - 1;
	}
}

static void assign_all(struct builder *builder, bool *ret_probes)
{
	struct range taken = { NULL, 0 };
	size_t start = 0;

	*ret_probes = false;
	while (start < builder->count) {
		struct cut_record *group = builder->records + start;
		size_t count = 1;
		bool apart = true;

		while (start + count < builder->count &&
		       group[count].group == group->group) {
			apart = apart && group[count - 1].value != group[count].value;
			count++;
		}
		if (builder->first)
			taken = group_range(builder->first, group->group);
		if (!apart || taken.count) {
			*ret_probes = true;
			assign(group, count, &taken);
		}
		start += count;
	}
}

int cut_index_build(const struct cut_names *names, const struct cut_index *first,
		    struct cut_index *ret)
{
	struct builder builder = { .names = *names, .first = first };
	struct cut_record *fitted;
	bool probes;
	int error = read_names(&builder);

	if (error) {
		free(builder.records);
		return error;
	}
	if (builder.count)
		qsort_r(builder.records, builder.count, sizeof(*builder.records), compare,
			&builder.names);
	drop_doubles(&builder);
	assign_all(&builder, &probes);
	fitted = builder.count ? reallocarray(builder.records, builder.count,
					      sizeof(*builder.records))
			       : NULL;
	*ret = (struct cut_index) {
		.names = *names,
		.records = fitted ? fitted : builder.records,
		.count = builder.count,
		.probes = probes,
	};
	return 0;
}

void cut_index_done(struct cut_index *index)
{
	free(index->records);
	*index = (struct cut_index) { .count = 0 };
}

/* Looking up --------------------------------------------------------------- */

static struct range place_range(const struct cut_index *index,
				const struct cut_place *place, const char *head,
				size_t head_size)
{
	uint64_t state = mix(index->names.seed, place->prefix, place->prefix_size);

	return group_range(index, group_of(state, head, head_size,
					   room_of(&index->names, place->is_file)));
}

/* The component of @record if it stands at @place and begins with @head; NULL when
 * two groups have one hash. */
static const char *component_at(const struct cut_index *index,
				const struct cut_record *record,
				const struct cut_place *place, const char *head,
				size_t head_size, size_t *ret_size)
{
	size_t size, cut;
	const char *name = name_up_to(&index->names, record, &size);

	if (record->off != place->prefix_size ||
	    (place->prefix_size && memcmp(name, place->prefix, place->prefix_size) != 0))
		return NULL;
	name += record->off;
	size -= record->off;
	if (!name_is_cut(name, size, room_of(&index->names, place->is_file), &cut) ||
	    cut != head_size || memcmp(name, head, head_size) != 0)
		return NULL;
	*ret_size = size;
	return name;
}

const char *cut_index_find(const struct cut_index *index, const struct cut_place *place,
			   const struct name_decoded *decoded, size_t *ret_size)
{
	struct range range = place_range(index, place, decoded->raw, decoded->raw_size);
	size_t at = lower_bound(&range, 0, range.count, decoded->hash);

	if (at == range.count || range.records[at].value != decoded->hash)
		return NULL;
	return component_at(index, &range.records[at], place, decoded->raw,
			    decoded->raw_size, ret_size);
}

/* How @hash and the name that @place and @raw make stand to a record's: by the same
 * order as the records were sorted. */
static int compare_component(const struct cut_index *index,
			     const struct cut_record *record,
			     const struct cut_place *place, uint64_t hash,
			     const char *raw, size_t size)
{
	size_t other_size, off = record->off, front = place->prefix_size;
	const char *other = name_up_to(&index->names, record, &other_size);
	uint64_t other_hash = name_hash(other + off, other_size - off);
	int order;

	if (hash != other_hash)
		return hash < other_hash ? -1 : 1;
	order = bpk_name_compare(place->prefix, front, other,
				 other_size < front ? other_size : front);
	if (order)
		return order;
	return bpk_name_compare(raw, size, other + front, other_size - front);
}

bool cut_index_probe(const struct cut_index *index, const struct cut_place *place,
		     const char *raw, size_t size, uint64_t *ret_probe)
{
	size_t head, low, high;
	uint64_t hash;
	struct range range;

	if (!name_is_cut(raw, size, room_of(&index->names, place->is_file), &head))
		return false;
	hash = name_hash(raw, size);
	range = place_range(index, place, raw, head);
	/* Mostly at its own hash; else in the order of hashes and bytes. */
	low = lower_bound(&range, 0, range.count, hash);
	if (low < range.count && range.records[low].value == hash &&
	    !compare_component(index, &range.records[low], place, hash, raw, size)) {
		*ret_probe = 0;
		return true;
	}
	for (low = 0, high = range.count; low < high;) {
		size_t middle = low + (high - low) / 2;
		int order = compare_component(index, &range.records[middle], place, hash,
					      raw, size);

		if (!order) {
			*ret_probe = range.records[middle].value - hash;
			return true;
		}
		if (order > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}
