/*
 * read_ahead.h - how far the kernel reads ahead of whoever reads files of the mount.
 *
 * This is the one place where the speed of reading is decided; what was measured is in
 * DESIGN.md, "Speed of reading".
 */
#ifndef BPKFS_READ_AHEAD_H
#define BPKFS_READ_AHEAD_H

#include <stdint.h>

/* Have it be as far as pays for the file system of that device number. Without the
 * right to (root has it, where /sys can be written) it stays the kernel's own. */
void read_ahead_set(uint32_t major, uint32_t minor);

#endif
