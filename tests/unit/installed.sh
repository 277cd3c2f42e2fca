#!/bin/sh
# What `meson install` puts somewhere is enough for programs: each public header alone, in
# C and C++, a program with the flags of pkg-config, and the static library where there is
# one.
#
#	installed.sh MESON BUILD SOURCE
set -eu
meson=$1
build=$2
source=$3

# A program would need the sanitizer, too.
[ "${BPK_TEST_SANITIZED:-}" != 1 ] || exit 77
for tool in "$meson" pkg-config cc; do
	command -v "$tool" >/dev/null || { echo "no $tool"; exit 77; }
done

T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
"$meson" install -C "$build" --no-rebuild --destdir "$T/root" >"$T/log" 2>&1 || {
	cat "$T/log"
	exit 1
}
pc=$(find "$T/root" -name libbpk.pc)
export PKG_CONFIG_SYSROOT_DIR="$T/root"
PKG_CONFIG_PATH=$(dirname "$pc")${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export PKG_CONFIG_PATH
cflags=$(pkg-config --cflags libbpk)
libs=$(pkg-config --libs libbpk)
LD_LIBRARY_PATH=$(dirname "$(find "$T/root" -name libbpk.so)")
export LD_LIBRARY_PATH
strict='-Wall -Wextra -Wpedantic -Werror'
cxx=
! command -v c++ >/dev/null || cxx=c++

cd "$T"
# The flags are words.
# shellcheck disable=SC2046,SC2086
{
	for header in bpk.h bpk_record.h; do
		echo "#include <$header>" >header.c
		cp header.c header.cpp
		cc -std=c11 $strict -Wc++-compat $cflags -c header.c
		[ -z "$cxx" ] || $cxx -std=c++11 $strict $cflags -c header.cpp
	done
	cat >program.c <<-'END'
		#include <bpk_record.h>
		#include <stdio.h>
		#include <stdlib.h>

		int main(void)
		{
			struct bpk_error error;
			struct bpk_record *record, *again;
			uint64_t step = 0, size;
			void *pack;

			if (bpk_record_new(&record) < 0 ||
			    bpk_scheduler_set_u64(record, "step", 7, &error) < 0 ||
			    bpk_record_into_bytes(record, &pack, &size, &error) < 0 ||
			    bpk_record_from_bytes(pack, (size_t)size, NULL, &again, &error) < 0 ||
			    bpk_scheduler_get_u64(again, "step", &step, &error) < 0)
				return 1;
			bpk_record_free(again);
			bpk_record_free(record);
			free(pack);
			printf("%s %d\n", bpk_version(), (int)step);
			return 0;
		}
	END
	want="$(pkg-config --modversion libbpk) 7"
	cc -std=c11 $strict $cflags program.c $libs -o program
	got=$(./program)
	[ "$got" = "$want" ] || { echo "said $got, not $want"; exit 1; }
	if [ -n "$cxx" ]; then
		$cxx -std=c++11 $strict $cflags "$source/tests/unit/cplusplus.cpp" $libs -o cplusplus
		./cplusplus
	fi
	if [ -n "$(find "$T/root" -name libbpk.a)" ]; then
		find "$T/root" -name 'libbpk.so*' -delete
		# libcbor's own paths are not below the root.
		cc -std=c11 $strict $cflags program.c $libs \
			$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --libs libcbor) -pthread -o static
		[ "$(./static)" = "$want" ]
		case " $(pkg-config --static --libs libbpk) " in
		*' -lcbor '*) ;;
		*) echo 'libbpk.pc does not say that the static library needs libcbor'; exit 1 ;;
		esac
	fi
}
