"""The filesystems that are measured: how each is mounted and unmounted."""
import contextlib
import os
import shutil
import subprocess


class Peer:
    def __init__(self, name, kind, mount, unmount):
        self.name, self.kind, self._mount, self._unmount = name, kind, mount, unmount

    def mount(self, image, at, *options):
        return [*self._mount, *options, image, at]

    def unmount(self, at):
        return [*self._unmount, at]

    @contextlib.contextmanager
    def mounted(self, image, at, *options):
        quiet(self.mount(image, at, *options))
        try:
            yield at
        finally:
            try:
                quiet(self.unmount(at))
            except RuntimeError:
                # Somebody looks at it (Device or resource busy): that must not stay.
                quiet(["fusermount3", "-u", "-z", at] if self._unmount[0] != "umount"
                      else ["umount", "-l", at])
                raise


def quiet(command):
    """Runs it; what it says is said only when it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(command[0])}: {done.stdout.strip()} "
                           f"(status {done.returncode})")


def is_root():
    return os.geteuid() == 0


def has(*commands):
    return all(shutil.which(command) for command in commands)


def kernel_has(filesystem):
    with open("/proc/filesystems", encoding="ascii") as file:
        return filesystem in file.read().split()


def found(bpkfs):
    """bpkfs first, then what this machine has of the others. Only bpkfs --unmount
    waits for the end of its daemon."""
    fusermount = ["fusermount3", "-u"]
    peers = [Peer("bpkfs", "bpk", [bpkfs], [bpkfs, "--unmount"])]
    if has("squashfuse_ll", "mksquashfs"):
        peers.append(Peer("squashfuse", "squashfs", ["squashfuse_ll"], fusermount))
    if has("fuse-zip", "zip"):
        peers.append(Peer("fuse-zip", "zip", ["fuse-zip", "-r"], fusermount))
    if is_root() and has("mksquashfs") and kernel_has("squashfs"):
        peers.append(Peer("squashfs", "squashfs",
                          ["mount", "-t", "squashfs", "-o", "loop,ro"], ["umount"]))
    return peers
