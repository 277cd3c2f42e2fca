/*
 * bpk-make.c - write the pack that a few lines of text describe.
 *
 *	bpk-make [--sink=file|inplace|buffer|newbuffer]
 *	         [--source=bytes|deferred|range] OUT < SPEC
 *
 * The pack is written to OUT through that sink (file by default), its tensors given
 * to the library in that way (bytes by default). What the library refuses is one
 * line on stderr, "error CODE ERRNO MESSAGE", and status 1; a SPEC that makes no
 * sense is status 2.
 *
 * SPEC, one thing a line; empty lines and lines that start with # are passed over:
 *
 *	tensor NAME DTYPE SHAPE [param_id=N] [size=N] [data=HEX|zeros] [cbor=HEX] [odd]
 *	scalar NAME Int|UInt|Float|Bool VALUE
 *	meta KEY VALUE
 *	extra COUNT HEX
 *
 * NAME and KEY are one word, or hex:... with two digits a byte (hex: is the empty
 * name). A metadata VALUE is the rest of the line, or hex:... likewise.
 * DTYPE is as bpk_dtype_name() says it: F32, Bool(Native), Bool, ...; QFloat needs
 * cbor=, the whole dtype item. SHAPE is [2,3], and [] for rank 0. Byte i of the k-th
 * tensor (from 0) is (i*31 + k*7 + 3) & 0xff unless data= says otherwise. size= is
 * the number of bytes (shape x dtype by default); with odd it may be anything.
 * A Float is a number as strtod(3) reads it, or bits:HEX for the 64 bits as they are.
 * extra: that many CBOR pairs for the top level.
 *
 *	tensor encoder.weight F32 [4,3] param_id=7
 *	scalar lr Float 0.001
 *	meta producer somebody and their laptop
 */
#include "bpk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANK_MAX 64

enum source {
	SOURCE_BYTES,
	SOURCE_DEFERRED,
	SOURCE_RANGE,
};

/* What a provider makes its bytes of. */
struct content {
	struct content *next; /* all, to free them */
	size_t index;
	uint64_t size;
	uint8_t *data; /* NULL: the pattern */
	uint8_t *kept; /* what a bytes tensor points to */
};

struct maker {
	struct bpk_writer *writer;
	enum source source;
	FILE *range;
	uint64_t range_end;
	size_t tensor_count;
	struct content *contents;
	unsigned int line;
	struct bpk_error error;
};

__attribute__((noreturn, format(printf, 2, 3))) static void
bad_spec(const struct maker *maker, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "line %u: ", maker->line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(2);
}

static void *allocate(size_t size)
{
	void *block = malloc(size ? size : 1);

	if (!block) {
		perror("bpk-make");
		exit(2);
	}
	return block;
}

/* Text ---------------------------------------------------------------------- */

/* The next word of *@line, cut off there; NULL at the end. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " \t");
	size_t size = strcspn(word, " \t");

	if (!size)
		return NULL;
	*line = word + size;
	if (**line)
		*(*line)++ = '\0';
	return word;
}

static char *need_word(struct maker *maker, char **line, const char *what)
{
	char *word = next_word(line);

	if (!word)
		bad_spec(maker, "%s is missing", what);
	return word;
}

/* Hex digits in place to bytes; the number of them. */
static size_t unhex(const struct maker *maker, const char *hex, uint8_t *bytes)
{
	size_t size = strlen(hex) / 2;
	unsigned int byte;

	if (strlen(hex) % 2)
		bad_spec(maker, "an odd number of hex digits");
	for (size_t i = 0; i < size; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			bad_spec(maker, "not hex: %s", hex);
		bytes[i] = (uint8_t)byte;
	}
	return size;
}

/* A word as it is, or hex: changed in place to the bytes it stands for. */
static size_t decode(const struct maker *maker, char *word, const char **ret_text)
{
	*ret_text = word;
	if (strncmp(word, "hex:", 4))
		return strlen(word);
	return unhex(maker, word + 4, (uint8_t *)word);
}

static uint64_t number(const struct maker *maker, const char *text)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || !*text || *end || *text == '-')
		bad_spec(maker, "not a number: %s", text);
	return value;
}

static size_t parse_shape(const struct maker *maker, char *text, uint64_t shape[RANK_MAX])
{
	size_t size = strlen(text), rank = 0;
	char *save = NULL;

	if (size < 2 || text[0] != '[' || text[size - 1] != ']')
		bad_spec(maker, "a shape looks like [2,3], not %s", text);
	text[size - 1] = '\0';
	for (char *dim = strtok_r(text + 1, ",", &save); dim;
	     dim = strtok_r(NULL, ",", &save)) {
		if (rank == RANK_MAX)
			bad_spec(maker, "more than %d dimensions", RANK_MAX);
		shape[rank++] = number(maker, dim);
	}
	return rank;
}

/* Tensors -------------------------------------------------------------------- */

static uint8_t *make_bytes(const struct content *content)
{
	uint8_t *bytes = allocate((size_t)content->size);

	for (uint64_t i = 0; i < content->size; i++)
		bytes[i] = content->data ? content->data[i]
					 : (uint8_t)(i * 31 + content->index * 7 + 3);
	return bytes;
}

static int provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	const struct content *content = context;

	*ret_data = make_bytes(content);
	*ret_size = content->size;
	return 0;
}

static void release(void *context, const void *data, uint64_t size)
{
	(void)context;
	(void)size;
	free((void *)(uintptr_t)data);
}

/* Behind what is there already, so that most ranges start at odd places. */
static int add_range(struct maker *maker, const struct bpk_tensor_desc *desc,
		     const struct content *content)
{
	uint8_t *bytes = make_bytes(content);
	uint64_t off = maker->range_end;

	if (fwrite(bytes, 1, (size_t)content->size, maker->range) != content->size ||
	    fflush(maker->range)) {
		perror("bpk-make: the range file");
		exit(2);
	}
	free(bytes);
	maker->range_end += content->size;
	return bpk_writer_add_range(maker->writer, desc, fileno(maker->range), off,
				    content->size, &maker->error);
}

static int add_tensor(struct maker *maker, const struct bpk_tensor_desc *desc,
		      struct content *content)
{
	const struct bpk_provider provider = {
		.provide = provide,
		.release = release,
		.context = content,
	};

	switch (maker->source) {
	case SOURCE_BYTES:
		content->kept = make_bytes(content);
		return bpk_writer_add_bytes(maker->writer, desc, content->kept,
					    content->size, &maker->error);
	case SOURCE_DEFERRED:
		return bpk_writer_add_deferred(maker->writer, desc, content->size,
					       &provider, &maker->error);
	case SOURCE_RANGE:
		return add_range(maker, desc, content);
	}
	return -EINVAL;
}

static void tensor_option(struct maker *maker, char *word, struct bpk_tensor_desc *desc,
			  struct content *content, bool *ret_sized)
{
	char *value = strchr(word, '=');
	uint8_t *bytes;

	if (!strcmp(word, "odd")) {
		bpk_writer_allow_odd_sizes(maker->writer, true);
		return;
	}
	if (!value)
		bad_spec(maker, "what is %s?", word);
	*value++ = '\0';
	if (!strcmp(word, "param_id")) {
		desc->has_param_id = true;
		desc->param_id = number(maker, value);
	} else if (!strcmp(word, "size")) {
		content->size = number(maker, value);
		*ret_sized = true;
	} else if (!strcmp(word, "data") && !strcmp(value, "zeros")) {
		content->data = calloc(1, content->size ? (size_t)content->size : 1);
	} else if (!strcmp(word, "data")) {
		content->data = allocate(strlen(value));
		content->size = unhex(maker, value, content->data);
		*ret_sized = true;
	} else if (!strcmp(word, "cbor")) {
		bytes = (uint8_t *)value;
		desc->dtype_cbor_size = unhex(maker, value, bytes);
		desc->dtype_cbor = bytes;
	} else {
		bad_spec(maker, "what is %s?", word);
	}
}

static int do_tensor(struct maker *maker, char *line)
{
	struct content *content = calloc(1, sizeof(*content));
	uint64_t shape[RANK_MAX];
	struct bpk_tensor_desc desc = { .shape = shape };
	bool sized;
	char *word;
	int r;

	if (!content)
		return -ENOMEM;
	content->next = maker->contents;
	maker->contents = content;
	content->index = maker->tensor_count++;
	desc.name_size = decode(maker, need_word(maker, &line, "a name"), &desc.name);
	word = need_word(maker, &line, "a dtype");
	if (!strcmp(word, "QFloat"))
		desc.dtype = BPK_DTYPE_QFLOAT;
	else if (bpk_dtype_from_name(word, strlen(word), &desc.dtype) < 0)
		bad_spec(maker, "there is no dtype %s", word);
	desc.rank = parse_shape(maker, need_word(maker, &line, "a shape"), shape);
	sized = bpk_shape_size(desc.dtype, shape, desc.rank, &content->size) == 0;
	while ((word = next_word(&line)))
		tensor_option(maker, word, &desc, content, &sized);
	if (!sized)
		bad_spec(maker, "size= is needed");
	r = add_tensor(maker, &desc, content);
	bpk_writer_allow_odd_sizes(maker->writer, false);
	return r;
}

/* The rest -------------------------------------------------------------------- */

static struct bpk_scalar_value parse_scalar(struct maker *maker, const char *type,
					    const char *text)
{
	struct bpk_scalar_value value = { .type = BPK_SCALAR_BOOL };
	char *end = NULL;
	double f;

	errno = 0;
	if (!strcmp(type, "Int")) {
		value.type = BPK_SCALAR_INT;
		value.i = strtoll(text, &end, 0);
	} else if (!strcmp(type, "UInt")) {
		value.type = BPK_SCALAR_UINT;
		value.u = number(maker, text);
	} else if (!strcmp(type, "Float") && !strncmp(text, "bits:", 5)) {
		value.type = BPK_SCALAR_FLOAT;
		value.float_bits = strtoull(text + 5, &end, 16);
	} else if (!strcmp(type, "Float")) {
		value.type = BPK_SCALAR_FLOAT;
		f = strtod(text, &end);
		errno = 0; /* what is too small or large is 0 or inf */
		memcpy(&value.float_bits, &f, sizeof(f));
	} else if (!strcmp(type, "Bool")) {
		value.b = !strcmp(text, "true");
		if (!value.b && strcmp(text, "false"))
			bad_spec(maker, "a Bool is true or false");
	} else {
		bad_spec(maker, "there is no scalar type %s", type);
	}
	if (errno || (end && (*end || end == text)))
		bad_spec(maker, "not a value of %s: %s", type, text);
	return value;
}

static int do_scalar(struct maker *maker, char *line)
{
	const char *name;
	size_t size = decode(maker, need_word(maker, &line, "a name"), &name);
	const char *type = need_word(maker, &line, "a type");
	const char *text = need_word(maker, &line, "a value");

	return bpk_writer_set_scalar(maker->writer, name, size,
				     parse_scalar(maker, type, text), &maker->error);
}

static int do_meta(struct maker *maker, char *line)
{
	const char *key, *value;
	size_t size = decode(maker, need_word(maker, &line, "a key"), &key);
	size_t value_size = decode(maker, line, &value);

	return bpk_writer_set_metadata(maker->writer, key, size, value, value_size,
				       &maker->error);
}

static int do_extra(struct maker *maker, char *line)
{
	uint64_t count = number(maker, need_word(maker, &line, "a count"));
	char *hex = need_word(maker, &line, "the pairs");
	size_t size = unhex(maker, hex, (uint8_t *)hex);

	return bpk_writer_set_extra(maker->writer, hex, size, (size_t)count,
				    &maker->error);
}

static int do_line(struct maker *maker, char *line)
{
	static const struct {
		const char *word;
		int (*run)(struct maker *maker, char *line);
	} kinds[] = {
		{ "tensor", do_tensor },
		{ "scalar", do_scalar },
		{ "meta", do_meta },
		{ "extra", do_extra },
	};
	char *word;

	maker->line++;
	line[strcspn(line, "\n")] = '\0';
	if (*line == '#')
		return 0;
	word = next_word(&line);
	if (!word)
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(word, kinds[i].word))
			return kinds[i].run(maker, line);
	bad_spec(maker, "what is %s?", word);
}

static int do_spec(struct maker *maker)
{
	char *line = NULL;
	size_t capacity = 0;
	int r = 0;

	while (r == 0 && getline(&line, &capacity, stdin) >= 0)
		r = do_line(maker, line);
	free(line);
	return r;
}

static void save(const char *path, const void *bytes, uint64_t size)
{
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(bytes, 1, (size_t)size, file) != size || fclose(file)) {
		perror(path);
		exit(2);
	}
}

static int write_buffer(struct maker *maker, const char *out)
{
	uint64_t planned, size = 0;
	void *buffer;
	int r = bpk_writer_plan(maker->writer, &planned, &maker->error);

	if (r < 0)
		return r;
	buffer = allocate((size_t)planned);
	memset(buffer, 0xa5, (size_t)planned); /* every byte must be written */
	r = bpk_writer_write_buffer(maker->writer, buffer, planned, NULL, &size,
				    &maker->error);
	if (r == 0)
		save(out, buffer, size);
	free(buffer);
	return r;
}

static int write_new_buffer(struct maker *maker, const char *out)
{
	uint64_t size;
	void *buffer;
	int r = bpk_writer_write_new_buffer(maker->writer, NULL, &buffer, &size,
					    &maker->error);

	if (r < 0)
		return r;
	save(out, buffer, size);
	free(buffer);
	return 0;
}

static int write_pack(struct maker *maker, const char *sink, const char *out)
{
	if (!strcmp(sink, "file"))
		return bpk_writer_write_file(maker->writer, out, NULL, &maker->error);
	if (!strcmp(sink, "inplace"))
		return bpk_writer_write_file_in_place(maker->writer, out, NULL,
						      &maker->error);
	if (!strcmp(sink, "buffer"))
		return write_buffer(maker, out);
	if (!strcmp(sink, "newbuffer"))
		return write_new_buffer(maker, out);
	bad_spec(maker, "there is no sink %s", sink);
}

static void done(struct maker *maker)
{
	struct content *content = maker->contents;

	bpk_writer_free(maker->writer);
	while (content) {
		struct content *next = content->next;

		free(content->data);
		free(content->kept);
		free(content);
		content = next;
	}
	if (maker->range)
		fclose(maker->range);
}

static void set_source(struct maker *maker, const char *name)
{
	static const char *const names[] = { "bytes", "deferred", "range" };

	for (unsigned int i = 0; i < 3; i++) {
		if (strcmp(name, names[i]))
			continue;
		maker->source = (enum source)i;
		return;
	}
	bad_spec(maker, "there is no source %s", name);
}

int main(int argc, char **argv)
{
	struct maker maker = { .source = SOURCE_BYTES };
	const char *sink = "file", *out = NULL;
	int r;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--sink=", 7))
			sink = argv[i] + 7;
		else if (!strncmp(argv[i], "--source=", 9))
			set_source(&maker, argv[i] + 9);
		else
			out = argv[i];
	}
	if (!out)
		bad_spec(&maker, "where to? bpk-make [--sink=] [--source=] OUT < SPEC");
	if (maker.source == SOURCE_RANGE)
		maker.range = tmpfile();
	if (maker.source == SOURCE_RANGE && !maker.range) {
		perror("bpk-make: the range file");
		return 2;
	}
	r = bpk_writer_new(NULL, &maker.writer);
	if (r == 0)
		r = do_spec(&maker);
	if (r == 0)
		r = write_pack(&maker, sink, out);
	if (r < 0)
		fprintf(stderr, "error %d %d %s\n", (int)maker.error.code, -r,
			maker.error.message);
	done(&maker);
	return r < 0;
}
