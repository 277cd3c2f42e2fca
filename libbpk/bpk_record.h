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

/* Scalars as C's types ----------------------------------------------------- */

/**
 * The value of a scalar as a type of C. An Int or UInt is any integer type that it is in
 * the range of, and the nearest double; a Float is a double only, a Bool a bool only.
 * Returns 0, -EINVAL (another type) or -ERANGE.
 */
int bpk_scalar_to_i64(struct bpk_scalar_value value, int64_t *ret_value);
int bpk_scalar_to_u64(struct bpk_scalar_value value, uint64_t *ret_value);
int bpk_scalar_to_f64(struct bpk_scalar_value value, double *ret_value);
int bpk_scalar_to_bool(struct bpk_scalar_value value, bool *ret_value);
/** And the other way. */
struct bpk_scalar_value bpk_scalar_from_i64(int64_t value);
struct bpk_scalar_value bpk_scalar_from_u64(uint64_t value);
struct bpk_scalar_value bpk_scalar_from_f64(double value);
struct bpk_scalar_value bpk_scalar_from_bool(bool value);

/* Scheduler records -------------------------------------------------------- */

/**
 * The scalar @name of @record, as bpk_scalar_to_*() gives it. Errors: BPK_ERR_RECORD with
 * -ENOENT (there is none), -EINVAL (another type) or -ERANGE; the message says which
 * scalar, and what it is.
 */
int bpk_scheduler_get_i64(const struct bpk_record *record, const char *name,
			  int64_t *ret_value, struct bpk_error *error);
int bpk_scheduler_get_u64(const struct bpk_record *record, const char *name,
			  uint64_t *ret_value, struct bpk_error *error);
int bpk_scheduler_get_i32(const struct bpk_record *record, const char *name,
			  int32_t *ret_value, struct bpk_error *error);
int bpk_scheduler_get_u32(const struct bpk_record *record, const char *name,
			  uint32_t *ret_value, struct bpk_error *error);
int bpk_scheduler_get_f64(const struct bpk_record *record, const char *name,
			  double *ret_value, struct bpk_error *error);
int bpk_scheduler_get_bool(const struct bpk_record *record, const char *name,
			   bool *ret_value, struct bpk_error *error);

/** Set the scalar @name of @record; one of that name is replaced. Errors: as
 * bpk_record_set_scalar(). */
int bpk_scheduler_set_i64(struct bpk_record *record, const char *name, int64_t value,
			  struct bpk_error *error);
int bpk_scheduler_set_u64(struct bpk_record *record, const char *name, uint64_t value,
			  struct bpk_error *error);
int bpk_scheduler_set_f64(struct bpk_record *record, const char *name, double value,
			  struct bpk_error *error);
int bpk_scheduler_set_bool(struct bpk_record *record, const char *name, bool value,
			   struct bpk_error *error);

/**
 * Put all scalars of @child into @record under "{prefix}.", as a composed scheduler does
 * with its children ("0", "1", ...). @child may not be @record and may hold no tensors.
 * Errors: BPK_ERR_ARGUMENT, _MEMORY (a part of them may be in @record then).
 */
int bpk_scheduler_with_record(struct bpk_record *record, const char *prefix,
			      const struct bpk_record *child, struct bpk_error *error);
/** A new record of the scalars of @record under "{prefix}.", without that: empty when
 * there are none. Errors: _MEMORY. */
int bpk_scheduler_record(const struct bpk_record *record, const char *prefix,
			 struct bpk_record **ret_child, struct bpk_error *error);

/* Optimizer records -------------------------------------------------------- */

/** No tensor of Burn has more dimensions; a "__rank" above it is taken for damage. */
#define BPK_OPTIMIZER_RANK_MAX 64

/**
 * Begin the state of parameter @param_id in @record: its "__rank", and the module @path
 * it belongs to, as metadata (NULL: none). Errors: _ARGUMENT (a rank above the maximum, a
 * path that is no UTF-8), _MEMORY.
 */
int bpk_optimizer_add_param(struct bpk_record *record, uint64_t param_id, uint64_t rank,
			    const char *path, struct bpk_error *error);
/**
 * Add a tensor of that state, "{param_id}.{field}"; nested fields have dots
 * ("momentum.moment_1"). What @tensor has for an id is ignored; its data is borrowed as
 * bpk_module_collect() does. Errors: those of bpk_module_collect().
 */
int bpk_optimizer_add_tensor(struct bpk_record *record, uint64_t param_id,
			     const char *field, const struct bpk_param *tensor,
			     struct bpk_error *error);
/** Set a scalar of that state. Errors: _ARGUMENT ("__rank" or no UTF-8), _MEMORY. */
int bpk_optimizer_set_scalar(struct bpk_record *record, uint64_t param_id,
			     const char *field, struct bpk_scalar_value value,
			     struct bpk_error *error);

/* The state in a record, a parameter at a time. */
struct bpk_optimizer;

struct bpk_optimizer_tensor {
	const char *field;
	size_t field_size;
	struct bpk_record_tensor tensor;
};

struct bpk_optimizer_scalar {
	const char *field;
	size_t field_size;
	struct bpk_scalar_value value;
};

/* Fields are in bytewise order. All is borrowed until bpk_optimizer_close(). */
struct bpk_optimizer_param {
	uint64_t param_id;
	uint64_t rank;	  /* "__rank", else that of the first tensor */
	const char *path; /* of the module, NULL when the record has none */
	size_t path_size;
	const struct bpk_optimizer_tensor *tensors;
	size_t tensor_count;
	const struct bpk_optimizer_scalar *scalars; /* without "__rank" */
	size_t scalar_count;
};

/**
 * Told what is skipped: a parameter (@name is its id in decimal) whose state is not
 * complete, or an entry that belongs to none. @name and @message are lent.
 */
typedef void (*bpk_optimizer_skip_fn)(void *context, const char *name, size_t name_size,
				      const char *message);

/**
 * Sort out the state in @record, which must live and stay as it is until
 * bpk_optimizer_close(). A parameter is skipped, which is no error, when its rank is not
 * known or no rank, when one of its tensors carries another id than its name says, or
 * when it has no field of one of the @required_count names at @required. An entry is when
 * its name is not "{param_id}.{field}". @skip may be NULL. Touches no tensor data.
 * Errors: _MEMORY.
 */
int bpk_optimizer_open(const struct bpk_record *record, const char *const *required,
		       size_t required_count, bpk_optimizer_skip_fn skip, void *context,
		       struct bpk_optimizer **ret_optimizer, struct bpk_error *error);
/** Free @optimizer. NULL is accepted. */
void bpk_optimizer_close(struct bpk_optimizer *optimizer);

/** Parameters, in the order of their ids. @index < count, else NULL. */
size_t bpk_optimizer_param_count(const struct bpk_optimizer *optimizer);
const struct bpk_optimizer_param *
bpk_optimizer_param(const struct bpk_optimizer *optimizer, size_t index);
/** The parameter of that id, or NULL. */
const struct bpk_optimizer_param *
bpk_optimizer_find(const struct bpk_optimizer *optimizer, uint64_t param_id);

/** A field of a parameter, or NULL. */
const struct bpk_optimizer_tensor *
bpk_optimizer_find_tensor(const struct bpk_optimizer_param *param, const char *field);
const struct bpk_optimizer_scalar *
bpk_optimizer_find_scalar(const struct bpk_optimizer_param *param, const char *field);
/**
 * Fill @ret_tensor's buffer from the tensor @field, under the same rules as a parameter
 * is loaded. Errors: BPK_ERR_RECORD with -ENOENT (there is none) or -EINVAL (it does not
 * fit), _ARGUMENT, _OVERFLOW.
 */
int bpk_optimizer_read(const struct bpk_optimizer_param *param, const char *field,
		       enum bpk_dtype_policy policy, struct bpk_param *ret_tensor,
		       struct bpk_error *error);

/* Checkpoints -------------------------------------------------------------- */

/*
 * The epochs of one record in a folder: "{name}-{epoch}.bpk", which Burn's own names
 * (model, optim, scheduler) are as well. Nothing else says what is there, so files may
 * come and go. A checkpointer belongs to one thread at a time; there may be several for
 * one folder, with different names.
 */
struct bpk_checkpointer;

/* Zero-initialise: every epoch is kept, and a save is done when it returns. */
struct bpk_checkpointer_options {
	/* After each save, remove all epochs but the highest @keep_last and the
	 * @keep_best with the best metric. When both are 0 all are kept; the one that was
	 * just saved and the highest are kept whatever these say. Where keep_best is not
	 * 0, a pack that cannot be opened is left alone. */
	uint64_t keep_last;
	uint64_t keep_best;
	bool highest_is_best; /* of metrics; else the lowest is, as of a loss */
	/* Save on a thread of its own: see bpk_checkpointer_save(). */
	bool async;
};

/** The metadata key under which a pack keeps its metric, as decimal text. */
#define BPK_METRIC_KEY "bpk.metric"

/**
 * A checkpointer of @name in the folder @dir, which is made when its parent is there; a
 * later chdir(2) changes nothing. @options NULL: zeros. Errors: BPK_ERR_ARGUMENT (a name
 * that is empty, no UTF-8 or has a slash), _MEMORY, _IO (mkdir(2), realpath(3)).
 */
int bpk_checkpointer_new(const char *dir, const char *name,
			 const struct bpk_checkpointer_options *options,
			 struct bpk_checkpointer **ret_checkpointer,
			 struct bpk_error *error);
/**
 * Wait for a save that is going on and free @checkpointer, whatever is returned: 0, or
 * the error of the last asynchronous save when nobody was told yet. NULL is accepted.
 */
int bpk_checkpointer_close(struct bpk_checkpointer *checkpointer,
			   struct bpk_error *error);

/**
 * Save @record as @epoch, atomically: on failure the epochs of before are as they were,
 * an older file of that epoch included. *@metric (NULL: none) goes into the pack's
 * metadata; a NaN is never among the best. Epochs that are not to be kept are removed
 * after the new one is safely on disk.
 *
 * With options.async, the record is made into bytes first, so that its buffers can be
 * changed when this returns, and written by a thread, of which at most one is running.
 * Its failure is what the next call of this checkpointer returns, and that call then does
 * nothing else: it can be repeated.
 *
 * Errors: those of bpk_record_save(); removing what is not kept: BPK_ERR_IO, and the
 * message says that @epoch itself was saved.
 */
int bpk_checkpointer_save(struct bpk_checkpointer *checkpointer, uint64_t epoch,
			  const struct bpk_record *record, const double *metric,
			  struct bpk_error *error);
/** Wait until nothing is being saved. Errors: those of an asynchronous save. */
int bpk_checkpointer_wait(struct bpk_checkpointer *checkpointer, struct bpk_error *error);
/** Open @epoch as bpk_record_load() does. -ENOENT: there is none. */
int bpk_checkpointer_restore(struct bpk_checkpointer *checkpointer, uint64_t epoch,
			     struct bpk_record **ret_record, struct bpk_error *error);
/** Remove @epoch. Errors: BPK_ERR_IO; -ENOENT: there is none. */
int bpk_checkpointer_delete(struct bpk_checkpointer *checkpointer, uint64_t epoch,
			    struct bpk_error *error);
/** The epochs that are there, ascending, in a new array for free(3). Errors: _IO,
 * _MEMORY.
 */
int bpk_checkpointer_list(struct bpk_checkpointer *checkpointer, uint64_t **ret_epochs,
			  size_t *ret_count, struct bpk_error *error);

#ifdef __cplusplus
}
#endif
#endif /* BPK_RECORD_H */
