#!/usr/bin/env bash
# Packs on file systems of all kinds: read, edited and truncated there, copied up in an
# overlay, or where nothing can be written (SEMANTICS, sections 3 and 4).
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin

is_root || skip_all 'mounting other file systems needs root'

EIO='input/output error'
tree=$(oracle tree "$T/base.bpk")

# The sample with scalars/x 0.5, as a commit must make it.
sed 's/"x": {"Float": 0.25}/"x": {"Float": 0.5}/' "$here/base.json" >"$T/want.json"
oracle make "$T/want.json" "$T/want.bpk"

# on NAME FOLDER: a pack there is read, edited, truncated.
on() {
    local pack=$2/p.bpk at=$T/mnt
    cp "$T/base.bpk" "$pack"
    mounted "on $1: mount" "$pack" "$at"
    is "on $1: the tree" "$(whole_tree "$at")" "$tree"
    unmount "on $1: unmount" "$at"
    mounted "on $1: writable" -o rw "$pack" "$at"
    ok "on $1: edit" put "$at/scalars/x" 0.5
    # Written into and back again: its bytes go through the staging area.
    for byte in '\0' '\037'; do
        printf "$byte" | dd of="$at/tensors/big" bs=1 conv=notrunc status=none
    done
    unmount "on $1: commit" "$at"
    is "on $1: what differs" "$(oracle differ "$T/base.bpk" "$pack")" "${3-M scalars x}"
    is "on $1: nothing else is there" \
        "$(find "$2" -mindepth 1 ! -name p.bpk ! -name lost+found)" ''
    mounted "on $1: mount again" "$pack" "$at"
    truncate -s 1000001 "$pack"
    refused "on $1: truncated, a reader gets EIO" "$EIO" cp "$at/tensors/big" /dev/null
    is "on $1: and the daemon lives" "$(cat "$at/scalars/x")" 0.5
    unmount "on $1: unmount again" "$at"
    rm "$pack"
}
# image NAME SIZE MKFS...: on a file system in a file.
image() {
    local name=$1 size=$2
    shift 2
    if ! command -v "$1" >/dev/null; then
        skip "on $name" "no $1"
        return
    fi
    mkdir -p "$T/disk"
    truncate -s "$size" "$T/image"
    if "$@" "$T/image" >/dev/null 2>&1 && mount -o loop "$T/image" "$T/disk" 2>/dev/null; then
        others+=("$T/disk")
        on "$name" "$T/disk"
        ok "on $name: the file system is free" umount "$T/disk"
    else
        skip "on $name" 'it cannot be mounted here'
    fi
    rm -f "$T/image"
}
if tmpfs "$T/tmpfs" size=32m; then
    on tmpfs "$T/tmpfs"
else
    skip 'on tmpfs' 'it cannot be mounted here'
fi
image ext4 32m mkfs.ext4 -q -F
image xfs 300m mkfs.xfs -q
image btrfs 128m mkfs.btrfs -q

# 90 GiB, nearly all of them holes: an edit shares their blocks.
truncate -s 400m "$T/image"
if command -v mkfs.xfs >/dev/null && mkfs.xfs -q -m reflink=1 "$T/image" >/dev/null 2>&1 &&
    mount -o loop "$T/image" "$T/disk" 2>/dev/null; then
    others+=("$T/disk")
    pack=$T/disk/p.bpk mnt=$T/mnt
    scale_py=$top/tests/support/scale.py
    PYTHONPATH=$top/tests/support PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$scale_py" large "$pack"
    mounted '90 GiB: mount' "$pack" "$mnt"
    is '90 GiB: that large' "$(cat "$mnt"/index.tsv | awk '{ sum += $4 } END { print sum / 2 ^ 30 }')" 90
    is '90 GiB: the first bytes' "$(head -c 5 "$mnt/tensors/t0")" first
    is '90 GiB: the last bytes' "$(tail -c 4 "$mnt/tensors/t8")" last
    is '90 GiB: and of pack.safetensors' "$(tail -c 4 "$mnt/pack.safetensors")" last
    unmount '90 GiB: unmount' "$mnt"
    mounted '90 GiB: writable' -o rw "$pack" "$mnt"
    ok '90 GiB: edit of a scalar' put "$mnt/scalars/x" 0.5
    ok '90 GiB: commit' "$BPKFS" --commit "$mnt"
    is '90 GiB: the first and the last bytes' "$(head -c 5 "$mnt/tensors/t0") $(tail -c 4 "$mnt/tensors/t8")" 'first last'
    unmount '90 GiB: unmount after it' "$mnt"
    mounted '90 GiB: mount again' "$pack" "$mnt"
    is '90 GiB: the edit is in, and the size is the same' \
        "$(cat "$mnt/scalars/x") $(($(stat -c %s "$pack") >> 30))" '0.5 90'
    unmount '90 GiB: unmount again' "$mnt"
    ok '90 GiB: hardly a block was written' test "$(stat -c %b "$pack")" -lt 2048
    ok '90 GiB: the file system is free' umount "$T/disk"
else
    skip '90 GiB' 'no xfs that shares blocks can be mounted here'
fi
rm -f "$T/image"

# Overlays: a pack of the lower layer, which a commit or somebody else copies up.
overlay() {
    tmpfs "$T/layers" size=32m || return
    mkdir "$T/layers/lower" "$T/layers/upper" "$T/layers/work" "$T/over"
    cp "$T/base.bpk" "$T/layers/lower/p.bpk"
    mount -t overlay -o \
        "lowerdir=$T/layers/lower,upperdir=$T/layers/upper,workdir=$T/layers/work" \
        overlay "$T/over" 2>/dev/null && others+=("$T/over")
}
if overlay; then
    pack=$T/over/p.bpk mnt=$T/mnt
    mounted 'overlay, lower: mount' "$pack" "$mnt"
    mounted 'overlay, lower: writable' -o rw "$pack" "$T/writer"
    is 'overlay, lower: the tree' "$(whole_tree "$mnt")" "$tree"
    ok 'overlay, lower: edit' put "$T/writer/scalars/x" 0.5
    unmount 'overlay, lower: commit' "$T/writer"
    ok 'overlay, lower: the commit is in the overlay' cmp "$T/want.bpk" "$pack"
    ok 'overlay, lower: and not in the layer' cmp "$T/base.bpk" "$T/layers/lower/p.bpk"
    is 'overlay, lower: a reader sees the pack it opened' "$(whole_tree "$mnt")" "$tree"
    unmount 'overlay, lower: unmount' "$mnt"
    rm "$pack"
    on 'overlay, upper' "$T/over"
    # Copied up under a mount: by a change of its mode, then of its bytes.
    umount "$T/over" "$T/layers"
    rmdir "$T/over" "$T/layers"
    overlay
    mounted 'overlay, copied up: mount' "$pack" "$mnt"
    mounted 'overlay, copied up: writable' -o rw "$pack" "$T/writer"
    ok 'overlay, copied up: edit' put "$T/writer/scalars/x" 0.5
    chmod 600 "$pack"
    ok 'overlay, copied up: it is' test -e "$T/layers/upper/p.bpk"
    unmount 'overlay, copied up: commit' "$T/writer"
    ok 'overlay, copied up: committed' cmp "$T/want.bpk" "$pack"
    mounted 'overlay, changed: writable' -o rw "$pack" "$T/writer"
    ok 'overlay, changed: edit' put "$T/writer/scalars/x" 0.75
    printf x >>"$pack"
    sum=$(sum "$pack")
    unmount 'overlay, changed: what is told' "$T/writer" 23 'p\.bpk.*changed'
    is 'overlay, changed: nothing was overwritten' "$(sum "$pack")" "$sum"
    is 'overlay, copied up: a reader sees the pack it opened' "$(whole_tree "$mnt")" "$tree"
    unmount 'overlay, copied up: unmount' "$mnt"
    umount "$T/over" "$T/layers"
else
    skip 'overlay' 'it cannot be mounted here'
fi

# File systems that cannot be written.
read_only() { # NAME FOLDER
    mounted "on $1: mount" "$2/p.bpk" "$T/mnt"
    is "on $1: the tree" "$(whole_tree "$T/mnt")" "$tree"
    unmount "on $1: unmount" "$T/mnt"
    if bpkfs -o rw "$2/p.bpk" "$T/mnt"; then
        fail "on $1: no edits" 'it was mounted writable'
    else
        is "on $1: no edits" "$status" 21
    fi
    # Edits could lie elsewhere, the new pack could not; but with another name it can.
    mkdir -p "$T/elsewhere"
    if bpkfs -o "rw,staging=$T/elsewhere" "$2/p.bpk" "$T/mnt"; then
        fail "on $1: staging elsewhere" 'it was mounted writable'
    else
        is "on $1: staging elsewhere" "$status" 21
        like "on $1: staging elsewhere says why" "$err" "p\.bpk.*$EROFS"
    fi
    mounted "on $1: output elsewhere" -o "rw,output=$T/elsewhere/o.bpk" "$2/p.bpk" "$T/mnt"
    ok "on $1: edit" put "$T/mnt/scalars/x" 0.5
    unmount "on $1: commit to the other" "$T/mnt"
    ok "on $1: it is in the other" cmp "$T/want.bpk" "$T/elsewhere/o.bpk"
    rm -rf "$T/elsewhere"
}
if tmpfs "$T/ro"; then
    cp "$T/base.bpk" "$T/ro/p.bpk"
    mount -o remount,ro "$T/ro"
    read_only 'a tmpfs that is read-only' "$T/ro"
    umount "$T/ro"
else
    skip 'on a tmpfs that is read-only' 'it cannot be mounted here'
fi
mkdir -p "$T/squash/files" "$T/squash/at"
cp "$T/base.bpk" "$T/squash/files/p.bpk"
if command -v mksquashfs >/dev/null &&
    mksquashfs "$T/squash/files" "$T/squash/image" -quiet -no-progress >/dev/null 2>&1 &&
    mount -t squashfs -o loop "$T/squash/image" "$T/squash/at" 2>/dev/null; then
    others+=("$T/squash/at")
    read_only squashfs "$T/squash/at"
    umount "$T/squash/at"
else
    skip 'on squashfs' 'it cannot be mounted here'
fi

done_testing
