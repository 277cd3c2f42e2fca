#!/usr/bin/env python3
"""Runs what a document shows, in the current folder, and compares what comes of it.

    examples.py FILE [PACK MOUNTPOINT]

FILE is a manual page (the blocks between .EX and .EE of EXAMPLES) or Markdown (the
indented blocks). In a block, "$ COMMAND" runs in a shell, and the lines under it are
what it prints; lines that go on with four spaces are part of the command. A command
that shows nothing may print anything, but has to succeed. A block that begins with
"import" is Python. PACK is mounted for a block that does not mount anything itself.

Prints what is different, and "N ran" at the end.
"""
import re
import subprocess
import sys

ROFF = (("\\-", "-"), ("\\(ti", "~"), ("\\(ha", "^"), ("\\(aq", "'"), ("\\&", ""),
        ("\\e", "\\"))


def page_blocks(text):
    text = text[text.index("\n.SH EXAMPLES\n"):]
    text = text[:text.index("\n.SH ", 1)]
    for block in re.findall(r"^\.EX\n(.*?)^\.EE$", text, re.M | re.S):
        for roff, plain in ROFF:
            block = block.replace(roff, plain)
        yield block


def markdown_blocks(text):
    for block in re.findall(r"(?:^(?:    .*)?\n)+", text, re.M):
        yield re.sub(r"^    ", "", block, flags=re.M).strip("\n") + "\n"


def shell(command):
    done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, re.sub(r"^bash: line \d+: ", "bash: ", done.stdout, flags=re.M)


def session(block):
    """Pairs of a command and what is shown under it."""
    found = re.findall(r"^\$ (.*(?:\n    .*)*)\n((?:(?!\$ ).*\n)*)", block, re.M)
    for command, shown in found:
        status, printed = shell(command)
        if shown.strip() and printed.rstrip() != shown.rstrip():
            yield f"$ {command}\nshown:\n{shown}printed:\n{printed}"
        elif not shown.strip() and status:
            yield f"$ {command}\nstatus {status}: {printed}"
        else:
            yield None


def python(block):
    done = subprocess.run([sys.executable, "-c", block], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    yield f"{block}status {done.returncode}: {done.stdout}" if done.returncode else None


def run(block, pack_and_place):
    if block.startswith("import"):
        results = python
    elif block.startswith("$ "):
        results = session
    else:
        return
    mount = pack_and_place and not re.search(r"^\$ bpkfs ", block, re.M)
    if mount:
        subprocess.run(["bpkfs", *pack_and_place], check=True)
    yield from results(block)
    if mount:
        subprocess.run(["bpkfs", "--unmount", pack_and_place[1]], check=True)


path, *pack_and_place = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    document = file.read()
count = 0
for block in (markdown_blocks if path.endswith(".md") else page_blocks)(document):
    for fault in run(block, pack_and_place):
        count += 1
        if fault:
            print(fault)
print(count, "ran")
