#!/usr/bin/env python3
"""The input of every golden pack, given to the library, makes the same bytes,
through every sink and from every kind of source; and so does the pack itself, read
and written again.

    vectors_write.py BPK_MAKE CARRY_OVER FOLDER...

Each FOLDER holds golden/; one that is not there is passed over, but not the first.
The .json is turned into the lines that bpk-make reads. A QFloat's dtype becomes CBOR
here, keys in the order of the JSON.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

SINKS = ("file", "inplace", "buffer", "newbuffer")
SOURCES = ("bytes", "deferred", "range")


def head(major, number):
    if number < 24:
        return bytes([major << 5 | number])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([major << 5 | code]) + number.to_bytes(size, "big")
    raise ValueError(number)


def cbor(value):
    """What a quantization scheme is made of."""
    if value is None:
        return b"\xf6"
    if value is True or value is False:
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        text = value.encode()
        return head(3, len(text)) + text
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, dict):
        pairs = (cbor(k) + cbor(v) for k, v in value.items())
        return head(5, len(value)) + b"".join(pairs)
    raise TypeError(value)


def text(value):
    return "hex:" + value.encode().hex()


def dtype_words(dtype):
    if isinstance(dtype, str):
        return dtype, ""
    ((kind, inner),) = dtype.items()
    if kind == "Bool":
        return f"Bool({inner})", ""
    return kind, f" cbor={cbor(dtype).hex()}"


def float_word(value):
    if isinstance(value, str):
        if value.startswith("0x"):
            return "bits:" + value[2:]
        named = {"NaN": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
        value = named[value]
    return "bits:" + struct.pack(">d", float(value)).hex()


def scalar_line(name, value):
    ((kind, inner),) = value.items()
    word = str(inner)
    if kind == "Float":
        word = float_word(inner)
    elif kind == "Bool":
        word = "true" if inner else "false"
    return f"scalar {text(name)} {kind} {word}"


def spec(pack):
    lines = []
    for tensor in pack["tensors"]:
        dtype, more = dtype_words(tensor["dtype"])
        if tensor.get("param_id") is not None:
            more += f" param_id={tensor['param_id']}"
        if tensor.get("byte_len") is not None:
            more += f" size={tensor['byte_len']}"
        shape = ",".join(map(str, tensor["shape"]))
        lines.append(f"tensor {text(tensor['name'])} {dtype} [{shape}]{more}")
    # The order of these must not matter: the last ones come first.
    for key, value in reversed(pack.get("metadata", {}).items()):
        lines.append(f"meta {text(key)} {text(value)}")
    for name, value in reversed(pack.get("scalars", {}).items()):
        lines.append(scalar_line(name, value))
    return "".join(line + "\n" for line in lines)


def difference(got, wanted):
    if len(got) != len(wanted):
        return f"{len(got)} bytes instead of {len(wanted)}"
    at = next(i for i, (a, b) in enumerate(zip(got, wanted)) if a != b)
    return f"byte {at} is {got[at]:#04x} instead of {wanted[at]:#04x}"


def try_one(args, lines, out, wanted):
    """None, or what is wrong with the pack that @args write."""
    done = subprocess.run(args, input=lines.encode(), capture_output=True)
    if done.returncode:
        return done.stderr.decode("utf-8", "replace") or f"status {done.returncode}"
    with open(out, "rb") as file:
        got = file.read()
    return None if got == wanted else difference(got, wanted)


def run(make, carry_over, folder, name, out):
    """Write one vector in every way; yields (label, what is wrong or None)."""
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
        lines = spec(json.load(file))
    with open(os.path.join(folder, name + ".bpk"), "rb") as file:
        wanted = file.read()
    for sink in SINKS:
        for source in SOURCES:
            args = [make, "--sink=" + sink, "--source=" + source, out]
            yield f"{name} {sink} {source}", try_one(args, lines, out, wanted)
    args = [carry_over, os.path.join(folder, name + ".bpk"), out]
    yield f"{name} carried over", try_one(args, "", out, wanted)


def main():
    make, carry_over, folders = sys.argv[1], sys.argv[2], sys.argv[3:]
    count = 0
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        for i, folder in enumerate(folders):
            golden = os.path.join(folder, "golden")
            if i and not os.path.isdir(golden):
                continue
            for file in sorted(os.listdir(golden)):
                name, extension = os.path.splitext(file)
                if extension != ".bpk":
                    continue
                out = os.path.join(scratch, "out.bpk")
                for label, why in run(make, carry_over, golden, name, out):
                    count += 1
                    if why:
                        failures.append(f"{label}: {why}")
        left = os.listdir(scratch)
        if left != ["out.bpk"]:
            failures.append(f"left behind: {left}")
    for failure in failures:
        print(failure)
    print(f"{count} packs written, {len(failures)} wrong")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
