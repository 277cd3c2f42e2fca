"""The rows of the benchmark: what is measured, and against what."""
import contextlib
import functools
import json
import os
import shutil
import subprocess

import model
import peers
from pairs import Experiment, Row, Skip, text

MIB = 1 << 20
TARGETS = {1000: 0.015, 100000: 0.150}


class Rows:
    """Makes the experiments. There is one model at a time: the one before is removed
    when another is asked for, so experiments of one model come one after another."""

    def __init__(self, options, others):
        self.options, self.bpkfs, self.others = options, others[0], others
        self.held_key = self.held = None

    # Tools ---------------------------------------------------------------------

    def timed(self, *words):
        """Seconds, one for each number that timed prints."""
        done = subprocess.run([self.options.timed, *map(str, words)], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, errors="replace")
        if done.returncode == 3:
            raise Skip("this filesystem keeps the file in the page cache")
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"status {done.returncode}")
        return tuple(int(number) / 1e9 for number in done.stdout.split())

    def model(self, make, size):
        if self.held_key != (make, size):
            self.drop()
            self.held = make(os.path.join(self.options.dir, "model"), size)
            self.held_key = (make, size)
        return self.held

    def drop(self):
        if self.held:
            shutil.rmtree(self.held.folder)
        self.held_key = self.held = None

    def at(self, name):
        """A mount point."""
        path = os.path.join(self.options.dir, "at-" + name)
        os.makedirs(path, exist_ok=True)
        return path

    def sides(self, native, measure, made, those=None):
        """measure(peer, image, mount point) for all peers, or for those."""
        sides = {"bpkfs": None, "native": native}
        for peer in self.others if those is None else those:
            sides[peer.name] = functools.partial(
                measure, peer, made.image(peer.kind), self.at(peer.name))
        return sides

    # Mounting ------------------------------------------------------------------

    def mount(self, count):
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.many, count)
            file = made.path(next(iter(made.tensors)))

            def measure(peer, image, at):
                return self.timed("mount", os.path.join(at, file),
                                  *peer.mount(image, at), "--", *peer.unmount(at))

            def native():
                return self.metadata(made) * 2

            yield self.sides(native, measure, made)

        against = "reading the metadata"
        return Experiment(
            [Row(f"mount, {count} tensors", against, target=TARGETS.get(count)),
             Row(f"mount + first byte + unmount, {count} tensors", against)],
            prepare, count * 8192)

    def metadata(self, made):
        return self.timed("read", MIB, 1, made.pack, 0, 10 + made.metadata_size)

    def parse(self, count):
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.many, count)

            def measure(peer, image, at):
                with peer.mounted(image, at):
                    memory = memory_of(at)["VmHWM"]
                return (*self.timed("parse", image), memory)

            def native():
                return (*self.metadata(made), made.metadata_size)

            yield self.sides(native, measure, made, [self.bpkfs])

        return Experiment(
            [Row(f"parse, {count} tensors", "reading the metadata"),
             Row(f"daemon VmHWM, {count} tensors", "size of the metadata", "B")],
            prepare, count * 512)

    def memory(self, count):
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.many, count)

            def values(at):
                memory = memory_of(at)
                return memory["VmHWM"], memory["RssAnon"]

            def measure(peer, image, at):
                told = ()
                with peer.mounted(image, at):
                    for _ in range(2):
                        self.timed("run", "find", at, "-type", "f",
                                   "-exec", "cat", "{}", "+")
                        told += values(at)
                return told

            def native():
                at = self.at("bpkfs")
                with self.bpkfs.mounted(made.pack, at):
                    return values(at) * 2

            yield self.sides(native, measure, made, [self.bpkfs])

        return Experiment(
            [Row(f"{what}, {count} tensors, cat of all, {time}", "the same as mounted", "B")
             for time in ("1st", "2nd") for what in ("VmHWM", "RssAnon")],
            prepare, count * 512)

    # Folders -------------------------------------------------------------------

    def walk(self, count, name, command, flat=False):
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.many, count)
            made.make_tree()
            tree = made.tree
            with contextlib.ExitStack() as stack:
                if flat:
                    tree = os.path.join(made.folder, "flat")
                    stack.callback(shutil.rmtree, tree)
                    os.makedirs(os.path.join(tree, "tensors"))
                    for tensor in made.tensors:
                        os.link(os.path.join(made.tree, made.path(tensor)),
                                os.path.join(tree, "tensors", tensor))

                def measure(at):
                    return self.timed("run", *command(os.path.join(at, "tensors")))

                sides = {"bpkfs": None, "native": functools.partial(measure, tree)}
                for peer in [self.bpkfs] if flat else self.others:
                    at = stack.enter_context(peer.mounted(
                        made.image(peer.kind), self.at(peer.name),
                        *(["-o", "flat"] if flat else [])))
                    sides[peer.name] = functools.partial(measure, at)
                for side in sides.values():
                    side()  # warm
                yield sides

        return Experiment([Row(f"{name}, {count} tensors", "the same files")], prepare,
                          count * 8192)

    # Reading -------------------------------------------------------------------

    def read(self, name, words, view="tensors", against="pread of the pack", plain=None,
             options=()):
        """First and second time through one mount. words come before the file; plain,
        where given, before the pack. options are bpkfs's."""
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.one, self.options.size)
            path, off, size = {
                "tensors": (made.path("big.w"), made.offsets["big.w"], self.options.size),
                "npy": ("npy/big/w.npy", made.offsets["big.w"], self.options.size),
                "safetensors": ("pack.safetensors", 0, made.size),
            }[view]

            def measure(peer, image, at):
                with peer.mounted(image, at, *options):
                    file = os.path.join(at, path)
                    end = os.path.getsize(file) if view != "tensors" else size
                    return sum((self.timed(*words, file, 0, end) for _ in range(2)), ())

            def native():
                return sum((self.timed(*(plain or words), made.pack, off, size)
                            for _ in range(2)), ())

            native()  # the page cache has the pack from here on
            yield self.sides(native, measure, made,
                             None if view == "tensors" and not options else [self.bpkfs])

        return Experiment([Row(f"{name}, 1st", against), Row(f"{name}, 2nd", against)],
                          prepare, self.options.size * 5)

    def cold(self):
        words = ("read", 256 << 10, 1)

        @contextlib.contextmanager
        def prepare():
            made = self.model(model.one, self.options.size)
            size = self.options.size

            def measure(peer, image, at):
                self.timed("cold", image)
                with peer.mounted(image, at):
                    return self.timed(*words, os.path.join(at, made.path("big.w")), 0, size)

            def native():
                self.timed("cold", made.pack)
                return self.timed(*words, made.pack, made.offsets["big.w"], size)

            native()
            yield self.sides(native, measure, made)

        return Experiment([Row("read 256 KiB, cold pack", "pread of the pack, cold")],
                          prepare, self.options.size * 5)

    def command(self, name, command, against):
        """command(file, scratch) on the tensor in a fresh mount and on a plain file."""
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.one, self.options.size)
            made.make_tree()
            scratch = os.path.join(made.folder, "copy")

            def both(root):
                try:
                    return self.timed("run", *command(
                        os.path.join(root, made.path("big.w")), scratch))
                finally:
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(scratch)

            def measure(peer, image, at):
                with peer.mounted(image, at):
                    return both(at)

            yield self.sides(functools.partial(both, made.tree), measure, made)

        return Experiment([Row(name, against)], prepare, self.options.size * 6)

    # Writing -------------------------------------------------------------------

    def copy_in(self, size):
        @contextlib.contextmanager
        def prepare():
            made = self.model(model.one, size)
            made.make_tree()
            source = os.path.join(made.tree, made.path("big.w"))

            def measure(peer, image, at):
                done = peer.unmount(at)
                with self.writable(image, at):
                    copied, = self.timed("run", *copy(source,
                                                      os.path.join(at, made.path("big.w"))))
                    committed, = self.timed("run", *done)
                    return copied, copied + committed

            def native():
                return self.native_copy(source, made.folder) * 2

            yield self.sides(native, measure, made, [self.bpkfs])

        human = text(size, "B")
        return Experiment([Row(f"cp in + fsync, {human}", "cp + fsync"),
                           Row(f"cp in + fsync + --unmount, {human}", "cp + fsync")],
                          prepare, size * 5)

    def native_copy(self, source, folder):
        target = os.path.join(folder, "copy")
        try:
            return self.timed("run", *copy(source, target))
        finally:
            os.remove(target)

    @contextlib.contextmanager
    def writable(self, pack, at):
        """Mounted writable; no longer mounted afterwards, whatever happened."""
        peers.quiet(self.bpkfs.mount(pack, at, "-o", "rw"))
        try:
            yield
        finally:
            if os.path.ismount(at):
                peers.quiet([self.options.bpkfs, "--discard", at])

    def commit(self, size, disk=None):
        """disk: the filesystem to make, in a file, or the one of the folder."""
        @contextlib.contextmanager
        def prepare():
            with contextlib.ExitStack() as stack:
                if disk:
                    self.drop()
                    folder = stack.enter_context(self.disk(disk, size))
                    pack = model.one(os.path.join(folder, "model"), size).pack
                else:
                    pack = self.model(model.one, size).pack
                epoch = 1

                def measure(at):
                    nonlocal epoch
                    told = ()
                    with self.writable(pack, at):
                        for command in "--commit", "--unmount":
                            epoch += 1
                            with open(os.path.join(at, "scalars", "epoch"), "w",
                                      encoding="ascii") as file:
                                file.write(f"{epoch}\n")
                            told += self.timed("run", self.options.bpkfs, command, at)
                    return told

                def native():
                    return self.native_copy(pack, os.path.dirname(pack)) * 2

                yield {"bpkfs": functools.partial(measure, self.at("bpkfs")),
                       "native": native}

        where = f", {disk}" if disk else ""
        against = "cp (reflink) + fsync" if disk else "cp + fsync"
        return Experiment([Row(f"{command} after an edit, {text(size, 'B')}{where}", against)
                           for command in ("--commit", "--unmount")], prepare, size * 4)

    @contextlib.contextmanager
    def disk(self, kind, size):
        make = {"xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}[kind]
        if not peers.is_root():
            raise Skip("only root can mount it")
        if not peers.has(make[0]) or not peers.kernel_has(kind):
            raise Skip(f"no {make[0]}, or a kernel without {kind}")
        image, at = os.path.join(self.options.dir, "disk"), self.at("disk")
        with open(image, "wb") as file:
            file.truncate(size * 3 + 400 * MIB)
        try:
            peers.quiet([*make, image])
            peers.quiet(["mount", "-o", "loop", image, at])
            try:
                yield at
            finally:
                peers.quiet(["umount", at])
        finally:
            os.remove(image)


def copy(source, target):
    return ["sh", "-c", 'cp "$0" "$1" && sync "$1"', source, target]


def memory_of(at):
    """Bytes, by the names that /proc/PID/status uses."""
    with open(os.path.join(at, ".bpkfs", "status"), encoding="utf-8") as file:
        pid = json.load(file)["pid"]
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        words = [line.split() for line in file]
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in words if "kB" in line[2:]}


def experiments(rows):
    options = rows.options
    largest = max(options.counts)
    for count in options.counts:
        if count in options.mount_counts:
            yield rows.mount(count)
        if count in options.parse_counts:
            yield rows.parse(count)
    yield rows.memory(largest)
    yield rows.walk(largest, "ls -f, flat", lambda at: ["ls", "-f", at], flat=True)
    yield rows.walk(largest, "ls -lR", lambda at: ["ls", "-lR", at])
    yield rows.walk(largest, "find -printf %s",
                    lambda at: ["find", at, "-printf", "%s\n"])

    for size in 4, 32, 256, 1024:
        yield rows.read(f"read {size} KiB", ("read", size << 10, 1))
    yield rows.read("read stdio 4 KiB", ("stdio",), against="stdio on the pack")
    yield rows.read("read 256 KiB, 4 readers", ("read", 256 << 10, 4))
    yield rows.read("shared mmap scan", ("map",), against="pread of the pack",
                    plain=("read", 256 << 10, 1))
    for size in 4, 256:
        yield rows.read(f"read {size} KiB, writable mount", ("read", size << 10, 1),
                        options=("-o", "rw"))
    yield rows.read("pack.safetensors, read 256 KiB", ("read", 256 << 10, 1), "safetensors")
    yield rows.read("npy/, read 256 KiB", ("read", 256 << 10, 1), "npy")
    yield rows.cold()
    yield rows.command("cp out", lambda file, scratch: ["cp", file, scratch],
                       "cp of a plain file")
    yield rows.command("sha256sum", lambda file, _: ["sha256sum", file],
                       "sha256sum of a plain file")
    yield rows.copy_in(options.size)
    yield rows.commit(options.size)
    for kind in "xfs", "btrfs":
        yield rows.commit(options.size, kind)
    if options.large:
        yield rows.commit(4 * options.size)
