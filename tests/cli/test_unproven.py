"""Whoever only writes another's address into datagrams gets nothing for it; whoever asks for much and goes is owed nothing."""

import contextlib
import socket
import struct

import command
import pytest
from test_servers import connect, rss_bytes, still_serves

HEADER = struct.Struct("<BBHIQ")
HELLO, WELCOME, RECEIVE, REPORT, SUBSCRIBE = 0xA0, 0xA1, 0xA6, 0xA8, 0xAB
FACTS, PROVE = 1, 1
SIZE = 60_000
GREETING = b"hodo raw" + struct.pack("<HHI", 1, 0, 1 << 20)


def hello(proof=0, length=256):
    return HEADER.pack(HELLO, FACTS, 0, length, 0) + (GREETING + struct.pack("<Q", proof)).ljust(length, b"\0")


def receive(sequence=0, proof=0, count=1024):
    return HEADER.pack(RECEIVE, 0, count, SIZE, sequence) + struct.pack("<Q", proof)


def answers(connection, within=0.3):
    """The datagrams that come until nothing has come for a while."""
    connection.settimeout(within)
    with contextlib.suppress(TimeoutError):
        while True:
            yield connection.recv(1 << 16)


@pytest.fixture
def udp():
    with command.serving("udp://127.0.0.1:0", "--threads", "1", "--peers-max", "4") as process:
        yield process


def test_an_address_without_a_proof_is_sent_no_more_than_it_sent(udp):
    """A socket that repeats no proof is to the server what a forged address is."""
    subscribe = HEADER.pack(SUBSCRIBE, 0, 0, 40, 1) + struct.pack("<QQQQII", 0, 0, 0, 0, SIZE, 8)
    for messages in (
        [hello()],
        [hello(length=16), receive(count=65_535)[:16]],
        [hello(), *[receive(sequence) for sequence in range(0, 9 * 1024, 1024)]],
        [hello(), HEADER.pack(REPORT, 0, 0, 8, 1) + bytes(8), subscribe],
        [hello()] * 50,
    ):
        with connect(udp.uri) as connection:
            for message in messages:
                connection.send(message)
            came = [len(answer) for answer in answers(connection)]
            assert sum(came) <= sum(map(len, messages)), came
    still_serves(udp)


def test_whoever_repeats_the_proof_is_served(udp):
    with connect(udp.uri) as connection:
        connection.send(hello())
        welcome = connection.recv(1 << 16)
        assert welcome[:2] == bytes([WELCOME, PROVE])
        (proof,) = struct.unpack_from("<Q", welcome, HEADER.size + len(GREETING))
        connection.send(hello(proof))
        assert connection.recv(1 << 16)[:2] == bytes([WELCOME, 0])
        connection.send(receive(proof=proof, count=3))
        assert [len(answer) for answer in answers(connection)] == [SIZE] * 3
        # Not even in its own name without the proof.
        connection.send(receive(3, proof ^ 1, count=3))
        assert not list(answers(connection))


def test_greetings_without_a_proof_keep_nobody_out(udp):
    """A thousand addresses greet a server that has room for four peers."""
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            connection = stack.enter_context(connect(udp.uri))
            connection.send(hello())
        still_serves(udp)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
@pytest.mark.parametrize("end", ["closes", "stays"])
def test_whoever_asks_for_terabytes_holds_up_nobody(kind, end, tmp_path):
    uri = f"unix://{tmp_path}/hodo.sock" if kind == "unix" else "tcp://127.0.0.1:0"
    with command.serving(uri, "--threads", "1") as server, contextlib.ExitStack() as stack:
        before = rss_bytes(server.pid)
        for _ in range(4):
            connection = stack.enter_context(connect(server.uri))
            asks = (HEADER.pack(RECEIVE, 0, 1024, 1 << 20, 1024 * number) for number in range(4096))
            connection.sendall(HEADER.pack(HELLO, 0, 0, 16, 0) + GREETING + b"".join(asks))
            if end == "closes":
                connection.close()
        still_serves(server)
        assert rss_bytes(server.pid) - before < 16 << 20
        server.terminate()
        server.wait(2)


def test_many_that_do_not_read_what_they_asked_for_cost_bounded_memory():
    """Each of 2,000 would leave 130 to 380 KiB in the server's memory."""
    command.allow_files(10_000)
    options = ["--threads", "1", "--socket-buffer", "8K"]
    with command.serving("tcp://127.0.0.1:0", *options) as server, contextlib.ExitStack() as stack:
        before = rss_bytes(server.pid)
        # As many bytes to read as fill any buffer.
        asks = b"".join(HEADER.pack(RECEIVE, 0, 1024, 1000, 1024 * number) for number in range(8))
        for _ in range(2000):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(command.place(server.uri))
            connection.sendall(HEADER.pack(HELLO, 0, 0, 16, 0) + GREETING + asks)
        still_serves(server)
        assert rss_bytes(server.pid) - before < 192 << 20
