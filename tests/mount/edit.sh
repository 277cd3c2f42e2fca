#!/usr/bin/env bash
# Writing scalars, metadata and tensors, and the pack that comes of it
# (SEMANTICS, section 4).
. "$(dirname "$0")/lib.sh"

vim=$(command -v vim || command -v vim.tiny)
edit() { # DESCRIPTION: a fresh pack, mounted writable
    fresh edit
    if ! bpkfs -o rw "$pack" "$mnt"; then
        fail "$1: mount" "status $status: $err"
        exit 1
    fi
    cd "$mnt" || exit 1
}
commit() { # DESCRIPTION [STATUS [REGEX]]
    cd /
    unmount "$1: commit" "$mnt" "${2:-0}" "${3:-}"
    ok "$1: the library opens the new pack" valid "$pack"
}
# The new pack differs from the sample in these lines (as `oracle differ`) only.
differs() { is "$1: what differs" "$(oracle differ "$T/base.bpk" "$pack")" "${2:-}"; }
scalar() { is "$1: $2" "$(oracle scalar "$pack" "$2")" "$3"; }

# Byte for byte.
edit 'one scalar'
ok 'echo 0.5 into x' bash -c 'echo 0.5 >scalars/x'
is 'it reads back' "$(cat scalars/x)" 0.5
commit 'one scalar'
sed 's/"x": {"Float": 0.25}/"x": {"Float": 0.5}/' "$here/base.json" >"$T/want.json"
oracle make "$T/want.json" "$T/want.bpk"
ok 'the pack is byte for byte what a writer makes of it' cmp "$T/want.bpk" "$pack"
differs 'one scalar' 'M scalars x'

# No edits, no write.
fresh edit
before=$(stat -c '%i %y %s' "$pack")
mounted 'a writable mount without edits' -o rw "$pack" "$mnt"
whole_tree "$mnt" >/dev/null
is 'the tree is the same as read-only' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
is 'files are writable for the owner' "$(stat -c %A "$mnt/scalars/lr" | cut -c1-3)" '-rw'
unmount 'it unmounts' "$mnt"
is 'same inode, same time' "$(stat -c '%i %y %s' "$pack")" "$before"
is 'nothing is left beside the pack' "$(ls -A "$T" | grep '^\.')" ''

# The tools people use: each gives lr 0.0005 in place of 0.001.
while IFS='|' read -r name command; do
    edit "$name"
    ok "$name" bash -c "vim='$vim' PYTHON='$PYTHON' T='$T' top='$top'; $command"
    is "$name: reads back" "$(cat scalars/lr 2>&1)" 0.0005
    cd /
    unmount "$name: commit" "$mnt"
    scalar "$name" lr 'Float 0.0005'
    is "$name: nothing else" "$(oracle differ "$T/base.bpk" "$pack")" 'M scalars lr'
done <<'ROWS'
echo|echo 0.0005 >scalars/lr
printf|printf 0.0005 >scalars/lr
tee|echo 5e-4 | tee scalars/lr >/dev/null
cp|echo 0.0005 >$T/value; cp $T/value scalars/lr
cp --remove-destination|echo 0.0005 >$T/value; cp --remove-destination $T/value scalars/lr
sed -i|sed -i s/.*/0.0005/ scalars/lr
sed -i.bak|sed -i.bak s/.*/0.0005/ scalars/lr
perl -pi|perl -pi -e 's/0.001/0.0005/' scalars/lr
ed|printf '%s\n' 's/.*/0.0005/' w q | ed -s scalars/lr
awk and mv|awk '{ print $1 / 2 }' scalars/lr >scalars/.tmp && mv scalars/.tmp scalars/lr
awk and mv from elsewhere|awk '{ print $1 / 2 }' scalars/lr >$T/tmp && mv -f $T/tmp scalars/lr
vim|$vim -u NONE -es -c '%s/.*/0.0005/' -c wq scalars/lr
vim, backup|$vim -u NONE --cmd 'set nocp backup' -es -c '%s/.*/0.0005/' -c wq scalars/lr
vim, backupcopy=no|$vim -u NONE --cmd 'set nocp backupcopy=no' -es -c '%s/.*/0.0005/' -c wq scalars/lr
vim, backupcopy=yes|$vim -u NONE --cmd 'set nocp backupcopy=yes' -es -c '%s/.*/0.0005/' -c wq scalars/lr
rsync|echo 0.0005 >$T/lr; rsync $T/lr scalars/lr
rsync --inplace|echo 0.0005 >$T/lr; rsync --inplace $T/lr scalars/lr
os.replace|$PYTHON -c 'import os; open("scalars/.n", "w").write("0.0005"); os.replace("scalars/.n", "scalars/lr")'
tempfile|$PYTHON -c 'import os, tempfile; f = tempfile.NamedTemporaryFile("w", dir="scalars", delete=False); f.write("0.0005\n"); f.close(); os.replace(f.name, "scalars/lr")'
install|echo 0.0005 >$T/lr; install -m644 $T/lr scalars/lr
cp -a|echo 0.0005 >$T/lr; cp -a $T/lr scalars/lr
tar -x|rm -rf $T/in; mkdir -p $T/in/scalars; echo 0.0005 >$T/in/scalars/lr; tar -cC $T/in scalars | tar -x
tar -x --overwrite|tar -cC $T/in scalars | tar -x --overwrite
rsync -a|echo 0.0005 >$T/lr; rsync -a $T/lr scalars/lr
rsync -a --inplace|echo 0.0005 >$T/lr; rsync -a --inplace $T/lr scalars/lr
perl -i.bak|perl -i.bak -pe 's/0.001/0.0005/' scalars/lr
dd conv=notrunc|printf 0.0005 | dd of=scalars/lr conv=notrunc status=none
dd conv=notrunc seek=|printf 0.0001 >scalars/lr; printf 5 | dd of=scalars/lr conv=notrunc bs=1 seek=5 status=none
vim, as it comes|HOME=$T $vim -es -c '%s/.*/0.0005/' -c wq scalars/lr
nano|HOME=$T "$PYTHON" "$top/tests/support/keys.py" 0.001 '\x0b0.0005\x13\x18' nano -I scalars/lr
nano, backup|HOME=$T "$PYTHON" "$top/tests/support/keys.py" 0.001 '\x0b0.0005\x13\x18' nano -IB scalars/lr
ROWS

# Many times the same, as a training loop would.
edit 'rounds'
ok 'rounds: 2000 times written, closed and read back' "$PYTHON" - <<'PYTHON'
import os
for i in range(2000):
    with open("scalars/epoch", "w") as file:
        file.write(f"{i}\n")
    with open("scalars/epoch") as file:
        assert file.read() == f"{i}\n", i
    data = i.to_bytes(4, "little") * (i % 5 + 1)
    with open("tensors/round", "wb") as file:
        file.write(data)
    assert os.stat("tensors/round").st_size == len(data), i
    with open("tensors/round", "rb") as file:
        assert file.read() == data, i
PYTHON
commit 'rounds'
scalar 'rounds' epoch 'UInt 1999'
is 'rounds: the tensor' "$(oracle data "$pack" round | xxd -p)" "$(printf 'cf070000%.0s' 1 2 3 4 5)"

# What text makes of each type.
edit 'texts'
while IFS='|' read -r name text want; do
    ok "texts: '$text' into $name" put "scalars/$name" "$(printf '%b' "$text")"
    is "texts: '$text' into $name reads" "$(cat "scalars/$name")" "$want"
done <<'ROWS'
epoch|0x10|16
epoch|+5|5
epoch| 7 \r\n|7
epoch|18446744073709551615|18446744073709551615
delta|42|42
delta|-9223372036854775808|-9223372036854775808
lr|1e-3|0.001
lr|5|5.0
lr|+5|5.0
lr|inf|inf
lr|-0.0|-0.0
lr|nan|nan
lr|1e300|1e300
done|true|true
ROWS
while IFS='|' read -r name text error; do
    old=$(cat "scalars/$name")
    refused "texts: '$text' into $name" "${!error}" put "scalars/$name" "$(printf '%b' "$text")"
    is "texts: '$text' into $name: the old value stays" "$(cat "scalars/$name")" "$old"
done <<'ROWS'
lr|banana|EINVAL
lr|1.5.2|EINVAL
lr|1e999|ERANGE
epoch|banana|EINVAL
epoch|1.5|EINVAL
epoch|-1|ERANGE
epoch|18446744073709551616|ERANGE
delta|9223372036854775808|ERANGE
done|banana|EINVAL
ROWS
refused 'texts: echo banana says so itself' "write error.*$EINVAL" bash -c 'echo banana >scalars/lr'
refused 'texts: cp of an empty file' "$EINVAL" cp /dev/null scalars/x
bash -c ': >scalars/x' 2>/dev/null
is 'texts: the old value stays' "$(cat scalars/x)" 0.25
commit 'texts'
scalar 'texts' epoch 'UInt 18446744073709551615'
scalar 'texts' delta 'Int -9223372036854775808'
scalar 'texts' lr 'Float 1e300'
scalar 'texts' done 'Bool true'
scalar 'texts' x 'Float 0.25'

# New scalars, and the end of some.
edit 'new scalars'
while read -r name text _; do
    ok "new scalars: $text" put "scalars/$name" "$text
"
done <<'ROWS'
n1 true
n2 1.5
n3 -3
n4 12
n5 5i64
n6 5u64
n7 2f64
n8.deep 1e3
ROWS
refused 'new scalars: a word is none' "$EINVAL" put scalars/bad banana
rm -f scalars/bad
ok 'rm of a scalar' rm scalars/done
ok 'mv of a scalar' mv scalars/epoch scalars/epochs
ok 'mv over a scalar' mv scalars/delta scalars/x
is 'mv keeps the value' "$(cat scalars/epochs)" 3
commit 'new scalars'
for row in n1:'Bool true' n2:'Float 1.5' n3:'Int -3' n4:'UInt 12' n5:'Int 5' n6:'UInt 5' \
    n7:'Float 2.0' n8.deep:'Float 1000.0' bad:none done:none epoch:none \
    epochs:'UInt 3' delta:none; do
    scalar 'new scalars' "${row%%:*}" "${row#*:}"
done

edit 'a scalar without a value'
ok 'a scalar without a value: touch' touch scalars/later
ok 'a scalar without a value is there while mounted' test -e scalars/later
echo 0.5 >scalars/x
commit 'a scalar without a value is left out'
differs 'a scalar without a value' 'M scalars x'

# Metadata.
edit 'metadata'
ok 'metadata: echo takes its newline off' bash -c 'echo vgg >metadata/arch'
ok 'metadata: printf' bash -c 'printf "no newline" >metadata/new.key'
ok 'metadata: one newline only' bash -c 'printf "a\n\n" >metadata/lines'
ok 'metadata: cp is lossless' cp metadata/note.txt metadata/copy
ok 'metadata: sed -i' sed -i 's/two/2/' metadata/note.txt
ok 'metadata: rm' rm metadata/empty
ok 'metadata: an empty value' bash -c 'echo >metadata/blank'
refused 'metadata: what is not UTF-8' "$EILSEQ" put metadata/arch $'\xff\xfe'
is 'metadata: the old value stays' "$(cat metadata/arch)" vgg
ok 'metadata: mv' mv metadata/lines metadata/rows
commit 'metadata'
differs 'metadata' 'M metadata arch
+ metadata blank
+ metadata copy
- metadata empty
+ metadata new.key
M metadata note.txt
+ metadata rows'
is 'metadata: arch' "$(oracle value "$pack" arch; echo .)" vgg.
is 'metadata: new.key' "$(oracle value "$pack" new.key; echo .)" 'no newline.'
is 'metadata: rows' "$(oracle value "$pack" rows; echo .)" $'a\n.'
is 'metadata: copy' "$(oracle value "$pack" copy; echo .)" $'two\nlines.'
is 'metadata: note.txt' "$(oracle value "$pack" note.txt; echo .)" $'2\nlines.'
is 'metadata: blank' "$(oracle value "$pack" blank; echo .)" .

# Scratch files.
fresh edit
before=$(stat -c '%i %y %s' "$pack")
mounted 'scratch files: mount' -o rw "$pack" "$mnt"
for file in scalars/.lr.swp 'tensors/#x#' tensors/encoder/x~ metadata/.DS_Store scalars/4913~; do
    ok "scratch: $file" put "$mnt/$file" 'anything at all'
    is "scratch: $file reads back" "$(cat "$mnt/$file")" 'anything at all'
done
ok 'scratch: rm' rm "$mnt/scalars/.lr.swp"
unmount 'scratch: unmount' "$mnt"
is 'scratch files are no edit' "$(stat -c '%i %y %s' "$pack")" "$before"

# Tensors.
edit 'tensors'
head -c 48 /dev/urandom >"$T/w"
head -c 3000000 /dev/urandom >"$T/large"
ok 'tensors: cp over one' cp "$T/w" tensors/encoder/layer1/weight
ok 'tensors: reads back' cmp "$T/w" tensors/encoder/layer1/weight
ok 'tensors: cp over a large one' cp "$T/large" tensors/big
ok 'tensors: reads back large' cmp "$T/large" tensors/big
is 'tensors: dtype stays' "$(getfattr --only-values -n user.bpk.dtype tensors/encoder/layer1/weight)" F32
ok 'tensors: rm' rm tensors/mask
ok 'tensors: mv' mv tensors/steps tensors/count
ok 'tensors: mv into a folder' mv tensors/none tensors/encoder/none
ok 'tensors: mv of a folder' mv tensors/encoder tensors/decoder
is 'tensors: the folder moved' "$(cd tensors && find decoder encoder -type f 2>/dev/null | sort | tr '\n' ' ')" \
    'decoder/layer1/bias decoder/layer1/weight decoder/layer2/weight decoder/none '
commit 'tensors'
is 'tensors: names, in the order of data' \
    "$(oracle show "$pack" | "$PYTHON" -c 'import json, sys; print(*json.load(sys.stdin)["order"])')" \
    'decoder.layer1.weight decoder.layer1.bias head head.scale big decoder.layer2.weight decoder.none count'
ok 'tensors: new bytes' cmp "$T/w" <(oracle data "$pack" decoder.layer1.weight)
ok 'tensors: new large bytes' cmp "$T/large" <(oracle data "$pack" big)
# The same entries under the old names: what they are must not have changed.
is 'tensors: dtypes, shapes, ids and unknown keys' "$("$PYTHON" - "$top" "$T/base.bpk" "$pack" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/support")
sys.dont_write_bytecode = True
import oracle
old, new = (oracle.show(oracle.Pack(path)) for path in sys.argv[2:])
names = {"count": "steps", "decoder.none": "none"}
for name, tensor in new["tensors"].items():
    was = old["tensors"][names.get(name, name.replace("decoder", "encoder"))]
    for key in ("dtype", "shape", "param_id", "size", "extra"):
        if was[key] != tensor[key]:
            print(name, key, was[key], tensor[key])
    if name not in ("big", "decoder.layer1.weight") and was["sha256"] != tensor["sha256"]:
        print(name, "data")
if old["extra"] != new["extra"]:
    print("extra", old["extra"], new["extra"])
PYTHON
)" ''

# New bytes are on disk, not in memory.
edit 'memory'
high() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${pids[$mnt]}/status"; }
before=$(high)
ok 'memory: 128 MiB are written' dd if=/dev/zero of=tensors/huge bs=1M count=128 status=none
ok 'memory: and in part again' dd if=/dev/urandom of=tensors/huge bs=1M count=8 seek=50 conv=notrunc status=none
ok 'memory: copied within the mount' cp tensors/huge tensors/copy
ok 'memory: the same' cmp tensors/huge tensors/copy
cd /
ok 'memory: committed' "$BPKFS" --commit "$mnt"
grown=$((($(high) - before) / 1024))
if grep -qa __asan_init "$BPKFS"; then
    skip 'memory: stays flat' 'a sanitizer keeps what was freed'
elif [ "$grown" -lt 48 ]; then
    pass 'memory: stays flat'
else
    fail 'memory: stays flat' "$grown MiB more"
fi
unmount 'memory: unmount' "$mnt"

edit 'a wrong length'
head -c 47 "$T/w" >"$T/short"
refused 'a wrong length: close says so' "$EINVAL" cp "$T/short" tensors/encoder/layer1/weight
like 'a wrong length: .bpkfs/changes marks it' "$(cat .bpkfs/changes)" '!.*encoder.*layer1.*weight'
ok 'a wrong length: another edit' bash -c 'echo 9 >scalars/epoch'
commit 'a wrong length' 24 'encoder\.layer1\.weight'
differs 'a wrong length' 'M scalars epoch'

edit 'a wrong length, mended'
refused 'a wrong length again' "$EINVAL" cp "$T/short" tensors/encoder/layer1/weight
ok 'a wrong length, mended' cp "$T/w" tensors/encoder/layer1/weight
commit 'a wrong length, mended'
differs 'a wrong length, mended' 'M tensors encoder.layer1.weight'

# A tensor that moves keeps what describes it, also where no length tells it.
edit 'to a backup name and back'
ok 'to a backup name and back' bash -c 'mv tensors/encoder/layer1/weight tensors/w~ &&
    mv tensors/w~ tensors/encoder/layer1/weight'
is 'back again: dtype' "$(getfattr --only-values -n user.bpk.dtype tensors/encoder/layer1/weight)" F32
is 'back again: shape' "$(getfattr --only-values -n user.bpk.shape tensors/encoder/layer1/weight)" '[4,3]'
commit 'to a backup name and back'
ok 'to a backup name and back: the same pack, byte for byte' cmp "$T/base.bpk" "$pack"

edit 'another name for a removed one'
ok 'mv, then rm' bash -c 'mv tensors/steps tensors/moved && rm tensors/moved'
is 'the change tells the name in the pack' "$(cat .bpkfs/changes)" 'D  tensors/steps'
commit 'another name for a removed one'
differs 'another name for a removed one' '- tensors steps'

cp "$top/tests/data/vectors/golden/04_quantized.bpk" "$T/quantized.bpk"
fresh edit
cp "$T/quantized.bpk" "$pack"
chmod u+w "$pack"
mounted 'quantized: mount' -o rw "$pack" "$mnt"
sum=$(sum "$mnt/tensors/q_default")
dtype=$(getfattr --only-values -n user.bpk.dtype "$mnt/tensors/q_default")
ok 'quantized: mv over one of another length' mv "$mnt/tensors/q_default" "$mnt/tensors/q_native_e4m3"
unmount 'quantized: commit' "$mnt"
mounted 'quantized: mount again' "$pack" "$mnt"
is 'quantized: the bytes moved' "$(sum "$mnt/tensors/q_native_e4m3")" "$sum"
is 'quantized: the scheme moved' \
    "$(getfattr --only-values -n user.bpk.dtype "$mnt/tensors/q_native_e4m3")" "$dtype"
ok 'quantized: the old name is gone' test ! -e "$mnt/tensors/q_default"
unmount 'quantized: unmount' "$mnt"

edit 'not possible'
refused 'symlink' "$EPERM" ln -s lr scalars/link
refused 'hard link' "$EPERM" ln scalars/lr scalars/link
refused 'pipe' "$EPERM" mkfifo scalars/pipe
refused 'across views' "$EXDEV" "$PYTHON" -c 'import os; os.rename("tensors/steps", "scalars/steps")'
refused 'writing the status' "$EACCES" bash -c 'echo >.bpkfs/status'
refused 'other attributes' "$ENOTSUP" setfattr -n user.color -v red tensors/steps
refused 'rm of a section' "$EPERM|$EACCES|busy" rmdir tensors
ok 'chmod' chmod 640 scalars/lr
ok 'touch' touch -d @1600000000 scalars/lr
is 'they last' "$(stat -c '%a %Y' scalars/lr)" '640 1600000000'
ok 'chmod of a folder' chmod 711 tensors
ok 'touch of folders' touch -d @1500000000 tensors .
is 'they last' "$(stat -c '%a %Y' tensors) $(stat -c %Y .)" '711 1500000000 1500000000'
ok 'chmod of a view' chmod 600 index.tsv
is 'of which nothing is seen' "$(stat -c %A index.tsv | tail -c 9)" '--r--r--'
ok 'mkdir and rmdir' bash -c 'mkdir tensors/folder && rmdir tensors/folder'
cd /
unmount 'not possible: unmount' "$mnt"
is 'none of it is an edit' "$(sum "$pack")" "$(sum "$T/base.bpk")"

# fallocate(2), as on a local file. Where the disk cannot do one, neither can the mount.
edit allocate
head -c 20000 /dev/urandom >"$T/local"
ok 'allocate: cp' cp "$T/local" tensors/new
for how in '-l 30000' '-n -l 40000' '-p -o 4096 -l 5000' '-z -o 12000 -l 3000' '-z -n -o 29000 -l 9000' '-x -l 31000'; do
    want=$(fallocate $how "$T/local" 2>&1) status=$?
    got=$(fallocate $how tensors/new 2>&1)
    is "allocate: $how" "$? ${got//"tensors/new"/FILE}" "$status ${want//"$T/local"/FILE}"
    ok "allocate: $how: the bytes" cmp "$T/local" tensors/new
done
refused 'allocate: no more than a tensor may be' 'file too large' fallocate -l 11G tensors/new
ok 'allocate: of a tensor of the pack' fallocate -n -l 4096 tensors/steps
ok 'allocate: it keeps its bytes' cmp <(oracle data "$T/base.bpk" steps) tensors/steps
refused 'allocate: not a scalar' 'unsupported' fallocate -n -l 10 scalars/lr
ok 'allocate: posix_fallocate(3) works all the same' "$PYTHON" -c '
import os
fd = os.open("metadata/allocated", os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 3)'
cd /
unmount 'allocate: unmount' "$mnt"
is 'allocate: committed' "$(oracle data "$pack" new | sha256sum)" "$(sha256sum <"$T/local")"

# Each way to unmount commits.
by_command() { # DESCRIPTION EXPECTED-STATUS COMMAND...
    local name=$1
    shift
    edit "$name"
    echo 0.5 >scalars/x
    cd /
    ok "$name" "$@"
    daemon_ended "$mnt"
    ok "$name: unmounted" "$BPKFS_WAIT_FOR" unmounted "$mnt"
    [ "$BPKFS_MODE" != foreground ] || is "$name: exit status under -f" "$fg_status" 0
    ok "$name: committed" cmp "$T/want.bpk" "$pack"
}
by_command 'fusermount3 -u' fusermount3 -u "$T/edit"
if is_root; then
    by_command 'umount' umount "$T/edit"
else
    skip 'umount' 'needs root'
fi
signal() { kill -s "$1" "${pids[$mnt]}"; }
for name in TERM INT HUP; do by_command "SIG$name" signal "$name"; done

# What a commit keeps.
fresh edit
chmod 604 "$pack"
is_root && chown 12:34 "$pack"
setfattr -n user.note -v kept "$pack" 2>/dev/null
setfacl -m u:1234:r "$pack" 2>/dev/null
was=$(stat -c '%a %u:%g' "$pack"; getfattr --absolute-names -d -m - -e hex "$pack" 2>/dev/null)
mv "$pack" "$T/real.bpk"
ln -s real.bpk "$pack"
mounted 'through a symlink' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/x"
unmount 'through a symlink: commit' "$mnt"
is 'a symlink stays one' "$(readlink "$pack")" real.bpk
ok 'its target is replaced' cmp "$T/want.bpk" "$T/real.bpk"
mv -f "$T/real.bpk" "$pack"
is 'mode, owner, attributes and ACL are kept' \
    "$(stat -c '%a %u:%g' "$pack"; getfattr --absolute-names -d -m - -e hex "$pack" 2>/dev/null)" "$was"

is 'nothing is left beside the packs' "$(ls -A "$T" | grep '^\.')" ''
done_testing
