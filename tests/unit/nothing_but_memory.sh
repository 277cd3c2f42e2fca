#!/bin/sh
# Everything of libbpk but what handles files works on memory alone: it may ask the C
# library for no more than what is listed here, and a program made of it has no call
# left that touches a file.
#
#	nothing_but_memory.sh ARCHIVE PROGRAM
#
# ARCHIVE is the memory half as a static library, PROGRAM is linked with it.
set -eu
LC_ALL=C
export LC_ALL
archive=$1
program=$2

allowed='^(malloc|calloc|realloc|reallocarray|free|qsort|bsearch|tsearch|tfind|tdestroy|twalk
|mem(cpy|move|set|cmp|chr)|bcmp|str(len|cmp|ncmp|chr|rchr|cpy)|strerror_r|__xpg_strerror_r
|v?snprintf|__[a-z_]*_chk|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__errno_location
|cbor_[a-z0-9_]*|__(asan|ubsan|sanitizer|lsan|gcov|llvm)_.*|__(start|stop)___sancov.*)$'
allowed=$(printf %s "$allowed" | tr -d '\n')

symbols() {
	sed 's/@.*//' | sort -u
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
nm --defined-only "$archive" | awk 'NF == 3 { print $3 }' | symbols >"$scratch/defined"
nm -u "$archive" | awk '$1 == "U" || $1 == "w" { print $2 }' | symbols >"$scratch/undefined"
grep -q '^bpk_reader_open_buffer$' "$scratch/defined" || {
	echo "$archive: no bpk_reader_open_buffer, is this the memory half?"
	exit 1
}
if comm -13 "$scratch/defined" "$scratch/undefined" | grep -Ev "$allowed"; then
	echo "$archive: the memory half asks for what is listed above"
	exit 1
fi

# A sanitizer's own runtime uses files: then only the archive was looked at.
[ "${BPK_TEST_SANITIZED:-}" = 1 ] && exit 0
files='^_*(open|openat|creat|read|readv|pread|preadv|write|writev|pwrite|pwritev|lseek
|mmap|munmap|mremap|msync|rename|renameat|renameat2|fsync|fdatasync|sync|syncfs
|f?truncate|unlink|unlinkat|remove|link|linkat|symlink|readlink|readlinkat|realpath
|stat|lstat|fstat|fstatat|statx|f?statfs|f?statvfs|f?x?stat|access|faccessat|close|dup
|dup2|dup3|fcntl|ioctl|sendfile|copy_file_range|fallocate|posix_fallocate|f?chmod|f?chown
|mkdir|mkdirat|rmdir|opendir|readdir|closedir|[fl]?(get|set|list|remove)xattr|mkstemp
|mkdtemp|tmpfile|f?open|freopen|fdopen|fclose|fread|fwrite|fflush|fseek|ftell|v?f?printf
|v?dprintf|f?puts|f?putc|putchar|f?gets|getline|f?scanf|perror|syscall)(64)?(_chk)?$'
files=$(printf %s "$files" | tr -d '\n')
nm -u "$program" | awk '{ print $2 }' | symbols >"$scratch/program"
if grep -E "$files" "$scratch/program"; then
	echo "$program: file-system calls are left, see above"
	exit 1
fi
