#!/usr/bin/env bash
# Measures bpkfs against the local filesystem, and against squashfuse, fuse-zip and the
# kernel's squashfs where they are installed. No test: nothing here passes or fails by
# how long it took.
#
#     tests/bench/run.sh [--quick] [--large] [--rows REGEX] [--runs N] [--size SIZE]
#                        [--json FILE] [--list] [--build DIR]
#
#     --quick        tiny sizes: shows that it works, the numbers mean nothing
#     --large        also a commit of four times the size
#     --rows REGEX   only rows whose name is like that (Python's regular expressions)
#     --runs N       runs a row, 5 by default
#     --size SIZE    of the large tensor, 1G by default (K, M and G are understood)
#     --json FILE    all numbers, of every run, also to FILE
#     --list         the names of the rows
#     --build DIR    what to measure, instead of a release build made for this run
#
# In each run of a row all sides are measured, one after another and every other time
# backwards. A line is the median of the ratios bpkfs / native, the smallest and the
# largest of them, the ratio of the best times (which says more on a busy machine), the
# row, the median of each side, and what native is. Everything is below one folder in
# $TMPDIR, which must be on the disk that is to be measured, and is removed at the end.
# Rows that do not fit on it are skipped and say so.
set -eu -o pipefail
export LC_ALL=C.UTF-8

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build= list= json= words=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$(cd "${2:?--build needs a directory}" && pwd); shift 2 ;;
    --json) json=$(realpath "${2:?--json needs a file}"); shift 2 ;;
    --rows | --runs | --size) words+=("$1" "${2:?"$1 needs a value"}"); shift 2 ;;
    --quick | --large) words+=("$1"); shift ;;
    --list) list=--list; shift ;;
    -h | --help) sed -n '2,25s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "$0: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
done
[ -z "$list" ] || exec python3 "$here/bench.py" --list "${words[@]}"

{ : <>/dev/fuse; } 2>/dev/null || { echo "$0: /dev/fuse cannot be opened" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/bpkfs-bench.XXXXXX")
work=$(cd "$work" && pwd -P)
cleanup() {
    local status=$? at kind
    trap - EXIT
    trap '' HUP INT TERM
    cd /
    # Whoever was interrupted has unmounted what it mounted; if it could not, this does.
    while read -r at kind; do
        if [ "$kind" = fuse.bpkfs ]; then
            "$build/fs/bpkfs" --discard "$at" >/dev/null 2>&1 && continue
        fi
        umount -l "$at" 2>/dev/null || fusermount3 -u -z "$at" 2>/dev/null
    done < <(findmnt -rno TARGET,FSTYPE | grep -F "$work/" | sort -r)
    rm -rf --one-file-system "$work"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -z "$build" ]; then
    . "$top/tests/support/packages.sh"
    install_missing build mount test
    build=$work/build
    { meson setup --buildtype=release "$build" "$top" &&
        meson compile -C "$build" fs/bpkfs timed; } >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; exit 1; }
fi
[ -x "$build/fs/bpkfs" ] && [ -x "$build/tests/bench/timed" ] ||
    { echo "$0: $build has no bpkfs, or no tests/bench/timed" >&2; exit 1; }

mkdir "$work/bench"
PYTHONDONTWRITEBYTECODE=1 python3 "$here/bench.py" --dir "$work/bench" --build "$build" \
    ${json:+--json "$json"} "${words[@]}"
