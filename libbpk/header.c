/*
 * header.c - the fixed header, and a guess at what a file without it is.
 *
 *	0  4e 52 55 42  magic
 *	4  u16          version, 0 or 1
 *	6  u32          bytes of metadata, which follow at 10
 *
 * All little endian. The data section starts at the next multiple of 256 behind
 * the metadata.
 */
#include "header.h"
#include "error.h"

#include <errno.h>

struct signature {
	size_t off;
	const char *bytes;
	size_t size;
	const char *what;
};

/* Looked at in this order; the first that fits names the file. Escapes are octal,
 * which end after three digits. */
static const struct signature signatures[] = {
#define BYTES(text) text, sizeof(text) - 1
	{ 0, BYTES("BURN"),
	  "a burnpack in the other byte order, which no Burn release writes" },
	{ 0, BYTES("PK\3\4"), "a zip archive (PyTorch's .pt and NumPy's .npz are such)" },
	{ 0, BYTES("PK\5\6"), "an empty zip archive" },
	{ 0, BYTES("GGUF"), "a GGUF model" },
	{ 0, BYTES("\211HDF\r\n\032\n"), "an HDF5 file" },
	{ 0, BYTES("\223NUMPY"), "a NumPy .npy array" },
	{ 0, BYTES("\177ELF"), "an ELF program or library" },
	{ 0, BYTES("\037\213"), "gzip-compressed data: unpack it first" },
	{ 0, BYTES("\050\265\057\375"), "zstd-compressed data: unpack it first" },
	{ 0, BYTES("\3757zXZ\0"), "xz-compressed data: unpack it first" },
	{ 0, BYTES("BZh"), "bzip2-compressed data: unpack it first" },
	{ 257, BYTES("ustar"), "a tar archive: unpack it first" },
	{ 0, BYTES("\202\250metadata"), "a Burn record in MessagePack (.mpk)" },
	{ 0, BYTES("\200\2"), "a Python pickle (an old PyTorch .pt is one)" },
	{ 0, BYTES("\200\3"), "a Python pickle" },
	{ 0, BYTES("\200\4"), "a Python pickle" },
	{ 0, BYTES("\200\5"), "a Python pickle" },
	{ 0, BYTES("version https://git-lfs"),
	  "a Git LFS pointer: fetch the file itself" },
#undef BYTES
};

/* A u64 size, then that many bytes of JSON. */
static bool looks_safetensors(const uint8_t *head, size_t size, uint64_t file_size)
{
	uint64_t json_size;

	if (size < 10 || head[8] != '{')
		return false;
	json_size = bpk_get_le32(head) | (uint64_t)bpk_get_le32(head + 4) << 32;
	return json_size >= 2 && json_size <= file_size - 8;
}

static bool looks_zero(const uint8_t *head, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (head[i])
			return false;
	return true;
}

/* Nothing but printable ASCII and white space, or UTF-8 cut anywhere. */
static bool looks_text(const uint8_t *head, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((head[i] < 0x20 && !strchr("\t\n\r\f", head[i])) || head[i] == 0x7f)
			return false;
	for (size_t cut = 0; cut < 4 && cut < size; cut++)
		if (bpk_utf8_valid((const char *)head, size - cut))
			return true;
	return false;
}

static const char *looks_like(const uint8_t *head, size_t size, uint64_t file_size)
{
	size_t at = 0;

	for (size_t i = 0; i < sizeof(signatures) / sizeof(*signatures); i++) {
		const struct signature *s = &signatures[i];

		if (size >= s->off + s->size && !memcmp(head + s->off, s->bytes, s->size))
			return s->what;
	}
	if (looks_safetensors(head, size, file_size))
		return "a safetensors file";
	if (looks_zero(head, size))
		return "zeros: a download or a copy that was not finished";
	if (!looks_text(head, size))
		return NULL;
	while (at < size && strchr(" \t\n\r", head[at]))
		at++;
	if (at < size && (head[at] == '{' || head[at] == '['))
		return "JSON";
	return "text";
}

static int refuse_magic(const uint8_t *head, size_t size, uint64_t file_size,
			struct bpk_error *error)
{
	const char *what = looks_like(head, size, file_size);
	char quoted[BPK_QUOTE_SIZE];

	if (what)
		return bpk_fail(error, -EBADMSG, BPK_ERR_NOT_BURNPACK, 0,
				"not a burnpack: it looks like %s", what);
	bpk_quote(quoted, (const char *)head, size < 4 ? size : 4);
	return bpk_fail(error, -EBADMSG, BPK_ERR_NOT_BURNPACK, 0,
			"not a burnpack: it starts with %s instead of \"NRUB\"", quoted);
}

int bpk_header_parse(const void *head, size_t head_size, uint64_t file_size,
		     const struct bpk_limits *limits, struct bpk_header *ret_header,
		     struct bpk_error *error)
{
	static const uint8_t magic[4] = { 'N', 'R', 'U', 'B' };
	const uint8_t *p = head;
	struct bpk_header header;
	size_t magic_size = head_size < sizeof(magic) ? head_size : sizeof(magic);

	if (file_size > limits->file_size)
		return bpk_fail(error, -EFBIG, BPK_ERR_LIMIT, BPK_NO_OFFSET,
				"the file has %llu bytes, the limit is %llu",
				(unsigned long long)file_size,
				(unsigned long long)limits->file_size);
	if (!file_size)
		return bpk_fail(error, -EBADMSG, BPK_ERR_NOT_BURNPACK, 0,
				"not a burnpack: the file is empty");
	if (memcmp(p, magic, magic_size))
		return refuse_magic(p, head_size, file_size, error);
	if (head_size < BPK_HEADER_SIZE)
		return bpk_fail(
			error, -ENODATA, BPK_ERR_TRUNCATED, file_size,
			"the file is cut short: the header needs %u bytes, the file "
			"has %llu",
			BPK_HEADER_SIZE, (unsigned long long)file_size);
	header.version = bpk_get_le16(p + 4);
	header.metadata_size = bpk_get_le32(p + 6);
	if (header.version > BPK_FORMAT_VERSION)
		return bpk_fail(
			error, -EPROTONOSUPPORT, BPK_ERR_VERSION, 4,
			"the pack has format version %u, this program reads up to %d: "
			"use a newer release of it",
			header.version, BPK_FORMAT_VERSION);
	if (header.metadata_size > limits->metadata_size)
		return bpk_fail(
			error, -EFBIG, BPK_ERR_LIMIT, 6,
			"the header asks for %u bytes of metadata, the limit is %llu",
			header.metadata_size, (unsigned long long)limits->metadata_size);
	if (header.metadata_size > file_size - BPK_HEADER_SIZE)
		return bpk_fail(
			error, -ENODATA, BPK_ERR_TRUNCATED, file_size,
			"the file is cut short: header and metadata need %llu bytes, "
			"the file has %llu",
			(unsigned long long)header.metadata_size + BPK_HEADER_SIZE,
			(unsigned long long)file_size);
	/* Both are 32 bits wide: cannot overflow. */
	bpk_align_u64((uint64_t)BPK_HEADER_SIZE + header.metadata_size, BPK_ALIGNMENT,
		      &header.data_off);
	*ret_header = header;
	return 0;
}
