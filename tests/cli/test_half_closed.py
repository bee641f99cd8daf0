"""Far ends that have ended what they send, and read on: they get all that they have asked for."""

import contextlib
import socket
import struct
import threading
import time

import command
import pytest

OPERATIONS = 4000
ECHO, SEND, RECEIVE = 0xA2, 0xA4, 0xA6


def message(kind, count, length, sequence, behind=b"", flags=0):
    return struct.pack("<BBHIQ", kind, flags, count, length, sequence) + behind


HELLO = message(0xA0, 0, 16, 0, b"hodo raw" + struct.pack("<HHI", 1, 0, 1 << 24))
# What is asked for, and the bytes that come behind the answer to the greeting.
ASKED = {
    "echoes": (b"".join(message(ECHO, 0, 1000, number, bytes(984)) for number in range(OPERATIONS)), OPERATIONS * 1000),
    # The last one is to be acknowledged at once.
    "sends": (b"".join(message(SEND, 0, 1000, at, bytes(984), at == OPERATIONS - 1) for at in range(OPERATIONS)), 16),
    "data": (b"".join(message(RECEIVE, 1000, 16384, number) for number in range(0, OPERATIONS, 1000)), OPERATIONS * 16384),
}


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("scheme", ["tcp", "unix"])
def test_a_raw_client_that_asks_and_ends_gets_all_answers(tmp_path, scheme, what):
    asked, answers = ASKED[what]
    assert answered("tcp://127.0.0.1:0" if scheme == "tcp" else f"unix://{tmp_path}/raw", HELLO + asked) == 32 + answers


def test_an_ipbus_client_that_asks_and_ends_gets_all_replies():
    words = 250
    read = struct.pack(">IIII", 12, 0x2000_00F0, 0x2000_000F | words << 8, 0)
    assert answered("ipbustcp-2.0://127.0.0.1:0", OPERATIONS * read) == OPERATIONS * (12 + 4 * words)


def answered(at, asked):
    """Asks a server, ends, and reads late; returns how many bytes come."""
    with command.serving(at) as server, contextlib.closing(connected(server.uri)) as client:
        # A server that is held back reads nothing more, so both directions go on at once.
        asking = threading.Thread(target=ask, args=(client, asked))
        asking.start()
        time.sleep(0.3)
        got = 0
        while part := client.recv(1 << 20):
            got += len(part)
        asking.join(20)
        return got


def connected(uri):
    scheme, _, at = uri.partition("://")
    if scheme == "unix":
        client = socket.socket(socket.AF_UNIX)
        client.connect(at)
    else:
        host, port = at.rsplit(":", 1)
        client = socket.create_connection((host, int(port)))
    client.settimeout(20)
    return client


def ask(client, words):
    client.sendall(words)
    client.shutdown(socket.SHUT_WR)
