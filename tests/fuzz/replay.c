/*
 * replay.c - the main of a fuzz target in a normal build: gives it every file
 * named on the command line, and every file below every folder named there.
 * Fails when there is none, so that a corpus that moved away is noticed.
 */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned int replayed;

static int replay(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	/* Exactly as large as the file, so that a sanitizer sees the end. */
	size_t size = (size_t)st->st_size;
	uint8_t *data;
	FILE *file;

	(void)ftw;
	if (type != FTW_F)
		return type == FTW_DNR || type == FTW_NS;
	data = malloc(size ? size : 1);
	file = fopen(path, "rb");
	if (!data || !file || fread(data, 1, size, file) != size) {
		perror(path);
		return 1;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed++;
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (nftw(argv[i], replay, 16, FTW_PHYS)) {
			fprintf(stderr, "%s: cannot replay\n", argv[i]);
			return 1;
		}
	}
	printf("%u inputs\n", replayed);
	return replayed ? 0 : 1;
}
