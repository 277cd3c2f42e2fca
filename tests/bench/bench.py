#!/usr/bin/env python3
"""The second half of run.sh, which has made the folder and removes it: the rows."""
import argparse
import json
import os
import signal
import sys

import pairs
import peers
import rows as rows_module


def size_of(words):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(words[-1:].upper())
    size = int(words[:-1]) * unit if unit else int(words)
    if size < 1 << 20 or size % 4:
        raise argparse.ArgumentTypeError("a size is 1M or more, in whole floats")
    return size


def arguments():
    parser = argparse.ArgumentParser(prog="tests/bench/run.sh", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--rows", default="", metavar="REGEX")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--size", type=size_of)
    parser.add_argument("--json", metavar="FILE")
    # What run.sh adds.
    parser.add_argument("--dir", help=argparse.SUPPRESS)
    parser.add_argument("--build", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.mount_counts = [10, 100] if options.quick else [10, 1000, 100000]
    options.parse_counts = [10, 100] if options.quick else [100, 1000, 10000, 100000]
    options.counts = sorted({*options.mount_counts, *options.parse_counts})
    options.runs = options.runs or (1 if options.quick else 5)
    options.size = options.size or ((4 << 20) if options.quick else (1 << 30))
    return options


def buildtype(build):
    with open(os.path.join(build, "meson-info", "intro-buildoptions.json"),
              encoding="utf-8") as file:
        values = {option["name"]: option["value"] for option in json.load(file)}
    if values["b_sanitize"] != "none":
        return f"{values['buildtype']}, sanitized"
    return values["buildtype"]


def main():
    options = arguments()
    if options.list:
        listed = rows_module.Rows(options, [None])
        for experiment in rows_module.experiments(listed):
            for row in experiment.rows:
                print(row.name)
        return 0
    # As ^C: whoever is interrupted unmounts what it mounted.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    options.bpkfs = os.path.join(options.build, "fs", "bpkfs")
    options.timed = os.path.join(options.build, "tests", "bench", "timed")
    options.buildtype = buildtype(options.build)
    others = peers.found(options.bpkfs)
    rows = rows_module.Rows(options, others)
    bench = pairs.Bench(options, [peer.name for peer in others[1:]])
    bench.head()
    try:
        for experiment in rows_module.experiments(rows):
            bench.run(experiment)
    finally:
        if options.json:
            bench.write(options.json)
    if not bench.results:
        print(f"no row is like {options.rows}", file=sys.stderr)
        return 2
    return 1 if bench.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
