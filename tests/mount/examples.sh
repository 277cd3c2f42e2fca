#!/usr/bin/env bash
# What README.md and the manual show a reader is what the reader gets.
. "$(dirname "$0")/lib.sh"

if "$PYTHON" -c 'import numpy' 2>/dev/null; then
    NUMPY=$PYTHON
else # Debian's numpy belongs to Debian's python
    NUMPY=/usr/bin/python3
fi
mkdir "$T/bin"
ln -s "$NUMPY" "$T/bin/python3"
PATH=$T/bin:$(dirname "$BPKFS"):$BPKFS_BUILD/examples:$PATH

# shows NAME FILE COUNT [PACK MOUNTPOINT]: COUNT commands of it do what is shown.
shows() {
    local out
    out=$(cd "$T/$1" && "$NUMPY" -I "$top/tests/support/examples.py" "$2" "${@:4}" 2>&1)
    is "$1: as shown" "$(sed '$d' <<<"$out")" ''
    if [ "$(sed -n '$s/ ran$//p' <<<"$out")" -ge "$3" ] 2>/dev/null; then
        pass "$1: enough of it ran"
    else
        fail "$1: enough of it ran" "$out"
    fi
}

mkdir -p "$T/manual"/{mnt,a,b} "$T/README"
mounts+=("$T/manual/mnt" "$T/README/mnt")
cp "$T/base.bpk" "$T/manual/model.bpk"
mounted 'a pack to compare' "$T/base.bpk" "$T/manual/a"
mounted 'and another' "$T/base.bpk" "$T/manual/b"
shows manual "$top/fs/bpkfs.1" 17 model.bpk mnt
unmount 'the pack to compare goes' "$T/manual/a"
unmount 'so does the other' "$T/manual/b"
shows README "$top/README.md" 23
done_testing
