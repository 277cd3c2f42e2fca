#!/usr/bin/env python3
"""In which order a commit and an fsync reach the disk, by the system calls themselves.

The pack is never opened for writing and never truncated. A commit writes a scratch file,
fsyncs it, renames it over the pack, and fsyncs the folder, in this order. An fsync of a
file has fsynced staged bytes, journal, staging folder and what that lies in before it is
answered. Also with a journal there, and where no file without a name can be made.

Exit status 77: not root, no /dev/fuse, or no such filters here.
"""
import errno
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import oracle  # noqa: E402
from session import Session, Wrong, require  # noqa: E402

SPEC = {"tensors": [{"name": "a", "dtype": "F32", "shape": [3000]},
                    {"name": "b", "dtype": "U8", "shape": [100]}],
        "scalars": {"lr": {"Float": 0.5}}}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_CREAT
WRITES = {"write", "pwrite64", "writev", "pwritev", "copy_file_range", "sendfile", "clone",
          "ftruncate", "fallocate", "fchmod", "fchown", "fsetxattr", "fremovexattr"}
RENAMES = {"rename", "renameat", "renameat2"}


def never_written(session, calls):
    for call in calls:
        if call.path == session.pack and (
                (call.name.startswith("open") and int(call.detail, 8) & WRITING) or
                call.name in WRITES | {"unlink", "unlinkat", "truncate", "linkat"}):
            raise Wrong(f"the pack is written: {call}")


def is_committed(session, calls):
    """Exactly one rename over the pack, of what was whole on disk."""
    renames = [i for i, call in enumerate(calls)
               if call.name in RENAMES and call.path == session.pack]
    if len(renames) != 1:
        raise Wrong(f"{len(renames)} renames over the pack")
    at, inode = renames[0], os.stat(session.pack).st_ino
    before = [call for call in calls[:at] if call.inode == inode and call.name in WRITES]
    synced = [i for i, call in enumerate(calls) if call.inode == inode and
              call.name in ("fsync", "fdatasync")]
    if not before:
        raise Wrong("the scratch file is not written before the rename")
    if not synced or synced[-1] > at or calls.index(before[-1]) > synced[-1]:
        raise Wrong("the scratch file is not fsynced between the last write and the rename")
    after = [call for call in calls[at:] if call.inode == inode and call.name in WRITES]
    if after:
        raise Wrong(f"written after the rename: {after}")
    folder = os.stat(session.folder).st_ino
    answer = next((i for i, call in enumerate(calls) if i > at and call.name == "reply"),
                  len(calls))
    if not any(call.name == "fsync" and call.inode == folder for call in calls[at:answer]):
        raise Wrong("the folder is not fsynced after the rename and before the answer")
    gone = [i for i, call in enumerate(calls) if call.name in ("unlink", "unlinkat") and
            call.path.endswith("/journal")]
    if any(i < at for i in gone):
        raise Wrong("the journal goes before the pack has the edits")


def is_fsynced(session, calls):
    """All that was written to the staging folder, then that, before the last answer."""
    renames = [i for i, call in enumerate(calls)
               if call.name in RENAMES and call.path.endswith("/journal")]
    if len(renames) != 1:
        raise Wrong(f"{len(renames)} journals for one fsync")
    written = {call.inode for call in calls[:renames[0]] if call.name in WRITES}
    for inode in written:
        last = max(i for i, call in enumerate(calls) if call.inode == inode and
                   call.name in WRITES)
        if not any(call.name == "fsync" and call.inode == inode
                   for call in calls[last:renames[0]]):
            raise Wrong(f"not fsynced before the journal is in place: {calls[last]}")
    staging = os.path.dirname(calls[renames[0]].path)
    for folder, since in ((staging, renames[0]), (os.path.dirname(staging), 0)):
        inode = os.stat(folder).st_ino
        if not any(call.name == "fsync" and call.inode == inode for call in calls[since:]):
            raise Wrong(f"{folder} is not fsynced")


def fsync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def look(rules):
    session = Session(oracle.make(SPEC))
    session.flags = ["-s"]
    seen = 0

    def since():
        nonlocal seen
        calls = session.calls()[seen:]
        seen += len(calls)
        never_written(session, calls)
        return calls
    try:
        if session.mount(rules):
            raise Wrong(session.said())
        since()
        with open(session.at("tensors/b"), "wb") as file:
            file.write(b"1" * 100)
        with open(session.at("tensors/new"), "wb") as file:
            file.write(b"2" * 7000)
        writes = since()
        fsync(session.at("tensors/new"))
        # An fsync of the scratch file "lock" matters to nobody.
        is_fsynced(session, [call for call in writes if call.inode] + since())
        status, text = session.run("--commit")
        if status:
            raise Wrong(text)
        is_committed(session, since())
        with open(session.at("scalars/lr"), "w", encoding="ascii") as file:
            file.write("0.25\n")
        since()
        fsync(session.point)
        is_committed(session, since())
        with open(session.at("scalars/lr"), "w", encoding="ascii") as file:
            file.write("0.125\n")
        since()
        status, text = session.run("--unmount")
        if status:
            raise Wrong(text)
        session.ended()
        is_committed(session, since())
        if rules and not any(call.done != "-" for call in session.calls()):
            raise Wrong("no call was refused")
        if session.beside():
            raise Wrong(f"beside the pack: {session.beside()}")
    finally:
        session.done()


def main():
    require()
    wrong = 0
    for name, rules in (("as it is", []),
                        ("without files that have no name", [f"tmpfile:1+:{errno.EOPNOTSUPP}"])):
        try:
            look(rules)
        except Wrong as error:
            wrong += 1
            print(f"FAILED {name}: {error}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
