"""Packets that uHAL does not send: status, resending, numbers, and noise. Spoken by sockets, as a hub does."""

import contextlib
import pathlib
import random
import socket
import struct

import pytest
from boards import SCHEMES, board, is_version_2

STATUS = struct.pack(">16I", 0x2000_00F1, *[0] * 15)
# What noise may leave behind: pages of memory that it wrote by chance, and buffers.
RSS_GROWTH_MAX = 32 << 20


class Line:
    """Packets to and from a device, over a datagram socket or in chunks of a stream."""

    def __init__(self, uri):
        self.is_stream = uri.startswith("ipbustcp")
        host, port = uri.split("://", maxsplit=1)[1].rsplit(":", maxsplit=1)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM if self.is_stream else socket.SOCK_DGRAM)
        self.socket.connect((host, int(port)))
        self.socket.settimeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, packet):
        self.socket.sendall((struct.pack(">I", len(packet)) if self.is_stream else b"") + packet)

    def receive(self):
        if not self.is_stream:
            return self.socket.recv(65536)
        (length,) = struct.unpack(">I", self.exactly(4))
        return self.exactly(length)

    def exactly(self, length):
        found = b""
        while len(found) < length:
            part = self.socket.recv(length - len(found))
            assert part, "the device has ended the stream"
            found += part
        return found

    def ask(self, packet):
        self.send(packet)
        return self.receive()

    def status(self):
        """Bytes of a buffer, buffers, the next number, and the bytes of the history."""
        words = struct.unpack(">4I16s8I", self.ask(STATUS))
        assert words[0] == 0x2000_00F1 and words[3] & 0xFF00_00FF == 0x2000_00F0
        return words[1], words[2], words[3] >> 8 & 0xFFFF, words[4]


def control(number, *words, order=">"):
    return struct.pack(f"{order}{1 + len(words)}I", 0x2000_00F0 | number << 8, *words)


@pytest.fixture
def line(device):
    with Line(device.uri) as line:
        yield line


version_2 = pytest.mark.parametrize("scheme", ["ipbusudp-2.0", "ipbustcp-2.0"])


@version_2
def test_a_fresh_device_says_what_it_is(line):
    assert line.status() == (2040, 16, 1, bytes(15) + b"\x01")
    assert line.status()[3] == bytes(14) + b"\x01\x03"


@version_2
@pytest.mark.parametrize("order", [">", "<"])
def test_a_numbered_packet_is_done_once_and_its_reply_kept(line, order):
    add = control(1, 0x2000_015F, 0x40, 5, order=order)
    first = line.ask(add)
    assert first == control(1, 0x2000_0150, 0, order=order)
    line.send(add)
    assert line.ask(struct.pack(">I", 0x2000_01F2)) == first
    assert line.ask(control(0, 0x2000_010F, 0x40, order=order)) == control(0, 0x2000_0100, 5, order=order)
    assert line.status()[2:] == (2, bytes(11) + b"\x01\x02\x05\x04\x02")


@version_2
def test_the_numbers_go_round_without_zero(line):
    for number in range(1, 0x1_0000):
        line.send(control(number))
        assert line.receive() == control(number)
    assert line.status()[2] == 1
    assert line.ask(control(1)) == control(1)


@version_2
def test_the_last_replies_are_kept_and_no_others(line):
    for number in range(1, 21):
        line.ask(control(number, 0x2000_010F, number))
    for number in range(1, 21):
        line.send(struct.pack(">I", 0x2000_00F2 | number << 8))
    for number in range(5, 21):
        assert line.receive() == control(number, 0x2000_0100, 0)
    assert line.status()[3] == b"\x04" * 16, "the status is asked for after them"


@version_2
def test_a_gap_stops_what_follows(line):
    for number in (1, 3, 2, 3):
        line.send(control(number))
    assert [line.receive() for _ in range(3)] == [control(1), control(2), control(3)]


def catch_up(uri, request):
    """Waits until the device has answered behind the noise. What a full buffer refuses is lost, and uHAL never sends it again."""
    with Line(uri) as line:
        line.socket.settimeout(0.2)
        for _ in range(300):
            line.send(request)
            with contextlib.suppress(TimeoutError):
                return line.receive()
    raise AssertionError("the device is deaf")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_noise_is_outlived(device, scheme):
    def rss_bytes():
        status = pathlib.Path(f"/proc/{device.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) * 1024

    hardware = board(device.uri)
    hardware.getClient().write(0x10, 5)
    hardware.dispatch()
    before, draw = rss_bytes(), random.Random(1)
    first = bytes.fromhex("200000F0" if is_version_2(scheme) else "100000F8")
    for round_ in range(300):
        with Line(device.uri) as line:
            try:
                for _ in range(20):
                    noise = draw.randbytes(draw.randrange(1, 1400))
                    line.send(noise if round_ % 2 else first + noise)
                if line.is_stream:
                    line.socket.sendall(noise)
            except (BrokenPipeError, ConnectionError):
                pass
    catch_up(device.uri, STATUS if is_version_2(scheme) else first)
    word = hardware.getClient().read(0x10)
    hardware.dispatch()
    assert word.valid() and device.poll() is None
    assert rss_bytes() - before < RSS_GROWTH_MAX
