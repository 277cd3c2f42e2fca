/*
 * npy.c - see npy.h. The text of a header comes from anyone: it is read by a cursor
 * that moves forward only and takes the Python that writers of .npy files are known
 * to write (both quotes, any order of keys, spaces, a comma at the end, the L behind
 * Python 2's long integers). It is no evaluator of Python, as numpy's own is.
 */
#include "npy.h"
#include "array.h"
#include "error.h"

#include <errno.h>

static const char magic[] = "\x93NUMPY";

#define MAGIC_SIZE (sizeof(magic) - 1)
#define PREFIX_1_SIZE 10u /* magic, version, length */
#define PREFIX_2_SIZE 12u
#define ALIGNMENT 64

/* Rendering ---------------------------------------------------------------- */

/* What numpy calls them, as np.save() spells it. */
static const char *const shown[BPK_DTYPE_COUNT] = {
	[BPK_DTYPE_F64] = "<f8",	 [BPK_DTYPE_F32] = "<f4",
	[BPK_DTYPE_FLEX32] = "<f4",	 [BPK_DTYPE_F16] = "<f2",
	[BPK_DTYPE_BF16] = "|V2",	 [BPK_DTYPE_I64] = "<i8",
	[BPK_DTYPE_I32] = "<i4",	 [BPK_DTYPE_I16] = "<i2",
	[BPK_DTYPE_I8] = "|i1",		 [BPK_DTYPE_U64] = "<u8",
	[BPK_DTYPE_U32] = "<u4",	 [BPK_DTYPE_U16] = "<u2",
	[BPK_DTYPE_U8] = "|u1",		 [BPK_DTYPE_BOOL_NATIVE] = "|b1",
	[BPK_DTYPE_BOOL_U8] = "|b1",	 [BPK_DTYPE_BOOL_U32] = "<u4",
	[BPK_DTYPE_BOOL_LEGACY] = "|b1", [BPK_DTYPE_QFLOAT] = "|u1", /* never an array */
};

/* Text that is written, or only counted while @at is NULL. */
struct out {
	char *at;
	size_t size;
};

static void put(struct out *out, const char *text, size_t size)
{
	if (out->at)
		memcpy(out->at + out->size, text, size);
	out->size += size;
}

static void put_text(struct out *out, const char *text)
{
	put(out, text, strlen(text));
}

static void put_dict(struct out *out, enum bpk_dtype dtype, const uint64_t *shape,
		     size_t rank, uint64_t data_size)
{
	if (rank > BPK_NPY_RANK_SHOWN || !bpk_array_is(dtype, shape, rank, data_size)) {
		dtype = BPK_DTYPE_U8;
		shape = &data_size;
		rank = 1;
	}
	put_text(out, "{'descr': '");
	put_text(out, shown[dtype]);
	put_text(out, "', 'fortran_order': False, 'shape': (");
	for (size_t i = 0; i < rank; i++) {
		char digits[BPK_DECIMAL_SIZE];

		if (i)
			put_text(out, ", ");
		put(out, digits, bpk_decimal(shape[i], digits));
	}
	put_text(out, rank == 1 ? ",), }" : "), }");
}

/* The whole header around a dict of @dict_size bytes, and what comes before it. */
static size_t header_size(size_t dict_size, size_t *ret_prefix_size)
{
	size_t prefix_size = PREFIX_1_SIZE, size;

	size = (prefix_size + dict_size + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (size - prefix_size > UINT16_MAX) {
		prefix_size = PREFIX_2_SIZE;
		size = (prefix_size + dict_size + 1 + ALIGNMENT - 1) / ALIGNMENT *
		       ALIGNMENT;
	}
	*ret_prefix_size = prefix_size;
	return size;
}

size_t bpk_npy_render_size(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
			   uint64_t data_size)
{
	struct out out = { NULL, 0 };
	size_t prefix_size;

	put_dict(&out, dtype, shape, rank, data_size);
	return header_size(out.size, &prefix_size);
}

int bpk_npy_render(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
		   uint64_t data_size, char **ret_header, size_t *ret_size)
{
	struct out out = { NULL, 0 };
	size_t prefix_size, size;
	char *header;

	put_dict(&out, dtype, shape, rank, data_size);
	size = header_size(out.size, &prefix_size);
	header = malloc(size);
	if (!header)
		return -ENOMEM;
	memcpy(header, magic, MAGIC_SIZE);
	header[6] = prefix_size == PREFIX_1_SIZE ? 1 : 2;
	header[7] = 0;
	if (prefix_size == PREFIX_1_SIZE)
		bpk_put_le16((uint8_t *)header + 8, (uint16_t)(size - prefix_size));
	else
		bpk_put_le32((uint8_t *)header + 8, (uint32_t)(size - prefix_size));
	out = (struct out) { header, prefix_size };
	put_dict(&out, dtype, shape, rank, data_size);
	memset(header + out.size, ' ', size - 1 - out.size);
	header[size - 1] = '\n';
	*ret_header = header;
	*ret_size = size;
	return 0;
}

/* The cursor --------------------------------------------------------------- */

struct text {
	const char *start; /* of the file */
	const char *at;
	const char *end;
	struct bpk_error *error;
};

static int refuse(const struct text *text, const char *at, const char *what)
{
	return bpk_fail(text->error, -EBADMSG, BPK_ERR_MALFORMED,
			(uint64_t)(at - text->start), "the .npy header is malformed: %s",
			what);
}

static void skip_space(struct text *text)
{
	while (text->at < text->end && memchr(" \t\n\r\f", *text->at, 5))
		text->at++;
}

/* Eat @wanted, with the space before it. */
static bool take(struct text *text, char wanted)
{
	skip_space(text);
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

struct word {
	const char *at;
	size_t size;
};

static bool word_is(const struct word *word, const char *text)
{
	return word->size == strlen(text) && !memcmp(word->at, text, word->size);
}

/* A string in either quotes. None that a header needs has an escape. */
static int parse_string(struct text *text, const char *what, struct word *ret_word)
{
	const char *start;
	char quote = '"';

	if (!take(text, quote)) {
		quote = '\'';
		if (!take(text, quote))
			return refuse(text, text->at, what);
	}
	for (start = text->at; text->at < text->end; text->at++) {
		if (*text->at == quote) {
			*ret_word = (struct word) { start, (size_t)(text->at - start) };
			text->at++;
			return 0;
		}
		if (*text->at == '\\' || *text->at == '\n')
			break;
	}
	return refuse(text, text->at, "a string does not end, or has an escape");
}

static int parse_bool(struct text *text, bool *ret_value)
{
	const char *start;
	struct word word;

	skip_space(text);
	start = text->at;
	while (text->at < text->end && ((*text->at >= 'A' && *text->at <= 'Z') ||
					(*text->at >= 'a' && *text->at <= 'z')))
		text->at++;
	word = (struct word) { start, (size_t)(text->at - start) };
	if (!word_is(&word, "True") && !word_is(&word, "False"))
		return refuse(text, start, "'fortran_order' is neither True nor False");
	*ret_value = *start == 'T';
	return 0;
}

static int parse_dim(struct text *text, uint64_t *ret_dim)
{
	const char *start;
	uint64_t dim = 0;

	skip_space(text);
	for (start = text->at; text->at < text->end; text->at++) {
		char c = *text->at;

		if (c < '0' || c > '9')
			break;
		if (!bpk_mul_u64(dim, 10, &dim) ||
		    !bpk_add_u64(dim, (uint64_t)(c - '0'), &dim))
			return bpk_fail(text->error, -EOVERFLOW, BPK_ERR_OVERFLOW,
					(uint64_t)(start - text->start),
					"a dimension in the .npy header leaves 64 bits");
	}
	if (text->at == start)
		return refuse(text, start, "a dimension is no whole number");
	if (*start == '0' && text->at - start > 1)
		return refuse(text, start, "a dimension begins with 0");
	if (text->at < text->end && *text->at == 'L')
		text->at++;
	*ret_dim = dim;
	return 0;
}

/* The fields of the dict --------------------------------------------------- */

struct fields {
	struct word descr;
	uint64_t shape[BPK_NPY_RANK_MAX];
	size_t rank;
	bool fortran_order;
};

static int parse_shape(struct text *text, struct fields *fields)
{
	bool comma = false;

	if (!take(text, '('))
		return refuse(text, text->at, "'shape' is no tuple");
	while (!take(text, ')')) {
		uint64_t dim = 0;
		int r;

		if (fields->rank && !comma)
			return refuse(text, text->at, "',' or ')' is missing in 'shape'");
		r = parse_dim(text, &dim);
		if (r < 0)
			return r;
		if (fields->rank == BPK_NPY_RANK_MAX)
			return bpk_fail(text->error, -EFBIG, BPK_ERR_LIMIT,
					(uint64_t)(text->at - text->start),
					"the array has more than %d dimensions",
					BPK_NPY_RANK_MAX);
		fields->shape[fields->rank++] = dim;
		comma = take(text, ',');
	}
	if (fields->rank == 1 && !comma)
		return refuse(text, text->at, "'shape' is a number and no tuple");
	return 0;
}

/* A dtype that no tensor can have. */
static int refuse_descr(const struct text *text, const char *at, size_t size,
			const char *why)
{
	char quoted[BPK_QUOTE_SIZE];

	return bpk_fail(text->error, -EINVAL, BPK_ERR_ARGUMENT,
			(uint64_t)(at - text->start), "burnpack has no dtype for %s%s",
			bpk_quote(quoted, at, size), why);
}

static int parse_descr(struct text *text, struct fields *fields)
{
	skip_space(text);
	if (text->at < text->end && (*text->at == '[' || *text->at == '('))
		return refuse_descr(text, text->at, (size_t)(text->end - text->at),
				    ": it is structured");
	return parse_string(text, "'descr' is no string", &fields->descr);
}

static int parse_fortran_order(struct text *text, struct fields *fields)
{
	return parse_bool(text, &fields->fortran_order);
}

static const struct {
	const char *name;
	const char *missing, *twice;
	int (*parse)(struct text *text, struct fields *fields);
} keys[] = {
	{ "descr", "'descr' is missing", "'descr' is there twice", parse_descr },
	{ "fortran_order", "'fortran_order' is missing", "'fortran_order' is there twice",
	  parse_fortran_order },
	{ "shape", "'shape' is missing", "'shape' is there twice", parse_shape },
};
#define KEYS (sizeof(keys) / sizeof(*keys))

static int parse_pair(struct text *text, struct fields *fields, unsigned int *seen)
{
	struct word key;
	size_t i;
	int r;

	r = parse_string(text, "a key is no string", &key);
	if (r < 0)
		return r;
	for (i = 0; i < KEYS && !word_is(&key, keys[i].name); i++)
		;
	if (i == KEYS)
		return refuse(text, key.at, "it has a key that no array has");
	if (*seen & 1u << i)
		return refuse(text, key.at, keys[i].twice);
	*seen |= 1u << i;
	if (!take(text, ':'))
		return refuse(text, text->at, "':' is missing behind a key");
	return keys[i].parse(text, fields);
}

static int parse_dict(struct text *text, struct fields *fields)
{
	const char *start;
	unsigned int seen = 0;
	bool comma = true;

	if (!take(text, '{'))
		return refuse(text, text->at, "it is no dict");
	start = text->at - 1;
	while (!take(text, '}')) {
		int r;

		if (!comma)
			return refuse(text, text->at, "',' or '}' is missing");
		r = parse_pair(text, fields, &seen);
		if (r < 0)
			return r;
		comma = take(text, ',');
	}
	skip_space(text);
	if (text->at < text->end)
		return refuse(text, text->at, "something follows the dict");
	for (size_t i = 0; i < KEYS; i++)
		if (!(seen & 1u << i))
			return refuse(text, start, keys[i].missing);
	return 0;
}

/* What the fields say ------------------------------------------------------ */

static int find_dtype(const struct text *text, const struct word *descr,
		      enum bpk_dtype *ret_dtype, bool *ret_big_endian)
{
	static const struct {
		const char *name;
		enum bpk_dtype dtype;
	} known[] = {
		{ "f8", BPK_DTYPE_F64 },	 { "f4", BPK_DTYPE_F32 },
		{ "f2", BPK_DTYPE_F16 },	 { "V2", BPK_DTYPE_BF16 },
		{ "i8", BPK_DTYPE_I64 },	 { "i4", BPK_DTYPE_I32 },
		{ "i2", BPK_DTYPE_I16 },	 { "i1", BPK_DTYPE_I8 },
		{ "u8", BPK_DTYPE_U64 },	 { "u4", BPK_DTYPE_U32 },
		{ "u2", BPK_DTYPE_U16 },	 { "u1", BPK_DTYPE_U8 },
		{ "b1", BPK_DTYPE_BOOL_NATIVE }, { "?", BPK_DTYPE_BOOL_NATIVE },
	};
	struct word name = *descr;
	char order = '=';

	if (name.size && memchr("<>=|", *name.at, 4)) {
		order = *name.at++;
		name.size--;
	}
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		enum bpk_dtype dtype = known[i].dtype;
		bool ordered = bpk_dtype_element_size(dtype) > 1;

		if (!word_is(&name, known[i].name))
			continue;
		if (order == '|' && ordered && dtype != BPK_DTYPE_BF16)
			return refuse_descr(text, descr->at, descr->size,
					    ": it does not say in which order bytes are");
		*ret_dtype = dtype;
		*ret_big_endian = order == '>' && ordered;
		return 0;
	}
	return refuse_descr(text, descr->at, descr->size, "");
}

int bpk_npy_needed(const void *data, size_t size, size_t *ret_needed,
		   struct bpk_error *error)
{
	const uint8_t *bytes = data;
	size_t prefix_size = PREFIX_1_SIZE;
	uint64_t needed;

	if (size && memcmp(bytes, magic, size < MAGIC_SIZE ? size : MAGIC_SIZE) != 0)
		return bpk_fail(error, -EBADMSG, BPK_ERR_MALFORMED, 0,
				"it is no .npy file: it does not start with \\x93NUMPY");
	if (size >= MAGIC_SIZE + 2) {
		if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
			return bpk_fail(
				error, -EPROTONOSUPPORT, BPK_ERR_VERSION, MAGIC_SIZE,
				".npy version %u.%u is not known, only 1.0 to 3.0",
				bytes[6], bytes[7]);
		if (bytes[6] > 1)
			prefix_size = PREFIX_2_SIZE;
	}
	if (size < prefix_size) {
		*ret_needed = prefix_size;
		return 0;
	}
	needed = prefix_size == PREFIX_1_SIZE ? bpk_get_le16(bytes + 8)
					      : bpk_get_le32(bytes + 8);
	needed += prefix_size;
	if (needed > BPK_NPY_HEADER_MAX)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, MAGIC_SIZE + 2,
				"the .npy header has %llu bytes, the limit is %d",
				(unsigned long long)needed, BPK_NPY_HEADER_MAX);
	*ret_needed = (size_t)needed;
	return 0;
}

int bpk_npy_parse(const void *data, size_t size, struct bpk_npy *ret_npy,
		  struct bpk_error *error)
{
	struct text text = { .start = data, .error = error };
	struct fields fields = { .rank = 0 };
	struct bpk_npy npy = { .shape = NULL };
	size_t needed;
	int r;

	r = bpk_npy_needed(data, size, &needed, error);
	if (r < 0)
		return r;
	if (size < needed)
		return bpk_fail(error, -ENODATA, BPK_ERR_TRUNCATED, size,
				"the .npy header needs %zu bytes, the file has %zu",
				needed, size);
	text.at = text.start + (text.start[6] == 1 ? PREFIX_1_SIZE : PREFIX_2_SIZE);
	text.end = text.start + needed;
	r = parse_dict(&text, &fields);
	if (r == 0)
		r = find_dtype(&text, &fields.descr, &npy.dtype, &npy.big_endian);
	if (r < 0)
		return r;
	npy.rank = fields.rank;
	npy.column_major = fields.fortran_order && npy.rank > 1;
	npy.header_size = needed;
	r = bpk_shape_size(npy.dtype, fields.shape, npy.rank, &npy.data_size);
	if (r < 0)
		return bpk_fail(error, r, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
				"the size of the array leaves 64 bits");
	if (npy.rank) {
		npy.shape = malloc(npy.rank * sizeof(*npy.shape));
		if (!npy.shape)
			return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
					"out of memory");
		memcpy(npy.shape, fields.shape, npy.rank * sizeof(*npy.shape));
	}
	*ret_npy = npy;
	return 0;
}

void bpk_npy_done(struct bpk_npy *npy)
{
	if (!npy)
		return;
	free(npy->shape);
	*npy = (struct bpk_npy) { .shape = NULL };
}
