"""What a mount must have after a series of edits, and the edits.

Nothing here knows of journals: a snapshot is what there was at one moment, and `differ`
tells whether a mount or a pack, which oracle.py reads, is that.
"""
import errno
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import oracle  # noqa: E402

FOLDERS = ["", "a.", "a.b.", "c."]
ELEMENT = {"U8": 1, "F32": 4}


class Bytes:
    """The bytes of a tensor as long as they are edited in place: all they ever were."""

    def __init__(self, data, staged):
        self.versions = [data]
        self.staged = staged

    @property
    def now(self):
        return self.versions[-1]


class Tensor:
    def __init__(self, data, dtype, shape, param_id, staged=True, raw=False):
        self.bytes = data if isinstance(data, Bytes) else Bytes(data, staged)
        self.dtype, self.shape, self.param_id = dtype, shape, param_id
        self.raw = raw  # nobody said what it is: it would become what it replaces
        self.version = None  # of the bytes, in a snapshot

    def but(self, **what):
        said = {"data": self.bytes, "dtype": self.dtype, "shape": self.shape,
                "param_id": self.param_id, "raw": self.raw, **what}
        return Tensor(**said)

    def frozen(self):
        copy = self.but()
        copy.version = len(self.bytes.versions) - 1
        return copy

    def may_be(self, data):
        """Is @data what a snapshot has? What was written in place since then, and not
        fsynced, may be there or not, byte by byte."""
        first, *later = self.bytes.versions[self.version:]
        if data == first:
            return True
        return len(data) == len(first) and all(
            byte == first[i] or any(byte == version[i] for version in later if i < len(version))
            for i, byte in enumerate(data))


class Snapshot:
    def __init__(self, tensors, scalars, metadata):
        self.tensors = {name: tensor.frozen() for name, tensor in tensors.items()}
        self.scalars, self.metadata = dict(scalars), dict(metadata)

    def differ(self, content):
        """What @content has that this has not, and the other way; '' for nothing."""
        wrong = []
        for kind in ("scalars", "metadata"):
            got, want = content[kind], getattr(self, kind)
            wrong += [f"{kind}/{name}: {got.get(name)!r}, not {want.get(name)!r}"
                      for name in sorted(set(got) | set(want))
                      if got.get(name) != want.get(name)]
        for name in sorted(set(content["tensors"]) | set(self.tensors)):
            tensor, got = self.tensors.get(name), content["tensors"].get(name)
            if tensor is None or got is None:
                wrong.append(f"tensors/{name}: {'not there' if tensor else 'too much'}")
                continue
            data, dtype, shape, param_id = got
            if (dtype, shape, param_id) != (tensor.dtype, tensor.shape, tensor.param_id):
                wrong.append(f"tensors/{name}: {dtype} {shape} {param_id}, not "
                             f"{tensor.dtype} {tensor.shape} {tensor.param_id}")
            if not tensor.may_be(data):
                wrong.append(f"tensors/{name}: other bytes ({len(data)}, "
                             f"{len(tensor.bytes.versions[tensor.version])})")
        return "; ".join(wrong[:5])


def of_pack(path):
    pack = oracle.Pack(path)
    return {"tensors": {name: (pack.bytes_of(t), oracle.dtype_text(t["dtype"]), t["shape"],
                               t.get("param_id")) for name, t in pack.tensors.items()},
            "scalars": {name: (next(iter(s)), oracle.scalar_text(s))
                        for name, s in pack.scalars.items()},
            "metadata": dict(pack.metadata)}


def attribute(path, name):
    try:
        return os.getxattr(path, "user.bpk." + name).decode()
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return None


def fail(error):
    raise error


def of_mount(point):
    content = {"tensors": {}, "scalars": {}, "metadata": {}}
    for section, entries in content.items():
        top = os.path.join(point, section)
        for folder, _, names in os.walk(top, onerror=fail):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    data = file.read()
                name = os.path.relpath(path, top)
                if section == "metadata":
                    entries[name] = data.decode()[:-1]
                    continue
                name = name.replace("/", ".")
                if section == "scalars":
                    entries[name] = attribute(path, "type"), data.decode()[:-1]
                    continue
                shape, number = attribute(path, "shape"), attribute(path, "param_id")
                entries[name] = (data, attribute(path, "dtype"),
                                 json.loads(shape) if shape else None,
                                 None if number is None else int(number))
    return content


class Model:
    def __init__(self, content):
        self.adopt(content)
        self.made = 0

    def adopt(self, content):
        """This is what there is now."""
        self.tensors = {name: Tensor(data, dtype, shape, number, staged=False,
                                     raw=dtype == "U8")  # perhaps
                        for name, (data, dtype, shape, number) in content["tensors"].items()}
        self.scalars, self.metadata = dict(content["scalars"]), dict(content["metadata"])

    def snapshot(self):
        return Snapshot(self.tensors, self.scalars, self.metadata)

    def committed(self):
        """What was staged is the pack's now: to be copied before it is edited again."""
        renewed = {}
        for name, tensor in self.tensors.items():
            # One that two names shared would be one still.
            key = id(tensor.bytes)
            renewed.setdefault(key, Bytes(tensor.bytes.now, False))
            self.tensors[name] = tensor.but(data=renewed[key])


def npy(data, shape):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + data


class Edits:
    """Random edits of the mount at @point, each also made to @model."""

    def __init__(self, point, model, seed):
        self.point, self.model, self.random = point, model, random.Random(seed)

    def at(self, *parts):
        return os.path.join(self.point, *parts)

    def tensor(self, name):
        return self.at("tensors", name.replace(".", "/"))

    def new_name(self):
        self.model.made += 1
        return f"{self.random.choice(FOLDERS)}t{self.model.made}"

    def some(self, entries):
        return self.random.choice(sorted(entries)) if entries else None

    def data(self, size=None):
        return self.random.randbytes(
            self.random.choice([1, 4, 120, 120, 5000]) * 4 if size is None else size)

    def write(self, path, data, mode="wb", at=0):
        with open(path, mode, buffering=0) as file:
            file.seek(at)
            file.write(data)

    # Tensors ----------------------------------------------------------------

    def make_tensor(self):
        name, data = self.new_name(), self.data()
        os.makedirs(os.path.dirname(self.tensor(name)), exist_ok=True)
        self.write(self.tensor(name), data)
        self.model.tensors[name] = Tensor(data, "U8", [len(data)], None, raw=True)
        if self.random.random() < 0.4:
            os.setxattr(self.tensor(name), "user.bpk.dtype", b"F32")
            self.model.tensors[name] = self.model.tensors[name].but(
                dtype="F32", shape=[len(data) // 4], raw=False)

    def write_tensor(self):
        name = self.some(self.model.tensors)
        if name:
            tensor = self.model.tensors[name]
            data = self.data(len(tensor.bytes.now))
            self.model.tensors[name] = tensor.but(data=Bytes(data, True))
            self.write(self.tensor(name), data)

    def patch_tensor(self):
        name = self.some(self.model.tensors)
        if not name:
            return
        tensor = self.model.tensors[name]
        old = tensor.bytes.now
        at = self.random.randrange(len(old))
        patch = self.data(self.random.randrange(1, 20))[:len(old) - at]
        if not tensor.bytes.staged:
            tensor = self.model.tensors[name] = tensor.but(data=Bytes(old, True))
        tensor.bytes.versions.append(old[:at] + patch + old[at + len(patch):])
        self.write(self.tensor(name), patch, "r+b", at)

    def resize_tensor(self):
        name = self.some(self.model.tensors)
        if not name:
            return
        tensor, data = self.model.tensors[name], self.data()
        shape = [len(data) // ELEMENT[tensor.dtype]]
        self.model.tensors[name] = tensor.but(data=Bytes(data, True), shape=shape,
                                                     raw=False)
        try:
            self.write(self.tensor(name), data)
        except OSError as error:
            if error.errno != errno.EINVAL:  # not yet what the shape says
                raise
        os.setxattr(self.tensor(name), "user.bpk.shape", str(shape).replace(" ", "").encode())

    def replace_tensor(self):
        """As rsync does it: by a scratch file."""
        name = self.some(self.model.tensors)
        if name:
            tensor = self.model.tensors[name]
            scratch = os.path.join(os.path.dirname(self.tensor(name)), ".scratch")
            data = self.data(len(tensor.bytes.now))
            self.write(scratch, data)
            os.replace(scratch, self.tensor(name))
            self.model.tensors[name] = tensor.but(data=Bytes(data, True))

    def remove_tensor(self):
        name = self.some(self.model.tensors)
        if name:
            os.unlink(self.tensor(name))
            del self.model.tensors[name]

    def move_tensor(self):
        name, tensors = self.some(self.model.tensors), self.model.tensors
        to = self.some(tensors) if self.random.random() < 0.3 else self.new_name()
        if name and tensors[name].raw and to in tensors:
            return
        if name and to != name:
            os.makedirs(os.path.dirname(self.tensor(to)), exist_ok=True)
            os.rename(self.tensor(name), self.tensor(to))
            moved = tensors.pop(name)
            if to in tensors and not moved.bytes.staged:
                # What takes another's place in the pack has its bytes staged.
                moved = moved.but(data=Bytes(moved.bytes.now, True))
            tensors[to] = moved

    def move_folder(self):
        tensors = self.model.tensors
        folder = self.some({name.rpartition(".")[0] for name in tensors} - {""})
        if folder:
            self.model.made += 1
            to = f"f{self.model.made}"
            os.rename(self.tensor(folder), self.tensor(to))
            for name in [n for n in tensors if n.startswith(folder + ".")]:
                tensors[to + name[len(folder):]] = tensors.pop(name)

    def write_npy(self):
        name = self.some(self.model.tensors) if self.random.random() < 0.5 else None
        name = name or self.new_name()
        data = self.data()
        path = self.at("npy", name.replace(".", "/") + ".npy")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        old = self.model.tensors.get(name)
        self.write(path, npy(data, len(data) // 4))
        self.model.tensors[name] = Tensor(data, "F32", [len(data) // 4],
                                          old and old.param_id)

    def scratch(self):
        self.write(self.at("tensors", ".swp"), self.data())

    # Text -------------------------------------------------------------------

    def write_scalar(self):
        name = self.some(self.model.scalars) if self.random.random() < 0.6 else None
        if not name:
            self.model.made += 1
            name = f"s{self.model.made}"
        kind = self.model.scalars[name][0] if name in self.model.scalars else "UInt"
        number = self.random.randrange(1000)
        text = str(number / 8) if kind == "Float" else str(number)
        self.write(self.at("scalars", name), text.encode() + b"\n")
        self.model.scalars[name] = kind, text

    def remove_scalar(self):
        name = self.some(self.model.scalars)
        if name:
            os.unlink(self.at("scalars", name))
            del self.model.scalars[name]

    def move_scalar(self):
        name = self.some(self.model.scalars)
        if name:
            self.model.made += 1
            os.rename(self.at("scalars", name), self.at("scalars", f"s{self.model.made}"))
            self.model.scalars[f"s{self.model.made}"] = self.model.scalars.pop(name)

    def write_metadata(self):
        key = self.some(self.model.metadata) if self.random.random() < 0.6 else None
        if not key:
            self.model.made += 1
            key = f"m.{self.model.made}"
        text = "x" * self.random.randrange(300) + str(self.model.made)
        self.write(self.at("metadata", key), text.encode() + b"\n")
        self.model.metadata[key] = text

    def remove_metadata(self):
        key = self.some(self.model.metadata)
        if key:
            os.unlink(self.at("metadata", key))
            del self.model.metadata[key]

    # All --------------------------------------------------------------------

    KINDS = [(make_tensor, 8), (write_tensor, 6), (patch_tensor, 6), (resize_tensor, 4),
             (replace_tensor, 5), (remove_tensor, 3), (move_tensor, 6), (move_folder, 2),
             (write_npy, 5), (scratch, 1), (write_scalar, 7), (remove_scalar, 2),
             (move_scalar, 3), (write_metadata, 5), (remove_metadata, 2)]

    def one(self):
        functions, weights = zip(*self.KINDS)
        edit = self.random.choices(functions, weights)[0]
        edit(self)
        return edit.__name__

    def fsync(self):
        """Of any file: which, does not matter."""
        paths = [self.tensor(name) for name in sorted(self.model.tensors)]
        paths += [self.at("scalars", name) for name in sorted(self.model.scalars)]
        paths += [self.at("metadata", key) for key in sorted(self.model.metadata)]
        if not paths:
            return False
        fd = os.open(self.random.choice(paths), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        return True
