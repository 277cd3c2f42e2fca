#!/usr/bin/env python3
"""Counts a meson testlog.json: prints the closing line of a test run.

A test that speaks TAP counts with each of its results; one that ends badly
without a result that says so (a crash, a timeout) counts as one failure more.
"""
import json
import re
import sys

RESULT = re.compile(r"^(not )?ok\b([^#]*)(#\s*(SKIP|TODO)\b.*)?", re.IGNORECASE)


def count(path):
    passed = failed = skipped = 0
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            good = test["result"] in ("OK", "EXPECTEDFAIL")
            rows = [RESULT.match(row) for row in (test.get("stdout") or "").splitlines()]
            rows = [row for row in rows if row]
            if not rows:
                passed += good
                skipped += test["result"] == "SKIP"
                failed += not good and test["result"] != "SKIP"
                continue
            bad = 0
            for row in rows:
                directive = (row[4] or "").upper()
                skipped += directive == "SKIP"
                bad += bool(row[1]) and not directive
                passed += not row[1] and directive != "SKIP" or directive == "TODO"
            if not good and test["result"] != "SKIP" and not bad:
                bad = 1
            failed += bad
    return f"{passed} passed, {failed} failed, {skipped} skipped"


if __name__ == "__main__":
    print(count(sys.argv[1]))
