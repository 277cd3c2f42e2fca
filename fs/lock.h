/*
 * lock.h - the lock on an open pack that says that it has a writer, by whatever name or
 * folder another one comes to it.
 */
#ifndef BPKFS_LOCK_H
#define BPKFS_LOCK_H

#include <sys/types.h>

/*
 * Lock the file that is open as @fd (for reading is enough) against others who do, for
 * as long as that or a duplicate of it is open. 0, also where the file system has no
 * such locks (NFS has none for who may only read); -EBUSY with *@ret_owner the process
 * that has it, or 0 when that cannot be found out. The process that is found later is
 * the one that called this, so call it behind the last fork.
 */
int lock_file(int fd, pid_t *ret_owner);

/* Others may have it. */
void unlock_file(int fd);

#endif
