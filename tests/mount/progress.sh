#!/usr/bin/env bash
# What a terminal shows of a commit that takes long: --commit and --unmount alike.
. "$(dirname "$0")/lib.sh"

if [ -z "${BPKFS_AT_SYSCALL:-}" ] || ! "$BPKFS_AT_SYSCALL" fail mount 22 true; then
    skip_all 'system calls cannot be held here'
fi
mkfifo "$T/reached" "$T/go"

# shown COMMAND MOUNTPOINT GO-FIFO: runs bpkfs COMMAND at a terminal, lets the commit that
# is held at its flush go on when the bar has been seen, and prints the exit status, the
# bar with N for numbers, and what the line is in the end.
shown() {
    "$PYTHON" -I - "$BPKFS" "$@" <<'PYTHON'
import os, pty, re, signal, sys
signal.alarm(100) # rather than hang
bpkfs, command, mount, go = sys.argv[1:]
pid, terminal = pty.fork()
if not pid:
    os.execv(bpkfs, [bpkfs, command, mount])
text = b""
bar = None
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError: # the other end is closed
        break
    if not data:
        break
    text += data
    if not bar:
        bar = re.search(rb"\[[#-]+\] +\d+% of [\d.]+ MB, [\d.]+ MB/s, \d+ s left", text)
        if bar:
            os.close(os.open(go, os.O_WRONLY))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
last = text.rsplit(b"\r", 1)[-1].decode()
print(status, re.sub(r"[\d.]+", "N", bar[0].decode()) if bar else None, repr(last))
PYTHON
}

# held: a mount whose first flush waits.
held() {
    fresh progress
    BPKFS_UNDER="$BPKFS_AT_SYSCALL hold fsync $T/reached $T/go" bpkfs -o rw "$pack" "$mnt"
    is "$1: mount" "$status" 0
    echo 0.5 >"$mnt/scalars/lr"
    cat "$T/reached" >/dev/null &
}
bar='[########################] N% of N MB, N MB/s, N s left'

held 'unmount'
is '--unmount: the bar is there, and goes' "$(shown --unmount "$mnt" "$T/go")" "0 $bar '\\x1b[K'"
daemon_ended "$mnt"
is '--unmount: the edit is in' "$(oracle scalar "$pack" lr)" 'Float 0.5'
held 'commit'
is '--commit: likewise' "$(shown --commit "$mnt" "$T/go")" "0 $bar '\\x1b[K'"
is '--commit: the edit is in' "$(oracle scalar "$pack" lr)" 'Float 0.5'

# A commit that is over at once shows nothing.
echo 0.25 >"$mnt/scalars/lr"
is 'nothing for one that is short' "$("$PYTHON" -I -c '
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$BPKFS" --unmount "$mnt" </dev/null)" ''
daemon_ended "$mnt"
done_testing
