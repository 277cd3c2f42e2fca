/*
 * control.h - bpkfs --unmount, --commit, --discard and --status, and the daemon that
 * they talk to.
 *
 * The caller makes a datagram socket with an abstract random name, tells the
 * daemon that name (an ioctl on the mount), unmounts, and waits for the one report
 * that the daemon sends when the commit is over. So nothing is promised before the
 * unmount has really happened, and a mount that is busy is left as it was.
 *
 * How far the commit is comes on a second socket, which only a caller at a terminal has:
 * what nobody has read yet must not be in the way of the report.
 */
#ifndef BPKFS_CONTROL_H
#define BPKFS_CONTROL_H

#include "ops.h"
#include "status.h"

/* Commit, unmount, wait for the daemon. Prints why when it is not STATUS_OK. */
enum status control_unmount(const char *mount_point);

/* Commit, stay mounted. Prints why when it is not STATUS_OK. */
enum status control_commit(const char *mount_point);
/* Drop all edits, unmount, wait for the daemon. */
enum status control_discard(const char *mount_point);
/* Drop what is left in @staging of edits of @pack, which nobody has mounted. */
enum status control_discard_left(const char *pack, const char *staging);
/* Print what is mounted, what changed, and how the last commit went. */
enum status control_status(const char *mount_point);

/* The daemon's side: tell @name (may be ""). */
void control_report(const char *name, enum status status, const char *message);
/* How far the commit is; as often as one likes, a few times a second are told. */
struct control_pace {
	int64_t told_ms;
};
void control_progress(struct control_pace *pace, const char *name, uint64_t done,
		      uint64_t total);

#endif
