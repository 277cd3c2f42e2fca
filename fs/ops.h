/*
 * ops.h - the FUSE handlers: unpack the request, take the lock, one call, let the
 * lock go, exactly one reply.
 */
#ifndef BPKFS_OPS_H
#define BPKFS_OPS_H

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <sys/ioctl.h>

#include "handle.h"
#include "library.h"
#include "mount.h"
#include "writers.h"

/* How long the kernel may keep a name or attributes: for good when nothing can
 * change, not at all where a dotted spelling may change what another one names. */
#define FOREVER 86400.0

/* Asks the daemon to tell how the commit at unmount went, to the abstract socket
 * of that name. On any folder of the mount. */
#define CONTROL_NAME_SIZE 64
#define CONTROL_REPORT_TO _IOW('b', 1, char[CONTROL_NAME_SIZE])

/* How the last commit went, and how far the one is that is under way. */
struct control_info {
	int32_t writable;
	int32_t status; /* enum status of the last one */
	int32_t committing;
	int32_t changes; /* edits that are not committed */
	uint64_t done, total;
	char message[CONTROL_MESSAGE_SIZE];
};
#define CONTROL_INFO _IOR('b', 2, struct control_info)
/* Nothing is to be committed at unmount (1), or it is after all (0). */
#define CONTROL_DISCARD _IOW('b', 3, int32_t)

/* userdata of the session. */
struct session {
	struct mount *mount;	 /* of one pack, or NULL */
	struct library *library; /* of a directory of packs, or NULL */
	struct fuse_session *fuse;
	/* Guarded by the lock of either; "" for nobody. */
	char report_to[CONTROL_NAME_SIZE];
};

extern const struct fuse_lowlevel_ops bpkfs_ops;
/* The same for a directory of packs: ops_library.c. */
extern const struct fuse_lowlevel_ops library_ops;

/* The mount that the number is of, with its lock: the only one, or that of a pack in a
 * directory, which stays open until ops_leave(). 0 or -errno. */
int ops_enter(struct session *session, fuse_ino_t ino, struct mount **ret_mount);
void ops_leave(struct session *session, struct mount *mount);
/* The same, and find the node. Without one it is left and answered; NULL then. */
struct node *ops_begin(fuse_req_t req, fuse_ino_t ino, struct mount **ret_mount);
/* As ops_begin(), for an edit: of a mount that may be edited, and is the writer of its
 * pack from then on. Not for what was begun before, as a write. */
struct node *ops_begin_edit(fuse_req_t req, fuse_ino_t ino, struct mount **ret_mount);
/* ops_leave(), before the answer. What the kernel keeps of attributes goes if something
 * was edited. */
void ops_end(fuse_req_t req, struct mount *mount);
/* And answer with an error. */
void ops_fail(fuse_req_t req, struct mount *mount, int negative_errno);
/* The kernel has to ask for the attributes again. */
void ops_tell_stale(const struct session *session, fuse_ino_t ino);
/* May a handle write to it, on a writable mount? Locked. */
bool ops_can_write(const struct node *node);
/* Attributes of a node. 0 or -ENOMEM. Locked. */
int ops_attributes(struct mount *mount, const struct node *node, bool writer,
		   struct stat *ret_stat);
/* What a reply tells of a node, which the kernel then knows once more. 0 or
 * -ENOMEM. Locked. */
int ops_entry(struct mount *mount, struct node *node, bool alias,
	      struct fuse_entry_param *ret_entry);
/* The node of @text in @parent; 0 or -errno. Locked. */
int ops_find(struct mount *mount, struct node *parent, const char *text,
	     struct node **ret_node, bool *ret_alias);

/* ops.c */
void ops_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_readlink(fuse_req_t req, fuse_ino_t ino);
void ops_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		 struct fuse_file_info *fi);
void ops_statfs(fuse_req_t req, fuse_ino_t ino);
void ops_init(void *userdata, struct fuse_conn_info *conn);
/* ops_control.c */
void ops_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int command, void *arg,
	       struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size,
	       size_t out_size);
/* ops_dir.c */
void ops_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		 struct fuse_file_info *fi);
void ops_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		     struct fuse_file_info *fi);
void ops_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync,
		  struct fuse_file_info *fi);
void ops_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
/* ops_name.c */
void ops_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void ops_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		fuse_ino_t new_parent, const char *new_name, unsigned int flags);
void ops_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void ops_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	       dev_t device);
void ops_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name);
void ops_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *name);
/* ops_xattr.c */
void ops_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void ops_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void ops_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
		  size_t size, int flags);
void ops_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);
/* ops_file.c */
void ops_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
		struct fuse_file_info *fi);
void ops_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
	      struct fuse_file_info *fi);
void ops_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
	       struct fuse_file_info *fi);
void ops_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t size,
		   struct fuse_file_info *fi);
void ops_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void ops_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

#endif
