/*
 * test_header.c - the first bytes of a file, good and otherwise.
 */
#include "bytes.h"
#include "header.h"
#include "leak.h"

#include <errno.h>

TestSuite(header, .fini = leak_check);

static int parse(const void *bytes, size_t size, uint64_t file_size,
		 struct bpk_header *header, struct bpk_error *error)
{
	uint8_t *head = bytes_copy(bytes, size);
	struct bpk_limits limits;
	int err;

	bpk_limits_init(&limits);
	err = bpk_header_parse(head, size, file_size, &limits, header, error);
	free(head);
	return err;
}

Test(header, accepts)
{
	static const struct {
		const char *label, *bytes;
		size_t size;
		uint64_t file_size;
		uint16_t version;
		uint32_t metadata_size;
		uint64_t data_off;
	} rows[] = {
		{ "empty pack", BYTES("NRUB\1\0\12\0\0\0"), 256, 1, 10, 256 },
		{ "version 0", BYTES("NRUB\0\0\12\0\0\0"), 256, 0, 10, 256 },
		{ "no metadata", BYTES("NRUB\1\0\0\0\0\0"), 10, 1, 0, 256 },
		{ "ends at the alignment", BYTES("NRUB\1\0\366\0\0\0"), 256, 1, 246,
		  256 },
		{ "one byte more", BYTES("NRUB\1\0\367\0\0\0"), 257, 1, 247, 512 },
		{ "the most metadata", BYTES("NRUB\1\0\0\0\100\6"), 104857610, 1,
		  104857600, 104857856 },
		{ "the largest file", BYTES("NRUB\1\0\12\0\0\0"), UINT64_C(100) << 30, 1,
		  10, 256 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		struct bpk_header header = { 9, 9, 9 };

		cr_expect_eq(parse(rows[i].bytes, rows[i].size, rows[i].file_size,
				   &header, &error),
			     0, "%s: %s", rows[i].label, error.message);
		cr_expect_eq(header.version, rows[i].version, "%s", rows[i].label);
		cr_expect_eq(header.metadata_size, rows[i].metadata_size, "%s",
			     rows[i].label);
		cr_expect_eq(header.data_off, rows[i].data_off, "%s", rows[i].label);
	}
}

Test(header, refuses)
{
	static const char zeros[512],
		tar[512] = { [0] = 'f', [257] = 'u', 's', 't', 'a', 'r' };
	static const struct {
		const char *label, *bytes;
		size_t size;
		uint64_t file_size; /* 0: size */
		int err;
		enum bpk_code code;
		uint64_t offset;
		const char *message;
	} rows[] = {
#define NOT(label, literal, message)                                                     \
	{ label,                                                                         \
	  BYTES(literal),                                                                \
	  0,                                                                             \
	  -EBADMSG,                                                                      \
	  BPK_ERR_NOT_BURNPACK,                                                          \
	  0,                                                                             \
	  "not a burnpack: " message }
		NOT("empty", "", "the file is empty"),
		NOT("short", "NRX", "it looks like text"),
		NOT("other", "\357\276\255\336\1\0\12\0\0\0",
		    "it starts with \"\\xef\\xbe\\xad\\xde\" instead of \"NRUB\""),
		NOT("two bytes", "\1\2",
		    "it starts with \"\\x01\\x02\" instead of \"NRUB\""),
		NOT("other order", "BURN\0\1\0\0\0\12",
		    "it looks like a burnpack in the other byte order, which no Burn "
		    "release "
		    "writes"),
		NOT("zip", "PK\3\4\24\0\0\0\0\0\0",
		    "it looks like a zip archive (PyTorch's .pt and NumPy's .npz are "
		    "such)"),
		NOT("safetensors", "\2\0\0\0\0\0\0\0{}",
		    "it looks like a safetensors file"),
		NOT("gguf", "GGUF\3\0\0\0\0\0\0", "it looks like a GGUF model"),
		NOT("gzip", "\37\213\10\0\0\0\0\0\0\3",
		    "it looks like gzip-compressed data: unpack it first"),
		NOT("zstd", "\50\265\57\375\4\130\1\0\0\0",
		    "it looks like zstd-compressed data: unpack it first"),
		NOT("xz", "\3757zXZ\0\0\4\346\326",
		    "it looks like xz-compressed data: unpack it first"),
		NOT("hdf5", "\211HDF\r\n\32\n\0\0", "it looks like an HDF5 file"),
		NOT("npy", "\223NUMPY\1\0\166\0", "it looks like a NumPy .npy array"),
		NOT("pickle", "\200\4\225\0\0\0\0\0\0\0",
		    "it looks like a Python pickle"),
		NOT("elf", "\177ELF\2\1\1\0\0\0",
		    "it looks like an ELF program or library"),
		NOT("mpk", "\202\250metadata\205",
		    "it looks like a Burn record in MessagePack (.mpk)"),
		NOT("json", " {\"tensors\": {}}", "it looks like JSON"),
		NOT("text", "hello, world\n", "it looks like text"),
		NOT("lfs", "version https://git-lfs.github.com/spec/v1\n",
		    "it looks like a Git LFS pointer: fetch the file itself"),
		{ "zeros", zeros, 512, 4096, -EBADMSG, BPK_ERR_NOT_BURNPACK, 0,
		  "not a burnpack: it looks like zeros: a download or a copy that was "
		  "not "
		  "finished" },
		{ "tar", tar, 512, 10240, -EBADMSG, BPK_ERR_NOT_BURNPACK, 0,
		  "not a burnpack: it looks like a tar archive: unpack it first" },
		{ "the magic's start", BYTES("NR"), 0, -ENODATA, BPK_ERR_TRUNCATED, 2,
		  "the file is cut short: the header needs 10 bytes, the file has 2" },
		{ "nine bytes", BYTES("NRUB\1\0\12\0\0"), 0, -ENODATA, BPK_ERR_TRUNCATED,
		  9, "the file is cut short: the header needs 10 bytes, the file has 9" },
		{ "version 2 before all else", BYTES("NRUB\2\0\377\377\377\377"), 0,
		  -EPROTONOSUPPORT, BPK_ERR_VERSION, 4,
		  "the pack has format version 2, this program reads up to 1: use a "
		  "newer "
		  "release of it" },
		{ "too much metadata", BYTES("NRUB\1\0\1\0\100\6"), 0, -EFBIG,
		  BPK_ERR_LIMIT, 6,
		  "the header asks for 104857601 bytes of metadata, the limit is "
		  "104857600" },
		{ "metadata past the end", BYTES("NRUB\1\0\1\0\0\0"), 0, -ENODATA,
		  BPK_ERR_TRUNCATED, 10,
		  "the file is cut short: header and metadata need 11 bytes, the file "
		  "has 10" },
		{ "too large", BYTES("what it is does not matter"),
		  (UINT64_C(100) << 30) + 1, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
		  "the file has 107374182401 bytes, the limit is 107374182400" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .code = BPK_OK };
		struct bpk_header header = { 9, 9, 9 };
		uint64_t file_size = rows[i].file_size ? rows[i].file_size : rows[i].size;
		int err = parse(rows[i].bytes, rows[i].size, file_size, &header, &error);

		cr_expect_eq(err, rows[i].err, "%s: %d", rows[i].label, err);
		cr_expect_eq(error.code, rows[i].code, "%s: %d", rows[i].label,
			     error.code);
		cr_expect_eq(error.offset, rows[i].offset, "%s: %llu", rows[i].label,
			     (unsigned long long)error.offset);
		cr_expect_str_eq(error.message, rows[i].message, "%s: %s", rows[i].label,
				 error.message);
		cr_expect_eq(header.version, 9, "%s: header touched", rows[i].label);
	}
}
