#!/usr/bin/env python3
"""Fills a mounted empty pack with what a SPEC.json of oracle.py says, by the commands
that a person would use: cp and setfattr for tensors, in the order of the spec, and
redirected output for scalars and metadata. Dotted names are used as paths, so that no
folder has to be made, and a tensor may be beside one that is its folder.

    assemble.py SPEC.json MOUNTPOINT [--flat]
    assemble.py --nameable SPEC.json OUT.json   the spec without what has a name that no
                                                file can have; prints how many were left out
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle


def run(*command):
    subprocess.run(command, check=True)


def pack_of(spec):
    with tempfile.NamedTemporaryFile() as file:
        file.write(oracle.make(spec))
        file.flush()
        return oracle.Pack(file.name)


def tensor(top, name, flat, k, bytes_, what):
    path = os.path.join(top, "tensors", ".".join(oracle.escape(part) for part in
                                                 ([name] if flat else name.split("."))))
    if os.path.isdir(path):
        path = os.path.join(path, "%self")
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes_)
        file.flush()
        run("cp", file.name, path)
    attributes = [("dtype", oracle.dtype_text(what["dtype"])),
                  ("shape", json.dumps(what["shape"], separators=(",", ":")))]
    if k % 2:
        attributes.reverse()
    if what.get("param_id") is not None:
        attributes.append(("param_id", str(what["param_id"])))
    for key, value in attributes:
        run("setfattr", "-n", "user.bpk." + key, "-v", value, path)


def text(path, bytes_):
    with open(path, "wb", buffering=0) as file:
        subprocess.run(["cat"], input=bytes_, stdout=file, check=True)


def scalar_text(scalar):
    kind, said = next(iter(scalar)), oracle.scalar_text(scalar)
    if kind in ("Int", "UInt"):
        return said + {"Int": "i64", "UInt": "u64"}[kind]
    return said + "f64" if kind == "Float" and said[-1].isdigit() and "nan" not in said \
        else said


def assemble(spec, top, flat):
    pack = pack_of(spec)
    for k, what in enumerate(spec.get("tensors", [])):
        tensor(top, what["name"], flat, k, pack.bytes_of(pack.tensors[what["name"]]), what)
    for name, scalar in pack.scalars.items():
        parts = [name] if flat else name.split(".")
        text(os.path.join(top, "scalars", ".".join(map(oracle.escape, parts))),
             (scalar_text(scalar) + "\n").encode())
    for key, value in pack.metadata.items():
        text(os.path.join(top, "metadata", oracle.escape(key)), (value + "\n").encode())


def nameable(name):
    return len(oracle.escape(name).encode()) <= 255 and "%+" not in oracle.escape(name)


def main(args):
    if args[:1] == ["--nameable"]:
        with open(args[1], encoding="utf-8") as file:
            spec = json.load(file)
        before = spec.get("tensors", [])
        spec["tensors"] = [t for t in before if nameable(t["name"])]
        with open(args[2], "w", encoding="utf-8") as file:
            json.dump(spec, file)
        print(len(before) - len(spec["tensors"]))
        return
    with open(args[0], encoding="utf-8") as file:
        assemble(json.load(file), args[1], args[2:] == ["--flat"])


if __name__ == "__main__":
    main(sys.argv[1:])
