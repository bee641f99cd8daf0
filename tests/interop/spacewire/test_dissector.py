"""The Wireshark dissector: packets of the standard, cut at any place of a TCP stream, are shown as what they are; no bytes make it fail."""

import json
import pathlib
import random
import shutil
import struct
import subprocess

import command
import pytest
import spacewire

SCRIPT = pathlib.Path(__file__).parents[3] / "packaging" / "wireshark" / "spacewire.lua"

# Patterns of ECSS-E-ST-50-52C, annex A.
WRITE = bytes.fromhex("fe016c00670000 00a0000000000010 9f 0123456789abcdef1011121314151617 56")
WRITE_REPLY = bytes.fromhex("67012c00fe0000ed")
READ = bytes.fromhex("fe014c0067000100a0000000000010c9")
READ_REPLY = bytes.fromhex("67010c00fe000100000010 6d 0123456789abcdef1011121314151617 56")
READ_WITH_PATHS = bytes.fromhex("11020304 fe014d00 99aabbcc 67000300a0000010000010f7")


def crc_draft_e(data):
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc


def ssdtp2(body, flag=0):
    return bytes([flag, 0]) + len(body).to_bytes(10, "big") + body


def tcp_segment(source, target, number, payload):
    """Returns an Ethernet frame with a TCP segment; checksums are left out, as an offloading host does."""
    tcp = struct.pack("!HHIIBBHHH", source, target, number, 1, 5 << 4, 0x18, 65535, 0, 0) + payload
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, 6, 0, b"\x7f\0\0\x01", b"\x7f\0\0\x01")
    return bytes(12) + b"\x08\x00" + ip + tcp


def capture(path, linktype, records):
    path.write_bytes(
        struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 20, linktype)
        + b"".join(struct.pack("<IIII", 1, 10 * at, len(record), len(record)) + record for at, record in enumerate(records))
    )
    return path


def segments(stream, cuts, source=40000, target=10030):
    """Returns the segments of a stream that is cut at these places."""
    edges = [0, *sorted(set(cuts)), len(stream)]
    return [tcp_segment(source, target, 1 + a, stream[a:b]) for a, b in zip(edges, edges[1:], strict=False) if b > a]


def tshark(path, *options):
    tool = shutil.which("tshark")
    assert tool, "tshark is missing: install Debian's package tshark"
    done = subprocess.run(
        [tool, "-n", "-X", f"lua_script:{SCRIPT}", "-r", path, *options], capture_output=True, text=True, timeout=60, check=True
    )
    for text in (done.stdout, done.stderr):
        assert "Lua Error" not in text and "lua:" not in text.lower(), text
    return done.stdout


def fields(path, *names):
    """Returns the values of fields in all packets, in their order."""
    asked = [part for name in names for part in ("-e", name)]
    rows = [row.split("\t") for row in tshark(path, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,", *asked).splitlines()]
    return [",".join(value for row in rows if (value := row[at])) for at in range(len(names))]


@pytest.mark.parametrize("seed", range(4))
def test_packets_are_found_wherever_the_stream_is_cut(tmp_path, seed):
    stream = ssdtp2(READ) + ssdtp2(b"\x2a\0", 0x31) + ssdtp2(WRITE) + ssdtp2(READ_WITH_PATHS) + ssdtp2(b"\xfe\xff\1\2", 1)
    cuts = random.Random(seed).sample(range(len(stream)), [0, 3, 20, len(stream) - 1][seed])
    path = capture(tmp_path / "a.pcap", 1, segments(stream, cuts))
    flags, transactions, addresses, states, time_codes, paths = fields(
        path, "ssdtp2.flag", "rmap.transaction", "rmap.address", "rmap.header_crc.state", "ssdtp2.time_code", "spw.path"
    )
    assert flags == "0x00,0x31,0x00,0x00,0x01"
    assert transactions == "1,0,3"
    assert [int(address, 16) for address in addresses.split(",")] == [0xA0000000, 0xA0000000, 0xA0000010]
    assert states == "right,right,right"
    assert time_codes == "0x2a"
    assert paths.replace(" ", "") == "11020304"


def test_replies_find_their_commands(tmp_path):
    records = [
        tcp_segment(40000, 10030, 1, ssdtp2(READ)),
        tcp_segment(40000, 10030, 1 + len(ssdtp2(READ)), ssdtp2(WRITE)),
        tcp_segment(10030, 40000, 1, ssdtp2(WRITE_REPLY) + ssdtp2(READ_REPLY)),
    ]
    path = capture(tmp_path / "a.pcap", 1, records)
    # Twice, because the first pass knows no later packets.
    replies, commands, took, status = fields(path, "rmap.reply_in", "rmap.command_in", "rmap.time", "rmap.status")
    assert commands == "2,1" and status == "0,0"
    assert [float(time) for time in took.split(",")] == pytest.approx([10e-6, 20e-6], abs=2e-6)
    two_passes = tshark(path, "-2", "-T", "fields", "-e", "rmap.reply_in").split()
    assert two_passes == ["3", "3"]


def test_damage_is_shown(tmp_path):
    draft_e = READ[:-1] + bytes([crc_draft_e(READ[:-1])])
    damaged = [READ[:-1] + b"\0", WRITE[:-1] + b"\0", READ_REPLY[:-3], WRITE + b"\1", bytes.fromhex("67012c03fe0000") + b"\0", draft_e]
    path = capture(tmp_path / "a.pcap", 1, segments(b"".join(map(ssdtp2, damaged)), []))
    states, data_states = fields(path, "rmap.header_crc.state", "rmap.data_crc.state")
    assert states == "wrong,right,right,right,wrong,right (draft E)"
    assert data_states == "wrong,wrong,wrong"
    shown = tshark(path, "-V")
    for words in ("Wrong CRC", "ends too early", "more data than its length", "refused the command"):
        assert words in shown, words


def test_impossible_frames_end_the_stream(tmp_path):
    for stream, words in [
        (bytes([0x77]) + bytes(30), "Unknown flag"),
        (bytes([0, 0, 1]) + bytes(30), "Impossible length"),
        (bytes([0, 0]) + bytes(6) + b"\xff\xff\xff\xff" + bytes(4), "Impossible length"),
    ]:
        path = capture(tmp_path / "a.pcap", 1, segments(stream, []))
        assert words in tshark(path, "-V")


def test_gresb_in_both_directions(tmp_path):
    there = b"\0" + len(READ).to_bytes(3, "big") + READ + b"\x03\0\0\x01\x05"
    back = b"\0" + len(READ_REPLY).to_bytes(3, "big") + READ_REPLY + b"\x80\0\0\x02\xfe\x09"
    records = [*segments(there, [5], target=3002), *segments(back, [9], source=3003, target=40001)]
    path = capture(tmp_path / "a.pcap", 1, records)
    links, transactions, time_codes, eep = fields(path, "gresb.link", "rmap.transaction", "gresb.time_code", "gresb.eep")
    assert (links, transactions, time_codes) == ("1,1,1,1", "1,1", "0x05")
    assert eep in ("0,1", "False,True")


def test_captures_of_spacewire_itself(tmp_path):
    packet = bytes.fromhex("fe02 00 07 0823c005 0003 01020304")
    records = [bytes([0, 0, 0, 0]) + READ, bytes([0, 1, 2, 1, 0x2A]), bytes([0, 0, 1, 1]) + packet, bytes([0, 0, 0, 0]), bytes([9, 0, 0, 0, 1])]
    path = capture(tmp_path / "a.pcap", 147, records)
    transactions, times, apid, ends = fields(path, "rmap.transaction", "spw.time", "spw_ptp.apid", "spw.end")
    assert (transactions, times, apid, ends) == ("1", "42", "35", "0,1,0")
    shown = tshark(path, "-V")
    assert "has no byte" in shown and "not whole" in shown and "version of this record" in shown


def test_a_bridge_records_what_tshark_shows(tmp_path):
    file = tmp_path / "links.pcapng"
    with spacewire.bridge(tmp_path, "--record", file, "--record-characters") as bridge:
        sniffed = tmp_path / "port.pcapng"
        with command.started("spacewire", "sniff", bridge.second, "-n", 2, "--for", "20s", "--record", sniffed, stderr=None) as sniffer:
            command.wait_until(lambda: any("second" in line for line in bridge.log), "the sniffer is there")
            send = lambda *arguments: command.hodo("spacewire", *arguments)
            assert send("send", bridge.host, "--path", spacewire.SECOND, "fe 01 02 03", "--eep").returncode == 0
            assert send("time-code", bridge.host, 1).returncode == 0
            assert sniffer.wait(20) == 0
        read = send("read", bridge.host, "0x10", 4, "--path", spacewire.MEMORY, "--reply-path", spacewire.HOST)
        assert read.returncode == 0
        bridge.process.stdin.close()
        assert bridge.process.wait(20) == 0
    capinfos = tshark(file, "-Y", "spw.end == 1", "-T", "fields", "-e", "frame.interface_name", "-e", "spw.direction")
    # The packet passes two links: from the host to the router, and from there to the second node.
    assert capinfos.splitlines() == ["host - router:1\t0", "second - router:2\t1"]
    (addresses,) = fields(file, "rmap.address")
    assert addresses == "0x0000000000000010,0x0000000000000010"
    states = tshark(file, "-Y", 'spw.words == "Run"', "-T", "fields", "-e", "frame.interface_name")
    assert len(states.splitlines()) == 10
    sent = tshark(file, "-Y", "spw.characters == 1 and spw.direction == 0", "-T", "fields", "-e", "frame.interface_name", "-e", "spw.data")
    assert "host - router:1\t02" in sent
    ends, times = fields(sniffed, "spw.end", "spw.time")
    assert (ends, times) == ("1", "1")


def test_no_bytes_make_it_fail(tmp_path):
    source = random.Random(5)
    records, at = [], 1
    for _ in range(400):
        packet = bytearray(source.choice([READ, WRITE, READ_REPLY, WRITE_REPLY, READ_WITH_PATHS, bytes(source.randrange(40))]))
        for _ in range(source.randrange(4)):
            if packet:
                packet[source.randrange(len(packet))] = source.randrange(256)
        packet = bytes(packet[: source.randrange(len(packet) + 1)])
        frame = ssdtp2(packet, source.choice([0, 0, 1, 2, 0x30, 0x31, 0x38, 0x40]))
        records.append(tcp_segment(40000, 10030, at, frame))
        at += len(frame)
        records.append(tcp_segment(40001, 3000 + source.randrange(12), 1, bytes(source.randrange(256) for _ in range(source.randrange(60)))))
    path = capture(tmp_path / "a.pcap", 1, records)
    assert len(json.loads(tshark(path, "-T", "json"))) == len(records)
    noise = [bytes([0, source.randrange(4), source.randrange(4), 0]) + bytes(source.randrange(256) for _ in range(source.randrange(40))) for _ in range(300)]
    path = capture(tmp_path / "b.pcap", 147, noise)
    assert len(json.loads(tshark(path, "-T", "json"))) == len(noise)
