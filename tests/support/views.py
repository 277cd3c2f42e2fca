#!/usr/bin/env python3
"""The views of a mount against the pack itself, which oracle.py reads on its own.

    views.py npy MOUNT PACK          every tensor through numpy, in every way it reads
    views.py index MOUNT PACK        index.tsv
    views.py json MOUNT PACK         pack.json
    views.py safetensors MOUNT PACK  pack.safetensors by the rules of its format

Prints a line for each difference and "N checked" at the end.
"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402

NUMPY = {"F64": "<f8", "F32": "<f4", "Flex32": "<f4", "F16": "<f2", "BF16": "|V2",
         "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
         "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
         "Bool": "|b1", "Bool(Native)": "|b1", "Bool(U8)": "|b1", "Bool(U32)": "<u4"}
SAFE = {"F64": ("F64", 8), "F32": ("F32", 4), "Flex32": ("F32", 4), "F16": ("F16", 2),
        "BF16": ("BF16", 2), "I64": ("I64", 8), "I32": ("I32", 4), "I16": ("I16", 2),
        "I8": ("I8", 1), "U64": ("U64", 8), "U32": ("U32", 4), "U16": ("U16", 2),
        "U8": ("U8", 1), "Bool": ("BOOL", 1), "Bool(Native)": ("BOOL", 1),
        "Bool(U8)": ("BOOL", 1), "Bool(U32)": ("U32", 4)}


def dtype_text(dtype):
    if isinstance(dtype, str):
        return dtype
    return f"Bool({dtype['Bool']})" if "Bool" in dtype else None


def is_array(pack, tensor):
    size = None if isinstance(tensor["dtype"], dict) and "QFloat" in tensor["dtype"] else \
        oracle.product_size(tensor["dtype"], tensor["shape"])
    return size == len(pack.bytes_of(tensor))


def npy(mount, pack):
    import numpy as np
    names = list(pack.tensors)
    raw_paths = dict(oracle.paths(names, False))
    for name, path in oracle.paths(names, False, ".npy"):
        tensor = pack.tensors[name]
        data = pack.bytes_of(tensor)
        array = is_array(pack, tensor)
        dtype = np.dtype(NUMPY[dtype_text(tensor["dtype"])] if array else "|u1")
        want = np.frombuffer(data, dtype).reshape(tensor["shape"] if array else [len(data)])
        file = os.path.join(mount, "npy", path)
        raw = os.path.join(mount, "tensors", raw_paths[name])
        got = {"np.load": np.load(file)}
        with open(file, "rb") as opened:
            head = opened.read(12)
            header = 10 + struct.unpack("<H", head[8:10])[0] if head[6] == 1 else \
                12 + struct.unpack("<I", head[8:12])[0]
            if header % 64:
                yield f"{name}: data at {header}"
            if header + len(data) != os.stat(file).st_size:
                yield f"{name}: {os.stat(file).st_size} bytes"
        if data:
            got["np.load mmap"] = np.load(file, mmap_mode="r")
            got["np.memmap"] = np.memmap(raw, dtype, "r", shape=want.shape)
        got["np.fromfile"] = np.fromfile(raw, dtype).reshape(want.shape)
        for how, one in got.items():
            if one.dtype != want.dtype or one.shape != want.shape or \
                    one.tobytes() != want.tobytes():
                yield f"{name}: {how} gives {one.dtype} {one.shape}"
        yield None
    shown = sum(len(files) for _, _, files in os.walk(os.path.join(mount, "npy")))
    if shown != len(pack.tensors):
        yield f"{shown} files in npy/"


def unescape(text):
    out, chars = [], iter(text)
    for char in chars:
        out.append({"t": "\t", "n": "\n", "r": "\r", "0": "\0", "\\": "\\"}[next(chars)]
                   if char == "\\" else char)
    return "".join(out)


def quantized(text):
    return json.loads(text) if text[:1] == "{" else text


def index(mount, pack):
    with open(os.path.join(mount, "index.tsv"), encoding="utf-8", newline="\n") as file:
        text = file.read()
    lines = text.split("\n")
    if lines[0] != "name\tdtype\tshape\tbytes\toffset\tparam_id" or lines[-1]:
        yield f"first line {lines[0]!r}, last line {lines[-1]!r}"
    rows = [line.split("\t") for line in lines[1:-1]]
    if [unescape(row[0]) for row in rows] != list(pack.tensors):
        yield f"names {[row[0] for row in rows]}"
    for row in rows:
        tensor = pack.tensors[unescape(row[0])]
        start, end = tensor["data_offsets"]
        dtype = dtype_text(tensor["dtype"])
        want = [json.dumps(tensor["shape"], separators=(",", ":")), str(end - start),
                str(pack.data_off + start), str(tensor.get("param_id", ""))]
        if row[2:] != want or (dtype and row[1] != dtype) or \
                (not dtype and set(quantized(unescape(row[1]))) != {"QFloat"}):
            yield f"{row[0]}: {row[1:]}, wanted {[dtype] + want}"
        yield None


def pack_json(mount, pack):
    with open(os.path.join(mount, "pack.json"), "rb") as file:
        text = file.read()
    got = json.loads(text)
    want = {"format_version": struct.unpack_from("<H", pack.data, 4)[0],
            "file_size": len(pack.data), "metadata_size": len(pack.raw_metadata),
            "data_offset": pack.data_off}
    for key, value in want.items():
        if got.get(key) != value:
            yield f"{key}: {got.get(key)}, wanted {value}"
    if got["metadata"] != pack.metadata:
        yield "metadata differs"
    if list(got["tensors"]) != list(pack.tensors) or list(got["scalars"]) != list(pack.scalars):
        yield "names differ"
    for name, tensor in pack.tensors.items():
        start, end = tensor["data_offsets"]
        want = {"dtype": dtype_text(tensor["dtype"]), "shape": tensor["shape"],
                "bytes": end - start, "offset": pack.data_off + start}
        if tensor.get("param_id") is not None:
            want["param_id"] = tensor["param_id"]
        one = got["tensors"][name]
        if want["dtype"] is None:
            want["dtype"] = one["dtype"]
            if set(one["dtype"]) != {"QFloat"}:
                yield f"{name}: {one['dtype']}"
        if one != want:
            yield f"{name}: {one}, wanted {want}"
        yield None
    for name, scalar in pack.scalars.items():
        (kind, _), = scalar.items()
        text = oracle.scalar_text(scalar)
        one = got["scalars"][name]
        shown = one["value"]
        if kind == "Bool":
            same = shown is (text == "true")
        elif kind == "Float" and isinstance(shown, float):
            same = struct.pack("<d", shown) == struct.pack("<d", float(text))
        else:
            same = str(shown) == text
        if one["type"] != kind or not same:
            yield f"{name}: {one}, wanted {kind} {text}"
        yield None


def safetensors(mount, pack):
    """What the reader that the format comes from insists on, and the bytes."""
    path = os.path.join(mount, "pack.safetensors")
    with open(path, "rb") as file:
        data = file.read()
    if len(data) != os.stat(path).st_size:
        yield f"{len(data)} bytes read of {os.stat(path).st_size}"
    size, = struct.unpack_from("<Q", data)
    if size > 100_000_000 or size % 8 or data[8:9] != b"{":
        yield f"header of {size} bytes that starts with {data[8:9]}"

    def unique(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a name twice")
        return dict(pairs)

    header = json.loads(data[8:8 + size].decode(), object_pairs_hook=unique)
    notes = header.pop("__metadata__", {})
    if not all(isinstance(value, str) for value in notes.values()):
        yield "metadata that is no text"
    end = 0
    for name, one in sorted(header.items(), key=lambda pair: pair[1]["data_offsets"]):
        start, after = one["data_offsets"]
        item = dict(SAFE.values())[one["dtype"]]
        length = item
        for dim in one["shape"]:
            length *= dim
        if set(one) != {"dtype", "shape", "data_offsets"} or start != end or \
                length != after - start:
            yield f"{name}: {one} behind {end}"
        if start % item:
            yield f"{name}: {one['dtype']} at {start}"
        end = after
    if 8 + size + end != len(data):
        yield f"tensors end at {8 + size + end} of {len(data)}"
    for key, value in pack.metadata.items():
        if notes.get(key) != value:
            yield f"metadata {key!r}: {notes.get(key)!r}"
    if len(header) != len(pack.tensors):
        yield f"{len(header)} tensors"
    for name, tensor in pack.tensors.items():
        one = header[name]
        start, after = one["data_offsets"]
        want = pack.bytes_of(tensor)
        if is_array(pack, tensor):
            described = SAFE[dtype_text(tensor["dtype"])][0], tensor["shape"]
        else:
            described = "U8", [len(want)]
        if (one["dtype"], one["shape"]) != described:
            yield f"{name}: {one}, wanted {described}"
        if data[8 + size + start:8 + size + after] != want:
            yield f"{name}: other bytes"
        text = dtype_text(tensor["dtype"])
        if one["dtype"] != text and not (text or "").startswith("Bool") and \
                not any(name in key for key in notes):
            yield f"{name}: its dtype is not told"
        yield None


def main(args):
    views = {"npy": npy, "index": index, "json": pack_json, "safetensors": safetensors}
    if len(args) != 3 or args[0] not in views:
        sys.exit(__doc__)
    count = 0
    for line in views[args[0]](args[1], oracle.Pack(args[2])):
        if line is None:
            count += 1
        else:
            print(line)
    print(f"{count} checked")


if __name__ == "__main__":
    main(sys.argv[1:])
