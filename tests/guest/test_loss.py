"""What ours and the kernel's rxe do when packets are lost, and what others see of our packets."""

import shutil
import subprocess
import time

import pytest

from guest import GUEST
from test_pingpong import ITERATIONS, done, options, ours, stock


@pytest.fixture
def lossy(guest):
    guest.lose(1)
    yield guest
    guest.lose(0)


# The stock server sends each message back from the buffer in which it came, so that every byte of both directions is checked.
@pytest.mark.parametrize(("size", "mtu", "how"), [(64, 1024, "poll"), (4096, 1024, "events"), (65536, 4096, "poll")])
def test_one_percent_is_lost_and_every_byte_is_right(lossy, size, mtu, how):
    server = lossy.start("timeout 150 " + stock(size, mtu, how))
    with ours(lossy, GUEST, "--connect-within", 20, "--chk", *options(size, mtu, how)) as client:
        done(client)
    server.wait(150)


@pytest.mark.parametrize("mtu", [256, 1024, 4096])
def test_tshark_finds_no_fault_in_our_packets(guest, tmp_path, mtu):
    file = tmp_path / "packets.pcap"
    capture = subprocess.Popen(
        [*guest.at_host(), "tcpdump", "-i", "host", "-B", "16384", "-U", "-w", str(file), "udp port 4791"], stderr=subprocess.PIPE, text=True
    )
    assert "listening" in capture.stderr.readline() + capture.stderr.readline()
    server = guest.start("timeout 100 " + stock(4096, mtu, "poll"))
    with ours(guest, GUEST, "--connect-within", 20, *options(4096, mtu, "poll")) as client:
        done(client)
    assert server.wait(100)[0] == 0
    time.sleep(0.5)
    capture.terminate()
    capture.wait()
    packets = dissect(file)
    sent = [packet for packet in packets if packet["ip.src"] != GUEST]
    per_message = 4096 // mtu
    data = [packet for packet in sent if packet["infiniband.bth.opcode"] in (0, 1, 2, 4)]
    assert len(data) >= ITERATIONS * per_message, len(data)
    # Nothing was refused, by either end: acknowledgements only.
    syndromes = {packet["infiniband.aeth.syndrome"] for packet in packets} - {None}
    assert all(syndrome < 0x20 for syndrome in syndromes), syndromes
    assert not [packet for packet in packets if packet["_ws.malformed"]]


FIELDS = ("ip.src", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.aeth.syndrome", "_ws.malformed")


def dissect(file):
    """Returns what tshark sees in each packet."""
    line = [shutil.which("tshark"), "-r", str(file), "-T", "fields", "-E", "separator=/t", *(part for field in FIELDS for part in ("-e", field))]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    rows = [dict(zip(FIELDS, row.split("\t"), strict=True)) for row in said.splitlines()]
    for row in rows:
        for field in FIELDS[1:4]:
            row[field] = int(row[field], 0) if row[field] else None
    return rows
