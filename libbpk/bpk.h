/*
 * bpk.h - read and write burnpack (.bpk), the checkpoint format of the Burn
 * deep-learning framework. The byte-level specification is in FORMAT.md.
 *
 * Conventions, for every function here unless it says otherwise:
 *
 * - Functions that can fail return 0 or a negative errno. Out-parameters are
 *   called ret_x and are left as they were on failure. The optional last
 *   argument, struct bpk_error, is filled on failure only, with the place and
 *   a sentence that a user can act on; NULL is accepted.
 * - Sizes (_size) are bytes, _count are elements, offsets (_off) are bytes from
 *   the start of the pack unless said otherwise. All are 64 bits wide where
 *   they speak of a file.
 * - Names, metadata keys and values are UTF-8 with an explicit size. They may
 *   be empty and may hold NUL and any other character: never treat them as C
 *   strings.
 * - A const pointer returned by a reader is borrowed and lives until
 *   bpk_reader_close().
 * - A reader is immutable once open: any number of threads may use it at once.
 *   A writer belongs to one thread at a time. There is no global state.
 * - The library never prints, never exits and never changes the locale.
 */
#ifndef BPK_H
#define BPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that is running, for example "0.1.0". */
const char *bpk_version(void);

/* The container ------------------------------------------------------------ */

/** The newest format version that is read, and the one that is written. */
#define BPK_FORMAT_VERSION 1
/** Every tensor that is written starts at a multiple of this many bytes. */
#define BPK_ALIGNMENT 256u
/** Bytes of the fixed header: magic, version, metadata size. */
#define BPK_HEADER_SIZE 10u

/*
 * What a pack may hold. The defaults are those of Burn's own reader, so that a
 * pack that is written within them can be loaded there.
 */
struct bpk_limits {
	uint64_t file_size;	/* bytes of the whole pack; default 100 GiB */
	uint64_t metadata_size; /* bytes of CBOR; default 100 MiB */
	uint64_t tensor_size;	/* bytes of one tensor; default 10 GiB */
	uint64_t tensor_count;	/* default 100 000 */
	uint32_t nesting;	/* nested containers and tags; default 128 */
};

/** Fill @limits with the defaults. */
void bpk_limits_init(struct bpk_limits *limits);

/* Errors ------------------------------------------------------------------- */

enum bpk_code {
	BPK_OK = 0,
	BPK_ERR_IO,	       /* a system call failed; the errno is returned */
	BPK_ERR_MEMORY,	       /* -ENOMEM */
	BPK_ERR_ARGUMENT,      /* -EINVAL: the caller broke the contract */
	BPK_ERR_NOT_BURNPACK,  /* -EBADMSG: no burnpack; the message says what it
				* looks like (empty, zip, safetensors, ...) */
	BPK_ERR_VERSION,       /* -EPROTONOSUPPORT: a newer format version */
	BPK_ERR_TRUNCATED,     /* -ENODATA: needed, found, first tensor missing */
	BPK_ERR_MALFORMED,     /* -EBADMSG: the metadata is not what it must be */
	BPK_ERR_LIMIT,	       /* -EFBIG: over one of struct bpk_limits */
	BPK_ERR_DUPLICATE,     /* -EEXIST: a tensor name was added twice */
	BPK_ERR_SIZE_MISMATCH, /* -EINVAL: length is not shape x dtype */
	BPK_ERR_OVERFLOW,      /* -EOVERFLOW: a product or sum leaves 64 bits */
	BPK_ERR_PROVIDER,      /* a provider failed (its own code is returned) or
				* gave another length than declared (-EPROTO) */
	BPK_ERR_CANCELLED,     /* -ECANCELED: the progress callback said stop */
	BPK_ERR_CONFIRM,       /* the confirm callback refused (its code) */
	BPK_ERR_RECORD,	       /* bpk_record.h: a record is not what is asked of it */
};

/** struct bpk_error.offset when no place in the pack can be named. */
#define BPK_NO_OFFSET UINT64_MAX

struct bpk_error {
	enum bpk_code code;
	uint64_t offset;   /* byte offset in the pack, or BPK_NO_OFFSET */
	char message[512]; /* one line, NUL-terminated, printable: names from
			    * the pack are escaped and shortened */
};

/* Data types --------------------------------------------------------------- */

enum bpk_dtype {
	BPK_DTYPE_F64,
	BPK_DTYPE_F32,
	BPK_DTYPE_FLEX32, /* 4 bytes an element */
	BPK_DTYPE_F16,
	BPK_DTYPE_BF16,
	BPK_DTYPE_I64,
	BPK_DTYPE_I32,
	BPK_DTYPE_I16,
	BPK_DTYPE_I8,
	BPK_DTYPE_U64,
	BPK_DTYPE_U32,
	BPK_DTYPE_U16,
	BPK_DTYPE_U8,
	BPK_DTYPE_BOOL_NATIVE, /* {"Bool":"Native"}, 1 byte an element */
	BPK_DTYPE_BOOL_U8,     /* {"Bool":"U8"}, 1 byte an element */
	BPK_DTYPE_BOOL_U32,    /* {"Bool":"U32"}, 4 bytes an element */
	BPK_DTYPE_BOOL_LEGACY, /* "Bool" of Burn up to 0.20, 1 byte an element */
	BPK_DTYPE_QFLOAT,      /* {"QFloat":scheme}: no fixed size an element */
};
#define BPK_DTYPE_COUNT 18

/** Bytes of one element of @dtype; 0 for BPK_DTYPE_QFLOAT. */
uint64_t bpk_dtype_element_size(enum bpk_dtype dtype);

/**
 * The text form of @dtype: "F32", "Bool(Native)", "Bool" for the legacy form.
 * For BPK_DTYPE_QFLOAT it is "QFloat"; bpk_tensor_dtype_text() tells the scheme.
 * Returns a constant string.
 */
const char *bpk_dtype_name(enum bpk_dtype dtype);

/**
 * The dtype whose bpk_dtype_name() is @text (@size bytes). Returns 0, or -EINVAL
 * when there is none or it is QFloat, which needs a scheme.
 */
int bpk_dtype_from_name(const char *text, size_t size, enum bpk_dtype *ret_dtype);

/**
 * Bytes of a tensor of @dtype with the @rank dimensions at @shape (rank 0 has
 * one element). Returns 0, -EOVERFLOW when the product leaves 64 bits, or
 * -EINVAL for BPK_DTYPE_QFLOAT, whose size is not a product.
 */
int bpk_shape_size(enum bpk_dtype dtype, const uint64_t *shape, size_t rank,
		   uint64_t *ret_size);

/* Scalars ------------------------------------------------------------------ */

enum bpk_scalar_type {
	BPK_SCALAR_INT,	  /* i64 */
	BPK_SCALAR_UINT,  /* u64 */
	BPK_SCALAR_FLOAT, /* f64, kept to the bit, NaN payloads included */
	BPK_SCALAR_BOOL,
};

struct bpk_scalar_value {
	enum bpk_scalar_type type;
	union {
		int64_t i;
		uint64_t u;
		uint64_t float_bits; /* IEEE 754 binary64 */
		bool b;
	};
};

/* Reader ------------------------------------------------------------------- */

struct bpk_reader;
struct bpk_tensor;
struct bpk_scalar;
struct bpk_metadata;

/**
 * Open the pack at @path read-only and map it. @limits may be NULL for the
 * defaults. Header and metadata are read (not taken from the mapping) and
 * checked; no tensor byte is touched. Every check of FORMAT.md "Reading" has
 * passed on success, so each tensor lies inside the file as it was.
 *
 * Errors: those of open(2), fstat(2), read(2), mmap(2) with BPK_ERR_IO (-EISDIR
 * for a folder, -EINVAL for other files that are not regular), and
 * BPK_ERR_MEMORY, _NOT_BURNPACK, _VERSION, _TRUNCATED, _MALFORMED, _LIMIT.
 * On success *@ret_reader is the caller's, for bpk_reader_close().
 */
int bpk_reader_open(const char *path, const struct bpk_limits *limits,
		    struct bpk_reader **ret_reader, struct bpk_error *error);

/** As bpk_reader_open(), from an open file; @fd is duplicated, not consumed. */
int bpk_reader_open_fd(int fd, const struct bpk_limits *limits,
		       struct bpk_reader **ret_reader, struct bpk_error *error);

/**
 * As bpk_reader_open(), from the @size bytes at @data, which stay the caller's
 * and must stay valid and unchanged until bpk_reader_close(). No system call.
 */
int bpk_reader_open_buffer(const void *data, size_t size, const struct bpk_limits *limits,
			   struct bpk_reader **ret_reader, struct bpk_error *error);

/** Free @reader and everything borrowed from it. NULL is accepted. */
void bpk_reader_close(struct bpk_reader *reader);

/** The file behind the reader, borrowed; -1 for a buffer. */
int bpk_reader_fd(const struct bpk_reader *reader);
/** Bytes of the pack when it was opened. */
uint64_t bpk_reader_file_size(const struct bpk_reader *reader);
/** The whole pack, which bpk_tensor_data() points into: the mapping or the buffer. */
const void *bpk_reader_data(const struct bpk_reader *reader);
/** Bytes of the metadata, as the header says. */
uint64_t bpk_reader_metadata_size(const struct bpk_reader *reader);
/** Where the data section starts. */
uint64_t bpk_reader_data_off(const struct bpk_reader *reader);
/** The format version in the header (0 and 1 are read). */
uint16_t bpk_reader_format_version(const struct bpk_reader *reader);

/** Tensors, in bytewise order of their names. @index < count, else NULL. */
size_t bpk_reader_tensor_count(const struct bpk_reader *reader);
const struct bpk_tensor *bpk_reader_tensor(const struct bpk_reader *reader, size_t index);
/** The tensor of that name in O(log n), or NULL. */
const struct bpk_tensor *bpk_reader_find_tensor(const struct bpk_reader *reader,
						const char *name, size_t name_size);

/** Scalars, likewise. */
size_t bpk_reader_scalar_count(const struct bpk_reader *reader);
const struct bpk_scalar *bpk_reader_scalar(const struct bpk_reader *reader, size_t index);
const struct bpk_scalar *bpk_reader_find_scalar(const struct bpk_reader *reader,
						const char *name, size_t name_size);

/** User metadata, likewise. */
size_t bpk_reader_metadata_count(const struct bpk_reader *reader);
const struct bpk_metadata *bpk_reader_metadata(const struct bpk_reader *reader,
					       size_t index);
const struct bpk_metadata *bpk_reader_find_metadata(const struct bpk_reader *reader,
						    const char *key, size_t key_size);

/**
 * Unknown keys of the top-level map, verbatim: *@ret_count pairs of CBOR items,
 * one behind the other in file order, *@ret_size bytes. NULL when there are none.
 */
const void *bpk_reader_extra(const struct bpk_reader *reader, size_t *ret_size,
			     size_t *ret_count);

/** The name, borrowed; *@ret_size bytes, never NULL. */
const char *bpk_tensor_name(const struct bpk_tensor *tensor, size_t *ret_size);
enum bpk_dtype bpk_tensor_dtype(const struct bpk_tensor *tensor);
/** The CBOR item of the dtype, verbatim as in the pack. */
const void *bpk_tensor_dtype_cbor(const struct bpk_tensor *tensor, size_t *ret_size);
/**
 * The text form of the dtype: bpk_dtype_name(), or for QFloat the scheme as one
 * line of JSON, {"QFloat":{...}}. Writes at most @size bytes, NUL included (a
 * cut text is still terminated), and returns the bytes the whole text needs
 * without the NUL, as snprintf(3) does. @buffer may be NULL when @size is 0.
 */
size_t bpk_tensor_dtype_text(const struct bpk_tensor *tensor, char *buffer, size_t size);
/** The number of dimensions. */
size_t bpk_tensor_rank(const struct bpk_tensor *tensor);
/** Copy the first min(rank, @count) dimensions to @ret_shape. Returns the rank. */
size_t bpk_tensor_shape(const struct bpk_tensor *tensor, uint64_t *ret_shape,
			size_t count);
/** True, and the id in *@ret_param_id, when the tensor has one. */
bool bpk_tensor_param_id(const struct bpk_tensor *tensor, uint64_t *ret_param_id);
/** Bytes of data. Not always shape x dtype: see bpk_reader_check(). */
uint64_t bpk_tensor_size(const struct bpk_tensor *tensor);
/** Where its data starts, in bytes from the start of the pack. */
uint64_t bpk_tensor_off(const struct bpk_tensor *tensor);
/**
 * Its data: a pointer into the mapping or the caller's buffer, any alignment,
 * bpk_tensor_size() bytes. (When another process truncates the file, touching
 * the pages past its new end raises SIGBUS.) Never NULL for a size above 0.
 */
const void *bpk_tensor_data(const struct bpk_reader *reader,
			    const struct bpk_tensor *tensor);
/** Unknown keys of its descriptor, as bpk_reader_extra(). */
const void *bpk_tensor_extra(const struct bpk_tensor *tensor, size_t *ret_size,
			     size_t *ret_count);

const char *bpk_scalar_name(const struct bpk_scalar *scalar, size_t *ret_size);
struct bpk_scalar_value bpk_scalar_value(const struct bpk_scalar *scalar);

const char *bpk_metadata_key(const struct bpk_metadata *metadata, size_t *ret_size);
const char *bpk_metadata_value(const struct bpk_metadata *metadata, size_t *ret_size);

/*
 * What a pack may have and still opens, told to a callback: a length that is
 * not shape x dtype, an offset that is no multiple of BPK_ALIGNMENT, tensors
 * that overlap, bytes behind the metadata value, bytes behind the last tensor.
 */
enum bpk_finding {
	BPK_FINDING_SIZE_MISMATCH,
	BPK_FINDING_UNALIGNED,
	BPK_FINDING_OVERLAP,
	BPK_FINDING_METADATA_TRAILER,
	BPK_FINDING_DATA_TRAILER,
};
/** @tensor is NULL where the finding is not about one. Non-zero stops the check. */
typedef int (*bpk_finding_fn)(void *context, enum bpk_finding finding,
			      const struct bpk_tensor *tensor, const char *message);
/**
 * Tell @fn everything odd. Touches no tensor data. Returns 0, what @fn returned
 * to stop, or -ENOMEM.
 */
int bpk_reader_check(const struct bpk_reader *reader, bpk_finding_fn fn, void *context);

/* Writer ------------------------------------------------------------------- */

struct bpk_writer;

/* What a tensor is, without its bytes. Everything is copied by the writer. */
struct bpk_tensor_desc {
	const char *name;
	size_t name_size;
	enum bpk_dtype dtype;
	/* The dtype's CBOR item, kept verbatim: needed for QFloat, optional
	 * otherwise (NULL: the canonical form). Must agree with @dtype. */
	const void *dtype_cbor;
	size_t dtype_cbor_size;
	const uint64_t *shape;
	size_t rank;
	bool has_param_id;
	uint64_t param_id;
	/* Unknown descriptor keys, as bpk_tensor_extra() gave them; NULL for none. */
	const void *extra;
	size_t extra_size;
	size_t extra_count;
};

/**
 * Fill @ret_desc from a tensor of a pack; pointers are borrowed from the reader.
 * @shape must hold bpk_tensor_rank() dimensions and is pointed to.
 */
void bpk_tensor_describe(const struct bpk_tensor *tensor, uint64_t *shape,
			 struct bpk_tensor_desc *ret_desc);

/**
 * Where the bytes of a deferred tensor come from. Called once, in write order.
 * *@ret_data must be readable until @release is called (always, when provide
 * succeeded, and before the next tensor is asked for). A negative errno stops
 * the write and is returned.
 */
struct bpk_provider {
	int (*provide)(void *context, const void **ret_data, uint64_t *ret_size);
	void (*release)(void *context, const void *data, uint64_t size); /* may be NULL */
	void *context;
};

/** A new, empty writer. @limits NULL: the defaults. Errors: -ENOMEM. */
int bpk_writer_new(const struct bpk_limits *limits, struct bpk_writer **ret_writer);
/** Free @writer. Providers that were not called never are. NULL is accepted. */
void bpk_writer_free(struct bpk_writer *writer);

/**
 * Add a tensor; data is written in the order of these calls, the metadata in
 * name order whatever the order of the calls. Nothing of the data is touched
 * before a write.
 *
 * _bytes: the @size bytes at @data stay the caller's and must stay valid until
 * the writer is freed. _deferred: @size bytes that @provider gives when asked.
 * _range: @size bytes from @off of the file @fd, which stays the caller's and
 * open; copied by the kernel, and shared with the source where the file system
 * can (only with the file sinks; a buffer sink reads them).
 *
 * Errors: BPK_ERR_ARGUMENT (a name that is no UTF-8, a dtype_cbor that is not
 * one item of that dtype, extra that is not that many pairs), _SIZE_MISMATCH
 * (QFloat and legacy packs' odd lengths: see bpk_writer_allow_odd_sizes()),
 * _OVERFLOW, _DUPLICATE, _LIMIT, _MEMORY. The writer is as before on failure.
 */
int bpk_writer_add_bytes(struct bpk_writer *writer, const struct bpk_tensor_desc *desc,
			 const void *data, uint64_t size, struct bpk_error *error);
int bpk_writer_add_deferred(struct bpk_writer *writer, const struct bpk_tensor_desc *desc,
			    uint64_t size, const struct bpk_provider *provider,
			    struct bpk_error *error);
int bpk_writer_add_range(struct bpk_writer *writer, const struct bpk_tensor_desc *desc,
			 int fd, uint64_t off, uint64_t size, struct bpk_error *error);

/**
 * Accept, from now on, tensors whose size is not shape x dtype: needed to carry
 * over what another pack already holds (bpk_reader_check() reports those).
 */
void bpk_writer_allow_odd_sizes(struct bpk_writer *writer, bool allow);

/** Set a scalar; one of that name is replaced. Errors: _ARGUMENT (no UTF-8), _MEMORY. */
int bpk_writer_set_scalar(struct bpk_writer *writer, const char *name, size_t name_size,
			  struct bpk_scalar_value value, struct bpk_error *error);
/** Set a user key; one of that name is replaced. Errors: _ARGUMENT (no UTF-8), _MEMORY.
 */
int bpk_writer_set_metadata(struct bpk_writer *writer, const char *key, size_t key_size,
			    const char *value, size_t value_size,
			    struct bpk_error *error);
/** Unknown top-level keys, as bpk_reader_extra() gave them: written last, verbatim. */
int bpk_writer_set_extra(struct bpk_writer *writer, const void *extra, size_t extra_size,
			 size_t extra_count, struct bpk_error *error);

/**
 * Work out offsets and the size of the whole pack: pure arithmetic, no data is
 * touched, may be called at any time and again after more was added.
 * Errors: BPK_ERR_LIMIT, _OVERFLOW, _MEMORY.
 */
int bpk_writer_plan(struct bpk_writer *writer, uint64_t *ret_size,
		    struct bpk_error *error);

/* How a write goes on; zero-initialise. NULL callbacks are not called. */
struct bpk_write_options {
	/* Bytes written so far and in all; called at least once per 8 MiB and at
	 * the end. Non-zero cancels: -ECANCELED, BPK_ERR_CANCELLED. */
	int (*progress)(void *context, uint64_t done_size, uint64_t total_size);
	/* bpk_writer_write_file() only: everything is on disk under the scratch
	 * name and can be read from @fd, which is the library's; the rename is next.
	 * A negative errno stops: BPK_ERR_CONFIRM. */
	int (*confirm)(void *context, int fd);
	void *context;
	/* bpk_writer_write_file() only: the path that the new file has before it is
	 * renamed, on the same file system. A file that is there, as a run that was
	 * killed leaves it, is removed. NULL: a new name beside the destination, which
	 * only a kill between two system calls can leave behind. */
	const char *scratch;
	/* bpk_writer_write_file() only: the destination must not exist; -EEXIST when
	 * it does, or came to be meanwhile. */
	bool exclusive;
};

/**
 * The sinks. Each plans, then writes the whole pack: the same bytes whichever is
 * used. @options may be NULL. A provider is called at most once in the life of
 * its writer: a write after one in which a provider was called is -EINVAL.
 * Common errors: those of bpk_writer_plan(), BPK_ERR_PROVIDER, _CANCELLED, _IO
 * (a range that ends early in its file: -ENODATA). The message names the tensor.
 *
 * _buffer: into the caller's @size bytes; -ENOBUFS (BPK_ERR_ARGUMENT) when they
 * are fewer than the plan says, untouched then. *@ret_size is what was written.
 */
int bpk_writer_write_buffer(struct bpk_writer *writer, void *buffer, uint64_t size,
			    const struct bpk_write_options *options, uint64_t *ret_size,
			    struct bpk_error *error);
/** Into a new buffer that the caller frees with free(3). */
int bpk_writer_write_new_buffer(struct bpk_writer *writer,
				const struct bpk_write_options *options,
				void **ret_buffer, uint64_t *ret_size,
				struct bpk_error *error);
/**
 * To a file, atomically: whoever opens @path sees the old file or the complete
 * new one, also after a crash. The new bytes go to a scratch file in the same
 * directory, are flushed to disk, renamed over @path, and the directory is
 * flushed. Mode, owner and extended attributes (ACLs with them) of a file that
 * is replaced carry over; when the owner, mode or an ACL cannot be kept, nothing
 * is replaced. A new file has mode 0666 less the umask. A symlink is followed:
 * its target is replaced. On any failure the old file is as it was and no
 * scratch file is left.
 */
int bpk_writer_write_file(struct bpk_writer *writer, const char *path,
			  const struct bpk_write_options *options,
			  struct bpk_error *error);
/**
 * To a file in place: opened (created with 0666 less the umask), truncated and
 * written from the front, not flushed. A failure leaves a short file: for
 * places where no second file fits or no rename works. A range of that same file
 * is refused with -EINVAL before anything is truncated; bytes that are mapped from
 * it must not be among the tensors either, which nothing can check.
 */
int bpk_writer_write_file_in_place(struct bpk_writer *writer, const char *path,
				   const struct bpk_write_options *options,
				   struct bpk_error *error);

#ifdef __cplusplus
}
#endif
#endif /* BPK_H */
