#!/usr/bin/env bash
# The life of a mount: ready when the caller goes on, told to a service manager, idle,
# ended by signals (SEMANTICS, section 1).
. "$(dirname "$0")/lib.sh"

# Ready ----------------------------------------------------------------------------

# BPKFS_TEST_MOUNTS: how often; many more than in CI have been tried.
fresh ready
count=${BPKFS_TEST_MOUNTS:-60} wrong=
want=$'index.tsv\nmetadata\nnpy\npack.json\npack.safetensors\nscalars\ntensors'
for ((i = 1; i <= count; i++)); do
    if ! bpkfs "$pack" "$mnt"; then
        wrong+="$i: status $status: $err"$'\n'
        continue
    fi
    got=$(ls "$mnt" 2>&1)
    [ "$got" = "$want" ] || wrong+="$i: ls: $got"$'\n'
    # By turns, so that half of the mounts meet a daemon that is just ending.
    if ((i % 2)); then
        "$BPKFS" --unmount "$mnt" >/dev/null 2>&1 || wrong+="$i: unmount: $?"$'\n'
    else
        fusermount3 -u "$mnt" || wrong+="$i: fusermount3 -u: $?"$'\n'
    fi
    ! is_mounted "$mnt" || wrong+="$i: still mounted"$'\n'
done
is "$count mounts show the tree at once and go" "$wrong" ''
for pid in $(strays) "${pids[@]}"; do "$BPKFS_WAIT_FOR" exited "$pid"; done
is 'and all daemons end' "$(strays)" ''
unset 'pids[$mnt]'

# What the caller had open or closed.
fresh inherited
exec 8<"$T/base.bpk"
if [ "$BPKFS_MODE" = daemon ]; then
    mounted 'a caller with an open file' "$pack" "$mnt"
    is 'the daemon does not keep it open' \
        "$(find "/proc/${pids[$mnt]}/fd" -lname "$T/base.bpk")" ''
    is 'nor anything on the terminal' \
        "$(readlink "/proc/${pids[$mnt]}/fd/"{0,1,2} | sort -u)" /dev/null
    is 'nor the folder it was started in' "$(readlink "/proc/${pids[$mnt]}/cwd")" /
    unmount 'it unmounts' "$mnt"
    "$BPKFS" -o rw "$pack" "$mnt" <&- >&- 2>&-
    is 'a caller without standard input, output and error' $? 0
    pids[$mnt]=$(daemon_of "$mnt") mounts+=("$mnt") logs[$mnt]=$T/log/none
    : >"$T/log/none.err"
    is 'the mount is whole' "$(whole_tree "$mnt")" "$(oracle tree "$pack")"
    echo 0.5 >"$mnt/scalars/x"
    unmount 'it commits' "$mnt"
    is 'what was edited is there' "$(oracle scalar "$pack" x)" 'Float 0.5'
    printf 'PK\003\004aaaaaaaaaaaaaaaaaaaaaaaa' >"$T/zip.bpk"
    text=$(env --ignore-signal=CHLD "$BPKFS" "$T/zip.bpk" "$mnt" 2>&1)
    told 'a caller that ignores SIGCHLD hears of a failure' 12 zip $? "$text"
    if [ -n "${BPKFS_AT_SYSCALL:-}" ] && is_root; then
        text=$(env --ignore-signal=CHLD "$BPKFS_AT_SYSCALL" fail mount 22 "$BPKFS" "$pack" "$mnt" 2>&1)
        told 'also of the daemon' 10 'mount' $? "$text"
    else
        skip 'also of the daemon' 'needs root'
    fi
fi
exec 8<&-

# Told to a service manager --------------------------------------------------------

listen() { # SOCKET: $hear is what it is told
    coproc MANAGER { exec "$PYTHON" -I "$top/tests/support/notified.py" "$1" 2>&1; }
    manager=$MANAGER_PID
    exec {hear}<&"${MANAGER[0]}" {talk}>&"${MANAGER[1]}"
    eval "exec ${MANAGER[0]}<&- ${MANAGER[1]}>&-"
    read -r -t 60 -u "$hear" line
    [ "$line" = listening ] || comment "the listener: $line"
}
heard() { line=; read -r -t 60 -u "$hear" line; }
hang_up() { # $rest is all that was told since
    exec {talk}>&-
    rest=$(cat <&"$hear")
    exec {hear}<&-
    wait "$manager" 2>/dev/null
}

fresh notify
if [ "$BPKFS_MODE" = foreground ]; then
    for socket in "$T/notify.socket" "@$T/abstract"; do
        kind='a path'
        [ "${socket:0:1}" = / ] || kind='an abstract name'
        listen "$socket"
        NOTIFY_SOCKET=$socket bpkfs -o rw "$pack" "$mnt"
        is "notify, $kind: mounts" "$status $err" '0 '
        heard
        is "notify, $kind: told when it answers" "$line" READY=1
        is "notify, $kind: and it does" "$(cat "$mnt/scalars/delta")" -5
        echo 0.5 >"$mnt/scalars/x"
        echo "${socket:0:1}" >"$mnt/metadata/arch"
        unmount "notify, $kind: unmount" "$mnt"
        hang_up
        is "notify, $kind: told of the end, and to wait for the commit" \
            "$(sed -E 's/[0-9]+ of [0-9]+ bytes/N of N bytes/' <<<"$rest" | awk '!seen[$0]++')" \
            $'STOPPING=1\nSTATUS=Committing: N of N bytes\nEXTEND_TIMEOUT_USEC=120000000'
    done
    while IFS='|' read -r name socket; do
        NOTIFY_SOCKET=$socket bpkfs "$pack" "$mnt"
        is "notify, $name: mounts all the same" "$status" 0
        is "notify, $name: the tree" "$(ls "$mnt")" "$want"
        unmount "notify, $name: unmount" "$mnt"
    done <<ROWS
nobody listens|$T/nobody
no path|word
a name that is too long|/$(printf '%0200d' 0)
empty|
an empty abstract name|@
ROWS
else
    listen "$T/notify.socket"
    NOTIFY_SOCKET=$T/notify.socket bpkfs "$pack" "$mnt"
    is 'notify: a daemon mounts' "$status" 0
    unmount 'notify: unmount' "$mnt"
    hang_up
    is 'notify: a daemon is no service: its caller tells' "$rest" ''
fi
if is_root; then
    skip 'notify: the socket is not passed on' 'root needs no fusermount3'
else
    # The unmount after idling is bpkfs's own, through the fusermount3 in PATH.
    mkdir "$T/bin"
    printf '#!/bin/sh\nenv >"%s"\nexec "%s" "$@"\n' "$T/passed-on" "$(command -v fusermount3)" \
        >"$T/bin/fusermount3"
    chmod +x "$T/bin/fusermount3"
    PATH=$T/bin:$PATH NOTIFY_SOCKET=$T/nobody bpkfs -o timeout=1 "$pack" "$mnt"
    daemon_ended "$mnt"
    is 'notify: the socket is not passed on' "$(grep -c . "$T/passed-on" | sed 's/^[1-9].*/some/') $(
        grep NOTIFY_SOCKET "$T/passed-on")" 'some '
fi

# Idle -------------------------------------------------------------------------------

# No sleep tells how long a busy machine takes: the end of a mount that may be idle for
# longer than the others is the clock.
clock() {
    mkdir -p "$T/clock"
    bpkfs -o timeout=3 "$pack" "$T/clock" || fail 'a clock' "$err"
    daemon_ended "$T/clock"
}
# used NAME COMMAND...: $T/NAME is mounted and COMMAND, which uses it, has succeeded,
# before it went again.
used() {
    local at=$T/$1 name=$1
    shift
    mkdir -p "$at"
    for _ in 1 2 3 4 5; do
        bpkfs -o timeout=2 "$pack" "$at" || break
        if "$@" 2>/dev/null; then
            pass "idle, $name: mounted and in use"
            return
        fi
        daemon_ended "$at"
    done
    fail "idle, $name: mounted and in use" "status $status: $err"
}
open_file() { exec 7<"$T/open/tensors/big"; }
enter() {
    exec 6< <(cd "$T/cwd" && echo there && exec cat "$T/leave" 7<&-)
    read -r -u 6 _
}
# A pause is a read of what never comes: of what comes, bash can lose a byte when the
# time is up just then.
pause() { read -r -t 0.1 <>"$T/never"; }
ask() { # until told that it is enough; the first time before it returns
    : "$T"/asked/scalars/*
    (until [ -e "$T/enough" ]; do : "$T"/asked/scalars/*; pause; done) 6<&- 7<&- &
    asking=$!
    [ -e "$T/asked/scalars" ]
}
count() {
    [ "$(stat -f -c %t "$T/counted")" = 65735546 ] || return
    (while [ "$(stat -f -c %t "$T/counted")" = 65735546 ]; do
        pause
    done) 6<&- 7<&- &
    counting=$!
}
fresh idle
mkfifo "$T/leave" "$T/never"
used open open_file
used cwd enter
used asked ask
used counted count
mounted 'idle: a mount point that is made' -o timeout=1 "$pack" "$T/made"
daemon_ended "$T/made"
is 'idle: the mount ends by itself' "$(is_mounted "$T/made"; echo $?)" 1
refused 'idle: and the mount point that was made goes' "$ENOENT" ls -d "$T/made"
[ "$BPKFS_MODE" != foreground ] || is 'idle: that is no failure' "$fg_status" 0
clock
ok 'idle: an open file keeps it mounted' is_mounted "$T/open"
is 'idle: and it can be read' "$(sum <&7)" "$(oracle data "$pack" big | sum)"
ok 'idle: what is being looked at stays mounted' is_mounted "$T/asked"
ok 'idle: a folder in use stays mounted' is_mounted "$T/cwd"
daemon_ended "$T/counted"
is 'idle: statfs is no use of it' $? 0
exec 6<&- 7<&-
echo >"$T/leave"
: >"$T/enough"
wait "$asking" "$counting"
for name in open asked cwd; do
    daemon_ended "$T/$name"
    is "idle, $name: it goes when it is left" "$?$(is_mounted "$T/$name" && echo mounted)" 0
done
mounted 'idle: 0 is for ever' -o timeout=0 "$pack" "$mnt"
clock
ok 'idle: 0 is for ever, indeed' is_mounted "$mnt"
unmount 'idle: unmount' "$mnt"
mounted 'idle: 0 for a writable one' -o rw,timeout=0 "$pack" "$mnt"
unmount 'idle: unmount a writable one' "$mnt"
cannot 1 'timeout=5.*read-only.*commit' 'idle: not for a writable mount' -o rw,timeout=5 "$pack" "$mnt"
cannot 1 'timeout=5.*read-only' 'idle: in either order' -o timeout=5,rw "$pack" "$mnt"
for value in -1 1s '' 2592001 99999999999999999999; do
    cannot 1 "timeout=$value.*seconds" "idle: '$value' is no time" -o "timeout=$value" "$pack" "$mnt"
done

# Signals ------------------------------------------------------------------------------

sed 's/"x": {"Float": 0.25}/"x": {"Float": 0.5}/' "$here/base.json" >"$T/want.json"
oracle make "$T/want.json" "$T/want.bpk"
ended_by() { # DESCRIPTION STATUS: the daemon ends, everything is as after an unmount
    daemon_ended "$mnt"
    ok "$1: unmounted" "$BPKFS_WAIT_FOR" unmounted "$mnt"
    [ "$BPKFS_MODE" != foreground ] || is "$1: exit status under -f" "$fg_status" "$2"
    is "$1: nothing is left" "$(ls -A "$T" | grep '^\..*\.bpkfs$')" ''
}
for name in TERM INT HUP; do
    fresh signal
    mounted "SIG$name, a file is open: mount" -o rw "$pack" "$mnt"
    exec 7<"$mnt/tensors/big"
    echo 0.5 >"$mnt/scalars/x"
    kill -s "$name" "${pids[$mnt]}"
    ended_by "SIG$name, a file is open" 0
    ok "SIG$name, a file is open: committed" cmp "$T/want.bpk" "$pack"
    refused "SIG$name, a file is open: it cannot be read any more" 'not connected|aborted' cat <&7
    exec 7<&-
done

# nohup(1): whoever logs out does not end it.
if [ "$BPKFS_MODE" = foreground ]; then
    fresh nohup
    BPKFS_UNDER=nohup mounted 'nohup: mount' -o rw "$pack" "$mnt"
    echo 0.5 >"$mnt/scalars/x"
    kill -s HUP "${pids[$mnt]}"
    masks=$(sed -n 's/^Sig\(Blk\|Ign\):[^0-9a-f]*//p' "/proc/${pids[$mnt]}/status")
    is 'nohup: SIGHUP is ignored and waits for nobody' "$(for mask in $masks; do echo $((0x$mask & 1)); done | tr '\n' ' ')" '0 1 '
    is 'nohup: it goes on' "$(cat "$mnt/scalars/x")" 0.5
    kill "${pids[$mnt]}"
    ended_by 'nohup: SIGTERM' 0
    ok 'nohup: committed' cmp "$T/want.bpk" "$pack"
fi

fresh mapped
mounted 'a shared mapping: mount' -o rw "$pack" "$mnt"
mkfifo "$T/written" "$T/go-on"
"$PYTHON" -I - "$mnt/tensors/steps" "$T/written" "$T/go-on" 2>/dev/null <<'PYTHON' &
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view[:] = b"12345678"
    open(sys.argv[2], "w").close()
    open(sys.argv[3]).close()
PYTHON
mapper=$!
timeout 60 cat "$T/written"
kill "${pids[$mnt]}"
ended_by 'a shared mapping' 0
: >"$T/go-on"
wait "$mapper" 2>/dev/null
is 'a shared mapping that is still open is committed' "$(oracle data "$pack" steps)" 12345678

# Before the mount is ready, and during a commit: the moments are held.
if [ -z "${BPKFS_AT_SYSCALL:-}" ] || ! is_root || ! "$BPKFS_AT_SYSCALL" fail mount 22 true; then
    skip 'a signal before the mount is ready' 'needs root and seccomp'
    skip 'a second signal during a commit' 'needs root and seccomp'
else
    mkfifo "$T/reached" "$T/go"
    reached() { read -r pid < <(timeout 60 cat "$T/reached"); }
    # In the background the caller is another process than the one that mounts: it can
    # hand on no SIGKILL, but it is missed.
    names=(TERM INT HUP) flags=(-f)
    if [ "$BPKFS_MODE" = daemon ]; then names+=(KILL) flags=(); fi
    for name in "${names[@]}"; do
        fresh early
        rm -r "$mnt"
        mounts+=("$mnt")
        env --default-signal=HUP "$BPKFS_AT_SYSCALL" hold mount "$T/reached" "$T/go" "$BPKFS" "${flags[@]}" -o rw "$pack" "$mnt" \
            >"$T/log/early" 2>&1 &
        caller=$!
        reached
        kill -s "$name" "$caller"
        [ "$name" != KILL ] || wait "$caller" 2>/dev/null
        timeout 60 bash -c ': >"$1"' - "$T/go"
        wait "$caller" 2>/dev/null
        got=$?
        "$BPKFS_WAIT_FOR" exited "$pid"
        if [ "$name" != KILL ]; then
            told "SIG$name before the mount is ready" 10 "SIG(TERM|$name).*before" "$got" "$(cat "$T/log/early")"
        fi
        is "SIG$name before the mount is ready: nothing is left" "$(left_behind "$mnt" '' '')" ''
        is "SIG$name before the mount is ready: the pack is untouched" "$(sum "$pack")" "$(sum "$T/base.bpk")"
    done

    for name in TERM INT HUP; do
        fresh twice
        BPKFS_UNDER="$BPKFS_AT_SYSCALL hold fsync $T/reached $T/go" bpkfs -o rw "$pack" "$mnt"
        is "SIG$name twice: mount" "$status" 0
        echo 0.5 >"$mnt/scalars/x"
        kill -s "$name" "${pids[$mnt]}"
        reached
        is "SIG$name twice: it is in the commit" "$(sum "$pack") $(is_mounted "$mnt"; echo $?)" \
            "$(sum "$T/base.bpk") 1"
        for again in TERM INT HUP TERM; do kill -s "$again" "${pids[$mnt]}"; done
        timeout 60 bash -c ': >"$1"' - "$T/go"
        ended_by "SIG$name twice" 0
        ok "SIG$name twice: committed" cmp "$T/want.bpk" "$pack"
    done

    # Who waits for a commit when the mount ends hears how it went.
    fresh asked
    BPKFS_UNDER="$BPKFS_AT_SYSCALL hold fsync $T/reached $T/go" bpkfs -o rw "$pack" "$mnt"
    is 'a commit when the end comes: mount' "$status" 0
    echo 0.5 >"$mnt/scalars/x"
    sync "$mnt" 2>"$T/told" &
    waiting=$!
    reached
    kill "${pids[$mnt]}"
    timeout 60 bash -c ': >"$1"' - "$T/go"
    wait "$waiting"
    is 'a commit when the end comes: who asked hears of it' "$? $(cat "$T/told")" '0 '
    ended_by 'a commit when the end comes' 0
    ok 'a commit when the end comes: committed' cmp "$T/want.bpk" "$pack"
fi

# Options -------------------------------------------------------------------------------

fresh options
is '-V: three versions, a line each, and of fusermount3' \
    "$("$BPKFS" -V | sed -E 's/[0-9]+(\.[0-9]+)+/N/')" \
    $'bpkfs N\nlibfuse N\nusing FUSE kernel interface version N\nfusermount3 version: N'
is '--version is the same' "$("$BPKFS" --version)" "$("$BPKFS" -V)"
"$BPKFS" -V >/dev/null
is '-V: status' $? 0
"$BPKFS" -h >"$T/help" 2>"$T/help.err"
is '-h: status, nothing on standard error' "$? $(cat "$T/help.err")" '0 '
is '-h: fits a terminal' "$(awk 'length > 80' "$T/help")" ''
for word in -f -d -s -h -V -o --unmount --help --version ro rw flat uid gid umask fmask dmask \
    allow_other allow_root timeout fsname staging user_allow_other SIGTERM 'Exit status'; do
    ok "-h tells of $word" grep -qwF -e "$word" "$T/help"
done
if [ "$BPKFS_MODE" = foreground ]; then
    mounted '-d: mount' -d "$pack" "$mnt"
    ls "$mnt" >/dev/null
    unmount '-d: unmount' "$mnt"
    like '-d tells every request' "$(cat "${logs[$mnt]}.err")" 'opcode: LOOKUP|READDIR'
    "$BPKFS" -d "$pack" "$mnt" >"$T/log/debug" 2>&1 &
    pid=$!
    timeout 60 "$BPKFS_WAIT_FOR" mounted "$mnt" "$pid"
    is '-d stays in the foreground' "$?$(alive "$pid" && echo ' alive')" '0 alive'
    kill "$pid"
    wait "$pid"
    is '-d: status' $? 0
fi
mounted '-s: mount' -s "$pack" "$mnt"
# Beside the one that serves there is the one that waits for signals and idleness.
readers=()
for _ in 1 2 3 4 5 6 7 8; do
    cat "$mnt/tensors/big" >/dev/null &
    readers+=($!)
done
wait "${readers[@]}"
is '-s: one thread answers' "$(ls "/proc/${pids[$mnt]}/task" | wc -l)" 2
unmount '-s: unmount' "$mnt"

done_testing
