"""A pack in a folder of its own, mounted under tests/support/each-syscall.

From the environment (meson.build sets it): BPKFS, BPKFS_EACH_SYSCALL, BPKFS_WAIT_FOR.
"""
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile

BPKFS = os.environ.get("BPKFS", "")
EACH = os.environ.get("BPKFS_EACH_SYSCALL", "")
WAIT_FOR = os.environ.get("BPKFS_WAIT_FOR", "")
LIBC = ctypes.CDLL(None, use_errno=True)
MNT_FORCE, MNT_DETACH, UMOUNT_NOFOLLOW = 1, 2, 8
LIMIT = 30  # seconds, after which something hangs


class Wrong(Exception):
    """What must not be."""


class Call:
    """A line of each-syscall's log."""

    def __init__(self, line):
        total, self.name, nth, pid, inode, self.path, self.detail, self.done = \
            line.rstrip("\n").split("\t")
        self.total, self.nth, self.pid, self.inode = int(total), int(nth), int(pid), int(inode)

    def __repr__(self):
        return f"{self.name}:{self.nth} {self.path} {self.detail}"


def require(traced=True):
    """Exit with 77 where these tests cannot run: they mount as root, since each-syscall
    takes the set-uid bit off fusermount3."""
    if os.geteuid() or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        sys.exit(77)
    if traced and subprocess.run([EACH, "/nowhere", os.devnull, "--", "true"],
                                 check=False).returncode == 77:
        sys.exit(77)


def wait_for_end(pid):
    """Of a process that need not be a child. False when it does not end."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], LIMIT)[0])
    finally:
        os.close(fd)


def end_of(child):
    """The exit status of a child. Popen.wait() with a limit would sleep."""
    if not wait_for_end(child.pid):
        child.kill()
        raise Wrong(f"{child.args} does not end")
    return child.wait()


def unmount_lazily(point, force=0):
    while LIBC.umount2(os.fsencode(point), MNT_DETACH | UMOUNT_NOFOLLOW | force) == 0:
        pass


class Session:
    """One folder with one pack, and one mount of it at a time."""

    def __init__(self, data):
        self.top = os.path.realpath(tempfile.mkdtemp(prefix="bpkfs-crash."))
        self.folder = os.path.join(self.top, "folder")
        self.point = os.path.join(self.top, "mnt")
        self.pack = os.path.join(self.folder, "p.bpk")
        self.log = os.path.join(self.top, "log")
        self.told = os.path.join(self.top, "told")  # standard error of the last mount
        os.mkdir(self.folder)
        os.mkdir(self.point)
        self.pid = None
        self.child = None  # under -f
        self.flags = []
        self.reset(data)

    def reset(self, data):
        with open(self.pack, "wb") as file:
            file.write(data)

    def read(self):
        with open(self.pack, "rb") as file:
            return file.read()

    def calls(self):
        try:
            with open(self.log, encoding="utf-8") as file:
                return [Call(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    def said(self):
        with open(self.told, encoding="utf-8", errors="replace") as file:
            return file.read()

    def mount(self, rules=None, foreground=False, options="rw"):
        """Mount; under each-syscall when there are @rules, which may be none. Gives the
        exit status, None under -f as long as it runs."""
        command = [BPKFS, *self.flags, "-o", options, self.pack, self.point]
        if foreground:
            command.insert(1, "-f")
        if os.path.exists(self.log):
            os.unlink(self.log)
        if rules is not None:
            command = [EACH, self.folder, self.log, *rules, "--", *command]
        self.pid = self.child = None
        with open(self.told, "wb") as told:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=told)
        if foreground:
            # A child that ended stays one until it is asked for its status.
            waiting = subprocess.Popen([WAIT_FOR, "mounted", self.point, str(child.pid)])
            if end_of(waiting) == 0:
                self.child, self.pid = child, child.pid
                return None
            return end_of(child)
        status = end_of(child)
        if status == 0:
            self.pid = self.daemon()
        return status

    def daemon(self):
        try:
            with open(self.at(".bpkfs/status"), encoding="utf-8") as file:
                return int(file.read().split('"pid":')[1].split(",")[0])
        except (OSError, IndexError):
            # It was killed between its answer and this.
            return next((call.pid for call in reversed(self.calls())), None)

    def at(self, *parts):
        return os.path.join(self.point, *parts)

    def run(self, command):
        """bpkfs COMMAND MOUNTPOINT: its exit status and what it said."""
        for _ in range(1000):
            done = subprocess.run([BPKFS, command, self.point], check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
            text = done.stderr.decode("utf-8", "replace").strip()
            # Somebody who looks at every mount of the machine is in it.
            if done.returncode != 10 or "busy" not in text:
                break
        return done.returncode, text

    def ended(self):
        """The daemon has ended, or is waited for; its exit status under -f."""
        status = None
        if self.child:
            status = end_of(self.child)
        elif self.pid and not wait_for_end(self.pid):
            raise Wrong(f"the daemon {self.pid} does not end")
        self.child = self.pid = None
        return status

    def alive(self):
        if self.child:
            return self.child.poll() is None
        try:
            fd = os.pidfd_open(self.pid) if self.pid else None
        except ProcessLookupError:
            return False
        if fd is None:
            return False
        try:
            return not select.select([fd], [], [], 0)[0]
        finally:
            os.close(fd)

    def kill(self):
        if self.pid:
            try:
                os.kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.ended()

    def clear(self):
        """Take away what a killed daemon left mounted, as a user would."""
        for call in self.calls():
            if call.done == "kill" and not wait_for_end(call.pid):
                raise Wrong("killed, and it does not end")
        self.ended()
        unmount_lazily(self.point)

    def beside(self):
        """What is in the folder and not the pack."""
        return sorted(set(os.listdir(self.folder)) - {"p.bpk"})

    def done(self):
        # Forced: a daemon that hangs goes with its mount.
        unmount_lazily(self.point, MNT_FORCE)
        try:
            self.kill()
        except Wrong:
            pass
        shutil.rmtree(self.top, ignore_errors=True)
