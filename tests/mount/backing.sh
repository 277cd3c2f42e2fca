#!/usr/bin/env bash
# What lies under a mount: a pack that is truncated, replaced, removed or overwritten
# while it is mounted costs its readers an error at the most, never the daemon and never
# a wrong byte. Nor does a file system whose own daemon hangs or dies (SEMANTICS, sections
# 3 and 4).
. "$(dirname "$0")/lib.sh"

EIO='input/output error'
tree=$(oracle tree "$T/base.bpk")

# The sample with scalars/x 0.5, as a commit must make it.
sed 's/"x": {"Float": 0.25}/"x": {"Float": 0.5}/' "$here/base.json" >"$T/want.json"
oracle make "$T/want.json" "$T/want.bpk"

# Damage ----------------------------------------------------------------------------

# damage.py SUPPORT BASE: the names of all damage.
# damage.py SUPPORT BASE MOUNT: every line of stdin is "label|mount|pack|damage"; do the
# damage, and say what a reader then gets that it must not get. A reader may have opened or
# mapped a file before or after. What the pack has not got any more is an error; everything
# else is there. MOUNT is of BASE, and left alone.
cat >"$T/damage.py" <<'PYTHON'
import errno, json, mmap, os, resource, signal, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import oracle

PAGE = mmap.PAGESIZE
base = oracle.Pack(sys.argv[2])
old = base.data
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

def write(pack, off, data):
    with open(pack, "r+b") as file:
        file.seek(off)
        file.write(data)

def replace(pack):
    with open(pack + ".new", "wb") as file:
        file.write(bytes(len(old)))
    os.rename(pack + ".new", pack)

DAMAGES = {
    "truncated to nothing": lambda pack: os.truncate(pack, 0),
    "truncated in the metadata": lambda pack: os.truncate(pack, 100),
    "truncated in a tensor, at a page": lambda pack: os.truncate(pack, PAGE * 300),
    "truncated in a page": lambda pack: os.truncate(pack, PAGE * 300 + 1234),
    "truncated by a byte": lambda pack: os.truncate(pack, len(old) - 1),
    "grown": lambda pack: write(pack, len(old), bytes(100000)),
    "replaced": replace,
    "removed": os.unlink,
    "tensors overwritten": lambda pack: write(
        pack, base.data_off, bytes(255 - byte for byte in old[base.data_off:])),
    "all overwritten": lambda pack: write(pack, 0, bytes(len(old))),
    "of mode 000": lambda pack: os.chmod(pack, 0),
}

class File:
    """A file of a mount: what stands in front, then parts of the pack."""
    def __init__(self, mount, path, parts, head=b"", mapped=False):
        self.path, self.parts, self.head = os.path.join(mount, path), parts, head
        self.size = len(head) + sum(size for _, size in parts)
        self.early = os.open(self.path, os.O_RDONLY)
        self.maps = []
        self.mapped = mapped
        if mapped:
            self.map(mmap.MAP_SHARED)

    def map(self, flags):
        with open(self.path, "rb") as file:
            self.maps.append(mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ))

    def there(self, now):
        """Its bytes when the pack is @now, and a mask: 0 where one is missing."""
        data, mask = self.head, b"\1" * len(self.head)
        for off, size in self.parts:
            left = now[off:off + size]
            data += left + bytes(size - len(left))
            mask += b"\1" * len(left) + bytes(size - len(left))
        return data, mask

    def judge(self, there, at, asked, got):
        """What reading @asked bytes at @at gave."""
        data, mask = there
        asked = min(asked, self.size - at)
        if got != data[at:at + asked][:len(got)] or 0 in mask[at:at + len(got)]:
            return f"{self.path}: wrong bytes at {at}"
        pages = mask[at // PAGE * PAGE:-(-(at + asked) // PAGE) * PAGE]
        if len(got) < asked and 0 not in pages:
            return f"{self.path}: {len(got)} of {asked} bytes at {at}"

    def reads(self, there):
        direct = os.open(self.path, os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, PAGE * 64)
        scratch = os.memfd_create("out")
        points = {0, self.size // 2, self.size - 1}
        for cut in there[1].find(0), there[1].rfind(0):
            points |= {cut // PAGE * PAGE + near for near in (-PAGE - 1, -1, 0, 1, PAGE - 1, PAGE)}
            points |= {cut + near for near in (-100, -1, 0, 1)}
        for file in self.early, os.open(self.path, os.O_RDONLY):
            for at in sorted(point for point in points if 0 <= point < self.size):
                yield at, 100, lambda: os.pread(file, 100, at)
                yield at, 1, lambda: os.pread(file, 1, at)
            for at in range(0, self.size, 1 << 20):
                yield at, 1 << 20, lambda: os.pread(file, 1 << 20, at)

            def send():
                os.truncate(scratch, 0)
                os.lseek(scratch, 0, os.SEEK_SET)
                os.sendfile(scratch, file, 0, 1 << 20)
                return os.pread(scratch, 1 << 20, 0)
            yield 0, 1 << 20, send
        for at in range(0, self.size, PAGE * 64):
            yield at, PAGE * 64, lambda: buffer[:os.preadv(direct, [buffer], at)]

    def touch(self, view, there):
        """In a child: SIGBUS on the first page that has a byte missing."""
        for at in range(0, self.size, PAGE):
            got = view[at:at + PAGE]
            if 0 in there[1][at:at + PAGE]:
                os._exit(3)
            if got != there[0][at:at + PAGE]:
                os._exit(2)
        os._exit(0)

    def check(self, now):
        there = self.there(now)
        for at, asked, read in self.reads(there):
            try:
                got = read()
            except OSError as error:
                if error.errno != errno.EIO:
                    yield f"{self.path}: {error.strerror} at {at}"
                got = b""
            wrong = self.judge(there, at, asked, got)
            if wrong:
                yield wrong
        if self.mapped:
            self.map(mmap.MAP_PRIVATE)
        want = -signal.SIGBUS if 0 in there[1] else 0
        for number, view in enumerate(self.maps):
            child = os.fork()
            if not child:
                self.touch(view, there)
            got = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if got != want:
                yield f"{self.path}: a reader of mapping {number} ended with {got}, not {want}"

def files(mount, whole):
    """Every tensor, some as .npy, and all in one; @whole is a mount that is left alone."""
    def head(path, size):
        with open(os.path.join(whole, path), "rb") as file:
            return file.read()[:-size]
    parts = {name: (base.data_off + start, end - start) for name, (start, end) in
             ((name, tensor["data_offsets"]) for name, tensor in base.tensors.items())}
    for name, path in oracle.paths(base.tensors, False):
        last = name in ("big", "steps") # one of many pages, and the last in the pack
        yield File(mount, "tensors/" + path, [parts[name]], mapped=last)
        if last:
            path = f"npy/{path}.npy"
            yield File(mount, path, [parts[name]], head(path, parts[name][1]))
    text = head("pack.safetensors", sum(size for _, size in parts.values()))
    at = {name: tensor["data_offsets"] for name, tensor in json.loads(text[8:]).items()
          if name != "__metadata__"}
    yield File(mount, "pack.safetensors", [parts[name] for name in sorted(at, key=at.get)],
               text, True)

def status(mount):
    return open(mount + "/.bpkfs/status").read().split(",")[0]

def check(whole, mount, pack, damage):
    daemon = status(mount)
    rows = [(os.path.join(mount, path), data, attributes)
            for path, data, attributes in oracle.rows_of(base, False)]
    opened = list(files(mount, whole))
    DAMAGES[damage](pack)
    # Of a file that lost its name the mapping has what it had; one of mode 000 is as it
    # was, though nobody but root could look.
    now = old
    if damage not in ("replaced", "removed", "of mode 000"):
        with open(pack, "rb") as file:
            now = file.read()
    for file in opened:
        yield from file.check(now)
    for path, data, attributes in rows:
        if os.stat(path).st_size != len(data):
            yield f"{path}: size {os.stat(path).st_size}"
        if "/tensors/" not in path and open(path, "rb").read() != data:
            yield f"{path}: another text"
        for key, value in attributes.items():
            if value is not None and os.getxattr(path, "user.bpk." + key) != str(value).encode():
                yield f"{path}: another {key}"
    listed = [os.path.join(folder, name) for section in ("tensors", "scalars", "metadata")
              for folder, _, names in os.walk(os.path.join(mount, section)) for name in names]
    if sorted(listed) != sorted(path for path, _, _ in rows):
        yield f"listed: {listed}"
    if status(mount) != daemon:
        yield f"another daemon: {status(mount)}"

if len(sys.argv) == 3:
    print("\n".join(DAMAGES))
    sys.exit()
for line in sys.stdin:
    label, mount, pack, damage = line.rstrip("\n").split("|")
    try:
        wrong = list(check(sys.argv[3], mount, pack, damage))
    except Exception as error:
        wrong = [repr(error)]
    print(f"{label}|{'; '.join(wrong[:5])}", flush=True)
PYTHON
damage() { "$PYTHON" "$T/damage.py" "$top/tests/support" "$T/base.bpk" "$@"; }

mkdir "$T/packs"
while read -r damage; do
    for how in ro rw; do
        at=$T/$how-${damage// /-}
        cp "$T/base.bpk" "$T/packs/$how-${damage// /-}.bpk"
        mounted "$how, $damage: mount" -o "$how" "$T/packs/$how-${damage// /-}.bpk" "$at"
        echo "$how, $damage|$at|$T/packs/$how-${damage// /-}.bpk|$damage" >>"$T/damages"
    done
done < <(damage)
mounted 'damage: one that is left alone' "$T/base.bpk" "$T/whole"
damage "$T/whole" <"$T/damages" >"$T/damaged"
is 'damage: every row was run' "$? $(wc -l <"$T/damaged")" "0 $(($(damage | wc -l) * 2))"
while IFS='|' read -r label wrong; do is "$label: readers" "$wrong" ''; done <"$T/damaged"
while IFS='|' read -r label at _; do
    unmount "$label: unmount without edits" "$at"
    [ "$BPKFS_MODE" != foreground ] || is "$label: nothing to say under -f" "$err" ''
done <"$T/damages"
unmount 'damage: the other one' "$T/whole"
is 'nothing is left beside the packs' "$(find "$T/packs" -name '.*')" ''

# With edits: nothing is overwritten, and they are kept.
while IFS='|' read -r name want command; do
    # A commit carries over what the old pack has beside its bytes: it must be readable.
    [ "$want" -ne 0 ] || is_root || want=22
    rm -rf "$T/edited"
    mkdir -p "$T/edited" "$T/mnt"
    pack=$T/edited/p.bpk
    cp "$T/base.bpk" "$pack"
    mounted "edited, $name: mount" -o rw "$pack" "$T/mnt"
    ok "edited, $name: edit" put "$T/mnt/scalars/x" 0.5
    ok "edited, $name" bash -c "cd '$T/edited'; $command"
    was=$([ ! -e "$pack" ] || stat -c '%i %s %a %y' "$pack"; cat "$pack" 2>/dev/null | sum)
    if [[ $name = truncated* ]]; then
        # A tensor that is written into is copied first: what is missing of it is an error.
        refused "edited, $name: a write into a tensor that is cut" "$EIO" \
            dd if="$T/want.json" of="$T/mnt/tensors/big" bs=1 count=1 conv=notrunc
        ok "edited, $name: all of one" bash -c "printf 12345678 >'$T/mnt/tensors/steps'"
        is "edited, $name: reads back" "$(cat "$T/mnt/tensors/steps")" 12345678
    fi
    is "edited, $name: the edit reads back" "$(cat "$T/mnt/scalars/x")" 0.5
    if [ "$want" -eq 0 ]; then
        unmount "edited, $name: commit" "$T/mnt"
        ok "edited, $name: committed" cmp "$T/want.bpk" "$pack"
        is "edited, $name: the mode is kept" "$(stat -c %a "$pack")" 0
        continue
    fi
    unmount "edited, $name: what is told" "$T/mnt" "$want" \
        "p\.bpk.*$([ "$want" -eq 23 ] && echo changed || echo "$EACCES").*edited/\.p\.bpk\.bpkfs"
    is "edited, $name: nothing was overwritten" \
        "$([ ! -e "$pack" ] || stat -c '%i %s %a %y' "$pack"; cat "$pack" 2>/dev/null | sum)" "$was"
    ok "edited, $name: the edit is kept" \
        grep -q 'scalar.*x.* = 0\.5' "$T/edited/.p.bpk.bpkfs/kept-edits"
    is "edited, $name: nothing else is beside the pack" \
        "$(ls -A "$T/edited" | grep -vx -e p.bpk -e .p.bpk.bpkfs)" ''
done <<'ROWS'
truncated to nothing|23|truncate -s 0 p.bpk
truncated in a page|23|truncate -s 1500000 p.bpk
overwritten|23|printf x | dd of=p.bpk bs=1 seek=2000000 conv=notrunc
replaced by an equal one|23|cp -p p.bpk q.bpk; mv q.bpk p.bpk
removed|23|rm p.bpk
of mode 000|0|chmod 000 p.bpk
ROWS

# A pack in a pack, and a file system whose daemon hangs or dies under the mount -----------

"$PYTHON" -I - "$top/tests/support" "$T/base.bpk" "$T/outer.bpk" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import oracle
data = open(sys.argv[2], "rb").read()
tensor = {"name": "inner.bpk", "dtype": "U8", "shape": [len(data)], "hex": data.hex()}
open(sys.argv[3], "wb").write(oracle.make({"tensors": [tensor]}))
PYTHON
mkdir -p "$T/outer" "$T/inner"
mounted 'in a pack: mount of the outer one' "$T/outer.bpk" "$T/outer"
mounted 'in a pack: mount of the inner one' "$T/outer/tensors/inner/bpk" "$T/inner"
is 'in a pack: the tree' "$(whole_tree "$T/inner")" "$tree"
refused 'in a pack: the outer one is in use' 'in use|busy' "$BPKFS" --unmount "$T/outer"
unmount 'in a pack: unmount of the inner one' "$T/inner"
mounted 'in a pack: by its dotted name' "$T/outer/tensors/inner.bpk" "$T/inner"
is 'in a pack: is the same' "$(cat "$T/inner/scalars/x")" 0.25
unmount 'in a pack: unmount again' "$T/inner"
if bpkfs -o rw "$T/outer/tensors/inner/bpk" "$T/inner"; then
    fail 'in a pack: no edits' 'it was mounted writable'
else
    is 'in a pack: no edits' "$status" 21
fi
unmount 'in a pack: unmount of the outer one' "$T/outer"

# The kernel must not read all of it ahead.
little_ahead() {
    local ahead=/sys/class/bdi/$(stat -c %Hd:%Ld "$1")/read_ahead_kb
    [ ! -w "$ahead" ] || echo 128 >"$ahead"
}
mounted 'a daemon below: mount' "$T/outer.bpk" "$T/outer"
little_ahead "$T/outer"
mounted 'a daemon below: mount on it' "$T/outer/tensors/inner/bpk" "$T/inner"
little_ahead "$T/inner"
mounted 'a daemon below: writable' -o "rw,output=$T/written.bpk" "$T/outer/tensors/inner.bpk" "$T/writer"
little_ahead "$T/writer"
# Read as much as the mount itself needs, no tensor: what the kernel has not read yet.
below=${pids[$T/outer]}
if [ "$BPKFS_THREADS" = multi ]; then
    ok 'a daemon below hangs: only who needs it waits' "$PYTHON" -I - "$T/inner" "$below" <<'PYTHON'
import os, signal, sys
mount, daemon = sys.argv[1], int(sys.argv[2])
file = os.open(mount + "/tensors/big", os.O_RDONLY)
os.kill(daemon, signal.SIGSTOP)
try:
    reader = os.fork()
    if not reader:
        at = 2000000
        want = bytes((i * 31 + 4 * 7 + 3) & 0xff for i in range(at, at + 100))
        os._exit(os.pread(file, 100, at) != want)
    # Until it waits for the kernel.
    while open(f"/proc/{reader}/stat").read().rsplit(")", 1)[1].split()[0] not in "SD":
        assert os.waitpid(reader, os.WNOHANG) == (0, 0)
    signal.alarm(20)
    assert open(mount + "/scalars/x").read() == "0.25\n"
    assert os.listdir(mount + "/tensors/encoder") == ["layer1", "layer2"]
    assert os.stat(mount + "/tensors/head/scale").st_size == 8
    assert os.waitpid(reader, os.WNOHANG) == (0, 0), "it did not wait"
    signal.alarm(0)
finally:
    os.kill(daemon, signal.SIGCONT)
assert os.waitpid(reader, 0)[1] == 0
PYTHON
fi
kill -9 "$below"
"$BPKFS_WAIT_FOR" exited "$below"
for at in "$T/inner" "$T/writer"; do
    name="the daemon below dies, $(basename "$at")"
    refused "$name: a reader gets EIO" "$EIO" tail -c 500000 "$at/tensors/big"
    "$PYTHON" -I - "$at/tensors/big" 2>/dev/null <<'PYTHON'
import mmap, os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
with mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 0, prot=mmap.PROT_READ) as view:
    view[-1]
PYTHON
    is "$name: who maps gets SIGBUS" "$?" "$((128 + $(kill -l BUS)))"
    is "$name: scalars are there" "$(cat "$at/scalars/x")" 0.25
    is "$name: all is listed" "$(find "$at/tensors" "$at/scalars" "$at/metadata" -type f | wc -l)" \
        "$(wc -l <<<"$tree")"
    is "$name: the daemon lives" "$(daemon_of "$at")" "${pids[$at]}"
    unmount "$name: unmount without edits" "$at"
done
daemon_ended "$T/outer"
ok 'the dead one is cleared away' fusermount3 -u "$T/outer"

done_testing
