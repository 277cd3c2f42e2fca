/*
 * look.h - what a name in a folder on disk stands for, without a step into anything
 * that is mounted there: a directory mount may lie in its own directory, or a link lead
 * into it, and a request of the daemon to itself would never be answered.
 *
 * Links to files are followed, wherever they lead; links to folders are not. Other mounts
 * of this program are like any disk here. No locks, no state.
 */
#ifndef BPKFS_LOOK_H
#define BPKFS_LOOK_H

#include <stdint.h>
#include <sys/stat.h>

/* The folder @path below @dir_fd ("" for itself), to be listed: a descriptor or -errno.
 * Links and other mounts on the way are errors. */
int look_folder(int dir_fd, const char *path);

/*
 * What @name in the folder is: its attributes, those of the file that a link leads to.
 * 0, or -errno when it is not there, and -EXDEV for a mount point. *@ret_why is 0 for a
 * folder and a regular file, or what an open of it would be answered: then it is shown
 * as a file that cannot be opened. @own is the device number of the own mount.
 */
int look_at(int folder_fd, const char *name, dev_t own, struct stat *ret_st,
	    int *ret_why);
/* The regular file of that name, open to read: a descriptor, or -errno as above. */
int look_open(int folder_fd, const char *name, dev_t own, struct stat *ret_st);

#endif
