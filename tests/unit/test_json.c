/*
 * test_json.c - strings and numbers as JSON. convert_json.py asks Python's own reader.
 */
#include "bytes.h"
#include "convert/json.h"
#include "leak.h"

TestSuite(json, .fini = leak_check);

static void expect(const char *label, struct bpk_appender *out, const char *json,
		   size_t json_size)
{
	cr_expect_not(out->failed);
	cr_expect(out->size == json_size &&
			  (!json_size || !memcmp(out->data, json, json_size)),
		  "%s: %.*s", label, (int)out->size, (const char *)out->data);
	bpk_append_done(out);
}

Test(json, strings)
{
	static const struct {
		const char *label, *text;
		size_t size;
		const char *json;
		size_t json_size;
	} rows[] = {
		/* clang-format off */
		{ "empty", BYTES(""), BYTES("\"\"") },
		{ "plain", BYTES("layer1.weight"), BYTES("\"layer1.weight\"") },
		{ "a quote", BYTES("a\"b"), BYTES("\"a\\\"b\"") },
		{ "a backslash", BYTES("a\\b"), BYTES("\"a\\\\b\"") },
		{ "only quotes", BYTES("\"\"\""), BYTES("\"\\\"\\\"\\\"\"") },
		{ "a slash", BYTES("a/b"), BYTES("\"a/b\"") },
		{ "NUL", BYTES("a\0b"), BYTES("\"a\\u0000b\"") },
		{ "a line", BYTES("a\nb"), BYTES("\"a\\u000ab\"") },
		{ "the last control", BYTES("\037 "), BYTES("\"\\u001f \"") },
		{ "before DEL", BYTES("~\177\302\200"), BYTES("\"~\\u007f\\u0080\"") },
		{ "a terminal's CSI", BYTES("\302\2332J"), BYTES("\"\\u009b2J\"") },
		{ "the last of C1", BYTES("\302\237\302\240"), BYTES("\"\\u009f\302\240\"") },
		{ "two bytes", BYTES("\303\251"), BYTES("\"\303\251\"") },
		{ "three bytes", BYTES("\342\202\254"), BYTES("\"\342\202\254\"") },
		{ "four bytes", BYTES("\360\237\224\245"), BYTES("\"\360\237\224\245\"") },
		{ "U+2028", BYTES("\342\200\250"), BYTES("\"\342\200\250\"") },
		{ "the last character", BYTES("\364\217\277\277"),
		  BYTES("\"\364\217\277\277\"") },
		{ "no UTF-8", BYTES("a\377b"), BYTES("\"a\\ufffdb\"") },
		{ "cut short", BYTES("a\303"), BYTES("\"a\\ufffd\"") },
		{ "cut by a letter", BYTES("\342\202a"), BYTES("\"\\ufffd\\ufffda\"") },
		{ "overlong", BYTES("\300\200"), BYTES("\"\\ufffd\\ufffd\"") },
		{ "a surrogate", BYTES("\355\240\200"), BYTES("\"\\ufffd\\ufffd\\ufffd\"") },
		{ "too large", BYTES("\364\220\200\200"),
		  BYTES("\"\\ufffd\\ufffd\\ufffd\\ufffd\"") },
		{ "all at once", BYTES("x\"\\\0\n\377\303\251y"),
		  BYTES("\"x\\\"\\\\\\u0000\\u000a\\ufffd\303\251y\"") },
		/* clang-format on */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *text = (char *)bytes_copy(rows[i].text, rows[i].size);
		struct bpk_appender out = { .data = NULL };

		cr_expect_eq(bpk_json_escaped_size(text, rows[i].size),
			     rows[i].json_size - 2, "%s", rows[i].label);
		bpk_json_string(&out, text, rows[i].size);
		expect(rows[i].label, &out, rows[i].json, rows[i].json_size);
		bpk_json_escape(&out, text, rows[i].size);
		expect(rows[i].label, &out, rows[i].json + 1, rows[i].json_size - 2);
		free(text);
	}
}

/* No byte comes out that a terminal or a reader of lines would act on. */
Test(json, every_byte)
{
	for (unsigned int byte = 0; byte < 256; byte++) {
		char text[1] = { (char)byte };
		struct bpk_appender out = { .data = NULL };

		bpk_json_escape(&out, text, 1);
		cr_assert(out.size == 1 || out.size == 2 || out.size == 6, "%u", byte);
		cr_expect_eq(out.size == 1,
			     byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\');
		for (size_t i = 0; i < out.size; i++)
			cr_expect(out.data[i] >= 0x20 && out.data[i] < 0x7f, "%u", byte);
		bpk_append_done(&out);
	}
}

Test(json, integers)
{
	static const struct {
		uint64_t value;
		const char *text;
	} positive[] = {
		{ 0, "0" },
		{ 9, "9" },
		{ 10, "10" },
		{ 12345678901, "12345678901" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	static const struct {
		int64_t value;
		const char *text;
	} either[] = {
		{ 0, "0" },
		{ 7, "7" },
		{ -1, "-1" },
		{ INT64_MAX, "9223372036854775807" },
		{ INT64_MIN, "-9223372036854775808" },
	};

	for (size_t i = 0; i < sizeof(positive) / sizeof(*positive); i++) {
		struct bpk_appender out = { .data = NULL };

		bpk_json_uint(&out, positive[i].value);
		expect("uint", &out, positive[i].text, strlen(positive[i].text));
	}
	for (size_t i = 0; i < sizeof(either) / sizeof(*either); i++) {
		struct bpk_appender out = { .data = NULL };

		bpk_json_int(&out, either[i].value);
		expect("int", &out, either[i].text, strlen(either[i].text));
	}
}

/* What is a number stays one, anything else becomes a string. */
Test(json, numbers)
{
	static const char *const numbers[] = {
		"0",	   "-0",
		"0.0",	   "-0.0",
		"1.0",	   "0.001",
		"1e300",   "2.5e-8",
		"-1e5",	   "1E+10",
		"10.25e0", "5e-324",
		"12",	   "123456789012345678901234567890",
	};
	static const char *const strings[] = {
		"",	"-",
		"+1",	"01",
		"-01",	".5",
		"1.",	"1.e5",
		"1e",	"1e+",
		"e5",	"0x10",
		"1_0",	"1 ",
		" 1",	"1,0",
		"--1",	"1.5.2",
		"inf",	"-inf",
		"nan",	"nan:0x7ff8000020000000",
		"true", "1e5e5",
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		struct bpk_appender out = { .data = NULL };
		size_t size = strlen(numbers[i]);
		char *text = (char *)bytes_copy(numbers[i], size);

		bpk_json_number(&out, text, size);
		expect(numbers[i], &out, numbers[i], size);
		free(text);
	}
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
		struct bpk_appender out = { .data = NULL };
		size_t size = strlen(strings[i]);
		char *text = (char *)bytes_copy(strings[i], size);

		bpk_json_number(&out, text, size);
		cr_expect_eq(out.size, size + 2, "%s", strings[i]);
		cr_expect_eq(out.data[0], '"', "%s", strings[i]);
		cr_expect_arr_eq(out.data + 1, strings[i], size, "%s", strings[i]);
		cr_expect_eq(out.data[size + 1], '"', "%s", strings[i]);
		bpk_append_done(&out);
		free(text);
	}
}
