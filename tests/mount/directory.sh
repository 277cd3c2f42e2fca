#!/usr/bin/env bash
# A directory of packs as one mount: what is shown of it, what changes under it, and what
# must not hang or grow.
. "$(dirname "$0")/lib.sh"

dir=$T/run mnt=$T/mnt
mkdir -p "$dir/sub/deep" "$dir/x" "$mnt"
# epoch N: a pack whose lr and bytes tell the epoch.
epoch() {
    oracle make /dev/stdin "$2" <<<'{"tensors": [
        {"name": "encoder.layer1.weight", "dtype": "F32", "shape": [4, 3], "param_id": 7},
        {"name": "e'"$1"'", "dtype": "U8", "shape": ['"$1"']}],
        "scalars": {"epoch": {"UInt": '"$1"'}}}'
}
for n in 1 2 9 10; do epoch "$n" "$dir/model-$n.bpk"; done
epoch 3 "$dir/optim-003.bpk"
cp "$T/base.bpk" "$dir/sub/deep/inner.bpk"
cp "$T/base.bpk" "$dir/x.bpk"
cp "$T/base.bpk" "$dir/.hidden.bpk"
cp "$T/base.bpk" "$T/elsewhere.bpk"
echo notes >"$dir/README.md"
echo junk >"$dir/junk.bpk"
head -c 300 "$T/base.bpk" >"$dir/model-11.bpk" # a save that was cut short
: >"$dir/empty.bpk"
mkfifo "$dir/fifo.bpk"
ln -s ../elsewhere.bpk "$dir/linked.bpk"
ln -s "$T/elsewhere.bpk" "$dir/absolute.bpk"
ln -s nowhere "$dir/dangling.bpk"
ln -s loop.bpk "$dir/loop.bpk"
ln -s "$T" "$dir/out"
ln -s "$mnt/model-1" "$dir/self.bpk"
ln -s "../mnt/self.bpk" "$dir/self2.bpk"
mkdir "$dir/folder.bpk"

mounted 'a directory mounts' "$dir" "$mnt"
is 'what it holds' "$(timeout 20 ls -AF "$mnt" | tr '\n' ' ')" \
    '.bpkfs/ README.md absolute/ dangling.bpk empty.bpk fifo.bpk folder.bpk/ junk.bpk latest/ linked/ loop.bpk model-1/ model-10/ model-11.bpk model-2/ model-9/ optim-003/ out self.bpk self2.bpk sub/ x/ x.bpk/ '
is 'a pack is the tree of a pack' "$(ls -A "$mnt/model-1" | tr '\n' ' ')" \
    'index.tsv metadata npy pack.json pack.safetensors scalars tensors '
is 'the one of a name that is taken, too' "$(cat "$mnt/x.bpk/metadata/arch")" "$(cat "$mnt/linked/metadata/arch")"
refused 'a pack has one name' "$ENOENT" ls "$mnt/model-1.bpk"
refused 'what is no pack keeps its extension' "$ENOENT" cat "$mnt/junk"
is 'other files read as they are' "$(cat "$mnt/README.md" "$mnt/junk.bpk")" $'notes\njunk'
is 'their owner and time' "$(stat -c '%u %g %Y %s' "$mnt/README.md")" "$(stat -c '%u %g %Y %s' "$dir/README.md")"
is 'numbers are the same however they are asked for' "$(cd "$mnt" && ls -iA | awk '{ print $1 }')" \
    "$(cd "$mnt" && stat -c %i $(ls -A))"
is 'no two files have one' "$(find "$mnt" -printf '%i\n' | sort | uniq -d)" ''
error() { getfattr --absolute-names --only-values -n user.bpk.error "$mnt/$1" 2>&1; }
while IFS='|' read -r file regex; do
    like "why $file is a file" "$(error "$file")" "$regex"
done <<ROWS
junk.bpk|looks like text
empty.bpk|empty
model-11.bpk|cut short
fifo.bpk|no regular file
dangling.bpk|no such file
loop.bpk|too many levels
self.bpk|too many levels
out|link to a folder
README.md|$ENODATA
ROWS
refused 'what cannot be read says so' 'no such device' timeout 20 cat "$mnt/fifo.bpk"
refused 'no loop through the mount' 'too many levels' timeout 20 cat "$mnt/self2.bpk"
for what in 'touch new' 'rm README.md' 'mkdir new' 'mv model-1 other' 'ln -s a b' 'rm x/a' 'touch model-1/tensors/new' 'truncate -s0 README.md'; do
    refused "read-only: $what" "$EROFS|$ENOENT" bash -c "cd '$mnt' && $what"
done
is 'status tells the directory' "$(jq -r '.directory, .mode, .dirty' "$mnt/.bpkfs/status" | tr '\n' ' ')" "$dir ro false "
is 'nothing changes' "$(cat "$mnt/.bpkfs/changes")" ''
like '--status' "$("$BPKFS" --status "$mnt")" "\"directory\":\"$dir\""
like 'the mount table' "$(findmnt -rno SOURCE,FSTYPE "$mnt")" "$dir fuse.bpkfs"
ok 'df' df "$mnt" "$mnt/model-1"

# A pack in it is what it is alone.
"$BPKFS" "$dir/x.bpk" "$T/alone" && mounts+=("$T/alone") pids[$T/alone]=$(daemon_of "$T/alone")
is 'a pack is what it is alone' "$(diff -r -x .bpkfs "$T/alone" "$mnt/x.bpk" 2>&1)" ''
is 'attributes too' "$(cd "$mnt/sub/deep/inner" && getfattr -d tensors/encoder/layer1/weight)" \
    "$(cd "$T/alone" && getfattr -d tensors/encoder/layer1/weight)"
"$BPKFS" --unmount "$T/alone" && unset "pids[$T/alone]"
is 'diff -r of two epochs' "$(cd "$mnt" && diff -rq model-1 model-2 | sort)" \
'Files model-1/index.tsv and model-2/index.tsv differ
Files model-1/pack.json and model-2/pack.json differ
Files model-1/pack.safetensors and model-2/pack.safetensors differ
Files model-1/scalars/epoch and model-2/scalars/epoch differ
Only in model-1/npy: e1.npy
Only in model-1/tensors: e1
Only in model-2/npy: e2.npy
Only in model-2/tensors: e2'

# Which record a pack is.
mkdir "$dir/records"
cp "$golden/11_optimizer.bpk" "$golden/12_scheduler.bpk" "$dir/records"
# record NAME JSON: a pack of that content.
record() { oracle make /dev/stdin "$dir/records/$1.bpk" <<<"$2"; }
record module '{"tensors": [{"name": "0.weight", "dtype": "U8", "shape": [1], "param_id": 5}]}'
record composed '{"tensors": [], "scalars": {"0.epoch": {"UInt": 1}, "1.epoch": {"UInt": 1}}}'
record nothing '{"tensors": [], "metadata": {"a": "b"}}'
record both '{"tensors": [{"name": "w", "dtype": "U8", "shape": [1]}, {"name": "7.m", "dtype": "U8", "shape": [1], "param_id": 7}]}'
record by-id '{"tensors": [{"name": "7.m", "dtype": "U8", "shape": [1], "param_id": 7}]}'
record odd '{"tensors": [{"name": "07.m", "dtype": "U8", "shape": [1], "param_id": 7}], "metadata": {"07": "x"}}'
is 'which records they are' "$(cd "$mnt/records" && for name in *; do
    echo "$name $(getfattr --only-values -n user.bpk.record "$name" 2>/dev/null) $(jq -r .record "$name/pack.json")"
done)" '11_optimizer optimizer optimizer
12_scheduler scheduler scheduler
both mixed mixed
by-id optimizer optimizer
composed scheduler scheduler
module module module
nothing  null
odd module module'

# by-path/
record optim '{"tensors": [
    {"name": "7.momentum.m1", "dtype": "U8", "shape": [1]}, {"name": "7.momentum.m1.x", "dtype": "U8", "shape": [2]},
    {"name": "8.m", "dtype": "U8", "shape": [3]}, {"name": "9.m", "dtype": "U8", "shape": [4]},
    {"name": "10.m", "dtype": "U8", "shape": [5]}, {"name": "10.bias", "dtype": "U8", "shape": [6]}],
  "scalars": {"7.momentum.time": {"UInt": 3}, "7.__rank": {"UInt": 2}, "8.m": {"UInt": 9}},
  "metadata": {"7": "encoder.layer1.weight", "8": "encoder.layer1.bias", "9": "encoder.layer1.bias",
    "10": "encoder", "11": "encoder.none", "name": "10", "12": ".hidden..%"}}'
by_path() { (cd "$1/by-path" && find . -type l -printf '%p %l\n' | sort); }
is 'by-path/' "$(by_path "$mnt/records/optim")" './encoder/bias ../../tensors/10/bias
./encoder/layer1/bias/m ../../../../tensors/8/m
./encoder/layer1/weight/__rank ../../../../scalars/7/__rank
./encoder/layer1/weight/momentum.m1 ../../../../tensors/7/momentum/m1/%self
./encoder/layer1/weight/momentum.m1.x ../../../../tensors/7/momentum/m1/x
./encoder/layer1/weight/momentum.time ../../../../scalars/7/momentum/time
./encoder/m ../../tensors/10/m'
is 'the links lead to the state' "$(cd "$mnt/records/optim/by-path/encoder" && find . -xtype l; wc -c <m; cat layer1/weight/momentum.time)" $'5\n3'
is 'ls -i tells their numbers' "$(cd "$mnt/records/optim/by-path/encoder/layer1/weight" && ls -iA | awk '{ print $1 }')" \
    "$(cd "$mnt/records/optim/by-path/encoder/layer1/weight" && stat -c %i ./*)"
is 'no two have one' "$(find "$mnt/records/optim" -printf '%i\n' | sort | uniq -d)" ''
ok 'none without paths' test ! -e "$mnt/records/module/by-path" -a ! -e "$mnt/records/11_optimizer/by-path"
mounted 'one mounts alone' -o flat "$dir/records/optim.bpk" "$T/alone"
is 'by-path/ of flat names' "$(by_path "$T/alone" | head -3)" './encoder.layer1.bias/m ../../tensors/8.m
./encoder.layer1.weight/__rank ../../scalars/7.__rank
./encoder.layer1.weight/momentum.m1 ../../tensors/7.momentum.m1'
unmount 'it unmounts' "$T/alone"
mounted 'and writable' -o rw "$dir/records/optim.bpk" "$T/alone"
ok 'where it has none' test ! -e "$T/alone/by-path"
unmount 'it unmounts' "$T/alone"

# latest/
is 'latest/' "$(cd "$mnt/latest" && ls -F && readlink ./*)" $'model@\noptim@\n../model-10\n../optim-003'
is 'it leads to the pack' "$(cat "$mnt/latest/model/scalars/epoch")" 10
ok 'no latest/ without checkpoints' test ! -e "$mnt/sub/latest"
epoch 100 "$dir/model-100.bpk"
is 'a new epoch is the latest' "$(cat "$mnt/latest/model/scalars/epoch")" 100
epoch 12 "$dir/latest-12.bpk"
mkdir "$dir/latest"
ok 'a folder of that name has it' test ! -e "$mnt/latest/model"
rmdir "$dir/latest"
rm "$dir/latest-12.bpk"

# Changes under the mount.
epoch 5 "$dir/new.bpk"
is 'a new pack appears' "$(ls "$mnt" | grep -x new) $(cat "$mnt/new/scalars/epoch")" 'new 5'
before=$(stat -c %i "$mnt/new")
exec 7<"$mnt/new/tensors/e5" 8<"$mnt/new/scalars"
epoch 6 "$T/six.bpk"
mv "$T/six.bpk" "$dir/new.bpk"
is 'one that is replaced shows the new one' "$(cat "$mnt/new/scalars/epoch") $(ls "$mnt/new/tensors")" $'6 e6\nencoder'
ok 'which is another inode' test "$(stat -c %i "$mnt/new")" != "$before"
is 'who has the old one open reads it' "$(wc -c <&7)" 5
exec 7<&- 8<&-
mv "$dir/new.bpk" "$dir/sub/moved.bpk"
refused 'one that is moved away is gone' "$ENOENT" ls "$mnt/new"
is 'and is where it went' "$(cat "$mnt/sub/moved/scalars/epoch")" 6
head -c 100 "$dir/sub/moved.bpk" >"$dir/sub/part.bpk"
ok 'a pack that is half there is a file' test -f "$mnt/sub/part.bpk" -a ! -e "$mnt/sub/part"
cat "$dir/sub/moved.bpk" >"$dir/sub/part.bpk"
ok 'and a folder when it is there' test -d "$mnt/sub/part" -a ! -e "$mnt/sub/part.bpk"
echo more >>"$dir/README.md"
is 'a file that grows' "$(cat "$mnt/README.md")" $'notes\nmore'
mkdir "$dir/later" && cp "$T/base.bpk" "$dir/later/a.bpk"
is 'a new folder' "$(ls "$mnt/later")" a
(cd "$mnt/later" && rm -r "$dir/later" && timeout 20 ls . >/dev/null 2>&1)
refused 'a folder that is removed' "$ENOENT" ls "$mnt/later"

# More packs than stay open.
mkdir "$dir/many"
for n in $(seq 150); do cp "$dir/model-2.bpk" "$dir/many/p$n.bpk"; done
exec 7<"$mnt/many/p1/tensors/e2"
cd "$mnt/many/p2" || exit 1
is 'all are read' "$(cat "$mnt"/many/*/scalars/epoch | sort | uniq -c | tr -s ' ')" ' 150 2'
open=$(jq .open "$mnt/.bpkfs/status")
ok "few stay open ($open)" test "$open" -le 66
is 'what is open in one reads on' "$(wc -c <&7)" 2
exec 7<&-
is 'what was closed opens again, under the same numbers' \
    "$(cat scalars/epoch) $(stat -c %i tensors) $(jq -c '.scalars.epoch.value' pack.json)" \
    "2 $(stat -c %i "$mnt/many/p2/tensors") 2"
before=$(stat -c %i "$mnt/many/p2/tensors/encoder/layer1/weight")
cat "$mnt"/many/*/scalars/epoch >/dev/null
is 'as often as it has to' "$(stat -c %i "$mnt/many/p2/tensors/encoder/layer1/weight")" "$before"
cp "$dir/model-9.bpk" "$T/nine.bpk"
mv "$T/nine.bpk" "$dir/many/p2.bpk"
cat "$mnt"/many/*/scalars/epoch >/dev/null
for n in $(seq 3 150); do : <"$mnt/many/p$n/metadata"; done
refused 'who is still in one that was replaced is told' 'stale|no such file' timeout 20 ls -l .
cd "$T" || exit 1
is 'and there is the other one' "$(cat "$mnt/many/p2/scalars/epoch")" 9
ok 'all at once' bash -c 'for n in $(seq 150); do cat "$0/many/p$n/pack.json" "$0/many/p$n/npy/e2.npy" >/dev/null & done 2>/dev/null; wait' "$mnt"
unmount 'it unmounts' "$mnt"

# A mount in its own directory, or over it.
mkdir "$dir/here"
mounted 'inside itself' "$dir" "$dir/here"
ok 'it does not show itself' timeout 20 test ! -e "$dir/here/here" -a -d "$dir/here/model-1"
is 'nor lists it' "$(timeout 20 ls "$dir/here" | grep -c here)" 0
unmount 'it unmounts' "$dir/here"
mounted 'over itself' -o flat "$dir" "$dir"
is 'with the options of a mount' "$(timeout 20 ls "$dir/model-1/tensors" | tr '\n' ' ')" 'e1 encoder.layer1.weight '
unmount 'it unmounts' "$dir"
done_testing
