/*
 * npy_order.h - the elements of an array in the order that a tensor has: C order,
 * little endian. From staged file to staged file, through buffers of bounded size.
 */
#ifndef BPKFS_NPY_ORDER_H
#define BPKFS_NPY_ORDER_H

#include "convert/npy.h"
#include "staging.h"

/*
 * Fill @to, a new file, with the array @npy whose data is all of @from. 0 or an errno
 * of reading, writing or mapping the files.
 */
int npy_order(struct staged *to, const struct staged *from, const struct bpk_npy *npy);

/* Write @size bytes from @off of the file @fd behind the first @at of @to. -EIO where
 * it has fewer. */
int npy_order_append(struct staged *to, uint64_t at, int fd, uint64_t off, uint64_t size);

#endif
