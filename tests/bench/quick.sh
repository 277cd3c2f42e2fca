#!/usr/bin/env bash
# The benchmark works: every row that it lists has numbers, or says why this machine
# cannot have them, and nothing stays. How large the numbers are is not looked at.
set -u
export LC_ALL=C.UTF-8
here=$(cd "$(dirname "$0")" && pwd)

{ : <>/dev/fuse; } 2>/dev/null || { echo '1..0 # SKIP no /dev/fuse'; exit 0; }
work=$(mktemp -d "${TMPDIR:-/tmp}/bpkfs-quick.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 143' HUP INT TERM
mkdir "$work/tmp"

echo 1..5
count=0
result() { # STATUS DESCRIPTION [EXPLANATION]
    count=$((count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        sed 's/^/# /' <<<"${3:-}"
    fi
}

"$here/run.sh" --list --quick >"$work/list"
result "$?" 'it lists its rows'

TMPDIR=$work/tmp "$here/run.sh" --quick --build "$BPKFS_BUILD" --json "$work/json" \
    >"$work/out" 2>"$work/err"
result "$?" 'it runs' "$(cat "$work/out" "$work/err")"

wrong=$(python3 - "$work/list" "$work/json" "$work/out" <<'CHECK'
import json, os, sys

with open(sys.argv[1]) as file:
    listed = file.read().splitlines()
with open(sys.argv[2]) as file:
    rows = json.load(file)["rows"]
with open(sys.argv[3]) as file:
    table = file.read()
if not listed or [row["row"] for row in rows] != listed:
    print("listed:", listed, "measured:", [row["row"] for row in rows])
for row in rows:
    if "skipped" in row:
        # Only what needs another filesystem may be.
        if not row["row"].endswith((", xfs", ", btrfs", ", cold pack")):
            print(row)
    elif not row["ratio"] > 0 or min(row["median"].values()) <= 0 or row["notes"]:
        print(row)
    if row["row"] not in table:
        print("not in the table:", row["row"])
CHECK
)
[ -z "$wrong" ] && [ -s "$work/json" ]
result "$?" 'every row has numbers' "$wrong"

left=$(ls -A "$work/tmp"; grep -F " $work/" /proc/self/mounts)
[ -z "$left" ]
result "$?" 'nothing stays' "$left"

# One that ends while it has something mounted: as soon as the first row is told.
TMPDIR=$work/tmp python3 - "$here/run.sh" "$BPKFS_BUILD" >"$work/out" 2>&1 <<'INTERRUPT'
import os, signal, subprocess, sys

run = subprocess.Popen([sys.argv[1], "--quick", "--runs", "100", "--build", sys.argv[2]],
                       stdout=subprocess.PIPE, text=True, start_new_session=True)
for line in run.stdout:
    if "mount, 10 tensors" in line:
        os.killpg(run.pid, signal.SIGINT)
        break
for line in run.stdout:
    pass
sys.exit(run.wait() != 130)
INTERRUPT
status=$?
left=$(ls -A "$work/tmp"; grep -F " $work/" /proc/self/mounts)
[ "$status" -eq 0 ] && [ -z "$left" ]
result "$?" '^C leaves nothing' "status $status $left $(cat "$work/out")"
