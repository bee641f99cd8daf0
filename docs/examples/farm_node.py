#!/usr/bin/env python3
"""A node of an event farm, written from docs/protocols/farm.md alone.

    hodo farm controller --events 10000 --until-done &
    docs/examples/farm_node.py 127.0.0.1 5500

Accepts each 200th event, and stores the first 8 bytes of it. For a program that decides, `hodo farm node --command` is less
work (farm_decider.py): the node then stays when the program does not.
"""

import socket
import struct
import sys
import time

HEADER = struct.Struct("<IQ")  # kind and length, value
HELLO_BODY = struct.Struct("<HBBIIQIIQ")  # version, role, flags, number, credits, window, event_max, weight, instance
TOKEN_REST = struct.Struct("<BBBBIII")  # verdict, credits, flags, reserved, run, waited, decided
HELLO, EVENT, PARTIAL, SKIP, TOKEN, RUN, PING, PONG, DRAIN, REFUSED, REPORT = range(1, 12)
MAGIC = int.from_bytes(b"hodofarm", "little")
NODE, CREDITS, EVENT_MAX = 4, 2, 16 << 20
ACCEPTED, REJECTED = 0, 1
OUTPUT = 2


def header(kind, length, value):
    return HEADER.pack(kind << 28 | length, value)


def token(run, event, verdict, data=b""):
    flags = OUTPUT if data else 0
    return header(TOKEN, len(data), event) + TOKEN_REST.pack(verdict, 1, flags, 0, run, 0, 0) + data


def decide(run, event, data):
    return token(run, event, ACCEPTED, data[:8]) if event % 200 == 0 else token(run, event, REJECTED)


def main(host, port):
    run = decided = 0
    with socket.create_connection((host, int(port)), timeout=2) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = HELLO_BODY.pack(1, NODE, 0, 0, CREDITS, 0, EVENT_MAX, 1, time.time_ns())
        connection.sendall(header(HELLO, len(hello), MAGIC) + hello)
        stream = connection.makefile("rb")
        while head := stream.read(HEADER.size):
            word, value = HEADER.unpack(head)
            kind, body = word >> 28, stream.read(word & 0xFFF_FFFF)
            if kind == RUN:
                run = value
            elif kind in (EVENT, PARTIAL):
                connection.sendall(decide(run, value, body))
                decided += 1
            elif kind == PING:
                connection.sendall(header(PONG, 0, value))
            elif kind == REFUSED:
                sys.exit(f"refused, code {value}: {body.decode()}")
    print(f"{decided} events decided")


if __name__ == "__main__":
    main(*sys.argv[1:])
