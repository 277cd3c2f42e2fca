/*
 * embed.c - a program that has only the memory half of libbpk: it writes a pack into
 * a buffer and reads it back. nothing_but_memory.sh looks at what it is linked with.
 */
#include "bpk.h"

#include <stdlib.h>
#include <string.h>

static int write_pack(void **ret_pack, uint64_t *ret_size)
{
	static const uint64_t shape[] = { 2, 3 };
	static const uint8_t bytes[24] = { 1, 2, 3 };
	const struct bpk_tensor_desc desc = {
		.name = "layer.weight",
		.name_size = strlen("layer.weight"),
		.dtype = BPK_DTYPE_F32,
		.shape = shape,
		.rank = 2,
	};
	const struct bpk_scalar_value value = { .type = BPK_SCALAR_UINT, .u = 7 };
	struct bpk_writer *writer;
	int r = bpk_writer_new(NULL, &writer);

	if (r == 0)
		r = bpk_writer_add_bytes(writer, &desc, bytes, sizeof(bytes), NULL);
	if (r == 0)
		r = bpk_writer_set_scalar(writer, "epoch", 5, value, NULL);
	if (r == 0)
		r = bpk_writer_set_metadata(writer, "k", 1, "v", 1, NULL);
	if (r == 0)
		r = bpk_writer_write_new_buffer(writer, NULL, ret_pack, ret_size, NULL);
	bpk_writer_free(writer);
	return r;
}

static int read_pack(const void *pack, uint64_t size)
{
	struct bpk_reader *reader;
	const struct bpk_tensor *tensor;
	const struct bpk_scalar *scalar;
	int wrong;

	if (bpk_reader_open_buffer(pack, (size_t)size, NULL, &reader, NULL) < 0)
		return 1;
	tensor = bpk_reader_find_tensor(reader, "layer.weight", strlen("layer.weight"));
	scalar = bpk_reader_find_scalar(reader, "epoch", 5);
	wrong = !tensor || !scalar || bpk_tensor_size(tensor) != 24 ||
		memcmp(bpk_tensor_data(reader, tensor), "\1\2\3", 4) != 0 ||
		bpk_scalar_value(scalar).u != 7 || bpk_reader_fd(reader) != -1;
	bpk_reader_close(reader);
	return wrong;
}

int main(void)
{
	uint64_t size;
	void *pack;
	int wrong;

	if (write_pack(&pack, &size) < 0)
		return 2;
	wrong = read_pack(pack, size);
	free(pack);
	return wrong;
}
