#!/usr/bin/env python3
"""Writes .npy files in npy/ of a writable mount of the sample pack, the ways that
programs do, and looks at what tensors/ has then.

    npy_write.py MOUNTPOINT     one case a line: "ok NAME", or "not ok NAME: why"
"""
import errno
import io
import os
import sys
import tempfile

import numpy as np

TOP = sys.argv[1]
CASES = []


def case(function):
    CASES.append(function)
    return function


def npy(name):
    return os.path.join(TOP, "npy", *name.split(".")) + ".npy"


def raw(name):
    with open(os.path.join(TOP, "tensors", *name.split(".")), "rb") as file:
        return file.read()


def attribute(name, key):
    path = os.path.join(TOP, "tensors", *name.split("."))
    try:
        return os.getxattr(path, "user.bpk." + key).decode()
    except OSError as error:
        assert error.errno == errno.ENODATA
        return None


def changes():
    with open(os.path.join(TOP, ".bpkfs", "changes")) as file:
        return file.read()


def expect(name, array, dtype, param_id=None):
    """@name is @array, of the given dtype, in both views."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    assert raw(name) == little.tobytes(), "other bytes"
    assert attribute(name, "dtype") == dtype, attribute(name, "dtype")
    shape = "[" + ",".join(map(str, array.shape)) + "]"
    assert attribute(name, "shape") == shape, attribute(name, "shape")
    assert attribute(name, "param_id") == param_id, attribute(name, "param_id")
    if dtype != "BF16":
        again = np.load(npy(name))
        assert again.shape == array.shape and np.array_equal(again, array), "npy/ reads other"
    assert f"! tensors/{name}\n" not in changes(), "marked"


def encoded(array, **more):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **more)
    return file.getvalue()


def refused(code, function, *args):
    try:
        function(*args)
    except OSError as error:
        assert error.errno == code, error
    else:
        raise AssertionError("it was taken")


def write(path, data, mode="wb"):
    with open(path, mode, buffering=0) as file:
        while data:
            data = data[file.write(data):]


def random(shape, dtype, seed=3):
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    data = np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
    return np.frombuffer(data.tobytes(), dtype=dtype).reshape(shape)


NAMES = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16",
         "i1": "I8", "u8": "U64", "u4": "U32", "u2": "U16", "u1": "U8", "?": "Bool(Native)"}


@case
def every_dtype_and_order():
    for code, name in NAMES.items():
        for order in "<>":
            for shape in ((), (1,), (0,), (5,), (2, 3), (3, 0, 2), (2, 3, 4), (3, 1, 2, 2)):
                for column_major in (False, True):
                    count = int(np.prod(shape))
                    dtype = np.dtype(code).newbyteorder(order)
                    array = (np.arange(count) % (2 if code == "?" else 100)).astype(dtype)
                    array = array.reshape(shape, order="F" if column_major else "C")
                    np.save(npy("every"), array)
                    expect("every", array, name)


@case
def bfloat16():
    array = random((3, 5), "V2")
    np.save(npy("half"), array)
    expect("half", array, "BF16")


@case
def overwriting_keeps_the_param_id():
    array = np.arange(6, dtype="i2").reshape(3, 2)
    np.save(npy("encoder.layer1.weight"), array)
    expect("encoder.layer1.weight", array, "I16", "7")


@case
def what_a_file_cannot_tell_stays():
    np.save(npy("told"), np.arange(4, dtype="u4"))
    os.setxattr(npy("told"), "user.bpk.dtype", b"Bool(U32)")
    np.save(npy("told"), np.load(npy("told"))[::-1])
    expect("told", np.arange(4, dtype="u4")[::-1], "Bool(U32)")
    np.save(npy("told"), np.arange(5, dtype="u4"))
    expect("told", np.arange(5, dtype="u4"), "U32")


@case
def large_in_each_order():
    array = random((70, 129, 601), "<i4")
    for made in (array, np.asfortranarray(array), array.astype(">i4"),
                 np.asfortranarray(array.astype(">i4"))):
        np.save(npy("large"), made)
        expect("large", array, "I32")
    os.unlink(npy("large"))


@case
def tall_and_wide():
    for shape in ((100000, 3), (3, 100000), (65, 4097), (64, 4096), (1, 7), (7, 1)):
        array = random(shape, ">u2")
        np.save(npy("matrix"), np.asfortranarray(array))
        expect("matrix", array, "U16")


@case
def other_headers():
    array = np.arange(10, dtype="<f4")
    for version in ((1, 0), (2, 0), (3, 0)):
        write(npy("versions"), encoded(array, version=version))
        expect("versions", array, "F32")
    # A header that is longer or shorter than the one npy/ shows afterwards.
    for padding in (0, 1, 53, 5000):
        text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (10,)}" + b" " * padding + b"\n"
        write(npy("versions"), b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text +
              array.tobytes())
        expect("versions", array, "F32")


@case
def byte_by_byte():
    array = np.arange(3, dtype="<f8")
    with open(npy("bytes"), "wb", buffering=0) as file:
        for byte in encoded(array):
            file.write(bytes([byte]))
    expect("bytes", array, "F64")


@case
def from_the_back():
    array = np.arange(3000, dtype="<f8")
    data = encoded(array)
    with open(npy("back"), "wb", buffering=0) as file:
        for at in range(len(data) - len(data) % 100, -1, -100):
            os.pwrite(file.fileno(), data[at:at + 100], at)
    expect("back", array, "F64")


@case
def reads_as_it_is_written():
    old = raw("head.%self")
    data = encoded(np.arange(5, dtype="<f4"))
    fd = os.open(os.path.join(TOP, "npy/head/%self.npy"), os.O_RDWR | os.O_TRUNC)
    for at in range(0, len(data), 7):
        os.write(fd, data[at:at + 7])
        assert os.pread(fd, 1000, 0) == data[:at + 7], at
        assert os.fstat(fd).st_size == len(data[:at + 7])
        assert raw("head.%self") == old, "tensors/ shows it too early"
    os.close(fd)
    assert raw("head.%self") == np.arange(5, dtype="<f4").tobytes()
    assert attribute("head.%self", "param_id") == "0"


@case
def seen_by_the_writer_after_a_close():
    array = np.arange(6, dtype=">i4").reshape(2, 3)
    data = encoded(array)
    fd = os.open(npy("mine"), os.O_RDWR | os.O_CREAT)
    os.write(fd, data)
    os.close(os.dup(fd))  # a close like any other
    assert raw("mine") == array.astype("<i4").tobytes()
    assert os.pread(fd, 1000, 0) == data
    os.pwrite(fd, b"\0\0\0\7", len(data) - 4)
    os.close(fd)
    array[1, 2] = 7
    expect("mine", array, "I32")


@case
def bad_ones_are_refused():
    array = np.arange(12, dtype="<f4").reshape(3, 4)
    np.save(npy("good"), array)
    good = encoded(array)
    for bad in (b"", b"x", b"\x93NUMPY", good[:-1], good + b"x", good[:60], good[:129],
                b"\x93NUMPY\x09\x00" + good[8:], b"PK" + good[2:],
                encoded(np.zeros(3, "c8")), encoded(np.array(["x"])),
                encoded(np.zeros(3, [("a", "f4"), ("b", "i4")])),
                encoded(np.zeros(2, "M8[s]")), os.urandom(100000)):
        refused(errno.EINVAL, write, npy("good"), bad)
        expect("good", array, "F32")
    for bad in (b"x", good[:-1], encoded(np.zeros(3, "c16"))):
        refused(errno.EINVAL, write, npy("fresh"), bad)
        assert "A! tensors/fresh\n" in changes()
    os.unlink(npy("fresh"))
    refused(errno.EINVAL, write, os.path.join(TOP, "npy", "fresh"), good)
    write(npy("good"), good)
    expect("good", array, "F32")


@case
def cut_and_lengthened():
    array = np.arange(12, dtype="<f4")
    np.save(npy("cut"), array)
    size = os.stat(npy("cut")).st_size
    refused(errno.EINVAL, os.truncate, npy("cut"), size - 4)
    refused(errno.EINVAL, os.truncate, npy("cut"), size + 4)
    refused(errno.EINVAL, os.truncate, npy("cut"), 0)
    refused(errno.EINVAL, write, npy("cut"), b"more", "ab")
    os.truncate(npy("cut"), size)
    expect("cut", array, "F32")
    # A longer array written over it as it is: header, data, length.
    longer = encoded(np.arange(20, dtype="<f4"))
    fd = os.open(npy("cut"), os.O_RDWR)
    os.pwrite(fd, longer, 0)
    os.close(fd)
    expect("cut", np.arange(20, dtype="<f4"), "F32")
    fd = os.open(npy("cut"), os.O_RDWR)
    os.pwrite(fd, encoded(array), 0)
    os.ftruncate(fd, size)
    os.close(fd)
    expect("cut", array, "F32")


@case
def mapped_in_place():
    array = np.arange(100000, dtype="<f4").reshape(1000, 100)
    np.save(npy("mapped"), array)
    view = np.load(npy("mapped"), mmap_mode="r+")
    view[3, 5] = -1
    view[999, 99] = -2
    view.flush()
    array[3, 5], array[999, 99] = -1, -2
    expect("mapped", array, "F32")
    view[0, 0] = -3  # counts when it is unmapped
    del view
    array[0, 0] = -3
    expect("mapped", array, "F32")
    view = np.lib.format.open_memmap(npy("encoder.layer1.bias"), mode="r+")
    view[2] = 9
    del view
    assert np.load(npy("encoder.layer1.bias"))[2] == 9
    assert attribute("encoder.layer1.bias", "param_id") == "9505838338724798577"


@case
def mapped_and_new():
    for shape, dtype, column_major in (((1000, 100), "<i4", False), ((30, 20, 10), "<f8", True),
                                       ((40, 50), ">i2", False), ((3,), "<u1", False)):
        view = np.lib.format.open_memmap(npy("map"), mode="w+", dtype=dtype, shape=shape,
                                         fortran_order=column_major)
        array = np.arange(view.size).astype(dtype).reshape(shape)
        view[...] = array
        del view
        expect("map", array, NAMES[np.dtype(dtype).str[1:]])


@case
def a_header_waits_for_its_data():
    data = encoded(np.arange(5, dtype="<i8"))
    write(npy("waits"), data[:128])
    assert "A! tensors/waits\n" in changes()
    write(npy("waits"), data[128:], "ab")
    expect("waits", np.arange(5, dtype="<i8"), "I64")


@case
def replaced():
    array = np.arange(9, dtype="<i8").reshape(3, 3)
    with tempfile.NamedTemporaryFile(dir=os.path.join(TOP, "npy"), suffix=".npy",
                                     delete=False) as file:
        np.save(file, array)
    os.replace(file.name, npy("encoder.layer2.weight"))
    expect("encoder.layer2.weight", array, "I64")
    scratch = os.path.join(TOP, "npy/encoder/layer1/.weight.npy.AbC")
    write(scratch, encoded(np.asfortranarray(array)))
    os.replace(scratch, npy("encoder.layer1.weight"))
    expect("encoder.layer1.weight", array, "I64", "7")
    write(scratch, b"no array")
    refused(errno.EINVAL, os.replace, scratch, npy("encoder.layer1.weight"))
    refused(errno.EINVAL, os.replace, scratch, npy("encoder.layer1.new"))
    expect("encoder.layer1.weight", array, "I64", "7")
    os.unlink(scratch)


@case
def to_a_backup_and_back():
    before = encoded(np.load(npy("encoder.layer1.weight")))
    backup = npy("encoder.layer1.weight") + "~"
    os.rename(npy("encoder.layer1.weight"), backup)
    with open(backup, "rb") as file:
        assert np.array_equal(np.load(file), np.arange(9).reshape(3, 3))
    os.rename(backup, npy("encoder.layer1.weight"))
    assert encoded(np.load(npy("encoder.layer1.weight"))) == before
    assert attribute("encoder.layer1.weight", "param_id") == "7"


@case
def removed_and_moved():
    np.save(npy("gone"), np.arange(3, dtype="<i4"))
    os.unlink(npy("gone"))
    assert "gone" not in changes()
    np.save(npy("here"), np.arange(3, dtype="<i4"))
    os.makedirs(os.path.join(TOP, "npy", "there"))
    os.rename(npy("here"), npy("there.it"))
    expect("there.it", np.arange(3, dtype="<i4"), "I32")
    os.rename(os.path.join(TOP, "npy", "there"), os.path.join(TOP, "npy", "elsewhere"))
    expect("elsewhere.it", np.arange(3, dtype="<i4"), "I32")


@case
def synced():
    with open(npy("synced"), "wb") as file:
        np.save(file, np.arange(3, dtype="<i4"))
        file.flush()
        os.fsync(file.fileno())
        assert raw("synced") == np.arange(3, dtype="<i4").tobytes()
    expect("synced", np.arange(3, dtype="<i4"), "I32")


@case
def written_in_tensors_meanwhile():
    write(npy("both"), encoded(np.arange(5, dtype="<i8"))[:128])
    with open(os.path.join(TOP, "tensors/both"), "wb") as file:
        file.write(b"raw")
    assert raw("both") == b"raw" and attribute("both", "dtype") == "U8"
    assert "A  tensors/both\n" in changes()
    os.unlink(npy("both"))


for function in CASES:
    try:
        function()
        print("ok", function.__name__)
    except (AssertionError, OSError, ValueError) as error:
        at = error.__traceback__.tb_next
        print(f"not ok {function.__name__}: line {at.tb_lineno}: {error!r}"[:400].replace("\n", " "))
