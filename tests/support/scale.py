#!/usr/bin/env python3
"""Packs with many, deep, long and awkward names, for tests/mount/scale.sh.

    scale.py cuts OUT.bpk        names that are cut, many of them of one hash
    scale.py large OUT.bpk       90 GiB of holes, but for a few bytes at both ends
    scale.py many OUT.bpk        3000 tensors, in folders as a large model has them
    scale.py npy MOUNT PACK      compares npy/ with the pack: names, and where bytes end
"""
import os
import struct
import sys

import collide
import oracle


def cuts():
    lead = "h" * 240
    same = collide.names(40, lead)
    # Two hashes that follow each other, behind a name: 80 names in a row.
    after = collide.pair(collide.fnv(same[0].encode()), collide.NEXT)
    tensors = [name + block for name in same for block in after]
    tensors += ["folders." + name + ".x" for name in same]
    tensors += ["folders." + name for name in same[:5]]
    tensors += ["other." + name for name in same]
    tensors += ["cut between characters." + "é" * 130, "w" * 300 + ".x", "w" * 300]
    tensors += [lead + "." + name for name in same[:2]]
    # Those that are cut in npy/ alone, where a suffix takes room.
    tensors += ["c" * size for size in (251, 252, 253, 254, 255)]
    tensors += ["c" * 255 + ".x"]
    # As many that only begin alike.
    tensors += ["begin." + "b" * 250 + f"{i:05}" + "e" * 20 for i in range(100)]
    return {"tensors": [{"name": name, "dtype": "U8", "shape": [3]} for name in tensors],
            "scalars": {name: {"Int": i} for i, name in enumerate(same)},
            "metadata": {name: name[-10:] for name in same}}


def many():
    return {"tensors": [{"name": f"model.layers.{i // 10}.block{i % 10}.weight",
                         "dtype": "F32", "shape": [4]} for i in range(3000)],
            "scalars": {}, "metadata": {}}


def large(path):
    size, count = 10 << 30, 9
    tensors = {f"t{i}": {"dtype": "U8", "shape": [size],
                         "data_offsets": [i * size, (i + 1) * size]} for i in range(count)}
    metadata = oracle.encode({"tensors": tensors, "scalars": {"x": {"Float": 0.25}}})
    start = oracle.align(10 + len(metadata))
    with open(path, "wb") as file:
        file.write(b"NRUB" + struct.pack("<HI", 1, len(metadata)) + metadata)
        file.seek(start)
        file.write(b"first")
        file.seek(start + count * size - 4)
        file.write(b"last")


def npy(mount, path):
    pack = oracle.Pack(path)
    want = dict((shown, name) for name, shown in
                oracle.paths(list(pack.tensors), False, ".npy"))
    for folder, _, names in os.walk(os.path.join(mount, "npy")):
        for name in names:
            file = os.path.join(folder, name)
            shown = os.path.relpath(file, os.path.join(mount, "npy"))
            with open(file, "rb") as opened:
                data = opened.read()
            tensor = want.pop(shown, None)
            if tensor is None:
                print("is not wanted:", shown)
            elif not data.endswith(pack.bytes_of(pack.tensors[tensor])):
                print("has other bytes:", shown)
    for shown in want:
        print("is missing:", shown)


def main(args):
    kinds = {"cuts": cuts, "many": many}
    if args[:1] == ["large"] and len(args) == 2:
        sys.exit(large(args[1]))
    if args[:1] == ["npy"] and len(args) == 3:
        sys.exit(npy(*args[1:]))
    if len(args) != 2 or args[0] not in kinds:
        sys.exit(__doc__)
    with open(args[1], "wb") as file:
        file.write(oracle.make(kinds[args[0]]()))


if __name__ == "__main__":
    main(sys.argv[1:])
