/*
 * handle.c - see handle.h.
 */
#include "handle.h"
#include "listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int handle_new(struct mount *mount, struct node *node, uint64_t *ret_number)
{
	size_t at = mount->handle_hint;
	struct handle *handle;

	while (at < mount->handle_count && mount->handles[at])
		at++;
	if (at == mount->handle_count) {
		size_t count = mount->handle_count ? mount->handle_count * 2 : 64;
		struct handle **grown =
			reallocarray(mount->handles, count, sizeof(*mount->handles));

		if (!grown)
			return -ENOMEM;
		memset(grown + mount->handle_count, 0,
		       (count - mount->handle_count) * sizeof(*grown));
		mount->handles = grown;
		mount->handle_count = count;
	}
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	handle->node = node;
	node_ref(node);
	mount->handles[at] = handle;
	mount->open_handles++;
	mount->handle_hint = at + 1;
	*ret_number = at;
	return 0;
}

struct handle *handle_get(struct mount *mount, uint64_t number)
{
	return number < mount->handle_count ? mount->handles[number] : NULL;
}

void handle_free(struct mount *mount, uint64_t number)
{
	struct handle *handle = handle_get(mount, number);

	if (!handle)
		return;
	mount->handles[number] = NULL;
	mount->open_handles--;
	mount->requests++;
	if (number < mount->handle_hint)
		mount->handle_hint = number;
	if (handle->rendered)
		rendered_close(handle->rendered);
	node_unref(&mount->nodes, &mount->overlay, handle->node);
	listing_free(handle->listing);
	free(handle->text);
	free(handle);
}

void handles_done(struct mount *mount)
{
	for (size_t i = 0; i < mount->handle_count; i++)
		handle_free(mount, i);
	free(mount->handles);
	mount->handles = NULL;
	mount->handle_count = 0;
}
