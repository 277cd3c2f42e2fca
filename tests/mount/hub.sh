#!/usr/bin/env bash
# pack.safetensors through a reader that is not ours, @huggingface/hub's, which needs
# Node.js and npm and is fetched by it: without them, or without a way to npm's registry, this
# is skipped.
. "$(dirname "$0")/lib.sh"

READER='@huggingface/hub@2.17.5'

command -v node >/dev/null && command -v npm >/dev/null || skip_all 'no Node.js with npm'
mkdir "$T/reader" && cd "$T/reader" || exit 1
printf '{"private": true}' >package.json
if ! timeout 120 npm install --ignore-scripts --no-audit --no-fund --no-update-notifier \
    --cache "$T/npm" "$READER" >"$T/log/npm" 2>&1; then
    comment "$(tail -5 "$T/log/npm")"
    skip_all "npm cannot fetch $READER"
fi

# 09_shapes has a dimension of 2^40, where this reader has a limit of its own.
packs=()
for pack in "$golden"/*.bpk; do
    case $pack in */09_shapes.bpk) ;; *) packs+=("$pack") ;; esac
done
files=()
for pack in "${packs[@]}"; do
    name=$(basename "$pack" .bpk)
    mkdir "$T/$name"
    mounted "$name mounts" "$pack" "$T/$name"
    files+=("$T/$name/pack.safetensors")
done
ok 'the reader takes them all' bash -c 'node "$@" >"$0"' "$T/got" "$top/tests/support/hub_read.mjs" "${files[@]}"
for pack in "${packs[@]}"; do
    name=$(basename "$pack" .bpk)
    is "$name: every tensor, and its bytes" \
        "$(sed -n "s|^$T/$name/pack.safetensors	||p" "$T/got" | LC_ALL=C sort)" \
        "$(oracle show "$pack" | "$PYTHON" -c '
import json, sys
for name, tensor in json.load(sys.stdin)["tensors"].items():
    print(json.dumps([name, tensor["sha256"]], ensure_ascii=False, separators=(",", ":")))' | LC_ALL=C sort)"
    unmount "$name unmounts" "$T/$name"
done
cd /

done_testing
