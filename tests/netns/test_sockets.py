"""The options of sockets on the wire: every packet of both directions, as a socket of the link layer finds them on loopback."""

import contextlib
import os
import shutil
import socket
import tempfile
import threading

import command
import dpkt
import pytest

ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD
EF, TTL, MSS = 46, 9, 600
RUN = ["--test", "latency", "--sizes", "64", "--duration", "50ms", "--warmup", "10ms", "--repeat", "1", "--quiet"]
MARKS = ["--dscp", "ef", "--ttl", str(TTL)]


class Capture:
    """The packets from and to a port, until the block ends."""

    def __init__(self, port, is_ipv6):
        self.port, self.is_ipv6 = port, is_ipv6
        self.packets = []
        kind = ETH_P_IPV6 if is_ipv6 else ETH_P_IP
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(kind))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.socket.bind(("lo", kind))
        self.socket.settimeout(0.1)
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.collect)
        self.thread.start()

    def collect(self):
        while True:
            with contextlib.suppress(TimeoutError):
                packet = self.socket.recv(1 << 16)
                ip = dpkt.ip6.IP6(packet) if self.is_ipv6 else dpkt.ip.IP(packet)
                if self.port in (getattr(ip.data, "sport", None), getattr(ip.data, "dport", None)):
                    self.packets.append(ip)
                continue
            if self.is_over.is_set():
                return

    def end(self):
        self.is_over.set()
        self.thread.join()
        self.socket.close()


@contextlib.contextmanager
def captured(port, is_ipv6=False):
    capture = Capture(port, is_ipv6)
    try:
        yield capture.packets
    finally:
        capture.end()


def is_of_a_socket(ip):
    """Not of the kernel alone, which answers for connections that have ended."""
    return isinstance(ip.data, dpkt.udp.UDP) or bool(ip.data.data) or bool(ip.data.flags & dpkt.tcp.TH_SYN)


@pytest.mark.parametrize("version", ["-4", "-6"])
@pytest.mark.parametrize("link", ["tcp", "udp", "ipbusudp-2.0", "ipbustcp-2.0", "pva", "farm", "ssdtp2"])
def test_every_packet_of_both_sides_is_marked(link, version):
    with command.serving(link, *MARKS, version) as server:
        _, port = command.place(server.uri)
        with captured(port, version == "-6") as packets:
            command.bench(server.uri, *RUN, *MARKS, version)
    found = [ip for ip in packets if is_of_a_socket(ip)]
    assert {ip.data.dport == port for ip in found} == {True, False}, "packets of both directions"
    if version == "-6":
        assert {(ip.fc >> 2, ip.hlim) for ip in found} == {(EF, TTL)}
    else:
        assert {(ip.tos >> 2, ip.ttl) for ip in found} == {(EF, TTL)}


def test_an_adapter_in_software_marks_its_packets():
    port = command.free_port(socket.SOCK_DGRAM)
    with command.serving(f"roce://127.0.0.1:0?udp-port={port}", *MARKS) as server, captured(port) as packets:
        (one,) = command.bench(server.uri.split("?")[0], *RUN, *MARKS)
    assert one["operations"] > 0 and one["connection"] == {"dscp": EF, "ttl": TTL}
    assert {ip.data.dport == port for ip in packets} == {True, False}, "packets of both directions"
    assert {(ip.tos >> 2, ip.ttl) for ip in packets} == {(EF, TTL)}


def test_nothing_is_marked_unasked():
    with command.serving("tcp") as server:
        _, port = command.place(server.uri)
        with captured(port) as packets:
            command.bench(server.uri, *RUN)
    assert {(ip.tos >> 2, ip.ttl) for ip in packets if is_of_a_socket(ip)} == {(0, 64)}


@pytest.mark.parametrize("asked_of", ["near", "far"])
def test_both_ends_keep_the_segments_that_one_asks_for(asked_of):
    near, far = ([], ["--mss", MSS]) if asked_of == "far" else (["--mss", MSS], [])
    with command.serving("tcp", *far) as server:
        _, port = command.place(server.uri)
        with captured(port) as packets:
            (one,) = command.bench(server.uri, *RUN, *near)
    offers = [dict(dpkt.tcp.parse_opts(ip.data.opts)) for ip in packets if ip.data.flags & dpkt.tcp.TH_SYN]
    assert MSS in {int.from_bytes(offer[dpkt.tcp.TCP_OPT_MSS], "big") for offer in offers}
    assert 500 <= one["connection"]["mss"] <= MSS
    assert ("mss_asked" in one["connection"]) == (asked_of == "near")


def test_a_user_may_choose_an_interface_or_is_told_what_to_do(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        # The program stands where another user may read it: a home, with all that is built there, is often closed to others.
        os.chmod(folder, 0o755)
        monkeypatch.setattr(command, "HODO", shutil.copy(command.HODO, folder))
        done = command.hodo("bench", "tcp", *RUN, "--device", "lo", prefix=["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
    # Kernels from 5.7 on let anybody choose the first one of a socket.
    assert done.returncode == 0 or (done.returncode == 2 and "CAP_NET_RAW" in done.stderr), done.stderr
