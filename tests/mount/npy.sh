#!/usr/bin/env bash
# Writing .npy files in npy/ (SEMANTICS, section 4): what numpy, cp and rsync write
# there is a tensor.
. "$(dirname "$0")/lib.sh"

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    NUMPY=$PYTHON
else # Debian's numpy belongs to Debian's python
    NUMPY=/usr/bin/python3
fi
said() { oracle tensor "$@" | sed 's/ [0-9a-f]*$//'; }
changes() { cat "$mnt/.bpkfs/changes"; }
edit() { # NAME [PACK]
    fresh "$1"
    cat "${2:-$T/base.bpk}" >"$pack"
    mounted "$1: mount" -o rw "$pack" "$mnt"
}

# Everything that one mount can show, case by case.
edit write
"$NUMPY" -I "$top/tests/support/npy_write.py" "$mnt" >"$T/cases" 2>"$T/trouble"
is 'write: the cases are run to the end' "$(cat "$T/trouble"; tail -n 1 "$T/cases" | cut -d' ' -f1)" ok
while read -r line; do
    case $line in
    'ok '*) pass "write: ${line#ok }" ;;
    *) fail "write: ${line#not ok }" ;;
    esac
done <"$T/cases"
tree=$(whole_tree "$mnt")
is 'write: nothing is marked' "$(changes | grep '^.!')" ''
unmount 'write: commit' "$mnt"
is 'write: the pack has what the mount had' "$(oracle tree "$pack")" "$tree"
ok 'write: the library opens it' valid "$pack"

# From one mount's npy/ to another's by plain cp, mv and rsync: what a file tells.
mkdir -p "$T/source"
mounted 'copies: mount the source' "$golden/03_all_dtypes.bpk" "$T/source"
wanted=$("$PYTHON" - "$top" "$golden/03_all_dtypes.bpk" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1] + "/tests/support")
sys.dont_write_bytecode = True
import oracle
pack = oracle.Pack(sys.argv[2])
told = {"Flex32": "F32", "Bool(U8)": "Bool(Native)", "Bool(U32)": "U32"}
for name, tensor in pack.tensors.items():
    words = oracle.tensor_text(pack, tensor).split(" ")
    print(name, told.get(words[0], words[0]), *words[1:])
PYTHON
)
while IFS='|' read -r tool command; do
    edit copies "$golden/01_empty.bpk"
    ok "copies, $tool" env a="$T/source/npy" b="$mnt/npy" T="$T" bash -c "$command"
    unmount "copies, $tool: commit" "$mnt"
    is "copies, $tool: tensors" "$(oracle tensor "$pack" $(cut -d' ' -f1 <<<"$wanted"))" "$wanted"
done <<'ROWS'
cp|cp $a/*.npy $b/
rsync|rsync -r $a/ $b/
rsync --inplace|rsync -r --inplace $a/ $b/
cp over others|for f in $a/*.npy; do cp $a/t_i8.npy $b/${f##*/} && cp $f $b/ || exit 1; done
mv from elsewhere|mkdir -p $T/away && cp $a/*.npy $T/away/ && mv $T/away/*.npy $b/
dd, small blocks|for f in $a/*.npy; do dd if=$f of=$b/${f##*/} bs=11 status=none || exit 1; done
cat|for f in $a/*.npy; do cat $f >$b/${f##*/} || exit 1; done
ROWS
unmount 'copies: unmount the source' "$T/source"

# A commit with a file that is not whole: the old tensor stays, and it is told.
edit halfway
head -c 128 "$mnt/npy/encoder/layer1/weight.npy" >"$T/header.npy"
ok 'halfway: a header' cp "$T/header.npy" "$mnt/npy/steps.npy"
ok 'halfway: a header of a new one' cp "$T/header.npy" "$mnt/npy/new.npy"
ok 'halfway: touch' touch "$mnt/npy/nothing.npy"
is 'halfway: what was touched is no tensor yet' \
    "$(cut -f 1 "$mnt/index.tsv" | grep -c nothing) $(jq '.tensors | has("nothing")' "$mnt/pack.json") $(grep -ca nothing "$mnt/pack.safetensors")" \
    '0 false 0'
ok 'halfway: the old bytes are there' cmp "$mnt/tensors/steps" <(oracle data "$T/base.bpk" steps)
is 'halfway: they are marked' "$(changes)" 'A! tensors/new
A! tensors/nothing
M! tensors/steps'
unmount 'halfway: commit' "$mnt" 24 '"new", "steps"'
is 'halfway: nothing is changed' "$(oracle differ "$T/base.bpk" "$pack")" ''

# Only data is written, through a mapping, and only that is changed.
edit mapped
"$NUMPY" - "$mnt/npy/big.npy" <<'PYTHON'
import numpy, sys
view = numpy.load(sys.argv[1], mmap_mode="r+")
view[1234, 567] ^= 0xff
PYTHON
is 'mapped: an edit' "$(changes)" 'M  tensors/big'
ok 'mapped: another is written over' "$NUMPY" -c '
import numpy, sys
numpy.save(sys.argv[1], numpy.zeros(3, "i2"))' "$mnt/npy/encoder/layer2/weight.npy"
unmount 'mapped: commit' "$mnt"
is 'mapped: one byte' "$(cmp -l <(oracle data "$T/base.bpk" big) <(oracle data "$pack" big) | wc -l)" 1
is 'mapped: nothing else' "$(oracle differ "$T/base.bpk" "$pack")" 'M tensors big
M tensors encoder.layer2.weight'
is 'mapped: unknown keys stay' "$(oracle show "$pack" | jq -c '.tensors["encoder.layer2.weight"] | .dtype, .shape, .extra')" \
    "$(printf '%s\n' '"I16"' '[3]'; oracle show "$T/base.bpk" | jq -c '.tensors["encoder.layer2.weight"].extra')"

# A quantized tensor shows its bytes, and takes them.
edit quantized "$golden/04_quantized.bpk"
ok 'quantized: numpy writes what it read, turned round' "$NUMPY" -c '
import numpy, sys
numpy.save(sys.argv[1], numpy.load(sys.argv[1])[::-1])' "$mnt/npy/q_two_level.npy"
unmount 'quantized: commit' "$mnt"
is 'quantized: it is still that' "$(said "$pack" q_two_level)" "$(said "$golden/04_quantized.bpk" q_two_level)"
is 'quantized: turned round' "$(oracle data "$pack" q_two_level | xxd -p -c1 | tac)" \
    "$(oracle data "$golden/04_quantized.bpk" q_two_level | xxd -p -c1)"

# Nothing is kept in memory.
edit memory
high() { sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${pids[$mnt]}/status"; }
before=$(high)
for order in '<' '>'; do
    ok "memory: 128 MiB, $order" "$NUMPY" -c '
import numpy, sys
numpy.save(sys.argv[1], numpy.arange(1 << 24, dtype=sys.argv[2] + "u8"))' "$mnt/npy/huge.npy" "$order"
done
grown=$((($(high) - before) / 1024))
if [ "$grown" -lt 48 ]; then pass 'memory: stays flat'; else fail 'memory: stays flat' "$grown MiB more"; fi
ok 'memory: the numbers are there' "$NUMPY" -c '
import numpy, sys
assert (numpy.fromfile(sys.argv[1], "<u8") == numpy.arange(1 << 24)).all()' "$mnt/tensors/huge"
ok 'memory: rm' rm "$mnt/npy/huge.npy"
unmount 'memory: unmount' "$mnt"

# A read-only mount.
fresh readonly
mounted 'read-only: mount' "$pack" "$mnt"
refused 'read-only: new' "$EROFS" cp "$T/header.npy" "$mnt/npy/new.npy"
refused 'read-only: over one' "$EROFS" cp "$T/header.npy" "$mnt/npy/steps.npy"
unmount 'read-only: unmount' "$mnt"

is 'nothing is left beside the packs' "$(ls -A "$T" | grep '^\.')" ''
done_testing
