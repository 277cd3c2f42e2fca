#!/usr/bin/env bash
# What Burn's reader would refuse for its size is refused when the edit is made
# (SEMANTICS, section 4). Everything is holes, and nothing of it is committed.
. "$(dirname "$0")/lib.sh"

EFBIG='file too large'
truncate -s 100G "$T/probe" 2>/dev/null || skip_all 'this file system has no files of that size'
rm "$T/probe"
t=$T/mnt/tensors mnt=$T/mnt
grow() { truncate -s "$1" "$t/$2"; }
changes() { cat "$mnt/.bpkfs/changes"; }

# 10 GiB a tensor.
mounted 'mount' -o rw,create "$T/new.bpk" "$mnt"
ok 'a tensor of 10 GiB' grow 10G t0
refused 'and a byte' "$EFBIG" grow $((10 * 1024 ** 3 + 1)) t0
refused 'by a write' "$EFBIG" dd if=/dev/zero of="$t/t0" bs=1 count=1 seek=10G conv=notrunc
ok 'a scratch file of more' grow 11G .big
refused 'which cannot become a tensor' "$EFBIG" mv "$t/.big" "$t/big"
is 'it is there still' "$(stat -c %s "$t/.big")" $((11 * 1024 ** 3))
rm "$t/.big"

# 100 GiB in all.
for k in 1 2 3 4 5 6 7 8; do grow 10G t$k; done
is '90 GiB are there' "$(du -c --apparent-size -B1G "$t" | tail -1 | cut -f1)" 90
refused '10 more are not possible: there are header and metadata too' "$EFBIG" grow 10G t9
is 'the file is as it was made' "$(stat -c %s "$t/t9")" 0
ok 'a little less is' grow $((10 * 1024 ** 3 - 100000)) t9
refused 'but nothing beside it' "$EFBIG" bash -c "head -c 100000 /dev/zero >'$t/more'"
refused 'by fallocate neither' "$EFBIG" fallocate -l 1G "$t/more"
refused 'no part of another write' "$EFBIG" dd if=/dev/zero of="$t/t9" bs=100K count=1 seek=10485600K oflag=seek_bytes conv=notrunc
is 'of which the size is as it was' "$(stat -c %s "$t/t9")" $((10 * 1024 ** 3 - 100000))
ok 'scratch files do not count' grow 9G .scratch
refused 'until they are to be tensors' "$EFBIG" mv "$t/.scratch" "$t/scratch"
refused 'or arrays' "$EFBIG" "$PYTHON" - "$mnt" <<'PYTHON'
import sys
header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (9437184000,), }".ljust(117) + b"\n"
with open(sys.argv[1] + "/npy/array.npy", "wb", buffering=0) as file:
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    file.truncate(10 + len(header) + 9437184000)
PYTHON
ok 'in the place of one they may' mv "$t/.scratch" "$t/t0"
ok 'what is written over does not count twice' bash -c "
    for k in 1 2 3 4 5 6 7 8 9 10 11 12; do : >'$t/t1' && truncate -s 10G '$t/t1' || exit 1; done"
ok 'nor what was removed' bash -c "rm '$t/t2' && truncate -s 10G '$t/u2'"
ok 'nor what was shrunk' bash -c "truncate -s 9G '$t/t3' && truncate -s 1G '$t/u3'"
refused 'all the same it is enough then' "$EFBIG" grow 2G u4
rm "$t"/u4
ok '--discard' "$BPKFS" --discard "$mnt"
daemon_ended "$mnt"
is 'nothing is left' "$(ls -A "$T" | grep new)" ''

# More tensors than files may be open as things usually are.
mkdir "$T/many"
for k in $(seq 400); do echo "$k" >"$T/many/t$k"; done
soft=$(ulimit -Sn) hard=$(ulimit -Hn)
if [ "$hard" = unlimited ] || [ "$hard" -ge 2000 ]; then
    ulimit -Sn 256
    mounted 'mounted by who may have 256 files open' -o rw,create "$T/new.bpk" "$mnt"
    ulimit -Sn "$soft"
    ok '400 tensors come in' cp -r "$T/many" "$t/"
    unmount 'commit' "$mnt"
    mounted 'mounted' "$T/new.bpk" "$mnt"
    ok 'all are there' diff -r "$T/many" "$t/many"
    unmount 'unmount' "$mnt"
else
    skip 'more tensors than open files' "no more than $hard files may be open"
fi
done_testing
