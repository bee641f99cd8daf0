"""`hodo pva serve` and `hodo pva monitor` in a day's worth of foreign UDP traffic in a minute's time: little memory, few answers, and they go on."""

import contextlib
import os
import random
import socket
import struct
import threading
import time

import command
import pva
import pytest
from test_hardship import MIB, message, metric, rss, text

# Four datagrams a second, as on a busy subnet, are 345,600 a day: in a minute, so many a second. The test sends them for a part of it.
A_SECOND = 5760
SECONDS = 8
# Whether searches ask for an answer in any case, and whether they were sent to one host alone.
FLAGS = [0x00, 0x01, 0x80, 0x81]


def search(sequence, names, flags=0x01):
    """A search of somebody for names that nobody here has, with a socket of its own to be answered at."""
    front = struct.pack("<IB3x16sH", sequence, flags, bytes(10) + b"\xff\xff" + bytes(4), 0) + b"\x01" + text("tcp")
    channels = b"".join(struct.pack("<I", number) + text(name) for number, name in enumerate(names))
    return message(3, front + struct.pack("<H", len(names)) + channels)


def beacon(number):
    body = struct.pack("<12sBBH16sH", number.to_bytes(12, "big"), 0, number % 256, 0, bytes(10) + b"\xff\xff\x7f\0\0\1", 5075)
    return struct.pack("<BBBBI", 0xCA, 2, 0x40, 0, len(body) + 5) + body + text("tcp") + b"\xff"


def foreign(chance):
    """A datagram of some kind: searches of others, beacons of thousands of servers, other protocols', and damaged ones."""
    kind = chance.randrange(4)
    if kind == 0:
        names = [f"somewhere:{chance.randrange(1000)}:{at}" for at in range(chance.randrange(20))]
        return search(chance.getrandbits(32), names, chance.choice(FLAGS))
    if kind == 1:
        return beacon(chance.randrange(100_000))
    if kind == 2:
        return chance.randbytes(chance.randrange(1400))
    damaged = bytearray(search(1, ["x:y:z"] * 10))
    damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def flood(port, count, a_second):
    """Sends datagrams to everybody at a port at a pace, and returns the bytes that came back and went there."""
    chance = random.Random(11)
    with socket.socket(type=socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        stranger.setblocking(False)
        went = came = 0
        began = time.monotonic()
        for number in range(count):
            datagram = foreign(chance)
            went += len(datagram)
            stranger.sendto(datagram, ("127.255.255.255", port))
            if number % 100 == 99:
                time.sleep(max(0, began + number / a_second - time.monotonic()))
                with contextlib.suppress(BlockingIOError):
                    while True:
                        came += len(stranger.recv(65536))
    return came, went


def flooded(tmp_path):
    """Floods a server and a client that monitors one of its PVs, asserts all but how busy it was, and returns that: the server's share of a processor."""
    file = tmp_path / "pvs.toml"
    file.write_text('[[pv]]\nname = "COUNT"\nsource = "ramp"\nevery = "10ms"\nto = 1e9\n')
    port = pva.udp_port()
    with pva.serving(file, port=port) as server:
        settings = {"EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_BROADCAST_PORT": str(port)}
        with command.started("pva", "monitor", "-t", "COUNT", "ABSENT", env={**os.environ, **settings}) as monitor:
            lines = []
            threading.Thread(target=lambda: lines.extend(monitor.stdout), daemon=True).start()
            command.wait_until(lambda: len(lines) > 10, "updates come")
            # The client remembers the beacons of 20,000 servers at most, the server nothing.
            flood(port, A_SECOND, A_SECOND)
            before = rss(server), rss(monitor)
            cpu, began = command.cpu_s(server.pid), time.monotonic()
            came, went = flood(port, SECONDS * A_SECOND, A_SECOND)
            share = (command.cpu_s(server.pid) - cpu) / (time.monotonic() - began)
            grown = [rss(process) - at for process, at in zip((server, monitor), before, strict=True)]
            seen = len(lines)
            command.wait_until(lambda: len(lines) > seen + 10, "updates come still")
        assert came < went / 10, f"{came} bytes for {went}"
        assert grown[0] < 8 * MIB and grown[1] < 32 * MIB, [f"{one / MIB:.0f} MiB" for one in grown]
        assert metric(server, "pva_server_foreign_datagrams_total") > A_SECOND
    return share


def test_a_days_foreign_traffic_costs_little_memory_and_gets_few_answers(tmp_path):
    flooded(tmp_path)


@pytest.mark.long("timing")
def test_a_days_foreign_traffic_costs_little_time(tmp_path):
    share = flooded(tmp_path)
    assert share < 0.5, f"{100 * share:.0f} % of a processor"
