#!/usr/bin/env bash
# Reading: what a mounted pack looks like (SEMANTICS, sections 1 to 3).
. "$(dirname "$0")/lib.sh"

fresh read
chmod 640 "$pack"
touch -d @1700000000 "$pack"
before=$(stat -c '%i %Y %s' "$pack")
mounted 'a pack mounts' "$pack" "$mnt"

# The tree.
is 'the whole tree is what the pack holds' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
for name in tensors scalars metadata .bpkfs; do
    ok "the root lists $name" grep -qx -- "$name" <(ls -A "$mnt")
done
is 'a tensor beside a folder of its name is %self' \
    "$(stat -c %s "$mnt/tensors/head/%self")" 10
is 'a scalar reads as one line' "$(cat "$mnt/scalars/lr"; echo .)" $'0.001\n.'
is 'a boolean reads as a word' "$(cat "$mnt/scalars/done")" false
is 'a value reads as the value and a newline' "$(cat "$mnt/metadata/note.txt"; echo .)" \
    $'two\nlines\n.'
is 'an empty value is a newline' "$(stat -c %s "$mnt/metadata/empty")" 1
is 'the alias with dots opens the same bytes' "$(sum "$mnt/tensors/encoder.layer1.weight")" \
    "$(sum "$mnt/tensors/encoder/layer1/weight")"
is 'and for scalars' "$(cat "$mnt/scalars/opt.time")" 10
is 'and is the same file' "$(stat -c %i "$mnt/tensors/encoder.layer1.weight")" \
    "$(stat -c %i "$mnt/tensors/encoder/layer1/weight")"
is 'and is never listed' "$(find "$mnt/tensors" "$mnt/scalars" -name '*.*')" ''
refused 'it names files only' "$ENOENT" ls "$mnt/tensors/encoder.layer1"
refused 'what is not there is not there' "$ENOENT" cat "$mnt/tensors/nothing"

# Attributes.
is 'files have the read bits of the pack' "$(stat -c %a "$mnt/tensors/steps")" 440
is 'folders can be entered by those who read' "$(stat -c %a "$mnt/tensors/encoder")" 550
is 'the owner is the owner of the pack' "$(stat -c %u:%g "$mnt/scalars/lr")" \
    "$(stat -c %u:%g "$pack")"
is 'the time is the time of the pack' "$(stat -c %Y "$mnt/tensors/big" "$mnt/scalars/lr" | uniq)" \
    1700000000
is 'st_blocks is the size in blocks of 512' "$(stat -c '%b %B' "$mnt/tensors/big")" '5860 512'
is 'tensors like to be read in MiB' "$(stat -c %o "$mnt/tensors/big")" 1048576
inode=$(stat -c %i "$mnt/tensors/big")
ls -lR "$mnt" >/dev/null
is 'inode numbers are stable' "$(stat -c %i "$mnt/tensors/big")" "$inode"
is 'and each is used once' "$(find "$mnt" -printf '%i\n' | sort | uniq -d)" ''

read -r size blocks free namelen < <(stat -f -c '%S %b %f %l' "$mnt")
[ "$((blocks * size))" -ge "$(stat -c %s "$pack")" ] &&
    [ "$(((blocks - 1) * size))" -lt "$(stat -c %s "$pack")" ]
is 'statfs: the total is the size of the pack' $? 0
is 'statfs: nothing is free' "$free" 0
is 'statfs: names of 255 bytes' "$namelen" 255

# Extended attributes.
attr() { getfattr --absolute-names --only-values -n "user.bpk.$2" "$mnt/$1"; }
while read -r file name want; do
    is "user.bpk.$name of $file" "$(attr "$file" "$name" 2>&1)" "$want"
done <<'ROWS'
tensors/encoder/layer1/weight dtype F32
tensors/encoder/layer1/weight shape [4,3]
tensors/encoder/layer1/weight param_id 7
tensors/encoder/layer1/bias param_id 9505838338724798577
tensors/head/%self param_id 0
tensors/head/scale dtype F64
tensors/head/scale shape []
tensors/mask dtype Bool(Native)
tensors/none shape [0]
scalars/lr type Float
scalars/epoch type UInt
scalars/delta type Int
scalars/done type Bool
ROWS
refused 'no param_id, no attribute' "$ENODATA" attr tensors/mask param_id
refused 'no such attribute' "$ENODATA" attr tensors/mask color
refused 'a scalar has no dtype' "$ENODATA" attr scalars/lr dtype
is 'attributes are listed' \
    "$(getfattr --absolute-names -m - "$mnt/tensors/steps" | grep '^user' | sort | tr '\n' ' ')" \
    'user.bpk.dtype user.bpk.offset user.bpk.shape '
offset=$(attr tensors/encoder/layer1/bias offset)
is 'user.bpk.offset is where the bytes lie in the pack' \
    "$(tail -c "+$((offset + 1))" "$pack" | head -c 16 | sum)" \
    "$(sum <"$mnt/tensors/encoder/layer1/bias")"

# Ways to read.
oracle data "$pack" big >"$T/big"
ok 'cmp of a large tensor' cmp "$T/big" "$mnt/tensors/big"
is 'dd of a part' "$(dd if="$mnt/tensors/big" bs=1 skip=1234567 count=100 2>/dev/null | sum)" \
    "$(tail -c +1234568 "$T/big" | head -c 100 | sum)"
is 'nothing behind the end' "$(dd if="$mnt/tensors/big" bs=1M skip=3 2>/dev/null | wc -c)" 0
ahead=/sys/class/bdi/$(stat -c %Hd:%Ld "$mnt")/read_ahead_kb
if is_root && [ -w "$ahead" ]; then
    is 'the kernel reads 2 MiB ahead' "$(<"$ahead")" 2048
else
    skip 'the kernel reads 2 MiB ahead' 'only root may have it do so'
fi
ok 'mmap private and shared, sendfile' "$PYTHON" - "$mnt/tensors/big" "$T/big" "$T/out" <<'PYTHON'
import mmap, os, sys
mounted, plain, out = sys.argv[1:]
want = open(plain, "rb").read()
fd = os.open(mounted, os.O_RDONLY)
for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
    with mmap.mmap(fd, 0, flags=flags, prot=mmap.PROT_READ) as view:
        assert view[:] == want, flags
to = os.open(out, os.O_WRONLY | os.O_CREAT, 0o600)
at = 0
while at < len(want):
    at += os.sendfile(to, fd, at, 1 << 20)
assert open(out, "rb").read() == want
PYTHON
is 'eight readers at once' "$(
    for _ in 1 2 3 4 5 6 7 8; do sum <"$mnt/tensors/big" & done | sort -u
    wait
)" "$(sum <"$T/big")"

# Nothing can be changed.
while IFS='|' read -r name command; do
    refused "read-only: $name" "$EROFS" bash -c "cd '$mnt' && $command"
done <<'ROWS'
echo into a scalar|echo 1 >scalars/lr
a new scalar|echo 1 >scalars/new
a new tensor|cp scalars/lr tensors/new
cp over a tensor|cp tensors/steps tensors/big
append|echo 1 >>metadata/arch
truncate|truncate -s 0 tensors/big
rm|rm -f scalars/lr
mv|mv scalars/lr scalars/rate
mkdir|mkdir tensors/folder
rmdir|rmdir tensors/encoder
chmod|chmod 600 scalars/lr
touch|touch scalars/lr
ln -s|ln -s lr scalars/link
sed -i|sed -i s/0/1/ scalars/lr
setfattr|setfattr -n user.bpk.dtype -v F16 tensors/big
ROWS

# Beside others.
mkdir "$T/second"
mounted 'the same pack mounts twice' "$pack" "$T/second"
is 'and shows the same' "$(sum "$T/second/tensors/big")" "$(sum <"$T/big")"
unmount 'the second one goes' "$T/second"
unmount 'a pack unmounts' "$mnt"
is 'the pack is untouched' "$(stat -c '%i %Y %s' "$pack")" "$before"
ok 'a mount point that was there stays' test -d "$mnt"

# Options.
mounted 'a mount point is made when missing' "$pack" "$T/made"
unmount 'it unmounts' "$T/made"
refused 'and goes with the mount' "$ENOENT" ls "$T/made"

mounted '-o flat' -o flat "$pack" "$mnt"
is '-o flat keeps the dots' "$(whole_tree "$mnt")" "$(oracle tree "$pack" --flat)"
unmount 'it unmounts' "$mnt"

words=ro,nofail,noauto,auto,user,users,_netdev,x-systemd.automount,noatime,nosuid,nodev,noexec,relatime,defaults
mounted 'the words of mount(8) are understood' -o "$words" "$pack" "$mnt"
refused 'ro means it' "$EROFS" touch "$mnt/scalars/lr"
unmount 'it unmounts' "$mnt"

chmod 644 "$pack" # an ordinary user is one of the others here
mounted 'owner by uid and gid' -o uid=12,gid=34 "$pack" "$mnt"
is 'owner by uid and gid shows' "$(stat -c %u:%g "$mnt" "$mnt/scalars/lr" | uniq)" 12:34
unmount 'it unmounts' "$mnt"

cp "$pack" "$T/with space.bpk"
mounted 'without the extension' "$T/with space" "$mnt"
is 'the mount table shows the pack and the type' "$(findmnt -n -o SOURCE,FSTYPE -P -M "$mnt")" \
    "SOURCE=\"$T/with space.bpk\" FSTYPE=\"fuse.bpkfs\""
unmount 'it unmounts' "$mnt"

(cd "$T" && ln -s read.bpk link.bpk && mkdir relative)
cd "$T"
mounted 'by relative paths and a symlink' link.bpk relative
cd /
is 'a relative mount works from elsewhere' "$(cat "$T/relative/scalars/x")" 0.25
pids[$T/relative]=${pids[relative]}
logs[$T/relative]=${logs[relative]}
unset 'pids[relative]'
unmount 'it unmounts' "$T/relative"

is '-V gives our version, of libfuse and the kernel' "$("$BPKFS" -V 2>&1 | grep -ciE 'bpkfs|fuse')" \
    "$("$BPKFS" -V 2>&1 | wc -l)"
like '-h shows the use' "$("$BPKFS" -h 2>&1)" 'usage'

# The pack changes while it is mounted.
fresh swapped
mounted 'a pack that will be replaced' "$pack" "$mnt"
oracle make <(sed 's/0.25/0.75/' "$here/base.json") "$T/other.bpk"
mv "$T/other.bpk" "$pack"
is 'a replaced pack goes on being seen as it was' \
    "$(cat "$mnt/scalars/x"; sum "$mnt/tensors/big")" "0.25
$(sum <"$T/big")"
unmount 'it unmounts' "$mnt"

fresh cut
mounted 'a pack that will be truncated' "$pack" "$mnt"
truncate -s 100000 "$pack"
refused 'a reader behind the end gets EIO' 'input/output error' dd if="$mnt/tensors/big" of=/dev/null bs=64k
is 'and the daemon lives' "$(cat "$mnt/scalars/x")" 0.25
unmount 'it unmounts' "$mnt"

# Burn's own packs.
for name in 03_all_dtypes 04_quantized 05_scalars 06_metadata 08_names 09_shapes 01_empty; do
    if [ ! -e "$golden/$name.bpk" ]; then
        skip "golden $name" 'the vectors are not in the tree'
        continue
    fi
    mounted "golden $name mounts" "$golden/$name.bpk" "$T/read"
    is "golden $name: the tree" "$(whole_tree "$T/read")" "$(oracle tree "$golden/$name.bpk")"
    unmount "golden $name unmounts" "$T/read"
done
mnist=$top/../shared/packs/mnist.bpk
if [ -e "$mnist" ]; then
    mounted 'a trained model mounts' "$mnist" "$T/read"
    is 'a trained model: every byte' "$(whole_tree "$T/read")" "$(oracle tree "$mnist")"
    is 'a trained model: the shape' "$(mnt=$T/read attr tensors/conv1/conv/weight shape)" '[64,1,3,3]'
    unmount 'a trained model unmounts' "$T/read"
else
    skip 'a trained model' 'not here'
fi

done_testing
