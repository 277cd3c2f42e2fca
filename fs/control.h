/*
 * control.h - bpkfs --unmount and the daemon it talks to.
 *
 * The caller makes a datagram socket with an abstract random name, tells the
 * daemon that name (an ioctl on the mount), unmounts, and waits for the one report
 * that the daemon sends when the commit is over. So nothing is promised before the
 * unmount has really happened, and a mount that is busy is left as it was.
 */
#ifndef BPKFS_CONTROL_H
#define BPKFS_CONTROL_H

#include "ops.h"
#include "status.h"

/* Commit, unmount, wait for the daemon. Prints why when it is not STATUS_OK. */
enum status control_unmount(const char *mount_point);

/* The daemon's side: tell @name (may be ""). */
void control_report(const char *name, enum status status, const char *message);

#endif
