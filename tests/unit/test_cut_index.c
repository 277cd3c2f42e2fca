/*
 * cut_index.c: rows with the exact values that names get, then what has to hold for
 * any names. The blocks whose hashes collide are from tests/support/collide.py.
 */
#include "base.h"
#include "cut_index.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define X60 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X240 X60 X60 X60 X60
/* Behind X240: two of one hash; behind either, two more, as often as is liked; the
 * second of HIGH has a hash that is one above that of the first; LAST and LAST_TOO
 * lead to the highest hash there is. */
#define A "aab051HKba"
#define B "IRe59UFL5j"
#define MORE_A "aaaj50HKba"
#define MORE_B "I6n--RFL5j"
#define HIGH_A "hApb5ibBaa"
#define HIGH_B "tR5Sm9iHMP"
#define LAST "aabyo*\"5>5kNt="
#define LAST_TOO "aascz2!7`o4A;'"
#define SPLIT NAME_DOTS_SPLIT
#define KEPT NAME_DOTS_KEPT
#define MINUS(n) (UINT64_MAX - (n) + 1)

struct list {
	const char *const *names;
	size_t count;
};

static const char *list_name(const void *context, size_t index, size_t *ret_size)
{
	const struct list *list = context;

	*ret_size = strlen(list->names[index]);
	return list->names[index];
}

static struct cut_names names_of(const struct list *list, enum name_dots dots,
				 size_t file_room)
{
	return (struct cut_names) {
		.name = list_name,
		.context = list,
		.count = list->count,
		.dots = dots,
		.file_room = file_room,
		.seed = 42,
	};
}

/* The component is there with that probe, and found by the name it then has. */
static void check(const char *label, const struct cut_index *index, const char *prefix,
		  const char *raw, bool is_file, uint64_t want)
{
	const struct cut_place place = { prefix, strlen(prefix), is_file };
	size_t room = is_file ? index->names.file_room : NAME_SIZE_MAX, size;
	struct name_decoded decoded;
	char text[NAME_BUFFER];
	const char *found;
	uint64_t probe;

	cr_assert(cut_index_probe(index, &place, raw, strlen(raw), &probe), "%s: %s",
		  label, raw);
	cr_expect_eq(probe, want, "%s: %llx", label, (unsigned long long)probe);
	size = name_encode(raw, strlen(raw), room, probe, text);
	cr_assert_eq(name_decode(text, size, room, index->names.dots, &decoded), 0);
	cr_assert_eq(decoded.kind, NAME_CUT);
	found = cut_index_find(index, &place, &decoded, &size);
	cr_assert_not_null(found, "%s: %s", label, text);
	cr_expect(size == strlen(raw) && !memcmp(found, raw, size), "%s: %.*s", label,
		  (int)size, found);
}

#define NAMES_MAX 8
Test(cut_index, values)
{
	static const struct {
		const char *label;
		enum name_dots dots;
		size_t file_room;
		const char *names[NAMES_MAX];
		size_t record_count;
		struct {
			const char *prefix;
			const char *raw;
			bool is_file;
			uint64_t probe;
		} want[NAMES_MAX];
	} cases[] = {
		{ "nothing to cut", SPLIT, 255, { "", X240, X60 ".b" }, 0, { { 0 } } },
		{ "one file",
		  SPLIT,
		  255,
		  { "a." X240 A A },
		  1,
		  { { "a.", X240 A A, true, 0 } } },
		{ "one folder of two",
		  SPLIT,
		  255,
		  { X240 A A ".a", X240 A A ".b" },
		  1,
		  { { "", X240 A A, false, 0 } } },
		{ "a folder and the tensor of its name",
		  SPLIT,
		  255,
		  { X240 A A, X240 A A "-a", X240 A A ".a" },
		  2,
		  { { "", X240 A A, false, 0 }, { "", X240 A A, true, 0 } } },
		{ "the same in a view with less room for files",
		  SPLIT,
		  251,
		  { X240 A A, X240 A A ".a" },
		  2,
		  { { "", X240 A A, false, 0 }, { "", X240 A A, true, 0 } } },
		{ "fits as a folder only",
		  SPLIT,
		  251,
		  { X240 "aaaaaaaaaaaaa", X240 "aaaaaaaaaaaaa.a" },
		  1,
		  { { "", X240 "aaaaaaaaaaaaa", true, 0 } } },
		{ "two of one hash",
		  SPLIT,
		  255,
		  { X240 A MORE_A, X240 B MORE_A },
		  2,
		  /* B is in front: upper case. */
		  { { "", X240 B MORE_A, true, 0 }, { "", X240 A MORE_A, true, 1 } } },
		{ "two folders of one hash",
		  SPLIT,
		  255,
		  { X240 A MORE_A ".a", X240 A MORE_A ".b", X240 B MORE_A ".a" },
		  2,
		  { { "", X240 B MORE_A, false, 0 }, { "", X240 A MORE_A, false, 1 } } },
		{ "a folder and a file of one hash, less room for files",
		  SPLIT,
		  251,
		  { X240 A MORE_A ".a", X240 B MORE_A },
		  2,
		  { { "", X240 B MORE_A, true, 0 }, { "", X240 A MORE_A, false, 0 } } },
		{ "one hash in two folders",
		  SPLIT,
		  255,
		  { "a." X240 A MORE_A, "b." X240 B MORE_A },
		  2,
		  { { "a.", X240 A MORE_A, true, 0 },
		    { "b.", X240 B MORE_A, true, 0 } } },
		{ "one hash in two folders that are cut",
		  SPLIT,
		  255,
		  { X240 A MORE_A "." X240 A MORE_A, X240 B MORE_A "." X240 B MORE_A },
		  4,
		  { { X240 A MORE_A ".", X240 A MORE_A, true, 0 },
		    { X240 B MORE_A ".", X240 B MORE_A, true, 0 },
		    { "", X240 B MORE_A, false, 0 },
		    { "", X240 A MORE_A, false, 1 } } },
		{ "what moves takes the place of the next",
		  SPLIT,
		  255,
		  { X240 A HIGH_A, X240 A HIGH_B, X240 B HIGH_A, X240 B HIGH_B },
		  4,
		  { { "", X240 B HIGH_A, true, 0 },
		    { "", X240 A HIGH_A, true, 1 },
		    { "", X240 B HIGH_B, true, 1 },
		    { "", X240 A HIGH_B, true, 2 } } },
		{ "the highest hash",
		  SPLIT,
		  255,
		  { X240 A LAST },
		  1,
		  { { "", X240 A LAST, true, 0 } } },
		{ "nothing is above the highest hash",
		  SPLIT,
		  255,
		  { X240 A LAST, X240 B LAST },
		  2,
		  { { "", X240 B LAST, true, MINUS(1) }, { "", X240 A LAST, true, 0 } } },
		{ "nor above four of that hash",
		  SPLIT,
		  255,
		  { X240 A LAST, X240 B LAST, X240 A LAST_TOO, X240 B LAST_TOO },
		  4,
		  { { "", X240 B LAST, true, MINUS(3) },
		    { "", X240 B LAST_TOO, true, MINUS(2) },
		    { "", X240 A LAST, true, MINUS(1) },
		    { "", X240 A LAST_TOO, true, 0 } } },
		{ "dots are characters",
		  KEPT,
		  255,
		  { "a." X240 A MORE_A, "a." X240 "." A },
		  1,
		  { { "", "a." X240 A MORE_A, true, 0 } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list list = { cases[i].names, 0 };
		struct cut_names names;
		struct cut_index index;
		const char *sorted[NAMES_MAX];

		while (list.count < NAMES_MAX && cases[i].names[list.count])
			list.count++;
		for (size_t j = 0; j < list.count; j++) {
			size_t at = j;

			for (; at && strcmp(sorted[at - 1], cases[i].names[j]) > 0; at--)
				sorted[at] = sorted[at - 1];
			sorted[at] = cases[i].names[j];
		}
		list.names = sorted;
		names = names_of(&list, cases[i].dots, cases[i].file_room);
		cr_assert_eq(cut_index_build(&names, NULL, &index), 0);
		cr_expect_eq(index.count, cases[i].record_count, "%s: %zu",
			     cases[i].label, index.count);
		for (size_t j = 0; j < NAMES_MAX && cases[i].want[j].raw; j++)
			check(cases[i].label, &index, cases[i].want[j].prefix,
			      cases[i].want[j].raw, cases[i].want[j].is_file,
			      cases[i].want[j].probe);
		cut_index_done(&index);
	}
}

/* What edits bring stands back behind what the pack has. */
Test(cut_index, behind_another)
{
	static const struct {
		const char *label;
		const char *pack[NAMES_MAX];
		const char *edited[NAMES_MAX];
		size_t record_count;
		struct {
			const char *raw;
			uint64_t probe;
		} want[NAMES_MAX];
	} cases[] = {
		{ "nothing in common",
		  { "a" },
		  { X240 A MORE_A },
		  1,
		  { { X240 A MORE_A, 0 } } },
		{ "known already", { X240 A MORE_A }, { X240 A MORE_A }, 0, { { 0 } } },
		{ "the hash is taken",
		  { X240 A MORE_A },
		  { X240 B MORE_A },
		  1,
		  { { X240 B MORE_A, 1 } } },
		{ "and what follows it",
		  { X240 B HIGH_A, X240 B HIGH_B },
		  { X240 A HIGH_A, X240 A HIGH_B },
		  2,
		  { { X240 A HIGH_A, 2 }, { X240 A HIGH_B, 2 } } },
		{ "a gap is used",
		  { X240 A HIGH_B },
		  { X240 A HIGH_A, X240 B HIGH_A },
		  2,
		  { { X240 B HIGH_A, 0 }, { X240 A HIGH_A, 2 } } },
		{ "the highest is taken",
		  { X240 A LAST },
		  { X240 B LAST },
		  1,
		  { { X240 B LAST, MINUS(1) } } },
		{ "the highest two are taken",
		  { X240 B LAST, X240 A LAST },
		  { X240 B LAST_TOO, X240 A LAST_TOO },
		  2,
		  { { X240 B LAST_TOO, MINUS(3) }, { X240 A LAST_TOO, MINUS(2) } } },
		{ "one of the highest two is there already",
		  { X240 B LAST, X240 A LAST },
		  { X240 A LAST, X240 A LAST_TOO },
		  1,
		  { { X240 A LAST_TOO, MINUS(2) } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list pack = { cases[i].pack, 0 }, edited = { cases[i].edited, 0 };
		struct cut_names names;
		struct cut_index first, index;

		while (cases[i].pack[pack.count])
			pack.count++;
		while (cases[i].edited[edited.count])
			edited.count++;
		names = names_of(&pack, SPLIT, NAME_SIZE_MAX);
		cr_assert_eq(cut_index_build(&names, NULL, &first), 0);
		names = names_of(&edited, SPLIT, NAME_SIZE_MAX);
		cr_assert_eq(cut_index_build(&names, &first, &index), 0);
		cr_expect_eq(index.count, cases[i].record_count, "%s: %zu",
			     cases[i].label, index.count);
		for (size_t j = 0; j < NAMES_MAX && cases[i].want[j].raw; j++)
			check(cases[i].label, &index, "", cases[i].want[j].raw, true,
			      cases[i].want[j].probe);
		cut_index_done(&index);
		cut_index_done(&first);
	}
}

Test(cut_index, what_is_not_there)
{
	static const char *const names_in[] = { "a." X240 A MORE_A };
	const struct list list = { names_in, 1 };
	const struct cut_names names = names_of(&list, SPLIT, NAME_SIZE_MAX);
	const struct cut_place top = { "", 0, true }, folder = { "a.", 2, true },
			       other = { "b.", 2, true };
	struct name_decoded decoded = { .kind = NAME_CUT, .raw_size = 237 };
	struct cut_index index;
	uint64_t probe;
	size_t size;

	cr_assert_eq(cut_index_build(&names, NULL, &index), 0);
	cr_expect_not(cut_index_probe(&index, &folder, "short", 5, &probe));
	cr_expect_not(cut_index_probe(&index, &folder, X240 A MORE_B, 260, &probe));
	cr_expect_not(cut_index_probe(&index, &top, X240 A MORE_A, 260, &probe));
	cr_expect_not(cut_index_probe(&index, &other, X240 A MORE_A, 260, &probe));
	memcpy(decoded.raw, X240, 237);
	decoded.hash = name_hash(X240 A MORE_A, 260);
	cr_expect_not_null(cut_index_find(&index, &folder, &decoded, &size));
	cr_expect_null(cut_index_find(&index, &top, &decoded, &size));
	cr_expect_null(cut_index_find(&index, &other, &decoded, &size));
	decoded.hash++;
	cr_expect_null(cut_index_find(&index, &folder, &decoded, &size));
	decoded.hash--;
	decoded.raw_size--;
	cr_expect_null(cut_index_find(&index, &folder, &decoded, &size));
	cut_index_done(&index);
}

/* 2^BITS names of one hash: blocks one of two. */
#define BITS 14
Test(cut_index, many_of_one_hash)
{
	static char texts[1 << BITS][240 + BITS * 10 + 1];
	static const char *pointers[1 << BITS];
	const struct list list = { pointers, 1 << BITS };
	const struct cut_names names = names_of(&list, SPLIT, NAME_SIZE_MAX);
	struct cut_index index;

	/* The greater the number the later the name: B is in front of A. */
	for (size_t i = 0; i < list.count; i++) {
		strcpy(texts[i], X240);
		strcat(texts[i], i >> (BITS - 1) & 1 ? A : B);
		for (unsigned int bit = BITS - 1; bit--;)
			strcat(texts[i], i >> bit & 1 ? MORE_A : MORE_B);
		pointers[i] = texts[i];
	}
	cr_assert_eq(cut_index_build(&names, NULL, &index), 0);
	cr_assert_eq(index.count, list.count);
	for (size_t i = 0; i < list.count; i++)
		check("many", &index, "", texts[i], true, i);
	cut_index_done(&index);
}

/* A chain of folders as long as names can be, and every one of them cut. */
Test(cut_index, deep)
{
	const size_t depth = 20000;
	char *chain = malloc(depth * 261 + 1), *other, saved;
	const char *pointers[2];
	const struct list list = { pointers, 2 };
	const struct cut_names names = names_of(&list, SPLIT, NAME_SIZE_MAX);
	struct cut_index index;

	cr_assert_not_null(chain);
	for (size_t i = 0; i < depth; i++)
		memcpy(chain + i * 261, X240 A MORE_A ".", 261);
	chain[depth * 261 - 1] = '\0';
	other = strdup(chain);
	memcpy(other + (depth - 1) * 261, X240 B, 250);
	pointers[0] = other;
	pointers[1] = chain;
	cr_assert_eq(cut_index_build(&names, NULL, &index), 0);
	cr_expect_eq(index.count, depth + 1);
	for (size_t at = 0; at < depth; at += 3333) {
		saved = chain[at * 261];
		chain[at * 261] = '\0';
		{
			char *prefix = strdup(chain);

			chain[at * 261] = saved;
			check("deep", &index, prefix, X240 A MORE_A, at == depth - 1, 0);
			free(prefix);
		}
	}
	chain[(depth - 1) * 261] = '\0';
	{
		char *prefix = strdup(chain);

		chain[(depth - 1) * 261] = 'x';
		check("deepest", &index, prefix, X240 B MORE_A, true, 0);
		check("deepest", &index, prefix, X240 A MORE_A, true, 1);
		free(prefix);
	}
	cut_index_done(&index);
	free(other);
	free(chain);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static int compare_pointers(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t sort_names(const char **names, size_t count)
{
	size_t kept = 0;

	qsort(names, count, sizeof(*names), compare_pointers);
	for (size_t i = 0; i < count; i++)
		if (!kept || strcmp(names[kept - 1], names[i]) != 0)
			names[kept++] = names[i];
	return kept;
}

#define RANDOM_COUNT 200
#define RANDOM_SIZE 1000

/* One to three components, most of them too long, many of them of one hash. */
static void random_name(uint64_t *state, char *name)
{
	static const char *const tails[] = { MORE_A, MORE_B, HIGH_A,
					     HIGH_B, LAST,   LAST_TOO };
	size_t parts = 1 + next_random(state) % 3;

	*name = '\0';
	for (size_t i = 0; i < parts; i++) {
		if (i)
			strcat(name, ".");
		if (next_random(state) % 8 == 0) {
			strcat(name, "a");
			continue;
		}
		strcat(name, X240);
		strcat(name, next_random(state) & 1 ? A : B);
		strcat(name, tails[next_random(state) % 6]);
	}
}

struct shown {
	char prefix[RANDOM_SIZE];
	char raw[RANDOM_SIZE];
	char text[NAME_BUFFER];
	bool is_file;
};

/* Every component of @name, as @indexes have it. */
static size_t show(const char *name, const struct cut_index *indexes, struct shown *shown)
{
	size_t count = 0, off = 0, room;
	const char *dot;

	do {
		struct cut_place place = { name, off, false };
		size_t size, head;
		uint64_t probe = 0;

		dot = strchr(name + off, '.');
		size = dot ? (size_t)(dot - name) - off : strlen(name + off);
		place.is_file = !dot;
		room = dot ? NAME_SIZE_MAX : indexes[0].names.file_room;
		if (name_is_cut(name + off, size, room, &head)) {
			struct shown *one = &shown[count++];

			cr_assert(cut_index_probe(&indexes[0], &place, name + off, size,
						  &probe) ||
				  cut_index_probe(&indexes[1], &place, name + off, size,
						  &probe));
			memcpy(one->prefix, name, off);
			one->prefix[off] = '\0';
			memcpy(one->raw, name + off, size);
			one->raw[size] = '\0';
			one->is_file = !dot;
			name_encode(one->raw, size, room, probe, one->text);
		}
		off += size + 1;
	} while (dot);
	return count;
}

Test(cut_index, random_names)
{
	static char texts[2 * RANDOM_COUNT][RANDOM_SIZE];
	static struct shown shown[3 * 2 * RANDOM_COUNT];
	uint64_t state = 11;

	for (int round = 0; round < 40; round++) {
		size_t file_room = round & 1 ? 251 : 255, count = 0;
		const char *pointers[2][RANDOM_COUNT];
		struct list lists[2];
		struct cut_index indexes[2];

		for (size_t i = 0; i < 2 * RANDOM_COUNT; i++) {
			random_name(&state, texts[i]);
			pointers[i / RANDOM_COUNT][i % RANDOM_COUNT] = texts[i];
		}
		for (size_t i = 0; i < 2; i++) {
			size_t size = next_random(&state) % RANDOM_COUNT;
			struct cut_names names;

			lists[i] = (struct list) { pointers[i],
						   sort_names(pointers[i], size) };
			names = names_of(&lists[i], SPLIT, file_room);
			cr_assert_eq(cut_index_build(&names, i ? &indexes[0] : NULL,
						     &indexes[i]),
				     0);
		}
		for (size_t i = 0; i < 2; i++)
			for (size_t j = 0; j < lists[i].count; j++)
				count += show(lists[i].names[j], indexes, shown + count);
		for (size_t i = 0; i < count; i++)
			for (size_t j = 0; j < i; j++) {
				const struct shown *a = &shown[i], *b = &shown[j];
				bool same = strcmp(a->raw, b->raw) == 0;

				if (strcmp(a->prefix, b->prefix) != 0 ||
				    (file_room == 251 && a->is_file != b->is_file))
					continue;
				cr_assert_eq(strcmp(a->text, b->text) == 0, same,
					     "%s and %s are %s", a->raw, b->raw, a->text);
			}
		for (size_t i = 0; i < count; i++) {
			struct cut_place place = { shown[i].prefix,
						   strlen(shown[i].prefix),
						   shown[i].is_file };
			size_t room = shown[i].is_file ? file_room : NAME_SIZE_MAX, size;
			struct name_decoded decoded;
			const char *found;

			cr_assert_eq(name_decode(shown[i].text, strlen(shown[i].text),
						 room, SPLIT, &decoded),
				     0);
			found = cut_index_find(&indexes[0], &place, &decoded, &size);
			if (!found)
				found = cut_index_find(&indexes[1], &place, &decoded,
						       &size);
			cr_assert(found && size == strlen(shown[i].raw) &&
				  !memcmp(found, shown[i].raw, size));
		}
		cut_index_done(&indexes[1]);
		cut_index_done(&indexes[0]);
	}
}
