"""What others see in our packets, on the wire to the kernel's rxe: tshark dissects them, scapy builds each again to the byte."""

import contextlib
import shutil
import subprocess
import time

import pytest
import scapy.all  # The dissectors of Ethernet and IP: without it RoCE is found by nobody.
from scapy.contrib.roce import BTH
from scapy.utils import rdpcap

from guest import GUEST
from test_pingpong import Counts, done, iterations, options, ours, stock

FIELDS = ("ip.src", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.aeth.syndrome", "_ws.malformed")
# Packets that are built again: scapy takes a millisecond for each.
REBUILT = 2000
# SEND first, middle, last, only.
SENDS = (0, 1, 2, 4)


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
def test_nothing_is_malformed_or_refused_and_every_crc_is_right(guest, tmp_path, mtu):
    file = tmp_path / "packets.pcap"
    counts = Counts(guest)
    with captured(guest, file):
        server = guest.start("timeout 100 " + stock(4096, mtu, "poll"))
        with ours(guest, GUEST, "--connect-within", 20, *options(4096, mtu, "poll")) as client:
            done(client, 4096, counts)
        assert server.wait(100)[0] == 0
    rows = dissect(file)
    sent = [row for row in rows if row["ip.src"] != GUEST and row["infiniband.bth.opcode"] in SENDS]
    assert len(sent) >= iterations(4096) * 4096 // mtu, len(sent)
    # Acknowledgements only: neither end refused anything.
    syndromes = {row["infiniband.aeth.syndrome"] for row in rows} - {None}
    assert all(syndrome < 0x20 for syndrome in syndromes), syndromes
    assert not [row for row in rows if row["_ws.malformed"]]
    packets = [packet for packet in rdpcap(str(file)) if BTH in packet]
    assert len(packets) == len(rows)
    for packet in packets[:REBUILT]:
        again = packet.copy()
        again[BTH].icrc = None
        assert bytes(again) == bytes(packet), packet.summary()


@contextlib.contextmanager
def captured(guest, file):
    """Captures what RDMA sends, in both directions. The buffer holds as many packets as the longest packet that is asked for lets it."""
    line = [*guest.at_host(), "tcpdump", "-i", "host", "-s", "9216", "-B", "65536", "--immediate-mode", "-U", "-w", str(file), "udp port 4791"]
    capture = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    assert "listening" in capture.stderr.readline()
    try:
        yield
        # It may be behind, and does not write what it has not read when it is ended.
        size = -1
        while size != (size := file.stat().st_size):
            time.sleep(1.5)
    finally:
        capture.terminate()
        capture.communicate()


def dissect(file):
    """Returns what tshark sees in each packet."""
    line = [shutil.which("tshark"), "-r", str(file), "-T", "fields", "-E", "separator=/t", *(part for field in FIELDS for part in ("-e", field))]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    rows = [dict(zip(FIELDS, row.split("\t"), strict=True)) for row in said.splitlines()]
    for row in rows:
        for field in FIELDS[1:4]:
            row[field] = int(row[field], 0) if row[field] else None
    return rows
