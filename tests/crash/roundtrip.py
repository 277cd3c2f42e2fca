#!/usr/bin/env python3
"""Every golden pack, with every value written as it reads: nothing is changed.

    roundtrip.py FOLDER

Each scalar and each metadata value is rewritten with its own text, each tensor with its
own bytes, in tensors/ and in npy/, and renamed away and back; folders too. After each
of these a commit gives the file that there was, byte for byte.

Exit status 77: not root, or no /dev/fuse.
"""
import glob
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from session import Session, Wrong, require  # noqa: E402


def files(top):
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            yield os.path.join(folder, name)


def rewrite(path):
    """cat FILE > tmp; cat tmp > FILE"""
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data)


def save(path):
    """As an editor does it: a new file in the place of the old one."""
    scratch = os.path.join(os.path.dirname(path), ".scratch")
    shutil.copyfile(path, scratch)
    os.replace(scratch, path)


def away_and_back(path):
    away = os.path.join(os.path.dirname(path), "away")
    os.rename(path, away)
    os.rename(away, path)


def each(do, *sections):
    def all_of(session):
        for section in sections:
            for path in files(session.at(section)):
                do(path)
    return all_of


def renamed_and_committed(session):
    """Also with a commit in between: the names are the pack's own, twice."""
    moved = []
    for section in ("tensors", "scalars", "metadata"):
        for number, path in enumerate(files(session.at(section))):
            if "%+" in path:
                continue  # a cut name, which nobody can give
            away = os.path.join(session.at(section), f"away{number}")
            os.rename(path, away)
            moved.append((away, path))
    commit(session)
    for away, path in moved:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.rename(away, path)


def folders(session):
    top = session.at("tensors")
    for name in sorted(os.listdir(top)):
        if os.path.isdir(os.path.join(top, name)):
            away_and_back(os.path.join(top, name))


CHANGES = {
    "scalars and metadata rewritten": each(rewrite, "scalars", "metadata"),
    "scalars and metadata replaced": each(save, "scalars", "metadata"),
    "tensors rewritten": each(rewrite, "tensors"),
    "tensors replaced": each(save, "tensors"),
    "arrays rewritten": each(rewrite, "npy"),
    "all renamed away and back": each(away_and_back, "tensors", "scalars", "metadata"),
    "folders renamed away and back": folders,
    "all renamed, committed, renamed back": renamed_and_committed,
}


def commit(session):
    status, text = session.run("--commit")
    if status:
        raise Wrong(f"--commit: {status} {text}")


def look(pack):
    with open(pack, "rb") as file:
        data = file.read()
    session = Session(data)
    try:
        if session.mount():
            raise Wrong(session.said())
        for name, change in CHANGES.items():
            try:
                change(session)
                commit(session)
                if session.read() != data:
                    raise Wrong("the pack is another one")
            except (Wrong, OSError) as error:
                raise Wrong(f"{name}: {error}") from error
        for path in files(session.at("scalars")):
            rewrite(path)
        status, text = session.run("--unmount")
        if status:
            raise Wrong(f"--unmount: {status} {text}")
        session.ended()
        if session.read() != data:
            raise Wrong("unmounted: the pack is another one")
        if session.beside():
            raise Wrong(f"beside the pack: {session.beside()}")
    finally:
        session.done()


def main(folder):
    require(traced=False)
    packs = sorted(glob.glob(os.path.join(folder, "*.bpk")))
    wrong = 0
    for pack in packs:
        try:
            look(pack)
        except Wrong as error:
            wrong += 1
            print(f"FAILED {os.path.basename(pack)}: {error}")
    if len(packs) < 15:
        sys.exit("golden packs are missing")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(sys.argv[1])
