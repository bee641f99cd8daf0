"""Whatever strangers make a server retain, it stays within its memory, and a client that keeps the rules is served without delay.

Each server has an address space of 1 GiB, and 256 MiB for its clients. The strangers run at the lowest priority, and have half a processor."""

import collections
import contextlib
import functools
import itertools
import json
import math
import pathlib
import re
import socket
import struct
import threading

import command
import pytest
from test_servers import connect, rss_bytes
from test_unproven import GREETING, HEADER, HELLO, RECEIVE, REPORT, hello, receive

LIMITED = ("prlimit", f"--as={1 << 30}")
ABOVE = 256 << 20


def message(code, payload):
    return struct.pack("<4BI", 0xCA, 2, 0, code, len(payload)) + payload


def text(data):
    data = data.encode() if isinstance(data, str) else data
    return (bytes([len(data)]) if len(data) < 254 else b"\xfe" + struct.pack("<I", len(data))) + data


def claim(user=None):
    """The claim of a user, or of nobody."""
    front = struct.pack("<IHH", 1, 1, 0)
    if user is None:
        return message(1, front + text("anonymous") + b"\xff")
    fields = text("user") + b"\x60" + text("host") + b"\x60"
    return message(1, front + text("ca") + b"\x80" + text("") + b"\x02" + fields + text(user) + text("here"))


def create(name, cid=1):
    return message(7, struct.pack("<HI", 1, cid) + text(name))


def set_up(code, ioid, sid=0):
    return message(code, struct.pack("<IIB", sid, ioid, 8) + b"\xff")


class Stranger(threading.Thread):
    """Sends to a server, at the lowest priority, whatever it is told to, until it is closed or has sent everything, and reads nothing. It stays."""

    def __init__(self, at, pieces):
        super().__init__(daemon=True)
        self.socket = socket.create_connection(command.place(f"tcp://{at}"), timeout=30)
        self.pieces = pieces
        self.start()

    def run(self):
        command.as_stranger()
        with contextlib.suppress(OSError):
            for piece in self.pieces:
                self.socket.sendall(piece)


def names():
    """Each name asks for an array of another 80 MB, in 30 bytes."""
    return [claim() + b"".join(create(f"hodo:double:{10_000_000 - number}:1", number) for number in range(60))]


def unfinished():
    """A put of 250 MB that does not end."""
    length = 250_000_000
    head = struct.pack("<4BI", 0xCA, 2, 0, 11, length)
    return [claim() + create(NAME), head, *[bytes(1 << 20)] * 60]


def user():
    return [claim("x" * 4_000_000)]


def monitors():
    """As many subscriptions as a client may have operations."""
    start = lambda ioid: message(13, struct.pack("<IIB", 0, ioid, 0x44))  # noqa: E731
    return [claim() + create(NAME), *[set_up(13, ioid) + start(ioid) for ioid in range(100_000)]]


def types():
    """Numbered types with long names of their fields."""
    name = text("n" * 30_000)
    one = lambda ioid: b"\xfd" + struct.pack("<H", ioid) + b"\x80" + text("") + b"\x01" + name + b"\x60\x00"  # noqa: E731
    return [claim() + create(NAME), *[message(10, struct.pack("<IIB", 0, ioid, 8) + one(ioid)) for ioid in range(4000)]]


NAME = "hodo:double:1"
ATTACKS = [names, unfinished, user, monitors, types]


def latency_ms(uri):
    """The latency of a client that keeps the rules, without end where its datagrams were lost."""
    (one,) = json.loads(command.hodo("bench", uri, "--test", "latency", "--sizes", "64", *command.SHORT, "--json", "-").stdout)["measurements"]
    return one["latency_ns"]["p99"] / 1e6 if one["latency_ns"] else math.inf


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_far_end_of_pva(attack):
    with command.serving("pva://127.0.0.1:0", prefix=LIMITED) as server:
        before = rss_bytes(server.pid)
        at = server.uri.removeprefix("pva://")
        strangers = [Stranger(at, attack()) for _ in range(5)]
        during = [latency_ms(server.uri) for _ in range(2)]
        for stranger in strangers:
            stranger.join(20)
        assert rss_bytes(server.pid) - before <= ABOVE
        # This machine has others to serve, too.
        assert min(*during, latency_ms(server.uri)) <= 10, during
        assert server.poll() is None


def subscriptions():
    """As many subscriptions to a text as a client may have."""
    start = lambda ioid: message(13, struct.pack("<IIB", 0, ioid, 0x44))  # noqa: E731
    return [claim() + create("S"), *[set_up(13, ioid) + start(ioid) for ioid in range(1000)], message(2, b"")]


def puts(of):
    """A put of a long text, which is told to all subscriptions."""
    put = message(11, struct.pack("<IIB", 0, 1, 0) + b"\x01\x02" + text(of * 100_000))
    return claim() + create("S") + set_up(11, 1) + put


def peak_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10


def answered(connection, code, count):
    """Reads until that many messages of a kind have come."""
    stream = connection.makefile("rb")
    while count:
        flags, kind, length = struct.unpack("<2xBBI", stream.read(8))
        if not flags & 1:
            stream.read(length)
            count -= kind == code


def test_a_put_that_ten_thousand_subscriptions_are_told_of(tmp_path):
    file = tmp_path / "pv.toml"
    file.write_text('[[pv]]\nname = "S"\ntype = "string"\nput = "accept"\n', encoding="utf-8")
    with command.started("pva", "serve", file, "--listen", "127.0.0.1:0", "--tcp-only", "--no-metrics", prefix=LIMITED) as server:
        at = command.announced(server, r"127\.0\.0\.1:\d+")[0]
        before = peak_bytes(server.pid)
        strangers = [Stranger(at, subscriptions()) for _ in range(10)]
        for stranger in strangers:
            stranger.join(20)
            # What it sent last is answered: all its subscriptions are there.
            stranger.socket.settimeout(20)
            answered(stranger.socket, 2, 1)
        with socket.create_connection(command.place(f"tcp://{at}"), timeout=20) as good:
            good.sendall(puts("a"))
            answered(good, 11, 2)
            for of in "bcd":
                good.sendall(message(11, struct.pack("<IIB", 0, 1, 0) + b"\x01\x02" + text(of * 100_000)))
                answered(good, 11, 1)
        assert peak_bytes(server.pid) - before <= ABOVE
        assert server.poll() is None


class Attacker(threading.Thread):
    """Connects to a server again and again as an attack says, at the lowest priority, and keeps the latest connections open, until it is to end."""

    def __init__(self, uri, attack):
        super().__init__(daemon=True)
        self.uri, self.attack, self.over = uri, attack, threading.Event()
        self.start()

    def run(self):
        command.as_stranger()
        kept = collections.deque()
        for number in itertools.count():
            if self.over.is_set():
                break
            with contextlib.suppress(OSError):
                kept.append(self.attack(self.uri, number))
            if len(kept) > self.attack.keywords["keep"]:
                kept.popleft().close()
        while kept:
            kept.pop().close()

    def end(self):
        self.over.set()
        self.join(30)


def case(name, does, keep=100, **more):
    """An attack with a name, and how many connections of one attacker stay open."""
    return pytest.param(functools.partial(does, keep=keep, **more), id=name)


def rdma(channels=1, addresses=None, **more):
    """The greeting of a client of RDMA."""
    wish = {"link": 1, "channels": channels, "size": 64, "receive_depth": 1, "operation": "send", "mtu": 1024, "inline": 0, "entries": 1}
    wish |= {"send_entries": 1, "receive_entries": 1, "timeout": 16, "reads": 1, "udp": 4791, "address": 4096, "key": 1, **more}
    line = " ".join(f"{name}={value}" for name, value in wish.items())
    address = f"0000:000011:000001:{'0' * 20}ffff7f000001\0"
    return f"hodo {line}\n{address * (channels + 1 if addresses is None else addresses)}".encode()


def says(uri, number, keep, what):
    """Sends bytes, which may be other ones each time, and reads nothing."""
    connection = connect(uri)
    connection.settimeout(5)
    try:
        connection.sendall(what(number) if callable(what) else what)
    except OSError:
        connection.close()
        raise
    return connection


RDMA = [
    case("regions", says, what=rdma(size=1 << 30)),
    case("regions-that-fit", says, what=lambda number: rdma(size=50_000_000 + number)),
    case("queues", says, what=rdma(64, receive_depth=1 << 16, entries=32)),
    case("queues-that-fit", says, what=rdma(20, receive_depth=10_000, entries=10)),
    case("inline", says, what=rdma(64, receive_depth=4000, inline=1 << 16)),
    case("channels", says, what=rdma(4096)),
    case("idle-greetings", says, what=b"", keep=400),
    case("unfinished-greetings", says, what=rdma(4096, addresses=4096)),
]


@pytest.mark.parametrize("attack", RDMA)
def test_a_far_end_of_rdma(attack, tmp_path):
    held_to_its_allowance("roce://127.0.0.1:0", attack, tmp_path, count=4)


def held_to_its_allowance(uri, attack, tmp_path, count):
    """Whatever attackers do, the server has bounded memory, serves who keeps the rules without delay, and serves again when they are gone."""
    command.allow_files(10_000)
    log = tmp_path / "log"
    with command.serving(uri, "--log", str(log), prefix=LIMITED) as server:
        latency_ms(server.uri)
        before = rss_bytes(server.pid)
        attackers = [Attacker(server.uri, attack) for _ in range(count)]
        try:
            during = [latency_ms(server.uri) for _ in range(3)]
            assert rss_bytes(server.pid) - before <= ABOVE
        finally:
            for attacker in attackers:
                attacker.end()
        assert server.poll() is None
        # This machine has others to serve, too.
        assert min(*during, latency_ms(server.uri)) <= 10, during
        return log.read_text(encoding="utf-8")


def test_who_is_ended_for_memory_stands_in_the_log(tmp_path):
    log = held_to_its_allowance("roce://127.0.0.1:0", RDMA[1].values[0], tmp_path, count=1)
    assert ("is closed: " in log or "is refused: " in log) and "bytes of memory are retained for all connections" in log, log[-1000:]


def test_idle_greetings_that_give_their_places_up_are_counted_in_the_log(tmp_path):
    log = held_to_its_allowance("roce://127.0.0.1:0", RDMA[6].values[0], tmp_path, count=1)
    assert "connections that had not greeted have given their places to others" in log, log[-1000:]


STREAM = HEADER.pack(HELLO, 0, 0, 16, 0) + GREETING
ASKS = b"".join(HEADER.pack(RECEIVE, 0, 1, 1000 + number % 2, number) for number in range(100_000))

STREAMS = [
    case("requests", says, what=STREAM + ASKS, keep=40),
    case("never-greets", says, what=b"", keep=1000),
    case("greets-alone", says, what=STREAM, keep=1000),
    case("stages", says, what=STREAM + HEADER.pack(REPORT, 1, 0, 0, 1), keep=1000),
    case("never-ends", says, what=STREAM + HEADER.pack(0xA4, 0, 0, 1 << 30, 0) + bytes(1 << 20), keep=100),
]


@pytest.mark.parametrize("attack", STREAMS)
def test_a_far_end_of_streams(attack, tmp_path):
    held_to_its_allowance("tcp://127.0.0.1:0", attack, tmp_path, count=4)


def proven(uri, number, keep, messages):
    """Greets over UDP as a client does, and sends these messages with its proof."""
    connection = connect(uri)
    connection.settimeout(1)
    connection.send(hello())
    (proof,) = struct.unpack_from("<Q", connection.recv(1 << 16), HEADER.size + len(GREETING))
    connection.send(hello(proof))
    for message in messages(proof):
        connection.send(message)
    return connection


DATAGRAMS = [
    case("greets-without-a-proof", says, what=hello(), keep=1000),
    case("greets-alone", proven, messages=lambda proof: [], keep=1000),
    case("requests", proven, messages=lambda proof: [receive(1024 * number, proof) for number in range(50)]),
]


@pytest.mark.parametrize("attack", DATAGRAMS)
def test_a_far_end_of_datagrams(attack, tmp_path):
    held_to_its_allowance("udp://127.0.0.1:0", attack, tmp_path, count=4)
