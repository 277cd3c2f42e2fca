#!/usr/bin/env bash
# The other ways to look at a pack: npy/, pack.safetensors, index.tsv, pack.json
# (SEMANTICS, section 2), read by the programs that people read them with.
. "$(dirname "$0")/lib.sh"

views() { "$PYTHON" -I "$top/tests/support/views.py" "$@" 2>&1; }
if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    NUMPY=$PYTHON
else # Debian's numpy belongs to Debian's python
    NUMPY=/usr/bin/python3
fi
attr() { getfattr --absolute-names --only-values -n "user.bpk.$2" "$mnt/$1" 2>/dev/null; }

# all NAME PACK: every view of the mount at $mnt is what the pack says.
all() {
    local count
    count=$(oracle show "$2" | jq '.tensors | length')
    is "$1: numpy reads every tensor" \
        "$("$NUMPY" -I "$top/tests/support/views.py" npy "$mnt" "$2" 2>&1)" "$count checked"
    is "$1: index.tsv" "$(views index "$mnt" "$2")" "$count checked"
    is "$1: pack.json" "$(views json "$mnt" "$2")" \
        "$(oracle show "$2" | jq '(.tensors | length) + (.scalars | length)') checked"
    is "$1: pack.safetensors" "$(views safetensors "$mnt" "$2")" "$count checked"
}

fresh views
mounted 'a pack mounts' "$pack" "$mnt"
all 'a pack' "$pack"
is 'what the root holds' "$(ls -A "$mnt" | tr '\n' ' ')" \
    '.bpkfs index.tsv metadata npy pack.json pack.safetensors scalars tensors '
is 'npy/ has the folders of tensors/' "$(cd "$mnt/npy" && find . | sort)" \
    "$(cd "$mnt/tensors" && find . -type d -print -o -print | while read -r path; do
        [ -d "$path" ] && echo "$path" || echo "$path.npy"
    done | sort)"
for name in dtype shape param_id offset; do
    is "user.bpk.$name is the same in both" "$(attr npy/encoder/layer1/weight.npy $name)" \
        "$(attr tensors/encoder/layer1/weight $name)"
done
like 'it is not empty' "$(attr npy/encoder/layer1/weight.npy shape)" '^\[4,3\]$'
is 'a dotted name works in npy/' "$(sum "$mnt/npy/encoder.layer1.weight.npy")" \
    "$(sum "$mnt/npy/encoder/layer1/weight.npy")"
is 'so does the own name of a tensor that is a folder too' "$(sum "$mnt/npy/head.npy")" \
    "$(sum "$mnt/npy/head/%self.npy")"
refused 'a tensor without .npy is not there' "$ENOENT" cat "$mnt/npy/big"
refused 'a folder with .npy is not there' "$ENOENT" ls "$mnt/npy/encoder.npy"
is 'no two files have one inode' "$(find "$mnt" -printf '%i\n' | sort | uniq -d)" ''
is 'ls -i and stat agree' "$(cd "$mnt" && ls -iA | awk '{ print $1 }')" \
    "$(cd "$mnt" && stat -c %i $(ls -A))"
is 'modes and owner are those of the pack' \
    "$(cd "$mnt" && stat -c '%A %u %Y' pack.safetensors npy/big.npy index.tsv | sort -u)" \
    "-r--r--r-- $(stat -c '%u %Y' "$pack")"
while IFS='|' read -r name command; do
    refused "read-only: $name" "$EROFS" bash -c "cd '$mnt' && $command"
done <<'ROWS'
into npy/|echo 1 >npy/big.npy
a new file in npy/|echo 1 >npy/new.npy
rm in npy/|rm -f npy/big.npy
into pack.json|echo 1 >pack.json
truncate pack.safetensors|truncate -s 0 pack.safetensors
rm index.tsv|rm -f index.tsv
ROWS

is 'which record it is' "$(attr . record) $(jq -r .record "$mnt/pack.json")" 'mixed mixed'

# jq, awk, and a reader of safetensors.
is 'jq finds a tensor by its name' \
    "$(jq -c '.tensors["encoder.layer1.weight"] | [.dtype, .shape, .param_id]' "$mnt/pack.json")" \
    '["F32",[4,3],7]'
is 'jq adds the bytes up' "$(jq '[.tensors[].bytes] | add' "$mnt/pack.json")" \
    "$(find "$mnt/tensors" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')"
is 'awk does too' "$(awk -F'\t' 'NR > 1 { s += $4 } END { print s }' "$mnt/index.tsv")" \
    "$(jq '[.tensors[].bytes] | add' "$mnt/pack.json")"
is 'offsets lead into the pack' "$(awk -F'\t' '$1 == "steps" { print $5, $4 }' "$mnt/index.tsv" |
    while read -r off size; do tail -c "+$((off + 1))" "$pack" | head -c "$size"; done | sum)" \
    "$(sum "$mnt/tensors/steps")"

# Ways to read the large one.
cp "$mnt/pack.safetensors" "$T/copy"
ok 'cmp' cmp "$T/copy" "$mnt/pack.safetensors"
is 'in odd pieces' "$(dd if="$mnt/pack.safetensors" bs=4099 2>/dev/null | sum)" "$(sum "$T/copy")"
is 'from the middle' "$(tail -c +777 "$mnt/pack.safetensors" | sum)" "$(tail -c +777 "$T/copy" | sum)"
ok 'mapped, shared and private' "$PYTHON" - "$mnt/pack.safetensors" "$T/copy" <<'PYTHON'
import mmap, os, sys
want = open(sys.argv[2], "rb").read()
fd = os.open(sys.argv[1], os.O_RDONLY)
for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
    with mmap.mmap(fd, 0, flags=flags, prot=mmap.PROT_READ) as view:
        assert view[:] == want, flags
assert os.read(fd, 10) == want[:10] and os.pread(fd, 100, len(want) - 5) == want[-5:]
PYTHON
unmount 'it unmounts' "$mnt"

# Thousands of tensors in one read, aligned and not, and all that Burn can write.
"$PYTHON" - "$T/many.json" <<'PYTHON'
import json, sys
dtypes = ["U8", "F64", "I16", "F32", {"Bool": "Native"}]
json.dump({"tensors": [{"name": f"t{k % 50}.{k}", "dtype": dtypes[k % 5], "shape": [k % 4]}
                       for k in range(6000)]}, open(sys.argv[1], "w"))
PYTHON
oracle make "$T/many.json" "$T/many.bpk"
mounted 'a pack of many small tensors mounts' "$T/many.bpk" "$mnt"
is 'many: pack.safetensors' "$(views safetensors "$mnt" "$T/many.bpk")" '6000 checked'
is 'many: index.tsv' "$(views index "$mnt" "$T/many.bpk")" '6000 checked'
unmount 'it unmounts' "$mnt"
for path in "$golden"/*.bpk; do
    name=${path##*/}
    if ! mounted "golden $name mounts" "$path" "$mnt"; then continue; fi
    all "golden $name" "$path"
    unmount "golden $name unmounts" "$mnt"
done

# Nothing that a pack says of its tensors makes a view that cannot be read.
oracle make /dev/stdin "$T/odd.bpk" <<'SPEC'
{"tensors": [
  {"name": "__metadata__", "dtype": "F32", "shape": [2]},
  {"name": "__metadata__1", "dtype": "F32", "shape": [1]},
  {"name": "short", "dtype": "F32", "shape": [3], "byte_len": 10},
  {"name": "huge", "dtype": "F64", "shape": [9223372036854775807, 0, 8]},
  {"name": "\u001b[31m\"\\\n\tname", "dtype": "U8", "shape": [1]}
 ], "metadata": {"bpk.dtype:short": "mine", "\"": "\\\u0007"}}
SPEC
mounted 'an odd pack mounts' "$T/odd.bpk" "$mnt"
is 'odd: index.tsv' "$(views index "$mnt" "$T/odd.bpk")" '5 checked'
is 'odd: pack.json' "$(views json "$mnt" "$T/odd.bpk")" '5 checked'
is 'odd: a tensor called __metadata__ gets another name' \
    "$(head -c 1000 "$mnt/pack.safetensors" | tail -c +9 | grep -aoE '"__metadata__[0-9]*"' | sort -u | tr '\n' ' ')" \
    '"__metadata__" "__metadata__1" "__metadata__2" '
is 'odd: the user keeps their keys' \
    "$(tail -c +9 "$mnt/pack.safetensors" | head -c 1000 | grep -aoE '"bpk1?.dtype:short":"[^"]*"' | tr '\n' ' ')" \
    '"bpk.dtype:short":"mine" "bpk1.dtype:short":"F32" '
is 'odd: a length that is not its shape reads as bytes' \
    "$("$NUMPY" -c 'import numpy, sys; a = numpy.load(sys.argv[1]); print(a.dtype, a.shape)' "$mnt/npy/short.npy" 2>&1)" \
    'uint8 (10,)'
unmount 'it unmounts' "$mnt"

# A writable mount: the views show what is there now.
fresh views
mounted 'a writable mount' -o rw "$pack" "$mnt"
all 'writable' "$pack"
before=$(stat -c %i "$mnt/pack.json")
is 'nothing edited, the same file' "$(stat -c %i "$mnt/pack.json")" "$before"
exec 7<"$mnt/pack.safetensors" 8<"$mnt/pack.json"
cp "$mnt/pack.safetensors" "$T/old.safetensors"
cp "$mnt/pack.json" "$T/old.json"
head -c 16 /dev/zero >"$mnt/tensors/encoder/layer1/bias"
printf abc >"$mnt/tensors/new"
rm "$mnt/tensors/none"
mv "$mnt/tensors/encoder/layer2" "$mnt/tensors/encoder/layer3"
echo 0.5 >"$mnt/scalars/lr"
echo vgg >"$mnt/metadata/arch"
is 'what was open stays as it was' "$(sum <&7) $(sum <&8)" \
    "$(sum <"$T/old.safetensors") $(sum <"$T/old.json")"
exec 7<&- 8<&-
ok 'after an edit it is another file' test "$(stat -c %i "$mnt/pack.json")" != "$before"
is 'ls -i says so too' "$(ls -i "$mnt/pack.json" | cut -d' ' -f1)" "$(stat -c %i "$mnt/pack.json")"
is 'pack.json shows edits' "$(jq -c '[.scalars.lr.value, .metadata.arch,
    .tensors["encoder.layer1.bias"].offset, .tensors.new, .tensors.none,
    .tensors["encoder.layer3.weight"].dtype]' "$mnt/pack.json")" \
    '[0.5,"vgg",null,{"dtype":"U8","shape":[3],"bytes":3,"offset":null},null,"BF16"]'
is 'index.tsv too' "$(awk -F'\t' '$1 == "new" || $1 == "encoder.layer1.bias"' OFS='|' "$mnt/index.tsv" |
    tr '\t' '|' | tr '\n' ' ')" 'encoder.layer1.bias|F32|[4]|16||9505838338724798577 new|U8|[3]|3|| '
is 'npy/ too' "$("$NUMPY" -c 'import numpy, sys
print(*(numpy.load(p).tolist() for p in sys.argv[1:]))' "$mnt/npy/encoder/layer1/bias.npy" "$mnt/npy/new.npy" 2>&1)" \
    '[0.0, 0.0, 0.0, 0.0] [97, 98, 99]'
is 'folders are renamed in both' "$(ls "$mnt/npy/encoder" | tr '\n' ' ')" 'layer1 layer3 '
for name in index.tsv pack.json pack.safetensors; do
    refused "no writing into $name" "$EACCES" bash -c "echo 1 >>'$mnt/$name'"
    refused "no emptying of $name" "$EACCES" truncate -s 0 "$mnt/$name"
    refused "no removing of $name" "$EACCES|$EPERM" rm -f "$mnt/$name"
    refused "no replacing of $name" "$EACCES|$EXDEV" mv -f "$mnt/scalars/x" "$mnt/$name"
done
refused 'no file of another kind in the root' "$EACCES" touch "$mnt/new"
refused 'from npy/ to tensors/ is across views' "$EXDEV" \
    "$PYTHON" -c 'import os, sys; os.rename(*sys.argv[1:])' "$mnt/npy/big.npy" "$mnt/tensors/other"
mv "$mnt/npy/steps.npy" "$mnt/npy/count.npy"
is 'mv in npy/ renames the tensor' "$(ls "$mnt/tensors" | grep -E 'steps|count')" count
rm "$mnt/npy/mask.npy"
refused 'rm in npy/ removes it' "$ENOENT" ls "$mnt/tensors/mask"
is 'a pack that is edited is another record' "$(rm -r "$mnt"/scalars/*
    attr . record) $(jq -r .record "$mnt/pack.json")" 'module module'
cp "$mnt/pack.safetensors" "$T/edited.safetensors"
cp -r "$mnt/npy" "$T/edited-npy"
unmount 'it commits' "$mnt"
mounted 'the new pack mounts' "$pack" "$mnt"
all 'edited' "$pack"
is 'npy/ is what it was before the commit' "$(diff -r "$T/edited-npy" "$mnt/npy" 2>&1)" ''
is 'pack.safetensors holds the same tensors' \
    "$(tail -c +9 "$T/edited.safetensors" | head -c "$(od -An -tu8 -N8 "$T/edited.safetensors")" | jq -S 'map_values(.dtype?, .shape?)')" \
    "$(tail -c +9 "$mnt/pack.safetensors" | head -c "$(od -An -tu8 -N8 "$mnt/pack.safetensors")" | jq -S 'map_values(.dtype?, .shape?)')"
unmount 'it unmounts' "$mnt"
done_testing
