#!/usr/bin/env bash
# Tools that know nothing of burnpack: each gives on a mount what it gives on a local
# copy of the same tree, which the oracle makes and not the mount (SEMANTICS, section
# 2, Attributes and xattrs; section 3).
. "$(dirname "$0")/lib.sh"

have() { command -v "$1" >/dev/null; }
# The sections alone: views of the whole pack have tests of their own.
sections='tensors scalars metadata'

fresh tools
chmod 640 "$pack"
touch -d @1700000000.123456789 "$pack"
touch -d @1700000000.123456788 "$T/older"
touch -d @1700000000.123456789 "$T/same-age"
mkdir "$T/copy"
oracle copy "$pack" "$T/copy"
mounted 'a pack mounts' "$pack" "$mnt"

# On the mount and on the copy alike ------------------------------------------------

# both NAME COMMAND: the same output, some of it, and the same status in both trees.
both() {
    local want got
    want=$(cd "$T/copy" && bash -c "$2" 2>&1; echo "status $?")
    got=$(cd "$mnt" && bash -c "$2" 2>&1; echo "status $?")
    if [ "$(wc -l <<<"$want")" -lt 2 ]; then
        fail "$1" 'no output to compare'
    else
        is "$1" "$got" "$want"
    fi
}
cat >"$T/walk.py" <<'PYTHON'
import array, os, sys
for section in sys.argv[1:]:
    for folder, folders, files in os.walk(section):
        print(folder, sorted(folders), sorted(files))
        for entry in os.scandir(folder):
            print(entry.path, entry.is_dir(), entry.is_file(), entry.is_symlink(),
                  [os.access(entry.path, mode) for mode in (os.F_OK, os.R_OK, os.X_OK)])
floats = array.array("f")
with open("tensors/encoder/layer1/weight", "rb") as file:
    floats.fromfile(file, 12)
print(floats)
PYTHON
export T sections PYTHON
while IFS='|' read -r name command; do
    case $name in
    '' | '# '*) continue ;;
    '['*)
        tool=${name%%]*} tool=${tool#[} name=${name#*] }
        if ! have "$tool"; then
            skip "as on a copy: $name" "no $tool"
            continue
        fi ;;
    esac
    both "as on a copy: $name" "${command//¦/|}"
done <<'ROWS'
find|find $sections ¦ sort
find -printf, files|find $sections -type f -printf '%p %y %s %m %n %T@ %U:%G\n' ¦ sort
find -printf, folders|find $sections -type d -printf '%p %y %m %T@ %U:%G\n' ¦ sort
find by size|find $sections -type f -size +2M -o -type f -size -16c ¦ sort
find by mode|find $sections -type f -perm -440 ! -perm /333 ¦ sort
find -empty|find $sections -type f -empty
find -newer|find $sections -newer $T/older ¦ sort; find $sections -newer $T/same-age; echo .
perl, counting links|perl -MFile::Find -e '$File::Find::dont_use_nlink = 0; find(sub { print "$File::Find::name\n" if -f }, @ARGV)' $sections ¦ sort
ls -lR|ls -lR --full-time $sections ¦ grep -v -e '^d' -e '^total' ¦ tr -s ' '
globs|shopt -s globstar; for s in $sections; do printf '%s\n' $s/* $s/*/*t* $s/**; done
stat|find $sections -type f ¦ sort ¦ xargs stat -c '%n %A %F %s %h %u %g %y'
test|for f in $(find $sections); do for t in e f d r x h; do test -$t $f; printf %s $?; done; test $f -nt $T/older; echo $? $f; done ¦ sort -k 2
test -s|for f in $(find $sections -type f ¦ sort); do test -s $f; echo $? $f; done
readlink -f|cd tensors/encoder; realpath --relative-to=../.. layer1/../../head/scale
cat|cat scalars/lr scalars/opt/time metadata/note.txt
wc|wc -c $(find $sections -type f ¦ sort)
sha256sum|sha256sum $(find $sections -type f ¦ sort)
md5sum|md5sum $(find $sections -type f ¦ sort)
du -b|du -ab $(find $sections -type f ¦ sort)
head -c|for n in 1 4095 4096 4097 131073 2999999 3000001; do head -c $n tensors/big ¦ md5sum; done
tail -c|for n in 1 4096 131073 3000000 3000001; do tail -c $n tensors/big ¦ md5sum; done
tail -c +N|tail -c +2999990 tensors/big ¦ od
tail -n|tail -n 1 metadata/note.txt
dd|dd if=tensors/big bs=1 skip=1048575 count=3 status=none ¦ od
dd in odd blocks|dd if=tensors/big bs=4097 status=none ¦ md5sum
dd beyond the end|dd if=tensors/big bs=3000000 skip=2 2>/dev/null ¦ wc -c
od|od -A d -t f4 tensors/encoder/layer1/weight
od -j|od -A x -t x1 -j 2999990 tensors/big
[xxd] xxd|xxd tensors/encoder/layer1/bias
[xxd] xxd -s|xxd -s -20 tensors/big; xxd -s 1000000 -l 32 tensors/big
cmp of two|cmp tensors/big tensors/steps
grep -r|grep -r . scalars metadata ¦ sort
grep -rl|grep -rl e metadata scalars ¦ sort
grep -rc|grep -arc e $sections ¦ sort
grep in a tensor|grep -c . -a tensors/big; LC_ALL=C grep -obUaP '\x03"Aa' tensors/big ¦ head -3
awk|awk '{ s += $1 } END { print s }' scalars/lr scalars/x scalars/opt/time
diff of two files|diff scalars/lr scalars/x
tar, every byte|tar -c --format=gnu --sort=name $sections ¦ sha256sum
tar --sparse|tar -c --format=gnu --sort=name --sparse $sections ¦ sha256sum
tar --posix|tar -c --format=posix --sort=name --pax-option=exthdr.name=%f,delete=atime,delete=ctime $sections ¦ sha256sum
[zip] zip|find $sections ¦ sort ¦ zip -q -X -@ - ¦ sha256sum
gzip|gzip -c -n tensors/big ¦ sha256sum
python|$PYTHON $T/walk.py $sections ¦ sort
ROWS

# Copies ---------------------------------------------------------------------------

# All that a copy can carry: names, types, modes, times, owners, bytes, attributes.
manifest() { # FOLDER [CARRIED]: "xattrs", "all" but attributes, "bytes" (and names)
    cd "$1" || return
    if [ "${2:-}" = bytes ]; then
        find $sections -printf '%p %y\n' | sort
    else
        find $sections \( -type f -printf '%p %y %s %m %T@ %U:%G\n' \) -o \
            -printf '%p %y %m %T@ %U:%G\n' | sort
    fi
    find $sections -type f -print0 | sort -z | xargs -0 sha256sum
    if [ "${2:-}" = xattrs ]; then
        find $sections -type f -print0 | sort -z | xargs -0 getfattr -d -m '^user'
    fi
    cd / || return
}
attributes=
if setfattr -n user.probe -v 1 "$T/older" 2>/dev/null; then attributes=xattrs; fi
declare -A wanted=([xattrs]=$(manifest "$T/copy" xattrs) [all]=$(manifest "$T/copy") \
    [bytes]=$(manifest "$T/copy" bytes))
is 'the copy is not an empty one' "$(wc -l <<<"${wanted[bytes]}")" \
    "$(($(cd "$mnt" && find $sections | wc -l) + $(oracle tree "$pack" | wc -l)))"

# copies WHAT-IS-CARRIED NAME COMMAND: run in the mount, it makes $out.
copies() {
    export out=$T/out
    local text
    if [ "$1" = xattrs ] && [ -z "$attributes" ]; then
        skip "copy: $2" 'no extended attributes in the temporary folder'
        return
    fi
    mkdir -p "$out"
    if text=$(cd "$mnt" && bash -e -o pipefail -c "$3" 2>&1) && [ -z "$text" ]; then
        is "copy: $2" "$(manifest "$out" "$1")" "${wanted[$1]}"
    else
        fail "copy: $2" "$text"
    fi
    chmod -R u+w "$out"
    rm -rf "$out"
}
copies all 'tar' 'tar -c --format=posix $sections | tar -xp -C $out'
copies all 'tar --sparse' 'tar -cS --format=posix $sections | tar -xp -C $out'
if is_root; then
    copies xattrs 'tar --xattrs' 'tar -c --xattrs $sections | tar -xp --xattrs -C $out'
else
    skip 'copy: tar --xattrs' 'only for root tar puts attributes on files that are read-only'
fi
copies xattrs 'cp -a' 'cp -a $sections $out'
copies xattrs 'cp -a --reflink=auto' 'cp -a --reflink=auto $sections $out'
copies bytes 'cp --sparse=always' 'cp -r --sparse=always --reflink=never $sections $out'
copies bytes 'dd iflag=direct' 'cp -r $sections $out; chmod -R u+w $out
    dd if=tensors/big iflag=direct bs=1M of=$out/tensors/big status=none'
copies all 'shutil.copytree' '$PYTHON -c "
import os, shutil
for section in os.environ[\"sections\"].split():
    shutil.copytree(section, os.environ[\"out\"] + \"/\" + section)"'
if have zip && have unzip; then
    # It keeps times to two seconds.
    copies bytes 'zip and unzip' \
        'zip -q -r - $sections >$out.zip; unzip -q $out.zip -d $out; rm $out.zip'
else
    skip 'copy: zip and unzip' 'no zip'
fi
if have rsync; then
    copies xattrs 'rsync -aX, and nothing left for a second run' \
        'rsync -aX $sections $out; rsync -aXi $sections $out'
    copies xattrs 'rsync -acX has nothing to do over the copy' \
        'cp -a $T/copy/. $out; rsync -acXi --delete $sections $out'
else
    skip 'copy: rsync -aX, and nothing left for a second run' 'no rsync'
    skip 'copy: rsync -acX has nothing to do over the copy' 'no rsync'
fi
is 'sha256sum -c' "$(cd "$T/copy" && find $sections -type f -exec sha256sum {} + >"$T/sums" &&
    cd "$mnt" && sha256sum -c "$T/sums" | grep -vc ': OK$')" 0
is 'diff -r of the mount and the copy' \
    "$(for s in $sections; do diff -r "$mnt/$s" "$T/copy/$s"; done; echo "status $?")" 'status 0'
mkdir "$T/second"
mounted 'the pack mounts again' "$pack" "$T/second"
is 'diff -r of two mounts' \
    "$(diff -r --exclude=.bpkfs "$mnt" "$T/second"; echo "status $?")" 'status 0'
unmount 'and unmounts' "$T/second"

# Attributes that a local copy has otherwise ----------------------------------------

is 'st_blocks is the size in blocks of 512, a folder has none' \
    "$(cd "$mnt" && find $sections -printf '%p %b\n' | sort)" \
    "$(cd "$T/copy" && find $sections -printf '%p %y %s\n' | sort |
        while read -r path type size; do
            [ "$type" = f ] || size=0
            echo "$path $(((size + 511) / 512))"
        done)"
is 'tensors like to be read in MiB' \
    "$(find "$mnt/tensors" -type f -exec stat -c %o {} + | uniq)" 1048576
read -r bytes blocks < <(oracle tree "$pack" | awk -F '\t' '
    { bytes += $2; blocks += int(($2 + 511) / 512) } END { print bytes, blocks }')
is 'du -b is the sum of the sizes' \
    "$(cd "$mnt" && du -bc $sections | tail -1 | cut -f1)" "$bytes"
is 'du is the sum of the blocks' \
    "$(cd "$mnt" && du -c -B512 $sections | tail -1 | cut -f1)" "$blocks"
is 'every file of the mount has a time' "$(find "$mnt" ! -newer "$T/older")" ''
size=$(stat -c %s "$pack")
is 'df: the size of the pack, all of it used' \
    "$(df --output=size,used,avail,pcent,file -B512 "$mnt" | tail -1 | tr -s ' ')" \
    " $(((size + 511) / 512)) $(((size + 511) / 512)) 0 100% $mnt"
is 'stat -f: names of 255 bytes' "$(stat -f -c %l "$mnt")" 255
is 'the mount says that it is read-only' \
    "$(findmnt -n -o OPTIONS -M "$mnt" | grep -c '^ro,')" 1

# Inode numbers.
inodes() { (cd "$mnt" && find . -printf '%i %p\n' | sort -k 2); }
before=$(inodes)
is 'inode numbers are all distinct' "$(cut -d' ' -f1 <<<"$before" | sort | uniq -d)" ''
is 'ls -i and readdir say the same as stat' \
    "$(cd "$mnt" && "$PYTHON" -c '
import os
for folder, names, files in os.walk("."):
    for entry in os.scandir(folder):
        if entry.inode() != os.lstat(entry.path).st_ino:
            print(entry.path)
')" ''
dotted() { (cd "$mnt" && stat -c %i scalars/opt.time tensors/encoder.layer1.weight \
    tensors/encoder/layer1.weight tensors/head.%self tensors/head.scale | tr '\n' ' '); }
aliases=$(cd "$mnt" && stat -c %i scalars/opt/time tensors/encoder/layer1/weight \
    tensors/encoder/layer1/weight tensors/head/scale | tr '\n' ' ')
if is_root && { echo 2 >/proc/sys/vm/drop_caches; } 2>/dev/null; then
    is 'inode numbers outlive what the kernel forgets' "$(inodes)" "$before"
    echo 2 >/proc/sys/vm/drop_caches
else
    skip 'inode numbers outlive what the kernel forgets' 'needs root'
fi
is 'dotted spellings are the same files' "$(dotted 2>/dev/null)" "$aliases"
is 'also when they come first' "$(inodes)" "$before"

# Ways to read ----------------------------------------------------------------------

ok 'system calls' "$PYTHON" - "$mnt" "$T/copy" "$T/scratch" <<'PYTHON'
import errno, fcntl, mmap, os, sys
mounted, plain, scratch = sys.argv[1:]
want = open(plain + "/tensors/big", "rb").read()
size = len(want)
fd = os.open(mounted + "/tensors/big", os.O_RDONLY)

def fails(number, call, *args):
    try:
        call(*args)
    except OSError as error:
        assert error.errno == number, (call, args, error)
    else:
        raise AssertionError((call, args, "did not fail"))

# One after the other and from anywhere.
assert os.read(fd, 100) == want[:100] and os.read(fd, 100) == want[100:200]
assert os.lseek(fd, -7, os.SEEK_END) == size - 7 and os.read(fd, 100) == want[-7:]
assert os.read(fd, 100) == b""
for at in (0, 1, 4095, 131071, 1 << 20, size - 1, size, size + 1, 1 << 40):
    assert os.pread(fd, 4097, at) == want[at:at + 4097], at
fails(errno.EINVAL, os.lseek, fd, -1, os.SEEK_SET)
buffers = [bytearray(3), bytearray(5000), bytearray(2)]
assert os.preadv(fd, buffers, 999) == 5005 and b"".join(buffers) == want[999:6004]

# Holes: one file has none, but the one at the end.
assert os.lseek(fd, 0, os.SEEK_HOLE) == size and os.lseek(fd, 5, os.SEEK_DATA) == 5
fails(errno.ENXIO, os.lseek, fd, size, os.SEEK_DATA)

# Mappings.
for name in ("tensors/big", "tensors/steps", "scalars/lr", "metadata/note.txt"):
    text = open(f"{plain}/{name}", "rb").read()
    with open(f"{mounted}/{name}", "rb") as file:
        for flags in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            with mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ) as view:
                assert view[:] == text, (name, flags)
with mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as view:
    view[5] = view[5] ^ 255
    assert os.pread(fd, 10, 0) == want[:10]
fails(errno.EACCES, lambda: mmap.mmap(fd, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_WRITE))

# Past the page cache.
direct = os.open(mounted + "/tensors/big", os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 1 << 20)
got = b""
while True:
    count = os.preadv(direct, [page], len(got))
    if not count:
        break
    got += page[:count]
assert got == want
with open(mounted + "/scalars/lr", "rb", opener=lambda p, f: os.open(p, f | os.O_DIRECT)) as file:
    assert os.preadv(file.fileno(), [page], 0) == 6 and page[:6] == b"0.001\n"

# In the kernel. Between two file systems Linux refuses copy_file_range() (so cp, which
# tries, reads and writes); sendfile() and splice() go.
out = os.open(scratch, os.O_RDWR | os.O_CREAT, 0o600)
fails(errno.EXDEV, os.copy_file_range, fd, out, size, 0, 0)
at = 0
while at < size:
    at += os.sendfile(out, fd, at, 1 << 20)
assert os.pread(out, size + 1, 0) == want
ends = os.pipe()
assert os.splice(fd, ends[1], 1000, offset_src=5) == 1000
assert os.read(ends[0], 2000) == want[5:1005]
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED)
assert os.pread(fd, 9999, 777) == want[777:10776]

# Locks.
other = os.open(mounted + "/tensors/big", os.O_RDONLY)
fcntl.flock(fd, fcntl.LOCK_EX)
fails(errno.EWOULDBLOCK, fcntl.flock, other, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.flock(fd, fcntl.LOCK_UN)
fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)

# Ways to open.
for flags in (os.O_NOATIME, os.O_PATH, os.O_SYNC, os.O_NONBLOCK, os.O_CLOEXEC | os.O_NOFOLLOW):
    os.close(os.open(mounted + "/tensors/big", flags))
fails(errno.ENOTDIR, os.open, mounted + "/tensors/big", os.O_DIRECTORY)
fails(errno.ENOTDIR, os.stat, mounted + "/tensors/big/x")
fails(errno.EISDIR, lambda: os.read(os.open(mounted + "/tensors", os.O_RDONLY), 1))
for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
    fails(errno.EROFS, os.open, mounted + "/tensors/big", flags)
fails(errno.EROFS, os.open, mounted + "/tensors/new", os.O_WRONLY | os.O_CREAT)
os.fsync(fd)
os.fsync(os.open(mounted + "/tensors", os.O_RDONLY))
assert os.access(mounted + "/scalars/lr", os.R_OK)
assert not os.access(mounted + "/scalars/lr", os.W_OK)
PYTHON
ok 'flock' flock -n "$mnt/tensors/big" true
refused 'flock, taken' '^$' flock "$mnt/tensors/big" flock -n "$mnt/tensors/big" true
refused 'mv out of a read-only mount' "$EROFS" mv "$mnt/tensors/steps" "$T/moved"
ok 'leaves what it moves' cmp "$mnt/tensors/steps" "$T/copy/tensors/steps"
rm -f "$T/moved"
unmount 'the pack unmounts' "$mnt"

# Every dtype has its text, and every attribute is what the pack says.
for name in 03_all_dtypes 04_quantized 05_scalars; do
    if [ -z "$attributes" ]; then
        skip "attributes of $name" 'no extended attributes in the temporary folder'
        continue
    fi
    mkdir "$T/$name"
    cp "$golden/$name.bpk" "$T/$name.bpk"
    oracle copy "$T/$name.bpk" "$T/$name"
    mounted "attributes of $name: mount" "$T/$name.bpk" "$mnt"
    want=$(manifest "$T/$name" xattrs)
    is "attributes of $name" "$(manifest "$mnt" xattrs)" "$want"
    like "attributes of $name are there" "$want" '^user\.bpk\.(dtype|type)='
    unmount "attributes of $name: unmount" "$mnt"
done

# A writable mount ---------------------------------------------------------------------

if is_root && tmpfs "$T/disk" size=8m; then
    cp "$T/base.bpk" "$T/disk/p.bpk"
    mounted 'a pack on a small disk' -o rw "$T/disk/p.bpk" "$mnt"
    is 'df: the size of the pack, and what is free beside it' \
        "$(df --output=size,avail -B1 "$mnt" | tail -1 | tr -s ' ')" \
        " $(((size + 511) / 512 * 512)) $(df --output=avail -B1 "$T/disk" | tail -1 | tr -d ' ')"
    ok 'more goes to the disk' dd if=/dev/zero of="$T/disk/filler" bs=1M count=1 status=none
    is 'df: and less is free' "$(df --output=avail -B1 "$mnt" | tail -1)" \
        "$(df --output=avail -B1 "$T/disk" | tail -1)"
    unmount 'the pack on a small disk unmounts' "$mnt"
else
    skip 'df of a writable mount' 'needs root'
fi

fresh move
mounted 'a writable mount' -o rw "$pack" "$mnt"
is 'diff -r of a writable mount and the copy' \
    "$(for s in $sections; do diff -r "$mnt/$s" "$T/copy/$s"; done; echo "status $?")" 'status 0'
ok 'mv out of the mount' mv "$mnt/tensors/steps" "$T/moved"
ok 'moves the bytes' cmp "$T/moved" "$T/copy/tensors/steps"
refused 'and takes them away' "$ENOENT" stat "$mnt/tensors/steps"
ok 'mv of a folder out of the mount' mv "$mnt/tensors/encoder" "$T/folder"
is 'moves all of it' "$(diff -r "$T/folder" "$T/copy/tensors/encoder"; echo $?)" 0
refused 'and takes it away' "$ENOENT" stat "$mnt/tensors/encoder"
ok 'copy_file_range() within the mount' "$PYTHON" - "$mnt" <<'PYTHON'
import os, sys
os.chdir(sys.argv[1] + "/tensors")
source = os.open("big", os.O_RDONLY)
target = os.open("other", os.O_RDWR | os.O_CREAT)
at = 0
while at < 3000000:
    done = os.copy_file_range(source, target, 3000000 - at, at, at)
    assert done > 0
    at += done
os.close(target)
assert open("other", "rb").read() == open("big", "rb").read()
PYTHON
unmount 'moved: commit' "$mnt"
is 'moved: what differs' "$(oracle differ "$T/base.bpk" "$pack")" '- tensors encoder.layer1.bias
- tensors encoder.layer1.weight
- tensors encoder.layer2.weight
+ tensors other
- tensors steps'

# Who may read --------------------------------------------------------------------------

if is_root; then
    # What each user may do, a line for each mount: read, write, search by access(2), and
    # a read itself; in the root of the mount, on a tensor and on a scalar in a folder.
    cat >"$T/may.py" <<'PYTHON'
import os, sys
os.chdir("/")
def may(path):
    try:
        folder = os.path.isdir(path) or os.stat(path) is None
        text = "".join(letter if os.access(path, mode) else "-" for letter, mode in
                       (("r", os.R_OK), ("w", os.W_OK), ("x", os.X_OK)))
        if not folder:
            open(path, "rb").read(1)
            text += " reads"
        return text
    except OSError as error:
        return error.strerror
uid, gid = map(int, sys.argv[1].split(":"))
os.setgroups([])
os.setresgid(gid, gid, gid)
os.setresuid(uid, uid, uid)
for mount in sys.argv[2:]:
    print(*(may(mount + name) for name in ("", "/tensors/big", "/scalars/opt/time")), sep="; ")
PYTHON
    none='Permission denied; Permission denied; Permission denied'
    shut='---; Permission denied; Permission denied'
    open='r-x; r-- reads; r-- reads'
    # Nothing can be made in the root of the mount: only root's access(2) says otherwise.
    edit='r-x; rw- reads; rw- reads'
    full='rwx; rw- reads; rw- reads'
    may=() # mount point, and what owner, root, group, others may
    while read -r mode options owner root group other; do
        pack=$T/may-$mode-$options.bpk
        cp "$T/base.bpk" "$pack"
        chown 1234:4321 "$pack"
        chmod "$mode" "$pack"
        mounted "mode $mode, $options: mount" -o "$options" "$pack" "${pack%.bpk}"
        may+=("${pack%.bpk}")
        wanted[${pack%.bpk}]="${!owner}
${!root}
${!group}
${!other}"
    done <<'ROWS'
600 ro none open none none
644 ro none open none none
600 ro,allow_other open open shut shut
640 ro,allow_other open open open shut
644 ro,allow_other open open open open
600 rw,allow_other edit full shut shut
644 rw,allow_other edit full open open
664 rw,allow_other edit full edit open
ROWS
    for user in 1234:65534 0:0 65534:4321 65534:65534; do
        "$PYTHON" -I "$T/may.py" "$user" "${may[@]}" >"$T/may.$user"
    done
    paste -d '\n' "$T/may.1234:65534" "$T/may.0:0" "$T/may.65534:4321" "$T/may.65534:65534" >"$T/may"
    number=0
    for at in "${may[@]}"; do
        is "${at##*/}: owner, root, group and others" \
            "$(sed -n "$((number * 4 + 1)),$((number * 4 + 4))p" "$T/may")" "${wanted[$at]}"
        number=$((number + 1))
        unmount "${at##*/}: unmount" "$at"
    done
else
    skip 'who may read' 'needs root'
fi

is 'nothing is left beside the packs' "$(find "$T" -maxdepth 1 -name '.*' ! -path "$T")" ''
done_testing
