#!/usr/bin/env bash
# Where a pack is mounted and from where: every kind of mount point, a stale one, one that
# goes away meanwhile; who may end a mount; callers with odd limits (SEMANTICS, section 1).
. "$(dirname "$0")/lib.sh"

fresh place
tree=$(oracle tree "$pack")
cd "$T" || exit 1

# A row is mounted, whole, unmounted; and what was there before is there after.
shown() { # NAME MOUNT-POINT
    local at=$2 before after
    before=$(find "$T" -path "$T/log" -prune -o -print | sort)
    if bpkfs "$pack" "$at" && [ "$(whole_tree "$at")" = "$tree" ]; then
        unmount "$1" "$at"
    else
        fail "$1" "status $status: $err"
    fi
    after=$(find "$T" -path "$T/log" -prune -o -print | sort)
    is "$1: nothing is left" "$after" "$before"
}
given() { # NAME MOUNT-POINT MOUNTED-ON: as it is spelled, with no help of lib.sh
    local text got
    text=$("$BPKFS" "$pack" "$2" 2>&1 </dev/null)
    is "$1: mount" "$?$text" 0
    is "$1: where it is" "$(findmnt -rno FSTYPE -M "$3")" fuse.bpkfs
    got=$("$BPKFS" --unmount "$2" 2>&1)
    is "$1: unmount" "$?$got" 0
}
mkdir real full 'sp ace'
touch full/hidden
ln -s real link
ln -s nowhere dangling
ln -s loop loop
touch file
shown 'a missing one' "$T/missing"
shown 'a folder' "$T/real"
shown 'a folder that is not empty' "$T/full"
shown 'with every kind of character' "$T/sp ace/"$'a,b\\c\\054 "\x27#\n\t\xff~'
given 'a relative one' ./new "$T/new"
given 'slashes behind it' new/// "$T/new"
given 'a link to a folder' link "$T/real"
given 'a link and a slash' link/ "$T/real"
given 'by way of ..' real/../full/. "$T/full"
ok 'what is not empty is as it was' test -e full/hidden
ok 'a link stays one' test -L link
refused 'a folder that was made is gone' "$ENOENT" ls -d new
cd real || exit 1
given 'the current folder' . "$T/real"
cd ..
cannot 10 'leads nowhere' 'a link to nothing' "$pack" "$T/dangling"
cannot 10 'symbolic links' 'a link to itself' "$pack" "$T/loop"
cannot 10 'not a directory' 'below a file' "$pack" "$T/file/x"
cannot 10 'no such file' 'the folder above is missing' "$pack" "$T/no/where"
text=$("$BPKFS" "$pack" /.. 2>&1)
got=$?
[ "$got" -ne 0 ] || for pid in $(strays); do kill "$pid"; done
told 'the root' 10 'root' "$got" "$text"
is 'the root has nothing mounted over it' "$(findmnt -rno FSTYPE / | grep -c bpkfs)" 0
cannot 11 'symbolic links' 'a pack that is a link to itself' "$T/loop" "$mnt"
cannot 12 'empty' 'a file of /proc' /proc/version "$mnt"

# One mount inside another.
mounted 'an outer one' "$pack" "$T/real"
if is_root; then
    mounted 'one inside it' "$pack" "$T/real/tensors"
    is 'which is seen there' "$(ls "$T/real/tensors")" "$(ls "$T/real")"
    text=$("$BPKFS" --unmount "$T/real" 2>&1)
    told 'the outer one is busy then' 10 'busy.*in use' $? "$text"
    unmount 'the inner one goes' "$T/real/tensors"
fi
cannot 10 'read-only' 'none can be made inside it' "$pack" "$T/real/new"
text=$("$BPKFS" --status "$T/real/npy" 2>&1)
told '--status of a folder inside it' 10 'not where it is mounted' $? "$text"
unmount 'the outer one goes' "$T/real"

# A daemon that is killed leaves a mount behind. The kernel still knows its folders.
mounted 'one that is killed' "$pack" "$T/sp ace"
stat "$T/sp ace/tensors" >/dev/null
kill -9 "${pids[$T/sp ace]}"
daemon_ended "$T/sp ace" 2>/dev/null
for at in "$T/sp ace" "$T/sp ace/tensors"; do
    text=$("$BPKFS" "$pack" "$at" 2>&1 </dev/null)
    got=$?
    told "a mount on a stale one, ${at##*/}" 10 "daemon is gone.*-- '$T/sp ace'$" "$got" "$text"
done
text=$("$BPKFS" --unmount "$T/sp ace" 2>&1)
told '--unmount of a stale mount' 10 "daemon is gone.*-- '.*/sp ace'$" $? "$text"
sh -c "${text##*with: }"
is 'what it says clears it' "$?$(findmnt -rn -M "$T/sp ace")" 0
shown 'and then it can be used' "$T/sp ace"

# What lies over it is not taken down in its place when a signal ends it.
if is_root; then
    mounted 'one that is covered' "$pack" "$T/real"
    pid=${pids[$T/real]}
    ok 'something else lies over it' tmpfs "$T/real"
    echo there >"$T/real/precious"
    kill "$pid"
    daemon_ended "$T/real"
    is 'what lies over it stays' "$(cat "$T/real/precious")" there
    umount "$T/real"
    text=$("$BPKFS" "$pack" "$T/real" 2>&1)
    told 'and below is a mount without a daemon' 10 'daemon is gone' $? "$text"
    umount "$T/real"
else
    skip 'what lies over it stays' 'needs root'
fi

# A daemon that had made its mount point removes it just when the next one mounts there.
if [ -n "${BPKFS_AT_SYSCALL:-}" ] && is_root && "$BPKFS_AT_SYSCALL" fail mount 22 true; then
    mkfifo "$T/reached" "$T/go"
    mkdir "$T/going"
    (
        read -r _ <"$T/reached"
        rmdir "$T/going"
        : >"$T/go"
    ) &
    BPKFS_UNDER="$BPKFS_AT_SYSCALL hold mount $T/reached $T/go" bpkfs "$pack" "$T/going"
    is 'a mount point that goes is made again' "$status $err" '0 '
    unmount 'unmount it' "$T/going"
    refused 'and it goes with the mount' "$ENOENT" ls -d "$T/going"
    wait "$!"
else
    skip 'a mount point that goes is made again' 'needs root and seccomp'
fi

# Who may look at a mount may not end it, nor have its edits dropped.
if is_root && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$BPKFS" 2>/dev/null; then
    mounted 'for others to look at' -o rw,allow_other "$pack" "$mnt"
    put "$mnt/scalars/x" 0.5
    for command in --discard --unmount; do
        text=$(setpriv --reuid=65534 --regid=65534 --clear-groups "$BPKFS" "$command" "$mnt" 2>&1)
        told "$command by another user" 10 'another user' $? "$text"
    done
    unmount 'unmount by its own' "$mnt"
    is 'and the edit is there' "$(oracle scalar "$pack" x)" 'Float 0.5'
    cp "$T/base.bpk" "$pack"
else
    skip 'who may look at a mount may not end it' 'needs root'
fi
text=$("$BPKFS" --discard --unmount "$mnt" 2>&1)
told 'two commands at once' 1 'exclude' $? "$text"

# Limits of the caller.
if [ "$BPKFS_MODE" = daemon ]; then
    wrong= came=
    for files in 5 6 7 8 9 10 11 12 20; do
        (ulimit -n "$files"; exec timeout 20 "$BPKFS" "$pack" "$mnt") >"$T/log/few" 2>&1 </dev/null
        got=$? text=$(cat "$T/log/few")
        if is_mounted "$mnt"; then
            wrong+=$(readlink "/proc/$(daemon_of "$mnt")/fd/"{0,1,2} | grep -vx /dev/null)
        fi
        [ "$got" -ne 0 ] || came=$files
        case $got/$(is_mounted "$mnt" && echo mounted) in
        0/mounted) "$BPKFS" --unmount "$mnt" || wrong+="$files: no unmount "
            ;;
        10/ | 11/ | 127/) ;;
        *) wrong+="$files: $got $text " ;;
        esac
    done
    is 'few descriptors: mounted, or a failure' "$wrong${came:+some}" some
fi
# Not the write of this shell, which the limit is of, too.
bpkfs_limited() { (ulimit -f 8; exec "$BPKFS" "$@"); }
bpkfs_limited -o rw "$pack" "$mnt" 2>"$T/log/limited"
is 'a limit of file sizes: mount' "$?$(cat "$T/log/limited")" 0
pids[$mnt]=$(daemon_of "$mnt") mounts+=("$mnt") logs[$mnt]=$T/log/none
: >"$T/log/none.err"
refused 'a limit of file sizes: what is beyond it cannot be written' 'too large' \
    dd if=/dev/zero of="$mnt/tensors/big" bs=1M count=2 conv=notrunc
is 'a limit of file sizes: and the mount goes on' "$(cat "$mnt/scalars/x")" 0.25
text=$("$BPKFS" --discard "$mnt" 2>&1)
is 'a limit of file sizes: discard' "$?$text" 0
"$BPKFS_WAIT_FOR" exited "${pids[$mnt]}"
unset 'pids[$mnt]'
is 'no pack was touched' "$(sum "$pack")" "$(sum "$T/base.bpk")"
# A staging folder that somebody else made. A hard link in it leads to a file that is not
# ours to write, and nobody reads the other end of a pipe.
hostile=$T/.hostile.bpk.bpkfs
echo precious >"$T/precious"
for name in lock reserve; do
    for kind in link pipe; do
        fresh hostile
        mkdir "$hostile"
        if [ "$kind" = link ]; then ln "$T/precious" "$hostile/$name"; else mkfifo "$hostile/$name"; fi
        if [ "$name" = lock ]; then
            timeout 60 "$BPKFS" -o rw "$pack" "$mnt" 2>/dev/null </dev/null
            is "21: a $kind as $name of the staging folder" "$?" 21
        else
            mounted "with a $kind as $name of the staging folder" -o rw "$pack" "$mnt"
            unmount 'it unmounts' "$mnt"
        fi
        rm -rf "$hostile"
    done
done
is 'the file that was linked there is as it was' "$(cat "$T/precious")" precious

done_testing
