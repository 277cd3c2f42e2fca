/*
 * convert_scale.c - the safetensors view of a pack of 100 000 tensors takes memory for
 * the header and 16 bytes a tensor, and not much more than four times the time of a
 * fourth of it. Prints what it took.
 *
 * Exit status 77 (skipped) with a sanitizer, which has memory and time of its own.
 */
#include "convert/safetensors.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TENSORS 100000
#define ROUNDS 5
#define RATIO_MAX 9.0  /* n log n has 4.5, n squared 16 */
#define SLACK_KIB 4096 /* what malloc() keeps of what was freed */
#define SKIPPED 77

struct pack {
	size_t count;
	char name[64];
	uint64_t shape[2];
};

/* In the order of names, as in a pack; in the pack they lie the other way round. */
static int describe(void *context, size_t index, struct bpk_safetensors_desc *ret_desc)
{
	static const enum bpk_dtype dtypes[] = { BPK_DTYPE_F32, BPK_DTYPE_BF16,
						 BPK_DTYPE_U8, BPK_DTYPE_F64,
						 BPK_DTYPE_BOOL_U8 };
	struct pack *pack = context;
	enum bpk_dtype dtype = dtypes[index % 5];

	pack->shape[0] = index % 512;
	pack->shape[1] = 768;
	*ret_desc = (struct bpk_safetensors_desc) {
		.name = pack->name,
		.name_size =
			(size_t)snprintf(pack->name, sizeof(pack->name),
					 "model.layers.%08zu.attention.weight", index),
		.dtype = dtype,
		.shape = pack->shape,
		.rank = 2,
		.size = pack->shape[0] * 768 * bpk_dtype_element_size(dtype),
		.order = pack->count - index,
	};
	return 0;
}

static struct bpk_safetensors *render(size_t count, double *ret_seconds)
{
	struct pack pack = { .count = count };
	const struct bpk_safetensors_source source = {
		.tensor_count = count,
		.describe = describe,
		.context = &pack,
	};
	struct bpk_safetensors *layout = NULL;
	clock_t start = clock();

	if (bpk_safetensors_render(&source, &layout, NULL) < 0)
		exit(1);
	*ret_seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
	return layout;
}

static double fastest(size_t count)
{
	double best = 1e9, seconds;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		bpk_safetensors_free(render(count, &seconds));
		if (seconds < best)
			best = seconds;
	}
	return best;
}

/* Of this program alone: getrusage(2) counts who started it, too. */
static long peak_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld kB", &kib) != 1)
			kib = -1;
	if (kib < 0) {
		fprintf(stderr, "no VmHWM in /proc/self/status\n");
		exit(1);
	}
	fclose(file);
	return kib;
}

int main(void)
{
	struct bpk_safetensors *layout;
	double seconds, few, many;
	long before, taken, allowed;

	if (getenv("BPK_TEST_SANITIZED"))
		return SKIPPED;
	/* meson may have asked for all that is allocated to be filled. */
	mallopt(M_PERTURB, 0);
	bpk_safetensors_free(render(10, &seconds));
	before = peak_kib();
	layout = render(TENSORS, &seconds);
	taken = peak_kib() - before;
	allowed = (long)(layout->header_size + 16 * TENSORS) / 1024 + SLACK_KIB;
	printf("%" PRIu64 " bytes of header, %ld KiB taken, %ld allowed\n",
	       layout->header_size, taken, allowed);
	bpk_safetensors_free(layout);

	/* New pages cost as the machine likes it: let malloc() give the same again. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	few = fastest(TENSORS / 4);
	many = fastest(TENSORS);
	printf("%.1f ms, %.1f ms for a fourth\n", many * 1e3, few * 1e3);
	return taken > allowed || many > RATIO_MAX * few;
}
