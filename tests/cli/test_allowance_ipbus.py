"""Whatever strangers make an IPbus device, a hub or a SpaceWire bridge retain, it stays within its memory, and a client that keeps the rules is
served without delay.

Each process has an address space of 1 GiB. The strangers run at the lowest priority, and have half a processor."""

import contextlib
import socket
import struct
import threading

import command
import pytest
from test_allowance import ABOVE, LIMITED, Stranger, latency_ms
from test_hub import chunk, packet
from test_servers import rss_bytes

STATUS = struct.pack(">16I", 0x200000F1, *[0] * 15)
# A packet whose reply has 1,392 bytes.
LONG_READ = struct.pack("<5I", 0x200000F0, 0x2000FF0F, 0, 0x20015A0F, 0)
# A packet of 1,032 bytes.
LONG_WRITE = packet(1, 0, *[7] * 255)


def framed(body):
    return struct.pack(">I", len(body)) + body


def best(*latencies):
    """The best of several, for this machine has others to serve, too."""
    return min(latencies)


class Crowd(threading.Thread):
    """Many connections that send the same bytes once, at the lowest priority, and read nothing. They stay."""

    def __init__(self, at, count, data):
        super().__init__(daemon=True)
        self.at, self.count, self.data, self.sockets = at, count, data, []
        self.start()

    def run(self):
        command.as_stranger()
        for _ in range(self.count):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(self.at, timeout=10)
                self.sockets.append(connection)
                connection.setblocking(False)
                connection.send(self.data)

    def close(self):
        self.join(60)
        for connection in self.sockets:
            connection.close()


def test_status_requests_of_21_000_addresses_keep_nobody_out_of_a_device():
    """Each address was a client for a minute, and 20,000 of them were all that there is room for."""
    with command.serving("ipbusudp-2.0://127.0.0.1:0", prefix=LIMITED) as device:
        before, at = rss_bytes(device.pid), command.place(device.uri)
        for number in range(21_000):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                stranger.bind((f"127.1.{number >> 8}.{number & 0xFF}", 0))
                stranger.sendto(STATUS, at)
                if number % 64 == 63:
                    # So that no request is lost in the device's own queue.
                    stranger.settimeout(0.2)
                    with contextlib.suppress(TimeoutError):
                        stranger.recv(64)
        assert best(latency_ms(device.uri), latency_ms(device.uri)) <= 10
        assert rss_bytes(device.pid) - before <= ABOVE


class Flood(threading.Thread):
    """Sends datagrams as fast as it can, at the lowest priority, and reads nothing."""

    def __init__(self, uri, datagrams):
        super().__init__(daemon=True)
        self.at, self.datagrams, self.is_over = command.place(uri), datagrams, False
        self.start()

    def run(self):
        command.as_stranger()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while not self.is_over:
                for datagram in self.datagrams:
                    stranger.sendto(datagram, self.at)

    def end(self):
        self.is_over = True
        self.join(10)


def test_a_device_is_flooded():
    """Over datagrams whose replies nobody reads. While it lasts, the kernel's queue is as full as it gets."""
    with command.serving("ipbusudp-2.0://127.0.0.1:0", prefix=LIMITED) as device:
        before = rss_bytes(device.pid)
        flood = Flood(device.uri, [STATUS, LONG_READ])
        latency_ms(device.uri)
        flood.end()
        assert rss_bytes(device.pid) - before <= ABOVE
        assert best(latency_ms(device.uri), latency_ms(device.uri)) <= 10
        assert device.poll() is None


def test_a_device_whose_packets_take_their_time_is_flooded():
    with command.serving("ipbusudp-2.0://127.0.0.1:0?delay=10s", prefix=LIMITED) as device:
        before, (host, port) = rss_bytes(device.pid), command.place(device.uri)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.connect((host, port))
            for _ in range(300_000):
                stranger.send(STATUS[:8])
        assert rss_bytes(device.pid) - before <= ABOVE
        assert device.poll() is None


def unread():
    """Reads of 200 MB, of which nothing is taken."""
    return [framed(LONG_READ) * 1000] * 150


def unfinished():
    return [struct.pack(">I", 2000) + bytes(1999)]


@pytest.mark.parametrize("attack", [unread, unfinished], ids=lambda attack: attack.__name__)
def test_a_device_over_streams(attack):
    with command.serving("ipbustcp-2.0://127.0.0.1:0", prefix=LIMITED) as device:
        before = rss_bytes(device.pid)
        at = device.uri.removeprefix("ipbustcp-2.0://")
        strangers = [Stranger(at, attack()) for _ in range(8)]
        during = [latency_ms(device.uri) for _ in range(2)]
        for stranger in strangers:
            stranger.join(20)
        assert rss_bytes(device.pid) - before <= ABOVE
        assert best(*during, latency_ms(device.uri)) <= 10, during
        assert device.poll() is None


def test_chunks_that_do_not_end_cost_a_device_bounded_memory():
    with command.serving("ipbustcp-2.0://127.0.0.1:0?buffer_bytes=65507", prefix=LIMITED) as device:
        before = rss_bytes(device.pid)
        crowd = Crowd(command.place(device.uri), 5000, struct.pack(">I", 65_000) + bytes(64_000))
        crowd.join(60)
        assert best(latency_ms(device.uri), latency_ms(device.uri)) <= 10
        assert rss_bytes(device.pid) - before <= ABOVE
        crowd.close()


@contextlib.contextmanager
def hub():
    """A hub with a device behind it, and a board that never answers."""
    with (
        command.serving("ipbusudp-2.0://127.0.0.1:0") as device,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent,
        command.hub(prefix=LIMITED) as hub,
    ):
        silent.bind(("127.0.0.1", 0))
        host, port = hub.at.rsplit(":", 1)
        hub.place, hub.silent = (host, int(port)), silent.getsockname()[1]
        hub.device = command.place(device.uri)[1]
        hub.uri = f"chtcp-2.0://{hub.at}?target={device.uri.removeprefix('ipbusudp-2.0://')}"
        yield hub


def chunks_without_end(_):
    """64 KiB each, of thousands of connections."""
    return 4000, struct.pack(">I", 65_000) + bytes(64_000)


def for_a_silent_board(hub):
    """What waits for a board that never answers."""
    return 1000, b"".join(chunk(*[(hub.silent, LONG_WRITE)] * 40) for _ in range(12))


def for_a_board(hub):
    """What a board that answers has to do first."""
    return 50, b"".join(chunk(*[(hub.device, LONG_READ)] * 40) for _ in range(12))


def of_nothing(hub):
    """Answers of many small packets, each refused at once."""
    return 1000, b"".join(chunk(*[(hub.silent, b"\xff" * 8)] * 120) for _ in range(4))


HUB_ATTACKS = [chunks_without_end, for_a_silent_board, for_a_board, of_nothing]


@pytest.mark.parametrize("attack", HUB_ATTACKS, ids=lambda attack: attack.__name__)
def test_a_hub(attack):
    with hub() as served:
        latency_ms(served.uri)
        before = rss_bytes(served.pid)
        crowd = Crowd(served.place, *attack(served))
        during = [latency_ms(served.uri) for _ in range(2)]
        crowd.join(60)
        during += [latency_ms(served.uri) for _ in range(2)]
        assert rss_bytes(served.pid) - before <= ABOVE
        assert best(*during) <= 10, during
        assert served.poll() is None
        crowd.close()


def source(length):
    """A request for packets, and one that is sent back."""
    body = bytes([34, 0xFF, 0xFF]) + struct.pack(">I", length)
    return ssdtp2(body)


def ssdtp2(body, length=None):
    return bytes(2) + (len(body) if length is None else length).to_bytes(10, "big") + body


SPACEWIRE_ATTACKS = {
    "unfinished": (200, ssdtp2(b"\x21" + bytes(1_000_000), 16_000_000)),
    "sources": (200, source(1_000_000) * 12_000),
    "echoes": (200, ssdtp2(b"\x21" + bytes(500_000)) * 4),
}


@pytest.mark.parametrize("attack", SPACEWIRE_ATTACKS)
def test_a_far_end_of_spacewire(attack):
    with command.serving("ssdtp2://127.0.0.1:0", prefix=LIMITED) as served:
        latency_ms(served.uri)
        before = rss_bytes(served.pid)
        crowd = Crowd(command.place(served.uri), *SPACEWIRE_ATTACKS[attack])
        during = [latency_ms(served.uri) for _ in range(2)]
        crowd.join(60)
        assert rss_bytes(served.pid) - before <= ABOVE
        assert best(*during, latency_ms(served.uri)) <= 10, during
        assert served.poll() is None
        crowd.close()
