#!/usr/bin/env bash
# Commits that fail: the old pack is untouched, no partial file stays, the edits are
# kept and the reason is told (SEMANTICS, section 4, Commit).
. "$(dirname "$0")/lib.sh"

is_root || skip_all 'full disks and immutable files need root'

# failing NAME DIR STATUS REGEX PREPARE: in DIR, mount a pack, edit it, run PREPARE,
# unmount. PREPARE may change the pack: then it is compared with what it became.
failing() {
    local name=$1 dir=$2 want=$3 regex=$4 prepare=$5 sum after staging
    pack=$dir/p.bpk mnt=$T/mnt
    mkdir -p "$mnt"
    cp "$T/base.bpk" "$pack"
    mounted "$name: mount" -o rw "$pack" "$mnt"
    ok "$name: edit a scalar" put "$mnt/scalars/x" 0.5
    ok "$name: edit a tensor" cp "$T/steps" "$mnt/tensors/steps"
    ok "$name: prepare" "$prepare"
    sum=$([ ! -e "$pack" ] || sum "$pack")
    unmount "$name: what is told" "$mnt" "$want" "$regex"
    after=$([ ! -e "$pack" ] || sum "$pack")
    is "$name: the pack is untouched" "$after" "$sum"
    staging=$(find "$dir" -mindepth 1 -maxdepth 1 -type d -name '.*')
    is "$name: no other file stays" \
        "$(find "$dir" -mindepth 1 -maxdepth 1 ! -name p.bpk ! -name filler)" "$staging"
    if [ -n "$staging" ] && grep -qF -- "$staging" <<<"$message"; then
        pass "$name: where the edits are is told"
    else
        fail "$name: where the edits are is told" "in '$staging', told: $message"
    fi
    ok "$name: the scalar is kept" grep -rqw 'x.*0\.5' "$staging"
    is "$name: the bytes are kept" \
        "$(find "$staging" -type f -size 8c -exec cmp -s "$T/steps" {} \; -print | wc -l)" 1
    [ "$BPKFS_MODE" != foreground ] ||
        like "$name: told under -f too" "$(cat "${logs[$mnt]}.err")" "$regex"
}
printf '12345678' >"$T/steps"

nospace='no space left'
if tmpfs "$T/full" size=5m; then
    fill() { dd if=/dev/zero of="$T/full/filler" bs=64k 2>/dev/null; [ -s "$T/full/filler" ]; }
    failing 'a full disk' "$T/full" 22 "p\.bpk.*$nospace" fill
    umount "$T/full"
fi

mkdir "$T/bound"
bind() { mount --bind "$T/bound/p.bpk" "$T/bound/p.bpk" && others+=("$T/bound/p.bpk"); }
failing 'a rename that cannot happen' "$T/bound" 22 'p\.bpk.*busy' bind
umount "$T/bound/p.bpk"

mkdir "$T/fixed"
touch "$T/fixed/probe"
if chattr +i "$T/fixed/probe" 2>/dev/null; then
    chattr -i "$T/fixed/probe"
    rm "$T/fixed/probe"
    fix_pack() { immutable+=("$T/fixed/p.bpk"); chattr +i "$T/fixed/p.bpk"; }
    failing 'a pack that is immutable' "$T/fixed" 22 "p\.bpk.*($EPERM|$EACCES)" fix_pack
    chattr -i "$T/fixed/p.bpk"
    rm -rf "$T/fixed"
    mkdir "$T/fixed"
    fix_folder() { immutable+=("$T/fixed"); chattr +i "$T/fixed"; }
    failing 'a folder that takes no file' "$T/fixed" 22 "p\.bpk.*($EPERM|$EACCES)" fix_folder
    chattr -i "$T/fixed"
else
    rm -f "$T/fixed/probe"
    skip 'a pack that is immutable' 'no chattr +i here'
    skip 'a folder that takes no file' 'no chattr +i here'
fi

mkdir "$T/replaced" "$T/changed" "$T/gone"
replace() {
    oracle make <(sed 's/0.25/0.75/' "$here/base.json") "$T/other.bpk" &&
        mv -f "$T/other.bpk" "$T/replaced/p.bpk"
}
failing 'a pack that was replaced' "$T/replaced" 23 'p\.bpk.*changed' replace
change() { printf x >>"$T/changed/p.bpk"; }
failing 'a pack that was changed in place' "$T/changed" 23 'p\.bpk.*changed' change
gone() { rm "$T/gone/p.bpk"; }
failing 'a pack that was removed' "$T/gone" 23 'p\.bpk' gone

# By fusermount3 -u nobody waits for the daemon: the pack must be as safe.
fresh quiet
mounted 'unmounted by fusermount3: mount' -o rw "$pack" "$mnt"
ok 'unmounted by fusermount3: edit' put "$mnt/scalars/x" 0.5
oracle make <(sed 's/0.25/0.75/' "$here/base.json") "$T/other.bpk"
mv -f "$T/other.bpk" "$pack"
sum=$(sum "$pack")
fusermount3 -u "$mnt"
daemon_ended "$mnt"
is 'unmounted by fusermount3: the pack is untouched' "$(sum "$pack")" "$sum"
[ "$BPKFS_MODE" != foreground ] || is 'unmounted by fusermount3: exit status' "$fg_status" 23

# A container that was started meanwhile has a copy of the mount.
fresh copied
if is_root && unshare -m true 2>/dev/null; then
    mounted 'a mount that will be copied' -o rw "$pack" "$mnt"
    echo 0.5 >"$mnt/scalars/lr"
    coproc unshare -m sh -c 'grep -c " $0 " /proc/self/mounts; read -r _' "$mnt"
    read -r -u "${COPROC[0]}" count
    is 'another mount namespace has it too' "$count" 1
    unmount 'it is committed without waiting for the other one' "$mnt"
    echo >&"${COPROC[1]}"
    wait "$COPROC_PID"
    is 'and is in the pack' "$(oracle scalar "$pack" lr)" 'Float 0.5'
else
    skip 'a mount that will be copied' 'needs root'
fi

done_testing
