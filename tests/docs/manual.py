#!/usr/bin/env python3
"""The manual page against the code that it describes.

    manual.py renders PAGE                   mandoc and groff have nothing to warn of
    manual.py options PAGE options.c BPKFS   every option that the program accepts is
                                             in OPTIONS, and in what bpkfs -h prints
    manual.py statuses status.h PAGE README  the exit statuses are those of the code

Prints what is missing, a line each. Status 77 (skipped) where a tool is missing.
"""
import re
import shutil
import subprocess
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def section(page, title):
    """The lines of a section of the page."""
    found = re.search(rf'^\.SH "?{title}"?\n(.*?)(?=^\.SH |\Z)', page, re.M | re.S)
    if not found:
        sys.exit(f"the page has no section {title}")
    return found[1]


def renders(page):
    commands = (["mandoc", "-T", "lint", page],
                ["groff", "-man", "-ww", "-z", page],
                ["groff", "-man", "-ww", "-Tutf8", page])
    for command in commands:
        if not shutil.which(command[0]):
            print(f"{command[0]} is missing: see tests/support/packages.sh")
            sys.exit(77)
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if "-Tutf8" in command:
            said = done.stderr
            if "EXIT STATUS" not in re.sub(r".\x08|\x1b\[[\d;]*m", "", done.stdout):
                yield "it renders to nothing"
        if done.returncode or said:
            yield f"{' '.join(command)}: status {done.returncode}\n{said}"


def accepted(source):
    """What options.c takes: letters, long options, and the words of -o. Those with a
    value end in "=", those that only begin so in "-"."""
    parts = {
        "letters": ["-" + letter for letter in
                    re.search(r'getopt_long\([^"]*":(\w[\w:]*)"', source)[1]
                    .replace(":", "")],
        "long": ["--" + word for word in re.findall(r'^\t\t\{ "([\w-]+)", \w+_argument',
                                                    source, re.M)],
        "words": re.findall(r'strcmp\(word, "(\w+)"\)', source),
        "valued": [word + "=" for word in re.findall(r'strcmp\(name, "(\w+)"\)', source)],
        "begin": re.findall(r'strncmp\(word, "([^"]+)"', source),
        "tables": [word for table in re.findall(
                       r"^\s*static const char \*const \w+\[\] = \{(.*?)\};", source,
                       re.M | re.S)
                   for word in re.findall(r'"(\w+)"', table)],
    }
    for what, words in parts.items():
        if not words:
            sys.exit(f"no {what} found in options.c: has it another form now?")
    return [word for words in parts.values() for word in words]


def bold(text):
    """The words that are bold in roff, as they are typed."""
    text = text.replace("\\-", "-")
    words = re.findall(r"\\fB(.*?)\\f", text)
    for macro, rest in re.findall(r"^\.(B|BI|BR) (.*)$", text, re.M):
        arguments = [plain or quoted for quoted, plain in
                     re.findall(r'"([^"]*)"|(\S+)', rest)]
        words += [" ".join(arguments)] if macro == "B" else arguments[::2]
    return {word.strip() for word in words}


def options(page, source, program):
    words = accepted(read(source))
    in_page = bold(section(read(page), "OPTIONS"))
    text = subprocess.run([program, "-h"], check=True, capture_output=True,
                          text=True).stdout
    in_help = set(re.split(r"[\s,;()]+", text))
    for word in words:
        if word not in in_page:
            yield f"{word} is not in bold in OPTIONS"
        if not any(found == word or word[-1] in "=-" and found.startswith(word)
                   for found in in_help):
            yield f"{word} is not in what -h prints"
        if word[0] != "-":
            # What was taken for a word is one.
            said = subprocess.run([program, "-o", word, "/nothing", "/nothing"],
                                  capture_output=True, text=True).stderr
            if word[-1] != "=" and "unknown" in said:
                yield f"the program does not know {word}: {said}"


def statuses(source, page, readme):
    code = {int(value) for value in re.findall(r"\bSTATUS_\w+ = (\d+)", read(source))}
    if len(code) < 2:
        sys.exit("no statuses found in status.h")
    told = {"the page": re.findall(r"^\.TP\n\.B (\d+)$", section(read(page), "EXIT STATUS"),
                                   re.M),
            "README": re.findall(r"^\| (\d+) \|", read(readme), re.M)}
    for where, values in told.items():
        values = [int(value) for value in values]
        for value in sorted(code.symmetric_difference(values)):
            yield f"{value} is in {'status.h' if value in code else where} alone"
        if values != sorted(set(values)):
            yield f"{where} has them in no order, or twice"


COMMANDS = {"renders": renders, "options": options, "statuses": statuses}
if len(sys.argv) < 3 or sys.argv[1] not in COMMANDS:
    sys.exit(__doc__)
faults = list(COMMANDS[sys.argv[1]](*sys.argv[2:]))
for fault in faults:
    print(fault)
sys.exit(bool(faults))
