/*
 * test_shell_text.c - words as a shell reads them, by hand and by what a shell makes of
 * them.
 */
#include "leak.h"
#include "shell_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(shell_text, .fini = leak_check);

Test(shell_text, words)
{
	static const struct {
		const char *word, *text;
	} rows[] = {
		{ "/data/run-1/model_v2.bpk", "/data/run-1/model_v2.bpk" },
		{ "staging=/x,y:z@%+", "staging=/x,y:z@%+" },
		{ "", "''" },
		{ "/a b", "'/a b'" },
		{ "/it's", "'/it'\\''s'" },
		{ "'", "''\\'''" },
		{ "/a\"b", "'/a\"b'" },
		{ "/$HOME", "'/$HOME'" },
		{ "/`x`", "'/`x`'" },
		{ "/a\\b", "'/a\\b'" },
		{ "/a;b|c&d", "'/a;b|c&d'" },
		{ "/*?[x]{y}", "'/*?[x]{y}'" },
		{ "~", "'~'" },
		{ "!x#y", "'!x#y'" },
		{ "/\xc3\xa4", "'/\xc3\xa4'" },
		{ "/a\nb", "$'/a\\012b'" },
		{ "/\t'1\\", "$'/\\011\\'1\\\\'" },
		{ "/\x7f", "$'/\\177'" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char *text = shell_word(rows[i].word);

		cr_assert_not_null(text, "%s", rows[i].text);
		cr_expect_str_eq(text, rows[i].text);
		free(text);
	}
}

/* Does @shell read what shell_word() makes of @word as that word? */
static void check_read(const char *shell, const char *word)
{
	char *text = shell_word(word), *command, got[512];
	size_t size;
	FILE *in;

	cr_assert_not_null(text);
	cr_assert(asprintf(&command, "%s <<'END'\nprintf '<%%s>' %s\nEND\n", shell,
			   text) > 0);
	in = popen(command, "r");
	cr_assert_not_null(in);
	size = fread(got, 1, sizeof(got) - 1, in);
	got[size] = '\0';
	cr_expect_eq(pclose(in), 0, "%s", command);
	cr_expect(size == strlen(word) + 2 && got[0] == '<' && got[size - 1] == '>' &&
			  memcmp(got + 1, word, size - 2) == 0,
		  "%s: %s", command, got);
	free(command);
	free(text);
}

Test(shell_text, every_character)
{
	static const char digit[] = { 1, '7', 0 };
	char word[300] = "";

	for (int c = 0x20; c < 0x100; c++)
		if (c != 0x7f)
			word[strlen(word)] = (char)c;
	check_read("sh", word);
	memset(word, 0, sizeof(word));
	for (int c = 1; c < 0x100; c++)
		word[c - 1] = (char)c;
	check_read("bash", word);
	/* A digit behind a control character is none of its own. */
	check_read("bash", digit);
}
