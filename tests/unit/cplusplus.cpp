// The public headers in C++: included twice, linked with the shared library as a user would.
#include "bpk.h"
#include "bpk.h"
#include "bpk_record.h"
#include "bpk_record.h"

#include <cstdlib>
#include <cstring>

int main()
{
	bpk_writer *writer = nullptr;
	bpk_reader *reader = nullptr;
	bpk_error error = {};
	bpk_tensor_desc desc = {};
	void *pack = nullptr;
	uint64_t size = 0, one = 1;
	float single = 0;
	int r;

	desc.name = "t";
	desc.name_size = 1;
	desc.dtype = BPK_DTYPE_U8;
	desc.shape = &one;
	desc.rank = 1;
	if (!std::strlen(bpk_version()) || bpk_writer_new(nullptr, &writer) < 0)
		return 1;
	r = bpk_writer_add_bytes(writer, &desc, "x", 1, &error);
	if (r == 0)
		r = bpk_writer_write_new_buffer(writer, nullptr, &pack, &size, &error);
	if (r == 0)
		r = bpk_reader_open_buffer(pack, static_cast<size_t>(size), nullptr,
					   &reader, &error);
	if (r == 0 && bpk_reader_tensor_count(reader) != 1)
		r = -1;
	if (r == 0)
		r = bpk_cast(BPK_DTYPE_U8, "x", BPK_DTYPE_F32, &single, 1);
	if (r == 0 && single != 'x')
		r = -1;
	bpk_reader_close(reader);
	bpk_writer_free(writer);
	std::free(pack);
	return r < 0;
}
