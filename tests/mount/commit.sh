#!/usr/bin/env bash
# Commits of a mount that goes on being used, edits that survive a kill, and the
# commands for both (SEMANTICS, sections 1 and 4).
. "$(dirname "$0")/lib.sh"

state() { jq -c ".$1" "$mnt/.bpkfs/status"; }
fsync() { "$PYTHON" -c 'import os, sys
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)' "$@"; }
# gone: the daemon is killed, and what is left of its mount cleared.
gone() {
    kill -9 "${pids[$mnt]}"
    daemon_ended "$mnt"
    fusermount3 -u "$mnt"
}
beside() { (cd "$(dirname "$pack")" && ls -A | grep -F ".$(basename "$pack")"); }

# By --commit, by sync(1) of the mount, by fsync of any folder.
fresh commit
mounted 'a writable mount' -o rw "$pack" "$mnt"
inodes=$(cd "$mnt" && find tensors scalars metadata npy -printf '%i %p\n' | sort)
cp "$pack" "$T/old.bpk"
before=$(stat -c '%i %Y' "$pack")
ok '--commit without an edit' "$BPKFS" --commit "$mnt"
is 'writes nothing' "$(stat -c '%i %Y' "$pack")" "$before"
ok 'and leaves the pack as it was' cmp "$pack" "$T/old.bpk"
exec 7<"$mnt/tensors/big" 8<"$mnt/tensors/steps"
echo 0.5 >"$mnt/scalars/lr"
head -c 8 /dev/zero >"$mnt/tensors/steps"
is 'an edit is an edit' "$(state dirty) $(state changes)" 'true 2'
ok '--commit' "$BPKFS" --commit "$mnt"
is 'and then it is none' "$(state dirty) $(state changes) $(state last_error)" 'false 0 null'
is 'the pack has the edits and nothing else' "$(oracle differ "$T/old.bpk" "$pack")" "M tensors steps
M scalars lr"
ok 'the pack opens' valid "$pack"
is 'inode numbers are as before' \
    "$(cd "$mnt" && find tensors scalars metadata npy -printf '%i %p\n' | sort)" "$inodes"
is 'an open file goes on' "$(sum <&7)" "$(oracle data "$T/old.bpk" big | sum)"
is 'one that was edited too' "$(od -An -tu8 <&8 | tr -d ' ')" 0
exec 7<&- 8<&-
is 'offsets are those of the new pack' \
    "$(getfattr --absolute-names --only-values -n user.bpk.offset "$mnt/tensors/big")" \
    "$(jq '.tensors.big.offset' "$mnt/pack.json")"
echo 5 >"$mnt/scalars/epoch"
ok 'sync of the mount commits' sync "$mnt"
is 'which is in the pack' "$(oracle scalar "$pack" epoch)" 'UInt 5'
echo 6 >"$mnt/scalars/epoch"
ok 'fsync of a folder does' fsync "$mnt/tensors/encoder/layer1"
is 'which is in the pack too' "$(oracle scalar "$pack" epoch)" 'UInt 6'
mv "$mnt/tensors/encoder" "$mnt/tensors/enc"
rm "$mnt/tensors/mask" "$mnt/metadata/arch"
printf new >"$mnt/tensors/new"
printf one >"$mnt/metadata/key"
exec 7<"$mnt/tensors/none" 8<"$mnt/tensors/big"
rm "$mnt/tensors/big"
ok 'renamed, removed and made' "$BPKFS" --commit "$mnt"
is 'the whole mount is the pack' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
is 'a removed file that is open reads on' "$(sum <&8)" "$(oracle data "$T/old.bpk" big | sum)"
exec 7<&- 8<&-
cp "$pack" "$T/second.bpk"
unmount 'unmounting has nothing to do' "$mnt"
ok 'and leaves the pack alone' cmp "$pack" "$T/second.bpk"
is 'nothing is left beside it' "$(beside)" ''

# Invalid edits are told and stay.
fresh commit
mounted 'for an invalid edit' -o rw "$pack" "$mnt"
printf short >"$mnt/tensors/steps"
echo 0.5 >"$mnt/scalars/lr"
text=$("$BPKFS" --commit "$mnt" 2>&1)
is '--commit: 24, and a line' "$? $(wc -l <<<"$text")" '24 1'
like 'that names it' "$text" 'steps'
is 'the valid one is in' "$(oracle differ "$T/base.bpk" "$pack")" 'M scalars lr'
is 'the other stays an edit' "$(cat "$mnt/.bpkfs/changes")" 'M! tensors/steps'
like '.bpkfs/status has it' "$(state last_error)" 'steps'
like '--status too' "$("$BPKFS" --status "$mnt")" 'left out'
head -c 8 /dev/zero >"$mnt/tensors/steps"
unmount 'mended, it is committed' "$mnt"
is 'mended, it is in' "$(oracle differ "$T/base.bpk" "$pack")" "M tensors steps
M scalars lr"

# A commit that fails can be tried again.
fresh commit
mounted 'for a commit that fails' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
mv "$pack" "$T/aside.bpk"
cp "$T/aside.bpk" "$pack"
text=$("$BPKFS" --commit "$mnt" 2>&1)
is '--commit of a pack that another one replaced: 23' $? 23
like 'it says why' "$text" 'changed on disk'
refused 'sync says so' 'stale' sync "$mnt"
if [ "$BPKFS_MODE" = foreground ]; then
    like 'and the log' "$(cat "${logs[$mnt]}.err")" 'not committed: .*changed on disk'
fi
ok 'nothing was overwritten' cmp "$pack" "$T/base.bpk"
mv "$T/aside.bpk" "$pack"
ok 'with the right one back it commits' "$BPKFS" --commit "$mnt"
is 'the edit is in' "$(oracle scalar "$pack" lr)" 'Float 0.5'
unmount 'it unmounts' "$mnt"

# A --discard that was killed before the mount went, which is all that its ioctl does,
# drops nothing that is edited later, nor what was before.
fresh commit
mounted 'for half a --discard' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
ok 'half a --discard' "$PYTHON" -c '
import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x40046203, struct.pack("i", 1))' "$mnt"
echo 7 >"$mnt/scalars/epoch"
unmount 'half a --discard: unmount' "$mnt"
is 'half a --discard: both edits are in' "$(oracle scalar "$pack" lr) $(oracle scalar "$pack" epoch)" 'Float 0.5 UInt 7'

# --discard.
fresh commit
mounted 'for --discard' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
fsync "$mnt/scalars/lr"
pid=${pids[$mnt]}
ok '--discard unmounts' "$BPKFS" --discard "$mnt"
ok 'the daemon is gone' "$BPKFS_WAIT_FOR" exited "$pid"
daemon_ended "$mnt"
ok 'the pack is as it was' cmp "$pack" "$T/base.bpk"
is 'nothing is left beside it' "$(beside)" ''

# Killed: what was fsynced comes back.
fresh commit
mounted 'for a kill' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
printf 'some text' >"$mnt/metadata/note"
head -c 5000 /dev/urandom >"$T/bytes"
cp "$T/bytes" "$mnt/tensors/fresh"
head -c 16 "$T/bytes" >"$mnt/tensors/encoder/layer1/bias"
mv "$mnt/tensors/head" "$mnt/tensors/top"
rm "$mnt/tensors/none"
fsync "$mnt/tensors/fresh"
want=$(whole_tree "$mnt")
echo 77 >"$mnt/scalars/lost"
gone
ok 'the pack is as it was' cmp "$pack" "$T/base.bpk"
mounted 'a read-only mount shows the pack' "$pack" "$mnt"
is 'as it is' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
unmount 'it goes' "$mnt"
mounted 'the next writable mount' -o rw "$pack" "$mnt"
like 'says what came back' "$(cat "${logs[$mnt]}.err")" '[0-9] edits that were not committed are back'
is 'and has it all' "$(whole_tree "$mnt")" "$want"
is 'dtype and shape too' \
    "$(getfattr --absolute-names -d -m '^user.bpk.[dsp]' "$mnt/tensors/encoder/layer1/bias" | grep -v '^#')" \
    'user.bpk.dtype="F32"
user.bpk.param_id="9505838338724798577"
user.bpk.shape="[4]"'
gone
mounted 'killed again before it was committed' -o rw "$pack" "$mnt"
is 'it is still there' "$(whole_tree "$mnt")" "$want"
unmount 'it commits' "$mnt"
is 'the pack is what was fsynced' "$(oracle tree "$pack")" "$want"
is 'nothing is left beside it' "$(beside)" ''

# What came after the fsync cannot spoil what it made safe.
fresh commit
mounted 'for a kill in the middle of the next edit' -o rw "$pack" "$mnt"
head -c 24 /dev/urandom >"$T/head"
cp "$T/head" "$mnt/tensors/mask" 2>/dev/null # too long: invalid
for name in head/scale encoder/layer1/bias steps; do
    head -c "$(stat -c %s "$mnt/tensors/$name")" /dev/urandom >"$mnt/tensors/$name"
done
want=$(whole_tree "$mnt")
fsync "$mnt/tensors/steps"
: >"$mnt/tensors/head/scale"             # cp, before it writes
truncate -s 5 "$mnt/tensors/encoder/layer1/bias"
printf more >>"$mnt/tensors/steps"
gone
mounted 'the next writable mount' -o rw "$pack" "$mnt"
is 'emptied, cut and longer ones are as they were' "$(whole_tree "$mnt")" "$want"
text=$("$BPKFS" --commit "$mnt" 2>&1)
is '24: one is invalid and left out' "$?" 24
want=$(whole_tree "$mnt")
gone
mounted 'killed after that commit' -o rw "$pack" "$mnt"
is 'what was left out, and fsynced before, is there' "$(whole_tree "$mnt")" "$want"
unmount '24: it is still left out' "$mnt" 24 mask
is 'nothing is left beside it' "$(beside)" ''

# A pack that is another one by then, and a journal that is damaged.
fresh commit
mounted 'for a kill before the pack is replaced' -o rw "$pack" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
fsync "$mnt/scalars/lr"
gone
cp "$pack" "$T/other.bpk"
mv "$T/other.bpk" "$pack"
bpkfs -o rw "$pack" "$mnt"
is '21: edits of another pack' "$status" 21
like 'it says what to do' "$err" '--discard'
mounted 'a read-only mount is possible' "$pack" "$mnt"
unmount 'it goes' "$mnt"
ok '--discard PACK drops them' "$BPKFS" --discard "$pack"
is 'nothing is left beside it' "$(beside)" ''
mounted 'then it mounts' -o rw "$pack" "$mnt"
refused '--discard PACK is not for a mounted one' 'mounted' "$BPKFS" --discard "$pack"
echo 0.5 >"$mnt/scalars/lr"
fsync "$mnt/scalars/lr"
gone
journal=$(find "$T" -path '*bpkfs/journal')
size=$(stat -c %s "$journal")
for ((i = 0; i < size; i += 3)); do
    cp "$journal" "$T/journal"
    printf '\377' | dd of="$journal" bs=1 seek="$i" conv=notrunc 2>/dev/null
    cmp -s "$journal" "$T/journal" && continue
    if bpkfs -o rw "$pack" "$mnt"; then
        "$BPKFS" --discard "$mnt"
        daemon_ended "$mnt"
        fail '21: a damaged journal' "byte $i"
        break
    fi
    [ "$status" -eq 21 ] || { fail '21: a damaged journal' "byte $i: $status $err"; break; }
    cp "$T/journal" "$journal"
done
is '21: a damaged journal, whichever byte' "$i" "$(((size + 2) / 3 * 3))"
mounted 'the right one again' -o rw "$pack" "$mnt"
is 'brings the edit back' "$(cat "$mnt/scalars/lr")" 0.5
unmount 'it commits' "$mnt"

# Readers go on while commits come.
fresh commit
mounted 'for readers during commits' -o rw "$pack" "$mnt"
ok '32 readers while 20 commits are made' "$PYTHON" - "$mnt" "$BPKFS" <<'PYTHON'
import hashlib, mmap, os, subprocess, sys, threading
mnt, bpkfs = sys.argv[1:]
path = os.path.join(mnt, "tensors/big")
want = hashlib.sha256(open(path, "rb").read()).digest()
stop, wrong = threading.Event(), []
def read(k):
    fd = os.open(path, os.O_RDONLY)
    view = mmap.mmap(fd, 0, prot=mmap.PROT_READ, flags=mmap.MAP_SHARED if k % 2 else mmap.MAP_PRIVATE)
    size, rounds = len(view), 0
    while not stop.is_set() or not rounds:
        at = (k * 7919 + rounds * 104729) % (size - 4096)
        if os.pread(fd, 4096, at) != first[at:at + 4096] or view[at:at + 4096] != first[at:at + 4096]:
            wrong.append((k, at))
            return
        if k % 8 == 0 and hashlib.sha256(open(path, "rb").read()).digest() != want:
            wrong.append((k, "whole"))
            return
        rounds += 1
    view.close()
    os.close(fd)
first = open(path, "rb").read()
threads = [threading.Thread(target=read, args=(k,)) for k in range(32)]
for thread in threads:
    thread.start()
try:
    for k in range(20):
        with open(os.path.join(mnt, "scalars/epoch"), "w") as file:
            file.write(f"{k}\n")
        with open(os.path.join(mnt, "tensors", "new%d" % k), "wb") as file:
            file.write(b"x" * k)
        subprocess.run([bpkfs, "--commit", mnt], check=True)
finally:
    stop.set()
    for thread in threads:
        thread.join()
assert not wrong, wrong
PYTHON
unmount 'it unmounts' "$mnt"
is 'the last commit is in the pack' "$(oracle scalar "$pack" epoch)" 'UInt 19'

# What a commit moves to another place in the pack, and somebody keeps: a file that is
# open for writing and not written, and a tensor that is a scratch file meanwhile.
fresh commit
mounted 'for what is kept over a commit' -o rw "$pack" "$mnt"
exec 7<>"$mnt/tensors/steps"
mv "$mnt/tensors/none" "$mnt/tensors/.none"
rm "$mnt/tensors/big" "$mnt/tensors/mask"
ok 'a commit that leaves others out' "$BPKFS" --commit "$mnt"
is 'what is open for writing reads as before' \
    "$(sum <"$mnt/tensors/steps")" "$(oracle data "$T/base.bpk" steps | sum)"
exec 7>&-
mv "$mnt/tensors/.none" "$mnt/tensors/none"
ok 'what was a scratch file meanwhile can be fsynced' sync "$mnt/tensors/none"
kill -9 "${pids[$mnt]}"
daemon_ended "$mnt"
fusermount3 -u "$mnt"
mounted 'it comes back after a kill' -o rw "$pack" "$mnt"
unmount 'and is committed' "$mnt"
is 'both are what they were' "$(oracle tensor "$pack" none steps)" \
    "$(oracle tensor "$T/base.bpk" none steps)"

# Mode and times are no part of a pack and last over commits all the same, of what was
# edited and of what was not.
fresh commit
mounted 'for modes and times' -o rw "$pack" "$mnt"
head -c 8 /dev/urandom >"$T/steps"
touch -d @1500000000 "$T/steps"
ok 'cp -p over a tensor' cp -p "$T/steps" "$mnt/tensors/steps"
ok 'and of a new one' cp -p "$T/steps" "$mnt/tensors/fresh"
ok 'chmod of one that is not edited' chmod 604 "$mnt/tensors/head"/* "$mnt/tensors/steps"
ok 'touch of text' touch -d @1400000000 "$mnt/scalars/lr" "$mnt/metadata/arch"
echo 9 >"$mnt/scalars/epoch"
attributes() { # a time that was not set is the pack's, which is another one then
    (cd "$mnt" && find . ! -path './.bpkfs/*' -type f \( -perm 604 -o -newermt @0 ! -newermt @1500000001 \) \
        -printf '%P %i %m %Ts\n' | awk '$4 > 1500000000 { $4 = "the pack" } 1' | sort)
}
want=$(attributes)
like 'they are set' "$want" 'metadata/arch .*1400000000'
is 'all of them' "$(cut -d' ' -f3 <<<"$want" | grep -c 604)" 6
for round in first second; do
    ok "the $round commit" "$BPKFS" --commit "$mnt"
    is "they last over the $round commit" "$(attributes)" "$want"
    is "and are no edit after the $round" "$(state dirty) $(cat "$mnt/.bpkfs/changes")" 'false '
    before=$(stat -c '%i %Y' "$pack")
    ok "a commit after the $round has nothing to do" "$BPKFS" --commit "$mnt"
    is "and writes nothing after the $round" "$(stat -c '%i %Y' "$pack")" "$before"
    is "the pack has the bytes of the $round" "$(oracle data "$pack" steps | sum)" "$(sum "$T/steps")"
    # What comes behind it has another place in the next pack.
    [ "$round" = second ] || rm "$mnt/tensors/mask"
done
head -c 8 /dev/urandom >"$mnt/tensors/steps"
echo 0.125 >"$mnt/scalars/lr"
want=$(whole_tree "$mnt")
unmount 'edited again, they are committed' "$mnt"
is 'the pack is what was in the mount' "$(oracle tree "$pack")" "$want"
is 'with the types of before' "$(oracle scalar "$pack" lr) $(oracle tensor "$pack" fresh | cut -d' ' -f1-3)" \
    'Float 0.125 fresh U8 [8]'

# A file that stays open for writing is no edit once what was written is committed.
fresh commit
mounted 'for a file that stays open for writing' -o rw "$pack" "$mnt"
exec 7<>"$mnt/tensors/steps" 8>"$mnt/tensors/log" 9<>"$mnt/npy/mask.npy"
head -c 8 /dev/zero >&7
printf one >&8
ok 'a commit while it is open' "$BPKFS" --commit "$mnt"
is 'it is no edit' "$(state dirty) $(cat "$mnt/.bpkfs/changes")" 'false '
before=$(stat -c '%i %Y' "$pack")
ok 'the next commit has nothing to do' "$BPKFS" --commit "$mnt"
is 'and writes nothing' "$(stat -c '%i %Y' "$pack")" "$before"
is 'no bytes are staged any more' "$(find "$T/.commit.bpk.bpkfs" -name '[0-9]*' | wc -l)" 0
printf two >&8
is 'the next write is one' "$(cat "$mnt/.bpkfs/changes")" 'M  tensors/log'
ok 'fsync' fsync "$mnt/tensors/log"
kill -9 "${pids[$mnt]}"
daemon_ended "$mnt"
exec 7>&- 8>&- 9>&-
fusermount3 -u "$mnt"
mounted 'killed, it comes back' -o rw "$pack" "$mnt"
is 'behind what was committed' "$(cat "$mnt/tensors/log")" onetwo
unmount 'and is committed' "$mnt"
is 'all of it is in the pack' \
    "$(oracle data "$pack" log) $(oracle data "$pack" steps | od -An -tu8 | tr -d ' ')" 'onetwo 0'

# A staging folder that somebody removes: what is open goes into the pack all the same.
fresh commit
mounted 'for a staging folder that is removed' -o rw "$pack" "$mnt"
put "$mnt/tensors/new" new
rm -rf "$T/.commit.bpk.bpkfs"
ok 'a commit without one' "$BPKFS" --commit "$mnt"
put "$mnt/scalars/epoch" 11
unmount 'and another at unmount' "$mnt"
is 'all of it is in the pack' "$(oracle data "$pack" new) $(oracle scalar "$pack" epoch)" 'new UInt 11'
is 'and no folder stays' "$(staging_folders)" ''

# Something else under the name of the scratch file: a folder is left alone and is not in
# the way, what a link leads to neither. The same where the scratch file is beside the pack.
declare -A elsewhere=([beside]=)
if is_root && tmpfs "$T/elsewhere" size=8m; then elsewhere[elsewhere]=,staging=$T/elsewhere; fi
for where in "${!elsewhere[@]}"; do
    fresh commit
    mounted "$where: for a scratch name that is taken" -o "rw${elsewhere[$where]}" "$pack" "$mnt"
    name=$T/.commit.bpk.bpkfs/new-pack
    [ "$where" = beside ] || name=$T/.commit.bpk.bpkfs-new
    mkdir -p "$name" "$name.1/empty" "$T/outside"
    echo kept | tee "$name/file" >"$T/outside/file"
    put "$mnt/scalars/epoch" 21
    ok "$where: a commit with a folder there" "$BPKFS" --commit "$mnt"
    is "$where: the pack has the edit" "$(oracle scalar "$pack" epoch)" 'UInt 21'
    is "$where: the folders are as they were" "$(cd "$name" && find . ../"${name##*/}".* | sort | tr '\n' ' ')$(cat "$name/file")" \
        ". ../${name##*/}.1 ../${name##*/}.1/empty ./file kept"
    rm -r "$name" "$name.1"
    epoch=21
    for target in "$T/outside" "$T/outside/file" "$T/nowhere"; do
        ln -sfn "$target" "$name"
        put "$mnt/scalars/epoch" $((++epoch))
        ok "$where: a commit with a link to ${target##*/} there" "$BPKFS" --commit "$mnt"
        is "$where: it leads on, and is gone" "$(find "$T/outside" | wc -l) $(cat "$T/outside/file") $(ls "$T/nowhere" "$name" 2>/dev/null)" '2 kept '
    done
    mkdir "$name"
    put "$mnt/scalars/epoch" 30
    unmount "$where: and the commit at unmount" "$mnt"
    is "$where: the pack has that edit, too" "$(oracle scalar "$pack" epoch)" 'UInt 30'
    rmdir "$name"
    [ "$where" = elsewhere ] || rmdir "$T/.commit.bpk.bpkfs"
    is "$where: nothing else is left" "$(beside)" ''
done

# Staged bytes that somebody takes away from outside are no zeros: a commit fails, and so
# does who reads them, until the tensor is written anew.
fresh commit
mounted 'for staged bytes that are lost' -o rw "$pack" "$mnt"
head -c 5000 /dev/urandom >"$T/bytes"
for name in cut filled whole npy; do cp "$T/bytes" "$mnt/tensors/$name"; done
cp "$T/bytes" "$mnt/tensors/.scratch"
exec 7<"$mnt/tensors/cut" 8<>"$mnt/tensors/cut"
fsync "$mnt/tensors/cut"
find "$T/.commit.bpk.bpkfs" -name '[0-9]*' -size 5000c -exec truncate -s 100 {} +
cp "$T/bytes" "$mnt/tensors/whole"
is 'a file is as long as it was' "$(stat -c %s "$mnt/tensors/cut")" 5000
eio='input/output error'
for path in tensors/cut tensors/.scratch npy/cut.npy pack.safetensors; do
    refused "reading $path says so" "$eio" cat "$mnt/$path"
done
refused 'an open file too' "$eio" cat <&7
refused 'fsync' "$eio" sync "$mnt/tensors/cut"
refused 'a write behind the gap' "$eio" dd if="$T/bytes" of="$mnt/tensors/cut" bs=10 count=1 seek=400 conv=notrunc
refused 'making it longer' "$eio" truncate -s 6000 "$mnt/tensors/cut"
refused 'fallocate' "$eio" fallocate -l 6000 "$mnt/tensors/cut"
echo 12 >"$mnt/scalars/epoch"
text=$("$BPKFS" --commit "$mnt" 2>&1)
is '--commit: 22, and a line' "$? $(wc -l <<<"$text")" '22 1'
like 'that names the tensor, and what is left' "$text" 'not committed: tensor "?cut"? has lost bytes: of 5000 there are 100'
ok 'the pack is untouched' cmp "$pack" "$T/base.bpk"
rm "$mnt/tensors/npy"
ok 'written from the front it is mended' dd if="$T/bytes" of="$mnt/tensors/filled" bs=1000 conv=notrunc
ok 'and read' cmp "$T/bytes" "$mnt/tensors/filled"
exec 7<&- 8<&-
unmount '22: unmounting says it, too' "$mnt" 22 'tensor "?cut"? has lost bytes.*kept for the next writable mount'
mounted 'the next mount has the edits' -o rw "$pack" "$mnt"
is 'all of them' "$(cat "$mnt/scalars/epoch") $(sum "$mnt/tensors/whole" "$mnt/tensors/filled" | uniq)" "12 $(sum "$T/bytes")"
refused 'what was lost is lost still' "$eio" cat "$mnt/tensors/cut"
ok 'what is made shorter than that is mended' truncate -s 60 "$mnt/tensors/cut"
unmount 'and committed' "$mnt"
is 'what is left of it' "$(oracle data "$pack" cut | sum) $(oracle scalar "$pack" epoch)" \
    "$(head -c 60 "$T/bytes" | sum) UInt 12"
is 'nothing is left beside it' "$(beside)" ''

# Anything at all, against a model. BPKFS_TEST_EDITS: how much of it.
fresh random
flags=
[ "$BPKFS_THREADS" = multi ] || flags=-s
for seed in ${BPKFS_TEST_SEEDS:-1 $((RANDOM + 1000))}; do
    is "random edits, seed $seed" "$(BPKFS_FLAGS=$flags timeout 300 "$PYTHON" -I \
        "$top/tests/support/random_edits.py" "$BPKFS" "$BPKFS_WAIT_FOR" "$T/random.bpk" "$mnt" \
        "$seed" "${BPKFS_TEST_EDITS:-120}" 2>&1)" ''
    if is_mounted "$mnt"; then
        kill -9 "$(daemon_of "$mnt")"
        fusermount3 -u -z "$mnt"
        rm -rf "$T/.random.bpk.bpkfs"
    fi
done

# What they say where nothing is mounted.
for command in --commit --discard --status; do
    text=$("$BPKFS" "$command" "$mnt" 2>&1)
    is "10: $command where nothing is mounted" "$? $(wc -l <<<"$text")" '10 1'
done
mounted 'a read-only mount' "$pack" "$mnt"
ok '--commit of a read-only mount does nothing' "$BPKFS" --commit "$mnt"
ok 'sync of one too' sync "$mnt"
like '--status tells of one' "$("$BPKFS" --status "$mnt")" '"mode":"ro"'
unmount 'it goes' "$mnt"
done_testing
