/*
 * mount.h - the whole state of one mount.
 *
 * Lock order: mount.writer_lock, mount.lock, staging.lock. mount.writer_lock makes
 * commits and journals come one after the other. It is held for as long as one takes,
 * and by no handler that answers at once. mount.lock is over the overlay, the nodes and
 * the handles. It is held for a look-up or an edit of tables in memory, and for a
 * write into the staging area, whose order against a truncate or a rename must be
 * the order of the edits. That includes the copy of a tensor's old bytes which a
 * first write into the middle of it needs: others wait for that copy. It is never
 * held across a reply, an fsync or a commit. What a reply needs after the lock is let
 * go is either immutable (the pack's mapping, which lives until unmount), counted
 * (struct staged), or a copy.
 */
#ifndef BPKFS_MOUNT_H
#define BPKFS_MOUNT_H

#include <pthread.h>
#include <sys/stat.h>

#include "by_path.h"
#include "node.h"
#include "numbers.h"
#include "overlay.h"
#include "staging.h"
#include "status.h"
#include "target.h"
#include "tree.h"
#include "trust.h"
#include "worker.h"

struct handle;

struct mount {
	/* Constant while mounted. */
	char *pack_path;    /* as mounted: absolute, symlinks resolved */
	char *scratch_path; /* of a new pack until it is renamed */
	bool writable;	    /* it may be edited */
	enum name_dots dots;
	uid_t uid;
	gid_t gid;
	mode_t file_mode;
	mode_t folder_mode;
	struct staging staging;
	struct numbers numbers; /* what the kernel is told of those of the nodes */
	struct place *place;	/* in a directory of packs; else NULL */

	/* Held by whoever writes the journal or the pack, before mount.lock. */
	pthread_mutex_t writer_lock;
	struct target target; /* what is replaced then */

	struct workers workers; /* commits that were asked for */

	pthread_mutex_t lock; /* guards all below */
	bool is_writer; /* staging and locks are there; in a directory with the first edit
			 */
	struct overlay overlay;
	struct cuts cuts[PACK_KIND_COUNT][2]; /* [1] through npy/, of tensors alone */
	struct nodes nodes;
	struct by_path by_path; /* where nothing can change */
	struct handle **handles;
	size_t handle_count;
	size_t handle_hint;
	size_t open_handles;
	uint64_t requests;	 /* so far, but forget and statfs; tells who is idle */
	struct timespec changed; /* when the last edit was made */
	uint64_t edits;		 /* counts them */
	struct trust trust;	 /* what the kernel keeps of attributes */
	/* What the pack's descriptions show now, or did before the last edit. */
	struct rendered *rendered[RENDERED_COUNT];

	/* How the last commit went; and the one that is under way. */
	enum status result;
	char message[1024];
	int commit_error; /* what fsync(2) of a folder says of it: 0 or -errno */
	bool committing;
	bool discard;			    /* at unmount nothing is committed */
	bool kept;			    /* the staging folder is for the next mount */
	uint64_t commit_done, commit_total; /* bytes; atomic */
	char *refusal; /* why the last edit of a pack in a directory was refused, or NULL
			*/
};

/* The file of the tensor @item in tensors/, or in npy/, has other bytes without having
 * been written to. If more than @handles have it open, it has another time: by that the
 * kernel sees that its pages are old. Locked. */
void mount_changed_unseen(struct mount *mount, struct item *item, bool npy,
			  unsigned handles);

/* What is kept beside the overlay, which is there: nothing known to the kernel. 0 or
 * -errno; mount_done() takes what is half made, and twice, too. */
int mount_init(struct mount *mount);
void mount_done(struct mount *mount);

/* The node that the kernel was told of as @number, or NULL: nodes_find(). Locked. */
struct node *mount_find(struct mount *mount, uint64_t number);
/* Is @fixed there? Not .bpkfs/ of each pack in a directory, which has one for all; and
 * by-path/ where there are paths and nothing can change. */
bool mount_shows(struct mount *mount, const struct fixed_node *fixed);
/* Where a NODE_LINK leads, malloc'd; NULL without memory. Locked. */
char *mount_link_target(struct mount *mount, const struct node *node);

/* Has it no edit, not even one that is for the time of the mount alone, and nothing to be
 * said of the last commit? Then it can be made again from the pack. Locked. */
bool mount_is_unedited(struct mount *mount);
/* Has it nothing that would be missed if another file were in the place of its pack: no
 * edit that a commit would write, no scratch file, and nothing to be said? Locked. */
bool mount_is_settled(struct mount *mount);
/* An edit is made: what was rendered before is of the past. Locked. */
void mount_edited(struct mount *mount);
/* The file that describes the pack as it is now, borrowed until the next edit.
 * Locked; the errors of rendered_new(). */
int mount_rendered(struct mount *mount, enum rendered_kind kind,
		   struct rendered **ret_rendered);

/* The overlay is over another pack: nothing that was derived from the old one is
 * kept. Locked. */
void mount_pack_changed(struct mount *mount);

/* The folder that @node is. *@ret_prefix is malloc'd and what folder points to. */
int mount_folder(struct mount *mount, const struct node *node, struct folder *ret_folder,
		 char **ret_prefix);

#endif
