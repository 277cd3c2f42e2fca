#!/usr/bin/env bash
# Run a command as an ordinary user who can mount with FUSE, from root, without
# changing the machine: /dev/fuse and /etc/fuse.conf are others in a mount namespace
# of the command's own, whose mounts end with it.
#
#     as-user.sh [OPTION]... [--] COMMAND...
#
#     --device MODE      permissions of /dev/fuse (666)
#     --no-device        there is no /dev/fuse
#     --conf TEXT        what /etc/fuse.conf holds (nothing)
#     --no-fusermount3   fusermount3 cannot be run
#     --root             stay root
#
# 77: this is not root, or the system does not let it make such a namespace.
set -eu

device=666 conf= fusermount3=yes user=65534
if [ "${1:-}" != --inside ]; then
    [ "$(id -u)" -eq 0 ] && unshare --mount true 2>/dev/null || exit 77
    exec unshare --mount --propagation private "$BASH" "$0" --inside "$@"
fi
shift
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=$2; shift 2 ;;
    --no-device) device=; shift ;;
    --conf) conf=$2; shift 2 ;;
    --no-fusermount3) fusermount3=; shift ;;
    --root) user=; shift ;;
    --) shift; break ;;
    *) break ;;
    esac
done

# Copies of what is mounted by others would keep their daemons from ending until this
# namespace does.
findmnt -rno TARGET -t fuse.bpkfs | while read -r at; do
    printf -v at %b "$at"
    case $at in "${T:-/dev/null}"/*) ;; *) umount -l "$at" 2>/dev/null || true ;; esac
done

# Seen through what is mounted over it, this folder needs no cleaning up.
mount -t tmpfs -o mode=755 bpkfs-test /mnt
if [ -n "$device" ]; then
    mknod -m "$device" /mnt/fuse c 10 229
    mount --bind /mnt/fuse /dev/fuse
else
    # No file can be taken out of /dev here: another /dev, with what is needed.
    mkdir /mnt/dev
    for name in null zero full random urandom tty; do
        touch "/mnt/dev/$name"
        mount --bind "/dev/$name" "/mnt/dev/$name"
    done
    ln -s /proc/self/fd /mnt/dev/fd
    mount --rbind /mnt/dev /dev
fi
printf '%s\n' "$conf" >/mnt/fuse.conf
if [ -e /etc/fuse.conf ]; then
    mount --bind /mnt/fuse.conf /etc/fuse.conf
elif [ -n "$conf" ]; then
    exit 77
fi
if [ -z "$fusermount3" ]; then
    touch /mnt/fusermount3
    mount --bind /mnt/fusermount3 "$(command -v fusermount3)"
fi
umount -l /mnt
[ -n "$user" ] || exec "$@"
exec setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all "$@"
