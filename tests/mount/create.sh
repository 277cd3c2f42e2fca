#!/usr/bin/env bash
# Where commits go: a new pack (-o create), another one (-o output), and who else may
# write there (SEMANTICS, sections 1 and 4).
. "$(dirname "$0")/lib.sh"

fsync() { "$PYTHON" -c 'import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
os.fsync(fd)' "$1"; }
gone() {
    kill -9 "${pids[$mnt]}"
    daemon_ended "$mnt"
    fusermount3 -u "$mnt"
}
dir=$T/dir mnt=$T/mnt
start() { rm -rf "$dir"; mkdir -p "$dir" "$mnt"; }
inside() { (cd "$dir" && find . -mindepth 1 | sort | tr '\n' ' '); }

# The command line.
start
cp "$T/base.bpk" "$dir/base.bpk"
before=$(stat -c '%i %Y %Z' "$dir/base.bpk")
cannot 1 'create.*rw' 'create without rw' -o create "$dir/new.bpk" "$mnt"
cannot 1 'output.*rw' 'output without rw' -o "output=$dir/out.bpk" "$dir/base.bpk" "$mnt"
cannot 1 'output.*rw' 'of ro and rw the later counts' -o "rw,output=$dir/out.bpk,ro" "$dir/base.bpk" "$mnt"
cannot 1 'create.*output' 'create and output' -o "rw,create,output=$dir/out.bpk" "$dir/new.bpk" "$mnt"
cannot 1 'overwrite' 'overwrite without output' -o rw,overwrite "$dir/base.bpk" "$mnt"
cannot 1 'output.*empty' 'an output without a name' -o rw,output= "$dir/base.bpk" "$mnt"
cannot 11 'base.*there already.*create' 'create of a pack that is there' -o rw,create "$dir/base.bpk" "$mnt"
cannot 11 'base.*there already' 'by its name without extension' -o rw,create "$dir/base" "$mnt"
cannot 11 'no/new.bpk.*no such' 'create in a folder that is not there' -o rw,create "$dir/no/new.bpk" "$mnt"
cannot 11 'there already' 'create of a folder' -o rw,create "$dir/" "$mnt"
ln -s nowhere.bpk "$dir/link.bpk"
cannot 11 'link.*nowhere' 'create of a symlink that leads nowhere' -o rw,create "$dir/link.bpk" "$mnt"
cannot 11 'link.*nowhere' 'likewise without extension' -o rw,create "$dir/link" "$mnt"
cannot 11 'link.*nowhere' 'as the output too' -o "rw,overwrite,output=$dir/link" "$dir/base.bpk" "$mnt"
mkdir "$dir/plain"
cannot 11 'there already' 'create where a folder is' -o rw,create "$dir/plain" "$mnt"
cannot 11 'plain.*director' 'a folder as the output' -o "rw,overwrite,output=$dir/plain" "$dir/base.bpk" "$mnt"
mkfifo "$dir/fifo"
cannot 11 'fifo.*regular' 'a pipe as the output' -o "rw,overwrite,output=$dir/fifo" "$dir/base.bpk" "$mnt"
cp "$T/base.bpk" "$dir/out.bpk"
cannot 11 'out.*overwrite' 'an output that is there' -o "rw,output=$dir/out.bpk" "$dir/base.bpk" "$mnt"
cannot 11 'out.*overwrite' 'by its name without extension' -o "rw,output=$dir/out" "$dir/base.bpk" "$mnt"
ln "$dir/base.bpk" "$dir/hard.bpk"
ln -s base.bpk "$dir/soft.bpk"
before=$(stat -c '%i %Y' "$dir/base.bpk")
for name in base.bpk base hard.bpk soft.bpk ../dir/./base.bpk; do
    cannot 1 'output.*pack itself' "the pack itself as the output, as $name" \
        -o "rw,overwrite,output=$dir/$name" "$dir/base.bpk" "$mnt"
done
is 'the pack was not touched' "$(stat -c '%i %Y' "$dir/base.bpk") $(sum "$dir/base.bpk")" "$before $(sum "$T/base.bpk")"

# A new pack.
start
umask 027
mounted 'create: mount' -o rw,create "$dir/new" "$mnt"
umask 022
is 'create: the mount is empty' "$(whole_tree "$mnt" | grep -cE '^(tensors|scalars|metadata|npy)/')" 0
is 'create: owner and mode are those of a new file' "$(stat -c '%u %g %A' "$mnt/tensors")" "$(id -u) $(id -g) drwxr-x---"
ok 'create: --commit without an edit' "$BPKFS" --commit "$mnt"
mkdir "$mnt/tensors/folder"
echo scratch >"$mnt/tensors/.scratch"
unmount 'create: nothing that lasts was made' "$mnt"
is 'create: nothing is written' "$(inside)" ''
umask 027
mounted 'create: again' -o rw,create "$dir/new" "$mnt"
umask 022
echo 0.5 >"$mnt/scalars/lr"
ok 'create: the pack comes with the first commit' test ! -e "$dir/new.bpk"
ok 'create: --commit' "$BPKFS" --commit "$mnt"
is 'create: it is there' "$(oracle scalar "$dir/new.bpk" lr)" 'Float 0.5'
is 'create: with the mode of a new file' "$(stat -c %a "$dir/new.bpk")" 640
chmod 604 "$dir/new.bpk"
printf abcd >"$mnt/tensors/w"
ok 'create: another commit goes over it' "$BPKFS" --commit "$mnt"
is 'create: and keeps its mode' "$(stat -c %a "$dir/new.bpk")" 604
rm "$mnt/scalars/lr"
unmount 'create: unmount' "$mnt"
is 'create: all of it is in the pack' "$(oracle show "$dir/new.bpk" | jq -c '.order, .scalars')" '["w"]
{}'
is 'create: nothing else' "$(inside)" './new.bpk '
ok 'create: the library opens it' valid "$dir/new.bpk"

# Somebody else makes it meanwhile.
for how in file symlink; do
    start
    mounted "create, a $how comes: mount" -o rw,create "$dir/new.bpk" "$mnt"
    echo 0.5 >"$mnt/scalars/lr"
    if [ $how = file ]; then cp "$T/base.bpk" "$dir/new.bpk"; else ln -s nowhere "$dir/new.bpk"; fi
    text=$("$BPKFS" --commit "$mnt" 2>&1)
    is "create, a $how comes: --commit: 23" $? 23
    like "create, a $how comes: it says why" "$text" 'new.bpk.*somebody else made it'
    unmount "create, a $how comes: unmount says what to do" "$mnt" 23 \
        "somebody else made it.*moved away.*-o create.*$dir/.new.bpk.bpkfs"
    [ $how = symlink ] || ok "create, a $how comes: it was not overwritten" cmp "$dir/new.bpk" "$T/base.bpk"
    [ $how = file ] || is "create, a $how comes: it leads where it did" "$(readlink "$dir/new.bpk")" nowhere
    if [ $how = file ]; then
        cannot 21 'new pack.*-o create.*bpkfs --discard' 'a plain mount of it says what to do' \
            -o rw "$dir/new.bpk" "$mnt"
        cannot 11 'there already' 'create refuses it still' -o rw,create "$dir/new.bpk" "$mnt"
    fi
    mv "$dir/new.bpk" "$T/away"
    mounted "create, a $how comes: with that moved away" -o rw,create "$dir/new.bpk" "$mnt"
    is "create, a $how comes: the edit is back" "$(cat "$mnt/scalars/lr")" 0.5
    unmount "create, a $how comes: unmount" "$mnt"
    is "create, a $how comes: the edit is in" "$(oracle scalar "$dir/new.bpk" lr)" 'Float 0.5'
    rm -f "$T/away"
done

# Killed.
start
mounted 'create, killed: mount' -o rw,create "$dir/new.bpk" "$mnt"
head -c 5000 /dev/urandom >"$T/bytes"
cp "$T/bytes" "$mnt/tensors/w"
fsync "$mnt/tensors/w"
gone
ok 'create, killed: no pack' test ! -e "$dir/new.bpk"
cannot 11 'no such.*edits.*-o create' 'without create it is told what waits' -o rw "$dir/new" "$mnt"
if is_root && [ -n "${BPKFS_AT_SYSCALL:-}" ] && "$BPKFS_AT_SYSCALL" fail mount 22 true; then
    BPKFS_UNDER="$BPKFS_AT_SYSCALL fail mount 22" bpkfs -o rw,create "$dir/new" "$mnt"
    is '10: a mount that fails' "$status" 10
else
    skip '10: a mount that fails' 'needs root and seccomp'
fi
mounted 'create, killed: again' -o rw,create "$dir/new" "$mnt"
like 'create, killed: says what came back' "$(cat "${logs[$mnt]}.err")" '1 edit that was not committed is back'
ok 'create, killed: the bytes are back' cmp "$T/bytes" "$mnt/tensors/w"
ok 'create, killed: --commit' "$BPKFS" --commit "$mnt"
echo 3 >"$mnt/scalars/n"
fsync "$mnt/scalars/n"
gone
mounted 'create, killed behind a commit: it is a pack as others' -o rw "$dir/new.bpk" "$mnt"
is 'create, killed behind a commit: all is there' "$(cat "$mnt/scalars/n") $(sum "$mnt/tensors/w")" "3 $(sum "$T/bytes")"
unmount 'create, killed behind a commit: unmount' "$mnt"
is 'create, killed: nothing else' "$(inside)" './new.bpk '
start
mounted 'create, discarded: mount' -o rw,create "$dir/new.bpk" "$mnt"
echo 3 >"$mnt/scalars/n"
fsync "$mnt/scalars/n"
gone
ok 'create, discarded: without a pack and an extension' "$BPKFS" --discard "$dir/new"
is 'create, discarded: nothing is left' "$(inside)" ''
text=$("$BPKFS" --discard "$dir/new" 2>&1)
is 'create, discarded: there is nothing more to' "$? $(wc -l <<<"$text")" '10 1'

# Edits go elsewhere.
start
cp "$T/base.bpk" "$dir/in.bpk"
chmod 440 "$dir/in.bpk"
mkdir "$dir/a,b"
before=$(stat -c '%i %Y %Z' "$dir/in.bpk")
cd "$dir" || exit 1
mounted 'output: a relative path with a comma' -o 'rw,output=a\,b/out' in "$mnt"
cd /
is 'output: .bpkfs/status says both' "$(jq -c '[.pack, .output]' "$mnt/.bpkfs/status")" "[\"$dir/in.bpk\",\"$dir/a,b/out.bpk\"]"
is 'output: the mount table has the pack' "$(findmnt -rno SOURCE "$mnt")" "$dir/in.bpk"
ok 'output: --commit without an edit' "$BPKFS" --commit "$mnt"
ok 'output: writes nothing' test ! -e "$dir/a,b/out.bpk"
echo 0.5 >"$mnt/scalars/lr"
ok 'output: --commit' "$BPKFS" --commit "$mnt"
is 'output: the edit is in it' "$(oracle differ "$T/base.bpk" "$dir/a,b/out.bpk")" 'M scalars lr'
is 'output: its mode is that of the pack, and the owner can write' "$(stat -c '%a %u' "$dir/a,b/out.bpk")" "640 $(id -u)"
is 'output: offsets are those of the new pack' "$(jq .file_size "$mnt/pack.json")" "$(stat -c %s "$dir/a,b/out.bpk")"
inode=$(stat -c %i "$dir/a,b/out.bpk")
ok 'output: --commit again without an edit' "$BPKFS" --commit "$mnt"
is 'output: writes nothing' "$(stat -c %i "$dir/a,b/out.bpk")" "$inode"
mv "$dir/in.bpk" "$dir/moved.bpk"
rm "$mnt/tensors/mask"
unmount 'output: it goes on over the new one' "$mnt"
is 'output: with all edits' "$(oracle differ "$T/base.bpk" "$dir/a,b/out.bpk")" '- tensors mask
M scalars lr'
is 'output: nothing else is left' "$(inside)" './a,b ./a,b/out.bpk ./moved.bpk '
ok 'output: the library opens it' valid "$dir/a,b/out.bpk"
mv "$dir/moved.bpk" "$dir/in.bpk"

# Over one that is there.
cp "$T/base.bpk" "$dir/out.bpk"
chmod 604 "$dir/out.bpk"
setfattr -n user.note -v mine "$dir/out.bpk" 2>/dev/null
ln -s out.bpk "$dir/link.bpk"
sum=$(sum "$dir/out.bpk")
mounted 'overwrite: mount' -o "rw,output=$dir/link,overwrite" "$dir/in.bpk" "$mnt"
unmount 'overwrite: without an edit' "$mnt"
is 'overwrite: nothing is written' "$(sum "$dir/out.bpk")" "$sum"
mounted 'overwrite: again' -o "rw,output=$dir/link,overwrite" "$dir/in.bpk" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
is 'overwrite: it is as it was until the commit' "$(sum "$dir/out.bpk")" "$sum"
unmount 'overwrite: unmount' "$mnt"
is 'overwrite: the edit is in it' "$(oracle differ "$T/base.bpk" "$dir/out.bpk")" 'M scalars lr'
is 'overwrite: it keeps its mode and xattrs' "$(stat -c %a "$dir/out.bpk") $(getfattr --absolute-names --only-values -n user.note "$dir/out.bpk" 2>/dev/null)" \
    '604 mine'
is 'overwrite: the symlink stays one' "$(readlink "$dir/link.bpk")" out.bpk
printf text >"$dir/notes"
mounted 'overwrite: of what is no pack' -o "rw,output=$dir/notes,overwrite" "$dir/in.bpk" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
printf more >>"$dir/notes"
unmount 'overwrite: what changed since is not replaced' "$mnt" 23 'notes.*changed on disk since.*kept for the next mount with this output'
is 'overwrite: it is as it was changed' "$(cat "$dir/notes")" textmore
mounted 'overwrite: the next mount' -o "rw,output=$dir/notes,overwrite" "$dir/in.bpk" "$mnt"
is 'overwrite: has the edit' "$(cat "$mnt/scalars/lr")" 0.5
unmount 'overwrite: and replaces it' "$mnt"
is 'overwrite: the edit is in' "$(oracle differ "$T/base.bpk" "$dir/notes")" 'M scalars lr'

# Others meanwhile: a new output that comes into being, a pack that changes under it.
mounted 'output, one comes: mount' -o "rw,output=$dir/other" "$dir/in.bpk" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
cp "$T/base.bpk" "$dir/other.bpk"
unmount 'output, one comes: unmount' "$mnt" 23 'other.bpk.*somebody else made it.*-o overwrite'
ok 'output, one comes: it was not overwritten' cmp "$dir/other.bpk" "$T/base.bpk"
mounted 'output, one comes: with overwrite' -o "rw,output=$dir/other,overwrite" "$dir/in.bpk" "$mnt"
is 'output, one comes: the edit is back' "$(cat "$mnt/scalars/lr")" 0.5
fsync "$mnt/scalars/lr"
gone
cannot 21 'other.bpk.*another one now' 'output, one comes: a mount of that one does not get it' \
    -o rw "$dir/other.bpk" "$mnt"
ok 'output, one comes: --discard takes the output' "$BPKFS" --discard "$dir/other"
cp "$T/base.bpk" "$dir/base.bpk"
mounted 'output, the pack changes: mount' -o "rw,output=$dir/third" "$dir/base.bpk" "$mnt"
echo 0.5 >"$mnt/scalars/lr"
printf x >>"$dir/base.bpk"
unmount 'output, the pack changes: unmount' "$mnt" 23 "third.*$dir/base.bpk was changed in place.*kept-edits"
ok 'output, the pack changes: nothing was written' test ! -e "$dir/third.bpk"
ok 'output, the pack changes: --discard' "$BPKFS" --discard "$dir/third"
is 'output: the pack was not touched in all this' "$(stat -c '%i %Y' "$dir/in.bpk") $(sum "$dir/in.bpk")" "${before% *} $(sum "$T/base.bpk")"

# The pack lies where nothing can be written.
start
if is_root && tmpfs "$T/ro"; then
    cp "$T/base.bpk" "$T/ro/p.bpk"
    mount -o remount,ro "$T/ro"
    mounted 'output of a pack on a read-only disk' -o "rw,output=$dir/out" "$T/ro/p.bpk" "$mnt"
    printf 'ABCDEFGH' | dd of="$mnt/tensors/big" conv=notrunc status=none
    unmount 'output of a pack on a read-only disk: unmount' "$mnt"
    is 'output of a pack on a read-only disk: is written' "$(oracle differ "$T/base.bpk" "$dir/out.bpk")" 'M tensors big'
    cannot 21 'ro.*read-only' 'an output on a read-only disk' -o "rw,output=$T/ro/out" "$dir/out.bpk" "$mnt"
    cannot 21 'ro.*read-only' 'a new pack on a read-only disk' -o rw,create "$T/ro/out" "$mnt"
else
    skip 'output of a pack on a read-only disk' 'needs root'
fi

# One writer, by whatever name and staging folder.
start
mkdir "$dir/elsewhere" "$dir/staging"
cp "$T/base.bpk" "$dir/p.bpk"
ln "$dir/p.bpk" "$dir/elsewhere/hard.bpk"
second=$T/second
mounted 'one writer: the first' -o rw "$dir/p.bpk" "$mnt"
named="writable by process ${pids[$mnt]}"
# The kernel tells the holder of a lock by device, which not every file system has.
[[ $(cat /proc/locks) == *" ${pids[$mnt]} "*:$(stat -c %i "$dir/p.bpk")\ * ]] && [ "$(stat -c %t "$dir")" ] || named=writable
cannot 20 "hard.bpk.*$named" 'a hard link in another folder' -o rw "$dir/elsewhere/hard.bpk" "$second"
cannot 20 "p.bpk.*$named" 'another staging folder' -o "rw,staging=$dir/staging" "$dir/p.bpk" "$second"
cannot 20 "hard.bpk.*$named" 'as the output of another one' -o "rw,overwrite,output=$dir/elsewhere/hard.bpk" "$T/base.bpk" "$second"
mounted 'a reader beside it' "$dir/elsewhere/hard.bpk" "$second"
unmount 'it goes' "$second"
mounted 'its content can be the start of another one' -o "rw,output=$dir/copy" "$dir/p.bpk" "$second"
echo 0.25 >"$second/scalars/lr"
unmount 'which is written' "$second"
echo 0.5 >"$mnt/scalars/lr"
ok 'one writer: --commit' "$BPKFS" --commit "$mnt"
cannot 20 "p.bpk.*writable" 'the new pack has that writer too' -o "rw,staging=$dir/staging" "$dir/p.bpk" "$second"
mounted 'the old one has none' -o rw "$dir/elsewhere/hard.bpk" "$second"
unmount 'it goes again' "$second"
unmount 'one writer: the first goes' "$mnt"
mounted 'another may come' -o "rw,staging=$dir/staging" "$dir/p.bpk" "$mnt"
cannot 20 "p.bpk.*writable" 'with its staging folder beside the pack' -o rw "$dir/p.bpk" "$second"
echo 0.75 >"$mnt/scalars/lr"
fsync "$mnt/scalars/lr"
gone
mounted 'a lock ends with its daemon' -o "rw,staging=$dir/staging" "$dir/p.bpk" "$mnt"
is 'and the edit is back' "$(cat "$mnt/scalars/lr")" 0.75
fsync "$mnt/scalars/lr"
gone

if command -v flock >/dev/null; then
    exec 9<"$dir/p.bpk"
    flock -s 9
    cannot 20 'p.bpk.*writable' 'a pack that somebody locked' -o rw "$dir/p.bpk" "$second"
    mounted 'which can be read' "$dir/p.bpk" "$second"
    unmount 'it goes' "$second"
    exec 9<&-
fi

# --discard of what is left elsewhere.
text=$("$BPKFS" --discard "$dir/p" 2>&1)
is '--discard: beside the pack nothing is left' "$? $text" "0 bpkfs: $dir/p.bpk: no edits are left of an earlier mount"
cp "$dir/p.bpk" "$dir/q.bpk"
mv "$dir/q.bpk" "$dir/p.bpk"
cannot 21 "bpkfs --discard -o staging=$dir/staging $dir/p.bpk" 'a mount says where to' -o "rw,staging=$dir/staging" "$dir/p" "$mnt"
ok '--discard -o staging' "$BPKFS" --discard -o "staging=$dir/staging" "$dir/p"
is '--discard -o staging: it is empty' "$(ls -A "$dir/staging")" ''
mounted '--discard -o staging: the pack mounts' -o "rw,staging=$dir/staging" "$dir/p" "$mnt"
is '--discard -o staging: without the edit' "$(cat "$mnt/scalars/lr")" 0.5
refused '--discard -o staging: of one that is mounted' "writable by process ${pids[$mnt]}" \
    "$BPKFS" --discard -o "staging=$dir/staging" "$dir/p"
unmount '--discard -o staging: unmount' "$mnt"

# The command that a mount tells is one to be copied into a shell, whatever the names are.
odd="$dir/it's a \$(touch ran)\`touch ran\`;\"x\", \\y&"
mkdir -p "$odd/staging"
cp "$T/base.bpk" "$odd/p q.bpk"
where=${odd//\\/\\\\}
where=rw,staging=${where//,/\\,}/staging
mounted 'odd names: mount' -o "$where" "$odd/p q.bpk" "$mnt"
put "$mnt/scalars/lr" 0.5
mv "$odd/p q.bpk" "$T/aside.bpk"
cp "$T/base.bpk" "$odd/p q.bpk"
unmount 'odd names: the edits are kept' "$mnt" 23 'changed on disk'
cannot 21 'bpkfs --discard -o' 'odd names: a mount says what drops them' -o "$where" "$odd/p q.bpk" "$mnt"
hint=$(sed -n 's/.*"\(bpkfs --discard .*\)" drops them$/\1/p' <<<"$err")
ok 'odd names: which a shell can run' env -C "$T" sh -c "bpkfs() { '$BPKFS' \"\$@\"; }
$hint"
is 'odd names: and nothing else' "$(ls "$T/ran" 2>/dev/null)" ''
is 'odd names: then they are dropped' "$(ls -A "$odd/staging")" ''
mounted 'odd names: and the pack mounts' -o "$where" "$odd/p q.bpk" "$mnt"
is 'odd names: without the edit' "$(cat "$mnt/scalars/lr")" 0.001
unmount 'odd names: unmount' "$mnt"
rm -r "$odd" "$T/aside.bpk"

# A list of edits without what could bring them back is no other pack.
mkdir -m 700 "$dir/.p.bpk.bpkfs"
echo 'M  scalars/lr' >"$dir/.p.bpk.bpkfs/kept-edits"
cannot 21 'kept-edits lists them.*bpkfs --discard' 'a list that was kept' -o rw "$dir/p.bpk" "$mnt"
[[ $err != *'another one'* ]] && pass 'it does not say that the pack is another one' || fail 'it does not say that the pack is another one' "$err"
ok 'it is dropped' "$BPKFS" --discard "$dir/p.bpk"

# 23 says how to get at the edits, and so it is.
mounted '23: mount' -o rw "$dir/p.bpk" "$mnt"
echo 0.875 >"$mnt/scalars/lr"
mv "$dir/p.bpk" "$T/aside.bpk"
cp "$T/base.bpk" "$dir/p.bpk"
unmount '23: what to do is told' "$mnt" 23 "changed on disk.*until the pack that was mounted is back in its place in $dir/.p.bpk.bpkfs"
cannot 21 'another one now.*put the one that they are of back.*bpkfs --discard' '23: the next mount tells it too' -o rw "$dir/p.bpk" "$mnt"
mv "$T/aside.bpk" "$dir/p.bpk"
mounted '23: back in its place' -o rw "$dir/p.bpk" "$mnt"
is '23: it has the edit' "$(cat "$mnt/scalars/lr")" 0.875
unmount '23: it commits' "$mnt"
is 'nothing is left but packs' "$(inside)" './copy.bpk ./elsewhere ./elsewhere/hard.bpk ./p.bpk ./staging '
done_testing
