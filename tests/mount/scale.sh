#!/usr/bin/env bash
# Many names, and names that make it hard (SEMANTICS, section 2 "Names").
. "$(dirname "$0")/lib.sh"

scale() { PYTHONPATH=$top/tests/support PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$top/tests/support/scale.py" "$@"; }

# Path and size of every file, as `oracle tree` begins its lines.
names_sizes() { (cd "$mnt" && find tensors scalars metadata -type f -printf '%p\t%s\n' | LC_ALL=C sort); }

# Each component that the names of a pack's tensors are made of, once.
components() { "$PYTHON" -c '
import json, sys
names = json.load(sys.stdin)["tensors"]
print("\n".join({part for name in names for part in name.split(".")}))' < <(oracle show "$1") | sort; }

# Cut names, in thousands and with hashes that collide.
pack=$T/cuts.bpk mnt=$T/cuts
mkdir "$mnt"
scale cuts "$pack"
cp "$pack" "$T/before"
mounted 'names of one hash mount' "$pack" "$mnt"
is 'each has a file of its own' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
is 'and in npy/' "$(scale npy "$mnt" "$pack")" ''
unmount 'it unmounts' "$mnt"
mounted 'and with -o flat' -o flat "$pack" "$mnt"
is 'each has a file of its own there' "$(names_sizes)" "$(oracle tree "$pack" --flat | cut -f 1,2)"
unmount 'it unmounts' "$mnt"
mounted 'names of one hash mount writable' -o rw "$pack" "$mnt"
cd "$mnt/tensors"
mapfile -t names < <(ls | grep ^h)
is 'they are as many as the names' "${#names[@]}" 81
first=${names[0]} second=${names[1]} third=${names[2]}
ok 'one is overwritten' put "$first" 123
ok 'one is removed' rm "$second"
is 'the others keep their names' "$(ls | grep ^h)" \
    "$(printf '%s\n' "${names[@]}" | grep -vFx "$second")"
refused 'the removed one is not there' "$ENOENT" cat "$second"
ok 'it can be made again' put "$second" 456
ok 'one gets a short name' mv "$third" short
ok 'a folder with names of one hash is renamed' mv folders renamed
is 'with all that is in it' "$(ls renamed | wc -l)" 40
inner=$(ls renamed | sed -n 5p)
ok 'and so is one whose name has that hash' mv "renamed/$inner" other/folder
ok 'a cut name moves into a folder' mv "$first" renamed/
is 'and keeps its bytes' "$(cat "renamed/$(ls renamed | grep -F "${first:0:239}" | head -1)" | wc -c)" 3
ok 'a name that is cut in npy/ alone moves there' mv ../npy/cccc*"$(printf %s "%+")"*.npy ../npy/renamed/
is 'and is whole in tensors/' "$(ls renamed | grep -c '^c*$')" 3
refused 'what a cut name stands for cannot be guessed' "$EINVAL" cp short "$inner"
refused 'nor in another section' "$EINVAL" cp short "../scalars/${first%?????}00000"
cd /
whole_tree "$mnt" | cut -f 2- | sort >"$T/bytes"
unmount 'the edits become a pack' "$mnt"
is 'with the bytes that were there' "$(oracle tree "$pack" | cut -f 2- | sort)" "$(<"$T/bytes")"
components "$T/before" >"$T/old"
components "$pack" >"$T/new"
is 'no name was made up in it' "$(comm -13 "$T/old" "$T/new" | tr '\n' ' ')" 'folder renamed short '
is 'and only those renamed are gone' "$(comm -23 "$T/old" "$T/new" | cut -c 1-10 | tr '\n' ' ')" \
    'folders hhhhhhhhhh '
ok 'it is valid' valid "$pack"
mounted 'it mounts again' "$pack" "$mnt"
is 'each name has a file again' "$(names_sizes)" "$(oracle tree "$pack" | cut -f 1,2)"
unmount 'it unmounts' "$mnt"

# A folder is renamed whole or not at all.
pack=$T/many.bpk mnt=$T/many
mkdir "$mnt"
scale many "$pack"
mounted '3000 tensors mount writable' -o rw "$pack" "$mnt"
tensor_names() { (cd "$mnt/tensors" && find . -type f | LC_ALL=C sort); }
before=$(tensor_names)
ok 'their folder is renamed' mv "$mnt/tensors/model" "$mnt/tensors/m"
is 'all of it' "$(tensor_names)" "$(sed s,^./model,./m, <<<"$before")"
ok 'and back' mv "$mnt/tensors/m" "$mnt/tensors/model"
is 'which is no change' "$(<"$mnt/.bpkfs/changes")" ''
head -c $((99 << 20)) /dev/zero | tr '\0' x >"$T/text"
ok 'nearly as much metadata as there may be' cp "$T/text" "$mnt/metadata/text"
refused 'a name that is too much for 3000' 'no space left' mv "$mnt/tensors/model" "$mnt/tensors/$(printf 'n%.0s' {1..255})"
is 'renames none of them' "$(tensor_names)" "$before"
is 'and is no change' "$(<"$mnt/.bpkfs/changes")" 'A  metadata/text'
ok 'a shorter one is taken' mv "$mnt/tensors/model" "$mnt/tensors/n"
is 'by all of them' "$(tensor_names)" "$(sed s,^./model,./n, <<<"$before")"
ok 'discard' "$BPKFS" --discard "$mnt"

# Reading all of it, in every view and again, leaves the daemon as small as it was.
rss() { sed -n "s/^$1:[^0-9]*\([0-9]*\) kB/\1/p" "/proc/${pids[$mnt]}/status"; }
below() { comment "$1: $2 KiB"; if [ "$2" -lt "$3" ]; then pass "$1"; else fail "$1" "$2 KiB more, below $3 KiB were wanted; $(grep -E "^(Vm|Rss|Threads)" "/proc/${pids[$mnt]}/status" | tr -s "\n\t " " ")"; fi; }
if grep -qa __asan_init "$BPKFS"; then
    skip 'memory' 'a sanitizer keeps what was freed'
else
    # meson has malloc fill what it gives, and so touch all of it.
    unset MALLOC_PERTURB_
    mounted '3000 tensors mount' "$pack" "$mnt"
    start=$(rss RssAnon)
    read_all() { find "$mnt" -type f -exec cat {} + >/dev/null; }
    ok 'every file is read' read_all
    first=$(rss RssAnon)
    below 'the daemon keeps nothing of 6000 files' $((first - start)) 2048
    ok 'and read again' read_all
    below 'it does not grow' $(($(rss RssAnon) - first)) 1024
    unmount 'it unmounts' "$mnt"
    truncate -s 256M "$T/zeros"
    pack=$T/large.bpk
    PYTHONPATH=$top/tests/support PYTHONDONTWRITEBYTECODE=1 "$PYTHON" -c '
import sys, oracle
pack = oracle.make({"tensors": [{"name": "w", "dtype": "U8", "shape": [4]}], "scalars": {}, "metadata": {}})
sys.stdout.buffer.write(pack)' >"$pack"
    mounted 'a pack that is to grow mounts' -o rw "$pack" "$mnt"
    ok 'by 256 MiB' cp "$T/zeros" "$mnt/tensors/large"
    unmount 'it unmounts' "$mnt"
    mounted 'a large tensor mounts' "$pack" "$mnt"
    start=$(rss VmRSS)
    ok 'it is read' cmp "$mnt/tensors/large" "$T/zeros"
    ok 'and through pack.safetensors' cmp -n $((256 << 20)) <(tail -c $((256 << 20)) "$mnt/pack.safetensors") "$T/zeros"
    below 'the pages of the pack do not stay in the daemon' $(($(rss VmRSS) - start)) 16384
    unmount 'it unmounts' "$mnt"
fi

done_testing
