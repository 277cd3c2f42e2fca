#!/usr/bin/env bash
# From nothing to an edited checkpoint: installs what is missing (Debian 12 and 13),
# builds, mounts a pack, looks around, changes a scalar, and shows what came of it.
#
#     examples/quickstart.sh [--build DIR] [PACK]
#
# Without PACK, a small one is made with libbpk (make-sample.c, beside this file).
# With PACK, a copy of it is used: yours is not touched. Every step is said before it
# is done, and whatever happens, nothing stays mounted and no file stays behind.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
if [ "${1:-}" = --build ]; then
    build=${2:?--build needs a directory}
    shift 2
fi
given=${1:-}
[ -z "$given" ] || given=$(realpath -- "$given")

step=0
say() {
    step=$((step + 1))
    printf '\n== %d. %s\n' "$step" "$*"
}
# Show a command as one would type it, then run it.
try() {
    printf '$ %s\n' "$*"
    "$@"
}

work=
clean_up() {
    local status=$?
    trap - EXIT
    cd /
    if [ -n "$work" ]; then
        if mountpoint -q "$work/mnt" 2>/dev/null; then fusermount3 -u -z "$work/mnt"; fi
        rm -rf --one-file-system "$work"
    fi
    [ "$status" -eq 0 ] || printf '\nStep %d failed. Everything is cleaned up.\n' "$step" >&2
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

say 'Install what is missing'
. "$top/tests/support/packages.sh"
install_missing build mount test

say "Build in $build"
[ -e "$build/build.ninja" ] || meson setup "$build" "$top" >/dev/null
meson compile -C "$build" >/dev/null
PATH=$build/fs:$build/examples:$PATH

if ! { : <>/dev/fuse; } 2>/dev/null; then
    echo "/dev/fuse cannot be opened here, and without it nothing can be mounted." >&2
    exit 1
fi

work=$(mktemp -d)
cd "$work"
mkdir mnt
if [ -n "$given" ]; then
    say "Copy $given, so that yours stays as it is"
    try cp -- "$given" model.bpk
else
    say 'Make a sample pack'
    try make-sample model.bpk
fi
cp model.bpk before.bpk

say 'Mount it, writable'
try bpkfs -o rw model.bpk mnt

say 'The tree: a folder for every dot in a name, a file for every tensor'
try find mnt/tensors mnt/scalars mnt/metadata

say 'What a tensor is: its extended attributes'
tensor=$(find mnt/tensors -type f -size +0 | sort | head -n 1)
if [ -n "$tensor" ]; then
    try getfattr -d -- "$tensor"

    say 'Copy a tensor out, and compare: the same bytes, at that offset of the pack'
    try cp -- "$tensor" tensor.bin
    offset=$(getfattr --only-values -n user.bpk.offset -- "$tensor")
    try cmp -i "$offset:0" -n "$(stat -c %s tensor.bin)" before.bpk tensor.bin
else
    say 'It holds no tensor to look at'
fi

say 'Change a scalar'
scalar=mnt/scalars/lr
[ -e "$scalar" ] || scalar=$(find mnt/scalars -type f | sort | head -n 1)
if [ -z "$scalar" ]; then
    scalar=mnt/scalars/quickstart
    old='(none)' new=0.5
else
    old=$(cat -- "$scalar")
    case $old in
    true) new=false ;;
    false) new=true ;;
    0.0005) new=0.25 ;;
    *.* | *e* | *inf* | *nan*) new=0.0005 ;;
    1) new=2 ;;
    *) new=1 ;;
    esac
fi
echo "\$ echo $new > $scalar     # was $old"
env echo "$new" >"$scalar"
try cat mnt/.bpkfs/changes
(cd mnt && find tensors metadata -type f -exec sha256sum -- {} + | sort -k 2) >sums.before

say 'Unmount: the edits become a new pack'
try bpkfs --unmount mnt

say 'Mount the new pack, read-only: the new value is there'
try bpkfs model.bpk mnt
try cat -- "$scalar"
[ "$(cat -- "$scalar")" = "$new" ]

say 'And nothing else changed: every tensor, every other value'
mkdir old
bpkfs before.bpk old
status=0
try diff -r old mnt --exclude=.bpkfs || status=$?
bpkfs --unmount old
# diff tells 1 for a difference: the scalar, and that one only.
[ "$status" -eq 1 ] || exit 1
(cd mnt && find tensors metadata -type f -exec sha256sum -- {} + | sort -k 2) | cmp - sums.before

say 'Unmount'
try bpkfs --unmount mnt

printf '\nAll done.\n'
