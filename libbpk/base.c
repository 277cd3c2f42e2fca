/*
 * base.c - what every other file here stands on: growth, UTF-8 and decimals.
 */
#include "base.h"
#include "bpk.h"

#include <errno.h>

BPK_EXPORT const char *bpk_version(void)
{
	return BPK_PROJECT_VERSION;
}

BPK_EXPORT void bpk_limits_init(struct bpk_limits *limits)
{
	*limits = (struct bpk_limits) {
		.file_size = UINT64_C(100) << 30,
		.metadata_size = UINT64_C(100) << 20,
		.tensor_size = UINT64_C(10) << 30,
		.tensor_count = 100000,
		.nesting = 128,
	};
}

/* How many of the first bytes are ASCII, found eight at a time. */
static size_t ascii_size(const uint8_t *p, size_t size)
{
	size_t done = 0;
	uint64_t eight;

	for (; size - done >= sizeof(eight); done += sizeof(eight)) {
		memcpy(&eight, p + done, sizeof(eight));
		if (eight & UINT64_C(0x8080808080808080))
			break;
	}
	while (done < size && p[done] < 0x80)
		done++;
	return done;
}

/*
 * The ranges are those of table 3-7 of the Unicode standard: what the second
 * byte may be depends on the first, every later byte is 80..BF.
 */
bool bpk_utf8_valid(const char *text, size_t size)
{
	const uint8_t *p = (const uint8_t *)text, *end = p + size;

	for (;;) {
		uint8_t first, low = 0x80, high = 0xbf;
		size_t more;

		p += ascii_size(p, (size_t)(end - p));
		if (p == end)
			return true;
		first = *p;
		if (first < 0xc2 || first > 0xf4)
			return false;
		more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
		if (first == 0xe0)
			low = 0xa0;
		else if (first == 0xed)
			high = 0x9f;
		else if (first == 0xf0)
			low = 0x90;
		else if (first == 0xf4)
			high = 0x8f;
		if ((size_t)(end - p) <= more || p[1] < low || p[1] > high)
			return false;
		for (size_t i = 2; i <= more; i++)
			if ((p[i] & 0xc0) != 0x80)
				return false;
		p += more + 1;
	}
}

size_t bpk_decimal(uint64_t value, char ret_digits[BPK_DECIMAL_SIZE])
{
	char backward[BPK_DECIMAL_SIZE];
	size_t count = 0;

	do {
		backward[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	for (size_t i = 0; i < count; i++)
		ret_digits[i] = backward[count - 1 - i];
	return count;
}

int bpk_grow(void **array, size_t *capacity, size_t needed, size_t element_size)
{
	size_t wanted = *capacity ? *capacity : 16;
	void *grown;

	if (needed <= *capacity)
		return 0;
	while (wanted < needed)
		if (__builtin_mul_overflow(wanted, 2, &wanted))
			return -ENOMEM;
	grown = reallocarray(*array, wanted, element_size);
	if (!grown)
		return -ENOMEM;
	*array = grown;
	*capacity = wanted;
	return 0;
}
