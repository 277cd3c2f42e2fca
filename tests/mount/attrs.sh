#!/usr/bin/env bash
# Extended attributes that are set, and copies that bring them along
# (SEMANTICS, sections 2 and 4).
. "$(dirname "$0")/lib.sh"

get() { getfattr --absolute-names --only-values -n "user.bpk.$2" "$1" 2>&1; }
set_() { setfattr -n "user.bpk.$2" -v "$3" "$1"; }
# What a pack says of tensors: name, dtype, shape, param_id; and all of them, with bytes.
said() { oracle tensor "$@" | sed 's/ [0-9a-f]*$//'; }
empty() { # NAME: a fresh pack without anything, and a mount of it
    pack=$T/$1.bpk mnt=$T/$1
    mkdir -p "$mnt"
    cp "$golden/01_empty.bpk" "$pack"
    chmod u+w "$pack"
    mounted "$1: mount" -o rw "$pack" "$mnt"
}
edit() { # NAME: the sample
    fresh "$1"
    mounted "$1: mount" -o rw "$pack" "$mnt"
}
changes() { cat "$mnt/.bpkfs/changes"; }

# A read-only mount.
fresh readonly
mounted 'read-only: mount' "$pack" "$mnt"
refused 'read-only: set' "$EROFS" set_ "$mnt/tensors/steps" dtype I64
refused 'read-only: remove' "$EROFS" setfattr -x user.bpk.param_id "$mnt/tensors/head"
unmount 'read-only: unmount' "$mnt"

# A new tensor, told what it is: dtype first, or shape first.
empty new
head -c 48 /dev/urandom >"$T/w"
for name in a b c d e; do cp "$T/w" "$mnt/tensors/$name"; done
is 'new: U8 and its length at first' "$(get "$mnt/tensors/a" dtype) $(get "$mnt/tensors/a" shape)" 'U8 [48]'
ok 'new: dtype' set_ "$mnt/tensors/a" dtype F32
is 'new: the shape follows' "$(get "$mnt/tensors/a" shape)" '[12]'
ok 'new: then shape' set_ "$mnt/tensors/a" shape '[3, 4]'
is 'new: the shape reads as always' "$(get "$mnt/tensors/a" shape)" '[3,4]'
ok 'new: shape first' set_ "$mnt/tensors/b" shape '[2,4,3]'
is 'new: a length that is not shape x dtype is marked' "$(changes | grep b)" 'A! tensors/b'
ok 'new: then dtype' set_ "$mnt/tensors/b" dtype BF16
is 'new: and mended by it' "$(changes | grep b)" 'A  tensors/b'
ok 'new: through npy/' set_ "$mnt/npy/c.npy" dtype 'Bool(U32)'
is 'new: both views say it' "$(get "$mnt/tensors/c" dtype) $(get "$mnt/npy/c.npy" shape)" 'Bool(U32) [12]'
ok 'new: param_id' set_ "$mnt/tensors/c" param_id 18446744073709551615
ok 'new: dtype alone' set_ "$mnt/tensors/d" dtype F64
ok 'new: appended to' bash -c "head -c 8 /dev/zero >>'$mnt/tensors/d'"
is 'new: and the shape follows on' "$(get "$mnt/tensors/d" shape)" '[7]'
ok 'new: a dtype that the length is no multiple of' bash -c "printf xyz >'$mnt/tensors/e'; \
    setfattr -n user.bpk.dtype -v I16 '$mnt/tensors/e'"
is 'new: is marked' "$(changes | grep e$)" 'A! tensors/e'
unmount 'new: commit' "$mnt" 24 'left out: "?e"?'
is 'new: in the pack' "$(said "$pack" a b c d e)" 'a F32 [3,4] -
b BF16 [2,4,3] -
c Bool(U32) [12] 18446744073709551615
d F64 [7] -
e none'

# What cannot be.
edit bad
before=$(whole_tree "$mnt")
while IFS='|' read -r attribute value error; do
    refused "bad: $attribute $value" "${!error}" set_ "$mnt/tensors/steps" "$attribute" "$value"
done <<'ROWS'
dtype||EINVAL
dtype|f16|EINVAL
dtype|F128|EINVAL
dtype|QFloat|EINVAL
dtype|{"Bool":"Native"}|EINVAL
dtype|{"QFloat":{"value":"Q8S"}}|EINVAL
dtype|{"QFloat":{"value":"Q9S","store":"Native","mode":"Symmetric"}}|EINVAL
shape||EINVAL
shape|5|EINVAL
shape|[5|EINVAL
shape|[5,]|EINVAL
shape|[-5]|EINVAL
shape|[18446744073709551616]|EINVAL
param_id||EINVAL
param_id|-1|EINVAL
param_id|x|EINVAL
param_id|18446744073709551616|EINVAL
type|Int|ENOTSUP
size|5|ENOTSUP
ROWS
refused 'bad: another attribute' "$ENOTSUP" setfattr -n user.color -v red "$mnt/tensors/steps"
refused 'bad: of a folder' "$ENOTSUP" set_ "$mnt/tensors/encoder" dtype F32
refused 'bad: of metadata' "$ENOTSUP" set_ "$mnt/metadata/arch" type Int
refused 'bad: of the status' "$ENOTSUP" set_ "$mnt/.bpkfs/status" dtype F32
refused 'bad: a dtype of a scalar' "$ENOTSUP" set_ "$mnt/scalars/lr" dtype F32
refused 'bad: a dtype is not removed' "$ENOTSUP" setfattr -x user.bpk.dtype "$mnt/tensors/steps"
refused 'bad: nor a type' "$ENOTSUP" setfattr -x user.bpk.type "$mnt/scalars/lr"
refused 'bad: what is not there' "$ENODATA" setfattr -x user.bpk.param_id "$mnt/tensors/steps"
refused 'bad: what is nothing' "$ENODATA" setfattr -x user.color "$mnt/tensors/steps"
is 'bad: XATTR_CREATE and XATTR_REPLACE' "$("$PYTHON" - "$mnt" <<'PYTHON'
import errno, os, sys
top = sys.argv[1] + "/"
def set_(path, name, value, flags):
    try:
        os.setxattr(top + path, "user.bpk." + name, value, flags)
        return "0"
    except OSError as error:
        return errno.errorcode[error.errno]
print(set_("tensors/steps", "dtype", b"I64", os.XATTR_CREATE),
      set_("tensors/steps", "dtype", b"I64", os.XATTR_REPLACE),
      set_("tensors/steps", "param_id", b"5", os.XATTR_REPLACE),
      set_("scalars/lr", "type", b"Float", os.XATTR_CREATE),
      set_("scalars/lr", "type", b"Float", os.XATTR_REPLACE))
PYTHON
)" 'EEXIST 0 ENODATA EEXIST 0'
is 'bad: nothing is changed' "$(whole_tree "$mnt")" "$before"
is 'bad: nothing is an edit' "$(changes)" ''
unmount 'bad: unmount' "$mnt"
ok 'bad: the pack is as it was' cmp "$T/base.bpk" "$pack"

# Bytes of the pack that stay, and are said to be something else.
edit again
ok 'again: another dtype of the same size' set_ "$mnt/tensors/encoder/layer1/weight" dtype I32
ok 'again: another shape of the same size' set_ "$mnt/tensors/encoder/layer1/weight" shape '[2,6]'
is 'again: it reads so' "$(get "$mnt/npy/encoder/layer1/weight.npy" dtype) $(get "$mnt/tensors/encoder/layer1/weight" shape)" 'I32 [2,6]'
ok 'again: and its bytes stay' cmp "$mnt/tensors/encoder/layer1/weight" <(oracle data "$T/base.bpk" encoder.layer1.weight)
ok 'again: a param_id changes' set_ "$mnt/tensors/head/%self" param_id 99
ok 'again: one is taken off' setfattr -x user.bpk.param_id "$mnt/tensors/encoder/layer1/bias"
is 'again: it is gone' "$(get "$mnt/tensors/encoder/layer1/bias" param_id | grep -ciE "$ENODATA")" 1
ok 'again: one comes' set_ "$mnt/tensors/encoder/layer2/weight" param_id 5
ok 'again: one that fits no more' set_ "$mnt/tensors/steps" dtype F16
is 'again: is marked' "$(changes)" 'M  tensors/encoder.layer1.bias
M  tensors/encoder.layer1.weight
M  tensors/encoder.layer2.weight
M  tensors/head
M! tensors/steps'
unmount 'again: commit' "$mnt" 24 steps
is 'again: in the pack' "$(said "$pack" encoder.layer1.weight head encoder.layer1.bias encoder.layer2.weight steps)" \
    'encoder.layer1.weight I32 [2,6] 7
head F16 [5] 99
encoder.layer1.bias F32 [4] -
encoder.layer2.weight BF16 [2,2] 5
steps I64 [1] -'
is 'again: no byte of a tensor changed, no unknown key went' \
    "$(oracle show "$pack" | jq -c '[.tensors[] | .sha256, .extra], .extra, .order')" \
    "$(oracle show "$T/base.bpk" | jq -c '[.tensors[] | .sha256, .extra], .extra, .order')"

edit mended
ok 'mended: fits no more' set_ "$mnt/tensors/steps" dtype F16
ok 'mended: by the shape' set_ "$mnt/tensors/steps" shape '[4]'
is 'mended: and back it is no edit' "$(set_ "$mnt/tensors/steps" shape '[1]'; set_ "$mnt/tensors/steps" dtype I64; changes)" ''
head -c 100 /dev/urandom >"$T/long"
refused 'mended: a wrong length' "$EINVAL" cp "$T/long" "$mnt/tensors/encoder/layer1/bias"
is 'mended: marked' "$(changes)" 'M! tensors/encoder.layer1.bias'
ok 'mended: by a shape' set_ "$mnt/tensors/encoder/layer1/bias" shape '[5,5]'
is 'mended: not marked' "$(changes)" 'M  tensors/encoder.layer1.bias'
unmount 'mended: commit' "$mnt"
is 'mended: in the pack' "$(said "$pack" encoder.layer1.bias)" 'encoder.layer1.bias F32 [5,5] 9505838338724798577'

# The type of a scalar.
edit scalars
while IFS='|' read -r name type want; do
    if [ "${want#E}" = "$want" ]; then
        ok "scalars: $name to $type" set_ "$mnt/scalars/$name" type "$type"
        is "scalars: $name reads" "$(cat "$mnt/scalars/$name") $(get "$mnt/scalars/$name" type)" "$want $type"
    else
        old="$(cat "$mnt/scalars/$name") $(get "$mnt/scalars/$name" type)"
        refused "scalars: $name to $type" "${!want}" set_ "$mnt/scalars/$name" type "$type"
        is "scalars: $name stays" "$(cat "$mnt/scalars/$name") $(get "$mnt/scalars/$name" type)" "$old"
    fi
done <<'ROWS'
epoch|Int|3
epoch|Float|3.0
epoch|UInt|3
epoch|Bool|ERANGE
delta|UInt|ERANGE
delta|Float|-5.0
lr|Int|ERANGE
lr|Double|EINVAL
lr|float|EINVAL
done|UInt|0
done|Float|0.0
done|Bool|false
opt/time|Int|10
ROWS
ok 'scalars: a type before a value' bash -c "touch '$mnt/scalars/later' && \
    setfattr -n user.bpk.type -v Int '$mnt/scalars/later' && echo 5 >'$mnt/scalars/later'"
is 'scalars: counts' "$(get "$mnt/scalars/later" type)" Int
unmount 'scalars: commit' "$mnt"
for row in epoch:'UInt 3' delta:'Float -5.0' lr:'Float 0.001' done:'Bool false' opt.time:'Int 10' later:'Int 5'; do
    is "scalars: ${row%%:*} in the pack" "$(oracle scalar "$pack" "${row%%:*}")" "${row#*:}"
done

# Copies between mounts: by each tool, all that tells what the bytes are comes along.
source=$T/source
mkdir -p "$source"
"$PYTHON" - "$golden" "$T/all.json" <<'PYTHON'
import json, sys
tensors = []
for name in ("03_all_dtypes", "04_quantized", "07_param_ids", "09_shapes"):
    with open(f"{sys.argv[1]}/{name}.json") as file:
        spec = json.load(file)
    tensors += [{**t, "name": f"from{name[:2]}.{t['name']}"} for t in spec["tensors"]]
with open(sys.argv[2], "w") as file:
    json.dump({"tensors": tensors}, file)
PYTHON
oracle make "$T/all.json" "$T/all.bpk"
mounted 'copies: mount the source' "$T/all.bpk" "$source"
list=$(oracle show "$T/all.bpk" | jq -r '.order[]' | tr . /)
while IFS='|' read -r tool command; do
    empty copy
    ok "copies, $tool: exits with 0" env a="$source" b="$mnt" list="$list" bash -c "$command"
    is "copies, $tool: nothing is marked" "$(changes | grep '^.!')" ''
    unmount "copies, $tool: commit" "$mnt"
    is "copies, $tool: is what it was" "$(oracle differ "$T/all.bpk" "$pack" | grep -v 'order of data')" ''
    ok "copies, $tool: the library opens it" valid "$pack"
    # In the order of the data the copy is the same pack.
    [ "$tool" != 'cp --preserve=xattr' ] || ok "copies, $tool: to the byte" cmp "$T/all.bpk" "$pack"
done <<'ROWS'
cp --preserve=xattr|cd "$a/tensors"; for f in $list; do mkdir -p "$b/tensors/${f%/*}" && cp --preserve=xattr $f "$b/tensors/$f" || exit 1; done
cp -a|cp -a "$a/tensors/." "$b/tensors/"
rsync -aX|rsync -aX "$a/tensors/" "$b/tensors/"
rsync -aX --inplace|rsync -aX --inplace "$a/tensors/" "$b/tensors/"
cp -a, npy|cp -a "$a/npy/." "$b/npy/"
rsync -aX, npy|rsync -aX "$a/npy/" "$b/npy/"
ROWS
unmount 'copies: unmount the source' "$source"

# Over tensors that are something else, and within one mount.
cat >"$T/other.json" <<'JSON'
{"tensors": [
  {"name": "encoder.layer1.weight", "dtype": "F64", "shape": [7], "param_id": 1},
  {"name": "encoder.layer1.bias", "dtype": "F32", "shape": [], "param_id": 2},
  {"name": "none", "dtype": "BF16", "shape": [0, 5], "param_id": 3},
  {"name": "mask", "dtype": {"Bool": "U32"}, "shape": [2, 1], "param_id": 4},
  {"name": "steps", "dtype": {"QFloat": {"value": "Q8S", "store": "Native", "mode": "Symmetric",
    "tensor": "F32", "block": null}}, "shape": [3], "byte_len": 7, "param_id": 5}
 ],
 "scalars": {"delta": {"Int": 7}, "n": {"Int": 5}, "m": {"UInt": 5}, "f": {"Float": 5.0}}}
JSON
oracle make "$T/other.json" "$T/other.bpk"
names='encoder.layer1.weight encoder.layer1.bias none mask steps'
mounted 'over others: mount the source' "$T/other.bpk" "$source"
while IFS='|' read -r tool command; do
    edit over
    ok "over others, $tool" env a="$source" b="$mnt" bash -c "$command"
    is "over others, $tool: nothing is marked" "$(changes | grep '^.!')" ''
    unmount "over others, $tool: commit" "$mnt"
    is "over others, $tool: tensors" "$(oracle tensor "$pack" $names)" "$(oracle tensor "$T/other.bpk" $names)"
    is "over others, $tool: scalars" \
        "$(oracle show "$pack" | jq -c '.scalars | .delta, .n, .m, .f')" \
        "$(oracle show "$T/other.bpk" | jq -c '.scalars | .delta, .n, .m, .f')"
    is "over others, $tool: the rest stays" \
        "$(oracle differ "$T/base.bpk" "$pack" | grep -vE 'encoder.layer1|none|mask|steps|delta| [nmf]$')" ''
done <<'ROWS'
cp --preserve=xattr|cd $a && cp -r --preserve=xattr tensors scalars $b/
cp -a|cp -a $a/tensors/. $b/tensors/ && cp -a $a/scalars/. $b/scalars/
rsync -aX|rsync -aX $a/tensors/ $b/tensors/ && rsync -aX $a/scalars/ $b/scalars/
rsync -aX, npy|rsync -aX $a/npy/ $b/npy/ && rsync -aX $a/scalars/ $b/scalars/
ROWS
unmount 'over others: unmount the source' "$source"

edit within
cd "$mnt" || exit 1
ok 'within: cp -a' cp -a tensors/encoder/layer1/weight tensors/encoder/layer1/twin
ok 'within: cp -a over one' cp -a tensors/encoder/layer2/weight tensors/big
ok 'within: a copy of a folder' cp -a tensors/encoder tensors/decoder
ok 'within: through a scratch file' bash -c 'cp -a tensors/mask tensors/.m && mv tensors/.m tensors/steps'
ok 'within: raw bytes take what is there' bash -c \
    'head -c 10 /dev/zero >tensors/.h && setfattr -n user.bpk.param_id -v 12 tensors/.h && mv tensors/.h tensors/head/%self'
cd /
unmount 'within: commit' "$mnt"
is 'within: in the pack' "$(said "$pack" encoder.layer1.twin big decoder.layer1.bias steps head)" \
    'encoder.layer1.twin F32 [4,3] 7
big BF16 [2,2] -
decoder.layer1.bias F32 [4] 9505838338724798577
steps Bool(Native) [3] -
head F16 [5] 12'

# rsync of plain files finds no attributes there, and takes none away.
edit plain
mkdir -p "$T/files"
head -c 8 /dev/urandom >"$T/files/steps"
touch -d 2001-01-01 "$T/files/steps" # or rsync may take it for the same file
refused 'plain: rsync -aX says what it cannot take off' 'rsync_xal_clear|lremovexattr|not supported' \
    rsync -aX --inplace "$T/files/" "$mnt/tensors/"
ok 'plain: rsync -a' rsync -a "$T/files/" "$mnt/tensors/"
unmount 'plain: commit' "$mnt"
is 'plain: what it is stays' "$(said "$pack" steps)" "$(said "$T/base.bpk" steps)"
ok 'plain: its bytes are new' cmp "$T/files/steps" <(oracle data "$pack" steps)

# The same content, put together by hand, is what Burn wrote: byte for byte.
assemble() { "$PYTHON" -I "$top/tests/support/assemble.py" "$@"; }
flat=
for spec in "$golden"/*.json; do
    case $spec in *.read.json) continue ;; esac
    name=$(basename "$spec" .json)
    left=$(assemble --nameable "$spec" "$T/spec.json")
    oracle make "$T/spec.json" "$T/want.bpk"
    [ "$left" -ne 0 ] || is "$name: the spec is the golden pack" "$(sum "$T/want.bpk")" "$(sum "$golden/$name.bpk")"
    pack=$T/golden.bpk mnt=$T/golden
    mkdir -p "$mnt"
    rm -f "$pack"
    mounted "$name $flat: mount" -o "rw,create${flat:+,flat}" "$pack" "$mnt"
    ok "$name $flat: put together" assemble "$T/spec.json" "$mnt" $flat
    unmount "$name $flat: commit" "$mnt"
    if [ "$name" = 01_empty ]; then
        ok "$name $flat: nothing was put in, nothing is written" test ! -e "$pack"
    else
        ok "$name $flat: byte for byte what Burn writes" cmp "$T/want.bpk" "$pack"
    fi
    if [ -n "$flat" ]; then flat=; else flat=--flat; fi
done

# A shape of 40 000 dimensions: the kernel hands out no value of more than 64 KiB.
"$PYTHON" -c 'import json
print(json.dumps({"tensors": [{"name": "w", "dtype": "U8", "shape": [1] * 40000}]}))' >"$T/ranks.json"
oracle make "$T/ranks.json" "$T/ranks.bpk"
mkdir -p "$T/ranks"
mounted 'many dimensions: mount' "$T/ranks.bpk" "$T/ranks"
is 'many dimensions: what can be read is listed' \
    "$(getfattr --absolute-names -d "$T/ranks/tensors/w" 2>&1 | grep -v '^#' | cut -d= -f1)" \
    $'user.bpk.dtype\nuser.bpk.offset'
ok 'many dimensions: a copy succeeds' cp -a "$T/ranks/npy" "$T/ranks.copy"
unmount 'many dimensions: unmount' "$T/ranks"

is 'nothing is left beside the packs' "$(ls -A "$T" | grep '^\.')" ''
done_testing
