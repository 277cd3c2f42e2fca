#!/usr/bin/env python3
"""A service manager for a test: listens at a datagram socket as $NOTIFY_SOCKET names
it (a path, or @ and an abstract name) and prints each variable it is told, one a line,
until STOPPING=1 was told and the process it stands for has ended, or for a minute.

    notified.py SOCKET      first line: "listening"; end it by closing its standard input
"""
import select
import socket
import sys

name = sys.argv[1]
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.bind("\0" + name[1:] if name.startswith("@") else name)
print("listening", flush=True)
while True:
    ready, _, _ = select.select([sock, sys.stdin], [], [], 60)
    if sock in ready:
        print(sock.recv(65536).decode(), flush=True)
    elif not ready or not sys.stdin.read(1):
        break
