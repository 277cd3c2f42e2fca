/*
 * shell_text.c - see shell_text.h.
 */
#include "shell_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What nobody reads anything into, in any place of a word. */
static const char plain[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	"/._-+,:=@%";

static bool is_control(char character)
{
	return (uint8_t)character < 0x20 || character == 0x7f;
}

static bool has_control(const char *word)
{
	for (; *word; word++)
		if (is_control(*word))
			return true;
	return false;
}

/* In '...' a quote ends it, stands outside with a backslash, and begins it again. */
static void print_quoted(const char *word, FILE *out)
{
	putc('\'', out);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", out);
		else
			putc(*word, out);
	}
	putc('\'', out);
}

/* Three digits each: one may follow. */
static void print_escaped(const char *word, FILE *out)
{
	fputs("$'", out);
	for (; *word; word++) {
		if (is_control(*word))
			fprintf(out, "\\%03o", (unsigned)(uint8_t)*word);
		else if (*word == '\'' || *word == '\\')
			fprintf(out, "\\%c", *word);
		else
			putc(*word, out);
	}
	putc('\'', out);
}

char *shell_word(const char *word)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (has_control(word))
		print_escaped(word, out);
	else if (*word && !word[strspn(word, plain)])
		fputs(word, out);
	else
		print_quoted(word, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
