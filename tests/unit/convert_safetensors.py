#!/usr/bin/env python3
"""What libbpk renders is a safetensors file, and all that a pack says of its tensors can
be told from it.

    convert_safetensors.py BPK_CONVERT

validate() has the rules of the format and of its own reader, and is written from those
alone. Packs are made at random, the same every time: odd names, all dtypes, sizes that
do not fit, users' keys that look like ours. Each is rendered, its tensors' bytes are put
behind the header in the order told, and from that file alone the pack is told again.
"""

import itertools
import json
import random
import subprocess
import sys

# The format --------------------------------------------------------------------------

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
        "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64}
JSON_MAX = 100_000_000


class Invalid(Exception):
    pass


def need(good, why):
    if not good:
        raise Invalid(why)


def product(numbers):
    """As the reader multiplies: one after the other, each within 64 bits."""
    total = 1
    for number in numbers:
        total *= number
        need(total < 1 << 64, "overflow")
    return total


def unique(pairs):
    value = dict(pairs)
    need(len(value) == len(pairs), "a key twice")
    return value


def unsigned(value):
    return type(value) is int and 0 <= value < 1 << 64


def validate(file):
    """(tensors, metadata, size of the header), or Invalid."""
    need(len(file) >= 8, "no length")
    size = int.from_bytes(file[:8], "little")
    need(size <= JSON_MAX, "too much JSON")
    need(8 + size <= len(file), "JSON beyond the end")
    need(file[8:9] == b"{", "no { at the start")
    try:
        text = file[8:8 + size].decode("utf-8")
        header = json.loads(text.rstrip(" "), object_pairs_hook=unique,
                            parse_constant=lambda word: need(False, word))
    except ValueError as error:
        raise Invalid(error) from error
    need(text.rstrip(" ").endswith("}"), "other padding than spaces")
    metadata = header.pop("__metadata__", {})
    need(isinstance(metadata, dict), "__metadata__ is no map")
    need(all(isinstance(value, str) for value in metadata.values()), "a value is no text")
    for tensor in header.values():
        need(isinstance(tensor, dict) and
             tensor.keys() == {"dtype", "shape", "data_offsets"}, "fields")
        need(tensor["dtype"] in BITS, "dtype")
        need(isinstance(tensor["shape"], list) and all(map(unsigned, tensor["shape"])),
             "shape")
        offsets = tensor["data_offsets"]
        need(isinstance(offsets, list) and len(offsets) == 2
             and all(map(unsigned, offsets)), "data_offsets")
    at = 0
    for tensor in sorted(header.values(), key=lambda tensor: tensor["data_offsets"]):
        start, end = tensor["data_offsets"]
        need(start == at and end >= start, "a hole, or tensors that overlap")
        bits = product(tensor["shape"] + [BITS[tensor["dtype"]]])
        need(end - start == bits // 8, "size is not shape x dtype")
        at = end
    need(8 + size + at == len(file), "the data section does not end with the last tensor")
    return header, metadata, 8 + size


def made(header, data=b"", padding=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text + padding).to_bytes(8, "little") + text + padding + data


def tensor(dtype="U8", shape=(2,), start=0, end=2):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


def check_validate():
    """The validator refuses what it has to."""
    good = [
        made({}), made({}, padding=b"   "), made({"a": tensor()}, b"xx"),
        made({"a": tensor(shape=[0], end=0), "b": tensor()}, b"xx"),
        made({"b": tensor(start=2, end=4), "a": tensor()}, b"xxxx"),
        made({"a": tensor("F64", [], 0, 8), "__metadata__": {"k": "v"}}, bytes(8)),
    ]
    bad = [
        b"", b"\1\0\0\0\0\0\0", made(b""), made(b" {}"), made(b"[]"), made(b"{} x"),
        made({}, padding=b"\0"), made({}, padding=b"\n"), made(b"{\"\xff\":1}"),
        (JSON_MAX + 1).to_bytes(8, "little") + b"{}" + b" " * (JSON_MAX - 1),
        made({})[:-1], made({}, b"x"), made({"a": tensor()}, b"x"),
        made({"a": tensor()}, b"xxx"), made({"a": tensor(start=1, end=3)}, b"xxx"),
        made({"a": tensor(), "b": tensor(start=1, end=3)}, b"xxx"),
        made({"a": tensor(), "b": tensor(start=3, end=5)}, b"xxxxx"),
        made({"a": tensor(), "b": tensor()}, b"xx"),
        made({"a": tensor(shape=[3])}, b"xx"), made({"a": tensor("U16")}, b"xx"),
        made({"a": tensor("QFloat")}, b"xx"), made({"a": tensor("F32", [1])}, b"xx"),
        made({"a": tensor(shape=[1 << 63, 2, 0], end=0)}),
        made({"a": tensor(shape=[1 << 61], end=1 << 61)}),
        made({"a": tensor(shape=[-1], end=-1)}), made({"a": tensor(shape=[2.0])}, b"xx"),
        made({"a": tensor(shape=[True, 2])}, b"xx"),
        made({"a": {"dtype": "U8", "shape": [0]}}), made({"a": tensor() | {"x": 1}}, b"xx"),
        made(b'{"a":%b,"a":%b}' % ((json.dumps(tensor()).encode(),) * 2), b"xx"),
        made({"__metadata__": {"k": 1}}), made({"__metadata__": {"k": {}}}),
        made({"__metadata__": ["k"]}), made(b'{"__metadata__":{"k":"v","k":"v"}}'),
    ]
    for file in good:
        validate(file)
    for file in bad:
        try:
            validate(file)
        except Invalid:
            continue
        sys.exit(f"validate() takes {file[:80]}")
    return len(good) + len(bad)


# Packs -------------------------------------------------------------------------------

# What a pack's dtype is shown as.
SHOWN = {"F64": "F64", "F32": "F32", "Flex32": "F32", "F16": "F16", "BF16": "BF16",
         "I64": "I64", "I32": "I32", "I16": "I16", "I8": "I8", "U64": "U64", "U32": "U32",
         "U16": "U16", "U8": "U8", "Bool(Native)": "BOOL", "Bool(U8)": "BOOL",
         "Bool(U32)": "U32", "Bool": "BOOL"}
# And what that is when nothing else is told.
MEANS = {shown: shown for shown in BITS} | {"BOOL": "Bool(Native)"}

NAMES = ["", "a", "a.b", "encoder.layer1.weight", "__metadata__", "__metadata__1",
         "__metadata__2", "__metadata__10", "__metadata__01", "__metadata__1x", "q\"", "\\",
         "\0", "\n", "\x7f", "é", "🔥", "w:dtype", "bpk.dtype:a", ":", "dtype", " "]
KEYS = ["", "a", "made by", "__metadata__", "bpk.", "bpk.dtype:a", "bpk.shape:a", "bpk",
        "bpk1.", "bpk1.name:__metadata__1", "bpk2.x", "bpk3.", "bpk01.", "bpk0.",
        "bpk999999999999999999999999.", "bpk1", "bpk1:", "Bpk.", "\0", "é\n"]
SCHEMES = ['{"QFloat":{"value":"Q8S","mode":"Symmetric"}}', '{"QFloat":{"é\\n":"\\""}}']


def random_shape(rng):
    return [rng.choice([0, 1, 1, 2, 3, 5]) for _ in range(rng.randrange(5))]


def random_tensor(rng, name, order):
    dtype = rng.choice([*SHOWN, "QFloat"])
    shape = random_shape(rng)
    if dtype == "QFloat":
        return name, rng.choice(SCHEMES), shape, rng.randrange(40), order
    size = product(shape) * BITS[SHOWN[dtype]] // 8
    odd = rng.random()
    if odd < 0.1:
        size = max(0, size + rng.choice([-1, 1, 8]))
    elif odd < 0.15: # a product that only a zero keeps in 64 bits
        shape = [1 << 40, 0, 1 << 40]
        rng.shuffle(shape)
        size = 0
    elif odd < 0.2:
        shape, size = [size], size
    return name, dtype, shape, size, order


def random_pack(rng):
    count = rng.choice([0, 1, 2, 5, 20, 60])
    names = set(rng.sample(NAMES, min(count, rng.randrange(len(NAMES)))))
    while len(names) < count:
        names.add("".join(rng.choices("ab.\"\\é0_", k=rng.randrange(1, 12))))
    tensors = [random_tensor(rng, name, rng.randrange(count * 2)) for name in sorted(names)]
    keys = rng.sample(KEYS, rng.choice([0, 0, 1, 3, 8, len(KEYS)]))
    return tensors, {key: "".join(rng.choices(["v", "\"", "\n", "é", "{"], k=3))
                     for key in keys}


def hexed(text):
    return text.encode().hex() or "-"


def requests(pack):
    tensors, pairs = pack
    for name, dtype, shape, size, order in tensors:
        word, text = ("QFloat", dtype) if dtype.startswith("{") else (dtype, "")
        yield " ".join(["tensor", hexed(name), word, hexed(text), str(size), str(order),
                        *map(str, shape)])
    for key, value in pairs.items():
        yield f"pair {hexed(key)} {hexed(value)}"
    yield "safetensors"


# The view, told from the outside -----------------------------------------------------

def first_word(keys):
    """The first of bpk., bpk1., bpk2., ... that begins none of the keys."""
    for number in itertools.count():
        word = f"bpk{number or ''}."
        if not any(key.startswith(word) for key in keys):
            return word


def first_name(names):
    """The first of __metadata__1, __metadata__2, ... that is none of the names."""
    shown = (f"__metadata__{number}" for number in itertools.count(1))
    return next(name for name in shown if name not in names)


def told_again(header, metadata, user_keys):
    """What the pack says of each tensor, from what the view does: by name."""
    word = first_word(user_keys)
    ours = {key[len(word):]: value for key, value in metadata.items()
            if key.startswith(word)}
    tensors = {}
    for shown, view in header.items():
        name = ours.pop(f"name:{shown}", shown)
        dtype = ours.pop(f"dtype:{shown}", MEANS[view["dtype"]])
        shape = json.loads(ours.pop(f"shape:{shown}", json.dumps(view["shape"])))
        tensors[name] = dtype, shape, view["data_offsets"]
    need(not ours, f"keys that are no tensor's: {ours}")
    return tensors


def content(index, size):
    return bytes(index * 7 + i * 31 & 0xff for i in range(size))


def check_pack(pack, answer):
    tensors, pairs = pack
    word, header, data_size, *places = answer.split(" ")
    need(word == "safetensors", answer)
    header = bytes.fromhex(header)
    data, places = b"", [tuple(map(int, place.split(":"))) for place in places]
    need(sorted(index for index, _ in places) == list(range(len(tensors))), "order")
    for index, off in places:
        need(off == len(data), "offs")
        data += content(index, tensors[index][3])
    need(len(data) == int(data_size), "data_size")

    view, metadata, header_size = validate(header + data)
    need(header_size == len(header) and header_size % 8 == 0, "the header's size")
    need(list(view) == sorted(view, key=lambda name: view[name]["data_offsets"]),
         "the JSON has another order than the data")
    need(dict(itertools.islice(metadata.items(), len(pairs))) == pairs, "the user's pairs")
    elements = [BITS[shown["dtype"]] // 8 for shown in view.values()]
    need(elements == sorted(elements, reverse=True), "large elements are not first")
    for shown, element in zip(view.values(), elements):
        need(shown["data_offsets"][0] % element == 0, "an element is not aligned")
    # Within a size of elements by the key, then by the index.
    keys = [(-element, tensors[index][4], index)
            for element, (index, _) in zip(elements, places)]
    need(keys == sorted(keys), "the order within elements of a size")

    told = told_again(view, metadata, pairs)
    need(len(told) == len(tensors), "tensors")
    for index, (name, dtype, shape, size, _) in enumerate(tensors):
        told_dtype, told_shape, (start, end) = told[name]
        need((told_dtype, told_shape) == (dtype, shape),
             f"{name!a}: {told_dtype} {told_shape}, not {dtype} {shape}")
        need(data[start:end] == content(index, size), f"{name!a}: other bytes")
        if name == "__metadata__":
            name = first_name(told)
        need(name in view, f"{name!a} is not shown")
    # Nothing is told that need not be.
    word = first_word(pairs)
    told = {key.split(":", 1)[1] for key in metadata if key.startswith(word)}
    need(not told.intersection(filter(None, map(plain, tensors))), "what is plain is told")


def plain(tensor):
    """The name of a tensor that the format can tell as it is, else None."""
    name, dtype, shape, size, _ = tensor
    if name == "__metadata__" or dtype not in BITS:
        return None
    try:
        product([number or 1 for number in shape] + [BITS[dtype]])
    except Invalid:
        return None
    return name if size * 8 == product(shape + [BITS[dtype]]) else None


def main():
    checks = check_validate()
    rng = random.Random(20240608)
    packs = [random_pack(rng) for _ in range(600)]
    text = "".join(line + "\n" for pack in packs for line in requests(pack))
    done = subprocess.run([sys.argv[1]], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    answers = done.stdout.splitlines()
    failures = [] if len(answers) == len(packs) else [f"{len(answers)} answers"]
    for number, (pack, answer) in enumerate(zip(packs, answers)):
        checks += 1
        try:
            check_pack(pack, answer)
        except Invalid as error:
            failures.append(f"pack {number}: {error}")
    for failure in failures[:20]:
        print(failure)
    print(f"{checks} checks, {len(failures)} failed")
    sys.exit(bool(failures))


main()
