# shellcheck shell=bash
# packages.sh - what building and testing need, said once. To be sourced by
# tests/run.sh, .ci/run and examples/quickstart.sh.
#
#     install_missing GROUP...
#
# Installs the Debian packages of these groups whose probe fails: nothing, and no
# need of root, when all is there. Groups: build, mount (to use a mount), test, ci.

# group   probe                          Debian package
needed_packages='
build     cmd:gcc                        gcc
build     file:/usr/include/stdlib.h     libc6-dev
build     cmd:meson                      meson
build     cmd:ninja                      ninja-build
build     cmd:pkg-config                 pkg-config
build     pc:fuse3                       libfuse3-dev
build     pc:libcbor                     libcbor-dev
mount     cmd:fusermount3                fuse3
mount     cmd:getfattr                   attr
mount     cmd:findmnt                    util-linux
test      cmd:g++                        g++
test      pc:criterion                   libcriterion-dev
test      cmd:python3                    python3
test      numpy                          python3-numpy
test      cmd:setfacl                    acl
test      cmd:mount                      mount
test      cmd:chattr                     e2fsprogs
test      cmd:ps                         procps
test      cmd:perl                       perl
test      cmd:ed                         ed
test      cmd:nano                       nano
test      cmd:rsync                      rsync
test      cmd:jq                         jq
test      file:/usr/lib/python3/dist-packages/numpy/__init__.py python3-numpy
test      cmd:vim|vim.tiny               vim-tiny
test      cmd:zip                        zip
test      cmd:unzip                      unzip
test      cmd:xxd                        xxd
test      cmd:mksquashfs                 squashfs-tools
test      file:/sbin/mkfs.xfs            xfsprogs
test      file:/sbin/mkfs.btrfs          btrfs-progs
test      cmd:mandoc                     mandoc
test      cmd:valgrind                   valgrind
test      cmd:groff                      groff-base
ci        cmd:clang                      clang
ci        clang-sanitizers               libclang-rt-dev
'

probe() {
    local word
    case $1 in
    cmd:*)
        for word in ${1#cmd:}; do
            while [ -n "$word" ]; do
                command -v "${word%%|*}" >/dev/null && return
                case $word in *'|'*) word=${word#*|} ;; *) word= ;; esac
            done
        done
        return 1 ;;
    pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
    file:*) [ -e "${1#file:}" ] ;;
    numpy)
        python3 -c 'import numpy' 2>/dev/null || /usr/bin/python3 -c 'import numpy' 2>/dev/null ;;
    clang-sanitizers)
        echo 'int main(void) { return 0; }' |
            clang -fsanitize=address,undefined -x c - -o /dev/null 2>/dev/null ;;
    esac
}

install_missing() {
    local group what package missing=() as_root=()
    while read -r group what package; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        probe "$what" || missing+=("$package")
    done < <(grep . <<<"$needed_packages")
    [ ${#missing[@]} -eq 0 ] && return

    if ! command -v apt-get >/dev/null; then
        echo "These are missing and there is no apt-get to install them: ${missing[*]}" >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "Please install these packages as root, then try again: ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q </dev/null &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
}
