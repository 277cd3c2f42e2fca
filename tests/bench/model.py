"""What is measured: packs, and the same tensors as plain files and as the images of
other filesystems. Nothing here is in memory as a whole, unlike tests/support/oracle.py,
whose CBOR it uses.
"""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "support"))
import oracle  # noqa: E402

BLOCK = random.Random(1).randbytes(1 << 20)
PAGE = 4096


def blocks(size):
    """That many bytes, of which no two blocks are the same."""
    for k in range(0, size, len(BLOCK)):
        yield (struct.pack("<Q", k) + BLOCK[8:])[:size - k]


class Model:
    """DIR/pack.bpk, and when they are asked for DIR/tree (as a mount shows it) and the
    images of peers. A tensor of more than a page has random bytes, others are holes.
    """

    def __init__(self, folder, tensors):
        os.mkdir(folder)
        self.folder, self.tensors, self.images = folder, dict(tensors), {}
        self.pack = os.path.join(folder, "pack.bpk")
        self.tree = os.path.join(folder, "tree")
        self.metadata_size = self._write()
        self.size = os.path.getsize(self.pack)

    def _write(self):
        end, self.offsets, descriptors = 0, {}, {}
        for i, (name, size) in enumerate(self.tensors.items()):
            start = oracle.align(end)
            end = start + size
            self.offsets[name] = start
            descriptors[name] = {"dtype": "F32", "shape": [size // 4], "param_id": i,
                                 "data_offsets": [start, end]}
        metadata = oracle.encode({"tensors": oracle.ordered(descriptors),
                                  "scalars": {"epoch": {"UInt": 1}}})
        head = b"NRUB" + struct.pack("<HI", 1, len(metadata)) + metadata
        data_off = oracle.align(len(head))
        with open(self.pack, "wb") as file:
            file.write(head)
            file.truncate(data_off + end)
            for name, size in self.tensors.items():
                self.offsets[name] += data_off
                if size > PAGE:
                    file.seek(self.offsets[name])
                    file.writelines(blocks(size))
        return len(metadata)

    def path(self, name):
        """Of a tensor, in a mount and in the tree."""
        return os.path.join("tensors", *name.split("."))

    def make_tree(self):
        if os.path.isdir(self.tree):
            return
        made = set()
        for name, size in self.tensors.items():
            path = os.path.join(self.tree, self.path(name))
            folder = os.path.dirname(path)
            if folder not in made:
                os.makedirs(folder, exist_ok=True)
                made.add(folder)
            with open(path, "wb") as file:
                if size > PAGE:
                    file.writelines(blocks(size))
                else:
                    file.truncate(size)

    def image(self, kind):
        """The file that a filesystem of that kind mounts."""
        if kind == "bpk":
            return self.pack
        path = os.path.join(self.folder, "image." + kind)
        if kind not in self.images:
            self.make_tree()
            if kind == "squashfs":
                command = ["mksquashfs", self.tree, path, "-quiet", "-no-progress",
                           "-noI", "-noD", "-noF", "-noX"]
            else:
                command = ["zip", "-q", "-0", "-r", path, "tensors"]
            subprocess.run(command, cwd=self.tree, check=True,
                           stdout=subprocess.DEVNULL)
            self.images[kind] = path
        return path


def many(folder, count):
    """As many small tensors, a hundred in a folder."""
    return Model(folder, ((f"layers.{i // 100}.w{i % 100}", 4) for i in range(count)))


def one(folder, size):
    """A large tensor, big.w, that does not begin where a page does."""
    model = None
    for lead in (4, 260):
        if model:
            os.remove(model.pack)
            os.rmdir(folder)
        model = Model(folder, {"a": lead, "big.w": size})
        if model.offsets["big.w"] % PAGE:
            break
    return model
