#!/usr/bin/env python3
"""numpy and libbpk read each other's .npy headers.

    convert_npy.py BPK_CONVERT

What libbpk renders is loaded by np.load() with the values that lie behind it, and
np.save() keeps them. What np.save() writes, of every dtype that a tensor can have, in
both byte orders and both array orders, is read by libbpk as numpy means it.
"""

import io
import itertools
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.executable} has no numpy (Debian: python3-numpy)")

# libbpk's dtype, numpy's of what is shown, and what a .npy file of that is read as.
DTYPES = [
    ("F64", "<f8", "F64"),
    ("F32", "<f4", "F32"),
    ("Flex32", "<f4", "F32"),
    ("F16", "<f2", "F16"),
    ("BF16", "V2", "BF16"),
    ("I64", "<i8", "I64"),
    ("I32", "<i4", "I32"),
    ("I16", "<i2", "I16"),
    ("I8", "i1", "I8"),
    ("U64", "<u8", "U64"),
    ("U32", "<u4", "U32"),
    ("U16", "<u2", "U16"),
    ("U8", "u1", "U8"),
    ("Bool(Native)", "?", "Bool(Native)"),
    ("Bool(U8)", "?", "Bool(Native)"),
    ("Bool(U32)", "<u4", "U32"),
    ("Bool", "?", "Bool(Native)"),
]
SHAPES = [
    (), (1,), (7,), (0,), (3, 4), (4, 1), (0, 5), (5, 0), (2, 3, 4), (1, 1, 1),
    (2, 0, 3), (2, 3, 1, 4), (3, 1, 2, 2, 5), (1, 0, 1, 0, 1), (1,) * 32,
]
# What plain numpy has besides.
UNKNOWN = ["<c8", ">c16", "|S5", "<U5", "V4", "<M8[ns]", "<m8[s]", "longdouble",
           [("x", "<f4"), ("y", "i1")], [("x", "<f4", (2, 3))]]

failures = []
checks = 0


def check(label, good, why=""):
    global checks
    checks += 1
    if not good:
        failures.append(f"{label}: {why}")


def content(dtype, shape):
    """An array whose elements all differ, as far as the dtype lets them."""
    count = int(np.prod(shape))
    dtype = np.dtype(dtype)
    if dtype == np.dtype("?"):
        return (np.arange(count) % 3 == 0).reshape(shape)
    # No NaN, whose bits need not compare, and every byte is in use.
    data = b"".join((((i * 40503 + 17) * 2654435761) % 2**64).to_bytes(8, "little")
                    for i in range(count * dtype.itemsize // 8 + 1))
    array = np.frombuffer(data[:count * dtype.itemsize], dtype).reshape(shape)
    return np.nan_to_num(array) if dtype.kind == "f" else array


def saved(array, version=None):
    file = io.BytesIO()
    if version:
        np.lib.format.write_array(file, array, version)
    else:
        np.save(file, array, allow_pickle=True)
    return file.getvalue()


def loaded(data):
    """The array, and whether the header took all that comes before its bytes."""
    file = io.BytesIO(data)
    array = np.load(file, allow_pickle=False)
    return array, file.tell() == len(data)


class Questions:
    """Requests to bpk-convert, each with what is to be done with its answer."""

    def __init__(self):
        self.asked = []

    def ask(self, request, answered):
        self.asked.append((request, answered))

    def run(self, program):
        text = "".join(request + "\n" for request, _ in self.asked)
        done = subprocess.run([program], input=text, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program}: status {done.returncode}: {done.stderr}")
        answers = done.stdout.splitlines()
        check("answers", len(answers) == len(self.asked), len(answers))
        for (_, answered), answer in zip(self.asked, answers):
            answered(answer)


def hexed(data):
    return data.hex() or "-"


def ask_render(questions, dtype, plain, shape):
    label = f"{dtype} {shape}"
    array = content(plain, shape)
    data = array.tobytes()

    def answered(answer):
        word, header = answer.split()
        header = bytes.fromhex(header)
        check(label, word == "npy" and len(header) % 64 == 0, answer)
        try:
            back, whole = loaded(header + data)
        except ValueError as error:
            check(label, False, error)
            return
        check(label, whole, "bytes are left")
        check(label, back.dtype == np.dtype(plain), back.dtype)
        check(label, back.shape == shape, back.shape)
        check(label, back.flags.c_contiguous and back.tobytes() == data, "other bytes")
        again, _ = loaded(saved(back))
        check(label, again.dtype == back.dtype and again.tobytes() == data,
              "np.save() loses something")

    questions.ask(f"npy {dtype} {len(data)} " + " ".join(map(str, shape)), answered)


def ask_flat(questions, dtype, size, shape):
    label = f"{dtype} {shape} of {size} bytes"
    data = bytes(i * 7 & 0xff for i in range(size))

    def answered(answer):
        back, whole = loaded(bytes.fromhex(answer.split()[1]) + data)
        check(label, whole and back.dtype == np.uint8 and back.shape == (size,)
              and back.tobytes() == data, answer)

    questions.ask(f"npy {dtype} {size} " + " ".join(map(str, shape)), answered)


def ask_parse(questions, array, dtype, version=None):
    file = saved(array, version)
    body = array.tobytes("A")
    label = f"{array.dtype.str} {array.shape} {'F' if np.isfortran(array) else 'C'}"
    expected = [
        "npy", dtype, str(len(file) - len(body)), str(array.nbytes),
        "big" if array.dtype.byteorder == ">" else "little",
        "column" if np.isfortran(array) else "row", *map(str, array.shape),
    ]

    def answered(answer):
        check(label, answer.split() == expected, f"{answer}, not {' '.join(expected)}")

    check(label, file.endswith(body), "the bytes are not where they are thought to be")
    questions.ask("parse " + hexed(file), answered)


def ask_unknown(questions, dtype):
    file = saved(np.zeros(3, dtype))
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    text = descr if isinstance(descr, str) else str(descr)

    def answered(answer):
        check(str(dtype), answer.startswith("error EINVAL ") and text in answer, answer)

    questions.ask("parse " + hexed(file), answered)


def ask_object(questions):
    file = saved(np.array([None, {}], object))

    def answered(answer):
        check("objects", answer.startswith("error EINVAL ") and '"|O"' in answer, answer)

    questions.ask("parse " + hexed(file), answered)


def main():
    questions = Questions()
    for (dtype, plain, _), shape in itertools.product(DTYPES, SHAPES):
        ask_render(questions, dtype, plain, shape)
    for dtype, size, shape in [("QFloat", 0, (0,)), ("QFloat", 20, (4, 4)),
                               ("F32", 11, (3,)), ("F32", 13, (3,)), ("I64", 1, ()),
                               ("U8", 5, (2, 3)), ("F32", 0, (2**62, 0)),
                               ("F32", 0, (0, 2**62, 9))]:
        ask_flat(questions, dtype, size, shape)

    for _, plain, dtype in {row[2]: row for row in DTYPES}.values():
        for shape, order, endian in itertools.product(SHAPES, "CF", "<>"):
            swapped = np.dtype(plain).newbyteorder(endian)
            array = np.array(content(plain, shape).astype(swapped), order=order)
            ask_parse(questions, array, dtype)
    array = content("<f4", (2, 3))
    for version in (1, 0), (2, 0), (3, 0):
        ask_parse(questions, array, "F32", version)
    for dtype in UNKNOWN:
        ask_unknown(questions, dtype)
    ask_object(questions)

    questions.run(sys.argv[1])
    for failure in failures[:40]:
        print(failure)
    print(f"numpy {np.__version__}: {checks} checks, {len(failures)} failed")
    sys.exit(bool(failures))


main()
