/*
 * test_file.c - packs to and from files: what a replaced file keeps, and that after
 * every failure the old file is as it was and nothing lies beside it.
 *
 * Some rows need root (a full tmpfs, other owners): they are skipped without.
 */
#include "bpk.h"
#include "bytes.h"
#include "io.h"
#include "leak.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define NOBODY 65534

static char dir[64];

/* Each test runs in a process of its own, in a folder of its own. */
static void enter_dir(void)
{
	strcpy(dir, "/tmp/bpk-test-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	umask(022);
}

static void leave_dir(void)
{
	char command[128];

	cr_assert_eq(seteuid(getuid()), 0);
	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
	leak_check();
}

TestSuite(file, .init = enter_dir, .fini = leave_dir);

/* Helpers ---------------------------------------------------------------------- */

static void put_file(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "wb");

	cr_assert_not_null(file, "%s", path);
	cr_assert_eq(fwrite(bytes, 1, size, file), size);
	cr_assert_eq(fclose(file), 0);
}

static uint8_t *get_file(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes;
	long size;

	cr_assert_not_null(file, "%s", path);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	bytes = malloc((size_t)size + 1);
	cr_assert_eq(fread(bytes, 1, (size_t)size, file), (size_t)size);
	fclose(file);
	*ret_size = (size_t)size;
	return bytes;
}

static void expect_content(const char *label, const char *path, const void *bytes,
			   size_t size)
{
	size_t found;
	uint8_t *content = get_file(path, &found);

	cr_expect_eq(found, size, "%s: %zu bytes", label, found);
	if (found == size)
		cr_expect_eq(memcmp(content, bytes, size), 0, "%s", label);
	free(content);
}

/* How many names the folder has, scratch files included. */
static unsigned int count_names(const char *path)
{
	DIR *folder = opendir(path);
	unsigned int count = 0;

	cr_assert_not_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count - 2; /* . and .. */
}

static struct bpk_tensor_desc u8_desc(const char *name, const uint64_t *size)
{
	return (struct bpk_tensor_desc) {
		.name = name,
		.name_size = strlen(name),
		.dtype = BPK_DTYPE_U8,
		.shape = size,
		.rank = 1,
	};
}

/* A writer of one small tensor: 257 bytes. */
static struct bpk_writer *small_writer(void)
{
	static const uint64_t one[] = { 1 };
	struct bpk_writer *writer = NULL;
	struct bpk_tensor_desc desc = u8_desc("t", one);

	cr_assert_eq(bpk_writer_new(NULL, &writer), 0);
	cr_assert_eq(bpk_writer_add_bytes(writer, &desc, "x", 1, NULL), 0);
	return writer;
}

static void expect_pack(const char *label, const char *path)
{
	struct bpk_reader *reader = NULL;
	struct bpk_error error = { .message = "" };

	cr_assert_eq(bpk_reader_open(path, NULL, &reader, &error), 0, "%s: %s", label,
		     error.message);
	cr_expect_eq(bpk_reader_file_size(reader), 257u, "%s", label);
	cr_expect_eq(*(const char *)bpk_tensor_data(reader, bpk_reader_tensor(reader, 0)),
		     'x', "%s", label);
	bpk_reader_close(reader);
}

static int write_small(const char *path, const struct bpk_write_options *options,
		       struct bpk_error *error)
{
	struct bpk_writer *writer = small_writer();
	int r = bpk_writer_write_file(writer, path, options, error);

	bpk_writer_free(writer);
	return r;
}

static void need_root(void)
{
	if (geteuid() != 0)
		cr_skip_test("needs root");
}

/* Reading ------------------------------------------------------------------------ */

Test(file, opens)
{
	struct bpk_error error = { .message = "" };
	struct bpk_reader *reader = NULL;
	struct stat a, b;
	int fd;

	cr_assert_eq(write_small("a.bpk", NULL, NULL), 0);
	expect_pack("path", "a.bpk");
	fd = open("a.bpk", O_RDONLY);
	lseek(fd, 100, SEEK_SET);
	cr_assert_eq(bpk_reader_open_fd(fd, NULL, &reader, &error), 0, "%s",
		     error.message);
	cr_expect_neq(bpk_reader_fd(reader), fd);
	cr_expect_eq(lseek(fd, 0, SEEK_CUR), 100, "the offset of the caller moved");
	fstat(fd, &a);
	close(fd);
	cr_assert_eq(fstat(bpk_reader_fd(reader), &b), 0);
	cr_expect_eq(a.st_ino, b.st_ino);
	bpk_reader_close(reader);
}

Test(file, refuses_to_open)
{
	static const struct {
		const char *path;
		int r;
		enum bpk_code code;
		const char *message;
	} rows[] = {
		{ "none.bpk", -ENOENT, BPK_ERR_IO,
		  "cannot open \"none.bpk\": No such file or directory" },
		{ "folder", -EISDIR, BPK_ERR_IO,
		  "cannot use \"folder\": Is a directory" },
		{ "fifo", -EINVAL, BPK_ERR_IO, "\"fifo\" is not a regular file" },
		{ "empty", -EBADMSG, BPK_ERR_NOT_BURNPACK,
		  "not a burnpack: the file is empty" },
	};

	mkdir("folder", 0755);
	mkfifo("fifo", 0644);
	put_file("empty", "", 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		struct bpk_reader *reader = NULL;
		int r = bpk_reader_open(rows[i].path, NULL, &reader, &error);

		cr_expect_eq(r, rows[i].r, "%s: %d", rows[i].path, r);
		cr_expect_eq(error.code, rows[i].code, "%s", rows[i].path);
		cr_expect_str_eq(error.message, rows[i].message, "%s", error.message);
		cr_expect_null(reader);
	}
}

Test(file, refuses_a_descriptor_that_is_no_file)
{
	struct bpk_reader *reader = NULL;
	struct bpk_error error;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_expect_eq(bpk_reader_open_fd(ends[0], NULL, &reader, &error), -EINVAL);
	cr_expect_str_eq(error.message, "the open file is not a regular file");
	cr_expect_eq(bpk_reader_open_fd(-1, NULL, &reader, &error), -EBADF);
	cr_expect_eq(error.code, BPK_ERR_IO);
}

/* What a replacement keeps -------------------------------------------------------- */

Test(file, a_new_file_honours_the_umask)
{
	static const mode_t masks[] = { 022, 077, 0, 0277 };

	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		struct stat st;

		umask(masks[i]);
		cr_assert_eq(write_small("new.bpk", NULL, NULL), 0);
		cr_assert_eq(stat("new.bpk", &st), 0);
		cr_expect_eq(st.st_mode & 07777, 0666 & ~masks[i], "umask %o: mode %o",
			     masks[i], st.st_mode & 07777);
		cr_expect_eq(count_names("."), 1u);
		unlink("new.bpk");
	}
}

Test(file, keeps_mode_and_xattrs)
{
	static const mode_t modes[] = { 0644, 0600, 0640, 0444, 0666, 0755, 02750 };
	char value[16] = "";
	struct stat st;

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		put_file("p.bpk", "old", 3);
		cr_assert_eq(chmod("p.bpk", modes[i]), 0);
		cr_assert_eq(write_small("p.bpk", NULL, NULL), 0);
		cr_assert_eq(stat("p.bpk", &st), 0);
		cr_expect_eq(st.st_mode & 07777, modes[i], "%o became %o", modes[i],
			     st.st_mode & 07777);
		unlink("p.bpk");
	}
	put_file("p.bpk", "old", 3);
	if (setxattr("p.bpk", "user.note", "kept", 4, 0) < 0)
		cr_skip_test("no user xattrs here");
	cr_assert_eq(setxattr("p.bpk", "user.empty", "", 0, 0), 0);
	cr_assert_eq(write_small("p.bpk", NULL, NULL), 0);
	cr_expect_eq(getxattr("p.bpk", "user.note", value, sizeof(value)), 4);
	cr_expect_str_eq(value, "kept");
	cr_expect_eq(getxattr("p.bpk", "user.empty", value, sizeof(value)), 0);
	expect_pack("xattrs", "p.bpk");
	cr_expect_eq(count_names("."), 1u);
}

/* user::rw- user:1234:r-- group::--- mask::r-- other::--- as the kernel stores it. */
static const char acl[] = "\2\0\0\0"
			  "\1\0\6\0\377\377\377\377"
			  "\2\0\4\0\322\4\0\0"
			  "\4\0\0\0\377\377\377\377"
			  "\20\0\4\0\377\377\377\377"
			  "\40\0\0\0\377\377\377\377";

Test(file, keeps_an_acl)
{
	char found[64];
	struct stat st;

	put_file("p.bpk", "old", 3);
	if (setxattr("p.bpk", "system.posix_acl_access", acl, sizeof(acl) - 1, 0) < 0)
		cr_skip_test("no ACLs here");
	cr_assert_eq(write_small("p.bpk", NULL, NULL), 0);
	cr_expect_eq(getxattr("p.bpk", "system.posix_acl_access", found, sizeof(found)),
		     (ssize_t)sizeof(acl) - 1);
	cr_expect_arr_eq(found, acl, sizeof(acl) - 1);
	stat("p.bpk", &st);
	cr_expect_eq(st.st_mode & 07777, 0640);
}

/* One that the folder gives to new files is not one that the old file had. */
Test(file, takes_no_acl_from_the_folder)
{
	char found[64];

	put_file("p.bpk", "old", 3);
	if (setxattr(".", "system.posix_acl_default", acl, sizeof(acl) - 1, 0) < 0)
		cr_skip_test("no ACLs here");
	cr_assert_eq(write_small("p.bpk", NULL, NULL), 0);
	cr_expect_lt(getxattr("p.bpk", "system.posix_acl_access", found, sizeof(found)),
		     0);
	/* A new file does get it. */
	cr_assert_eq(write_small("new.bpk", NULL, NULL), 0);
	cr_expect_gt(getxattr("new.bpk", "system.posix_acl_access", found, sizeof(found)),
		     0);
}

Test(file, keeps_the_owner)
{
	struct stat st;

	need_root();
	put_file("p.bpk", "old", 3);
	cr_assert_eq(chmod("p.bpk", 04640), 0);
	cr_assert_eq(chown("p.bpk", 1234, 2345), 0);
	cr_assert_eq(chmod("p.bpk", 04640), 0);
	cr_assert_eq(write_small("p.bpk", NULL, NULL), 0);
	cr_assert_eq(stat("p.bpk", &st), 0);
	cr_expect_eq(st.st_uid, 1234u);
	cr_expect_eq(st.st_gid, 2345u);
	cr_expect_eq(st.st_mode & 07777, 04640);
}

Test(file, an_owner_that_cannot_be_kept)
{
	struct bpk_error error = { .message = "" };

	need_root();
	put_file("p.bpk", "old", 3);
	cr_assert_eq(chmod(".", 0777), 0);
	cr_assert_eq(seteuid(NOBODY), 0);
	cr_expect_eq(write_small("p.bpk", NULL, &error), -EPERM);
	cr_expect_str_eq(error.message,
			 "cannot keep the owner of \"p.bpk\": Operation not permitted");
	cr_expect_eq(error.code, BPK_ERR_IO);
	expect_content("old", "p.bpk", "old", 3);
	cr_expect_eq(count_names("."), 1u);
}

/* A folder that one may write in but not list. */
Test(file, a_folder_that_cannot_be_opened)
{
	need_root();
	cr_assert_eq(mkdir("blind", 0755), 0);
	cr_assert_eq(chmod("blind", 0333), 0);
	cr_assert_eq(chmod(".", 0755), 0);
	cr_assert_eq(seteuid(NOBODY), 0);
	cr_expect_eq(write_small("blind/p.bpk", NULL, NULL), 0);
	cr_assert_eq(seteuid(0), 0);
	expect_pack("blind", "blind/p.bpk");
	cr_expect_eq(count_names("blind"), 1u);
}

/* Links --------------------------------------------------------------------------- */

Test(file, follows_symlinks)
{
	static const struct {
		const char *label, *link, *to, *target;
		bool exists;
	} rows[] = {
		{ "beside", "l1", "p1.bpk", "p1.bpk", true },
		{ "relative to the link", "sub/l2", "../p2.bpk", "p2.bpk", true },
		{ "dangling", "l3", "sub/p3.bpk", "sub/p3.bpk", false },
	};
	char chain[128];
	struct stat st;

	mkdir("sub", 0755);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].exists)
			put_file(rows[i].target, "old", 3);
		cr_assert_eq(symlink(rows[i].to, rows[i].link), 0);
		cr_assert_eq(write_small(rows[i].link, NULL, NULL), 0, "%s",
			     rows[i].label);
		cr_assert_eq(lstat(rows[i].link, &st), 0);
		cr_expect(S_ISLNK(st.st_mode), "%s", rows[i].label);
		cr_assert_eq(lstat(rows[i].target, &st), 0);
		cr_expect(S_ISREG(st.st_mode), "%s", rows[i].label);
		expect_pack(rows[i].label, rows[i].link);
	}
	/* Two links, the first absolute; and one that turns in a circle. */
	snprintf(chain, sizeof(chain), "%s/sub/l2", dir);
	cr_assert_eq(symlink(chain, "l4"), 0);
	put_file("p2.bpk", "old", 3);
	cr_assert_eq(write_small("l4", NULL, NULL), 0);
	expect_pack("chain", "p2.bpk");
	cr_assert_eq(symlink("circle", "circle"), 0);
	cr_expect_eq(write_small("circle", NULL, NULL), -ELOOP);
}

Test(file, refuses_destinations)
{
	static const struct {
		const char *path;
		int r;
		const char *message;
	} rows[] = {
		{ "folder", -EISDIR, "cannot replace \"folder\": Is a directory" },
		{ "folder/", -EISDIR,
		  "cannot find the place of \"folder/\": Is a directory" },
		{ ".", -EISDIR, "cannot replace \".\": Is a directory" },
		{ "", -ENOENT,
		  "cannot find the place of \"\": No such file or directory" },
		{ "none/p.bpk", -ENOENT,
		  "cannot find the place of \"none/p.bpk\": No such file or directory" },
		{ "old/p.bpk", -ENOTDIR,
		  "cannot find the place of \"old/p.bpk\": Not a directory" },
		{ "fifo", -EINVAL, "\"fifo\" is not a regular file" },
	};

	mkdir("folder", 0755);
	mkfifo("fifo", 0644);
	put_file("old", "old", 3);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bpk_error error = { .message = "" };
		int r = write_small(rows[i].path, NULL, &error);

		cr_expect_eq(r, rows[i].r, "%s: %d", rows[i].path, r);
		cr_expect_str_eq(error.message, rows[i].message, "%s", error.message);
		cr_expect_eq(error.code, BPK_ERR_IO);
	}
	cr_expect_eq(count_names("."), 3u);
	cr_expect_eq(count_names("folder"), 0u);
}

/* A name that leaves no room for the scratch name's own letters. */
Test(file, names_of_every_length)
{
	char name[300];

	for (size_t size = 230; size <= 255; size++) {
		memset(name, 'n', size);
		name[size] = '\0';
		cr_expect_eq(write_small(name, NULL, NULL), 0, "%zu", size);
		expect_pack("long name", name);
		cr_expect_eq(count_names("."), 1u);
		unlink(name);
	}
	memset(name, 'n', 256);
	name[256] = '\0';
	cr_expect_eq(write_small(name, NULL, NULL), -ENAMETOOLONG);
}

/* The way without O_TMPFILE. */
Test(file, named_scratch)
{
	const struct bpk_io_replace named = { .named = true };
	struct bpk_io_file file;
	struct bpk_error error = { .message = "" };
	struct stat st;
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	memcpy(name + 236, "\xc3\xa9\xc3\xa9\xc3\xa9", 6);
	put_file(name, "old", 3);
	cr_assert_eq(chmod(name, 0604), 0);
	cr_assert_eq(bpk_io_replace_begin(name, &named, &file, &error), 0, "%s",
		     error.message);
	cr_expect_eq(count_names("."), 2u);
	cr_assert_eq(stat(file.scratch, &st), 0, "%s", file.scratch);
	cr_expect_eq(st.st_mode & 07777, 0600);
	cr_expect_eq(file.scratch[0], '.');
	cr_expect_eq(bpk_io_write(&file, "new", 3), 0);
	bpk_io_skip(&file, 2);
	cr_expect_eq(bpk_io_replace_finish(&file, &error), 0, "%s", error.message);
	expect_content("before", name, "old", 3);
	cr_expect_eq(bpk_io_replace_commit(&file, &error), 0, "%s", error.message);
	bpk_io_done(&file);
	expect_content("after", name, "new\0\0", 5);
	stat(name, &st);
	cr_expect_eq(st.st_mode & 07777, 0604);
	cr_expect_eq(count_names("."), 1u);
	/* Given up: nothing stays. */
	cr_assert_eq(bpk_io_replace_begin("new", &named, &file, &error), 0);
	cr_expect_eq(count_names("."), 2u);
	bpk_io_done(&file);
	cr_expect_eq(count_names("."), 1u);
}

/* A folder that took the place of the file while it was written. */
Test(file, a_rename_that_cannot_happen)
{
	const struct bpk_io_replace any = { .named = false };
	struct bpk_io_file file;
	struct bpk_error error;

	cr_assert_eq(bpk_io_replace_begin("p.bpk", &any, &file, &error), 0);
	cr_assert_eq(bpk_io_replace_finish(&file, &error), 0);
	mkdir("p.bpk", 0755);
	cr_expect_eq(bpk_io_replace_commit(&file, &error), -EISDIR);
	cr_expect_str_eq(error.message,
			 "cannot rename the new file to \"p.bpk\": Is a directory");
	bpk_io_done(&file);
	cr_expect_eq(count_names("."), 1u);
}

/* Where the caller wants the scratch file, over what a killed run left there. */
Test(file, scratch_path)
{
	const struct bpk_write_options options = { .scratch = "aside/new" };

	cr_assert_eq(mkdir("aside", 0700), 0);
	put_file("aside/new", "left behind", 11);
	put_file("p.bpk", "old", 3);
	for (int named = 0; named < 2; named++) {
		const struct bpk_io_replace how = { .named = named,
						    .scratch = options.scratch };
		struct bpk_io_file file;

		cr_assert_eq(bpk_io_replace_begin("p.bpk", &how, &file, NULL), 0);
		cr_expect_eq(bpk_io_write(&file, "new", 3), 0);
		cr_expect_eq(bpk_io_replace_finish(&file, NULL), 0);
		expect_content("scratch", "aside/new", "new", 3);
		cr_expect_eq(count_names("."), 2u);
		cr_expect_eq(bpk_io_replace_commit(&file, NULL), 0);
		bpk_io_done(&file);
		expect_content("renamed", "p.bpk", "new", 3);
		cr_expect_eq(count_names("aside"), 0u);
		/* Given up: nothing stays. */
		cr_assert_eq(bpk_io_replace_begin("p.bpk", &how, &file, NULL), 0);
		cr_expect_eq(bpk_io_replace_finish(&file, NULL), 0);
		cr_expect_eq(count_names("aside"), 1u);
		bpk_io_done(&file);
		cr_expect_eq(count_names("aside"), 0u);
	}
	cr_expect_eq(write_small("p.bpk", &options, NULL), 0);
	cr_expect_eq(count_names("aside"), 0u);
	cr_expect_eq(count_names("."), 2u);
}

/* Only where nothing is, also when something came to be meanwhile. */
Test(file, exclusive)
{
	const struct bpk_write_options options = { .exclusive = true };
	const struct bpk_io_replace how = { .exclusive = true };
	struct bpk_io_file file;

	put_file("p.bpk", "old", 3);
	cr_expect_eq(write_small("p.bpk", &options, NULL), -EEXIST);
	expect_content("there before", "p.bpk", "old", 3);
	cr_expect_eq(write_small("new.bpk", &options, NULL), 0);
	cr_assert_eq(bpk_io_replace_begin("later", &how, &file, NULL), 0);
	cr_assert_eq(bpk_io_replace_finish(&file, NULL), 0);
	put_file("later", "theirs", 6);
	cr_expect_eq(bpk_io_replace_commit(&file, NULL), -EEXIST);
	bpk_io_done(&file);
	expect_content("came meanwhile", "later", "theirs", 6);
	cr_expect_eq(count_names("."), 3u);
}

/* Failures ------------------------------------------------------------------------- */

struct trouble {
	int provide_r;
	uint64_t provide_size;
	bool cancel;
	int confirm_r;
	unsigned int names_at_confirm;
	uint8_t *data;
};

static int trouble_provide(void *context, const void **ret_data, uint64_t *ret_size)
{
	struct trouble *trouble = context;

	*ret_data = trouble->data;
	*ret_size = trouble->provide_size;
	return trouble->provide_r;
}

static int trouble_progress(void *context, uint64_t done_size, uint64_t total_size)
{
	(void)total_size;
	return ((struct trouble *)context)->cancel && done_size > 9 * MIB;
}

static int trouble_confirm(void *context, int fd)
{
	struct trouble *trouble = context;

	trouble->names_at_confirm = count_names(".");
	cr_expect_gt(lseek(fd, 0, SEEK_END), (off_t)(20 * MIB));
	return trouble->confirm_r;
}

/* A small tensor, a deferred one of 20 MiB. */
static int write_trouble(struct trouble *trouble, const char *path, bool in_place,
			 struct bpk_error *error)
{
	static const uint64_t large[] = { 20 * MIB };
	const struct bpk_write_options options = {
		.progress = trouble_progress,
		.confirm = trouble_confirm,
		.context = trouble,
	};
	const struct bpk_provider provider = { trouble_provide, NULL, trouble };
	struct bpk_writer *writer = small_writer();
	struct bpk_tensor_desc desc = u8_desc("large", large);
	int r;

	trouble->data = calloc(1, 20 * MIB + 1);
	cr_assert_eq(bpk_writer_add_deferred(writer, &desc, large[0], &provider, NULL),
		     0);
	r = in_place ? bpk_writer_write_file_in_place(writer, path, &options, error)
		     : bpk_writer_write_file(writer, path, &options, error);
	bpk_writer_free(writer);
	free(trouble->data);
	return r;
}

static const struct {
	const char *label;
	struct trouble trouble;
	int r;
	enum bpk_code code;
	const char *message;
} troubles[] = {
	{ "failing provider",
	  { .provide_r = -EIO },
	  -EIO,
	  BPK_ERR_PROVIDER,
	  "tensor \"large\": its provider failed: Input/output error" },
	{ "short provider",
	  { .provide_size = 20 * MIB - 1 },
	  -EPROTO,
	  BPK_ERR_PROVIDER,
	  "tensor \"large\": 20971520 bytes were declared, its provider gave 20971519" },
	{ "long provider",
	  { .provide_size = 20 * MIB + 1 },
	  -EPROTO,
	  BPK_ERR_PROVIDER,
	  "tensor \"large\": 20971520 bytes were declared, its provider gave 20971521" },
	{ "cancel",
	  { .provide_size = 20 * MIB, .cancel = true },
	  -ECANCELED,
	  BPK_ERR_CANCELLED,
	  "cancelled after 16777728 of 20972032 bytes" },
	{ "confirm",
	  { .provide_size = 20 * MIB, .confirm_r = -ESTALE },
	  -ESTALE,
	  BPK_ERR_CONFIRM,
	  "\"p.bpk\" was not replaced, as the caller decided at the end: Stale file "
	  "handle" },
	{ "a confirm that is no errno",
	  { .provide_size = 20 * MIB, .confirm_r = 1 },
	  -ECANCELED,
	  BPK_ERR_CONFIRM,
	  "\"p.bpk\" was not replaced, as the caller decided at the end: Operation "
	  "canceled" },
};

Test(file, nothing_is_left_behind)
{
	struct stat before, after;

	put_file("p.bpk", "old", 3);
	stat("p.bpk", &before);
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		struct trouble trouble = troubles[i].trouble;
		struct bpk_error error = { .message = "" };
		int r = write_trouble(&trouble, "p.bpk", false, &error);

		cr_expect_eq(r, troubles[i].r, "%s: %d", troubles[i].label, r);
		cr_expect_eq(error.code, troubles[i].code, "%s", troubles[i].label);
		cr_expect_str_eq(error.message, troubles[i].message, "%s: %s",
				 troubles[i].label, error.message);
		expect_content(troubles[i].label, "p.bpk", "old", 3);
		cr_expect_eq(count_names("."), 1u, "%s", troubles[i].label);
		if (trouble.confirm_r)
			cr_expect_eq(trouble.names_at_confirm, 2u, "%s",
				     troubles[i].label);
	}
	stat("p.bpk", &after);
	cr_expect_eq(before.st_ino, after.st_ino);
	/* The same on a new name: then there is none afterwards. */
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		struct trouble trouble = troubles[i].trouble;

		cr_expect_lt(write_trouble(&trouble, "new.bpk", false, NULL), 0);
		cr_expect_eq(count_names("."), 1u, "%s", troubles[i].label);
	}
}

Test(file, a_full_disk)
{
	struct trouble trouble = { .provide_size = 20 * MIB };
	struct bpk_error error = { .message = "" };

	need_root();
	/* The mount goes with this process. */
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		cr_skip_test("cannot unshare mounts");
	mkdir("full", 0755);
	if (mount("tmpfs", "full", "tmpfs", 0, "size=10m") < 0)
		cr_skip_test("cannot mount a tmpfs");
	put_file("full/p.bpk", "old", 3);
	cr_expect_eq(write_trouble(&trouble, "full/p.bpk", false, &error), -ENOSPC);
	cr_expect_eq(error.code, BPK_ERR_IO);
	cr_expect_str_eq(error.message, "cannot write tensor \"large\" to "
					"\"full/p.bpk\": No space left on device");
	expect_content("full", "full/p.bpk", "old", 3);
	cr_expect_eq(count_names("full"), 1u);
	/* And the space is free again. */
	cr_expect_eq(write_small("full/p.bpk", NULL, NULL), 0);
	cr_expect_eq(umount("full"), 0);
}

Test(file, a_read_only_folder)
{
	struct bpk_error error = { .message = "" };

	put_file("p.bpk", "old", 3);
	cr_assert_eq(chmod(".", 0555), 0);
	if (geteuid() == 0)
		cr_assert_eq(seteuid(NOBODY), 0);
	cr_expect_eq(write_small("p.bpk", NULL, &error), -EACCES);
	cr_expect_str_eq(
		error.message,
		"cannot make a scratch file beside \"p.bpk\": Permission denied");
	expect_content("read-only", "p.bpk", "old", 3);
	cr_expect_eq(count_names("."), 1u);
	cr_expect_eq(seteuid(getuid()), 0);
	chmod(".", 0755);
}

/* In place ------------------------------------------------------------------------- */

Test(file, in_place)
{
	struct bpk_writer *writer = small_writer();
	struct bpk_error error = { .message = "" };
	struct stat before, after;

	umask(027);
	cr_expect_eq(bpk_writer_write_file_in_place(writer, "p.bpk", NULL, &error), 0,
		     "%s", error.message);
	stat("p.bpk", &before);
	cr_expect_eq(before.st_mode & 07777, 0640);
	expect_pack("new", "p.bpk");
	/* A longer file is cut. */
	cr_assert_eq(truncate("p.bpk", 5000), 0);
	cr_expect_eq(bpk_writer_write_file_in_place(writer, "p.bpk", NULL, NULL), 0);
	stat("p.bpk", &after);
	cr_expect_eq(before.st_ino, after.st_ino);
	expect_pack("again", "p.bpk");
	mkdir("folder", 0755);
	cr_expect_eq(bpk_writer_write_file_in_place(writer, "folder", NULL, &error),
		     -EISDIR);
	cr_expect_str_eq(error.message, "cannot open \"folder\": Is a directory");
	cr_expect_eq(bpk_writer_write_file_in_place(writer, "/dev/null", NULL, &error),
		     -EINVAL);
	cr_expect_str_eq(error.message, "\"/dev/null\" is not a regular file");
	bpk_writer_free(writer);
}

Test(file, a_failure_in_place_leaves_a_short_file)
{
	struct bpk_error error = { .message = "" };
	struct bpk_reader *reader = NULL;

	for (size_t i = 0; i < 4; i++) { /* not confirm: there is no rename */
		struct trouble trouble = troubles[i].trouble;

		put_file("p.bpk", "old", 3);
		cr_expect_eq(write_trouble(&trouble, "p.bpk", true, &error),
			     troubles[i].r, "%s", troubles[i].label);
		cr_expect_eq(bpk_reader_open("p.bpk", NULL, &reader, &error), -ENODATA,
			     "%s", troubles[i].label);
		cr_expect_eq(error.code, BPK_ERR_TRUNCATED, "%s", troubles[i].label);
	}
}

Test(file, a_range_of_the_same_file_in_place)
{
	static const uint64_t three[] = { 3 };
	struct bpk_writer *writer = small_writer();
	struct bpk_tensor_desc desc = u8_desc("range", three);
	struct bpk_error error;
	int fd;

	put_file("p.bpk", "old", 3);
	fd = open("p.bpk", O_RDONLY);
	cr_assert_eq(bpk_writer_add_range(writer, &desc, fd, 0, 3, NULL), 0);
	cr_expect_eq(bpk_writer_write_file_in_place(writer, "p.bpk", NULL, &error),
		     -EINVAL);
	cr_expect_str_eq(error.message, "tensor \"range\" is a range of \"p.bpk\", which "
					"cannot be written in place");
	expect_content("same", "p.bpk", "old", 3);
	/* Atomically it is fine. */
	cr_expect_eq(bpk_writer_write_file(writer, "p.bpk", NULL, NULL), 0);
	close(fd);
	bpk_writer_free(writer);
}

/* Ranges ----------------------------------------------------------------------------- */

/* Every way of lying in a block, sizes around blocks and pieces. */
Test(file, ranges_of_a_file, .timeout = 120)
{
	static const uint64_t sizes[] = { 0, 1, 4095, 4096, 4097, 12289, 9 * MIB + 3 };
	static const uint64_t offs[] = { 0, 1, 255, 256, 512, 4095, 4096, 5000 };
	const size_t total = 10 * MIB;
	uint8_t *source = malloc(total), *written;
	int fd;

	for (size_t i = 0; i < total; i++)
		source[i] = (uint8_t)(i * 31 + (i >> 8) + 3);
	put_file("source", source, total);
	fd = open("source", O_RDONLY);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t j = 0; j < sizeof(offs) / sizeof(*offs); j++) {
			struct bpk_writer *writer = small_writer();
			struct bpk_tensor_desc desc = u8_desc("range", &sizes[i]);
			struct bpk_error error = { .message = "" };
			size_t size;

			cr_assert_eq(bpk_writer_add_range(writer, &desc, fd, offs[j],
							  sizes[i], NULL),
				     0);
			cr_assert_eq(bpk_writer_write_file(writer, "p.bpk", NULL, &error),
				     0, "%s", error.message);
			written = get_file("p.bpk", &size);
			cr_expect_eq(size, 512 + sizes[i]);
			cr_expect_eq(memcmp(written + size - sizes[i], source + offs[j],
					    sizes[i]),
				     0, "%zu %zu", i, j);
			free(written);
			bpk_writer_free(writer);
		}
	}
	close(fd);
	free(source);
}

Test(file, a_range_past_the_end)
{
	static const uint64_t five[] = { 5 };
	struct bpk_writer *writer = small_writer();
	struct bpk_tensor_desc desc = u8_desc("range", five);
	struct bpk_error error;
	int fd;

	put_file("source", "0123456789", 10);
	put_file("p.bpk", "old", 3);
	fd = open("source", O_RDONLY);
	cr_assert_eq(bpk_writer_add_range(writer, &desc, fd, 8, 5, NULL), 0);
	cr_expect_eq(bpk_writer_write_file(writer, "p.bpk", NULL, &error), -ENODATA);
	cr_expect_str_eq(error.message,
			 "tensor \"range\": its file ends at offset 10, 3 bytes early");
	expect_content("old", "p.bpk", "old", 3);
	close(fd);
	bpk_writer_free(writer);
	/* Not open for reading: it is the reading that is blamed. */
	writer = small_writer();
	fd = open("source", O_WRONLY);
	cr_assert_eq(bpk_writer_add_range(writer, &desc, fd, 0, 5, NULL), 0);
	cr_expect_eq(bpk_writer_write_file(writer, "p.bpk", NULL, &error), -EBADF);
	cr_expect_str_eq(error.message,
			 "cannot read tensor \"range\": Bad file descriptor");
	cr_expect_eq(count_names("."), 2u);
	close(fd);
	bpk_writer_free(writer);
}

/* Files of /proc have size 0 and no copying in the kernel. */
Test(file, a_range_of_a_strange_file)
{
	static const uint64_t ten[] = { 10 };
	struct bpk_writer *writer = small_writer();
	struct bpk_tensor_desc desc = u8_desc("range", ten);
	struct bpk_error error = { .message = "" };
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t size;
	uint8_t *written;

	cr_assert_eq(bpk_writer_add_range(writer, &desc, fd, 0, 10, NULL), 0);
	cr_assert_eq(bpk_writer_write_file(writer, "p.bpk", NULL, &error), 0, "%s",
		     error.message);
	written = get_file("p.bpk", &size);
	cr_expect_eq(size, 522u);
	cr_expect_neq(written[512], 0);
	free(written);
	close(fd);
	bpk_writer_free(writer);
}
