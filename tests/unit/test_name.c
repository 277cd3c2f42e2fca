/*
 * name.c against the contract's section "Names": rows with exact texts and codes,
 * then what has to hold for any name. The random names are the same every time.
 */
#include "name.h"

#include "base.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#define TEXT(s) (s), sizeof(s) - 1
#define TIMES_5(s) s s s s s
#define TIMES_10(s) TIMES_5(s) TIMES_5(s)
#define TIMES_50(s) TIMES_5(TIMES_10(s))
#define TIMES_200(s) TIMES_50(s) TIMES_50(s) TIMES_50(s) TIMES_50(s)
#define TIMES_234(s) TIMES_200(s) TIMES_10(s) TIMES_10(s) TIMES_10(s) s s s s
#define TIMES_237(s) TIMES_234(s) s s s
#define TIMES_250(s) TIMES_200(s) TIMES_50(s)
#define TIMES_255(s) TIMES_250(s) TIMES_5(s)
#define HASH "0123456789ABCDEF"

/* Every tensor of vectors/golden/08_names, and where it is under tensors/. */
static const struct {
	const char *name;
	size_t name_size;
	const char *path;
} golden[] = {
	/* clang-format off */
	{ TEXT(""), "%/%self" },
	{ TEXT(" lead"), " lead" },
	{ TEXT("%2e%2e"), "%252e%252e" },
	{ TEXT("."), "%/%/%self" },
	{ TEXT(".."), "%/%/%/%self" },
	{ TEXT("..."), "%/%/%/%" },
	{ TEXT("../x"), "%/%/%2Fx" },
	{ TEXT(".hidden"), "%/hidden" },
	{ TEXT("/abs"), "%2Fabs" },
	{ TEXT("100%"), "100%25" },
	{ TEXT("A"), "A" },
	{ TEXT("CON"), "CON" },
	{ TEXT("a"), "a/%self" },
	{ TEXT("a-b"), "a-b" },
	{ TEXT("a."), "a/%" },
	{ TEXT("a.b"), "a/b/%self" },
	{ TEXT("a.b.c"), "a/b/c" },
	{ TEXT("a/b"), "a%2Fb" },
	{ TEXT("a_b"), "a_b" },
	{ TEXT("back\\slash"), "back\\slash" },
	{ TEXT("e\u0301"), "e\u0301" },
	{ TEXT("new\012line"), "new%0Aline" },
	{ TEXT("nul\000byte"), "nul%00byte" },
	{ TEXT(TIMES_250("q") "qqqqq"), TIMES_250("q") "qqqqq" },
	{ TEXT("quote\""), "quote\"" },
	{ TEXT(TIMES_237("r") "rrrrrrrrrrrrrrrrrrr"), TIMES_237("r") "%+1EC80BE263F7D325" },
	{ TEXT("tab\011here"), "tab%09here" },
	{ TEXT("trail "), "trail " },
	{ TEXT("with space"), "with space" },
	{ TEXT(TIMES_250("x") TIMES_50("x")), TIMES_237("x") "%+E78DDF9F1BA85555" },
	{ TEXT("yyyyyyyyyyyyyyyyyyyyyyy"), "yyyyyyyyyyyyyyyyyyyyyyy" },
	{ TEXT("zzzzzzzzzzzzzzzzzzzzzzzz"), "zzzzzzzzzzzzzzzzzzzzzzzz" },
	{ TEXT("~"), "%7E" },
	{ TEXT("é"), "é" },
	{ TEXT("ünïcode.вес.重み.🔥"), "ünïcode/вес/重み/🔥" },
	{ TEXT("￮"), "￮" },
	{ TEXT("🔥"), "🔥" },
	/* clang-format on */
};
#define GOLDEN_COUNT (sizeof(golden) / sizeof(golden[0]))

/* What a tree does with a name: a folder at each dot, %self for a name in the way. */
static void path_of(size_t index, char *path)
{
	const char *name = golden[index].name, *at = name, *dot;
	const char *end = name + golden[index].name_size;

	while ((dot = memchr(at, '.', (size_t)(end - at)))) {
		path += name_encode(at, (size_t)(dot - at), NAME_SIZE_MAX, 0, path);
		*path++ = '/';
		at = dot + 1;
	}
	path += name_encode(at, (size_t)(end - at), NAME_SIZE_MAX, 0, path);
	for (size_t i = 0; i < GOLDEN_COUNT; i++) {
		size_t size = golden[index].name_size;

		if (golden[i].name_size > size &&
		    memcmp(golden[i].name, name, size) == 0 &&
		    golden[i].name[size] == '.') {
			strcpy(path, "/" NAME_SELF_TEXT);
			break;
		}
	}
}

Test(name, golden_paths)
{
	static char paths[GOLDEN_COUNT][1024];

	cr_assert_eq(GOLDEN_COUNT, 37);
	for (size_t i = 0; i < GOLDEN_COUNT; i++) {
		path_of(i, paths[i]);
		cr_expect_str_eq(paths[i], golden[i].path);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(paths[i], paths[j]);
	}
}

Test(name, encode)
{
	static const struct {
		const char *label;
		const char *raw;
		size_t size;
		uint64_t probe;
		const char *text;
	} rows[] = {
		/* clang-format off */
		{ "plain", TEXT("weight"), 0, "weight" },
		{ "empty", TEXT(""), 0, "%" },
		{ "percent alone", TEXT("%"), 0, "%25" },
		{ "looks like self", TEXT("%self"), 0, "%25self" },
		{ "looks like an escape", TEXT("%2F"), 0, "%252F" },
		{ "looks cut", TEXT("a%+" HASH), 0, "a%25+" HASH },
		{ "slash", TEXT("/"), 0, "%2F" },
		{ "controls", TEXT("\0\1\37 \177"), 0, "%00%01%1F %7F" },
		{ "C1 is no control here", TEXT("\302\205"), 0, "\302\205" },
		{ "dots are kept behind the first", TEXT("..a.."), 0, "%2E.a.." },
		{ "hash leads", TEXT("##a#"), 0, "%23#a#" },
		{ "tilde trails", TEXT("~a~~"), 0, "~a~%7E" },
		{ "one tilde", TEXT("~"), 0, "%7E" },
		{ "one dot", TEXT("."), 0, "%2E" },
		{ "a probe changes no whole name", TEXT("a"), 7, "a" },
		{ "255", TEXT(TIMES_255("a")), 0, TIMES_255("a") },
		{ "256", TEXT(TIMES_255("a") "a"), 0, TIMES_237("a") "%+FD2916200943D825" },
		{ "256, probed", TEXT(TIMES_255("a") "a"), 1, TIMES_237("a") "%+FD2916200943D826" },
		{ "probe wraps", TEXT(TIMES_255("a") "a"), UINT64_C(0x2d6e9dff6bc27db), TIMES_237("a") "%+0000000000000000" },
		{ "128 of two", TEXT(TIMES_50("é") TIMES_50("é") TIMES_10("é") TIMES_10("é") TIMES_5("é") "ééé"), 0,
		  TIMES_50("é") TIMES_50("é") TIMES_10("é") TIMES_5("é") "ééé%+0E95369293B26D25" },
		{ "64 of four", TEXT(TIMES_50("🔥") TIMES_10("🔥") "🔥🔥🔥🔥"), 0,
		  TIMES_50("🔥") TIMES_5("🔥") "🔥🔥🔥🔥%+A33254253982CE25" },
		{ "86 escapes", TEXT(TIMES_50("\1") TIMES_10("\1") TIMES_10("\1") TIMES_10("\1") TIMES_5("\1") "\1"), 0,
		  TIMES_50("%01") TIMES_10("%01") TIMES_10("%01") TIMES_5("%01") "%01%01%01%01%+611B9C56B68AC01B" },
		{ "253 and a tilde are cut", TEXT(TIMES_250("a") "aaaa~"), 0, TIMES_237("a") "%+7B04AE4EEEF49087" },
		{ "252 and a tilde fit", TEXT(TIMES_250("a") "aa~"), 0, TIMES_250("a") "aa%7E" },
		{ "cut inside tildes", TEXT(TIMES_237("a") TIMES_10("~") "~~~~~~~~~"), 0,
		  TIMES_237("a") "%+EADA0444B4E3DC76" },
		/* clang-format on */
	};
	char text[NAME_BUFFER];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = name_encode(rows[i].raw, rows[i].size, NAME_SIZE_MAX,
					  rows[i].probe, text);

		cr_expect_str_eq(text, rows[i].text, "%s: %s", rows[i].label, text);
		cr_expect_eq(size, strlen(text), "%s", rows[i].label);
	}
}

/* A view that puts four bytes behind every name. */
Test(name, less_room)
{
	static const struct {
		const char *label;
		const char *raw;
		size_t size;
		const char *text;
	} rows[] = {
		/* clang-format off */
		{ "251", TEXT(TIMES_250("a") "a"), TIMES_250("a") "a" },
		{ "252", TEXT(TIMES_250("a") "aa"), TIMES_200("a") TIMES_10("a") TIMES_10("a") TIMES_10("a") "aaa%+F1051270B402F171" },
		{ "249 and a tilde are cut", TEXT(TIMES_234("a") TIMES_10("a") "aaaaa~"), TIMES_200("a") TIMES_10("a") TIMES_10("a") TIMES_10("a") "aaa%+92477A600B73959E" },
		/* clang-format on */
	};
	char text[NAME_BUFFER];
	struct name_decoded got;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = name_encode(rows[i].raw, rows[i].size, NAME_SIZE_MAX - 4, 0,
					  text);

		cr_expect_str_eq(text, rows[i].text, "%s: %s", rows[i].label, text);
		cr_expect_eq(size, strlen(text), "%s", rows[i].label);
		cr_expect_eq(
			name_decode(text, size, NAME_SIZE_MAX - 4, NAME_DOTS_SPLIT, &got),
			0);
		/* In a view with all the room it is cut too early. */
		if (got.kind == NAME_CUT)
			cr_expect_eq(name_decode(text, size, NAME_SIZE_MAX,
						 NAME_DOTS_SPLIT, &got),
				     -EINVAL);
	}
	cr_expect_eq(name_decode(TIMES_250("a") "aa", 252, NAME_SIZE_MAX - 4,
				 NAME_DOTS_SPLIT, &got),
		     -ENAMETOOLONG);
}

#define SPLIT NAME_DOTS_SPLIT
#define KEPT NAME_DOTS_KEPT

Test(name, decode)
{
	static const struct {
		const char *label;
		const char *text;
		size_t size;
		enum name_dots dots;
		enum name_kind kind;
		const char *raw;
		size_t raw_size;
	} rows[] = {
		/* clang-format off */
		{ "plain", TEXT("weight"), SPLIT, NAME_PLAIN, TEXT("weight") },
		{ "empty", TEXT("%"), SPLIT, NAME_PLAIN, TEXT("") },
		{ "empty key", TEXT("%"), KEPT, NAME_PLAIN, TEXT("") },
		{ "self", TEXT("%self"), SPLIT, NAME_SELF, TEXT("") },
		{ "escaped self", TEXT("%25self"), SPLIT, NAME_PLAIN, TEXT("%self") },
		{ "NUL", TEXT("a%00b"), SPLIT, NAME_PLAIN, TEXT("a\0b") },
		{ "slash", TEXT("%2Fabs"), SPLIT, NAME_PLAIN, TEXT("/abs") },
		{ "tilde", TEXT("~a%7E"), SPLIT, NAME_PLAIN, TEXT("~a~") },
		{ "hash", TEXT("%23a#"), SPLIT, NAME_PLAIN, TEXT("#a#") },
		{ "key with dots", TEXT("%2E.a."), KEPT, NAME_PLAIN, TEXT("..a.") },
		{ "dotted", TEXT("layer1.weight"), SPLIT, NAME_DOTTED, TEXT("layer1.weight") },
		{ "dotted, empty inside", TEXT("a..b"), SPLIT, NAME_DOTTED, TEXT("a..b") },
		{ "dotted, empty spelled out", TEXT("a.%.b"), SPLIT, NAME_DOTTED, TEXT("a..b") },
		{ "dotted, empty in front", TEXT("%.hidden"), SPLIT, NAME_DOTTED, TEXT(".hidden") },
		{ "dotted, empty at the end", TEXT("a."), SPLIT, NAME_DOTTED, TEXT("a.") },
		{ "dotted, only empty", TEXT("%.."), SPLIT, NAME_DOTTED, TEXT("..") },
		{ "dotted, escapes", TEXT("x.%2Fy"), SPLIT, NAME_DOTTED, TEXT("x./y") },
		{ "dotted, marks bare", TEXT("a~.#b"), SPLIT, NAME_DOTTED, TEXT("a~.#b") },
		{ "dotted, marks escaped", TEXT("%23a%7E.%23b%7E"), SPLIT, NAME_DOTTED, TEXT("#a~.#b~") },
		{ "cut, 237 bytes left", TEXT(TIMES_237("a") "%+" HASH), SPLIT, NAME_CUT, TEXT(TIMES_237("a")) },
		{ "cut, 234 bytes left", TEXT(TIMES_234("a") "%+" HASH), SPLIT, NAME_CUT, TEXT(TIMES_234("a")) },
		{ "cut behind a tilde", TEXT(TIMES_234("a") "~%+" HASH), SPLIT, NAME_CUT, TEXT(TIMES_234("a") "~") },
		{ "cut behind an escape", TEXT(TIMES_234("a") "%0A%+" HASH), SPLIT, NAME_CUT, TEXT(TIMES_234("a") "\n") },
		{ "cut key with dots", TEXT("%2E" TIMES_234(".") "%+" HASH), KEPT, NAME_CUT, TEXT("." TIMES_234(".")) },
		{ "a plus is a plus", TEXT("a+" HASH), SPLIT, NAME_PLAIN, TEXT("a+" HASH) },
		{ "255 bytes", TEXT(TIMES_255("a")), SPLIT, NAME_PLAIN, TEXT(TIMES_255("a")) },
		{ "255 dots but one", TEXT("a" TIMES_250(".") "...."), SPLIT, NAME_DOTTED, TEXT("a" TIMES_250(".") "....") },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name_decoded got;
		int r = name_decode(rows[i].text, rows[i].size, NAME_SIZE_MAX,
				    rows[i].dots, &got);
		uint64_t hash =
			rows[i].kind == NAME_CUT ? UINT64_C(0x0123456789abcdef) : 0;

		cr_assert_eq(r, 0, "%s: %d", rows[i].label, r);
		cr_expect_eq(got.kind, rows[i].kind, "%s: %d", rows[i].label,
			     (int)got.kind);
		cr_expect_eq(got.hash, hash, "%s", rows[i].label);
		cr_expect(got.raw_size == rows[i].raw_size &&
				  memcmp(got.raw, rows[i].raw, got.raw_size) == 0,
			  "%s: %.*s", rows[i].label, (int)got.raw_size, got.raw);
	}
}

Test(name, decode_refuses)
{
	static const struct {
		const char *label;
		const char *text;
		size_t size;
		enum name_dots dots;
		int error;
	} rows[] = {
		/* clang-format off */
		{ "nothing", TEXT(""), SPLIT, -EINVAL },
		{ "256 bytes", TEXT(TIMES_255("a") "a"), SPLIT, -ENAMETOOLONG },
		{ "256 bytes, no UTF-8", TEXT(TIMES_255("a") "\xff"), SPLIT, -ENAMETOOLONG },
		{ "no UTF-8", TEXT("a\xff"), SPLIT, -EILSEQ },
		{ "half a character", TEXT("\xc3"), SPLIT, -EILSEQ },
		{ "a surrogate", TEXT("\xed\xa0\x80"), SPLIT, -EILSEQ },
		{ "overlong", TEXT("\xc0\xaf"), SPLIT, -EILSEQ },
		{ "no UTF-8 and a bad escape", TEXT("%\xff"), SPLIT, -EILSEQ },
		{ "escape ends early", TEXT("a%2"), SPLIT, -EINVAL },
		{ "escape ends at once", TEXT("a%"), SPLIT, -EINVAL },
		{ "empty is alone", TEXT("%%"), SPLIT, -EINVAL },
		{ "no hex", TEXT("%GG"), SPLIT, -EINVAL },
		{ "lower-case hex", TEXT("%2f"), SPLIT, -EINVAL },
		{ "hex of strtol", TEXT("%+2"), SPLIT, -EINVAL },
		{ "needless escape", TEXT("%41"), SPLIT, -EINVAL },
		{ "escape of a high byte", TEXT("%C3%A9"), SPLIT, -EINVAL },
		{ "hash not in front", TEXT("a%23"), SPLIT, -EINVAL },
		{ "tilde not at the end", TEXT("%7Ea"), SPLIT, -EINVAL },
		{ "dot not in front", TEXT("a%2E"), KEPT, -EINVAL },
		{ "no component has a dot", TEXT("%2Ea"), SPLIT, -EINVAL },
		{ "nor has a piece", TEXT("a.%2Eb"), SPLIT, -EINVAL },
		{ "bare slash", TEXT("a/b"), SPLIT, -EINVAL },
		{ "bare NUL", TEXT("a\0b"), SPLIT, -EINVAL },
		{ "bare newline", TEXT("a\nb"), SPLIT, -EINVAL },
		{ "bare DEL", TEXT("a\177"), SPLIT, -EINVAL },
		{ "bare newline in a piece", TEXT("a.b\n"), SPLIT, -EINVAL },
		{ "bare hash in front", TEXT("#a"), SPLIT, -EINVAL },
		{ "bare tilde at the end", TEXT("a~"), SPLIT, -EINVAL },
		{ "bare dot in front", TEXT(".a"), KEPT, -EINVAL },
		{ "hidden is scratch, not dotted", TEXT(".hidden"), SPLIT, -EINVAL },
		{ "dotted backup is scratch", TEXT("a.b~"), SPLIT, -EINVAL },
		{ "dot", TEXT("."), SPLIT, -EINVAL },
		{ "dot dot", TEXT(".."), KEPT, -EINVAL },
		{ "self has no folder to be in", TEXT("%self"), KEPT, -EINVAL },
		{ "self in a dotted name", TEXT("a.%self"), SPLIT, -EINVAL },
		{ "other words", TEXT("%selfish"), SPLIT, -EINVAL },
		{ "cut too early", TEXT(TIMES_200("a") "%+" HASH), SPLIT, -EINVAL },
		{ "cut one too early", TEXT(TIMES_200("a") TIMES_10("a") TIMES_10("a") TIMES_10("a") "aaa%+" HASH), SPLIT, -EINVAL },
		{ "cut, lower-case hash", TEXT(TIMES_237("a") "%+0123456789abcdef"), SPLIT, -EINVAL },
		{ "cut, hash too short", TEXT(TIMES_237("a") "%+0123456789ABCDE"), SPLIT, -EINVAL },
		{ "cut, escaped tilde", TEXT(TIMES_234("a") "%7E%+" HASH), SPLIT, -EINVAL },
		{ "cut, bare newline", TEXT(TIMES_234("a") "\n%+" HASH), SPLIT, -EINVAL },
		{ "cut dotted name", TEXT(TIMES_234("a") ".b%+" HASH), SPLIT, -EINVAL },
		{ "hash only", TEXT("%+" HASH), SPLIT, -EINVAL },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name_decoded got, before;
		int r;

		memset(&got, 0x5a, sizeof(got));
		memset(&before, 0x5a, sizeof(before));
		r = name_decode(rows[i].text, rows[i].size, NAME_SIZE_MAX, rows[i].dots,
				&got);
		cr_expect_eq(r, rows[i].error, "%s: %d", rows[i].label, r);
		cr_expect_eq(memcmp(&got, &before, sizeof(got)), 0, "%s: written",
			     rows[i].label);
	}
}

Test(name, scratch)
{
	static const struct {
		const char *text;
		size_t size;
		bool scratch;
	} rows[] = {
		{ TEXT(".DS_Store"), true }, { TEXT("._x"), true },
		{ TEXT(".w.swp"), true },    { TEXT("#w#"), true },
		{ TEXT("w~"), true },	     { TEXT("~"), true },
		{ TEXT("w"), false },	     { TEXT("w.bak"), false },
		{ TEXT("~w"), false },	     { TEXT("w#"), false },
		{ TEXT("w."), false },	     { TEXT("%2Ew"), false },
		{ TEXT("%"), false },	     { TEXT(""), false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(name_is_scratch(rows[i].text, rows[i].size), rows[i].scratch,
			     "%s", rows[i].text);
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static size_t put_character(char *at, uint64_t random)
{
	static const char nasty[] = "%%%/.#~\0\1\n\177+aA2F5EBself ";
	uint32_t code = (uint32_t)(random >> 8);

	switch (random & 7) {
	case 0: /* two bytes */
		code = 0x80 + code % (0x800 - 0x80);
		at[0] = (char)(0xc0 | code >> 6);
		at[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	case 1: /* three, below the surrogates */
		code = 0x800 + code % (0xd800 - 0x800);
		at[0] = (char)(0xe0 | code >> 12);
		at[1] = (char)(0x80 | (code >> 6 & 0x3f));
		at[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	case 2: /* four */
		code = 0x10000 + code % 0x100000;
		at[0] = (char)(0xf0 | code >> 18);
		at[1] = (char)(0x80 | (code >> 12 & 0x3f));
		at[2] = (char)(0x80 | (code >> 6 & 0x3f));
		at[3] = (char)(0x80 | (code & 0x3f));
		return 4;
	case 3:
		at[0] = (char)(code % 128);
		return 1;
	default:
		at[0] = nasty[code % (sizeof(nasty) - 1)];
		return 1;
	}
}

/* Everything that name.h promises of one component. */
static void check_component(const char *raw, size_t size, size_t room,
			    enum name_dots dots)
{
	char text[NAME_BUFFER], probed[NAME_BUFFER];
	size_t text_size = name_encode(raw, size, room, 0, text), head;
	struct name_decoded got;
	int r = name_decode(text, text_size, room, dots, &got);

	cr_assert(text_size >= 1 && text_size <= room && !text[text_size]);
	cr_assert_not(name_is_scratch(text, text_size), "%s", text);
	cr_assert_not(memchr(text, '/', text_size));
	cr_assert(bpk_utf8_valid(text, text_size));
	cr_assert_eq(r, 0, "%s: %d", text, r);
	cr_assert(got.raw_size <= size && memcmp(got.raw, raw, got.raw_size) == 0);
	if (got.kind == NAME_PLAIN) {
		cr_assert_eq(got.raw_size, size);
		cr_assert_not(name_is_cut(raw, size, room, &head));
		return;
	}
	cr_assert_eq(got.kind, NAME_CUT);
	cr_assert(name_is_cut(raw, size, room, &head));
	cr_assert_eq(head, got.raw_size);
	cr_assert_eq(name_hash(raw, size), got.hash);
	/* The next character would have been too much for what is left. */
	cr_assert_lt(got.raw_size, size);
	cr_assert(((uint8_t)raw[got.raw_size] & 0xc0) != 0x80);
	size_t more = 1;
	if ((uint8_t)raw[got.raw_size] < 0x20 || strchr("%/\177", raw[got.raw_size]))
		more = 3;
	while (got.raw_size + more < size &&
	       ((uint8_t)raw[got.raw_size + more] & 0xc0) == 0x80)
		more++;
	cr_assert_gt(text_size + more, room, "%s", text);
	cr_assert_eq(name_encode(raw, size, room, 1, probed), text_size);
	cr_assert_str_neq(text, probed);
	cr_assert_eq(name_decode(probed, text_size, room, dots, &got), 0);
}

Test(name, random_round_trip)
{
	static const size_t rooms[] = { NAME_ROOM_MIN, 100, NAME_SIZE_MAX - 4 };
	uint64_t state = 8;
	size_t cut_count = 0;
	char raw[512 + 4];

	for (int i = 0; i < 150000; i++) {
		enum name_dots dots = i & 1 ? SPLIT : KEPT;
		size_t limit = next_random(&state) % (i % 4 ? 24 : 512), size = 0;

		while (size < limit) {
			size_t used = put_character(raw + size, next_random(&state));

			if (dots == KEPT || raw[size] != '.')
				size += used;
		}
		check_component(raw, size, NAME_SIZE_MAX, dots);
		check_component(raw, size, rooms[i % 3], dots);
		cut_count += size > NAME_SIZE_MAX;
	}
	cr_expect_gt(cut_count, 10000);
}

/* Call @fn with every text of up to @length bytes out of @alphabet. */
static void each_text(const char *alphabet, size_t count, size_t length,
		      void (*fn)(const char *text, size_t size))
{
	size_t total = 1;
	char text[8];

	for (size_t size = 0; size <= length; size++, total *= count) {
		for (size_t i = 0; i < total; i++) {
			size_t rest = i;

			for (size_t j = 0; j < size; j++, rest /= count)
				text[j] = alphabet[rest % count];
			fn(text, size);
		}
	}
}

/* What is taken as a component is spelled the one way there is. */
static void check_spelling(const char *text, size_t size)
{
	for (int dots = NAME_DOTS_SPLIT; dots <= NAME_DOTS_KEPT; dots++) {
		char again[NAME_BUFFER];
		struct name_decoded got;

		if (name_decode(text, size, NAME_SIZE_MAX, (enum name_dots)dots, &got) <
			    0 ||
		    got.kind == NAME_DOTTED)
			continue;
		cr_assert_eq(got.kind, NAME_PLAIN);
		cr_assert_eq(name_encode(got.raw, got.raw_size, NAME_SIZE_MAX, 0, again),
			     size);
		cr_assert_eq(memcmp(text, again, size), 0, "%.*s", (int)size, text);
		if (dots == NAME_DOTS_SPLIT)
			cr_assert_not(memchr(got.raw, '.', got.raw_size));
	}
}

Test(name, every_short_text_has_one_spelling)
{
	static const char alphabet[] = "%2F5E7.#~+a\n/";

	each_text(alphabet, sizeof(alphabet) - 1, 5, check_spelling);
}

static struct {
	char text[32];
} seen[40000];
static size_t seen_count;

static void remember(const char *text, size_t size)
{
	cr_assert_lt(seen_count, sizeof(seen) / sizeof(seen[0]));
	char buffer[NAME_BUFFER];

	name_encode(text, size, NAME_SIZE_MAX, 0, buffer);
	cr_assert_lt(strlen(buffer), sizeof(seen[0].text));
	strcpy(seen[seen_count++].text, buffer);
}

static int compare_seen(const void *a, const void *b)
{
	return strcmp(a, b);
}

Test(name, no_two_share_a_file_name)
{
	static const char alphabet[] = "%/2F5.#~\0+a";

	each_text(alphabet, sizeof(alphabet) - 1, 4, remember);
	qsort(seen, seen_count, sizeof(seen[0]), compare_seen);
	for (size_t i = 1; i < seen_count; i++)
		cr_assert_str_neq(seen[i - 1].text, seen[i].text);
}

Test(name, no_two_long_names_share_a_file_name)
{
	char raw[300];

	/* Alike but for the last eight bytes, far behind the cut. */
	memset(raw, 'w', sizeof(raw));
	for (unsigned int i = 0; i < 20000; i++) {
		char buffer[NAME_BUFFER];

		snprintf(raw + sizeof(raw) - 9, 9, "%08x", i);
		cr_assert_eq(name_encode(raw, sizeof(raw) - 1, NAME_SIZE_MAX, 0, buffer),
			     NAME_SIZE_MAX);
		strcpy(seen[i].text, buffer + NAME_SIZE_MAX - 18);
	}
	qsort(seen, 20000, sizeof(seen[0]), compare_seen);
	for (size_t i = 1; i < 20000; i++)
		cr_assert_str_neq(seen[i - 1].text, seen[i].text);
}
