#!/usr/bin/env python3
"""Every golden pack is read as its .read.json says, every malformed one is
accepted or refused as verdicts.tsv says, from a file and from a buffer.

    vectors_read.py BPK_DUMP FOLDER...

Each FOLDER holds golden/ and malformed/; one that is not there is passed over
(packs that are not in the tree may lie beside it), but not the first. In a plain
build a malformed pack also has to stay under 64 MiB of memory and one second;
BPK_TEST_SANITIZED=1 in the environment leaves these two out.
"""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import time

SANITIZED = os.environ.get("BPK_TEST_SANITIZED") == "1"
MEMORY_MAX_KIB = 64 << 10
SECONDS_MAX = 1.0

failures = []
checks = 0
seen = set()


def check(label, good, why):
    global checks
    checks += 1
    if not good:
        failures.append(f"{label}: {why}")


def seen_before(path, expect):
    """The folders overlap: the same bytes need to be looked at once."""
    with open(path, "rb") as file:
        key = (hashlib.sha256(file.read()).digest(), expect)
    if key in seen:
        return True
    seen.add(key)
    return False


class Run:
    """One run of bpk-dump: status, output, peak memory and time."""

    def __init__(self, dump, pack, buffer):
        args = [dump] + (["--buffer"] if buffer else []) + [pack]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            start = time.monotonic()
            child = subprocess.Popen(args, stdout=out, stderr=err)
            _, status, usage = os.wait4(child.pid, 0)
            self.seconds = time.monotonic() - start
            child.returncode = self.status = os.waitstatus_to_exitcode(status)
            self.memory_kib = usage.ru_maxrss
            out.seek(0)
            err.seek(0)
            self.out = out.read()
            self.err = err.read().decode("utf-8", "replace")


def float_says(bits):
    """A float as *.read.json writes its value."""
    value = struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return value


def scalar_matches(want, got):
    if "Float" not in want:
        return json.dumps(want) == json.dumps(got)  # true is not 1
    return (
        set(got) == {"bits"}
        and want.get("bits", got["bits"]) == got["bits"]
        and repr(float_says(got["bits"])) == repr(want["Float"])
    )


def golden(dump, folder):
    packs = sorted(n for n in os.listdir(folder) if n.endswith(".bpk"))
    for name in packs:
        path = os.path.join(folder, name)
        with open(path[:-4] + ".read.json", encoding="utf-8") as file:
            text = file.read()
        if seen_before(path, text):
            continue
        want = json.loads(text)
        with open(path, "rb") as file:
            pack = file.read()
        for buffer in (False, True):
            label = f"{name} ({'buffer' if buffer else 'file'})"
            run = Run(dump, path, buffer)
            check(label, run.status == 0, f"exit {run.status}: {run.err.strip()}")
            if run.status:
                continue
            got = json.loads(run.out)
            names = [t["name"] for t in got["tensors"]]
            check(label, names == [t["name"] for t in want["tensors"]], "tensor names")
            check(label, got["findings"] == [], f"findings {got['findings']}")
            for ours, theirs in zip(got["tensors"], want["tensors"]):
                for key, value in theirs.items():
                    if key == "sha256":
                        data = pack[ours["off"] : ours["off"] + ours["byte_len"]]
                        ours[key] = hashlib.sha256(data).hexdigest()
                    check(
                        f"{label} {theirs['name']!r}",
                        ours.get(key, "absent") == value,
                        f"{key} is {ours.get(key, 'absent')!r}, not {value!r}",
                    )
            check(label, list(got["scalars"]) == list(want["scalars"]), "scalar names")
            for key, value in want["scalars"].items():
                ours = got["scalars"].get(key, {})
                text = f"scalar {key!r} is {ours}, not {value}"
                check(label, scalar_matches(value, ours), text)
            ours, theirs = got["metadata"], want["metadata"]
            check(label, list(ours.items()) == list(theirs.items()), "metadata")
    return len(packs)


def malformed(dump, folder):
    with open(os.path.join(folder, "verdicts.tsv"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    for name, expect in (row[:2] for row in rows):
        if seen_before(os.path.join(folder, name), expect):
            continue
        for buffer in (False, True):
            label = f"{name} ({'buffer' if buffer else 'file'})"
            run = Run(dump, os.path.join(folder, name), buffer)
            refused = run.status == 1
            check(label, run.status in (0, 1), f"exit {run.status}: {run.err.strip()}")
            if expect == "accept":
                check(label, run.status == 0, f"must open: {run.err.strip()}")
            elif expect == "reject":
                check(label, refused, "must be refused")
            if refused:
                words = run.err.split(" ", 3)
                good = len(words) == 4 and words[0] == "error" and len(words[3]) > 10
                check(label, good and run.err.count("\n") == 1, f"message {run.err!r}")
            elif run.status == 0:
                json.loads(run.out)
            if not SANITIZED:
                check(label, run.memory_kib < MEMORY_MAX_KIB, f"{run.memory_kib} KiB")
                check(label, run.seconds < SECONDS_MAX, f"{run.seconds:.2f} s")
    return len(rows)


def main():
    dump, folders = sys.argv[1], sys.argv[2:]
    for index, folder in enumerate(folders):
        if index and not os.path.isdir(folder):
            print(f"{folder}: not there, passed over")
            continue
        good = golden(dump, os.path.join(folder, "golden"))
        bad = malformed(dump, os.path.join(folder, "malformed"))
        print(f"{folder}: {good} golden, {bad} malformed packs")
    for failure in failures:
        print(f"FAILED {failure}")
    print(f"{checks} checks, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
