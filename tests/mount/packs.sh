#!/usr/bin/env bash
# Packs that others made: each golden one mounts and is what the oracle says, each
# malformed one is refused before anything is mounted, and what is odd but allowed
# (overlaps, no alignment, lengths that no shape tells) reads as it lies there
# (SEMANTICS, sections 1 and 3).
. "$(dirname "$0")/lib.sh"

malformed=$top/tests/data/vectors/malformed

# Every line of stdin is "label|mount|pack": what is not the same in both.
cat >"$T/compare.py" <<'PYTHON'
import os, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import oracle
for line in sys.stdin:
    label, mount, path = line.rstrip("\n").split("|")
    pack = oracle.Pack(path)
    want = [f"{path}\t{len(data)}\t{oracle.sha256(data)}"
            for path, data, _ in oracle.rows_of(pack, False)]
    wrong = set(want) ^ set(oracle.files(os.fsencode(mount)))
    for path, _, attributes in oracle.rows_of(pack, False):
        for key, value in attributes.items():
            try:
                got = os.getxattr(os.path.join(mount, path), "user.bpk." + key).decode()
            except OSError:
                got = None
            if got != (None if value is None else str(value)):
                wrong.add(f"{path}: {key} {got}, not {value}")
    print(label, "; ".join(sorted(wrong)[:3]).replace("|", "/"), sep="|", flush=True)
PYTHON
: >"$T/mounted"
up() { # LABEL PACK
    local at=$T/at/$(basename "$2" .bpk)
    mkdir -p "$at"
    mounted "$1: mount" "$2" "$at"
    echo "$1|$at|$2" >>"$T/mounted"
}
# All that are mounted are compared at once, and unmounted.
compare() {
    local label wrong at
    "$PYTHON" -I "$T/compare.py" "$top/tests/support" <"$T/mounted" >"$T/compared"
    is 'every mount was looked at' "$? $(wc -l <"$T/compared")" "0 $(wc -l <"$T/mounted")"
    while IFS='|' read -r label wrong; do is "$label: the tree" "$wrong" ''; done <"$T/compared"
    while IFS='|' read -r label at _; do unmount "$label: unmount" "$at"; done <"$T/mounted"
    : >"$T/mounted"
}

# Burn's own.
for pack in "$golden"/*.bpk; do up "golden $(basename "$pack")" "$pack"; done
is 'there are golden packs' "$([ "$(wc -l <"$T/mounted")" -ge 15 ] && echo many)" many
compare

# Malformed ones. Those that Burn itself reads must mount; where the verdict is
# "either", the pack is refused or it is read as it is. How one is parsed does not depend
# on the mode: of those that are read, every mode takes a fourth.
flags=(-f)
[ "$BPKFS_MODE" = foreground ] || flags=()
[ "$BPKFS_THREADS" != single ] || flags+=(-s)
turn=$(case $BPKFS_MODE-$BPKFS_THREADS in
    daemon-multi) echo 0 ;; daemon-single) echo 1 ;;
    foreground-multi) echo 2 ;; *) echo 3 ;;
    esac)
mkdir "$T/mnt" "$T/either"
refused=0 either=0 number=0
while IFS=$'\t' read -r name verdict why _; do
    pack=$malformed/$name at=$T/mnt
    case $verdict-$why in
    expect-*) continue ;;
    accept-* | either-*)
        [ $((number++ % 4)) -eq "$turn" ] || continue
        if [ "$verdict" = accept ]; then
            up "accepted $name" "$pack"
            continue
        fi
        at=$T/either/${name%.bpk}
        if bpkfs "$pack" "$at"; then
            pass "either $name: mounted"
            echo "either $name|$at|$pack" >>"$T/mounted"
            either=$((either + 1))
            continue
        fi
        want='14|15|16' ;;
    *)
        err=$(timeout 60 "$BPKFS" "${flags[@]}" "$pack" "$at" 2>&1 </dev/null)
        status=$?
        case $why in
        InvalidMagicNumber) want='12' ;;
        InvalidVersion) want='13' ;;
        IoError) want='12|14' ;;
        *) want='14|15|16' ;;
        esac ;;
    esac
    if [ -e "$at/.bpkfs" ]; then
        fail "$verdict $name" "status $status, and it is mounted"
        fusermount3 -u "$at"
    elif [[ ! $status =~ ^($want)$ ]]; then
        fail "$verdict $name" "status $status, not $want: $err"
    elif [[ $err != *"$name"* || $err = *$'\n'* ]]; then
        fail "$verdict $name" "not one line that names it: $err"
    else
        pass "$verdict $name: refused"
        refused=$((refused + 1))
    fi
done <"$malformed/verdicts.tsv"
is 'there are malformed packs' "$([ "$refused" -ge 104 ] && echo many)" many
is 'no mount point stays for them' "$(ls "$T/either" | wc -l)" "$either"
compare

# Odd ones. "lies" is where the bytes of a tensor are in the data section.
"$PYTHON" -I - "$top/tests/support" "$T" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import oracle

def tensor(name, dtype, shape, start, end, **more):
    return {"name": name, "dtype": dtype, "shape": shape, "byte_len": 0, **more,
            "extra": {"data_offsets": [start, end]}}

def pack(name, tensors, lr):
    spec = {"tensors": [tensor("ground", "U8", [20000], 0, 20000, byte_len=20000)] + tensors,
            "scalars": {"lr": {"Float": lr}}}
    del spec["tensors"][0]["extra"]
    with open(f"{sys.argv[2]}/{name}.bpk", "wb") as file:
        file.write(oracle.make(spec) + b"trailing bytes")

pack("overlapping", [
    tensor("inside", "U8", [100], 512, 612),
    tensor("inside.twice", "U8", [100], 512, 612),
    tensor("across", "F32", [2000], 9000, 17000),
    tensor("end", "U8", [1], 19999, 20000),
    tensor("whole", "U8", [20000], 0, 20000),
], 0.001)
pack("unaligned", [
    tensor("odd", "U8", [100], 1, 101),
    tensor("a_double", "F64", [3], 4093, 4117),
    tensor("pages", "U8", [8192], 4095, 12287),
], 0.001)
pack("mis-sized", [
    tensor("short", "F32", [4], 256, 266),
    tensor("long", "F32", [4], 512, 600),
    tensor("none_but_bytes", "I64", [0], 768, 771),
    tensor("bytes_but_none", "I64", [5], 1024, 1024),
    tensor("scalar", "F64", [], 1280, 1283),
    tensor("wraps", "U64", [1 << 32, 1 << 32], 2048, 2052),
    tensor("end", "U8", [0], 20000, 20000),
], 0.001)
PYTHON
for name in overlapping unaligned mis-sized; do up "$name" "$T/$name.bpk"; done
compare
for name in overlapping unaligned mis-sized; do
    cp "$T/$name.bpk" "$T/edited.bpk"
    mounted "$name: writable" -o rw "$T/edited.bpk" "$T/mnt"
    ok "$name: edit" put "$T/mnt/scalars/lr" 0.5
    unmount "$name: commit" "$T/mnt"
    is "$name: what differs" "$(oracle differ "$T/$name.bpk" "$T/edited.bpk")" 'M scalars lr'
    ok "$name: the library opens the new pack" valid "$T/edited.bpk"
done

done_testing
