/*
 * reading.c - see reading.h.
 */
#include "reading.h"
#include "base.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* libfuse puts the header of the reply in front. */
#define PIECES_MAX (IOV_MAX - 1)

struct piece {
	size_t size;
	const char *mapped;    /* in the pack, never followed here */
	uint64_t off;	       /* in the pack or the staged file */
	struct staged *staged; /* owned reference */
	size_t there;	       /* of the staged file, when this was named */
	unsigned cuts;	       /* of the staged file then */
	char *copy;	       /* owned; the bytes, once they are read */
};

void reading_init(struct reading *reading, uint64_t off, size_t size)
{
	*reading = (struct reading) { .off = off, .size = size };
}

void reading_done(struct reading *reading)
{
	uint64_t mapped = 0;
	size_t count = 0;

	for (size_t i = 0; i < reading->count; i++) {
		const struct piece *piece = &reading->pieces[i];

		if (reading->iov && piece->mapped) {
			mapped += piece->size;
			count++;
		}
		staged_unref(piece->staged);
		free(piece->copy);
	}
	if (count)
		pack_handed(reading->pack, count, mapped);
	pack_unref(reading->pack);
	free(reading->pieces);
	free(reading->iov);
	*reading = (struct reading) { 0 };
}

bool reading_full(const struct reading *reading)
{
	return reading->used == reading->size;
}

/* Make room for what is wanted of the next @size bytes: *@ret_piece, whose size is
 * set, or NULL when that is nothing; *@ret_skip bytes of them come before. */
static int add(struct reading *reading, uint64_t size, struct piece **ret_piece,
	       uint64_t *ret_skip)
{
	uint64_t start = reading->at, skip = 0;
	struct piece *piece;

	*ret_piece = NULL;
	if (!bpk_add_u64(start, size, &reading->at))
		reading->at = UINT64_MAX;
	if (!size || reading->at <= reading->off || reading_full(reading))
		return 0;
	if (start < reading->off)
		skip = reading->off - start;
	size -= skip;
	if (size > reading->size - reading->used)
		size = reading->size - reading->used;
	if (bpk_grow((void **)&reading->pieces, &reading->capacity, reading->count + 1,
		     sizeof(*reading->pieces)))
		return -ENOMEM;
	piece = &reading->pieces[reading->count];
	*piece = (struct piece) { .size = (size_t)size };
	reading->count++;
	reading->used += (size_t)size;
	*ret_piece = piece;
	*ret_skip = skip;
	return 0;
}

int reading_add_text(struct reading *reading, const char *text, uint64_t size)
{
	struct piece *piece;
	uint64_t skip;
	int error = add(reading, size, &piece, &skip);

	if (error || !piece)
		return error;
	piece->copy = malloc(piece->size);
	if (!piece->copy)
		return -ENOMEM;
	memcpy(piece->copy, text + skip, piece->size);
	return 0;
}

int reading_add_pack(struct reading *reading, struct pack *pack, const char *data,
		     uint64_t pack_off, uint64_t size)
{
	struct piece *piece;
	uint64_t skip;
	int error = add(reading, size, &piece, &skip);

	if (error || !piece)
		return error;
	if (!reading->pack)
		reading->pack = pack_ref(pack);
	piece->mapped = data + skip;
	piece->off = pack_off + skip;
	return 0;
}

int reading_add_staged(struct reading *reading, struct staged *staged, uint64_t size)
{
	uint64_t skip, end = staged_size(staged);
	struct piece *piece;
	int error = add(reading, size, &piece, &skip);

	if (error || !piece)
		return error;
	piece->staged = staged_ref(staged);
	piece->off = skip;
	if (end > skip)
		piece->there =
			end - skip < piece->size ? (size_t)(end - skip) : piece->size;
	piece->cuts = __atomic_load_n(&staged->cuts, __ATOMIC_RELAXED);
	return 0;
}

/* Read a piece from @fd to @to; at the end of the file the rest is left as it is,
 * *@ret_done bytes were there. */
static int fetch(const struct piece *piece, int fd, char *to, size_t *ret_done)
{
	size_t done = 0;

	while (done < piece->size) {
		ssize_t got = pread(fd, to + done, piece->size - done,
				    (off_t)(piece->off + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		done += (size_t)got;
	}
	*ret_done = done;
	return 0;
}

/* Zeros stand for what an edit has taken away since. What went without one is lost, and
 * that is said. */
static int fetch_staged(struct piece *piece, char *to)
{
	size_t done = 0;
	int error = fetch(piece, piece->staged->fd, to, &done);

	if (!error && done < piece->there &&
	    __atomic_load_n(&piece->staged->cuts, __ATOMIC_SEQ_CST) == piece->cuts)
		error = -EIO;
	if (!error)
		memset(to + done, 0, piece->size - done);
	return error;
}

/* All in one buffer. */
static int gather(struct reading *reading)
{
	char *buffer = malloc(reading->used), *to = buffer;
	int error = buffer ? 0 : -ENOMEM;

	for (size_t i = 0; i < reading->count && !error; i++) {
		struct piece *piece = &reading->pieces[i];

		if (piece->copy) {
			memcpy(to, piece->copy, piece->size);
		} else if (piece->staged) {
			error = fetch_staged(piece, to);
		} else {
			size_t done = 0;

			error = fetch(piece, bpk_reader_fd(reading->pack->reader), to,
				      &done);
			if (!error && done < piece->size)
				error = -EIO;
		}
		to += piece->size;
	}
	if (error) {
		free(buffer);
		return error;
	}
	for (size_t i = 0; i < reading->count; i++) {
		staged_unref(reading->pieces[i].staged);
		free(reading->pieces[i].copy);
	}
	reading->pieces[0] = (struct piece) { .size = reading->used, .copy = buffer };
	reading->count = 1;
	return 0;
}

/*
 * Has the pack still all that is named of it? Of the page in which a truncated file
 * ends, the mapping shows zeros behind the end, and no copy of them fails: a reader
 * must not take them for a tensor's. The pages behind that one fail by themselves,
 * also when the file is cut between this look and the kernel's copy.
 */
static int check_pack(const struct reading *reading)
{
	uint64_t end = 0;
	struct stat now;

	for (size_t i = 0; i < reading->count; i++) {
		const struct piece *piece = &reading->pieces[i];

		if (piece->mapped && piece->off + piece->size > end)
			end = piece->off + piece->size;
	}
	if (end && (fstat(bpk_reader_fd(reading->pack->reader), &now) < 0 ||
		    (uint64_t)now.st_size < end))
		return -EIO;
	return 0;
}

int reading_finish(struct reading *reading, const struct iovec **ret_iov, int *ret_count)
{
	int error = reading->count > PIECES_MAX ? gather(reading) : check_pack(reading);

	for (size_t i = 0; i < reading->count && !error; i++) {
		struct piece *piece = &reading->pieces[i];

		if (!piece->staged)
			continue;
		piece->copy = malloc(piece->size);
		error = piece->copy ? fetch_staged(piece, piece->copy) : -ENOMEM;
	}
	if (error)
		return error;
	reading->iov = reallocarray(NULL, reading->count ? reading->count : 1,
				    sizeof(*reading->iov));
	if (!reading->iov)
		return -ENOMEM;
	for (size_t i = 0; i < reading->count; i++) {
		const struct piece *piece = &reading->pieces[i];
		const char *bytes = piece->copy ? piece->copy : piece->mapped;

		memcpy(&reading->iov[i].iov_base, &bytes, sizeof(bytes));
		reading->iov[i].iov_len = piece->size;
	}
	*ret_iov = reading->iov;
	*ret_count = (int)reading->count;
	return 0;
}
