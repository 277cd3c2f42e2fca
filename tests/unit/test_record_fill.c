/*
 * test_record_fill.c - one tensor into one parameter: dtypes, room and odd sizes.
 */
#include "bpk_record.h"
#include "leak.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

TestSuite(record_fill, .fini = leak_check);

static int describe_one(struct bpk_visitor *visitor, void *module)
{
	return bpk_visit_param(visitor, "p", module);
}

/* One tensor of F32 into parameters of all dtypes, under both policies. */
Test(record_fill, dtype_policies)
{
	static const uint64_t shape[] = { 3 };
	static float values[] = { 1.5f, -300.0f, 0.0f };
	struct bpk_param source = {
		.dtype = BPK_DTYPE_F32,
		.shape = shape,
		.rank = 1,
		.data = values,
	};
	struct bpk_load_options options;
	struct bpk_error error = { .message = "" };
	struct bpk_record *record;

	cr_assert_eq(bpk_module_collect(describe_one, &source, &record, NULL), 0);
	bpk_load_options_init(&options);
	for (int d = 0; d < BPK_DTYPE_QFLOAT; d++) {
		enum bpk_dtype dtype = (enum bpk_dtype)d;
		uint8_t buffer[24] = { 0 }, wanted[24] = { 0 };
		struct bpk_param param = {
			.dtype = dtype,
			.shape = shape,
			.rank = 1,
			.data = buffer,
			.size = sizeof(buffer),
		};
		bool small = 3 * bpk_dtype_element_size(dtype) < 12;

		options.dtype_policy = BPK_DTYPE_CAST_TO_MODULE;
		bpk_cast(BPK_DTYPE_F32, values, dtype, wanted, 3);
		cr_expect_eq(
			bpk_module_load(record, describe_one, &param, &options, &error),
			0);
		cr_expect_arr_eq(buffer, wanted, sizeof(wanted), "%s",
				 bpk_dtype_name(dtype));
		cr_expect_eq(param.dtype, dtype);

		options.dtype_policy = BPK_DTYPE_FROM_RECORD;
		cr_expect_eq(
			bpk_module_load(record, describe_one, &param, &options, &error),
			0);
		cr_expect_eq(param.dtype, BPK_DTYPE_F32);
		cr_expect_arr_eq(buffer, values, 12);

		/* Without more room than its own dtype needs. */
		param.dtype = dtype;
		param.size = 0;
		cr_expect_eq(
			bpk_module_load(record, describe_one, &param, &options, &error),
			small ? -EINVAL : 0, "%s", bpk_dtype_name(dtype));
		if (small)
			cr_expect(strstr(error.message,
					 "\"p\": F32 in the record, which is 12 "
					 "bytes, and the buffer ("),
				  "%s", error.message);
	}
	bpk_record_free(record);
}

/* A quantized tensor goes where its scheme is taken over, and is never cast. */
Test(record_fill, quantized)
{
	struct bpk_load_options options;
	struct bpk_error error = { .message = "" };
	struct bpk_record_tensor tensor;
	struct bpk_record *golden, *record;
	uint8_t source[4096], buffer[4096];
	struct bpk_param given, param;
	size_t i = 0;

	cr_assert_eq(bpk_record_load(GOLDEN_QUANTIZED, NULL, &golden, &error), 0, "%s",
		     error.message);
	do
		bpk_record_tensor(golden, i++, &tensor);
	while (tensor.dtype != BPK_DTYPE_QFLOAT);
	cr_assert_leq(tensor.size, sizeof(source));
	memcpy(source, tensor.data, (size_t)tensor.size);
	given = (struct bpk_param) {
		.dtype = BPK_DTYPE_QFLOAT,
		.shape = tensor.shape,
		.rank = tensor.rank,
		.dtype_cbor = tensor.dtype_cbor,
		.dtype_cbor_size = tensor.dtype_cbor_size,
		.data = source,
		.size = tensor.size,
	};
	cr_assert_eq(bpk_module_collect(describe_one, &given, &record, &error), 0, "%s",
		     error.message);
	bpk_load_options_init(&options);
	param = (struct bpk_param) {
		.dtype = BPK_DTYPE_F32,
		.shape = tensor.shape,
		.rank = tensor.rank,
		.data = buffer,
		.size = sizeof(buffer),
	};
	/* How many bytes it is cannot be told later, so the buffer has to be that long.
	 */
	cr_expect_eq(bpk_module_load(record, describe_one, &param, &options, &error),
		     -EINVAL);
	options.dtype_policy = BPK_DTYPE_CAST_TO_MODULE;
	cr_expect_eq(bpk_module_load(record, describe_one, &param, &options, &error),
		     -EINVAL);
	cr_expect(strstr(error.message, "QFloat in the record cannot be cast to F32"),
		  "%s", error.message);
	options.dtype_policy = BPK_DTYPE_FROM_RECORD;
	param.size = tensor.size;
	cr_expect_eq(bpk_module_load(record, describe_one, &param, &options, &error), 0,
		     "%s", error.message);
	cr_expect_eq(param.dtype, BPK_DTYPE_QFLOAT);
	cr_assert_eq(param.dtype_cbor_size, tensor.dtype_cbor_size);
	cr_expect_arr_eq(param.dtype_cbor, tensor.dtype_cbor, tensor.dtype_cbor_size);
	cr_expect_arr_eq(buffer, source, tensor.size);
	/* The same scheme needs no cast. */
	options.dtype_policy = BPK_DTYPE_CAST_TO_MODULE;
	memset(buffer, 0, sizeof(buffer));
	cr_expect_eq(bpk_module_load(record, describe_one, &param, &options, &error), 0);
	cr_expect_arr_eq(buffer, source, tensor.size);
	/* Without a scheme there is none to collect. */
	given.dtype_cbor = NULL;
	bpk_record_free(record);
	record = NULL;
	cr_expect_eq(bpk_module_collect(describe_one, &given, &record, &error), -EINVAL);
	cr_expect_null(record);
	bpk_record_free(golden);
}

/* A pack may say less than the module trusts it to. */
Test(record_fill, odd_sizes)
{
	static const uint64_t shape[] = { 4 };
	struct bpk_tensor_desc desc = {
		.name = "p",
		.name_size = 1,
		.dtype = BPK_DTYPE_F32,
		.shape = shape,
		.rank = 1,
	};
	float buffer[4] = { 0 };
	struct bpk_param param = {
		.dtype = BPK_DTYPE_F32,
		.shape = shape,
		.rank = 1,
		.data = buffer,
	};
	struct bpk_error error = { .message = "" };
	struct bpk_writer *writer;
	struct bpk_record *record;
	void *bytes, *rewritten;
	uint64_t size, again_size;

	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	bpk_writer_allow_odd_sizes(writer, true);
	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, "0123456", 7, NULL), 0);
	cr_assert_eq(bpk_writer_write_new_buffer(writer, NULL, &bytes, &size, NULL), 0);
	bpk_writer_free(writer);
	cr_assert_eq(bpk_record_from_bytes(bytes, (size_t)size, NULL, &record, NULL), 0);
	cr_expect_eq(bpk_module_load(record, describe_one, &param, NULL, &error),
		     -EINVAL);
	cr_expect_str_eq(error.message,
			 "the record does not fit the module: \"p\": 7 bytes in "
			 "the record are not F32 of shape [4]");
	/* It is still carried over. */
	cr_assert_eq(bpk_record_into_bytes(record, &rewritten, &again_size, NULL), 0);
	cr_assert_eq(again_size, size);
	cr_expect_arr_eq(rewritten, bytes, size);
	bpk_record_free(record);
	free(bytes);
	free(rewritten);
}
