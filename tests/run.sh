#!/usr/bin/env bash
# Installs what is missing (Debian 12 and 13), builds, runs every test, counts.
#
#     tests/run.sh [--build DIR] [--suite NAME]... [--] [meson setup options]
#
# The build goes to build/ unless told otherwise. The mount tests need /dev/fuse:
# without it they are skipped, which is a failure when CI is set. A run with
# sanitizers is slower; BPKFS_TEST_TIMEOUT multiplies every time limit.
set -eu -o pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
suites=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=${2:?--build needs a directory}; shift 2 ;;
    --suite) suites+=(--suite "${2:?--suite needs a name}"); shift 2 ;;
    --) shift; break ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "$0: unknown option $1 (see --help)" >&2; exit 2 ;;
    esac
done

. "$top/tests/support/packages.sh"
install_missing build mount test

if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" "$top" "$@"
elif [ $# -gt 0 ]; then
    meson configure "$build" "$@"
fi
meson compile -C "$build"

fuse=yes
if ! { : <>/dev/fuse; } 2>/dev/null; then
    fuse=
    echo "/dev/fuse cannot be opened: the mount tests are skipped." >&2
fi

log=$build/meson-logs/testlog.json
rm -f "$log"
status=0
meson test -C "$build" --no-rebuild --print-errorlogs ${suites[@]+"${suites[@]}"} \
    --timeout-multiplier "${BPKFS_TEST_TIMEOUT:-1}" || status=$?

if [ ! -s "$log" ]; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
closing=$(python3 "$top/tests/support/count.py" "$log")
case $closing in *" 0 failed, "*) ;; *) status=1 ;; esac
if [ -z "$fuse" ] && [ -n "${CI:-}" ]; then
    echo "With CI set, skipping the mount tests is a failure." >&2
    status=1
fi
echo "$closing"
exit "$status"
