#!/usr/bin/env python3
"""What libbpk writes as JSON, Python's json reads back: names at random, bytes that
are no UTF-8, and numbers.

    convert_json.py BPK_CONVERT

The names are the same every time.
"""

import codecs
import json
import math
import random
import struct
import subprocess
import sys

# One U+FFFD for every byte that is no part of UTF-8.
codecs.register_error("each", lambda error: ("\ufffd", error.start + 1))

PIECES = ["", "a", "layer.weight", "\"", "\\", "\\u0041", "/", "\0", "\n", "\r\n", "\t",
          "\b", "\x1f", " ", "\x7f", "\x80", "\x9b", "\x9f", "\xa0", "é", "\u07ff",
          "\u0800", "\u2028", "\ufeff", "\ufffd", "\uffff", "\U00010000", "🔥",
          "\U0010ffff", "'", "{", "}", "[", ",", ":", "</script>"]

failures = []
checks = 0


def check(label, good, why=""):
    global checks
    checks += 1
    if not good:
        failures.append(f"{label!a}: {why!a}")


def texts(rng):
    yield from (chr(code).encode() for code in range(0x300))
    for _ in range(3000):
        yield "".join(rng.choices(PIECES, k=rng.randrange(12))).encode()
    for _ in range(2000):
        codes = (rng.randrange(0x110000) for _ in range(rng.randrange(20)))
        yield "".join(chr(c) for c in codes if not 0xd800 <= c < 0xe000).encode()
    for _ in range(3000): # no UTF-8, or only by chance
        yield bytes(rng.choice(b"a\"\x80\xbf\xc2\xe0\xa0\xed\xef\xf0\x90\xf4\x8f\xff")
                    for _ in range(rng.randrange(10)))


def floats(rng):
    yield from (0.0, -0.0, 1.0, 0.1, 5e-324, 1.7976931348623157e308, math.inf, -math.inf,
                math.nan)
    for _ in range(2000):
        yield struct.unpack("<d", rng.randbytes(8))[0]


def main():
    rng = random.Random(20240607)
    strings = list(texts(rng))
    numbers = [repr(number).encode() for number in floats(rng)]
    requests = [("json", text) for text in strings] + [("number", text) for text in numbers]
    lines = "".join(f"{word} {text.hex() or '-'}\n" for word, text in requests)
    done = subprocess.run([sys.argv[1]], input=lines, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"status {done.returncode}: {done.stderr}")
    answers = done.stdout.splitlines()
    check("answers", len(answers) == len(requests), len(answers))

    for (word, text), answer in zip(requests, answers):
        data = bytes.fromhex(answer.split()[1])
        try:
            value = json.loads(data.decode("utf-8"))
        except ValueError as error:
            check(text, False, f"{data}: {error}")
            continue
        if word == "json":
            check(text, value == text.decode("utf-8", "each"), data)
            check(text, not any(byte < 0x20 or byte == 0x7f for byte in data), data)
        elif b"n" in text: # inf and nan
            check(text, value == text.decode(), data)
        else:
            check(text, data == text and isinstance(value, float)
                  and repr(value).encode() == text, data)
    for failure in failures[:40]:
        print(failure)
    print(f"{checks} checks, {len(failures)} failed")
    sys.exit(bool(failures))


main()
