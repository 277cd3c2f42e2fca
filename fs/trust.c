/*
 * trust.c - see trust.h.
 */
#include "trust.h"
#include "base.h"

#include <stdlib.h>

bool trust_add(struct trust *trust, uint64_t number, uint64_t edits, uint64_t *mark)
{
	if (*mark == trust->turn + 1)
		return true;
	if (bpk_grow((void **)&trust->numbers, &trust->capacity, trust->count + 1,
		     sizeof(*trust->numbers)))
		return false;
	if (!trust->count)
		trust->edits = edits;
	trust->numbers[trust->count++] = number;
	*mark = trust->turn + 1;
	return true;
}

bool trust_remove(struct trust *trust, uint64_t number, const uint64_t *mark)
{
	if (*mark != trust->turn + 1)
		return false;
	for (size_t i = trust->count; i-- > 0;)
		if (trust->numbers[i] == number) {
			trust->numbers[i] = trust->numbers[--trust->count];
			return true;
		}
	return false;
}

uint64_t *trust_take(struct trust *trust, uint64_t edits, size_t *ret_count)
{
	uint64_t *numbers = trust->numbers;

	*ret_count = trust->count;
	if (!trust->count || trust->edits == edits)
		return NULL;
	*trust = (struct trust) { .turn = trust->turn + 1 };
	return numbers;
}

void trust_done(struct trust *trust)
{
	free(trust->numbers);
	*trust = (struct trust) { 0 };
}
