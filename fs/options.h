/*
 * options.h - the command line to a struct. Everything is checked here, before
 * anything is opened or mounted.
 */
#ifndef BPKFS_OPTIONS_H
#define BPKFS_OPTIONS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "status.h"

enum command {
	COMMAND_MOUNT,
	COMMAND_UNMOUNT,
	COMMAND_COMMIT,
	COMMAND_DISCARD,
	COMMAND_STATUS,
	COMMAND_HELP,
	COMMAND_VERSION,
};

struct options {
	enum command command;
	const char *pack;
	const char *mount_point;
	bool writable;
	bool foreground;
	bool debug;
	bool single_thread;
	bool create;	/* the pack is a new one */
	bool overwrite; /* the output may be there */
	bool flat;
	bool allow_other;
	bool allow_root;
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	unsigned timeout; /* seconds a mount may be idle; 0: for ever */
	mode_t file_mask;
	mode_t folder_mask;
	char *fsname; /* NULL: the pack's path */
	char *staging;
	char *output; /* where commits go; NULL: the pack */
	char *kernel; /* words for mount(2), comma separated, or NULL */
};

/* Fills @options or says on stderr what is wrong: STATUS_OK or STATUS_USAGE. */
enum status options_parse(struct options *options, int argc, char **argv);
/* The owner and the modes of what is shown of a file with the attributes @st. @more:
 * permission bits that it has besides those to read. */
struct shown_attributes {
	uid_t uid;
	gid_t gid;
	mode_t file_mode;
	mode_t folder_mode;
};
void options_attributes(const struct options *options, const struct stat *st, mode_t more,
			struct shown_attributes *ret);
void options_done(struct options *options);
void options_help(void);

#endif
