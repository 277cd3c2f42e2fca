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

# One that is interrupted while it has something mounted: the kernel tells of mounts.
TMPDIR=$work/tmp python3 - "$here/run.sh" "$BPKFS_BUILD" "$work/tmp/" >"$work/out" 2>&1 \
    <<'INTERRUPT'
import os, select, signal, subprocess, sys

def end(*_):
    sys.exit(143)

script, build, below = sys.argv[1:]
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGINT, signal.default_int_handler)
mounts = open("/proc/self/mounts")
changes = select.poll()
changes.register(mounts, select.POLLERR | select.POLLPRI)
run = subprocess.Popen([script, "--quick", "--build", build, "--rows", "^read"],
                       start_new_session=True)
try:
    while True:
        mounts.seek(0)
        if below in mounts.read():
            break
        if not changes.poll(60000):
            sys.exit("nothing is mounted")
finally:
    os.killpg(run.pid, signal.SIGINT)
    status = run.wait()
sys.exit(status != 130)
INTERRUPT
status=$?
left=$(ls -A "$work/tmp"; grep -F " $work/" /proc/self/mounts)
[ "$status" -eq 0 ] && [ -z "$left" ]
result "$?" '^C leaves nothing' "status $status $left $(cat "$work/out")"
