#!/bin/sh
# Build the libFuzzer programs with clang, address and undefined sanitizers:
#
#	tests/fuzz/build.sh [FOLDER]		(default: build-fuzz)
#
# then for example
#
#	build-fuzz/fuzz_reader -max_total_time=600 FOLDER tests/fuzz/corpus/reader \
#		tests/data/vectors/golden tests/data/vectors/malformed
#
# FOLDER takes what it finds; what is worth keeping goes to the corpus, and a
# finding becomes a named vector. Needs only clang and libcbor.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$root/build-fuzz}
clang=${CLANG:-clang}
mkdir -p "$out"
out=$(cd "$out" && pwd)

# Everything that works on memory alone: no target needs a file.
sources=$(cd "$root/libbpk" && ls ./*.c ./convert/*.c | grep -v -e '/io\.c$' -e '/file\.c$')

for target in "$root"/tests/fuzz/fuzz_*.c; do
	name=$(basename "$target" .c)
	(cd "$root/libbpk" && "$clang" -std=gnu17 -g -O1 -D_GNU_SOURCE -DBPK_BUILD \
		'-DBPK_PROJECT_VERSION="fuzz"' -I. -fno-omit-frame-pointer \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		$sources "$target" $(pkg-config --cflags --libs libcbor) -o "$out/$name")
	echo "$out/$name"
done
