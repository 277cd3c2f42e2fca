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

enum { TIMEOUT_MAX = 30 * 24 * 60 * 60 };

/* What mount(8) may pass and what means nothing to a mounted pack. */
static const char *const ignored_words[] = {
	"async",	 "atime",      "relatime",   "norelatime", "strictatime",
	"nostrictatime", "diratime",   "nodiratime", "lazytime",   "nolazytime",
	"dev",		 "suid",       "exec",	     "symfollow",  "nosymfollow",
	"iversion",	 "noiversion", "mand",	     "nomand",	   "silent",
	"loud",		 "defaults",   "auto",	     "noauto",	   "fail",
	"nofail",	 "user",       "users",	     "nouser",	   "nousers",
	"owner",	 "noowner",    "group",	     "nogroup",	   "_netdev",
	"nonempty",	 "",	       NULL
};
/* What it may pass and the kernel is to hear of. */
static const char *const kernel_words[] = { "noatime", "nosuid",  "nodev", "noexec",
					    "sync",    "dirsync", NULL };
enum { HELP_INDENT = 18, HELP_WIDTH = 79 };

/* The words in lines of the help's right column, the first of which is begun. */
static void print_words(const char *const *words)
{
	size_t column = HELP_INDENT;

	for (; *words; words++) {
		if (!**words)
			continue;
		if (column + 1 + strlen(*words) > HELP_WIDTH) {
			printf("\n%*s", HELP_INDENT, "");
			column = HELP_INDENT;
		}
		column += (size_t)printf("%s%s", column > HELP_INDENT ? " " : "", *words);
	}
	putchar('\n');
}

void options_help(void)
{
	fputs("usage: bpkfs [options] PACK MOUNTPOINT  mount a pack (read-only)\n"
	      "       bpkfs -o rw PACK MOUNTPOINT      mount it writable: edits become "
	      "a\n"
	      "                                        new pack at unmount\n"
	      "       bpkfs -o rw,create NEW MOUNTPOINT\n"
	      "                                        start from an empty pack\n"
	      "       bpkfs --unmount MOUNTPOINT       commit, unmount, wait; the exit\n"
	      "                                        status is the commit's\n"
	      "       bpkfs --commit MOUNTPOINT        commit now, stay mounted\n"
	      "       bpkfs --discard MOUNTPOINT       drop all edits that are not\n"
	      "                                        committed, unmount\n"
	      "       bpkfs --discard PACK             drop edits that an earlier mount "
	      "of\n"
	      "                                        PACK left behind\n"
	      "       bpkfs --status MOUNTPOINT        what is mounted, what changed, "
	      "how\n"
	      "                                        the last commit went\n"
	      "\n"
	      "Returns when the mount answers. PACK may be given without .bpk. A "
	      "missing\n"
	      "MOUNTPOINT is made, and removed at unmount; what is in one that is not\n"
	      "empty is hidden while mounted.\n"
	      "PACK may be a directory: then all packs in it are shown; with rw each is\n"
	      "written on its own.\n"
	      "\n"
	      "  -f              stay in the foreground; as a service of type notify,\n"
	      "                  systemd is told when the mount answers and when it "
	      "ends\n"
	      "  -d              as -f, and tell every request\n"
	      "  -s              answer one request at a time\n"
	      "  -h, --help      this text\n"
	      "  -V, --version   versions of bpkfs, libfuse and the kernel's protocol\n"
	      "  -o WORD,...     options; in a value, a comma is \\, and a backslash "
	      "\\\\\n"
	      "\n"
	      "    ro, rw        read-only (the default), or writable\n"
	      "    create        with rw: PACK is a new one, made by the first commit\n"
	      "    output=FILE   with rw: commits go to FILE, and PACK is never touched\n"
	      "    overwrite     with output: FILE may be there; a commit replaces it\n"
	      "    flat          keep dots in names, make no folders\n"
	      "    uid=N, gid=N  the owner of everything (default: the pack's)\n"
	      "    umask=M       permission bits to take away, in octal; fmask=M for "
	      "files\n"
	      "                  and dmask=M for folders alone\n"
	      "    allow_other   let other users in, as far as permission bits let them\n"
	      "    allow_root    let root in; who is not root needs the line\n"
	      "                  user_allow_other in /etc/fuse.conf for either of them\n"
	      "    timeout=N     unmount after N seconds without an open file or folder\n"
	      "                  and without a request (statfs aside) that the kernel\n"
	      "                  cannot answer itself; 0 for never; read-only mounts "
	      "only\n"
	      "    fsname=NAME   what the mount table shows (default: the pack's path)\n"
	      "    staging=DIR   where edits wait for the commit (default: beside the "
	      "pack)\n"
	      "    of mount(8):  ",
	      stdout);
	print_words(kernel_words);
	fputs("    no effect:    ", stdout);
	print_words(ignored_words);
	fputs("                  user=... comment=... x-... X-...\n"
	      "    remount       is refused: unmount the pack and mount it again\n"
	      "\n"
	      "SIGTERM, SIGINT and SIGHUP unmount and commit, also while files are "
	      "open.\n"
	      "\n"
	      "Exit status: 0 ok, 1 usage, 10 mount point or FUSE, 11 cannot open the "
	      "pack,\n"
	      "12 not a burnpack, 13 newer version, 14 truncated, 15 malformed, 16 over "
	      "a\n"
	      "limit, 20 mounted writable already, 21 cannot stage edits, 22 commit "
	      "failed,\n"
	      "23 the pack changed on disk, 24 committed without invalid edits.\n",
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

/* What is wrong with it, or NULL. */
static const char *keep(char **to, const char *value)
{
	if (!*value)
		return "empty";
	free(*to);
	*to = strdup(value);
	return *to ? NULL : "no memory";
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

/* What is wrong with a word; NULL when it was understood. */
static const char *const unknown = "unknown";

static const char *parse_id(const char *value, bool *ret_has, unsigned *ret)
{
	unsigned long id;

	if (!number(value, 10, UINT_MAX - 1, &id))
		return "not a number that can be an id";
	*ret = (unsigned)id;
	*ret_has = true;
	return NULL;
}

static const char *parse_timeout(const char *value, unsigned *ret)
{
	unsigned long seconds;

	if (!number(value, 10, TIMEOUT_MAX, &seconds))
		return "not a number of seconds up to 30 days";
	*ret = (unsigned)seconds;
	return NULL;
}

static const char *parse_valued(struct options *options, const char *name,
				const char *value)
{
	static const char not_a_mask[] = "not permission bits in octal";

	if (strcmp(name, "uid") == 0)
		return parse_id(value, &options->has_uid, &options->uid);
	if (strcmp(name, "gid") == 0)
		return parse_id(value, &options->has_gid, &options->gid);
	if (strcmp(name, "timeout") == 0)
		return parse_timeout(value, &options->timeout);
	if (strcmp(name, "umask") == 0)
		return parse_mask(value, &options->file_mask) &&
				       parse_mask(value, &options->folder_mask)
			       ? NULL
			       : not_a_mask;
	if (strcmp(name, "fmask") == 0)
		return parse_mask(value, &options->file_mask) ? NULL : not_a_mask;
	if (strcmp(name, "dmask") == 0)
		return parse_mask(value, &options->folder_mask) ? NULL : not_a_mask;
	if (strcmp(name, "fsname") == 0)
		return keep(&options->fsname, value);
	if (strcmp(name, "staging") == 0)
		return keep(&options->staging, value);
	if (strcmp(name, "output") == 0)
		return keep(&options->output, value);
	if (strcmp(name, "user") == 0 || strcmp(name, "comment") == 0)
		return NULL; /* from mount(8), for its own use */
	return unknown;
}

static const char *parse_word(struct options *options, char *word)
{
	char *equals = strchr(word, '=');

	if (strcmp(word, "ro") == 0 || strcmp(word, "rw") == 0)
		options->writable = word[1] == 'w';
	else if (strcmp(word, "create") == 0)
		options->create = true;
	else if (strcmp(word, "overwrite") == 0)
		options->overwrite = true;
	else if (strcmp(word, "flat") == 0)
		options->flat = true;
	else if (strcmp(word, "allow_other") == 0)
		options->allow_other = true;
	else if (strcmp(word, "allow_root") == 0)
		options->allow_root = true;
	else if (strcmp(word, "remount") == 0)
		return "a mounted pack stays as it is: unmount it and mount it again";
	else if (one_of(word, kernel_words))
		return pass_on(options, word) ? NULL : "no memory";
	else if (one_of(word, ignored_words) || strncmp(word, "x-", 2) == 0 ||
		 strncmp(word, "X-", 2) == 0)
		return NULL;
	else if (equals) {
		const char *wrong;

		*equals = '\0';
		wrong = parse_valued(options, word, equals + 1);
		*equals = '=';
		return wrong;
	} else {
		return unknown;
	}
	return NULL;
}

/* "\," is a comma inside a word, "\\" a backslash. */
static bool parse_words(struct options *options, const char *text)
{
	char *word = malloc(strlen(text) + 1), *to = word;
	const char *wrong;
	bool good = word != NULL;

	for (; good; text++) {
		if (*text == '\\' && text[1]) {
			*to++ = *++text;
		} else if (*text && *text != ',') {
			*to++ = *text;
		} else {
			*to = '\0';
			wrong = parse_word(options, word);
			if (wrong == unknown)
				log_line("unknown option \"%s\"; see bpkfs --help", word);
			else if (wrong)
				log_line("option \"%s\": %s", word, wrong);
			good = !wrong;
			to = word;
			if (!*text)
				break;
		}
	}
	free(word);
	return good;
}

/* Words that are known but not together. */
static enum status check_together(const struct options *options)
{
	if ((options->create || options->output) && !options->writable) {
		log_line("option \"%s\" is for writable mounts: it needs \"rw\"",
			 options->create ? "create" : "output");
		return STATUS_USAGE;
	}
	if (options->create && options->output) {
		log_line("options \"create\" and \"output\" exclude each other: a new "
			 "pack is written where it is said to be");
		return STATUS_USAGE;
	}
	if (options->overwrite && !options->output) {
		log_line("option \"overwrite\" is for the file of \"output\", and there "
			 "is none");
		return STATUS_USAGE;
	}
	if (options->timeout && options->writable) {
		log_line("option \"timeout=%u\" is for read-only mounts: an unmount "
			 "commits, and edits are not to be committed half made because "
			 "nobody touched them for a while",
			 options->timeout);
		return STATUS_USAGE;
	}
	if (options->allow_other && options->allow_root) {
		log_line("options \"allow_other\" and \"allow_root\" exclude each other");
		return STATUS_USAGE;
	}
	return STATUS_OK;
}

enum status options_parse(struct options *options, int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "unmount", no_argument, NULL, 'u' },
		{ "commit", no_argument, NULL, 'c' },
		{ "discard", no_argument, NULL, 'D' },
		{ "status", no_argument, NULL, 'S' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	unsigned wants = 0;
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
			wants |= 1U << COMMAND_UNMOUNT;
			options->command = COMMAND_UNMOUNT;
			break;
		case 'c':
			wants |= 1U << COMMAND_COMMIT;
			options->command = COMMAND_COMMIT;
			break;
		case 'D':
			wants |= 1U << COMMAND_DISCARD;
			options->command = COMMAND_DISCARD;
			break;
		case 'S':
			wants |= 1U << COMMAND_STATUS;
			options->command = COMMAND_STATUS;
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
			if (optopt && !strchr("ucDS", optopt))
				log_line("unknown option \"-%c\"; see bpkfs --help",
					 optopt);
			else
				log_line("unknown option \"%s\"; see bpkfs --help",
					 argv[optind - 1]);
			return STATUS_USAGE;
		}
	}
	/* To commit what was to be dropped, or the other way, is no guess to make. */
	if (wants & (wants - 1)) {
		log_line(
			"--unmount, --commit, --discard and --status exclude each other");
		return STATUS_USAGE;
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
	return check_together(options);
}

void options_attributes(const struct options *options, const struct stat *st, mode_t more,
			struct shown_attributes *ret)
{
	mode_t readable = st->st_mode & 0444;

	ret->uid = options->has_uid ? options->uid : st->st_uid;
	ret->gid = options->has_gid ? options->gid : st->st_gid;
	ret->file_mode = (readable | more) & ~options->file_mask;
	ret->folder_mode = (readable | readable >> 2 | more) & ~options->folder_mask;
}

void options_done(struct options *options)
{
	free(options->fsname);
	free(options->staging);
	free(options->output);
	free(options->kernel);
}
