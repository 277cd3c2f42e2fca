#!/usr/bin/env python3
"""Different names with one FNV-1a 64 hash, as many as are wanted.

    collide.py COUNT [LEAD]      COUNT pairs of blocks: whichever block of each pair is
                                 taken, LEAD (240 times x) and the blocks have one hash

A step of the hash is h = (h ^ byte) * PRIME. An xor with a byte is a sum with a number
between -255 and 255, so after n bytes h is linear in n small numbers, and two texts
have hashes that differ by D when the differences e[i] of these numbers satisfy

    sum(e[i] * PRIME ** (n - i)) = D   (mod 2 ** 64)

The solutions for D = 0 are a lattice. Its reduced basis (LLL, n = 10) has a vector with
no element above 41, which is SAME; a close vector for D = 1 (Babai's nearest plane)
is NEXT. Whatever the state in front is, a depth-first search then finds in no time ten
letters or digits for both texts whose steps differ by just these.
"""
import sys

PRIME, MASK = 0x100000001B3, (1 << 64) - 1
SAME = (40, -15, 7, -5, -18, 34, 10, 11, -41, 5)
NEXT = (-28, -13, -29, -15, -2, -30, -11, 10, -36, 17)
BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

for steps, difference in ((SAME, 0), (NEXT, 1)):
    assert sum(e * PRIME ** (10 - i) for i, e in enumerate(steps)) & MASK == difference


def fnv(data, state=0xCBF29CE484222325):
    for byte in data:
        state = (state ^ byte) * PRIME & MASK
    return state


def pair(state, steps=SAME):
    """Two blocks that from @state on lead to hashes which differ as @steps say."""
    def search(one, two, first, second):
        if len(first) == len(steps):
            return first, second
        for byte in BYTES:
            low = (two & 255) + ((one & 255 ^ byte) - (one & 255)) + steps[len(first)]
            other = (two & 255 ^ low) if 0 <= low < 256 else -1
            if other >= 0 and other in BYTES:
                found = search((one ^ byte) * PRIME & MASK, (two ^ other) * PRIME & MASK,
                               first + bytes([byte]), second + bytes([other]))
                if found:
                    return found
        return None
    first, second = search(state, state, b"", b"")
    return first.decode(), second.decode()


def pairs(count, lead):
    state = fnv(lead.encode())
    for _ in range(count):
        found = pair(state)
        yield found
        state = fnv(found[0].encode(), state)


def names(count, lead):
    """@count names that begin with @lead and have one hash."""
    found = [lead]
    for one, two in pairs((count - 1).bit_length(), lead):
        found = [name + block for name in found for block in (one, two)]
    return found[:count]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    for blocks in pairs(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "x" * 240):
        print(*blocks)
