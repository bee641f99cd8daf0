"""The hub's trace of packets, as an independent reader of pcapng finds it."""

import re
import signal
import socket
import struct
import time

import command
import dpkt
import pytest
import test_hub as hubs

PACKET, IN, OUT = 6, 1, 2
COMMENT, FLAGS = 1, 2
# A board in Python is not in a hurry.
UNHURRIED = ["--late", "50ms", "--patience", "5s"]


def packets(path):
    """The packets of a trace: time in ns, direction, what is said of it, and what IP carries."""
    with path.open("rb") as file:
        reader = dpkt.pcapng.Reader(file)
        assert reader.datalink() == 101
        assert len(list(reader)) > 0, "the reader reads it to its end"
    found, rest = [], path.read_bytes()
    while rest:
        kind, length = struct.unpack("<2I", rest[:8])
        if kind == PACKET:
            block = dpkt.pcapng.EnhancedPacketBlockLE(rest[:length])
            said = {option.code: option.data for option in block.opts}
            comment = said[COMMENT].decode() if COMMENT in said else ""
            when = block.ts_high << 32 | block.ts_low
            found.append((when, struct.unpack("<I", said[FLAGS])[0], comment, dpkt.ip.IP(block.pkt_data)))
        rest = rest[length:]
    return found


def ends(ip):
    return socket.inet_ntoa(ip.src), ip.data.sport, socket.inet_ntoa(ip.dst), ip.data.dport


@pytest.fixture
def board():
    board = hubs.Board()
    yield board
    board.close()


def test_a_trace_holds_both_sides_with_times_directions_and_addresses(board, tmp_path):
    trace = tmp_path / "hub.pcapng"
    before = time.time_ns()
    with hubs.running("--trace", trace, *UNHURRIED) as hub, hub.connect() as client:
        read = hubs.packet(hubs.READ, 0x10, count=2)
        request = hubs.chunk((board.port, read))
        client.sendall(request)
        answer = hubs.answers(client)
        assert hubs.ask(client, (1, read))[0][0] == hubs.NO_STATUS
        at, here = client.getpeername(), client.getsockname()
        assert "0 are missing" in hub.page("/stats")
        assert "ipbus_hub_trace_lost_packets_total 0" in hub.page("/metrics")
        hub.process.terminate()
        assert hub.process.wait(10) == 0
    found = packets(trace)
    times = [when for when, *_ in found]
    assert times == sorted(times) and before <= times[0] <= times[-1] <= time.time_ns()
    chunks = [(way, ip) for _, way, _, ip in found if ip.p == dpkt.ip.IP_PROTO_TCP]
    assert [way for way, _ in chunks] == [IN, OUT, IN, OUT]
    assert ends(chunks[0][1]) == (*here, *at) and ends(chunks[1][1]) == (*at, *here)
    assert chunks[0][1].data.data == request and answer[0][1] in chunks[1][1].data.data
    # What the client sends next begins where this ends, and acknowledges what the hub has sent.
    assert chunks[2][1].data.seq == chunks[1][1].data.ack == 1 + len(request)
    assert chunks[2][1].data.ack == 1 + len(chunks[1][1].data.data)
    datagrams = [(way, ip) for _, way, _, ip in found if ip.p == dpkt.ip.IP_PROTO_UDP]
    ours = [(way, ip) for way, ip in datagrams if board.port in (ip.data.sport, ip.data.dport)]
    # Its status, whether it takes that number, and the read; each again where the board was late.
    assert [way for way, _ in ours].count(IN) >= 3 and ours[0][0] == OUT
    replies = [bytes(ip.data.data) for way, ip in ours if way == IN]
    assert ends(ours[0][1])[2:] == ends(ours[-1][1])[:2] == ("127.0.0.1", board.port)
    assert answer[0][1][8:] in [reply[8:] for reply in replies], "the ids are those of the hub"
    remarks = "; ".join(comment for _, _, comment, _ in found)
    assert f"127.0.0.1:{board.port} answers" in remarks and "127.0.0.1:1, in version 2.0" in remarks


def test_the_command_of_the_page(board, tmp_path):
    page = (command.ROOT / "docs/hub.md").read_text(encoding="utf-8")
    (options,) = re.findall(r"^    hodo hub (--trace .*)$", page, re.MULTILINE)
    with hubs.running(*options.split(), cwd=tmp_path) as hub, hub.connect() as client:
        hubs.ask(client, (board.port, hubs.packet(hubs.READ, 0x10, count=1)))
    assert {ip.p for _, _, _, ip in packets(tmp_path / "hub.pcapng")} == {dpkt.ip.IP_PROTO_TCP, dpkt.ip.IP_PROTO_UDP}


def test_every_checksum_is_right(board, tmp_path):
    trace = tmp_path / "hub.pcapng"
    with hubs.running("--trace", trace) as hub, hub.connect() as client:
        for count in range(1, 40):
            hubs.ask(client, (board.port, hubs.packet(hubs.READ, 0x10, count=count)))
    for _, _, _, ip in packets(trace):
        told = ip.sum, ip.data.sum
        ip.sum = ip.data.sum = 0
        again = dpkt.ip.IP(bytes(ip))
        assert (again.sum, again.data.sum) == told


def test_a_signal_pauses_it_and_files_stay_under_their_bound(board, tmp_path):
    trace = tmp_path / "hub.pcapng"
    options = ["--trace", trace, "--trace-size", "1M", "--trace-paused", *UNHURRIED]
    with hubs.running(*options) as hub, hub.connect() as client:
        request = (board.port, hubs.packet(hubs.READ, 0x10, count=200))
        hubs.ask(client, request)
        assert "0 packets in the trace" in hub.page("/stats")
        hub.process.send_signal(signal.SIGUSR1)
        command.wait_until(lambda: "resumed" in hub.process.stdout.readline(), "the trace is resumed")
        for _ in range(400):
            hubs.ask(client, request)
        hub.process.send_signal(signal.SIGUSR1)
        command.wait_until(lambda: "paused" in hub.process.stdout.readline(), "the trace is paused")
        hubs.ask(client, request)
    older = tmp_path / "hub.pcapng.1"
    assert trace.stat().st_size <= 1 << 19 and older.stat().st_size <= 1 << 19
    assert packets(older)[-1][0] <= packets(trace)[0][0]


def test_a_hub_whose_trace_cannot_be_written_goes_on(board, tmp_path):
    nowhere = ["--listen", "127.0.0.1:0", "--no-metrics", "--trace", tmp_path / "none/hub.pcapng"]
    command.refused("hub", *nowhere, status=2, says=["--trace", "none", "written"])
    command.refused("hub", "--trace", tmp_path / "hub", "--trace-size", "1K", status=2, says=["1M"])
    trace = tmp_path / "hub.pcapng"
    limited = ["env", "--ignore-signal=XFSZ", "prlimit", f"--fsize={64 << 10}", "--"]
    with hubs.running("--trace", trace, *UNHURRIED, prefix=limited) as hub, hub.connect() as client:
        request = (board.port, hubs.packet(hubs.READ, 0x10, count=250))
        asked = 0
        while "the trace has ended" not in hub.page("/stats"):
            assert hubs.ask(client, request)[0][0] == 0
            asked += 1
            assert asked < 5000, "its disk is full"
        assert hubs.ask(client, request)[0][0] == 0
        assert re.search(r"^ipbus_hub_trace_lost_packets_total [1-9]", hub.page("/metrics"), re.MULTILINE)
        assert any("the trace has ended" in line for line in hub.process.stdout)
    assert trace.stat().st_size <= 64 << 10


@pytest.mark.parametrize("scheme", ["ipbusudp-2.0", "ipbustcp-2.0", "ipbusudp-1.3"])
def test_a_device_in_software_has_one_too(scheme, tmp_path):
    trace = tmp_path / "device.pcapng"
    with command.serving(f"{scheme}://127.0.0.1:0", "--trace", trace) as device:
        _, port = command.place(device.uri)
        read = command.hodo("ipbus", "read", device.uri, "0x10")
        assert read.returncode == 0, read.stderr
        device.terminate()
        assert device.wait(10) == 0
    found = packets(trace)
    wanted = dpkt.ip.IP_PROTO_UDP if "udp" in scheme else dpkt.ip.IP_PROTO_TCP
    assert {ip.p for *_, ip in found} == {wanted}
    # All that came, from the first packet on, and all that went back.
    assert all(ends(ip)[1 if way == OUT else 3] == port for _, way, _, ip in found)
    assert [way for _, way, _, _ in found] == [IN, OUT] * (len(found) // 2)
    command.refused("serve", "tcp", "--trace", trace, status=2, says=["--trace", "--threads 1"])
    command.refused("serve", "unix", "--trace", trace, status=2, says=["--trace", "Unix"])
