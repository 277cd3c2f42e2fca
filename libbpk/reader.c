/*
 * reader.c - the public view of a pack. Knows where tensors lie; makes no system
 * call and touches no tensor data.
 *
 * Invariant, once open: data_off <= start <= end <= file_size for each tensor.
 */
#include "reader.h"
#include "dtype.h"
#include "error.h"

#include <errno.h>

/* Make of a descriptor's data_offsets places in the file; say why not. */
static int check_range(struct bpk_tensor *tensor, uint64_t off, uint64_t data_off,
		       const struct bpk_limits *limits, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE];
	uint64_t end;

	if (tensor->end < tensor->start)
		return bpk_fail(
			error, -EBADMSG, BPK_ERR_MALFORMED, off,
			"tensor %s: its data ends at %llu, before it starts at %llu",
			bpk_quote(quoted, tensor->entry.name, tensor->entry.name_size),
			(unsigned long long)tensor->end,
			(unsigned long long)tensor->start);
	if (!bpk_add_u64(tensor->end, data_off, &end))
		return bpk_fail(
			error, -EBADMSG, BPK_ERR_MALFORMED, off,
			"tensor %s: its data_offsets are beyond 64 bits",
			bpk_quote(quoted, tensor->entry.name, tensor->entry.name_size));
	tensor->end = end;
	tensor->start += data_off;
	if (tensor->end - tensor->start > limits->tensor_size)
		return bpk_fail(
			error, -EFBIG, BPK_ERR_LIMIT, off,
			"tensor %s has %llu bytes, the limit is %llu",
			bpk_quote(quoted, tensor->entry.name, tensor->entry.name_size),
			(unsigned long long)(tensor->end - tensor->start),
			(unsigned long long)limits->tensor_size);
	return 0;
}

/* One pass over what can never be right, so that a damaged descriptor is not
 * taken for a file that is cut short. */
static int check_ranges(struct bpk_reader *reader, const struct bpk_limits *limits,
			struct bpk_error *error)
{
	for (size_t i = 0; i < reader->meta.tensor_count; i++) {
		struct bpk_tensor *tensor = &reader->meta.tensors[i];
		/* Of the name, which lies right before the descriptor. */
		uint64_t off =
			BPK_HEADER_SIZE + (uint64_t)((const uint8_t *)tensor->entry.name -
						     reader->metadata);
		int err =
			check_range(tensor, off, reader->header.data_off, limits, error);

		if (err)
			return err;
	}
	return 0;
}

static int check_complete(const struct bpk_reader *reader, struct bpk_error *error)
{
	const struct bpk_tensor *first = NULL;
	uint64_t needed = 0;
	char quoted[BPK_QUOTE_SIZE];

	for (size_t i = 0; i < reader->meta.tensor_count; i++) {
		const struct bpk_tensor *tensor = &reader->meta.tensors[i];

		if (tensor->end > needed)
			needed = tensor->end;
		if (tensor->end > reader->source.file_size &&
		    (!first || tensor->start < first->start))
			first = tensor;
	}
	if (!first)
		return 0;
	return bpk_fail(
		error, -ENODATA, BPK_ERR_TRUNCATED, reader->source.file_size,
		"the file is cut short: it needs %llu bytes, the file has %llu; the "
		"first tensor that is missing is %s",
		(unsigned long long)needed, (unsigned long long)reader->source.file_size,
		bpk_quote(quoted, first->entry.name, first->entry.name_size));
}

int bpk_reader_parse(const struct bpk_source *source, const struct bpk_header *header,
		     uint8_t *metadata, const struct bpk_limits *limits,
		     struct bpk_reader **ret_reader, struct bpk_error *error)
{
	struct bpk_reader *reader;
	int err;

	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"out of memory while opening the pack");
	reader->source = *source;
	reader->header = *header;
	reader->metadata = metadata;
	reader->meta.allocate = source->allocate;
	err = bpk_meta_parse(&reader->meta, metadata, header->metadata_size, limits,
			     error);
	if (!err)
		err = check_ranges(reader, limits, error);
	if (!err)
		err = check_complete(reader, error);
	if (err) {
		bpk_meta_done(&reader->meta);
		free(reader);
		return err;
	}
	*ret_reader = reader;
	return 0;
}

BPK_EXPORT int bpk_reader_open_buffer(const void *data, size_t size,
				      const struct bpk_limits *limits,
				      struct bpk_reader **ret_reader,
				      struct bpk_error *error)
{
	struct bpk_source source = { .data = data, .file_size = size, .fd = -1 };
	struct bpk_limits defaults;
	struct bpk_header header;
	uint8_t *metadata;
	int err;

	if (!limits) {
		bpk_limits_init(&defaults);
		limits = &defaults;
	}
	err = bpk_header_parse(data, size < BPK_HEADER_PEEK ? size : BPK_HEADER_PEEK,
			       size, limits, &header, error);
	if (err)
		return err;
	metadata = malloc(header.metadata_size ? header.metadata_size : 1);
	if (!metadata)
		return bpk_fail(error, -ENOMEM, BPK_ERR_MEMORY, BPK_NO_OFFSET,
				"no memory for %u bytes of metadata",
				header.metadata_size);
	memcpy(metadata, (const uint8_t *)data + BPK_HEADER_SIZE, header.metadata_size);
	err = bpk_reader_parse(&source, &header, metadata, limits, ret_reader, error);
	if (err)
		free(metadata);
	return err;
}

BPK_EXPORT void bpk_reader_close(struct bpk_reader *reader)
{
	if (!reader)
		return;
	if (reader->source.release)
		reader->source.release(&reader->source);
	bpk_meta_done(&reader->meta);
	free(reader->metadata);
	free(reader);
}

BPK_EXPORT int bpk_reader_fd(const struct bpk_reader *reader)
{
	return reader->source.fd;
}

BPK_EXPORT uint64_t bpk_reader_file_size(const struct bpk_reader *reader)
{
	return reader->source.file_size;
}

BPK_EXPORT const void *bpk_reader_data(const struct bpk_reader *reader)
{
	return reader->source.data;
}

BPK_EXPORT uint64_t bpk_reader_metadata_size(const struct bpk_reader *reader)
{
	return reader->header.metadata_size;
}

BPK_EXPORT uint64_t bpk_reader_data_off(const struct bpk_reader *reader)
{
	return reader->header.data_off;
}

BPK_EXPORT uint16_t bpk_reader_format_version(const struct bpk_reader *reader)
{
	return reader->header.version;
}

BPK_EXPORT size_t bpk_reader_tensor_count(const struct bpk_reader *reader)
{
	return reader->meta.tensor_count;
}

BPK_EXPORT const struct bpk_tensor *bpk_reader_tensor(const struct bpk_reader *reader,
						      size_t index)
{
	return index < reader->meta.tensor_count ? &reader->meta.tensors[index] : NULL;
}

BPK_EXPORT const struct bpk_tensor *
bpk_reader_find_tensor(const struct bpk_reader *reader, const char *name,
		       size_t name_size)
{
	return bpk_index_find(reader->meta.tensors, reader->meta.tensor_count,
			      sizeof(*reader->meta.tensors), name, name_size);
}

BPK_EXPORT size_t bpk_reader_scalar_count(const struct bpk_reader *reader)
{
	return reader->meta.scalar_count;
}

BPK_EXPORT const struct bpk_scalar *bpk_reader_scalar(const struct bpk_reader *reader,
						      size_t index)
{
	return index < reader->meta.scalar_count ? &reader->meta.scalars[index] : NULL;
}

BPK_EXPORT const struct bpk_scalar *
bpk_reader_find_scalar(const struct bpk_reader *reader, const char *name,
		       size_t name_size)
{
	return bpk_index_find(reader->meta.scalars, reader->meta.scalar_count,
			      sizeof(*reader->meta.scalars), name, name_size);
}

BPK_EXPORT size_t bpk_reader_metadata_count(const struct bpk_reader *reader)
{
	return reader->meta.entry_count;
}

BPK_EXPORT const struct bpk_metadata *bpk_reader_metadata(const struct bpk_reader *reader,
							  size_t index)
{
	return index < reader->meta.entry_count ? &reader->meta.entries[index] : NULL;
}

BPK_EXPORT const struct bpk_metadata *
bpk_reader_find_metadata(const struct bpk_reader *reader, const char *key,
			 size_t key_size)
{
	return bpk_index_find(reader->meta.entries, reader->meta.entry_count,
			      sizeof(*reader->meta.entries), key, key_size);
}

BPK_EXPORT const void *bpk_reader_extra(const struct bpk_reader *reader, size_t *ret_size,
					size_t *ret_count)
{
	*ret_size = reader->meta.extra_size;
	*ret_count = reader->meta.extra_count;
	return reader->meta.extra;
}

BPK_EXPORT const char *bpk_tensor_name(const struct bpk_tensor *tensor, size_t *ret_size)
{
	*ret_size = tensor->entry.name_size;
	return tensor->entry.name;
}

BPK_EXPORT enum bpk_dtype bpk_tensor_dtype(const struct bpk_tensor *tensor)
{
	return (enum bpk_dtype)tensor->dtype;
}

BPK_EXPORT const void *bpk_tensor_dtype_cbor(const struct bpk_tensor *tensor,
					     size_t *ret_size)
{
	*ret_size = tensor->dtype_size;
	return tensor->dtype_cbor;
}

BPK_EXPORT size_t bpk_tensor_dtype_text(const struct bpk_tensor *tensor, char *buffer,
					size_t size)
{
	return bpk_dtype_text((enum bpk_dtype)tensor->dtype, tensor->dtype_cbor,
			      tensor->dtype_size, buffer, size);
}

BPK_EXPORT size_t bpk_tensor_rank(const struct bpk_tensor *tensor)
{
	return tensor->rank;
}

BPK_EXPORT size_t bpk_tensor_shape(const struct bpk_tensor *tensor, uint64_t *ret_shape,
				   size_t count)
{
	struct bpk_shape_walk walk = { 0 };

	for (size_t i = 0; i < count && bpk_meta_next_dim(tensor, &walk, &ret_shape[i]);
	     i++)
		;
	return tensor->rank;
}

BPK_EXPORT bool bpk_tensor_param_id(const struct bpk_tensor *tensor,
				    uint64_t *ret_param_id)
{
	if (tensor->has_param_id)
		*ret_param_id = tensor->param_id;
	return tensor->has_param_id;
}

BPK_EXPORT uint64_t bpk_tensor_size(const struct bpk_tensor *tensor)
{
	return tensor->end - tensor->start;
}

BPK_EXPORT uint64_t bpk_tensor_off(const struct bpk_tensor *tensor)
{
	return tensor->start;
}

BPK_EXPORT const void *bpk_tensor_data(const struct bpk_reader *reader,
				       const struct bpk_tensor *tensor)
{
	return (const uint8_t *)reader->source.data + tensor->start;
}

BPK_EXPORT const void *bpk_tensor_extra(const struct bpk_tensor *tensor, size_t *ret_size,
					size_t *ret_count)
{
	*ret_size = tensor->extra_size;
	*ret_count = tensor->extra_count;
	return tensor->extra;
}

BPK_EXPORT const char *bpk_scalar_name(const struct bpk_scalar *scalar, size_t *ret_size)
{
	*ret_size = scalar->entry.name_size;
	return scalar->entry.name;
}

BPK_EXPORT struct bpk_scalar_value bpk_scalar_value(const struct bpk_scalar *scalar)
{
	return scalar->value;
}

BPK_EXPORT const char *bpk_metadata_key(const struct bpk_metadata *metadata,
					size_t *ret_size)
{
	*ret_size = metadata->entry.name_size;
	return metadata->entry.name;
}

BPK_EXPORT const char *bpk_metadata_value(const struct bpk_metadata *metadata,
					  size_t *ret_size)
{
	*ret_size = metadata->value_size;
	return metadata->value;
}

BPK_EXPORT void bpk_tensor_describe(const struct bpk_tensor *tensor, uint64_t *shape,
				    struct bpk_tensor_desc *ret_desc)
{
	struct bpk_tensor_desc desc = {
		.dtype = bpk_tensor_dtype(tensor),
		.shape = shape,
		.rank = bpk_tensor_rank(tensor),
	};

	bpk_tensor_shape(tensor, shape, desc.rank);
	desc.name = bpk_tensor_name(tensor, &desc.name_size);
	desc.dtype_cbor = bpk_tensor_dtype_cbor(tensor, &desc.dtype_cbor_size);
	desc.has_param_id = bpk_tensor_param_id(tensor, &desc.param_id);
	desc.extra = bpk_tensor_extra(tensor, &desc.extra_size, &desc.extra_count);
	*ret_desc = desc;
}
