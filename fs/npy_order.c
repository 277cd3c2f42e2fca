/*
 * npy_order.c - see npy_order.h.
 *
 * An array in column-major order is taken as a matrix of two: the first dimension,
 * which runs fastest in the file and slowest in a tensor, and all others together.
 * Of a band of the first dimension the elements stand side by side in the file, and
 * each goes to a row of its own; a row is written when its buffer is full. The file is
 * mapped for that: it is one of the staging area's own, never the pack.
 */
#include "npy_order.h"
#include "base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_SIZE ((size_t)1 << 20)
#define BAND 64		  /* rows that are filled at a time */
#define ROW_ELEMENTS 4096 /* of one row in the buffer */

static void swap_bytes(char *data, size_t count, size_t element)
{
	for (size_t i = 0; i < count; i++, data += element)
		for (size_t a = 0, b = element - 1; a < b; a++, b--) {
			char c = data[a];

			data[a] = data[b];
			data[b] = c;
		}
}

int npy_order_append(struct staged *to, uint64_t at, int fd, uint64_t off, uint64_t size)
{
	char *buffer = malloc(CHUNK_SIZE);
	int error = buffer ? 0 : -ENOMEM;

	while (!error && size) {
		size_t part = size < CHUNK_SIZE ? (size_t)size : CHUNK_SIZE;
		ssize_t got = pread(fd, buffer, part, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		error = got > 0 ? staged_write(to, buffer, (size_t)got, at)
				: (got < 0 ? -errno : -EIO);
		if (error)
			break;
		off += (uint64_t)got;
		at += (uint64_t)got;
		size -= (uint64_t)got;
	}
	free(buffer);
	return error;
}

static int swap_all(struct staged *to, const struct staged *from, uint64_t size,
		    size_t element)
{
	char *buffer = malloc(CHUNK_SIZE);
	int error = buffer ? 0 : -ENOMEM;

	for (uint64_t at = 0; !error && at < size; at += CHUNK_SIZE) {
		size_t part = size - at < CHUNK_SIZE ? (size_t)(size - at) : CHUNK_SIZE;

		error = staged_read(from, buffer, part, at);
		swap_bytes(buffer, part / element, element);
		if (!error)
			error = staged_write(to, buffer, part, at);
	}
	free(buffer);
	return error;
}

/* All dimensions but the first, counted in C order: where each combination stands in
 * the file, in elements of the first dimension. */
struct counter {
	const struct bpk_npy *npy;
	uint64_t index[BPK_NPY_RANK_MAX];
	uint64_t stride[BPK_NPY_RANK_MAX];
	uint64_t place;
};

static void counter_start(struct counter *counter, const struct bpk_npy *npy)
{
	uint64_t stride = 1;

	*counter = (struct counter) { .npy = npy };
	for (size_t i = 1; i < npy->rank; i++) {
		counter->stride[i] = stride;
		stride *= npy->shape[i];
	}
}

static void counter_step(struct counter *counter)
{
	for (size_t i = counter->npy->rank - 1; i > 0; i--) {
		counter->place += counter->stride[i];
		if (++counter->index[i] < counter->npy->shape[i])
			return;
		counter->place -= counter->stride[i] * counter->npy->shape[i];
		counter->index[i] = 0;
	}
}

static int transpose(struct staged *to, const char *from, const struct bpk_npy *npy,
		     size_t element, char *buffer)
{
	uint64_t rows = npy->shape[0], columns = npy->data_size / element / rows;
	int error = 0;

	for (uint64_t row = 0; row < rows && !error; row += BAND) {
		size_t band = rows - row < BAND ? (size_t)(rows - row) : BAND;
		struct counter counter;

		counter_start(&counter, npy);
		for (uint64_t column = 0; column < columns && !error;) {
			uint64_t left = columns - column;
			size_t part = left < ROW_ELEMENTS ? (size_t)left : ROW_ELEMENTS;

			for (size_t j = 0; j < part; j++) {
				const char *source =
					from + (counter.place * rows + row) * element;

				for (size_t i = 0; i < band; i++)
					memcpy(buffer + (i * ROW_ELEMENTS + j) * element,
					       source + i * element, element);
				counter_step(&counter);
			}
			for (size_t i = 0; i < band && !error; i++) {
				char *line = buffer + i * ROW_ELEMENTS * element;

				if (npy->big_endian)
					swap_bytes(line, part, element);
				error = staged_write(to, line, part * element,
						     ((row + i) * columns + column) *
							     element);
			}
			column += part;
		}
	}
	return error;
}

int npy_order(struct staged *to, const struct staged *from, const struct bpk_npy *npy)
{
	size_t element = (size_t)bpk_dtype_element_size(npy->dtype);
	char *mapped, *buffer;
	uint64_t there;
	int error;

	if (!npy->data_size)
		return 0;
	if (!npy->column_major)
		return swap_all(to, from, npy->data_size, element);
	if (npy->data_size > SIZE_MAX)
		return -EFBIG;
	/* Behind its end the mapping has nothing to follow. */
	if (!staged_is_whole(from, &there))
		return -EIO;
	mapped = mmap(NULL, (size_t)npy->data_size, PROT_READ, MAP_SHARED, from->fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	buffer = malloc(BAND * ROW_ELEMENTS * element);
	error = buffer ? transpose(to, mapped, npy, element, buffer) : -ENOMEM;
	free(buffer);
	munmap(mapped, (size_t)npy->data_size);
	return error;
}
