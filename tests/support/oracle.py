#!/usr/bin/env python3
"""An independent burnpack reader and writer, the oracle of the mount tests.

It shares no line with libbpk, so that a mistake there cannot hide here, and it is
written for plainness: the whole pack in memory, no limits. FORMAT.md is its source.

    oracle.py make SPEC.json OUT.bpk     a pack as Burn's writer would make it
    oracle.py show PACK.bpk              the pack as JSON, tensors with their SHA-256
    oracle.py tree PACK.bpk [--flat]     the files a mount of it must have, one a line:
                                         path, tab, size, tab, SHA-256
    oracle.py files DIR                  the same list, of what a mounted pack has
    oracle.py copy PACK.bpk DIR          these files as plain ones, with the modes, times
                                         and, where DIR can have them, the xattrs of a mount
    oracle.py meta PACK.bpk              the metadata, byte for byte (what a diff looks at)
    oracle.py differ OLD.bpk NEW.bpk     names every entry that is not the same in both
    oracle.py scalar PACK.bpk NAME       its type and text, or "none"
    oracle.py value PACK.bpk KEY         the value of a metadata key, byte for byte
    oracle.py data PACK.bpk NAME         the bytes of a tensor
    oracle.py tensor PACK.bpk NAME...    what each is, one a line: name, dtype, shape,
                                         param_id or "-", SHA-256

SPEC.json is what the golden vectors use: tensors in write order with name, dtype,
shape and perhaps param_id, byte_len and hex (default: byte i of tensor k is
(i*31 + k*7 + 3) & 0xff); scalars as {"Float": 0.5}, a Float also as "0x" and its
bits; metadata as text. "extra" in a tensor or at the top are unknown keys.
"""
import bisect
import errno
import hashlib
import json
import math
import os
import struct
import sys

ALIGNMENT = 256
SIZES = {"F64": 8, "F32": 4, "Flex32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4,
         "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "Bool": 1}
BOOL_SIZES = {"Native": 1, "U8": 1, "U32": 4}


class Float:
    """A float by its 64 bits: Python's own loses NaN payloads on the way."""

    def __init__(self, bits):
        self.bits = bits

    def __eq__(self, other):
        return isinstance(other, Float) and self.bits == other.bits

    @property
    def value(self):
        return struct.unpack("<d", struct.pack("<Q", self.bits))[0]


# CBOR ------------------------------------------------------------------------

def head(major, value):
    if value < 24:
        return bytes([major << 5 | value])
    for code, fmt, limit in ((24, ">B", 1 << 8), (25, ">H", 1 << 16), (26, ">I", 1 << 32)):
        if value < limit:
            return bytes([major << 5 | code]) + struct.pack(fmt, value)
    return bytes([major << 5 | 27]) + struct.pack(">Q", value)


def narrow(bits, exponent_bits, mantissa_bits):
    """The same number in a narrower format, or None when it does not fit."""
    sign, exponent, mantissa = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    top = (1 << exponent_bits) - 1
    bias = top >> 1
    cut = 52 - mantissa_bits
    if exponent == 0x7FF:
        # A signalling NaN stays wide; a quiet one keeps its payload or its width.
        if mantissa & (1 << cut) - 1 or (mantissa and not mantissa >> 51):
            return None
        return sign << exponent_bits + mantissa_bits | top << mantissa_bits | mantissa >> cut
    if exponent == 0 and mantissa == 0:
        return sign << exponent_bits + mantissa_bits
    if exponent == 0:
        return None
    scale = exponent - 1023 + bias
    if scale >= top:
        return None
    if scale <= 0:
        mantissa |= 1 << 52
        cut += 1 - scale
        scale = 0
        if cut > 53:
            return None
    if mantissa & (1 << cut) - 1:
        return None
    return sign << exponent_bits + mantissa_bits | scale << mantissa_bits | mantissa >> cut


def encode(item):
    if item is None:
        return b"\xf6"
    if isinstance(item, bool):
        return b"\xf5" if item else b"\xf4"
    if isinstance(item, int):
        return head(0, item) if item >= 0 else head(1, -1 - item)
    if isinstance(item, float):
        item = Float(struct.unpack("<Q", struct.pack("<d", item))[0])
    if isinstance(item, Float):
        for lead, exponent_bits, mantissa_bits, fmt in ((0xF9, 5, 10, ">H"), (0xFA, 8, 23, ">I")):
            short = narrow(item.bits, exponent_bits, mantissa_bits)
            if short is not None:
                return bytes([lead]) + struct.pack(fmt, short)
        return b"\xfb" + struct.pack(">Q", item.bits)
    if isinstance(item, str):
        data = item.encode()
        return head(3, len(data)) + data
    if isinstance(item, list):
        return head(4, len(item)) + b"".join(map(encode, item))
    if isinstance(item, dict):
        return head(5, len(item)) + b"".join(encode(k) + encode(v) for k, v in item.items())
    raise TypeError(item)


def widen(bits, exponent_bits, mantissa_bits):
    sign = bits >> exponent_bits + mantissa_bits
    top = (1 << exponent_bits) - 1
    exponent, mantissa = bits >> mantissa_bits & top, bits & (1 << mantissa_bits) - 1
    if exponent == top:
        quiet = 1 << 51 if mantissa else 0
        return Float(sign << 63 | 0x7FF << 52 | mantissa << 52 - mantissa_bits | quiet)
    bias = top >> 1
    value = math.ldexp(mantissa, 1 - bias - mantissa_bits) if exponent == 0 else \
        math.ldexp(mantissa | 1 << mantissa_bits, exponent - bias - mantissa_bits)
    raw = struct.unpack("<Q", struct.pack("<d", value))[0]
    return Float(sign << 63 | raw)


BREAK = object()


def decode(data, at):
    first = data[at]
    major, low = first >> 5, first & 31
    at += 1
    value = low
    if 24 <= low <= 27:
        size = 1 << low - 24
        value = int.from_bytes(data[at:at + size], "big")
        at += size
    if major == 7:
        if low == 31:
            return BREAK, at
        if low in (25, 26):
            return widen(value, *((5, 10) if low == 25 else (8, 23))), at
        return (Float(value) if low == 27 else {20: False, 21: True}.get(low)), at
    if major == 0:
        return value, at
    if major == 1:
        return -1 - value, at
    if major in (2, 3):
        if low == 31:
            parts = []
            while True:
                part, at = decode(data, at)
                if part is BREAK:
                    break
                parts.append(part)
            return (b"" if major == 2 else "").join(parts), at
        raw = data[at:at + value]
        return (raw if major == 2 else raw.decode()), at + value
    if major == 6:
        return decode(data, at)
    items, left = [], (None if low == 31 else value * (major - 3))
    while left is None or len(items) < left:
        item, at = decode(data, at)
        if item is BREAK:
            break
        items.append(item)
    if major == 4:
        return items, at
    return dict(zip(items[::2], items[1::2])), at


# Packs -----------------------------------------------------------------------

def product_size(dtype, shape):
    size = SIZES.get(dtype) if isinstance(dtype, str) else BOOL_SIZES.get(dtype.get("Bool"))
    return None if size is None else size * math.prod(shape)


def align(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def ordered(mapping):
    return dict(sorted(mapping.items(), key=lambda pair: pair[0].encode()))


def make(spec):
    descriptors, blobs, end = {}, [], 0
    for k, tensor in enumerate(spec.get("tensors", [])):
        size = tensor.get("byte_len", product_size(tensor["dtype"], tensor["shape"]))
        if "hex" in tensor:
            data = bytes.fromhex(tensor["hex"])
        else:
            period = bytes((i * 31 + k * 7 + 3) & 0xFF for i in range(256))
            data = (period * (size // 256 + 1))[:size]
        start = align(end)
        end = start + len(data)
        blobs.append((start, data))
        descriptor = {"dtype": tensor["dtype"], "shape": tensor["shape"],
                      "data_offsets": [start, end]}
        if tensor.get("param_id") is not None:
            descriptor["param_id"] = tensor["param_id"]
        descriptor.update(tensor.get("extra", {}))
        descriptors[tensor["name"]] = descriptor

    scalars = {}
    for name, scalar in spec.get("scalars", {}).items():
        (kind, value), = scalar.items()
        if kind == "Float":
            value = Float(int(value, 16)) if isinstance(value, str) and value[:2] == "0x" \
                else float(value)
        scalars[name] = {kind: value}

    root = {"tensors": ordered(descriptors)}
    if spec.get("metadata"):
        root["metadata"] = ordered(spec["metadata"])
    if scalars:
        root["scalars"] = ordered(scalars)
    root.update(spec.get("extra", {}))
    metadata = encode(root)
    pack = bytearray(b"NRUB" + struct.pack("<HI", 1, len(metadata)) + metadata)
    data_off = align(len(pack))
    pack += bytes(data_off - len(pack))
    for start, data in blobs:
        pack += bytes(data_off + start - len(pack)) + data
    return pack


class Pack:
    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        magic, _, size = struct.unpack_from("<4sHI", self.data)
        assert magic == b"NRUB", "not a burnpack"
        self.raw_metadata = self.data[10:10 + size]
        self.root, _ = decode(self.raw_metadata, 0)
        self.data_off = align(10 + size)
        self.tensors = ordered(self.root["tensors"])
        self.scalars = ordered(self.root.get("scalars") or {})
        self.metadata = ordered(self.root.get("metadata") or {})

    def bytes_of(self, tensor):
        start, end = tensor["data_offsets"]
        data = self.data[self.data_off + start:self.data_off + end]
        assert len(data) == end - start, "truncated"
        return data


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def float_text(value):
    """Shortest digits; with an exponent below 1e-5 and from 1e16 on."""
    if math.isinf(value) or value == 0:
        return repr(value)
    sign = "-" if value < 0 else ""
    mantissa, exponent = repr(abs(value)), 0
    if "e" in mantissa:
        mantissa, exponent = mantissa.split("e")
        exponent = int(exponent)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent += len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if -5 <= exponent < 16:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[:exponent + 1]}.{digits[exponent + 1:]}"
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{exponent}"


def scalar_text(scalar):
    """What a scalar's file holds (SEMANTICS, section 3)."""
    (kind, value), = scalar.items()
    if kind == "Bool":
        return "true" if value else "false"
    if kind != "Float":
        return str(value)
    if isinstance(value, int):
        value = Float(struct.unpack("<Q", struct.pack("<d", float(value)))[0])
    if value.bits == 0x7FF8000000000000:
        return "nan"
    if math.isnan(value.value):
        return f"nan:0x{value.bits:016x}"
    return float_text(value.value)


def unknown(mapping, known):
    return {key: encode(value).hex() for key, value in mapping.items() if key not in known}


def show(pack):
    order = sorted(pack.tensors, key=lambda name: tuple(pack.tensors[name]["data_offsets"]))
    return {
        "order": order,
        "tensors": {name: {"dtype": t["dtype"], "shape": t["shape"],
                           "param_id": t.get("param_id"),
                           "offset": pack.data_off + t["data_offsets"][0],
                           "size": t["data_offsets"][1] - t["data_offsets"][0],
                           "sha256": sha256(pack.bytes_of(t)),
                           "extra": unknown(t, {"dtype", "shape", "param_id",
                                                "data_offsets"})}
                    for name, t in pack.tensors.items()},
        "scalars": {name: {next(iter(s)): scalar_text(s)} for name, s in pack.scalars.items()},
        "metadata": pack.metadata,
        "extra": unknown(pack.root, {"tensors", "scalars", "metadata"}),
    }


# Names -----------------------------------------------------------------------

def fnv(raw):
    value = 0xCBF29CE484222325
    for byte in raw:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


def fitted(raw, room):
    """The escaped bytes of a component that fits, or what stays of one that does not,
    escaped and raw."""
    out, size, whole = [], 0, True
    for at, byte in enumerate(raw):
        odd = byte < 0x20 or byte in (0x7F, 0x25, 0x2F) or (at == 0 and byte in b".#") or \
            (at == len(raw) - 1 and byte == 0x7E)
        out.append(b"%%%02X" % byte if odd else bytes([byte]))
        size += len(out[-1])
        if size > room:
            whole = False
            break
    while not whole and (size > room - 18 or raw[len(out)] & 0xC0 == 0x80):
        size -= len(out.pop())
    return b"".join(out), None if whole else raw[:len(out)]


def escape(component, probe=0, room=255):
    """One component of a path (SEMANTICS, section 2)."""
    if component == "":
        return "%"
    raw = component.encode()
    text, head = fitted(raw, room)
    if head is not None:
        text += b"%%+%016X" % (fnv(raw) + probe & (1 << 64) - 1)
    return text.decode()


def probes(names, flat, file_room=255):
    """What is added to the hashes of components that would else share a file name: in
    the order of (hash, bytes) every value is the hash, or one above the value before.
    Values that would pass 64 bits go down instead. Keys: folder, component, and the
    room it has."""
    groups = {}
    for name in names:
        at, parts = 0, [name] if flat else name.split(".")
        for index, part in enumerate(parts):
            room = file_room if index == len(parts) - 1 else 255
            raw = part.encode() if len(part) > room // 12 else b""
            head = fitted(raw, room)[1] if len(raw) > room // 3 else None
            if head is not None:
                groups.setdefault((name[:at], head, room), set()).add(raw)
            at += len(part) + 1
    found = {}
    for (folder, _, room), members in groups.items():
        if len(members) == 1:
            continue
        hashes = sorted((fnv(raw), raw) for raw in members)
        values = []
        for value, _ in hashes:
            values.append(max(value, values[-1] + 1) if values else value)
        limit = (1 << 64) - 1
        for at in reversed(range(len(values))):
            values[at] = min(values[at], limit)
            limit = values[at] - 1
        for (value, raw), final in zip(hashes, values):
            if value != final:
                found[folder, raw.decode(), room] = final - value
    return found


def paths(names, flat, suffix=""):
    """Names and their paths; @suffix is what stands behind the names of files."""
    file_room = 255 - len(suffix)
    moved = probes(names, flat, file_room)
    ordered_names = sorted(names)
    for name in names:
        below = bisect.bisect_left(ordered_names, name + ".")
        is_self = not flat and below < len(names) and \
            ordered_names[below].startswith(name + ".")
        at, parts, escaped = 0, [name] if flat else name.split("."), []
        for index, part in enumerate(parts):
            room = 255 if index < len(parts) - 1 or is_self else file_room
            probe = moved.get((name[:at], part, room), 0) if moved and len(part) > 20 else 0
            escaped.append(escape(part, probe, room))
            at += len(part) + 1
        yield name, "/".join(escaped + ["%self"] * is_self) + suffix


def dtype_text(dtype):
    """As user.bpk.dtype has it."""
    if isinstance(dtype, str):
        return dtype
    if "Bool" in dtype:
        return f"Bool({dtype['Bool']})"
    return json.dumps(dtype, separators=(",", ":"), ensure_ascii=False)


def tensor_attributes(pack, tensor):
    return {"dtype": dtype_text(tensor["dtype"]),
            "shape": json.dumps(tensor["shape"], separators=(",", ":")),
            "param_id": tensor.get("param_id"),
            "offset": pack.data_off + tensor["data_offsets"][0]}


def tensor_text(pack, tensor):
    if tensor is None:
        return "none"
    said = tensor_attributes(pack, tensor)
    return " ".join([said["dtype"], said["shape"], str(tensor.get("param_id", "-")),
                     sha256(pack.bytes_of(tensor))])


def rows_of(pack, flat):
    """Path, bytes and attributes (without user.bpk.) of every file, in order of paths."""
    rows = []
    for name, path in paths(list(pack.tensors), flat):
        tensor = pack.tensors[name]
        rows.append(("tensors/" + path, pack.bytes_of(tensor), tensor_attributes(pack, tensor)))
    for name, path in paths(list(pack.scalars), flat):
        scalar = pack.scalars[name]
        rows.append(("scalars/" + path, (scalar_text(scalar) + "\n").encode(),
                     {"type": next(iter(scalar))}))
    moved = probes(list(pack.metadata), True)
    for key, value in pack.metadata.items():
        path = "metadata/" + escape(key, moved.get(("", key, 255), 0))
        rows.append((path, (value + "\n").encode(), {}))
    return sorted(rows, key=lambda row: row[0].encode())


def tree(pack, flat):
    for path, data, _ in rows_of(pack, flat):
        yield f"{path}\t{len(data)}\t{sha256(data)}"


def copy(source, top):
    """Read-only, as the pack of a read-only mount."""
    status = os.stat(source)
    mode = status.st_mode & 0o444
    for section in ("tensors", "scalars", "metadata"):
        os.makedirs(os.path.join(top, section))
    for path, data, attributes in rows_of(Pack(source), False):
        path = os.path.join(top, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)
        for key, value in attributes.items():
            try:
                if value is not None:
                    os.setxattr(path, "user.bpk." + key, str(value).encode())
            except OSError as error:
                if error.errno != errno.ENOTSUP:
                    raise
    for folder, _, names in os.walk(top, topdown=False):
        for name in names + [""]:
            path = os.path.join(folder, name)
            os.chmod(path, mode if name else mode | mode >> 2)
            os.chown(path, status.st_uid, status.st_gid)
            os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))


def files(top):
    rows = []
    for section in (b"tensors", b"scalars", b"metadata"):
        for folder, _, names in os.walk(os.path.join(top, section)):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    rows.append((os.path.relpath(path, top), os.stat(path).st_size, file.read()))
    for path, size, data in sorted(rows):
        yield f"{path.decode('utf-8', 'surrogateescape')}\t{size}\t{sha256(data)}"


def differ(old, new):
    a, b = show(old), show(new)
    for kind in ("tensors", "scalars", "metadata"):
        for name in sorted(set(a[kind]) | set(b[kind])):
            one, two = a[kind].get(name), b[kind].get(name)
            if kind == "tensors":
                # Where the data lies may move with the size of the metadata.
                one = one and {k: v for k, v in one.items() if k != "offset"}
                two = two and {k: v for k, v in two.items() if k != "offset"}
            if one is None or two is None:
                yield f"{'+' if one is None else '-'} {kind} {name}"
            elif one != two:
                yield f"M {kind} {name}"
    if [n for n in a["order"] if n in b["order"]] != [n for n in b["order"] if n in a["order"]]:
        yield "M order of data"
    if a["extra"] != b["extra"]:
        yield "M unknown keys"


def main(args):
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")
    if args[:1] == ["make"] and len(args) == 3:
        with open(args[1], encoding="utf-8") as file:
            spec = json.load(file)
        with open(args[2], "wb") as file:
            file.write(make(spec))
    elif args[:1] == ["show"] and len(args) == 2:
        print(json.dumps(show(Pack(args[1])), indent=1, ensure_ascii=False))
    elif args[:1] == ["tree"] and len(args) in (2, 3):
        print("\n".join(tree(Pack(args[1]), args[2:] == ["--flat"])))
    elif args[:1] == ["files"] and len(args) == 2:
        print("\n".join(files(os.fsencode(args[1]))))
    elif args[:1] == ["copy"] and len(args) == 3:
        copy(args[1], args[2])
    elif args[:1] == ["meta"] and len(args) == 2:
        sys.stdout.buffer.write(Pack(args[1]).raw_metadata)
    elif args[:1] == ["differ"] and len(args) == 3:
        print("".join(line + "\n" for line in differ(Pack(args[1]), Pack(args[2]))), end="")
    elif args[:1] == ["scalar"] and len(args) == 3:
        scalar = Pack(args[1]).scalars.get(args[2])
        print("none" if scalar is None else f"{next(iter(scalar))} {scalar_text(scalar)}")
    elif args[:1] == ["value"] and len(args) == 3:
        sys.stdout.buffer.write(Pack(args[1]).metadata[args[2]].encode())
    elif args[:1] == ["data"] and len(args) == 3:
        pack = Pack(args[1])
        sys.stdout.buffer.write(pack.bytes_of(pack.tensors[args[2]]))
    elif args[:1] == ["tensor"] and len(args) >= 3:
        pack = Pack(args[1])
        for name in args[2:]:
            print(name, tensor_text(pack, pack.tensors.get(name)))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
