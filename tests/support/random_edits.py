#!/usr/bin/env python3
"""Random edits of a writable mount, each also made to a model of it.

    random_edits.py BPKFS WAIT_FOR PACK MOUNT SEED COUNT

PACK, made anew or by the first commit of a mount with -o create, is mounted writable at
MOUNT by this program (daemonized; BPKFS_FLAGS in the
environment are more options), edited COUNT times, committed while mounted, killed and
mounted again now and then. After each of these the whole mount is compared with the
model, and after each commit the pack is, which oracle.py reads on its own. Files that
were opened before go on reading what they were. Prints what differs, with the seed and
the step; nothing when all is well.
"""
import ctypes
import errno
import os
import random
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

SIZE = 120  # of every tensor: so one may take the place of any other
FOLDERS = ["", "a.", "a.b.", "c."]
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
libc = ctypes.CDLL(None, use_errno=True)


class Wrong(Exception):
    pass


class Mount:
    def __init__(self, bpkfs, wait_for, pack, path, seed):
        self.bpkfs, self.wait_for, self.pack, self.path = bpkfs, wait_for, pack, path
        self.random = random.Random(seed)
        self.tensors, self.scalars, self.metadata = {}, {}, {}
        self.open = []  # (file, what it must read)
        self.writers = {}  # of tensors: a file that stays open for writing
        self.hidden = {}  # path of a scratch file that was a tensor: its bytes
        self.inodes = {}
        self.made = 0

    # The program ------------------------------------------------------------

    def run(self, *args):
        done = subprocess.run([self.bpkfs, *args], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60)
        if done.returncode:
            raise Wrong(f"{args}: {done.returncode} {done.stderr}")
        return done.stderr

    def mount(self):
        flags = os.environ.get("BPKFS_FLAGS", "").split()
        options = "rw" if os.path.exists(self.pack) else "rw,create"
        said = self.run(*flags, "-o", options, self.pack, self.path)
        with open(self.at(".bpkfs/status"), encoding="utf-8") as file:
            self.pid = int(file.read().split('"pid":')[1].split(",")[0])
        return said

    def close_all(self):
        for file in [file for file, _ in self.open] + list(self.writers.values()):
            file.close()
        self.open, self.writers, self.hidden = [], {}, {}

    def kill(self):
        self.close_all()
        os.kill(self.pid, signal.SIGKILL)
        subprocess.run([self.wait_for, "exited", str(self.pid)], check=True, timeout=60)
        subprocess.run(["fusermount3", "-u", self.path], check=True, timeout=60)

    def unmount(self):
        self.close_all()
        self.run("--unmount", self.path)

    # Paths ------------------------------------------------------------------

    def at(self, *parts):
        return os.path.join(self.path, *parts)

    def tensor(self, name):
        return self.at("tensors", name.replace(".", "/"))

    def new_name(self):
        self.made += 1
        return f"{self.random.choice(FOLDERS)}t{self.made}"

    def some(self, entries):
        return self.random.choice(sorted(entries)) if entries else None

    def bytes(self):
        return self.random.randbytes(SIZE)

    # Edits ------------------------------------------------------------------

    def make_tensor(self):
        name = self.new_name()
        os.makedirs(os.path.dirname(self.tensor(name)), exist_ok=True)
        self.tensors[name] = self.bytes()
        with open(self.tensor(name), "wb") as file:
            file.write(self.tensors[name])

    def write_tensor(self):
        name = self.some(self.tensors)
        if name:
            self.forget_readers(name)
            self.tensors[name] = self.bytes()
            with open(self.tensor(name), "r+b") as file:
                file.write(self.tensors[name])

    def patch_tensor(self):
        name = self.some(self.tensors)
        if name:
            self.forget_readers(name)
            at, patch = self.random.randrange(SIZE - 9), self.random.randbytes(9)
            old = self.tensors[name]
            self.tensors[name] = old[:at] + patch + old[at + 9:]
            with open(self.tensor(name), "r+b") as file:
                file.seek(at)
                file.write(patch)

    def replace_tensor(self):
        """As rsync does it: by a scratch file."""
        name = self.some(self.tensors)
        if name:
            scratch = os.path.join(os.path.dirname(self.tensor(name)), ".scratch")
            new = self.bytes()
            with open(scratch, "wb") as file:
                file.write(new)
            self.drop_writer(name)
            os.replace(scratch, self.tensor(name))
            self.tensors[name] = new

    def remove_tensor(self):
        name = self.some(self.tensors)
        if name:
            self.drop_writer(name)
            os.unlink(self.tensor(name))
            del self.tensors[name]

    def move_tensor(self):
        name = self.some(self.tensors)
        to = self.new_name() if self.random.random() < 0.5 else self.some(self.tensors)
        if name and to != name:
            os.makedirs(os.path.dirname(self.tensor(to)), exist_ok=True)
            self.drop_writer(to)
            os.rename(self.tensor(name), self.tensor(to))
            self.renamed(name, to)

    def move_folder(self):
        folders = {name.rpartition(".")[0] for name in self.tensors} - {""}
        folder, into = self.some(folders), self.some(folders)
        if folder:
            self.made += 1
            to = f"f{self.made}"
            if self.random.random() < 0.5 and not (into + ".").startswith(folder + "."):
                to = f"{into}.{to}"
            os.rename(self.tensor(folder), self.tensor(to))
            for name in [n for n in self.tensors if n.startswith(folder + ".")]:
                self.renamed(name, to + name[len(folder):])

    def renamed(self, name, to):
        self.tensors[to] = self.tensors.pop(name)
        if name in self.writers:
            self.writers[to] = self.writers.pop(name)

    def allocate(self):
        name = self.some(self.tensors)
        if not name:
            return
        self.forget_readers(name)
        at, size = self.random.randrange(SIZE - 20), self.random.randrange(1, 20)
        mode = self.random.choice([0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, ZERO_RANGE])
        old = self.tensors[name]
        with open(self.tensor(name), "r+b") as file:
            failed = libc.fallocate(file.fileno(), mode, ctypes.c_long(at),
                                    ctypes.c_long(size))
        if failed and ctypes.get_errno() != errno.EOPNOTSUPP:
            raise Wrong(f"fallocate: {os.strerror(ctypes.get_errno())}")
        if not failed and mode & (PUNCH_HOLE | ZERO_RANGE):
            self.tensors[name] = old[:at] + bytes(size) + old[at + size:]

    def resize(self):
        name = self.some(self.tensors)
        if name:
            self.forget_readers(name)
            at = self.random.randrange(SIZE)
            with open(self.tensor(name), "r+b") as file:
                file.truncate(at)
                file.truncate(SIZE)
            self.tensors[name] = self.tensors[name][:at] + bytes(SIZE - at)

    def touch(self):
        name = self.some(self.tensors)
        if name and self.random.random() < 0.5:
            os.chmod(self.tensor(name), 0o640)
        elif name:
            os.utime(self.tensor(name), (1e9, 1e9))

    def hide(self):
        """As a scratch file a tensor is in no commit."""
        name = self.some(self.tensors)
        if name and len(self.hidden) < 4:
            self.made += 1
            path = self.at("tensors", f".hidden{self.made}")
            self.drop_writer(name)
            os.rename(self.tensor(name), path)
            self.hidden[path] = self.tensors.pop(name)

    def show(self):
        path = self.some(self.hidden)
        if path:
            to = self.some(self.tensors) or self.new_name()
            if self.random.random() < 0.5:
                to = self.new_name()
            os.makedirs(os.path.dirname(self.tensor(to)), exist_ok=True)
            self.drop_writer(to)
            os.rename(path, self.tensor(to))
            self.tensors[to] = self.hidden.pop(path)

    def open_writer(self):
        """Perhaps nothing is written before the next commit, or ever."""
        name = self.some(self.tensors)
        if name and name not in self.writers and len(self.writers) < 5:
            self.writers[name] = open(self.tensor(name), "r+b", buffering=0)

    def use_writer(self):
        name = self.some(self.writers)
        if name:
            self.forget_readers(name)
            at, patch = self.random.randrange(SIZE - 9), self.random.randbytes(9)
            os.pwrite(self.writers[name].fileno(), patch, at)
            old = self.tensors[name]
            self.tensors[name] = old[:at] + patch + old[at + 9:]
            if self.random.random() < 0.5:
                self.drop_writer(name)

    def drop_writer(self, name):
        if name in self.writers:
            self.writers.pop(name).close()

    def write_scalar(self):
        name = self.some(self.scalars) if self.random.random() < 0.6 else None
        if not name:
            self.made += 1
            name = f"s{self.made}"
        self.scalars[name] = str(self.random.randrange(1000))
        with open(self.at("scalars", name), "w", encoding="ascii") as file:
            file.write(self.scalars[name] + "\n")

    def remove_scalar(self):
        name = self.some(self.scalars)
        if name:
            os.unlink(self.at("scalars", name))
            del self.scalars[name]

    def move_scalar(self):
        name, to = self.some(self.scalars), self.some(self.scalars)
        if name and self.random.random() < 0.5:
            self.made += 1
            to = f"s{self.made}"
        if name and name != to:
            os.rename(self.at("scalars", name), self.at("scalars", to))
            self.scalars[to] = self.scalars.pop(name)

    def write_metadata(self):
        key = self.some(self.metadata) if self.random.random() < 0.6 else None
        if not key:
            self.made += 1
            key = f"m.{self.made}"
        self.metadata[key] = "x" * self.random.randrange(50) + str(self.made)
        with open(self.at("metadata", key), "w", encoding="ascii") as file:
            file.write(self.metadata[key] + "\n")

    def remove_metadata(self):
        key = self.some(self.metadata)
        if key:
            os.unlink(self.at("metadata", key))
            del self.metadata[key]

    # What stays -------------------------------------------------------------

    def open_tensor(self):
        name = self.some(self.tensors)
        if name and len(self.open) < 20:
            file = open(self.tensor(name), "rb", buffering=0)
            self.open.append((file, self.tensors[name]))
            self.inodes[file] = (name, os.fstat(file.fileno()).st_ino)

    def forget_readers(self, name):
        """It is written in place: who has it open sees that, and is not looked at."""
        inode = os.stat(self.tensor(name)).st_ino
        for pair in [p for p in self.open if os.fstat(p[0].fileno()).st_ino == inode]:
            pair[0].close()
            self.open.remove(pair)

    def check_open(self):
        for file, want in self.open:
            got = os.pread(file.fileno(), SIZE + 1, 0)
            if got != want:
                raise Wrong(f"an open file of inode {os.fstat(file.fileno()).st_ino} reads "
                            f"{got[:8].hex()}..., wanted {want[:8].hex()}...")

    def check_mount(self):
        self.check_open()
        got = {}
        for path, want in self.hidden.items():
            with open(path, "rb") as file:
                if file.read() != want:
                    raise Wrong(f"{path} differs")
        for section in ("tensors", "scalars", "metadata"):
            for folder, _, names in os.walk(self.at(section)):
                for name in names:
                    path = os.path.join(folder, name)
                    if path in self.hidden:
                        continue
                    with open(path, "rb") as file:
                        got[os.path.relpath(path, self.path)] = file.read()
        want = {"tensors/" + n.replace(".", "/"): d for n, d in self.tensors.items()}
        want.update({"scalars/" + n: t.encode() + b"\n" for n, t in self.scalars.items()})
        want.update({"metadata/" + k: t.encode() + b"\n" for k, t in self.metadata.items()})
        self.differ("mount", got, want)

    def check_pack(self):
        # A new pack is made by the first commit that has something for it.
        if not (os.path.exists(self.pack) or self.tensors or self.scalars or
                self.metadata):
            return
        pack = oracle.Pack(self.pack)
        got = {"t " + n: pack.bytes_of(t) for n, t in pack.tensors.items()}
        got.update({"s " + n: oracle.scalar_text(s) for n, s in pack.scalars.items()})
        got.update({"m " + k: v for k, v in pack.metadata.items()})
        want = {"t " + n: d for n, d in self.tensors.items()}
        want.update({"s " + n: t for n, t in self.scalars.items()})
        want.update({"m " + k: t for k, t in self.metadata.items()})
        self.differ("pack", got, want)

    @staticmethod
    def differ(what, got, want):
        if got != want:
            names = sorted(n for n in set(got) | set(want) if got.get(n) != want.get(n))
            raise Wrong(f"the {what} differs in " + ", ".join(
                f"{n}{'' if n in got else ' (missing)'}{'' if n in want else ' (extra)'}"
                for n in names[:10]))

    # Now and then -----------------------------------------------------------

    def inodes_of_all(self):
        return {name: os.stat(self.tensor(name)).st_ino for name in self.tensors}

    def commit(self):
        before = self.inodes_of_all()
        if self.random.random() < 0.5:
            fd = os.open(self.path, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        else:
            self.run("--commit", self.path)
        if self.inodes_of_all() != before:
            raise Wrong("inode numbers changed by a commit")
        self.check_pack()
        self.check_mount()
        with open(self.at(".bpkfs/changes"), encoding="utf-8") as file:
            changes = file.read()
        # What is open for writing stays an edit.
        if changes and not self.writers:
            raise Wrong(f"changes after a commit: {changes}")

    def crash(self):
        name = self.some(self.scalars)
        if not name:
            return
        fd = os.open(self.at("scalars", name), os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)
        self.kill()
        self.mount()
        self.check_mount()

    def remount(self):
        self.unmount()
        self.check_pack()
        self.mount()
        self.check_mount()


EDITS = [(Mount.make_tensor, 8), (Mount.write_tensor, 6), (Mount.patch_tensor, 5),
         (Mount.replace_tensor, 6), (Mount.remove_tensor, 4), (Mount.move_tensor, 7),
         (Mount.move_folder, 2), (Mount.write_scalar, 8), (Mount.remove_scalar, 2),
         (Mount.move_scalar, 4), (Mount.write_metadata, 5), (Mount.remove_metadata, 2),
         (Mount.allocate, 3), (Mount.resize, 2), (Mount.touch, 2), (Mount.hide, 3),
         (Mount.show, 3), (Mount.open_writer, 3), (Mount.use_writer, 4),
         (Mount.open_tensor, 6), (Mount.commit, 4), (Mount.crash, 2), (Mount.remount, 1)]


def main(args):
    if len(args) != 6:
        sys.exit(__doc__)
    bpkfs, wait_for, pack, path, seed, count = args
    mount = Mount(bpkfs, wait_for, pack, path, int(seed))
    if mount.random.random() < 0.3:
        if os.path.exists(pack):
            os.unlink(pack)
    else:
        with open(pack, "wb") as file:
            file.write(oracle.make({"tensors": [
                {"name": f"a.base{k}", "dtype": "F32", "shape": [SIZE // 4],
                 "param_id": k} for k in range(6)],
                "scalars": {"lr": {"UInt": 3}}, "metadata": {"k": "v"}}))
        first = oracle.Pack(pack)
        mount.tensors = {name: first.bytes_of(tensor)
                         for name, tensor in first.tensors.items()}
        mount.scalars, mount.metadata = {"lr": "3"}, {"k": "v"}
    mount.mount()
    step, edit = 0, None
    functions, weights = zip(*EDITS)
    try:
        for step in range(int(count)):
            edit = mount.random.choices(functions, weights)[0]
            edit(mount)
            if step % 10 == 0:
                mount.check_mount()
        mount.check_mount()
        edit = Mount.unmount
        mount.unmount()
        mount.check_pack()
    except (Wrong, OSError) as error:
        print(f"seed {seed}, step {step}, {edit.__name__}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
