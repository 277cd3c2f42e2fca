/*
 * kept.h - edits of a commit at unmount that failed: for the next mount in a journal, for
 * people in a list.
 */
#ifndef BPKFS_KEPT_H
#define BPKFS_KEPT_H

#include "mount.h"

/*
 * Have the edits stay in the staging folder, whatever room there still is, and add to
 * mount->message where they are and how to have them again. @status is that of the
 * commit. Nothing else may use the mount.
 */
void keep_edits(struct mount *mount, enum status status);

#endif
