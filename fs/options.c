/*
 * options.c - see options.h.
 */
#include "options.h"
#include "log.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void options_help(void)
{
	fputs("usage: bpkfs [options] PACK MOUNTPOINT   mount a pack (read-only)\n"
	      "       bpkfs -o rw PACK MOUNTPOINT       mount it writable: edits become "
	      "a new\n"
	      "                                         pack at unmount\n"
	      "       bpkfs --unmount MOUNTPOINT        commit, unmount, wait; the exit "
	      "status is\n"
	      "                                         the commit's\n"
	      "\n"
	      "  -f              stay in the foreground\n"
	      "  -d              as -f, and tell every request\n"
	      "  -s              one thread\n"
	      "  -h, --help      this text\n"
	      "  -V, --version   versions\n"
	      "  -o WORD,...     ro, rw, flat (keep dots in names), uid=N, gid=N, "
	      "umask=M,\n"
	      "                  fmask=M, dmask=M, allow_other, allow_root, "
	      "fsname=NAME,\n"
	      "                  staging=DIR, and the words of mount(8)\n",
	      stdout);
}

static bool number(const char *text, int base, unsigned long most, unsigned long *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, base);
	return !errno && end != text && !*end && *text != '-' && *ret <= most;
}

static bool one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(*words, word) == 0)
			return true;
	return false;
}

static bool keep(char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to != NULL;
}

/* Words that the kernel is to hear of. */
static bool pass_on(struct options *options, const char *word)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", options->kernel ? options->kernel : "",
		     options->kernel ? "," : "", word) < 0)
		return false;
	free(options->kernel);
	options->kernel = joined;
	return true;
}

static bool parse_mask(const char *value, mode_t *ret)
{
	unsigned long mask;

	if (!number(value, 8, 0777, &mask))
		return false;
	*ret = (mode_t)mask;
	return true;
}

static bool parse_valued(struct options *options, const char *name, const char *value)
{
	unsigned long id;

	if (strcmp(name, "uid") == 0 && number(value, 10, UINT_MAX - 1, &id)) {
		options->uid = (uid_t)id;
		return options->has_uid = true;
	}
	if (strcmp(name, "gid") == 0 && number(value, 10, UINT_MAX - 1, &id)) {
		options->gid = (gid_t)id;
		return options->has_gid = true;
	}
	if (strcmp(name, "umask") == 0)
		return parse_mask(value, &options->file_mask) &&
		       parse_mask(value, &options->folder_mask);
	if (strcmp(name, "fmask") == 0)
		return parse_mask(value, &options->file_mask);
	if (strcmp(name, "dmask") == 0)
		return parse_mask(value, &options->folder_mask);
	if (strcmp(name, "fsname") == 0)
		return keep(&options->fsname, value);
	if (strcmp(name, "staging") == 0)
		return *value && keep(&options->staging, value);
	return false;
}

static bool parse_word(struct options *options, char *word)
{
	/* What mount(8) may pass and what means nothing to a mounted pack. */
	static const char *const ignored[] = {
		"atime",    "relatime", "norelatime", "strictatime", "nodiratime",
		"diratime", "dev",	"suid",	      "exec",	     "nofail",
		"fail",	    "noauto",	"auto",	      "user",	     "users",
		"nouser",   "owner",	"group",      "_netdev",     "defaults",
		"async",    "",		NULL
	};
	static const char *const kernel[] = { "noatime", "nosuid",  "nodev", "noexec",
					      "sync",	 "dirsync", NULL };
	char *equals = strchr(word, '=');

	if (strcmp(word, "ro") == 0 || strcmp(word, "rw") == 0) {
		options->writable = word[1] == 'w';
		return true;
	}
	if (strcmp(word, "flat") == 0)
		return options->flat = true;
	if (strcmp(word, "allow_other") == 0)
		return options->allow_other = true;
	if (strcmp(word, "allow_root") == 0)
		return options->allow_root = true;
	if (one_of(word, ignored) || strncmp(word, "x-", 2) == 0 ||
	    strncmp(word, "X-", 2) == 0)
		return true;
	if (one_of(word, kernel))
		return pass_on(options, word);
	if (equals) {
		bool known;

		*equals = '\0';
		known = parse_valued(options, word, equals + 1);
		*equals = '=';
		return known;
	}
	return false;
}

/* "\," is a comma inside a word, "\\" a backslash. */
static bool parse_words(struct options *options, const char *text)
{
	char *word = malloc(strlen(text) + 1), *to = word;
	bool good = word != NULL;

	for (; good; text++) {
		if (*text == '\\' && text[1]) {
			*to++ = *++text;
		} else if (*text && *text != ',') {
			*to++ = *text;
		} else {
			*to = '\0';
			if (!parse_word(options, word)) {
				log_line("unknown or unusable option \"%s\"", word);
				good = false;
			}
			to = word;
			if (!*text)
				break;
		}
	}
	free(word);
	return good;
}

enum status options_parse(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "unmount", no_argument, NULL, 'u' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int letter, wanted;

	*options = (struct options) { .file_mask = 0, .folder_mask = 0 };
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":o:fdshV", long_options, NULL)) >= 0) {
		switch (letter) {
		case 'o':
			if (!parse_words(options, optarg))
				return STATUS_USAGE;
			break;
		case 'd':
			options->debug = true;
			options->foreground = true;
			break;
		case 'f':
			options->foreground = true;
			break;
		case 's':
			options->single_thread = true;
			break;
		case 'u':
			options->command = COMMAND_UNMOUNT;
			break;
		case 'h':
			options->command = COMMAND_HELP;
			return STATUS_OK;
		case 'V':
			options->command = COMMAND_VERSION;
			return STATUS_OK;
		case ':':
			log_line("option \"%s\" needs a value; see bpkfs --help",
				 argv[optind - 1]);
			return STATUS_USAGE;
		default:
			if (optopt && optopt != 'u')
				log_line("unknown option \"-%c\"; see bpkfs --help",
					 optopt);
			else
				log_line("unknown option \"%s\"; see bpkfs --help",
					 argv[optind - 1]);
			return STATUS_USAGE;
		}
	}
	wanted = options->command == COMMAND_MOUNT ? 2 : 1;
	if (argc - optind != wanted) {
		log_line("%s; see bpkfs --help",
			 wanted == 2 ? "a pack and a mount point are needed, nothing else"
				     : "a mount point is needed, nothing else");
		return STATUS_USAGE;
	}
	if (wanted == 2)
		options->pack = argv[optind];
	options->mount_point = argv[optind + wanted - 1];
	return STATUS_OK;
}

void options_done(struct options *options)
{
	free(options->fsname);
	free(options->staging);
	free(options->kernel);
}
