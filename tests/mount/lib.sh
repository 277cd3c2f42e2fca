# shellcheck shell=bash
# lib.sh - what the mount tests share: TAP, mounting in the mode that is asked for,
# and leaving nothing behind. To be sourced.
#
# From the environment (tests/mount/meson.build sets it):
#     BPKFS           the program
#     BPKFS_WAIT_FOR  tests/support/wait-for
#     BPKFS_MODE      daemon (default) or foreground
#     BPKFS_THREADS   multi (default) or single
#     BPKFS_AS        user: when started by root, the whole script runs as an ordinary
#                     user, through fusermount3. What needs root skips itself.
#     BPKFS_AT_SYSCALL  tests/support/at-syscall
#     BPK_DUMP        tests/support/bpk-dump, optional: the library's own view
#
# Nothing here sleeps: mounts and ends of processes are waited for by wait-for.

set -u
export LC_ALL=C.UTF-8 LANGUAGE=
: "${BPKFS:?}" "${BPKFS_WAIT_FOR:?}"
: "${BPKFS_MODE:=daemon}" "${BPKFS_THREADS:=multi}"

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
golden=$top/tests/data/vectors/golden

# TAP --------------------------------------------------------------------------

tap_count=0 tap_failed=0 tap_done=

comment() { sed 's/^/# /' <<<"$*"; }
tap() { # RESULT DESCRIPTION [DIRECTIVE]
    tap_count=$((tap_count + 1))
    printf '%s %d - %s%s\n' "$1" "$tap_count" "${2//\#/ }" "${3:+ # $3}"
}
pass() { tap ok "$1"; }
fail() { # DESCRIPTION [EXPLANATION]
    tap 'not ok' "$1"
    tap_failed=$((tap_failed + 1))
    [ -z "${2:-}" ] || comment "$2"
    # What meson shows of a test that fails is its standard error.
    comment "not ok: $1: ${2:-}" | head -40 >&2
}
skip() { tap ok "$1" "SKIP ${2:-}"; }
skip_all() {
    echo "1..0 # SKIP $1"
    tap_done=yes
    exit 0
}

# ok DESCRIPTION COMMAND...: the command succeeds.
ok() {
    local name=$1 out
    shift
    if out=$("$@" 2>&1); then pass "$name"; else fail "$name" "status $? of: $* 
$out"; fi
}
# is DESCRIPTION GOT WANTED
is() {
    if [ "$2" = "$3" ]; then
        pass "$1"
    else
        fail "$1" "$(diff <(printf '%s\n' "$3") <(printf '%s\n' "$2") --label wanted --label got -u | head -60)"
    fi
}
# like DESCRIPTION GOT REGEX (extended, any case)
like() {
    if grep -qiE -- "$3" <<<"$2"; then pass "$1"; else fail "$1" "got: $2
wanted: /$3/"; fi
}
# refused DESCRIPTION REGEX COMMAND...: it fails and says so.
refused() {
    local name=$1 regex=$2 out
    shift 2
    if out=$("$@" 2>&1); then
        fail "$name" "succeeded: $*"
    else
        like "$name" "$out" "$regex"
    fi
}
# Write TEXT to FILE; fails when write or close fails (which builtins don't tell).
put() { env printf '%s' "$2" >"$1"; }

EROFS='read-only file system' EINVAL='invalid argument' ENOENT='no such file'
ERANGE='numerical result out of range' EILSEQ='invalid or incomplete multibyte'
EACCES='permission denied' EPERM='operation not permitted' EXDEV='cross-device'
ENOTSUP='not supported' ENODATA='no such attribute|no data available'

is_root() { [ "$(id -u)" -eq 0 ]; }
as_user() { T=${T:-} "$BASH" "$top/tests/support/as-user.sh" "$@"; }

if [ "${BPKFS_AS:-}" = user ] && is_root; then
    as_user test -x "$BPKFS" -a -x "$BPKFS_WAIT_FOR" -a -r "$0" ||
        skip_all 'an ordinary user cannot reach the build, or cannot be given /dev/fuse'
    home=$(mktemp -d "${TMPDIR:-/tmp}/bpkfs-user.XXXXXX") && chown 65534:65534 "$home" || exit 1
    trap 'rm -rf --one-file-system "$home"' EXIT
    trap 'exit 143' HUP INT TERM
    HOME=$home TMPDIR=$home BPKFS_AS= as_user "$BASH" "$0"
    exit
fi

# The interpreter itself: what is called python3 may be a slow wrapper.
PYTHON=$(python3 -c 'import sys; print(sys.executable)') || exit 1

# Cleaning up --------------------------------------------------------------------

T=$(mktemp -d "${TMPDIR:-/tmp}/bpkfs-test.XXXXXX") || exit 1
T=$(cd "$T" && pwd -P)
chmod 755 "$T"
mkdir "$T/log"
export BPKFS_TEST=$T # marks the processes of this script
declare -A pids=() # mount point -> process
mounts=()          # of bpkfs, in order of mounting
others=()          # tmpfs and bind mounts
immutable=()

# Reports of sanitizers go to files: a daemon has no stderr to look at. The exit
# codes are moved away from the ones of bpkfs.
export ASAN_OPTIONS=log_path=$T/log/san:exitcode=99:detect_stack_use_after_return=1
export LSAN_OPTIONS=exitcode=99
export UBSAN_OPTIONS=log_path=$T/log/san:print_stacktrace=1:exitcode=99

is_mounted() { findmnt -rn -M "$1" >/dev/null 2>&1; }
alive() { [ -e "/proc/$1/stat" ] && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }

cleanup() {
    local status=$? at left=
    trap - EXIT
    cd /
    for at in "${immutable[@]}"; do chattr -i "$at" 2>/dev/null; done
    for at in "${mounts[@]}"; do
        is_mounted "$at" || continue
        left+=" $at"
        fusermount3 -u -z "$at" 2>/dev/null || umount -l "$at" 2>/dev/null
    done
    for at in "${pids[@]}"; do
        alive "$at" || continue
        kill "$at" 2>/dev/null
        timeout 20 "$BPKFS_WAIT_FOR" exited "$at" || { kill -9 "$at" 2>/dev/null; left+=" $at"; }
    done
    for ((at = ${#others[@]} - 1; at >= 0; at--)); do umount -l "${others[at]}" 2>/dev/null; done
    if [ -z "$tap_done" ]; then
        echo "Bail out! the test ended early with status $status${left:+, left were:$left}"
        [ "$status" -ne 0 ] || status=1
    fi
    # Copies of a read-only mount cannot be removed as they are but by root.
    find "$T" -xdev -type d ! -perm -u+w -exec chmod u+w {} + 2>/dev/null
    rm -rf --one-file-system "$T"
    exit "$status"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

done_testing() {
    local at left=
    for at in "${mounts[@]}"; do is_mounted "$at" && left+=" $at"; done
    for at in "${pids[@]}"; do alive "$at" && left+=" $at"; done
    is 'nothing stays mounted or running' "$left" ''
    is 'no sanitizer has anything to report' "$(cat "$T"/log/san* 2>/dev/null | head -100)" ''
    echo "1..$tap_count"
    tap_done=yes
    exit 0
}

# Who kills this script with SIGKILL (a test that hangs is ended so) must not leave its
# mounts behind: a second process, out of reach, waits for the end of this one.
export BPKFS_WAIT_FOR
setsid bash -c '
    while "$BPKFS_WAIT_FOR" exited "$1"; [ $? -eq 2 ]; do :; done
    [ -d "$2" ] || exit 0
    while read -r pid; do
        [ "$(cat "/proc/$pid/comm")" = bpkfs ] && kill -9 "$pid"
    done <"$2/log/pids"
    findmnt -rno TARGET | grep -F "$2/" | sort -r | while read -r at; do
        printf -v at %b "$at"
        umount -l "$at" || fusermount3 -u -z "$at"
    done
    chattr -R -i "$2"
    rm -rf --one-file-system "$2"
' watcher "$$" "$T" >/dev/null 2>&1 </dev/null &
disown

{ : <>/dev/fuse; } 2>/dev/null || skip_all 'no /dev/fuse'

# Mounting -----------------------------------------------------------------------

status=0 err= run_count=0

# bpkfs ARGUMENTS... MOUNTPOINT: mount, started by the words of $BPKFS_UNDER if any.
# Fills $status and $err (stderr so far). In the foreground a mount that comes up
# counts as 0.
bpkfs() {
    local at=${!#} flags=() log
    run_count=$((run_count + 1))
    log=$T/log/$run_count
    if [ "$BPKFS_THREADS" = single ]; then flags+=(-s); fi
    if [ "$BPKFS_MODE" = foreground ]; then
        # The shell has its background jobs ignore SIGINT: bpkfs heeds it all the same.
        # Not so SIGHUP, which whoever started this may have had ignored.
        env --default-signal=HUP ${BPKFS_UNDER:-} "$BPKFS" -f "${flags[@]}" "$@" \
            >"$log.out" 2>"$log.err" </dev/null &
        local pid=$!
        timeout 60 "$BPKFS_WAIT_FOR" mounted "$at" "$pid"
        status=$?
        if [ "$status" -eq 0 ]; then
            pids[$at]=$pid
        elif [ "$status" -eq 1 ]; then
            wait "$pid"
            status=$?
        else
            # It neither mounted nor ended (or the mount point makes no sense).
            timeout 20 "$BPKFS_WAIT_FOR" exited "$pid" || kill -9 "$pid"
            wait "$pid"
            status=$?
        fi
    else
        timeout -k 5 60 ${BPKFS_UNDER:-} "$BPKFS" "${flags[@]}" "$@" >"$log.out" 2>"$log.err" </dev/null
        status=$?
        if [ "$status" -eq 0 ]; then pids[$at]=$(daemon_of "$at"); fi
    fi
    if [ "$status" -eq 0 ]; then
        mounts+=("$at")
        logs[$at]=$log
        echo "${pids[$at]}" >>"$T/log/pids"
    fi
    err=$(cat "$log.err")
    return "$status"
}
declare -A logs=()

daemon_of() { sed -n 's/.*"pid": *\([0-9][0-9]*\).*/\1/p' "$1/.bpkfs/status"; }

# mounted DESCRIPTION ARGUMENTS... MOUNTPOINT: a test of its own. When it fails, the
# ones that look at the mount fail too, and unmount says why.
mounted() {
    local name=$1
    shift
    if bpkfs "$@"; then pass "$name"; else fail "$name" "status $status: $err"; fi
}

# Processes of bpkfs that this script started and that no mount of its accounts for.
strays() {
    local file pid
    for file in /proc/[1-9]*/exe; do
        [ "$file" -ef "$BPKFS" ] || continue
        pid=${file//[!0-9]/}
        case " ${pids[*]} " in *" $pid "*) continue ;; esac
        if grep -qxzF "BPKFS_TEST=$T" "/proc/$pid/environ" 2>/dev/null && alive "$pid"; then
            echo "$pid"
        fi
    done
}
# What a mount that failed may have left behind, in words; nothing when all is well.
left_behind() { # MOUNTPOINT WAS-THERE STAGING-BEFORE
    ! is_mounted "$1" || echo "mounted: $1"
    [ -n "$2" ] || [ ! -e "$1" ] || echo "the mount point was made: $1"
    [ "$(staging_folders)" = "$3" ] || echo "a staging folder: $(staging_folders)"
    strays | sed 's/^/a process: /'
}
staging_folders() { find "$T" -xdev -name '.*.bpkfs' 2>/dev/null | sort; }

# cannot STATUS REGEX DESCRIPTION ARGUMENTS...: bpkfs ARGUMENTS (the last is the mount
# point) fails with STATUS and one line like REGEX, and leaves nothing behind.
cannot() {
    local want=$1 regex=$2 name=$3 at=${!#} was= staging
    shift 3
    [ ! -e "$at" ] || was=yes
    staging=$(staging_folders)
    if bpkfs "$@"; then
        fail "$want: $name" 'mounted'
        "$BPKFS" --unmount "$at" >/dev/null 2>&1
        daemon_ended "$at"
    else
        told "$want: $name" "$want" "$regex" "$status" "$err" "$(left_behind "$at" "$was" "$staging")"
    fi
}
# told NAME STATUS REGEX GOT-STATUS GOT-TEXT [WRONG]
told() {
    if [ "$4" -ne "$2" ]; then
        fail "$1" "status $4, wanted $2: $5"
    elif [ "$(wc -l <<<"$5")" -ne 1 ] || ! grep -qiE -- "$3" <<<"$5"; then
        fail "$1" "said: $5
wanted one line like: $3"
    elif [ -n "${6:-}" ]; then
        fail "$1" "left behind: $6"
    else
        pass "$1"
    fi
}

# The daemon of MOUNTPOINT has ended: in the foreground, $fg_status is its status.
daemon_ended() {
    local at=$1 pid=${pids[$1]:-}
    fg_status=
    [ -n "$pid" ] || return 1
    if ! "$BPKFS_WAIT_FOR" exited "$pid"; then
        comment "the daemon of $at does not end"
        return 1
    fi
    if [ "$BPKFS_MODE" = foreground ]; then
        wait "$pid"
        fg_status=$?
    fi
    unset "pids[$at]"
    err=$(cat "${logs[$at]}.err")
}

# unmount DESCRIPTION MOUNTPOINT [STATUS [REGEX]]: bpkfs --unmount gives STATUS and
# its text is like REGEX (one line, or none for 0); the daemon is gone by then.
unmount() {
    local name=$1 at=$2 want=${3:-0} regex=${4:-} text late=
    message=
    if [ -z "${pids[$at]:-}" ]; then
        fail "$name" 'it was not mounted'
        return
    fi
    text=$(timeout -k 5 120 "$BPKFS" --unmount "$at" 2>&1 </dev/null)
    status=$?
    if alive "${pids[$at]}"; then late=' but its daemon was still there'; fi
    daemon_ended "$at" || late=' but its daemon does not end'
    message=$text
    if [ "$status$late" != "$want" ]; then
        fail "$name" "status $status$late, wanted $want: $text"
    elif [ "$BPKFS_MODE" = foreground ] && [ "$fg_status" != "$want" ]; then
        fail "$name" "the process under -f gave $fg_status, wanted $want: $err"
    elif is_mounted "$at"; then
        fail "$name" 'still mounted'
    elif [ "$want" -eq 0 ] && [ -n "$text" ]; then
        fail "$name" "said: $text"
    elif [ "$want" -ne 0 ] && [ "$(wc -l <<<"$text")" -ne 1 ]; then
        fail "$name" "more than one line: $text"
    elif ! grep -qiE -- "$regex" <<<"$text"; then
        fail "$name" "said: $text
wanted: /$regex/"
    else
        pass "$name"
    fi
}
message=

# tmpfs DIR [OPTIONS]: a file system of its own, for a full disk and the like.
tmpfs() {
    mkdir -p "$1" && mount -t tmpfs -o "${2:-size=16m}" bpkfs-test "$1" && others+=("$1")
}

# Packs and trees ----------------------------------------------------------------

oracle() { "$PYTHON" -I "$top/tests/support/oracle.py" "$@"; }
sum() { sha256sum "$@" | cut -d' ' -f1; }

# fresh NAME: $T/NAME.bpk, a copy of the sample pack, and $T/NAME, a mount point.
fresh() {
    pack=$T/$1.bpk mnt=$T/$1
    rm -rf "$pack"
    mkdir -p "$mnt"
    cp "$T/base.bpk" "$pack"
}
oracle make "$here/base.json" "$T/base.bpk" || exit 1

# Path, size (stat's) and SHA-256 of every file in a mount, as `oracle tree` says it.
whole_tree() { oracle files "$1"; }

# valid PACK: the library opens it too.
valid() { [ -z "${BPK_DUMP:-}" ] || "$BPK_DUMP" "$1" >/dev/null; }
