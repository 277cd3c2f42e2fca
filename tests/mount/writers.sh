#!/usr/bin/env bash
# Many have one tensor open: what is written past the kernel's page cache, and who has it
# mapped (SEMANTICS, section 4).
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

# The kernel is told to drop pages when somebody else may have them, and only then.
notices() { grep -c 'NOTIFY: code=2' "${logs[$mnt]}.err"; }
if [ "$BPKFS_MODE" = foreground ] && awk '/^INIT:/ { exit !($2 >= 7.39) }' <<<"INIT: $(
    fresh told
    bpkfs -d -o rw "$pack" "$mnt"
    sed -n 's/^INIT: //p' "${logs[$mnt]}.err" | head -1
    "$BPKFS" --discard "$mnt"
)"; then
    fresh told
    mounted 'mounted with -d' -d -o rw "$pack" "$mnt"
    before=$(notices)
    head -c 3000000 /dev/zero | cat >"$mnt/tensors/big"
    is 'one writer alone' "$(notices)" "$before"
    exec 7<"$mnt/tensors/big"
    head -c 3000000 /dev/zero | cat >"$mnt/tensors/big"
    exec 7<&-
    if [ "$(notices)" -gt "$before" ]; then
        pass 'a writer beside a reader'
    else
        fail 'a writer beside a reader' 'nothing was dropped'
    fi
    # Attributes are not asked for with each read.
    asked() { grep -c 'opcode: GETATTR' "${logs[$mnt]}.err"; }
    before=$(asked)
    dd if="$mnt/tensors/big" of=/dev/null bs=1000 status=none
    if [ "$(($(asked) - before))" -le 4 ]; then
        pass '3 000 reads ask for attributes a few times'
    else
        fail '3 000 reads ask for attributes a few times' "$(($(asked) - before)) times"
    fi
    unmount 'commit' "$mnt"
else
    skip 'pages are dropped for who has it open' 'no -d, or the kernel is older than 6.6'
fi

done_testing
