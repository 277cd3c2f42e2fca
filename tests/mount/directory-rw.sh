#!/usr/bin/env bash
# A directory of packs mounted writable: each pack is edited, committed and lost on its
# own, and the others are left in peace.
. "$(dirname "$0")/lib.sh"

dir=$T/run mnt=$T/mnt
# start [OPTIONS]: $dir with packs as they come, mounted.
packs='a b c sub/inner x.y'
start() {
    rm -rf "$dir"
    mkdir -p "$dir/sub" "$mnt"
    for name in $packs; do cp "$T/base.bpk" "$dir/$name.bpk"; done
    echo notes >"$dir/README"
    mounted "$1: a directory mounts writable" -o "rw${2:+,$2}" "$dir" "$mnt"
}
# What a pack is compared with the one that all of them were.
differ() { oracle differ "$T/base.bpk" "$1" | sort | tr '\n' ' '; }
status() { jq -c "$1" "$mnt/.bpkfs/status"; }
changes() { sort "$mnt/.bpkfs/changes" | tr '\n' ' '; }
# Of whoever replaces a pack.
oracle make <(sed 's/0.25/0.75/' "$here/base.json") "$T/other.bpk" || exit 1
replace() { cp "$T/other.bpk" "$dir/.new" && mv -f "$dir/.new" "$1"; }

# What is no mount -----------------------------------------------------------------

mkdir -p "$dir/sub" "$mnt"
cp "$T/base.bpk" "$dir/a.bpk"
cannot 1 '"output=.*new.bpk" is for one pack' 'output of a directory' -o "rw,output=$T/new.bpk" "$dir" "$mnt"
cannot 11 'there already' 'create of a directory' -o rw,create "$dir" "$mnt"
cannot 10 'hide .*run from its own commit' 'over the directory' -o rw "$dir" "$dir"
mkdir "$T/above" "$T/above/run"
cp "$T/base.bpk" "$T/above/run/a.bpk"
cannot 10 'hide .*above/run from its own' 'over a folder above it' -o rw "$T/above/run" "$T/above"
cannot 10 'hide .*above/run from its own' 'over the staging folder' -o "rw,staging=$T/above/run" "$dir" "$T/above"
cannot 21 'none.*no such' 'a staging folder that is not there' -o "rw,staging=$T/none" "$dir" "$mnt"

mkdir "$dir/here"
mounted 'inside itself' -o rw "$dir" "$dir/here"
ok 'inside itself: an edit' put "$dir/here/a/scalars/x" 0.5
unmount 'inside itself: is committed' "$dir/here"
is 'inside itself: to the pack' "$(differ "$dir/a.bpk")" 'M scalars x '

# To look takes nothing -------------------------------------------------------------

start look
find "$mnt" -type f -exec cat {} + >/dev/null
is 'look: no staging folder' "$(staging_folders)" ''
is 'look: nothing is edited' "$(status '[.mode,.dirty,.changes,.packs]') $(changes)" '["rw",false,0,[]] '
is 'look: files without an edit may be synced' "$(sync "$mnt/a/tensors/big" "$mnt/a" "$mnt" 2>&1)$(staging_folders)" ''
mkdir "$T/alone"
mounted 'look: the same pack is mounted writable alone' -o rw "$dir/a.bpk" "$T/alone"
ok 'look: it still shows' test "$(cat "$mnt/a/metadata/arch")" = resnet
refused 'in use: an edit' 'busy' put "$mnt/a/scalars/x" 0.5
refused 'in use: and another' 'busy' touch "$mnt/a/tensors/new"
is 'in use: nothing is edited' "$(cat "$mnt/a/scalars/x") $(changes)" '0.25 '
reason="a.bpk: already mounted writable by process ${pids[$T/alone]}"
like 'in use: the pack says why' "$(getfattr --absolute-names --only-values -n user.bpk.error "$mnt/a")" "$reason"
like 'in use: and that it says so' "$(getfattr --absolute-names -d "$mnt/a")" 'user.bpk.error='
like 'in use: the status says why' "$(status '.packs[0].refused')" "$reason"
[ "$BPKFS_MODE" != foreground ] ||
    is 'in use: the log says it once' "$(grep -c "$reason" "${logs[$mnt]}.err")" 1
ok 'in use: others can be edited' put "$mnt/b/scalars/x" 0.5
unmount 'in use: no more' "$T/alone"
ok 'in use: the next edit is good' put "$mnt/a/scalars/x" 0.5
refused 'in use: no reason is left' "$ENODATA" getfattr -n user.bpk.error "$mnt/a"
cannot 20 "writable by process ${pids[$mnt]}" 'who comes second' -o rw "$dir/a.bpk" "$T/alone"
ln "$dir/a.bpk" "$dir/hard.bpk"
refused 'in use: under another name' 'busy' put "$mnt/hard/scalars/x" 0.125
like 'in use: which is told' "$(status '.packs[] | select(.path=="hard").refused')" 'in this mount under another name'
rm "$dir/hard.bpk"
mounted 'in use: one that was only looked at is free' -o rw "$dir/c.bpk" "$T/alone"
ok 'in use: an edit of it' put "$T/alone/scalars/x" 0.5
unmount 'in use: it is committed' "$T/alone"
is 'in use: and shown' "$(cat "$mnt/c/scalars/x")" 0.5
unmount 'all are committed' "$mnt"
is 'each on its own' "$(for name in $packs; do echo "$name $(differ "$dir/$name.bpk")"; done)" \
    'a M scalars x 
b M scalars x 
c M scalars x 
sub/inner 
x.y '
is 'nothing else stays' "$(staging_folders)" ''

# Edits and commits -----------------------------------------------------------------

start commit
cp "$dir/b.bpk" "$T/before.bpk"
ls -i "$mnt" "$mnt/a" "$mnt/a/tensors/encoder" "$mnt/sub" >"$T/numbers"
ok 'commit: a scalar' sed -i 's/.*/0.5/' "$mnt/a/scalars/x"
ok 'commit: a tensor' dd if=/dev/zero of="$mnt/sub/inner/tensors/big" bs=1M count=1 conv=notrunc status=none
ok 'commit: one that goes' rm "$mnt/x.y/tensors/steps"
ok 'commit: one that is renamed' mv "$mnt/x.y/tensors/mask" "$mnt/x.y/tensors/m"
is 'commit: changes' "$(sort "$mnt/.bpkfs/changes")" \
'D  x.y/tensors/steps
M  a/scalars/x
M  sub/inner/tensors/big
R  x.y/tensors/mask -> x.y/tensors/m'
is 'commit: changes as large as they say' "$(stat -c %s "$mnt/.bpkfs/changes")" "$(wc -c <"$mnt/.bpkfs/changes")"
is 'commit: status' "$(status '[.dirty,.changes,.last_status,.last_error,[.packs[]|[.path,.dirty,.changes,.commit]]]')" \
    '[true,4,0,null,[["a",true,1,"idle"],["sub/inner",true,1,"idle"],["x.y",true,2,"idle"]]]'
like 'commit: --status' "$("$BPKFS" --status "$mnt")" '^M  a/scalars/x'
is 'commit: a staging folder for each' "$(staging_folders | sed "s|$dir/||" | tr '\n' ' ')" '.a.bpk.bpkfs .x.y.bpk.bpkfs sub/.inner.bpk.bpkfs '
# What is removed and forgotten is nowhere any more.
ok 'commit: one that comes and goes' bash -c 'cp "$0/a/tensors/steps" "$0/a/tensors/new" && rm "$0/a/tensors/new"' "$mnt"
gone() { [ ! -e "$dir/.a.bpk.bpkfs/0" ]; }
for _ in $(seq 100); do gone || ls "$mnt/a/tensors" >/dev/null; done
ok 'commit: leaves no bytes behind' gone
ok 'commit: fsync in one pack' sync "$mnt/a/scalars"
is 'commit: is that pack alone' "$(differ "$dir/a.bpk")$(differ "$dir/sub/inner.bpk")$(changes)" \
    'M scalars x D  x.y/tensors/steps M  sub/inner/tensors/big R  x.y/tensors/mask -> x.y/tensors/m '
ok 'commit: fsync of a folder above' sync "$mnt/sub"
is 'commit: is what is below' "$(differ "$dir/sub/inner.bpk")$(differ "$dir/x.y.bpk")" 'M tensors big '
ok 'commit: --commit' "$BPKFS" --commit "$mnt"
is 'commit: is all' "$(differ "$dir/x.y.bpk")$(changes)" '+ tensors m - tensors mask - tensors steps '
is 'commit: numbers stay' "$(ls -i "$mnt" "$mnt/a" "$mnt/a/tensors/encoder" "$mnt/sub" | grep -v 'index.tsv\|pack\.')" \
    "$(grep -v 'index.tsv\|pack\.' "$T/numbers")"
is 'commit: ls -i and stat tell the same' "$(cd "$mnt" && ls -i | awk '{ print $1 }')" "$(cd "$mnt" && stat -c %i ./*)"
is 'commit: no two have one' "$(find "$mnt" -printf '%i\n' | sort | uniq -d)" ''
is 'commit: the time is that of the new file' "$(stat -c %Y "$mnt/a")" "$(stat -c %Y "$dir/a.bpk")"
ok 'commit: and on' put "$mnt/a/scalars/lr" 0.25
ok 'commit: of one that was' "$BPKFS" --commit "$mnt"
is 'commit: it goes on over the new file' "$(differ "$dir/a.bpk")" 'M scalars lr M scalars x '
is 'commit: others are not written' "$(cmp "$dir/b.bpk" "$T/before.bpk")" ''
unmount 'commit: unmount' "$mnt"
for name in $packs; do ok "commit: $name is valid" valid "$dir/$name.bpk"; done

# Above the packs -------------------------------------------------------------------

start above
# Who is no root is told by the permission bits.
if is_root; then denied=$EPERM other=$ENOTSUP; else denied=$EACCES other=$EACCES; fi
while IFS='|' read -r regex what; do
    refused "above: $what" "$regex" bash -c "cd '$mnt' && $what"
done <<ROWS
$denied|env touch new
$denied|mkdir new
$denied|ln -s a new
$denied|ln README new
$denied|rm -f README
$denied|rmdir a
$denied|rmdir sub
$denied|env mv -T a new
$denied|env mv -T README new
$denied|mv README sub/
$denied|mv a/scalars/x x
$EPERM|chmod 700 sub
$EPERM|chmod 600 README
$EPERM|"$PYTHON" -c 'import os; os.utime("README", (1, 1))'
$EPERM|chown 1:1 sub
$EACCES|env truncate -s0 README
$EACCES|put() { printf x >README; }; put
$other|setfattr -n user.bpk.dtype -v U8 README
ROWS
ok 'above: what changes nothing is fine' bash -c "cd '$mnt' && chmod '$(stat -c %a "$mnt/README")' README && chown '$(stat -c %u:%g "$mnt/sub")' sub && touch -r README README"
is 'above: nothing is edited' "$(status .dirty) $(staging_folders)" 'false '
ok 'above: mv between packs' mv "$mnt/a/tensors/encoder/layer1/weight" "$mnt/b/tensors/w"
is 'above: it has its dtype, shape and param_id' \
    "$(getfattr --absolute-names -d "$mnt/b/tensors/w" | grep -v offset | tail -n +2 | tr '\n' ' ')" \
    'user.bpk.dtype="F32" user.bpk.param_id="7" user.bpk.shape="[4,3]"  '
ok 'above: cp -a between packs' cp -a "$mnt/a/tensors/head" "$mnt/b/tensors/h"
is 'above: likewise' "$(getfattr --absolute-names --only-values -n user.bpk.dtype "$mnt/b/tensors/h/%self" 2>&1 || getfattr --absolute-names --only-values -n user.bpk.dtype "$mnt/b/tensors/h")" F16
ok 'above: a folder of a pack' cp -a "$mnt/a/scalars/." "$mnt/c/scalars/"
ok 'above: attributes of a pack last as long as the mount' chmod 500 "$mnt/c"
is 'above: as every look tells them' "$(stat -c %a "$mnt/c"; cd "$mnt/c" && stat -c %a .)" $'500\n500'
unmount 'above: unmount' "$mnt"
is 'above: what came of it' "$(differ "$dir/a.bpk")/ $(differ "$dir/b.bpk")/ $(differ "$dir/c.bpk")" \
    '- tensors encoder.layer1.weight / + tensors h + tensors h.scale + tensors w / '

# Editors, two epochs, latest/ -------------------------------------------------------

packs='model-1 model-2' start editors
ok 'editors: sed -i in two packs' sed -i 's/.*/0.5/' "$mnt/model-1/scalars/x" "$mnt/model-2/scalars/x"
if command -v vim >/dev/null; then
    ok 'editors: vim' env HOME="$T" vim -es -c '%s/.*/0.125/' -c wq "$mnt/model-2/scalars/lr"
else
    cp /dev/stdin "$mnt/model-2/scalars/lr" <<<0.125
    skip 'editors: vim' 'not here'
fi
ok 'editors: through latest/' put "$mnt/latest/model/metadata/arch" vgg
is 'editors: diff -r of two' "$(cd "$mnt" && diff -rq model-1 model-2 | grep -v 'index.tsv\|pack\.')" \
'Files model-1/metadata/arch and model-2/metadata/arch differ
Files model-1/scalars/lr and model-2/scalars/lr differ'
mounted 'editors: another that is mounted' "$dir" "$T/alone"
is 'editors: sees nothing yet' "$(cat "$T/alone/latest/model/metadata/arch")" resnet
ok 'editors: --commit' "$BPKFS" --commit "$mnt"
is 'editors: and then all' "$(cd "$T/alone" && cat latest/model/metadata/arch model-{1,2}/scalars/{x,lr})" $'vgg\n0.5\n0.001\n0.5\n0.125'
unmount 'editors: unmount' "$T/alone"
unmount 'editors: unmount' "$mnt"

# What others do to the files meanwhile ----------------------------------------------

packs='a b c d' start others
exec 7<"$mnt/b"
cd "$mnt/c" || exit 1
for name in a b; do ok "others: $name is edited" put "$mnt/$name/scalars/lr" 0.5; done
number=$(stat -c %i "$mnt/a")
replace "$dir/a.bpk"
rm "$dir/b.bpk"
replace "$dir/c.bpk"
is 'others: what is edited is what it was' "$(cat "$mnt/a/scalars/x" "$mnt/b/scalars/x" "$mnt/a/scalars/lr") $(ls "$mnt" | tr '\n' ' ')" \
    $'0.25\n0.25\n0.5 README a b c d sub '
mkdir "$dir/a"
is 'others: beside a folder that came it has its whole name' "$(ls "$mnt" | tr '\n' ' ')$(cat "$mnt/a.bpk/scalars/lr")" 'README a a.bpk b c d sub 0.5'
rmdir "$dir/a"
is 'others: under the same numbers' "$(stat -c %i "$mnt/a") $(ls -i "$mnt" | awk '$2 == "a" { print $1 }')" "$number $number"
is 'others: what is not is what is there' "$(cat "$mnt/c/scalars/x")" 0.75
refused 'others: who is in one that was replaced cannot edit it' 'stale|no such' put scalars/x 0.5
cd "$T" || exit 1
exec 7<&-
echo junk >"$dir/b.bpk"
is 'others: a file in its place is not shown' "$(ls "$mnt" | tr '\n' ' ')$(cat "$mnt/b/scalars/lr")" 'README a b c d sub 0.5'
refused 'others: under no name' "$ENOENT" cat "$mnt/b.bpk"
rm "$dir/b.bpk"
ok 'others: another edit' put "$mnt/d/scalars/lr" 0.5
"$BPKFS" --commit "$mnt" 2>"$T/told"
is 'others: --commit' "$? $(wc -l <"$T/told")" '23 1'
like 'others: what changed is told' "$(cat "$T/told")" 'a\.bpk: not committed: .*changed on disk.*; .*b\.bpk: not committed'
ok 'others: --commit of one that is well' "$BPKFS" --commit "$mnt/d"
is 'others: what did not is committed' "$(differ "$dir/d.bpk")" 'M scalars lr '
is 'others: status tells both' "$(status '[.last_status,.dirty,[.packs[]|[.path,.dirty,.last_status]]]')" \
    '[23,true,[["a",true,23],["b",true,23],["d",false,0]]]'
ok 'others: edited once more' put "$mnt/d/scalars/lr" 0.125
unmount 'others: unmount' "$mnt" 23 'a\.bpk: not committed.*kept.*; .*b\.bpk: not committed.*kept'
is 'others: nothing was overwritten' "$(sum "$dir/a.bpk") $(ls "$dir" | tr '\n' ' ')" "$(sum "$T/other.bpk") README a.bpk c.bpk d.bpk sub "
is 'others: the rest is committed' "$(differ "$dir/d.bpk")" 'M scalars lr '
is 'others: what was not is kept' "$(staging_folders | tr '\n' ' ')" "$dir/.a.bpk.bpkfs $dir/.b.bpk.bpkfs "
[ "$BPKFS_MODE" != foreground ] ||
    is 'others: a line for each' "$(grep -c 'not committed.*kept' <<<"$err")" 2
mounted 'others: mounted again' -o rw "$dir" "$mnt"
is 'others: the other pack is shown' "$(cat "$mnt/a/scalars/x")" 0.75
refused 'others: but it is not edited' busy put "$mnt/a/scalars/x" 0.5
like 'others: why' "$(status '.packs[0].refused')" 'the pack is another one now.*--discard .*a.bpk'
cp "$T/base.bpk" "$dir/new.bpk"
ok 'others: a new one can be' put "$mnt/new/scalars/lr" 0.5
ok 'others: dropped' "$BPKFS" --discard "$dir/a.bpk"
mounted 'others: it is not locked' -o rw "$dir/a.bpk" "$T/alone"
unmount 'others: unmount' "$T/alone"
ok 'others: then it can be edited' put "$mnt/a/scalars/x" 0.5
unmount 'others: unmount' "$mnt"
is 'others: committed' "$(differ "$dir/a.bpk")" 'M scalars x '
ok 'others: dropped, too' "$BPKFS" --discard "$dir/b.bpk"
is 'others: nothing stays' "$(staging_folders)" ''

# What has no edit left follows what others do.
packs='a b c d' start after
for name in a b c d; do ok "after: $name is edited" sed -i 's/.*/0.5/' "$mnt/$name/scalars/x"; done
ok 'after: and committed' "$BPKFS" --commit "$mnt"
exec 7<"$mnt/d/scalars/lr"
cd "$mnt/c" || exit 1
replace "$dir/a.bpk"
rm "$dir/b.bpk"
replace "$dir/c.bpk"
replace "$dir/d.bpk"
# The kernel tells of a file that was closed when it comes to it.
follows() { [ "$(ls "$mnt" | tr '\n' ' ')" = 'README a c d sub ' ] && [ "$(cat "$mnt/a/scalars/x")" = 0.75 ]; }
for _ in $(seq 100); do ! follows || break; done
ok 'after: what is there is shown' follows
refused 'after: what has gone is not' "$ENOENT" ls "$mnt/b"
refused 'after: who is in one that was replaced cannot edit it' stale put scalars/x 0.125
is 'after: nor is one edited that is in use' "$(cat "$mnt/d/scalars/x")" 0.5
refused 'after: which would be in vain' stale put "$mnt/d/scalars/x" 0.125
like 'after: and why' "$(getfattr --absolute-names --only-values -n user.bpk.error "$mnt/d")" 'd\.bpk: was replaced'
is 'after: it has no edit' "$(changes)" ''
cd "$T" || exit 1
exec 7<&-
follows() { [ "$(cat "$mnt/c/scalars/x" "$mnt/d/scalars/x" | tr '\n' ' ')" = '0.75 0.75 ' ]; }
for _ in $(seq 100); do ! follows || break; done
ok 'after: those are what is there, too' follows
for name in a c d; do ok "after: $name is edited anew" put "$mnt/$name/scalars/lr" 0.5; done
cp "$T/other.bpk" "$dir/b.bpk"
ok 'after: and one that comes again' put "$mnt/b/scalars/lr" 0.5
unmount 'after: unmount' "$mnt"
is 'after: all are committed' "$(for name in a b c d; do oracle differ "$T/other.bpk" "$dir/$name.bpk"; done)$(staging_folders)" \
    $'M scalars lr\nM scalars lr\nM scalars lr\nM scalars lr'

# One that fails, one that is invalid, one that is well -------------------------------

packs='a b c' start codes
printf 1234567 >"$mnt/a/tensors/steps" 2>/dev/null
ok 'codes: an edit' put "$mnt/b/scalars/x" 0.5
"$BPKFS" --commit "$mnt" 2>"$T/told"
is 'codes: one that is invalid' "$? $(differ "$dir/b.bpk")" '24 M scalars x '
like 'codes: is told' "$(cat "$T/told")" 'a\.bpk: committed, but 1 invalid'
ok 'codes: another edit' put "$mnt/c/scalars/x" 0.5
ok 'codes: and one' put "$mnt/b/scalars/x" 0.125
replace "$dir/c.bpk"
unmount 'codes: what is lost comes first' "$mnt" 23 'c\.bpk: not committed.*; .*a\.bpk: committed, but 1 invalid'
is 'codes: what is well' "$(differ "$dir/b.bpk")" 'M scalars x '
rm -rf "$dir"/.*.bpkfs
packs=$(seq -f 'p%g' 30) start more
ok 'more: edits' bash -c 'for n in $(seq 30); do echo 0.5 >"$0/p$n/scalars/x" || exit 1; done' "$mnt"
for n in $(seq 29); do replace "$dir/p$n.bpk"; done
"$BPKFS" --commit "$mnt" 2>"$T/told"
is 'more: --commit' "$? $(wc -l <"$T/told") $(differ "$dir/p30.bpk")" '23 1 M scalars x '
like 'more: than can be told in a line' "$(cat "$T/told")" 'p1\.bpk: not committed.*; and [0-9]+ more: see the log$'
[ "$BPKFS_MODE" != foreground ] ||
    is 'more: the log has all' "$(grep -c 'not committed' "${logs[$mnt]}.err")" 29
ok 'more: are dropped' "$BPKFS" --discard "$mnt"
daemon_ended "$mnt"

if is_root && tmpfs "$T/full" size=9m; then
    packs='a c' start full
    cp "$T/base.bpk" "$T/full/b.bpk"
    ln -s "$T/full/b.bpk" "$dir/b.bpk"
    for name in a b c; do
        ok "full: $name: a scalar" put "$mnt/$name/scalars/x" 0.5
        ok "full: $name: a tensor" bash -c 'printf 12345678 >"$0"' "$mnt/$name/tensors/steps"
    done
    dd if=/dev/zero of="$T/full/filler" bs=64k 2>/dev/null
    sum=$(sum "$T/full/b.bpk")
    "$BPKFS" --commit "$mnt" 2>"$T/told"
    is 'full: --commit' $? 22
    like 'full: tells of the one' "$(cat "$T/told")" '^bpkfs: [^;]*b\.bpk: not committed: [^;]*no space left[^;]*$'
    is 'full: the others are committed' "$(differ "$dir/a.bpk")$(differ "$dir/c.bpk")$(changes)" \
        'M scalars x M tensors steps M scalars x M tensors steps M  b/scalars/x M  b/tensors/steps '
    is 'full: status' "$(status '[.packs[]|[.path,.dirty,.last_status]]')" '[["a",false,0],["b",true,22],["c",false,0]]'
    refused 'full: fsync of the root says so' 'no space left' sync "$mnt"
    ok 'full: fsync of another pack does not' sync "$mnt/a"
    ok 'full: another edit' put "$mnt/a/scalars/lr" 0.5
    unmount 'full: unmount' "$mnt" 22 'b\.bpk: not committed: .*no space left.*kept for the next writable mount in .*\.b\.bpk\.bpkfs'
    is 'full: the pack is untouched' "$(sum "$T/full/b.bpk")" "$sum"
    is 'full: the other is committed' "$(differ "$dir/a.bpk")" 'M scalars lr M scalars x M tensors steps '
    rm "$T/full/filler"
    mounted 'full: mounted again, with room' -o rw "$dir" "$mnt"
    is 'full: the edits are back' "$(cat "$mnt/b/scalars/x" "$mnt/b/tensors/steps") $(changes)" $'0.5\n12345678 M  b/scalars/x M  b/tensors/steps '
    [ "$BPKFS_MODE" != foreground ] ||
        like 'full: and said' "$(cat "${logs[$mnt]}.err")" 'b\.bpk: 2 edits that were not committed are back'
    unmount 'full: committed' "$mnt"
    is 'full: in the end' "$(differ "$T/full/b.bpk")$(ls -A "$T/full")" 'M scalars x M tensors steps b.bpk'
    umount "$T/full"
else
    skip 'full' 'a full disk needs root'
fi

# Who has opened as much as may be can still save and commit it.
packs=$(echo p{1..40})
cat >"$T/limited" <<'END'
#!/bin/sh
ulimit -n 64
exec "$@"
END
chmod +x "$T/limited"
BPKFS_UNDER=$T/limited start limited
count=0
while [ "$count" -lt 40 ] && put "$mnt/p$((count + 1))/scalars/x" 0.5 2>"$T/told"; do count=$((count + 1)); done
like "limited: an edit is refused (behind $count)" "$(cat "$T/told")" 'too many open files'
while printf 12345678 2>"$T/told" >"$mnt/p1/tensors/new$((new = ${new:-0} + 1))"; do [ "$new" -lt 64 ] || break; done
like 'limited: and new bytes' "$(cat "$T/told")" 'too many open files'
is 'limited: the packs are listed' "$(ls "$mnt" | wc -l)" 42
ok 'limited: what there is can be edited' put "$mnt/p1/scalars/lr" 0.5
ok 'limited: saved' sync "$mnt/p1/scalars/lr"
ok 'limited: and committed' "$BPKFS" --commit "$mnt"
is 'limited: is in the packs' "$(differ "$dir/p$count.bpk")$(changes)" 'M scalars x '
unmount 'limited: unmount' "$mnt"
is 'limited: nothing stays' "$(staging_folders)" ''

# Killed ------------------------------------------------------------------------------

packs='a b' start killed
ok 'killed: an edit' put "$mnt/a/scalars/x" 0.5
ok 'killed: another' put "$mnt/b/scalars/x" 0.5
ok 'killed: that are fsynced' sync "$mnt/a/scalars/x" "$mnt/b/scalars/x"
ok 'killed: one is not' put "$mnt/a/scalars/lr" 0.5
kill_mount() {
    kill -9 "${pids[$mnt]}"
    daemon_ended "$mnt"
    fusermount3 -u "$mnt" 2>/dev/null || umount -l "$mnt"
}
kill_mount
mounted 'killed: mounted again' -o rw "$dir" "$mnt"
is 'killed: nothing is taken yet' "$(changes)" ''
is 'killed: what was fsynced is back' "$(cat "$mnt/a/scalars/x") $(changes)" '0.5 M  a/scalars/x '
kill_mount
mounted 'killed: of one, alone' -o rw "$dir/b.bpk" "$T/alone"
is 'killed: it is back there' "$(cat "$T/alone/scalars/x")" 0.5
mounted 'killed: beside the directory' -o rw "$dir" "$mnt"
is 'killed: which shows what is on disk' "$(cat "$mnt/b/scalars/x" "$mnt/a/scalars/x")" $'0.25\n0.5'
unmount 'killed: committed' "$T/alone"
is 'killed: and then that' "$(cat "$mnt/b/scalars/x")" 0.5
kill_mount
mounted 'killed: once more' -o rw "$dir" "$mnt"
is 'killed: it is still there' "$(cat "$mnt/a/scalars/x")" 0.5
unmount 'killed: committed' "$mnt"
is 'killed: all is in the packs' "$(differ "$dir/a.bpk")$(differ "$dir/b.bpk")$(staging_folders)" 'M scalars x M scalars x '
# What nobody fsynced is of no use to anybody: it goes when the pack is looked into, which
# makes no writer of who looks.
mounted 'lost: mounted' -o rw "$dir" "$mnt"
ok 'lost: an edit that nobody fsyncs' bash -c 'head -c 3000000 /dev/zero >"$0/b/tensors/big"' "$mnt"
kill_mount
is 'lost: its bytes are there' "$(staging_folders)" "$dir/.b.bpk.bpkfs"
mounted 'lost: mounted again' -o rw "$dir" "$mnt"
is 'lost: who looks has the pack, and they go' "$(cat "$mnt/b/scalars/x") $(changes)$(staging_folders)" '0.5 '
mounted 'lost: another may edit it' -o rw "$dir/b.bpk" "$T/alone"
refused 'lost: and this one not' busy put "$mnt/b/scalars/x" 0.25
unmount 'lost: unmount' "$T/alone"
unmount 'lost: unmount' "$mnt"
# Left by another mount while this one has the pack open.
mounted 'left: mounted' -o rw "$dir" "$mnt"
exec 7<"$mnt/a/metadata"
cat "$mnt/a/pack.json" >/dev/null
mounted 'left: another' -o rw "$dir/a.bpk" "$T/alone"
ok 'left: is edited' put "$T/alone/scalars/lr" 0.125
ok 'left: and fsynced' sync "$T/alone/scalars/lr"
kill -9 "${pids[$T/alone]}"
daemon_ended "$T/alone"
fusermount3 -u "$T/alone" 2>/dev/null || umount -l "$T/alone"
refused 'left: an edit here' "$ENOTSUP" setfattr -n user.other -v 1 "$mnt/a/scalars/lr"
is 'left: brings that back, whether it is good' "$(cat "$mnt/a/scalars/lr"; jq .scalars.lr.value "$mnt/a/pack.json")" $'0.125\n0.125'
ok 'left: another' put "$mnt/a/scalars/delta" 7
exec 7<&-
unmount 'left: unmount' "$mnt"
is 'left: committed' "$(differ "$dir/a.bpk")" 'M scalars delta M scalars lr M scalars x '

# A journal that cannot be read to its end leaves the pack as it is.
mounted 'damaged: mounted' -o rw "$dir" "$mnt"
ok 'damaged: edits' bash -c 'cd "$0/b" && echo 0.125 >scalars/lr && printf x | dd of=tensors/big conv=notrunc && printf 12345678 >tensors/steps && sync scalars/lr' "$mnt"
kill_mount
rm "$dir/.b.bpk.bpkfs/1"
mounted 'damaged: again' -o rw "$dir" "$mnt"
is 'damaged: the pack is what it was' "$(cat "$mnt/b/scalars/lr"; head -c1 "$mnt/b/tensors/big" | cmp - <(head -c1 "$mnt/a/tensors/big")) $(changes)" '0.001 '
refused 'damaged: an edit' "$ENOENT" put "$mnt/b/scalars/lr" 0.25
is 'damaged: and still is' "$(cat "$mnt/b/scalars/lr"; head -c1 "$mnt/b/tensors/big" | cmp - <(head -c1 "$mnt/a/tensors/big")) $(changes)" '0.001 '
like 'damaged: why' "$(getfattr --absolute-names --only-values -n user.bpk.error "$mnt/b")" 'cannot be read: .*--discard .*b.bpk'
unmount 'damaged: unmount' "$mnt"
ok 'damaged: dropped' "$BPKFS" --discard "$dir/b.bpk"

# --discard, signals, staging= -----------------------------------------------------------

packs='a b' start discard
for name in a b; do ok "discard: $name" put "$mnt/$name/scalars/x" 0.5; done
exec 7<"$mnt/a/scalars/x"
"$BPKFS" --discard "$mnt" >/dev/null 2>&1
is 'discard: not while it is in use' "$? $(status .changes)" '10 2'
exec 7<&-
ok 'discard: --discard' "$BPKFS" --discard "$mnt"
daemon_ended "$mnt"
is 'discard: drops all' "$(differ "$dir/a.bpk")$(differ "$dir/b.bpk")$(staging_folders)" ''
mounted 'signal: mounted' -o rw "$dir" "$mnt"
exec 7>>"$mnt/a/metadata/arch"
for name in a b; do ok "signal: $name" put "$mnt/$name/scalars/x" 0.5; done
# What is stored in a mapping, and the kernel has not written yet.
coproc mapper { exec "$PYTHON" -c 'import mmap, os, sys
with open(sys.argv[1], "r+b") as file:
    mapping = mmap.mmap(file.fileno(), 0)
    mapping[5] = 77
    print("mapped", flush=True)
    sys.stdin.read()
    os._exit(0)' "$mnt/b/tensors/big" 7>&-; }
read -r line <&"${mapper[0]}"
to=${mapper[1]} pid=$mapper_PID
is 'signal: a mapping' "$line" mapped
kill "${pids[$mnt]}"
daemon_ended "$mnt"
exec 7>&- {to}>&-
wait "$pid"
is 'signal: all is committed, mappings too' "$(differ "$dir/a.bpk")$(differ "$dir/b.bpk")" 'M scalars x M scalars x M tensors big '
[ "$BPKFS_MODE" != foreground ] || is 'signal: the exit status' "$fg_status" 0

mkdir "$T/staging"
packs='a sub/a' start staging "staging=$T/staging"
ok 'staging: an edit' put "$mnt/a/scalars/x" 0.5
ok 'staging: of another of that name' put "$mnt/sub/a/scalars/x" 0.5
is 'staging: has a folder for each' "$(ls -A "$T/staging" | wc -l) $(staging_folders | grep -vc "^$T/staging/")" '2 0'
unmount 'staging: unmount' "$mnt"
is 'staging: committed' "$(differ "$dir/a.bpk")$(differ "$dir/sub/a.bpk")$(ls -A "$T/staging")" 'M scalars x M scalars x '
packs=a start relative
cd "$T" || exit 1
unmount 'relative: unmount' "$mnt"
cd "$T/staging" && mounted 'relative: staging=.' -o rw,staging=. "$dir" "$mnt"
ok 'relative: an edit' put "$mnt/a/scalars/x" 0.5
is 'relative: is staged there' "$(ls -A "$T/staging" | wc -l)" 1
cd "$T" || exit 1
unmount 'relative: committed' "$mnt"

# What is refused because nothing can be staged.
if ! is_root; then
    packs=a start readonly
    chmod a-w "$dir"
    refused 'readonly: an edit' "$EACCES" put "$mnt/a/scalars/x" 0.5
    like 'readonly: why' "$(status '.packs[0].refused')" 'cannot stage edits in '
    chmod u+w "$dir"
    ok 'readonly: and when it can' put "$mnt/a/scalars/x" 0.5
    unmount 'readonly: unmount' "$mnt"
fi

# Many ------------------------------------------------------------------------------------

rm -rf "$dir"
mkdir -p "$dir"
oracle make /dev/stdin "$dir/p1.bpk" <<<'{"tensors": [
    {"name": "encoder.layer1.weight", "dtype": "F32", "shape": [4, 3], "param_id": 7},
    {"name": "e", "dtype": "U8", "shape": [3]}], "scalars": {"epoch": {"UInt": 2}}}'
for n in $(seq 2 300); do cp "$dir/p1.bpk" "$dir/p$n.bpk"; done
unset MALLOC_PERTURB_ # buffers that nobody writes to would count
mounted 'many: a directory of 300' -o rw "$dir" "$mnt"
cd "$mnt/p2/tensors" || exit 1
exec 7<"$mnt/p1/tensors/e"
ok 'many: some are edited' bash -c 'for n in 3 4 5; do echo 9 >"$0/p$n/scalars/epoch"; done' "$mnt"
numbers=$(stat -c %i "$mnt/p9" "$mnt/p9/tensors/encoder/layer1/weight" "$mnt/p9/npy" "$mnt/p9/tensors/encoder" .)
memory() { awk '/RssAnon/ { print $2 }' "/proc/${pids[$mnt]}/status"; }
whole() { find "$mnt" -type f ! -path '*/.bpkfs/*' | sort | xargs cat | sha256sum; }
first=$(whole)
before=$(memory)
is 'many: are read, and again' "$(whole)" "$first"
# What the kernel is told to forget comes back as requests of their own.
few() { [ "$(jq .open "$mnt/.bpkfs/status")" -le 72 ]; }
for _ in $(seq 100); do few || ls "$mnt/p7/tensors" >/dev/null; done
ok "many: few stay open ($(jq .open "$mnt/.bpkfs/status"))" few
grown=$(($(memory) - before))
if grep -qa __asan_init "$BPKFS"; then
    skip 'many: memory stays' 'a sanitizer keeps what was freed'
else
    ok "many: memory stays ($before kB, $grown more)" test "$grown" -lt 2000
fi
is 'many: what is in use stays' "$(wc -c <&7) $(ls | tr '\n' ' ')" '3 e encoder '
is 'many: numbers are the same' "$(stat -c %i "$mnt/p9" "$mnt/p9/tensors/encoder/layer1/weight" "$mnt/p9/npy" "$mnt/p9/tensors/encoder" .)" "$numbers"
is 'many: edits stay' "$(cat "$mnt"/p{3,4,5}/scalars/epoch | tr '\n' ' ')" '9 9 9 '
is 'many: nothing else is taken' "$(staging_folders | wc -l)" 3
cd "$T" || exit 1
exec 7<&-
# (p2 gets the value that it has.)
ok 'many: all are edited while all are read' bash -c '
    find "$0" -type f -exec cat {} + >/dev/null & reader=$!
    for part in 0 1 2 3; do
        (for n in $(seq $((part * 75 + 1)) $((part * 75 + 75))); do echo $n >"$0/p$n/scalars/epoch" || exit 1; done) & parts="$parts $!"
    done
    for part in $parts; do wait "$part" || exit 1; done
    wait $reader' "$mnt"
is 'many: all are dirty' "$(status '[.changes,(.packs|length)]')" '[299,300]'
ok 'many: all are committed' "$BPKFS" --commit "$mnt"
is 'many: each with its own' "$(cat "$mnt"/p*/scalars/epoch | sort -n | sum)" "$(seq 300 | sum)"
whole >/dev/null
for _ in $(seq 100); do few || ls "$mnt/p7/tensors" >/dev/null; done
ok "many: what is committed need not stay open ($(jq .open "$mnt/.bpkfs/status"))" few
ok 'many: nor its staging folder' test "$(staging_folders | wc -l)" -le 72
unmount 'many: unmount' "$mnt"
is 'many: nothing stays' "$(staging_folders)" ''
mounted 'many: read-only' "$dir" "$mnt"
is 'many: as it was left' "$(cat "$mnt"/p*/scalars/epoch | sort -n | sum)" "$(seq 300 | sum)"
unmount 'many: unmount' "$mnt"
done_testing
