#!/usr/bin/env python3
"""A file that several handles have open, and the ways in which bytes get into it: what
one writes, the others see at once, and nothing that was written is lost.

    two_handles.py FILE NPY [SEED COUNT]     a tensor of 3 000 000 bytes on a writable
                                             mount, and the same in npy/

With a seed: so many steps of anything, of a tensor whose shape follows its length.

Says what is wrong, a line for each; nothing when all is well.
"""
import contextlib
import fcntl
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


def closed_drafts(path, npy):
    """A .npy file becomes the tensor when it is closed, after it was written; and who
    appends does so behind what is there then."""
    size = os.stat(path).st_size
    head = content(npy)[:os.stat(npy).st_size - size]

    def save(data):
        with open(npy, "wb", buffering=0) as file:
            file.write(head + data[:size // 2])
            file.write(data[size // 2:])
            os.pread(reader, 100, size - 100)

    for turn in range(1, 20):
        reader = os.open(path, os.O_RDONLY)
        save(bytes([turn]) * size)
        check(f"draft {turn}", os.pread(reader, 100, size - 100), bytes([turn]) * 100)
        os.close(reader)
    for late in False, True:
        reader = os.open(path, os.O_RDONLY)
        appender = os.open(path, os.O_WRONLY | (0 if late else os.O_APPEND))
        os.pwrite(appender, b"x", size)
        if late:
            fcntl.fcntl(appender, fcntl.F_SETFL, os.O_APPEND)
        save(bytes(size))
        os.write(appender, b"end")
        check("appended", content(path), bytes(size) + b"end")
        os.truncate(path, size)
        os.close(appender)
        os.close(reader)


def mended_by_npy(path, npy):
    """What does not fit its shape, by an array that is as it is shown meanwhile."""
    size = os.stat(path).st_size
    os.setxattr(path, "user.bpk.shape", b"[%d]" % size)
    os.truncate(path, size - 1)
    whole = content(npy)
    try:
        with open(npy, "wb") as file:
            file.write(whole)
    except OSError as error:
        print(f"it is not mended: {error}")
    check("shape", os.getxattr(path, "user.bpk.shape"), b"[%d]" % (size - 1))
    os.truncate(path, size)
    os.setxattr(path, "user.bpk.shape", b"[%d]" % size)


def header_is_seen(path, npy):
    """Of who has the .npy file open, when the shape is set."""
    reader = os.open(npy, os.O_RDONLY)
    size = os.stat(path).st_size
    before = os.pread(reader, 200, 0)
    os.setxattr(path, "user.bpk.shape", b"[2,%d]" % (size // 2))
    check("the new header", os.pread(reader, 200, 0), content(npy)[:200])
    check("it is another one", [before != os.pread(reader, 200, 0)], [True])
    os.setxattr(path, "user.bpk.shape", b"[%d]" % size)
    os.close(reader)


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


def anything(path, npy, seed, count):
    """Whatever comes, by any of some handles: after each step all of them, mappings, both
    names and stat(2) show what a model has."""
    rng = random.Random(seed)
    room = 1 << 17
    handles = []  # descriptor, mode, mapping
    model = bytearray()
    os.truncate(path, 0)

    def put(at, data):
        if at > len(model):
            model.extend(bytes(at - len(model)))
        model[at:at + len(data)] = data

    def show(step):
        got = [content(path), content(npy)[len(content(npy)) - len(model):]]
        got += [os.pread(fd, 2 * room, 0) for fd, mode, _ in handles if mode != os.O_WRONLY]
        got += [view[:len(model)] for _, _, view in handles if view and len(view) >= len(model)]
        for k, one in enumerate(got):
            check(f"seed {seed}, {step}, view {k}", one, bytes(model))
        sizes = [os.fstat(fd).st_size for fd, _, _ in handles] + [os.stat(path).st_size]
        check(f"seed {seed}, {step}, sizes", sizes, [len(model)] * len(sizes))

    # Once it was committed it has a shape, which its length may not be.
    def fits():
        return os.getxattr(path, "user.bpk.shape") == b"[%d]" % len(model)

    def close(fd):
        with contextlib.suppress(OSError):
            os.close(fd)

    def send(fd, at, data):
        source = os.memfd_create("source")
        os.write(source, data)
        os.lseek(fd, at, os.SEEK_SET)
        done = 0
        while done < len(data):
            done += os.sendfile(fd, source, done, len(data) - done)
        os.close(source)

    def step(number):
        what = rng.choice(["open", "open", "close", "write", "write", "send", "truncate", "map",
                           "store", "touch", "sync", "commit", "npy"])
        at = rng.randrange(room)
        data = rng.randbytes(rng.choice([1, 7, 4096, 5000, 70000]))
        writers = [fd for fd, mode, _ in handles if mode != os.O_RDONLY]
        mapped = [view for _, mode, view in handles if view and mode == os.O_RDWR]
        if what == "open" and len(handles) < 6:
            mode = rng.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
            handles.append([os.open(path, mode), mode, None])
        elif what == "close" and handles:
            close(handles.pop(rng.randrange(len(handles)))[0])
        elif what == "write" and writers:
            os.pwrite(rng.choice(writers), data, at)
            put(at, data)
        elif what == "send" and writers:
            send(rng.choice(writers), at, data)
            put(at, data)
        elif what == "truncate":
            os.truncate(rng.choice([path, *writers]), at)
            put(at, b"")
            del model[at:]
        elif what == "map" and model and handles:
            handle = rng.choice(handles)
            if handle[1] != os.O_WRONLY and not handle[2]:
                write = mmap.PROT_WRITE if handle[1] == os.O_RDWR else 0
                handle[2] = mmap.mmap(handle[0], len(model), mmap.MAP_SHARED,
                                      mmap.PROT_READ | write)
        elif what == "store" and mapped and model:
            view = rng.choice(mapped)
            end = min(len(view), len(model))
            at %= end
            data = data[:end - at]
            view[at:at + len(data)] = data
            view.flush()
            put(at, data)
        elif what == "touch":
            os.utime(path, ns=(0, rng.choice([1, 2]) * 10 ** 9))
        elif what == "sync" and handles:
            os.fsync(rng.choice(handles)[0])
        elif what == "commit" and number % 4 == 0 and fits():
            folder = os.open(os.path.dirname(path), os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        elif what == "npy" and not writers and model and fits():
            whole = bytearray(content(npy))
            at %= len(model)
            data = data[:len(model) - at]
            start = len(whole) - len(model) + at
            whole[start:start + len(data)] = data
            with open(npy, "r+b") as file:
                file.write(whole)
            put(at, data)
        return what

    for number in range(count):
        show(f"step {number}, {step(number)}")
    for fd, _, _ in handles:
        close(fd)


def main():
    path, npy = sys.argv[1:3]
    if len(sys.argv) > 3:
        anything(path, npy, int(sys.argv[3]), int(sys.argv[4]))
        return
    with open(path, "r+b") as file:
        file.truncate(0)
        file.truncate(3000000)
    through_the_other_view(path, npy)
    closed_drafts(path, npy)
    mended_by_npy(path, npy)
    header_is_seen(path, npy)
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
