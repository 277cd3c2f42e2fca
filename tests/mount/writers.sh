#!/usr/bin/env bash
# Many have one tensor open, and some have it mapped (SEMANTICS, section 4).
. "$(dirname "$0")/lib.sh"

handles() { timeout -k 5 120 "$PYTHON" -I "$top/tests/support/two_handles.py" "$@" 2>&1; }

fresh shared
mounted 'a writable mount' -o rw "$pack" "$mnt"
is 'what one writes the others see, and nothing is lost' "$(handles "$mnt/tensors/big" "$mnt/npy/big.npy")" ''
want=$(sum <"$mnt/tensors/big")
unmount 'commit' "$mnt"
is 'it is in the pack' "$(oracle differ "$T/base.bpk" "$pack")" 'M tensors big
M order of data'
mounted 'mounted again' "$pack" "$mnt"
is 'with the last bytes' "$(sum <"$mnt/tensors/big")" "$want"
unmount 'unmounted' "$mnt"

# Anything at all, against a model. BPKFS_TEST_EDITS: how much of it.
fresh any
mounted 'a writable mount' -o rw "$pack" "$mnt"
for seed in ${BPKFS_TEST_SEEDS:-1 $((RANDOM + 1000))}; do
    : >"$mnt/tensors/any"
    is "anything, seed $seed" "$(handles "$mnt/tensors/any" "$mnt/npy/any.npy" \
        "$seed" "${BPKFS_TEST_EDITS:-150}")" ''
    rm "$mnt/tensors/any"
done
unmount 'commit' "$mnt"

# What the kernel asks for besides: nothing with each read.
if [ "$BPKFS_MODE" = foreground ]; then
    fresh told
    mounted 'mounted with -d' -d -o rw "$pack" "$mnt"
    log=${logs[$mnt]}.err
    # asked AT-MOST DESCRIPTION OPCODE COMMAND...
    asked() {
        local most=$1 name=$2 opcode=$3 before
        shift 3
        before=$(grep -c "opcode: $opcode" "$log")
        "$@"
        before=$(($(grep -c "opcode: $opcode" "$log") - before))
        if [ "$before" -le "$most" ]; then pass "$name"; else fail "$name" "$before times"; fi
    }
    asked 4 '3 000 reads ask for attributes a few times' GETATTR \
        dd if="$mnt/tensors/big" of=/dev/null bs=1000 status=none
    unmount 'commit' "$mnt"
else
    skip 'what the kernel asks for' 'no -d'
fi

done_testing
