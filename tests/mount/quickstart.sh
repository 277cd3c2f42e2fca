#!/usr/bin/env bash
# The example a newcomer runs first does what it says, with its own pack and with one
# that is given, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"

quickstart() { TMPDIR=$T/tmp "$top/examples/quickstart.sh" --build "$BPKFS_BUILD" "$@" </dev/null; }
mkdir "$T/tmp"

out=$(quickstart 2>&1)
is 'it succeeds' $? 0
like 'it shows the tree' "$out" 'tensors/encoder/layer1/weight'
like 'it shows a dtype' "$out" 'dtype.*F32'
like 'it ends well' "$(tail -n 1 <<<"$out")" 'done'
[ "$tap_failed" -eq 0 ] || comment "$out"

sum=$(sum "$T/base.bpk")
out=$(quickstart "$T/base.bpk" 2>&1)
is 'it succeeds with a pack' $? 0
like 'it shows the tree of the pack' "$out" 'tensors/head/%self'
is 'the pack that was given is untouched' "$(sum "$T/base.bpk")" "$sum"

printf 'PK\003\004' >"$T/zip.bpk"
quickstart "$T/zip.bpk" >/dev/null 2>&1
is 'it fails when a step fails' "$((! $?))" 0
is 'it leaves no files behind' "$(ls -A "$T/tmp")" ''
is 'it leaves no mount behind' "$(grep -F " $T/" /proc/mounts)" ''
done_testing
