/*
 * kept.c - see kept.h.
 */
#include "kept.h"
#include "describe.h"
#include "error.h"
#include "journal.h"
#include "scalar_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Every value, and which staged file holds which tensor. */
static int print_value(void *context, const struct item *item, enum change change)
{
	FILE *out = context;
	char text[SCALAR_TEXT_BUFFER], quoted[BPK_QUOTE_SIZE];

	if (change == CHANGE_REMOVED || !item->linked)
		return 0;
	bpk_quote(quoted, item->name, item->name_size);
	if (item->kind == ITEM_SCALAR && item->has_value) {
		scalar_format(item->value, text);
		fprintf(out, "scalar %s = %s\n", quoted, text);
	} else if (item->kind == ITEM_METADATA && item->has_value) {
		fprintf(out, "metadata %s, %zu bytes:\n", quoted, item->text->size);
		fwrite(item->text->data, 1, item->text->size, out);
		putc(0x0a, out);
	} else if (item->staged) {
		fprintf(out, "tensor %s = file %ju\n", quoted,
			(uintmax_t)item->staged->number);
	}
	return 0;
}

/* Say beside the staged data what it is: a list that a person can act on. */
static int write_list(const struct mount *mount)
{
	size_t size;
	char *text = describe_changes(mount, "", &size);
	int fd = staging_open_at(&mount->staging, STAGING_RESERVE,
				 O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int result = -EIO;

	if (out && text) {
		fwrite(text, 1, size, out);
		result = overlay_each_change(&mount->overlay, print_value, out);
		if (fflush(out) != 0 || ftruncate(fd, ftello(out)) < 0 || fsync(fd) < 0 ||
		    renameat(mount->staging.dir_fd, STAGING_RESERVE,
			     mount->staging.dir_fd, STAGING_KEPT) < 0 ||
		    fsync(mount->staging.dir_fd) < 0)
			result = -errno;
	}
	free(text);
	if (out)
		fclose(out);
	else if (fd >= 0)
		close(fd);
	return result;
}

/* When edits that are saved come back. */
static const char *way_back(const struct mount *mount, enum status status)
{
	const struct target *target = &mount->target;

	if (status != STATUS_PACK_CHANGED)
		return "kept for the next writable mount";
	if (!pack_intact(mount->overlay.pack))
		return "kept, and listed in the file " STAGING_KEPT ",";
	if (mount->overlay.pack->unborn)
		return "kept until that is moved away and the new pack is mounted with "
		       "\"-o create\" again,";
	if (!target->there)
		return "kept until that is moved away, or is to be replaced by \"-o "
		       "overwrite\",";
	if (target->fd >= 0)
		return "kept for the next mount with this output";
	return "kept until the pack that was mounted is back in its place";
}

void keep_edits(struct mount *mount, enum status status)
{
	char message[sizeof(mount->message)];
	int listed = write_list(mount), saved;
	const char *how;

	staging_free_reserve(&mount->staging);
	saved = journal_save(mount);
	how = staging_gone(&mount->staging) ? "lost: somebody removed what was staged"
	      : !saved			    ? way_back(mount, status)
	      : !listed			    ? "listed and staged"
			: "staged, though the list of them could not be kept,";
	snprintf(message, sizeof(message), "%.600s; the edits are %s in %s",
		 mount->message, how, mount->staging.path);
	snprintf(mount->message, sizeof(mount->message), "%s", message);
	mount->kept = true;
}
