#!/usr/bin/env python3
"""A file that several handles have open, and the ways in which bytes get into it: what
one writes, the others see at once, and nothing that was written is lost.

    two_handles.py FILE NPY     a tensor of 3 000 000 bytes on a writable mount, and
                                the same in npy/

Says what is wrong, a line for each; nothing when all is well.
"""
import mmap
import os
import random
import sys

PAGE = mmap.PAGESIZE


def check(what, got, wanted):
    if got != wanted:
        at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), None)
        print(f"{what}: {len(got)} bytes, wanted {len(wanted)}; the first other one at {at}")


def content(path):
    with open(path, "rb") as file:
        return file.read()


def mapped_by_a_reader(path):
    """Somebody keeps the pages of a shared mapping in use, while another writes."""
    size = 16 * PAGE
    reader = os.open(path, os.O_RDONLY)
    view = mmap.mmap(reader, size, mmap.MAP_SHARED, mmap.PROT_READ)
    child = os.fork()
    if child == 0:
        while True:
            for at in range(0, size, PAGE):
                view[at]
    try:
        writer = os.open(path, os.O_WRONLY)
        for turn in range(300):
            at, length = random.randrange(size), random.randrange(1, size)
            wanted = bytearray(view)
            data = bytes([turn % 251]) * min(length, size - at)
            wanted[at:at + len(data)] = data
            os.pwrite(writer, data, at)
            check(f"a mapping after write {turn}", bytes(view), bytes(wanted))
            check(f"read() after write {turn}", os.pread(reader, size, 0), bytes(wanted))
        os.close(writer)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    check("read() after all", content(path)[:size], bytes(view))


def mapped_by_a_writer(path):
    """Two write, one of them through a mapping, to the same pages."""
    shared = os.open(path, os.O_RDWR)
    view = mmap.mmap(shared, 4 * PAGE, mmap.MAP_SHARED)
    writer = os.open(path, os.O_WRONLY)
    for turn in range(100):
        view[2 * turn % PAGE] = turn
        os.pwrite(writer, bytes([turn]) * 3, PAGE // 2 + 8 * turn)
        view[PAGE + turn] = turn
    wanted = bytes(view)
    view.flush()
    check("both writers' bytes", content(path)[:4 * PAGE], wanted)
    for turn in range(100):
        check(f"bytes of write {turn}", wanted[PAGE // 2 + 8 * turn:][:3], bytes([turn]) * 3)
    os.close(writer)
    view.close()
    os.close(shared)


def from_the_same_mount(path):
    """The bytes come from a mapping of the file that is written."""
    reader = os.open(path, os.O_RDONLY)
    view = mmap.mmap(reader, 64 * PAGE, mmap.MAP_SHARED, mmap.PROT_READ)
    writer = os.open(path, os.O_WRONLY)
    half = bytes(view[32 * PAGE:])
    os.pwrite(writer, memoryview(view)[32 * PAGE:], 0)
    check("bytes of its other half", content(path)[:32 * PAGE], half)
    os.close(writer)
    os.close(reader)


def every_way_in(path):
    """Not only write(2) writes."""
    size = os.stat(path).st_size
    data = random.Random(2).randbytes(size)
    plain = os.memfd_create("plain")
    os.write(plain, data)

    def opened(flags=0):
        return os.open(path, os.O_WRONLY | flags)

    writer = opened(os.O_TRUNC)
    for at in range(0, size, 65521):
        os.pwrite(writer, data[at:at + 65521], at)
    os.close(writer)
    check("odd pieces", content(path), data)

    writer = opened()
    for at in random.Random(3).sample(range(size - 100), 200):
        os.pwrite(writer, data[at:at + 99], at)
    os.writev(writer, [data[k:k + 7] for k in range(0, 7000, 7)])
    os.close(writer)
    check("small pieces over the same", content(path), data)

    writer = opened(os.O_TRUNC | os.O_APPEND)
    for at in range(0, size, 1 << 18):
        os.write(writer, data[at:at + (1 << 18)])
    os.close(writer)
    check("append", content(path), data)

    writer, at = opened(os.O_TRUNC), 0
    while at < size:
        at += os.sendfile(writer, plain, at, size - at)
    os.close(writer)
    check("sendfile", content(path), data)

    writer, at = opened(os.O_TRUNC), 0
    ours, theirs = os.pipe()
    while at < size:
        got = os.splice(plain, theirs, 1 << 16, offset_src=at)
        done = 0
        while done < got:
            done += os.splice(ours, writer, got - done, offset_dst=at + done)
        at += got
    os.close(writer)
    check("splice", content(path), data)

    writer = opened(os.O_TRUNC)
    os.pwrite(writer, data[-1:], size - 1)
    os.pwrite(writer, data[:10], 5000)
    os.ftruncate(writer, size - 10)
    os.ftruncate(writer, size)
    os.close(writer)
    wanted = bytearray(size)
    wanted[5000:5010] = data[:10]
    check("holes", content(path), bytes(wanted))

    writer = opened(os.O_TRUNC)
    os.close(os.open(path, os.O_RDONLY))
    source = mmap.mmap(plain, size, mmap.MAP_SHARED, mmap.PROT_READ)
    os.pwrite(writer, source, 0)
    os.close(writer)
    check("one write of all, from a mapping", content(path), data)


def through_the_other_view(path, npy):
    """Who has it open sees what comes in by npy/, at once, also when neither size nor time
    tell; and who opens it anew does."""
    reader = os.open(path, os.O_RDONLY)
    size = os.fstat(reader).st_size
    whole = bytearray(content(npy))
    head = len(whole) - size

    def edit(turn):
        whole[head + turn] = turn
        with open(npy, "r+b") as file:
            file.write(whole)

    for turn in range(1, 50):
        check(f"before edit {turn}", os.pread(reader, turn, 0), bytes(range(turn)))
        edit(turn)
        check(f"who has it open, {turn}", os.pread(reader, size, 0), bytes(whole[head:]))
    os.close(reader)
    for turn in range(50, 100):
        os.utime(path, ns=(0, 10 ** 9))
        check(f"before edit {turn}", content(path)[:turn], bytes(range(turn)))
        edit(turn)
        os.utime(npy, ns=(0, 10 ** 9))
        check(f"who opens it, {turn}", content(path), bytes(whole[head:]))


def sizes_are_seen(path):
    """fstat(2) and the end of what can be read, of who has it open."""
    reader = os.open(path, os.O_RDONLY)
    size = os.fstat(reader).st_size
    for wanted in (size - 1, size + 4096, 10, size):
        os.pread(reader, 100, 0)
        os.fstat(reader)
        os.truncate(path, wanted)
        check(f"size {wanted}", [os.fstat(reader).st_size], [wanted])
        check(f"end {wanted}", [len(os.pread(reader, 100, wanted - 3))], [3])
    os.chmod(path, 0o640)
    check("mode", [os.fstat(reader).st_mode & 0o777], [0o640])
    os.utime(path, (0, 86400))
    check("time", [os.fstat(reader).st_mtime], [86400])
    os.unlink(path)
    check("links", [os.fstat(reader).st_nlink], [0])
    os.close(reader)


def main():
    path, npy = sys.argv[1:]
    with open(path, "r+b") as file:
        file.truncate(0)
        file.truncate(3000000)
    through_the_other_view(path, npy)
    mapped_by_a_reader(path)
    mapped_by_a_writer(path)
    from_the_same_mount(path)
    every_way_in(path)
    with open(path, "rb") as file:
        whole = file.read()
    sizes_are_seen(path)
    with open(path, "wb") as file:
        file.write(whole)


main()
