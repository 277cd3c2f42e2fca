#!/usr/bin/env bash
# What cannot be mounted: exit status, one line on stderr, nothing mounted
# (SEMANTICS, section 1).
. "$(dirname "$0")/lib.sh"

fresh exit

cannot 1 'bogus' 'an unknown option is named' -o bogus "$pack" "$mnt"
cannot 1 'bogus' 'also among others' -o rw,bogus=1,noatime "$pack" "$mnt"
cannot 1 'bogus' 'an unknown long option is named' --bogus "$pack" "$mnt"
cannot 1 'usage|mount ?point' 'no mount point' "$pack"
cannot 1 '.' 'one argument too many' "$pack" "$mnt" "$mnt"
cannot 1 'uid' 'a uid that is no number' -o uid=me "$pack" "$mnt"

touch "$T/file"
cannot 10 'file' 'the mount point is a file' "$pack" "$T/file"
cannot 10 'no/such' 'the mount point cannot be made' "$pack" "$T/no/such/place"

cannot 11 'nothing\.bpk' 'no such pack' "$T/nothing.bpk" "$mnt"
cannot 11 'nothing' 'no such pack without extension' "$T/nothing" "$mnt"
mkfifo "$T/fifo"
cannot 11 'fifo' 'the pack is a pipe' "$T/fifo" "$mnt"
cannot 11 'nothing' 'a mount point is not made for nothing' "$T/nothing" "$T/never"
refused 'and is not there' "$ENOENT" ls "$T/never"
if is_root && setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$BPKFS" 2>/dev/null; then
    chmod 600 "$pack"
    text=$(setpriv --reuid=65534 --regid=65534 --clear-groups "$BPKFS" "$pack" "$mnt" 2>&1)
    is '11: a pack that may not be read' $? 11
    like '11: a pack that may not be read is named' "$text" "exit\.bpk.*$EACCES"
    chmod 644 "$pack"
else
    skip '11: a pack that may not be read' 'needs root'
    skip '11: a pack that may not be read is named' 'needs root'
fi

strange() { printf "$2" >"$T/strange.bpk"; cannot 12 "$3" "$1" "$T/strange.bpk" "$mnt"; }
strange 'an empty file' '' 'empty'
strange 'a zip file' 'PK\003\004\024\0\0\0\0\0aaaaaaaaaaaaaaaaaaaaaaaa' 'zip'
strange 'a gguf file' 'GGUF\003\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' 'gguf'
strange 'a safetensors file' '\020\0\0\0\0\0\0\0{"__metadata__":{}}' 'safetensors'
strange 'a gzip file' '\037\213\010\0\0\0\0\0\0\003aaaaaaaaaaaaaa' 'gzip'
strange 'a text' 'all work and no play makes jack a dull boy\n' 'not a burnpack'

raw() { printf "$1" >"$T/raw.bpk"; }
raw 'NRUB\002\0\001\0\0\0\240'
cannot 13 'version 2' 'a newer version' "$T/raw.bpk" "$mnt"

size=$(stat -c %s "$pack")
head -c "$((size - 1))" "$pack" >"$T/cut.bpk"
cannot 14 "$size.*$((size - 1)).*steps|$((size - 1)).*$size.*steps" 'one byte is missing' "$T/cut.bpk" "$mnt"
head -c 1000000 "$pack" >"$T/cut.bpk"
cannot 14 "$size.*1000000.*big|1000000.*$size.*big" 'half of it is missing' "$T/cut.bpk" "$mnt"
head -c 100 "$pack" >"$T/cut.bpk"
cannot 14 '100' 'the metadata is cut' "$T/cut.bpk" "$mnt"

raw 'NRUB\001\0\001\0\0\0\377'
cannot 15 'byte 10' 'no CBOR' "$T/raw.bpk" "$mnt"
raw 'NRUB\001\0\001\0\0\0\240'
cannot 15 'tensors' 'no tensors' "$T/raw.bpk" "$mnt"
raw 'NRUB\001\0\001\0\100\006'
cannot 16 'metadata' 'metadata over 100 MiB' "$T/raw.bpk" "$mnt"

# A second writer.
mounted 'a first writer' -o rw "$pack" "$mnt"
cannot 20 "${pids[$mnt]}" 'a second writer is refused and told by whom' -o rw "$pack" "$T/second"
ln -s exit.bpk "$T/alias.bpk"
cannot 20 "${pids[$mnt]}" 'also by another name' -o rw "$T/alias.bpk" "$T/second"
mounted 'a reader beside a writer' "$pack" "$T/reader"
unmount 'the reader goes' "$T/reader"
is 'the writer goes on' "$(cat "$mnt/scalars/x")" 0.25
unmount 'the writer goes' "$mnt"
mounted 'and another may come' -o rw "$pack" "$mnt"
unmount 'it goes' "$mnt"

if is_root && tmpfs "$T/ro"; then
    cp "$T/base.bpk" "$T/ro/p.bpk"
    mount -o remount,ro "$T/ro"
    cannot 21 'ro|read-only' 'a folder that cannot be written' -o rw "$T/ro/p.bpk" "$mnt"
    cannot 21 'p.bpk.*read-only' 'nor where edits could lie elsewhere' \
        -o "rw,staging=$T" "$T/ro/p.bpk" "$mnt"
    mounted 'which can be read' "$T/ro/p.bpk" "$mnt"
    unmount 'and unmounted' "$mnt"
else
    skip '21: a folder that cannot be written' 'needs root'
fi

# --unmount of what is no mount.
text=$("$BPKFS" --unmount "$mnt" 2>&1)
is '10: --unmount where nothing is mounted' "$? $(wc -l <<<"$text")" '10 1'
text=$("$BPKFS" --unmount "$T/nothing" 2>&1)
is '10: --unmount where nothing is' "$? $(wc -l <<<"$text")" '10 1'
text=$("$BPKFS" --unmount /proc 2>&1)
is '10: --unmount of another file system' "$? $(wc -l <<<"$text")" '10 1'
ok 'which stays' is_mounted /proc

is 'no pack was touched' "$(sum "$pack")" "$(sum "$T/base.bpk")"
is 'nothing is left beside the packs' "$(find "$T" -name '.*' ! -path "$T")" ''
done_testing
