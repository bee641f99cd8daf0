"""Whatever strangers make a controller or a builder retain, it stays within its memory, whoever has most is sent away, and events go on.

Each has an address space of 1 GiB, and 256 MiB for its peers. The strangers run at the lowest priority, and have half a processor."""

import contextlib
import pathlib
import re
import socket
import threading
import time

import command
import peer
import pytest

LIMITED = ("prlimit", f"--as={1 << 30}")
ABOVE = 256 << 20
# The farm's own rate, which its nodes could be faster than by a third.
NODES, RATE_PER_S = 4, 300
MIB = 1 << 20


class Stranger(threading.Thread):
    """Sends what it is told to, at the lowest priority, until it is closed or has sent everything. It reads its greeting, one event where it
    is to have that, and nothing else, and stays."""

    def __init__(self, at, role, number, pieces, credits=0):
        super().__init__(daemon=True)
        host, port = at.rsplit(":", 1)
        self.link = peer.Peer.__new__(peer.Peer)
        self.link.socket = socket.socket()
        self.link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.link.socket.settimeout(30)
        self.link.socket.connect((host, int(port)))
        self.role, self.number, self.credits, self.pieces = role, number, credits, pieces
        self.start()

    def run(self):
        command.as_stranger()
        with contextlib.suppress(peer.Gone, OSError):
            self.link.send(peer.hello(self.role, self.number, self.credits))
            self.link.of(peer.HELLO)
            event = self.link.of(peer.EVENT)[1] if self.credits else None
            for piece in self.pieces(event):
                self.link.send(piece)


def unfinished(at):
    """Sources whose first event of 16 MiB does not end."""
    pieces = [peer.message(peer.EVENT, 1 << 40, length=16 * MIB), *[bytes(MIB)] * 15]
    return [Stranger(at, peer.SOURCE, 2 + number, lambda _: pieces) for number in range(62)]


def outputs(at):
    """Nodes whose output of 16 MiB does not end."""
    pieces = lambda event: [peer.token(event, peer.ACCEPTED, length=16 * MIB), *[bytes(MIB)] * 15]  # noqa: E731
    return [Stranger(at, peer.NODE, 2000 + number, pieces, credits=1) for number in range(40)]


def peak_bytes(pid):
    """The most memory that a process has had."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)[1]) << 10


def strike(attack, part):
    """Lets strangers do what they can; returns the memory that it has cost at the most."""
    before = peak_bytes(part.pid)
    strangers = attack(part.at)
    until = time.monotonic() + 30
    for stranger in strangers:
        stranger.join(max(0, until - time.monotonic()))
    return strangers, peak_bytes(part.pid) - before


@pytest.mark.parametrize("attack", [unfinished, outputs], ids=lambda attack: attack.__name__)
def test_a_controller(farm, attack):
    command.allow_files(4096)
    controller = farm.controller("--sources", 64, "--silence", "20s", "--deaths", 20, prefix=LIMITED)
    farm.nodes(controller.at, NODES, "--time", "fixed:10ms", "--accept", "every:10")
    source = farm.source(controller.at, "--size", "uniform:1K..8K", "--rate", RATE_PER_S)
    controller.has_nodes(NODES)
    controller.reaches(0.9 * RATE_PER_S)
    strangers, above = strike(attack, controller)
    assert above <= ABOVE, above
    # This machine has others to serve, too.
    controller.reaches(0.9 * RATE_PER_S)
    ended = controller.metrics()['farm_connections_ended_total{reason="too-much-memory"}']
    if ended:
        controller.said("bytes of memory are retained for all connections")
    assert attack is not unfinished or ended > 0
    for stranger in strangers:
        stranger.link.close()
    controller.has_nodes(NODES)
    assert source.end() == 0, source.text()
    controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    assert controller.end() == 0, controller.text()


def test_a_builder(farm):
    controller = farm.controller()
    farm.nodes(controller.at, NODES, "--time", "fixed:10ms", "--accept", "every:10")
    strange = ["--event-max", "16M", "--behind", "1s", "--patience", "100ms", "--start-without", "1s", "--silence", "20s"]
    builder = farm.builder(controller, 64, *strange, prefix=LIMITED)
    sources = [farm.source(builder.at, "--number", number, "--size", 1000, "--rate", 100) for number in range(2)]
    builder.until(lambda page: page["events"]["answered"] > 50, "events are built")
    strangers, above = strike(unfinished, builder)
    assert above <= ABOVE, above
    builder.said("bytes of memory are retained for all connections")
    assert builder.page()["connections"]["closed_for_memory"] > 0
    for stranger in strangers:
        stranger.link.close()
    before = builder.page()["events"]["answered"]
    builder.until(lambda page: page["events"]["answered"] > before + 100, "events go on")
    for source in sources:
        source.end()
    assert builder.process.poll() is None
