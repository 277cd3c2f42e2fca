#!/usr/bin/env python3
"""Run an editor at a terminal of its own and type.

    keys.py SEEN KEYS COMMAND...

When the text SEEN is on the screen the KEYS are sent, with the escapes of a Python
string. The exit status is the command's.
"""
import os
import pty
import select
import sys

LIMIT = 30  # seconds without a word from the editor


def main(seen, keys, *command):
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    screen = b""
    typed = False
    while True:
        if not select.select([terminal], [], [], LIMIT)[0]:
            os.kill(pid, 9)
            print("it waits:", screen[-500:])
        try:
            got = os.read(terminal, 4096)
        except OSError:  # EIO: it has gone
            got = b""
        if not got:
            break
        screen += got
        if not typed and seen.encode() in screen:
            typed = True
            os.write(terminal, keys.encode().decode("unicode_escape").encode("latin-1"))
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        print(screen[-500:])
    sys.exit(status if typed else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
