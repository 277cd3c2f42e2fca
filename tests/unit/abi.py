#!/usr/bin/env python3
"""libbpk.so exports exactly the functions that the public headers declare, each with
the version of libbpk.sym; and what a program has with the static one begins with bpk_.

    abi.py LIBRARY ARCHIVE HEADER...
"""

import re
import subprocess
import sys

VERSION = "LIBBPK_0"


def declared(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    return set(re.findall(r"\b(bpk_\w+)\s*\(", text))


def exported(path):
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", path],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    names, wrong = set(), []
    for line in lines:
        kind, symbol = line.split()[-2:]
        name, _, version = symbol.partition("@@")
        if kind == "A" and name == VERSION:
            continue
        # What a sanitizer or the linker adds is not ours.
        if re.match(r"__(asan|ubsan|sanitizer|lsan|odr_asan|start_|stop_)|_init$|_fini$",
                    name):
            continue
        names.add(name)
        if version != VERSION or kind != "T":
            wrong.append(line)
    return names, wrong


def foreign(path):
    """What an archive defines that could be called the same in a program."""
    lines = subprocess.run(
        ["nm", "--defined-only", "--extern-only", path],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    names = {line.split()[-1] for line in lines if len(line.split()) == 3}
    return {name for name in names if not re.match(r"bpk_|__(asan|ubsan|odr_asan|start_|stop_)",
                                                   name)}


def main():
    library, archive, headers = sys.argv[1], sys.argv[2], sys.argv[3:]
    wanted = set().union(*map(declared, headers))
    found, wrong = exported(library)
    for line in wrong:
        print("not a function with the version:", line)
    for name in sorted(wanted - found):
        print("declared, not exported:", name)
    for name in sorted(found - wanted):
        print("exported, not declared:", name)
    strangers = foreign(archive)
    for name in sorted(strangers):
        print("in the archive, and not called bpk_:", name)
    print(len(found), "functions")
    return 1 if wrong or strangers or found != wanted or not found else 0


if __name__ == "__main__":
    sys.exit(main())
