/*
 * bpk_record.h - training state in burnpack files, the way Burn keeps it: what a module,
 * an optimizer and a learning-rate scheduler are, and a folder of their checkpoints.
 *
 * A record is what is kept of one of them: tensors, scalars and metadata by name, in
 * memory or over a pack. Which of the three it is, only its names tell:
 *
 *   module      tensors named by the dotted path of the module they belong to
 *   optimizer   "{param_id}.{field}" tensors and scalars, "{param_id}.__rank",
 *               and metadata "{param_id}" that holds the module path
 *   scheduler   scalars only; a composed scheduler's child i lies under "i."
 *
 * The conventions are those of bpk.h. Names that a program has itself (of its modules,
 * parameters, fields) are C strings here; names that come from a pack have a size.
 * Elements lie in a caller's buffers as they do in a pack: little endian, without gaps,
 * row-major, at any alignment.
 */
#ifndef BPK_RECORD_H
#define BPK_RECORD_H

#include "bpk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Casts -------------------------------------------------------------------- */

/**
 * Cast @count elements of dtype @from at @source to dtype @to at @target; the two may
 * not overlap. Never fails on a value:
 *
 *   to a float        to the nearest one, ties to even; too large is infinite. A NaN
 *                     stays one, quiet, with its sign and the first bits of its payload
 *   float to integer  towards zero; what is out of range becomes the nearest end of it,
 *                     NaN becomes 0 (Rust's `as`)
 *   integer to one    the low bits in two's complement (Rust's `as`)
 *   to a Bool         what is not 0 is true (so a NaN is), stored as 1
 *   from a Bool       0 or 1
 *
 * Between equal dtypes, and F32 and Flex32, bytes are copied as they are. Returns 0, or
 * -EINVAL when one is BPK_DTYPE_QFLOAT (which has no elements of one size) or no dtype.
 * Any thread.
 */
int bpk_cast(enum bpk_dtype from, const void *source, enum bpk_dtype to, void *target,
	     uint64_t count);

/* Records ------------------------------------------------------------------ */

/* One record belongs to one thread at a time; loading from one changes nothing in it, so
 * any number of threads may do that at once. */
struct bpk_record;

/** A new, empty record. Errors: -ENOMEM. */
int bpk_record_new(struct bpk_record **ret_record);
/** Free @record and what is borrowed from it. NULL is accepted. */
void bpk_record_free(struct bpk_record *record);

/**
 * Open the record at @path; when that has no extension and does not exist, at @path with
 * ".bpk" behind it. No tensor is touched before it is asked for. The file stays open
 * until bpk_record_free(). @limits NULL: the defaults.
 * Errors: those of bpk_reader_open() (-ENOENT names the path as given).
 */
int bpk_record_load(const char *path, const struct bpk_limits *limits,
		    struct bpk_record **ret_record, struct bpk_error *error);
/**
 * As bpk_record_load(), from the @size bytes at @data, which stay the caller's and must
 * stay valid and unchanged until bpk_record_free().
 */
int bpk_record_from_bytes(const void *data, size_t size, const struct bpk_limits *limits,
			  struct bpk_record **ret_record, struct bpk_error *error);

/**
 * Write @record to @path, with ".bpk" behind it when it has no extension: atomically, as
 * bpk_writer_write_file() does. What a record was loaded with is kept, also what this
 * library does not know. Errors: those of bpk_writer_write_file() and of adding to a
 * writer.
 */
int bpk_record_save(const struct bpk_record *record, const char *path,
		    struct bpk_error *error);
/** The same pack in a new buffer that the caller frees with free(3). */
int bpk_record_into_bytes(const struct bpk_record *record, void **ret_data,
			  uint64_t *ret_size, struct bpk_error *error);

/* What a record knows of a tensor; all of it borrowed from the record. */
struct bpk_record_tensor {
	const char *name;
	size_t name_size;
	enum bpk_dtype dtype;
	const void *dtype_cbor; /* its CBOR item */
	size_t dtype_cbor_size;
	const uint64_t *shape;
	size_t rank;
	bool has_param_id;
	uint64_t param_id;
	const void *data; /* in the pack, or the buffer that was collected */
	uint64_t size;	  /* bytes; not always shape x dtype in a loaded record */
};

/** How many there are: of a loaded record in the order of their data, of others in that
 * of adding. */
size_t bpk_record_tensor_count(const struct bpk_record *record);
/** @index < count. */
void bpk_record_tensor(const struct bpk_record *record, size_t index,
		       struct bpk_record_tensor *ret_tensor);
/** The tensor of that name; false when there is none. */
bool bpk_record_find_tensor(const struct bpk_record *record, const char *name,
			    size_t name_size, struct bpk_record_tensor *ret_tensor);

/** Scalars: @index < count; the name is borrowed. find: false when there is none. */
size_t bpk_record_scalar_count(const struct bpk_record *record);
struct bpk_scalar_value bpk_record_scalar(const struct bpk_record *record, size_t index,
					  const char **ret_name, size_t *ret_name_size);
bool bpk_record_find_scalar(const struct bpk_record *record, const char *name,
			    size_t name_size, struct bpk_scalar_value *ret_value);
/** Set one; one of that name is replaced. Errors: _ARGUMENT (no UTF-8), _MEMORY. */
int bpk_record_set_scalar(struct bpk_record *record, const char *name, size_t name_size,
			  struct bpk_scalar_value value, struct bpk_error *error);

/** The value of a metadata key, borrowed; NULL when there is none. */
const char *bpk_record_find_metadata(const struct bpk_record *record, const char *key,
				     size_t key_size, size_t *ret_value_size);
/** Set one; one of that key is replaced. Errors: _ARGUMENT (no UTF-8), _MEMORY. */
int bpk_record_set_metadata(struct bpk_record *record, const char *key, size_t key_size,
			    const char *value, size_t value_size,
			    struct bpk_error *error);

/* Module records ----------------------------------------------------------- */

/*
 * One parameter of a module. Collecting reads it, loading fills it: @data and what is
 * marked "loading sets". Zero-initialise what is not used.
 */
struct bpk_param {
	enum bpk_dtype dtype;  /* loading sets it under BPK_DTYPE_FROM_RECORD */
	const uint64_t *shape; /* @rank dimensions */
	size_t rank;
	void *data;
	uint64_t size;	   /* bytes at @data. 0: what dtype and shape need */
	bool has_param_id; /* loading sets both where the record has an id, */
	uint64_t param_id; /* and leaves them where it has none */
	/* For BPK_DTYPE_QFLOAT, else NULL: the scheme's CBOR item. Loading sets it under
	 * BPK_DTYPE_FROM_RECORD, borrowed from the record. */
	const void *dtype_cbor;
	size_t dtype_cbor_size;
};

/* One walk through a module, lent to a bpk_module_fn. */
struct bpk_visitor;

/**
 * A program's description of a module: a call of bpk_visit_enter() and _exit() around
 * each part that is a module of its own, and of bpk_visit_param() for each parameter.
 * The same function collects and loads; it is called twice when loading, and has to
 * describe the same both times. Fields that are not parameters are never visited.
 * Returns 0, or a negative errno to give up with it.
 *
 * After a visit failed, all later ones fail with the same error and do nothing, so a
 * description may leave their results alone.
 */
typedef int (*bpk_module_fn)(struct bpk_visitor *visitor, void *module);

/** Go into the part @name; paths below are "{name}.". Errors: -EINVAL (no UTF-8, NULL),
 * -ENOMEM. */
int bpk_visit_enter(struct bpk_visitor *visitor, const char *name);
/** The same for an element of a list: the name is the number. */
int bpk_visit_enter_index(struct bpk_visitor *visitor, uint64_t index);
/** Leave the part that was entered last. Errors: -EINVAL (there is none). */
int bpk_visit_exit(struct bpk_visitor *visitor);
/**
 * The parameter @name of the part that was entered last, @param borrowed for the call.
 * Collecting keeps @param->data, without a copy. Loading fills it in the second walk
 * only, so the first may not count on values. Errors: those of collecting and loading.
 */
int bpk_visit_param(struct bpk_visitor *visitor, const char *name,
		    struct bpk_param *param);
/** True while a record is loaded, false while one is collected. */
bool bpk_visit_loading(const struct bpk_visitor *visitor);

/**
 * A new record of the module that @describe tells. The buffers of its parameters stay
 * the caller's, and must stay valid until bpk_record_free(); what is in them when the
 * record is saved or made into bytes is what is kept.
 * Errors: BPK_ERR_ARGUMENT, _DUPLICATE (a path twice), _SIZE_MISMATCH, _OVERFLOW,
 * _MEMORY, and what @describe returned.
 */
int bpk_module_collect(bpk_module_fn describe, void *module,
		       struct bpk_record **ret_record, struct bpk_error *error);

enum bpk_dtype_policy {
	BPK_DTYPE_FROM_RECORD,	  /* the module's parameters become what the record has */
	BPK_DTYPE_CAST_TO_MODULE, /* bpk_cast() to what the parameters are */
};

/* Why a record and a module do not go together. */
enum bpk_misfit {
	BPK_MISFIT_MISSING, /* a parameter that the record does not have */
	BPK_MISFIT_UNUSED,  /* a tensor that no parameter takes */
	BPK_MISFIT_SHAPE,   /* another shape */
	BPK_MISFIT_DTYPE,   /* a dtype that cannot be cast */
	BPK_MISFIT_ROOM,    /* the record's elements need more than param.size */
	BPK_MISFIT_SIZE,    /* the tensor's bytes are not what its own shape says */
};
/** @path and @message are lent for the call. */
typedef void (*bpk_misfit_fn)(void *context, enum bpk_misfit misfit, const char *path,
			      size_t path_size, const char *message);

struct bpk_load_options {
	bool allow_partial; /* MISSING is no error: the parameter stays as it is */
	bool allow_unused;  /* UNUSED is no error */
	bool validate;	    /* default true. False: what does not fit otherwise is no
			     * error either; the parameter stays as it is */
	enum bpk_dtype_policy dtype_policy;
	/* Told every misfit, allowed or not. NULL: nobody is. */
	bpk_misfit_fn misfit;
	void *context;
};

/** Fill @options with the defaults: strict, validating, BPK_DTYPE_FROM_RECORD. */
void bpk_load_options_init(struct bpk_load_options *options);

/**
 * Fill the parameters of the module that @describe tells from @record. The first walk
 * checks all of them and fills none: after an error the module is as it was (unless
 * @describe gives up in the second walk only, or describes another module there). Only
 * tensors that a parameter takes are touched. @options NULL: the defaults.
 *
 * Errors: BPK_ERR_RECORD (-EINVAL), with all misfits in one message as far as they fit
 * there; BPK_ERR_ARGUMENT, _DUPLICATE, _OVERFLOW, _MEMORY as bpk_module_collect(); what
 * @describe returned.
 */
int bpk_module_load(const struct bpk_record *record, bpk_module_fn describe, void *module,
		    const struct bpk_load_options *options, struct bpk_error *error);

#ifdef __cplusplus
}
#endif
#endif /* BPK_RECORD_H */
