#!/usr/bin/env python3
"""Kills a writable mount at any system call, and looks at what is left.

    kill.py [--runs N] [--seed S] [--jobs J]     N runs (BPKFS_TEST_KILLS, else 300)
    kill.py --only SCRIPT.RUN                    one of them again

A script of random edits, fsyncs, commits and an unmount is played once without a kill:
that tells which packs it makes, and which system calls there are. Then some runs play it
again, each up to a call of its own, where the daemon gets SIGKILL. After that, every
time:

  - the pack is, byte for byte, the one before or the one after the commit that was under
    way; without one, the one before;
  - the next writable mount has every edit up to the last fsync, says so, and nothing
    that came later (what was written in place since may be there);
  - that one may be killed too, while it brings them back or later: the same holds;
  - after one that ends well the pack has all of it, and nothing is beside the pack.

Exit status 77: not root, no /dev/fuse, or no such filters here.
"""
import argparse
import multiprocessing
import os
import random
import sys
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import Edits, Model, of_mount, of_pack, oracle  # noqa: E402
from session import Session, Wrong, require  # noqa: E402

RUNS_A_SCRIPT = 10
SPEC = {"tensors": [
    {"name": "a.w", "dtype": "F32", "shape": [30], "param_id": 7},
    {"name": "a.b.w", "dtype": "F32", "shape": [1250], "param_id": 1 << 63},
    {"name": "c.x", "dtype": "U8", "shape": [480]},
    {"name": "top", "dtype": "F32", "shape": [1]}],
    "scalars": {"lr": {"Float": 0.5}, "epoch": {"UInt": 3}},
    "metadata": {"k": "v", "note.long": "y" * 400}}


class Killed(Exception):
    """The daemon is gone, as it was to be."""


class Run:
    """One pack, its mounts, and what must be there after each."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        first = oracle.make(SPEC)
        self.session = Session(first)
        self.model = Model(of_pack(self.session.pack))
        self.packs = [first]  # before the first commit, after it, ...
        self.content = [self.model.snapshot()]  # of each of them
        # What the next mount may show: the last fsync, and one that was under way.
        self.fsynced, self.fsyncing, self.committing = None, None, None
        self.story = []

    def killed(self):
        return any(call.done == "kill" for call in self.session.calls())

    def edits(self, seed):
        return Edits(self.session.point, self.model, seed)

    def do(self, what, *args):
        """One thing done to the mount; Killed when that is the reason why it cannot."""
        try:
            done = what(*args)
            self.story.append(done if isinstance(done, str) else what.__name__)
            return done
        except OSError as error:
            if self.killed():
                raise Killed from error
            raise Wrong(f"{what.__name__}: {error}") from error

    def fsync(self, edits):
        self.fsyncing = self.model.snapshot()
        if self.do(edits.fsync):
            self.fsynced = self.fsyncing
        self.fsyncing = None

    def commit_done(self):
        self.packs.append(self.session.read())
        self.content.append(self.committing)
        self.committing = self.fsynced = None
        self.model.committed()

    def commit(self, by_folder):
        self.committing = self.model.snapshot()
        if by_folder:
            def fsync_folder():
                fd = os.open(self.session.at("scalars"), os.O_RDONLY)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            self.do(fsync_folder)
        else:
            status, text = self.session.run("--commit")
            if status:
                if self.killed():
                    raise Killed
                raise Wrong(f"--commit: {status} {text}")
        self.commit_done()

    def unmount(self):
        self.committing = self.model.snapshot()
        status, text = self.session.run("--unmount")
        if status:
            if self.killed():
                raise Killed
            raise Wrong(f"--unmount: {status} {text}")
        self.session.ended()
        self.commit_done()
        self.session.clear()

    def play(self, edits, count):
        for _ in range(count):
            self.do(edits.one)
            dice = edits.random.random()
            if dice < 0.2:
                self.fsync(edits)
            elif dice < 0.26:
                self.commit(by_folder=dice < 0.23)
        self.unmount()

    def mount(self, rules, foreground=False):
        status = self.session.mount(rules, foreground)
        if status:
            if self.killed():
                raise Killed
            raise Wrong(f"cannot mount: {status} {self.session.said()}")

    # After a kill -----------------------------------------------------------

    def look_at_pack(self, packs):
        """Which of @packs, by content when they are not known as bytes."""
        now = self.session.read()
        if now == packs[0]:
            return False
        if self.committing is None:
            raise Wrong("the pack changed without a commit")
        if len(packs) > 1 and now != packs[1]:
            raise Wrong("the pack is neither the old nor the new one")
        wrong = self.committing.differ(of_pack(self.session.pack))
        if wrong:
            raise Wrong(f"the pack is not what was to be committed: {wrong}")
        self.packs.append(now)
        self.content.append(self.committing)
        self.fsynced = self.fsyncing = None
        return True

    def after_kill(self, packs):
        self.session.clear()
        self.look_at_pack(packs)
        self.committing = None

    def look_at_mount(self):
        """The mount is what it may be; from here on it is that."""
        content = of_mount(self.session.point)
        wanted = [self.fsynced or self.content[-1], self.fsyncing]
        wrong = [want.differ(content) for want in wanted if want]
        if all(wrong):
            raise Wrong("the next mount is not what was fsynced: " + " // ".join(wrong))
        said = "not committed" in self.session.said()
        if self.content[-1].differ(content) and not said:
            raise Wrong("edits came back and nothing was said")
        self.model.adopt(content)
        for tensor in self.model.tensors.values():
            tensor.bytes.staged = True
        self.fsynced = self.model.snapshot() if said else None
        self.fsyncing = None

    def go_on(self, rules, extra):
        """The next mount: as it must be, some edits more, unmounted."""
        self.mount(rules)
        self.do(self.look_at_mount)
        edits = self.edits(self.random.random())
        if extra:
            self.play(edits, extra)
        else:
            self.unmount()

    def finish(self):
        """After an unmount that went well."""
        wrong = self.content[-1].differ(of_pack(self.session.pack))
        if wrong:
            raise Wrong(f"the last pack: {wrong}")
        if self.session.beside():
            raise Wrong(f"beside the pack: {self.session.beside()}")


class Script:
    """What is played, and what comes of it when nobody is killed."""

    def __init__(self, number):
        self.number = number
        dice = random.Random(number)
        self.count = dice.randrange(6, 22)
        self.foreground = dice.random() < 0.2
        self.flags = ["-s"] if dice.random() < 0.3 else []
        run = Run(number)
        try:
            self.start(run, [])
            self.packs = run.packs
            self.calls = run.session.calls()
            run.finish()
        finally:
            run.session.done()

    def start(self, run, rules):
        run.session.flags = self.flags
        run.mount(rules, self.foreground)
        run.play(run.edits(self.number), self.count)

    def rule(self, number, dice):
        """Where to kill. The answers to the kernel are many, and much the same, but for
        the first: until the mount is ready it is the daemon itself that asks."""
        calls = self.calls
        if number == 0:
            return f"reply:{1 + self.number % 4}:kill"
        if dice.random() < 0.8:
            calls = [call for call in calls if call.name not in ("reply", "pread64")]
        call = dice.choice(calls)
        return f"{call.name}:{call.nth}:kill"

    def kill(self, number, tell=None):
        run = Run(f"{self.number}.{number}")
        rules = [self.rule(number, run.random)]
        try:
            try:
                self.start(run, rules)
            except Killed:
                run.after_kill(self.packs[len(run.packs) - 1:])
            while run.killed() and run.random.random() < 0.4:
                rules.append(f"any:{run.random.randrange(1, 150)}:kill")
                try:
                    run.go_on(rules[-1:], run.random.randrange(4))
                except Killed:
                    run.after_kill(run.packs[-1:])
            run.go_on(None, run.random.randrange(3))
            run.finish()
        except Exception as error:
            where = " then ".join(rules)
            return f"{self.number}.{number} ({where}): {error}\n{run.story}" + (
                "" if isinstance(error, Wrong) else "\n" + traceback.format_exc())
        finally:
            if tell:
                tell(rules, run)
            run.session.done()
        return None


def some(job):
    """Some runs of one script: what went wrong."""
    number, runs = job
    try:
        script = Script(number)
    except Exception as error:
        return [f"{number} without a kill: {error}\n{traceback.format_exc()}"]
    return [wrong for wrong in map(script.kill, runs) if wrong]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=int(os.environ.get("BPKFS_TEST_KILLS", 300)))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only")
    args = parser.parse_args()
    require()
    if args.only:
        script, _, run = args.only.partition(".")
        jobs = [(int(script), [int(run)])]
    else:
        seed = random.randrange(1 << 31) if args.seed is None else args.seed
        print(f"seed {seed}", flush=True)
        scripts = -(-args.runs // RUNS_A_SCRIPT)
        jobs = [(seed + i, range(min(RUNS_A_SCRIPT, args.runs - i * RUNS_A_SCRIPT)))
                for i in range(scripts)]
    wrong = []
    with multiprocessing.Pool(args.jobs) as pool:
        for found in pool.imap_unordered(some, jobs):
            for text in found:
                print("FAILED", text, flush=True)
            wrong += found
    print(f"{sum(len(runs) for _, runs in jobs)} runs, {len(wrong)} failed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
