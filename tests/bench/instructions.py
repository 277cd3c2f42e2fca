#!/usr/bin/env python3
"""Instructions of parsing, look-ups and reads, against the counts in instructions.json.

    instructions.py COUNTED MAKE COMPILER [--update]

COUNTED and MAKE are tests/bench/counted and tests/support/bpk-make; COMPILER names the
counts that hold for it, as "gcc 12". Without such counts, or without valgrind, the test
is skipped (77). More than a tenth above them is a failure. Who made the code
better, or knows why it must be worse, writes new ones with --update.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

COUNTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.json")
SLACK = 0.10
TENSORS = 10000


def count(counted, what, pack, folder):
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--toggle-collect=counted_work",
         "--callgrind-out-file=" + os.path.join(folder, "out"), counted, what, pack],
        capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{what}: status {done.returncode}\n{done.stderr}")
    return int(found[1])


def main(counted, make, compiler, update=""):
    with open(COUNTS, encoding="utf-8") as file:
        counts = json.load(file)
    if compiler not in counts and not update:
        print("no counts for", compiler)
        sys.exit(77)
    try:
        subprocess.run(["valgrind", "--version"], check=True, capture_output=True)
    except OSError:
        print("no valgrind")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "p.bpk")
        lines = "".join(f"tensor layers.{i // 8}.block.{i % 8}.weight F32 [4] param_id={i}\n"
                        for i in range(TENSORS))
        subprocess.run([make, pack], input=lines, text=True, check=True)
        got = {what: count(counted, what, pack, folder)
               for what in ("parse", "lookup", "read")}
    bad = False
    for what, number in got.items():
        was = counts.get(compiler, {}).get(what)
        change = "" if not was else f"{number / was - 1:+.1%}"
        print(f"{what}: {number / TENSORS:.0f} instructions a tensor {change}")
        bad |= bool(was) and number > was * (1 + SLACK)
    if update:
        counts[compiler] = got
        with open(COUNTS, "w", encoding="utf-8") as file:
            json.dump(counts, file, indent=4)
            file.write("\n")
    elif bad:
        sys.exit("more than a tenth above tests/bench/instructions.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
