#!/usr/bin/env python3
"""Has each system call of a writable mount fail, and looks at what comes of it.

    fault.py [--stride N] [--jobs J]      every Nth case (BPKFS_TEST_FAULTS, else the 8th)
                                          and all that are short, or EIO of names and fsync
    fault.py --only 'SCENE NAME:N:WHAT'   one of them again

A scene is a session that is played once as it is; that tells which calls there are that
do something to the pack's folder. Then it is played for each of them and each error it
can give, and once with half of what was to be written. What the user is told to have
failed is tried once more, and then must work. In the end:

  - the daemon ended in an orderly way, and every daemon that was told to unmount
    without an error has made the pack that there is without any;
  - until then the pack was the one of the last commit that was told to be good, or, when
    one was not, the one that it was to make;
  - after an end by SIGKILL the next mount has every edit that a good fsync came after;
    after an unmount that was told to have failed it has all;
  - interrupted and short calls are no error to anybody;
  - a failed fsync is never kept secret;
  - after one more good session nothing is beside the pack.

"NAME:N+:WHAT" fails each call of that name from the Nth on: a disk that is full. Then
nothing is tried again and less can be asked for: the pack, and what was fsynced.

Exit status 77: not root, no /dev/fuse, or no such filters here.
"""
import argparse
import errno
import multiprocessing
import os
import random
import re
import sys
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import Bytes, Edits, Model, Tensor, npy, of_mount, of_pack, oracle  # noqa: E402
from session import Session, Wrong, require  # noqa: E402

RESTARTED = {"open", "openat", "tmpfile", "read", "pread64", "write", "pwrite64", "copy_file_range",
             "clone", "ftruncate", "fallocate", "fsync", "fdatasync"}
GROWING = {"write", "pwrite64", "copy_file_range", "fallocate", "ftruncate", "fsync", "rename",
           "renameat", "renameat2", "linkat", "mkdir", "mkdirat", "openat", "tmpfile",
           "fsetxattr"}
HALVED = {"write", "pwrite64", "copy_file_range"}
FULL = ["write", "pwrite64", "copy_file_range", "openat"]
ALWAYS = re.compile(rf"((fsync|rename|renameat|linkat|unlinkat):\d+:{errno.EIO}|.*:short)$")
SPEC = {"tensors": [
    {"name": "a.w", "dtype": "F32", "shape": [30], "param_id": 7},
    {"name": "a.b.w", "dtype": "F32", "shape": [1250]},
    {"name": "c.x", "dtype": "U8", "shape": [480]},
    {"name": "c.y", "dtype": "F32", "shape": [2000]}],
    "scalars": {"lr": {"Float": 0.5}, "epoch": {"UInt": 3}},
    "metadata": {"k": "v", "note": "y" * 400}}


class Given(Wrong):
    """What was done once more and fails again."""


class Play:
    """A session, its model, and what the user was told."""

    def __init__(self, rules, sticky=False):
        self.rules, self.sticky = rules, sticky
        self.session = Session(oracle.make(SPEC))
        self.session.flags = ["-s"]
        self.model = Model(of_pack(self.session.pack))
        self.edits = Edits(self.session.point, self.model, 1)
        self.packs = [self.model.snapshot()]  # what may be on disk
        self.fsynced, self.tried = None, []  # the last fsync, and those that failed since
        self.told = []  # what went wrong in the user's view
        self.uncertain = set()  # names of edits that failed and were not made again
        self.hit = []

    # What is done -------------------------------------------------------------

    def mount(self, rules):
        status = self.session.mount(rules, foreground=True)
        if status is not None:
            self.told.append(f"mount: {status} {self.session.said().strip()}")
            if not 10 <= status <= 24:
                raise Wrong(f"it did not end well: {self.told[-1]}")
            self.look_at_pack()
            self.note_hits()
            if rules is None:
                raise Given(self.told[-1])
            self.mount(None)

    def note_hits(self):
        self.hit += [call for call in self.session.calls() if call.done != "-"]

    def edit(self, change, *args):
        """An edit; one that failed is made again."""
        if self.uncertain.intersection(args[:1]):
            return
        before = self.model.snapshot()
        try:
            change(*args)
        except OSError as error:
            self.told.append(f"{change.__name__}: {error}")
            if self.sticky:
                self.uncertain.update(args[:2] if change == self.move else args[:1])
                return
            content = self.settled()
            for kind in ("scalars", "metadata"):
                for name, value in getattr(before, kind).items():
                    if content[kind].get(name) != value and name != args[0]:
                        raise Wrong(f"{change.__name__} failed and changed {name}") from error
            try:
                change(*args)
            except OSError as again:
                raise Given(f"{change.__name__} again: {again}") from again

    def settled(self):
        try:
            return of_mount(self.session.point)
        except OSError as error:
            raise Wrong(f"the mount cannot be read: {error}") from error

    def differ(self, want, content):
        """What is not as in the snapshot @want, of what is certain."""
        for kind in ("tensors", "scalars", "metadata"):
            for name in self.uncertain:
                content[kind].pop(name, None)
                getattr(want, kind).pop(name, None)
        return want.differ(content)

    def fsync(self):
        snapshot = self.model.snapshot()
        for again in (False, True):
            try:
                self.edits.fsync()
                self.fsynced, self.tried = snapshot, []
                return
            except OSError as error:
                self.tried.append(snapshot)
                self.told.append(f"fsync: {error}")
                if self.sticky:
                    return
                if again:
                    raise Given(f"fsync again: {error}") from error

    def commit(self):
        snapshot = self.model.snapshot()
        self.packs.append(snapshot)
        for again in (False, True):
            status, text = self.session.run("--commit")
            if status == 0:
                self.packs, self.fsynced = [snapshot], None
                self.model.committed()
                self.look_at_pack()
                return
            self.told.append(f"--commit: {status} {text}")
            self.look_at_pack()
            if self.sticky:
                return
            if again or status != 22:
                raise Given(f"--commit again: {status} {text}")

    def look_at_pack(self):
        content = of_pack(self.session.pack)
        wrong = [self.differ(pack, content) for pack in self.packs]
        if all(wrong):
            raise Wrong("the pack: " + " // ".join(wrong))

    # Edits that the scenes are made of: each can be made twice ---------------------

    def scalar(self, name, kind, text):
        self.edits.write(self.session.at("scalars", name), text.encode() + b"\n")
        self.model.scalars[name] = kind, text

    def metadata(self, key, text):
        self.edits.write(self.session.at("metadata", key), text.encode() + b"\n")
        self.model.metadata[key] = text

    def new(self, name, size, mark):
        data = bytes([mark]) * size
        os.makedirs(os.path.dirname(self.edits.tensor(name)), exist_ok=True)
        self.edits.write(self.edits.tensor(name), data)
        self.model.tensors[name] = Tensor(data, "U8", [size], None, raw=True)

    def overwrite(self, name, mark):
        tensor = self.model.tensors[name]
        data = bytes([mark]) * len(tensor.bytes.now)
        self.edits.write(self.edits.tensor(name), data)
        self.model.tensors[name] = tensor.but(data=Bytes(data, True))

    def patch(self, name, at, patch):
        tensor = self.model.tensors[name]
        old = tensor.bytes.now
        if not tensor.bytes.staged:
            tensor = self.model.tensors[name] = tensor.but(data=Bytes(old, True))
        tensor.bytes.versions.append(old[:at] + patch + old[at + len(patch):])
        self.edits.write(self.edits.tensor(name), patch, "r+b", at)

    def replace(self, name, mark):
        tensor = self.model.tensors[name]
        data = bytes([mark]) * len(tensor.bytes.now)
        scratch = os.path.join(os.path.dirname(self.edits.tensor(name)), ".scratch")
        self.edits.write(scratch, data)
        os.replace(scratch, self.edits.tensor(name))
        self.model.tensors[name] = tensor.but(data=Bytes(data, True))

    def move(self, name, to):
        os.makedirs(os.path.dirname(self.edits.tensor(to)), exist_ok=True)
        os.rename(self.edits.tensor(name), self.edits.tensor(to))
        self.model.tensors[to] = self.model.tensors.pop(name)

    def remove(self, name):
        os.unlink(self.edits.tensor(name))
        del self.model.tensors[name]

    def array(self, name, count, mark):
        data = bytes([mark]) * 4 * count
        path = self.session.at("npy", name.replace(".", "/") + ".npy")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.edits.write(path, npy(data, count))
        old = self.model.tensors.get(name)
        self.model.tensors[name] = Tensor(data, "F32", [count], old and old.param_id)

    # Ends -------------------------------------------------------------------

    def unmount(self):
        """By --unmount. What it says must be so."""
        final = self.model.snapshot()
        self.packs.append(final)
        status, text = self.session.run("--unmount")
        if status == 10:
            raise Wrong(f"--unmount: {status} {text}")
        ended = self.session.ended()
        self.note_hits()
        if ended != status:
            raise Wrong(f"--unmount says {status} ({text}), the daemon ended with {ended}")
        if status == 0:
            self.packs, self.fsynced = [final], None
        else:
            self.told.append(f"--unmount: {status} {text}")
            if status != 22:
                raise Wrong(self.told[-1])
            if "for the next writable mount" in text:
                self.fsynced = final
            elif "a crash may undo" in text:
                self.packs, self.fsynced = [final], None
            elif not self.sticky:
                raise Wrong(f"the edits are not kept: {text}")
        self.look_at_pack()
        if status == 0 and self.session.beside() and not self.hit:
            raise Wrong(f"beside the pack: {self.session.beside()}")

    def die(self):
        self.session.kill()
        self.note_hits()
        self.session.clear()
        self.look_at_pack()

    def next_mount(self):
        """One without faults: it has what it must, and leaves nothing."""
        pack = of_pack(self.session.pack)
        status = self.session.mount(None, foreground=True)
        if status is not None:
            raise Wrong(f"the next mount: {status} {self.session.said()}")
        content = of_mount(self.session.point)
        wanted = [self.fsynced] if self.fsynced else \
            [want for want in self.packs if not self.differ(want, pack)]
        wanted += self.tried if self.sticky else []
        wrong = [self.differ(want, content) for want in wanted]
        if all(wrong):
            raise Wrong("the next mount: " + " // ".join(wrong))
        status, text = self.session.run("--unmount")
        if status not in (0, 22, 24):
            raise Wrong(f"the next --unmount: {status} {text}")
        self.session.ended()
        # What was made invalid by an edit that failed may be left out.
        if status and not (status == 24 and self.uncertain):
            raise Wrong(f"the next --unmount: {status} {text}")
        wrong = [self.differ(want, of_pack(self.session.pack)) for want in wanted]
        if all(wrong):
            raise Wrong("the next pack: " + " // ".join(wrong))
        if self.session.beside():
            raise Wrong(f"beside the pack: {self.session.beside()}")


# Scenes -----------------------------------------------------------------------

def all_edits(play):
    play.mount(play.rules)
    play.edit(play.scalar, "lr", "Float", "0.25")
    play.edit(play.overwrite, "a.w", 1)
    play.edit(play.new, "d.new", 3000, 2)
    play.fsync()
    play.edit(play.patch, "a.b.w", 100, b"patched")
    play.edit(play.overwrite, "a.w", 3)
    play.edit(play.metadata, "k", "value")
    play.edit(play.replace, "c.x", 4)
    play.fsync()
    play.commit()
    play.edit(play.scalar, "new", "UInt", "5")
    play.edit(play.move, "d.new", "e.moved")
    play.edit(play.patch, "a.b.w", 7, b"again")
    play.edit(play.remove, "c.x")
    play.fsync()
    play.edit(play.array, "c.y", 2000, 5)
    play.edit(play.array, "z", 100, 6)
    play.edit(play.overwrite, "a.b.w", 7)
    play.fsync()
    play.edit(play.scalar, "epoch", "UInt", "4")


def and_unmounted(play):
    all_edits(play)
    play.unmount()


def and_killed(play):
    all_edits(play)
    play.die()


def committed_then_killed(play):
    play.mount(play.rules)
    play.edit(play.overwrite, "a.w", 1)
    play.fsync()
    play.commit()
    play.edit(play.overwrite, "a.b.w", 2)
    play.edit(play.scalar, "lr", "Float", "0.25")
    play.fsync()
    play.die()


def brought_back(play):
    """The faults come when the edits of one that was killed are brought back."""
    play.mount(None)
    play.edit(play.overwrite, "a.w", 1)
    play.edit(play.new, "d.new", 3000, 2)
    play.edit(play.scalar, "lr", "Float", "0.25")
    play.fsync()
    play.die()
    play.mount(play.rules)
    wrong = play.fsynced.differ(of_mount(play.session.point))
    if wrong:
        raise Wrong(f"brought back: {wrong}")
    play.edit(play.overwrite, "a.w", 3)
    play.unmount()


SCENES = {scene.__name__: scene for scene in
          (and_unmounted, and_killed, committed_then_killed, brought_back)}


def run(case):
    """One case: what went wrong, and whether the fault came at all."""
    scene, rule, pack = case
    sticky = "+" in rule
    play = Play([rule], sticky)
    try:
        try:
            SCENES[scene](play)
        except (OSError, Given) as error:
            if not sticky:
                raise
            play.told.append(str(error))
            if play.session.pid:
                play.die()
        silent = not play.told
        what = rule.rpartition(":")[2]
        if not silent and (what == "short" or what == str(errno.EINTR)):
            raise Wrong(f"an error to the user: {play.told}")
        if silent and any(call.name in ("fsync", "fdatasync") for call in play.hit) and \
                what != str(errno.EINTR):
            raise Wrong(f"kept secret: {play.hit}")
        if silent and scene.endswith("unmounted") and play.session.read() != pack:
            raise Wrong("nothing was told, and the pack is not the one without faults")
        play.next_mount()
    except Exception as error:
        return (f"{scene} {rule}: {error}\n    hit {play.hit}\n    told {play.told}" + (
            "" if isinstance(error, Wrong) else "\n" + traceback.format_exc())), play.hit
    finally:
        play.session.done()
    return None, play.hit


def cases_of(scene):
    """Every call of the scene with every fault."""
    play = Play([])
    try:
        SCENES[scene](play)
        if play.told:
            raise Wrong(f"{scene} without a fault: {play.told}")
        calls, pack = play.session.calls(), play.session.read()
        play.next_mount()
    finally:
        play.session.done()
    for call in calls:
        if call.name in ("reply", "flock"):
            continue
        where = f"{call.name}:{call.nth}:"
        yield scene, where + str(errno.EIO), pack
        if call.name in GROWING:
            yield scene, where + str(errno.ENOSPC), pack
            yield scene, where + str(errno.EDQUOT), pack
        if call.name in RESTARTED:
            yield scene, where + str(errno.EINTR), pack
        if call.name in HALVED:
            yield scene, where + "short", pack
        if call.name in FULL:
            yield scene, f"{call.name}:{call.nth}+:{errno.ENOSPC}", pack


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stride", type=int,
                        default=int(os.environ.get("BPKFS_TEST_FAULTS", 8)))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only")
    args = parser.parse_args()
    require()
    cases = [case for scene in SCENES for case in cases_of(scene)]
    if args.only:
        cases, args.stride = [case for case in cases if f"{case[0]} {case[1]}" == args.only], 1
    first = random.randrange(args.stride)
    cases = [case for i, case in enumerate(cases)
             if i % args.stride == first or (ALWAYS.match(case[1]) and not args.only)]
    failed = missed = 0
    with multiprocessing.Pool(args.jobs) as pool:
        for wrong, hit in pool.imap_unordered(run, cases, chunksize=4):
            failed += wrong is not None
            missed += not hit
            if wrong:
                print("FAILED", wrong, flush=True)
    print(f"{len(cases)} faults, {missed} did not come, {failed} failed")
    sys.exit(1 if failed or missed > len(cases) // 4 else 0)


if __name__ == "__main__":
    main()
