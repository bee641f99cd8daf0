#!/usr/bin/env python3
"""A client of the raw protocol, written from docs/protocols/raw.md alone.

    hodo serve tcp://127.0.0.1:4242 &
    docs/examples/raw_client.py 127.0.0.1 4242

Sends, echoes and asks for a few operations, then for the server's counters.
"""

import socket
import struct
import sys
import time

HEADER = struct.Struct("<BBHIQ")  # kind, flags, count, length, sequence
GREETING = struct.Struct("<8sHHI")  # magic, version, reserved, largest operation
HELLO, WELCOME, ECHO, REPLY, SEND, ACK, RECEIVE, DATA, REPORT, COUNTERS = range(0xA0, 0xAA)
ACKNOWLEDGE = 1
PAYLOAD_KINDS = (ECHO, REPLY, SEND, DATA)


def message(kind, length, sequence, *, flags=0, count=0):
    """A message; the size of a payload counts from the header's first byte."""
    body = bytes(max(length - HEADER.size, 0)) if kind in PAYLOAD_KINDS else b""
    return HEADER.pack(kind, flags, count, length, sequence) + body


def read(stream):
    kind, _flags, count, length, sequence = HEADER.unpack(stream.read(HEADER.size))
    body = stream.read(max(length - HEADER.size, 0) if kind in PAYLOAD_KINDS else length)
    return kind, count, length, sequence, body


def main(host, port):
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rb")
        connection.sendall(message(HELLO, GREETING.size, 0) + GREETING.pack(b"hodo raw", 1, 0, 1 << 20))
        kind, _, _, _, greeting = read(stream)
        magic, version, _, size_max = GREETING.unpack(greeting)
        assert (kind, magic, version) == (WELCOME, b"hodo raw", 1)
        print(f"the server takes operations of up to {size_max} bytes")

        started = time.perf_counter()
        for sequence in range(1000):
            connection.sendall(message(ECHO, 64, sequence))
            assert read(stream)[:4] == (REPLY, 0, 64, sequence)
        print(f"an echo of 64 bytes takes {(time.perf_counter() - started) * 1e3:.1f} us on average")

        connection.sendall(b"".join(message(SEND, 1024, sequence) for sequence in range(9)))
        connection.sendall(message(SEND, 1024, 9, flags=ACKNOWLEDGE))
        assert read(stream)[::3] == (ACK, 10), "all below 10 have arrived"

        connection.sendall(message(RECEIVE, 2048, 0, count=5))
        assert [read(stream)[3] for _ in range(5)] == [0, 1, 2, 3, 4]

        connection.sendall(message(REPORT, 0, 1))
        assert read(stream)[::3] == (ACK, 10)
        kind, _, _, sequence, body = read(stream)
        received, _duplicated, _reordered, user_ns, system_ns, *_ = struct.unpack("<9Q", body)
        assert (kind, sequence, received) == (COUNTERS, 1, 10)
        print(f"the server received {received} and has used {(user_ns + system_ns) * 1e-9:.2f} s of CPU")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: raw_client.py HOST PORT")
    main(*sys.argv[1:])
