#!/usr/bin/env python3
"""The examples of records do what they say, and the training loop, killed at each of
its saves and taken up again, ends with the bytes of a run that nobody disturbed.

    resume.py BUILD GOLDEN      the folder of the examples; that of golden packs
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

EPOCHS = 20
RECORDS = ("model", "optim", "scheduler")
failures = 0


def check(label, right, told=""):
    global failures
    if not right:
        failures += 1
        print("FAILED:", label, told)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kill_at(train, folder, record, epoch):
    """Start, and SIGKILL when that record of that epoch is saved. The program waits for
    a line then, so there it is, and nowhere else."""
    wanted = f"saved {record} {epoch}\n"
    with subprocess.Popen([train, "--epochs", str(EPOCHS), "--wait", folder], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if line == wanted:
                process.kill()
                break
            if line.startswith("saved "):
                process.stdin.write("\n")
                process.stdin.flush()
        process.stdout.close()
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
    check(f"killed at {record} {epoch}", process.returncode == -9, process.returncode)


def final(folder):
    return [(folder / f"{name}-{EPOCHS}.bpk").read_bytes() for name in RECORDS]


def training(train, work):
    whole = work / "whole"
    told = run(train, "--epochs", str(EPOCHS), whole)
    right = re.search(r"([\d.]+) % right", told)
    check("it learns", right and float(right[1]) >= 98, told)
    check("three epochs are kept", len(os.listdir(whole)) == 3 * len(RECORDS))
    untrained = run(train, "--epochs", "0", work / "none")
    check("which it has to", float(re.search(r"([\d.]+) % right", untrained)[1]) < 90,
          untrained)
    for i, record in enumerate(RECORDS):
        killed = work / record
        # The last record of an epoch makes it complete; without it, it is done again.
        kill_at(train, killed, record, 1)
        kill_at(train, killed, record, 8)
        kill_at(train, killed, record, EPOCHS)
        complete = EPOCHS if i == len(RECORDS) - 1 else EPOCHS - 1
        told = run(train, "--epochs", str(EPOCHS), killed)
        check(f"{record}: resumed where it was",
              f"resumed after epoch {complete}\n" in told, told)
        check(f"{record}: the same bytes", final(killed) == final(whole))
    # One bit more or less in what is resumed from would show.
    other = work / "other"
    shutil.copytree(whole, other)
    run(train, "--epochs", str(EPOCHS + 1), other)
    check("an epoch changes the weights",
          (other / f"model-{EPOCHS + 1}.bpk").read_bytes() != final(whole)[0])


def examples(build, golden, work):
    check("module-record", run(build / "module-record", work / "model")
          == "hidden.weight of parameter 7401328710934151: 0x2e66 0x3266\n")
    check("with an extension", (work / "model.bpk").exists())
    run(build / "optimizer-record", "--make", work / "optim")
    check("optimizer-record", run(build / "optimizer-record", work / "optim") == (
        'skipped 43: its state is incomplete: no "momentum.moment_1"\n'
        "42: rank 1, hidden.bias, momentum.moment_1 (F32), momentum.time = 10\n"))
    told = run(build / "optimizer-record", golden / "11_optimizer")
    check("optimizer-record on another's", told.count("is incomplete") == 3, told)
    check("scheduler-record", run(build / "scheduler-record", work / "sched")
          == "0: step 10, from 0.1 to 1e-06\n1: step 20, from 0.5 to 0.001\n")
    check("checkpoints", run(build / "checkpoints", work / "epochs")
          == "epoch 4\nepoch 9\nepoch 10\n")


def main():
    build, golden = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        examples(build, golden, pathlib.Path(work))
        training(build / "train", pathlib.Path(work))
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
