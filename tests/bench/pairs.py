"""Paired measuring, the table and the JSON. Knows nothing of what is measured.

An experiment has one or more rows and one or more sides, "bpkfs" and "native" among
them. In each run every side is measured once, in alternate order, so that what else
the machine does meets all of them alike. The ratio of a row is the median of the
ratios of the runs, bpkfs to native; the best is that of the smallest times, which says
more on a busy machine.
"""
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys


class Skip(Exception):
    """The rows cannot be measured here; says why."""


class Row:
    def __init__(self, name, against, unit="s", target=None):
        self.name, self.against, self.unit, self.target = name, against, unit, target


class Experiment:
    """prepare() is a context manager that gives {side: function}; a function
    measures once and returns a value a row. needs: bytes of disk."""

    def __init__(self, rows, prepare, needs=0):
        self.rows, self.prepare, self.needs = rows, prepare, needs


def text(value, unit):
    if value is None:
        return "-"
    if unit == "B":
        return f"{value / 1024:.0f} KiB" if value < 1 << 20 else f"{value / (1 << 20):.1f} MiB"
    for factor, name in ((1, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {name}" if value * factor < 100 else \
                f"{value * factor:.0f} {name}"
    return f"{value * 1e6:.0f} us"


def times(ratio):
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def machine(folder, build):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    kind = subprocess.run(["findmnt", "-no", "FSTYPE,SOURCE", "-T", folder],
                          stdout=subprocess.PIPE, text=True).stdout.split()
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    return {"cores": len(os.sched_getaffinity(0)), "processor": model,
            "memory": memory, "kernel": platform.release(),
            "filesystem": kind[0] if kind else "unknown", "build": build,
            "load": os.getloadavg()[0]}


class Bench:
    def __init__(self, options, sides):
        self.options, self.sides = options, ["bpkfs", "native"] + sides
        self.pattern = re.compile(options.rows)
        self.results, self.failed = [], False
        self.machine = machine(options.dir, options.buildtype)

    def wanted(self, row):
        return self.pattern.search(row.name)

    def head(self):
        known = self.machine
        print(f"{known['cores']} cores ({known['processor']}), "
              f"{known['memory'] / (1 << 30):.0f} GiB, Linux {known['kernel']}, "
              f"{known['filesystem']}, load {known['load']:.1f}, "
              f"build: {known['build']}; medians of {self.options.runs}")
        self._line("ratio", "spread", "best", "row", self.sides, "against")

    def _line(self, ratio, spread, best, name, values, against):
        print(f"{ratio:>7} {spread:>11} {best:>6}  {name:<42}",
              *(f"{value:>10}" for value in values), f" {against}", flush=True)

    def run(self, experiment):
        rows = [row for row in experiment.rows if self.wanted(row)]
        if not rows:
            return
        try:
            free = shutil.disk_usage(self.options.dir).free
            if free < experiment.needs:
                raise Skip(f"needs {text(experiment.needs, 'B')} of disk, "
                           f"{text(free, 'B')} are free")
            with experiment.prepare() as sides:
                samples, notes = self._measure(sides, len(experiment.rows))
        except Skip as why:
            for row in rows:
                self._not(row, "skipped", str(why))
        except (OSError, RuntimeError, subprocess.SubprocessError) as why:
            self.failed = True
            for row in rows:
                self._not(row, "failed", str(why))
        else:
            for i, row in enumerate(experiment.rows):
                if self.wanted(row):
                    self._tell(row, {side: [values[i] for values in all_values]
                                     for side, all_values in samples.items()}, notes)

    def _not(self, row, what, why):
        self.results.append({"row": row.name, what: why})
        self._line("-", what, "-", row.name, [], why)

    def _measure(self, sides, count):
        samples, notes = {side: [] for side in sides}, []
        for run in range(self.options.runs):
            order = list(samples)
            for side in order if run % 2 == 0 else reversed(order):
                try:
                    values = sides[side]()
                except (OSError, RuntimeError) as why:
                    if side in ("bpkfs", "native"):
                        raise
                    notes.append(" ".join(f"{side} failed: {why}".split()))
                    del samples[side]
                    continue
                if len(values) != count:
                    raise RuntimeError(f"{side} gave {len(values)} values")
                samples[side].append(values)
        return samples, notes

    def _tell(self, row, samples, notes):
        ratios = [ours / native for ours, native in
                  zip(samples["bpkfs"], samples["native"])]
        medians = {side: statistics.median(values) for side, values in samples.items()}
        ratio = statistics.median(ratios)
        best = min(samples["bpkfs"]) / min(samples["native"])
        against = row.against
        if row.target is not None:
            against += f"; target {text(row.target, row.unit)}"
        self._line(times(ratio), f"{times(min(ratios))}-{times(max(ratios))}",
                   times(best), row.name,
                   [text(medians.get(side), row.unit) for side in self.sides], against)
        for note in notes:
            print(f"{'':26} {note}", file=sys.stderr)
        self.results.append({
            "row": row.name, "ratio": ratio, "ratio_min": min(ratios),
            "ratio_max": max(ratios), "ratio_best": best, "unit": row.unit, "against": row.against,
            "target": row.target, "median": medians, "samples": samples,
            "notes": notes})

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"machine": self.machine, "runs": self.options.runs,
                       "rows": self.results}, file, indent=1)
            file.write("\n")
