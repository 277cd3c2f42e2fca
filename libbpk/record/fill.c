/*
 * fill.c - one tensor of a record into one parameter of a program: whether it fits, and
 * the copy or cast. Touches a tensor's data in bpk_record_fill() only.
 */
#include "record/record.h"

#include <inttypes.h>
#include <stdio.h>

#define SHAPE_TEXT_SIZE 80

/* [2,3], cut with "..." when it is too long. */
static const char *shape_text(char text[SHAPE_TEXT_SIZE], const uint64_t *shape,
			      size_t rank)
{
	const size_t room = SHAPE_TEXT_SIZE - sizeof(",...]");
	size_t at = 0;

	text[at++] = '[';
	for (size_t i = 0; i < rank; i++) {
		char digits[BPK_DECIMAL_SIZE];
		size_t count = bpk_decimal(shape[i], digits);

		if (i)
			text[at++] = ',';
		if (at + count > room) {
			memcpy(text + at, "...", 3);
			at += 3;
			break;
		}
		memcpy(text + at, digits, count);
		at += count;
	}
	text[at++] = ']';
	text[at] = '\0';
	return text;
}

/* What dtype and shape of @param need, and for QFloat its size. */
static int param_size(const struct bpk_param *param, const char *name, size_t name_size,
		      uint64_t *ret_size, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE];
	uint64_t size = param->size;
	const char *why = NULL;
	int r = 0;

	if (param->rank && !param->shape)
		why = "a rank without a shape";
	else if (param->dtype != BPK_DTYPE_QFLOAT &&
		 !bpk_dtype_element_size(param->dtype))
		why = "there is no such dtype";
	else if (param->dtype != BPK_DTYPE_QFLOAT)
		r = bpk_shape_size(param->dtype, param->shape, param->rank, &size);
	if (!why && r >= 0 && size && !param->data)
		why = "no buffer";
	bpk_quote(quoted, name, name_size);
	if (why)
		return bpk_fail(error, -EINVAL, BPK_ERR_ARGUMENT, BPK_NO_OFFSET,
				"parameter %s: %s", quoted, why);
	if (r < 0)
		return bpk_fail(error, r, BPK_ERR_OVERFLOW, BPK_NO_OFFSET,
				"parameter %s: its size is beyond 64 bits", quoted);
	*ret_size = size;
	return 0;
}

int bpk_record_collect_size(const struct bpk_param *param, const char *name,
			    size_t name_size, uint64_t *ret_size, struct bpk_error *error)
{
	char quoted[BPK_QUOTE_SIZE];
	uint64_t size = 0;
	int r = param_size(param, name, name_size, &size, error);

	if (r < 0)
		return r;
	if (param->size && param->size < size)
		return bpk_fail(error, -EINVAL, BPK_ERR_SIZE_MISMATCH, BPK_NO_OFFSET,
				"parameter %s: its %s of that shape are %" PRIu64
				" bytes, the buffer has %" PRIu64,
				bpk_quote(quoted, name, name_size),
				bpk_dtype_name(param->dtype), size, param->size);
	*ret_size = size;
	return 0;
}

static int misfit(enum bpk_misfit *ret_misfit, enum bpk_misfit which)
{
	*ret_misfit = which;
	return 1;
}

static bool same_shape(const struct bpk_record_tensor *tensor,
		       const struct bpk_param *param)
{
	return tensor->rank == param->rank &&
	       (!param->rank || memcmp(tensor->shape, param->shape,
				       param->rank * sizeof(*param->shape)) == 0);
}

static bool same_scheme(const struct bpk_record_tensor *tensor,
			const struct bpk_param *param)
{
	return param->dtype == tensor->dtype && param->dtype_cbor &&
	       param->dtype_cbor_size == tensor->dtype_cbor_size &&
	       memcmp(param->dtype_cbor, tensor->dtype_cbor, param->dtype_cbor_size) == 0;
}

static int check_room(const struct bpk_record_tensor *tensor,
		      const struct bpk_param *param, uint64_t needed, uint64_t room,
		      enum bpk_misfit *ret_misfit, char reason[RECORD_REASON_SIZE])
{
	bool quantized = tensor->dtype == BPK_DTYPE_QFLOAT;

	/* How long a QFloat is, only its buffer tells. */
	if (quantized ? needed == room : needed <= room)
		return 0;
	snprintf(reason, RECORD_REASON_SIZE,
		 "%s in the record, which is %" PRIu64 " bytes, and the buffer (%s) has "
		 "%" PRIu64,
		 bpk_dtype_name(tensor->dtype), needed, bpk_dtype_name(param->dtype),
		 room);
	return misfit(ret_misfit, BPK_MISFIT_ROOM);
}

int bpk_record_fits(const struct bpk_record_tensor *tensor, const struct bpk_param *param,
		    enum bpk_dtype_policy policy, enum bpk_misfit *ret_misfit,
		    char ret_reason[RECORD_REASON_SIZE], struct bpk_error *error)
{
	char here[SHAPE_TEXT_SIZE], there[SHAPE_TEXT_SIZE];
	bool quantized =
		tensor->dtype == BPK_DTYPE_QFLOAT || param->dtype == BPK_DTYPE_QFLOAT;
	uint64_t own, needed = 0, room;
	int r = param_size(param, tensor->name, tensor->name_size, &needed, error);

	if (r < 0)
		return r;
	room = param->size ? param->size : needed;
	if (!same_shape(tensor, param)) {
		snprintf(ret_reason, RECORD_REASON_SIZE,
			 "shape %s in the record, %s in the module",
			 shape_text(there, tensor->shape, tensor->rank),
			 shape_text(here, param->shape, param->rank));
		return misfit(ret_misfit, BPK_MISFIT_SHAPE);
	}
	if (tensor->dtype != BPK_DTYPE_QFLOAT &&
	    (bpk_shape_size(tensor->dtype, tensor->shape, tensor->rank, &own) < 0 ||
	     own != tensor->size)) {
		snprintf(ret_reason, RECORD_REASON_SIZE,
			 "%" PRIu64 " bytes in the record are not %s of shape %s",
			 tensor->size, bpk_dtype_name(tensor->dtype),
			 shape_text(there, tensor->shape, tensor->rank));
		return misfit(ret_misfit, BPK_MISFIT_SIZE);
	}
	if (policy == BPK_DTYPE_CAST_TO_MODULE && quantized &&
	    !same_scheme(tensor, param)) {
		snprintf(ret_reason, RECORD_REASON_SIZE,
			 "%s in the record cannot be cast to %s",
			 bpk_dtype_name(tensor->dtype), bpk_dtype_name(param->dtype));
		return misfit(ret_misfit, BPK_MISFIT_DTYPE);
	}
	if (policy == BPK_DTYPE_FROM_RECORD || quantized)
		needed = tensor->size;
	return check_room(tensor, param, needed, room, ret_misfit, ret_reason);
}

void bpk_record_fill(const struct bpk_record_tensor *tensor, enum bpk_dtype_policy policy,
		     struct bpk_param *param)
{
	uint64_t element_size = bpk_dtype_element_size(tensor->dtype);
	bool as_is = policy == BPK_DTYPE_FROM_RECORD || tensor->dtype == BPK_DTYPE_QFLOAT;

	if (as_is && tensor->size)
		memcpy(param->data, tensor->data, (size_t)tensor->size);
	else if (!as_is)
		bpk_cast(tensor->dtype, tensor->data, param->dtype, param->data,
			 tensor->size / element_size);
	if (as_is) {
		bool quantized = tensor->dtype == BPK_DTYPE_QFLOAT;

		param->dtype = tensor->dtype;
		param->dtype_cbor = quantized ? tensor->dtype_cbor : NULL;
		param->dtype_cbor_size = quantized ? tensor->dtype_cbor_size : 0;
	}
	if (tensor->has_param_id) {
		param->has_param_id = true;
		param->param_id = tensor->param_id;
	}
}
