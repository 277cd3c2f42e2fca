#!/usr/bin/env bash
# Names: every one that a pack can hold is a file that is found, and comes out of a
# commit as it was; a tensor's other spelling, with dots, never goes stale (SEMANTICS,
# section 2, Names).
. "$(dirname "$0")/lib.sh"

sections='tensors scalars metadata'


# Names that the golden pack has not got: the escapes themselves, taken literally.
"$PYTHON" - "$golden/08_names.json" "$T/names.json" "$T/edited.json" <<'PYTHON'
import json, sys
spec = json.load(open(sys.argv[1], encoding="utf-8"))
more = ["%self", "a.%self", "%", "%.%", "%41", "%zz", "#", "#x#", "x~", "x~.y~", ".#.~", "~.~",
        "\u007f", "\u0001", "....", " . ", "q" * 300, "\u91cd" * 100, "p." + "r" * 300 + ".s",
        "q" * 230 + "%+0123456789ABCDEF", "COM1", "a\\b", "a:b", "-rf", "--", "*?[", "$(x)"]
for name in more:
    spec["tensors"].append({"name": name, "dtype": "U8", "shape": [len(spec["tensors"])]})
spec["scalars"] = {"lr": {"Float": 0.001}}
for name in more:
    spec["scalars"][name] = {"UInt": len(spec["scalars"])}
spec["metadata"] = {name: "of " + name for name in more}
json.dump(spec, open(sys.argv[2], "w"))
spec["scalars"]["lr"] = {"Float": 0.5}
json.dump(spec, open(sys.argv[3], "w"))
PYTHON
oracle make "$T/names.json" "$T/names.bpk"
oracle make "$T/edited.json" "$T/edited.bpk"
# Each name is found without a listing having told the kernel of it.
cat >"$T/find.py" <<'PYTHON'
import hashlib, os, sys
os.chdir(sys.argv[1])
for line in sys.stdin.buffer:
    path, size, sha256 = line.rstrip(b"\n").split(b"\t")
    with open(path, "rb") as file:
        data = file.read()
    if os.stat(path).st_size != int(size) or len(data) != int(size) or \
            hashlib.sha256(data).hexdigest().encode() != sha256:
        print(path, size)
PYTHON
mkdir -p "$T/names"
for name in "$golden/08_names.bpk" "$T/names.bpk"; do
    for flat in '' --flat; do
        label="$(basename "$name") $flat"
        mounted "$label: mount" ${flat:+-o flat} "$name" "$T/names"
        is "$label: every name is found" \
            "$(oracle tree "$name" $flat | "$PYTHON" -I "$T/find.py" "$T/names" 2>&1)" ''
        is "$label: and listed" "$(whole_tree "$T/names")" "$(oracle tree "$name" $flat)"
        unmount "$label: unmount" "$T/names"
    done
done
cp "$T/names.bpk" "$T/commit.bpk"
mounted 'names: writable' -o rw "$T/commit.bpk" "$T/names"
ok 'names: an unrelated edit' put "$T/names/scalars/lr" 0.5
unmount 'names: commit' "$T/names"
ok 'names: all come out as they were, byte for byte' cmp "$T/edited.bpk" "$T/commit.bpk"
cp "$golden/08_names.bpk" "$T/commit.bpk"
chmod u+w "$T/commit.bpk"
mounted 'golden names: writable' -o rw "$T/commit.bpk" "$T/names"
ok 'golden names: an unrelated edit' put "$T/names/scalars/new" 0.5
unmount 'golden names: commit' "$T/names"
is 'golden names: what differs' "$(oracle differ "$golden/08_names.bpk" "$T/commit.bpk")" \
    '+ scalars new'

# What is no name: a look-up finds nothing, what would make it fails.
fresh bad
cp "$T/names.bpk" "$pack"
mounted 'no names: mount' -o rw "$pack" "$mnt"
is 'no names' "$("$PYTHON" - "$mnt" <<'PYTHON'
import errno, os, sys
os.chdir(sys.argv[1])
rows = [(b"\xff", "EILSEQ"), (b"a\xc3", "EILSEQ"), (b"\xc0\xaf", "EILSEQ"),
        (b"\xed\xa0\x80", "EILSEQ"), (b"a.\xfe", "EILSEQ"), (b"%zz", "EINVAL"),
        (b"a%", "EINVAL"), (b"a%4", "EINVAL"), (b"%41", "EINVAL"), (b"a%2f", "EINVAL"),
        (b"%41.b", "EINVAL"), (b"a%selfb", "EINVAL"), (b"%self", "EINVAL"), (b"a\x01", "EINVAL"),
        (b"a\n", "EINVAL"), (b"\x7f", "EINVAL"), (b"a" * 256, "ENAMETOOLONG")]
calls = {"create": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
         "mknod": lambda path: os.mknod(path),
         "mkdir": lambda path: os.mkdir(path),
         "mv": lambda path: os.rename(b"scalars/lr", path)}
for name, want in rows:
    for section in (b"tensors", b"scalars", b"metadata"):
        path = section + b"/" + name
        for call in calls:
            if call == "mv" and section != b"scalars":
                continue
            try:
                calls[call](path)
                got = "success"
            except OSError as error:
                got = errno.errorcode[error.errno]
            if got != want:
                print(call, path, got, "wanted", want)
        try:
            os.stat(path)
            print("found", path)
        except OSError as error:
            if error.errno != (errno.ENAMETOOLONG if len(name) > 255 else errno.ENOENT):
                print("look-up of", path, error)
PYTHON
)" ''
is 'no names: nothing was made' "$(cat "$mnt/.bpkfs/changes")" ''
unmount 'no names: unmount' "$mnt"

# Dotted spellings --------------------------------------------------------------------


# Each row has a folder of its own in tensors/ and in scalars/, with the entries w and v
# in a/. Before the edits, done in the row's folder, every spelling of both is looked up
# and held open, here and by another process. After them every spelling says in both what
# is there now ("-": nothing), and what was held open is still what it was.
cat >"$T/dots.py" <<'PYTHON'
import errno, json, os, sys

rows = [line.split("|") for line in """\
mv by folders|mv a/w a/x|w:- v:v x:w
mv by dots|mv a.w a.x|w:- v:v x:w
mv from folders to dots|mv a/w a.x|w:- v:v x:w
mv from dots to folders|mv a.w a/x|w:- v:v x:w
rm by folders|rm a/w|w:- v:v
rm by dots|rm a.w|w:- v:v
mv over, by folders|mv a/v a/w|w:v v:-
mv over, by dots|mv a.v a.w|w:v v:-
mv over, from dots|mv a.v a/w|w:v v:-
mv over, onto dots|mv a/v a.w|w:v v:-
mv onto itself|mv a.w a/w|w:w v:v
mv of the folder|mv a b; mkdir a; mv b/w a/x|w:- v:- x:w
mv of the folder and back|mv a b; mv b a|w:w v:v
rm, then a new one|rm a/w; new a/w|w:n v:v
rm, then a new one by dots|rm a/w; new a.w|w:n v:v
rm by dots, then a new one|rm a.w; new a/w|w:n v:v
a new one|new a.x|w:w v:v x:n
a rotation|mv a/w a/x; mv a.v a.w; mv a/x a.v|w:v v:w
to a scratch file|mv a.w a/.x|w:- v:v
to a scratch file and back|mv a.w a/.x; mv a/.x a.w|w:w v:v
a scratch file over it|new a/.x; mv a/.x a.w|w:n v:v
all of the folder|rm a/w; rm a.v; rmdir a|w:- v:-""".split("\n")]
texts = {"tensors": {"w": "ww", "v": "vv", "n": "nn"},
         "scalars": {"w": "119", "v": "118", "n": "110"}}

def spec():
    tensors, scalars = [], {}
    for row in range(len(rows)):
        for letter in "wv":
            name = f"r{row}.a.{letter}"
            tensors.append({"name": name, "dtype": "U8", "shape": [2],
                            "hex": texts["tensors"][letter].encode().hex()})
            scalars[name] = {"UInt": int(texts["scalars"][letter])}
    return {"tensors": tensors, "scalars": scalars}

class Reader:
    """Opens by path, and reads what it has open again."""
    def __init__(self):
        self.open = {}

    def look(self, path):
        try:
            with open(path, "rb") as file:
                return file.read().decode().strip() if os.stat(path).st_size else "size 0"
        except OSError as error:
            return "-" if error.errno == errno.ENOENT else error.strerror

    def hold(self, path):
        self.open[path] = os.open(path, os.O_RDONLY)
        return self.held(path)

    def held(self, path):
        text = os.pread(self.open[path], os.fstat(self.open[path]).st_size, 0)
        return text.decode().strip()

class Other:
    """A Reader in another process."""
    def __init__(self):
        ask, self.answers = os.pipe(), os.pipe()
        if not os.fork():
            reader = Reader()
            os.close(ask[1])
            for line in os.fdopen(ask[0]):
                word, path = line.split()
                os.write(self.answers[1], (getattr(reader, word)(path) + "\n").encode())
            os._exit(0)
        self.ask = ask[1]
        self.answers = os.fdopen(self.answers[0])

    def __getattr__(self, word):
        def call(path):
            os.write(self.ask, f"{word} {path}\n".encode())
            return self.answers.readline().strip()
        return call

def edit(word, path, to=None, new=""):
    if word == "mv":
        os.rename(path, to)
    elif word == "rm":
        os.unlink(path)
    elif word == "rmdir":
        os.rmdir(path)
    elif word == "mkdir":
        os.mkdir(path)
    else:
        with open(path, "x") as file:
            file.write(new)

def spellings(folder, letter):
    return [f"{folder}/a/{letter}", f"{folder}/a.{letter}", f"{folder}.a.{letter}"]

def run(top):
    other, here = Other(), Reader()
    for section in texts:
        text = {**texts[section], "-": "-"}
        os.chdir(os.path.join(top, section))
        for row, (name, edits, after) in enumerate(rows):
            folder, wrong = f"r{row}", []

            def check(what, reader, path, got, want):
                if got != want:
                    wrong.append(f"{what} {reader.__class__.__name__} {path}: {got}")

            def every(word, letter, want):
                for path in spellings(folder, letter):
                    path = os.path.join(top, section, path)
                    for reader in here, other:
                        check(word, reader, path, getattr(reader, word)(path), text[want])

            every("look", "x", "-")
            for letter in "wv":
                every("look", letter, letter)
                every("hold", letter, letter)
            os.chdir(folder)
            try:
                for words in edits.split("; "):
                    edit(*words.split(), new=text["n"])
            except OSError as error:
                wrong.append(str(error))
            os.chdir("..")
            for letter, want in (word.split(":") for word in after.split()):
                every("look", letter, want)
            for letter in "wv":
                every("held", letter, letter)
            print(f"{section}: {name}|{'; '.join(wrong)}")

if sys.argv[1] == "spec":
    print(json.dumps(spec()))
else:
    run(sys.argv[1])
PYTHON
fresh dots
"$PYTHON" -I "$T/dots.py" spec >"$T/dots.json"
oracle make "$T/dots.json" "$pack"
mounted 'dots: mount' -o rw "$pack" "$mnt"
"$PYTHON" -I "$T/dots.py" "$mnt" >"$T/dots.out"
is 'dots: every row was run' "$? $(wc -l <"$T/dots.out")" "0 $(("$(grep -c '|.*:' "$T/dots.py")" * 2))"
while IFS='|' read -r name wrong; do is "dots in $name" "$wrong" ''; done <"$T/dots.out"
ok 'dots: written here, read there' "$PYTHON" - "$mnt/tensors" <<'PYTHON'
import mmap, os, sys
os.chdir(sys.argv[1])
dots, folders = os.open("r0.a.v", os.O_RDWR), os.open("r0/a/v", os.O_RDONLY)
with mmap.mmap(folders, 0, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ) as view:
    assert view[:] == b"vv"
    os.pwrite(dots, b"y", 1)
    assert os.pread(folders, 9, 0) == b"vy" and view[:] == b"vy"
assert open("r0/a.v", "rb").read() == b"vy"
# Whether it is there does not depend on how it is written.
for name in ("r0.a.v", "r0/a.v", "r0/a/v"):
    for call in (lambda: os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY),
                 lambda: os.mkdir(name), lambda: os.mknod(name)):
        try:
            call()
            raise AssertionError(name)
        except FileExistsError:
            pass
os.close(os.open("r0.a.v", os.O_CREAT | os.O_WRONLY))
assert open("r0/a/v", "rb").read() == b"vy"
PYTHON
find "$mnt/tensors" "$mnt/scalars" -name '.x' -delete
tree=$(whole_tree "$mnt")
unmount 'dots: commit' "$mnt"
is 'dots: the new pack is the tree that was there' "$(oracle tree "$pack")" "$tree"

is 'nothing is left beside the packs' "$(find "$T" -maxdepth 1 -name '.*' ! -path "$T")" ''
done_testing
