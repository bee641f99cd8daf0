"""What docs/protocols/ipbus.md says of uHAL and of us: each of its known differences, and what both do alike."""

import struct

import command
import pytest
import uhal
from boards import IMPATIENCE_MS, PATIENCE_MS, TABLES, board, peer

HEADER = 0x2000_00F0
READ_DONE = 0x2000_0100
WRITE_DONE = 0x2000_0010
LITTLE, BIG = "<", ">"


def packet(*words, order=LITTLE):
    return struct.pack(f"{order}{len(words)}I", *words)


def by_uhal(version, reply, access, patience_ms=PATIENCE_MS):
    """What an access by uHAL brings where this packet answers it."""
    with peer(reply) as (port, _):
        hardware = board(f"ipbusudp-{version}://127.0.0.1:{port}", patience_ms=patience_ms)
        told = access(hardware.getClient())
        hardware.dispatch()
        return told


def by_us(version, *words, access, order=LITTLE, status=0):
    """What an access by ours brings where these words answer it. Ours begins with any transaction id."""

    def reply(request):
        (first,) = struct.unpack_from(f"{LITTLE}I", request, 4)
        return packet(words[0], words[1] | first & 0x0FFF_0000, *words[2:], order=order)

    with peer(reply) as (port, _):
        uri = f"ipbusudp-{version}://127.0.0.1:{port}"
        done = command.hodo("ipbus", access[0], uri, *access[1:], "--timeout", "300ms", "--reliable", "false")
    assert done.returncode == status, done.stderr
    return done


def read(client):
    return client.read(0x10)


def write(client):
    return client.write(0x10, 5)


def test_a_masked_write_needs_to_read(tmp_path):
    """Both refuse it of a node that may only be written, and do it by read-modify-write where that may be read."""
    table = tmp_path / "bits.xml"
    table.write_text(
        '<node><node id="only" address="0x1" mask="0xFF" permission="w"/><node id="both" address="0x2" mask="0xFF0"/></node>',
        encoding="utf-8",
    )
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        hardware = uhal.getDevice("board", device.uri, f"file://{table}")
        with pytest.raises(uhal.WriteAccessDenied, match="only"):
            hardware.getNode("only").write(5)
        says = ["`only`", "may not be read", "whole word"]
        command.refused("ipbus", "write", device.uri, "--table", table, "only", 5, status=2, says=says)
        ipbus = ["ipbus", "write", device.uri, "--table", table, "--reliable", "false"]
        assert command.hodo(*ipbus, "both", 0xAB).returncode == 0
        word = hardware.getClient().read(0x2)
        hardware.dispatch()
        assert int(word) == 0xAB0
        hardware.getNode("both").write(0x12)
        hardware.dispatch()
        shown = command.hodo("ipbus", "read", device.uri, "0x2", "--values", "--reliable", "false")
        assert shown.stdout == "0x00000120\n"


@pytest.mark.parametrize("words", [0, 1])
def test_the_words_of_a_write_that_was_done_are_not_looked_at(words):
    """A device of version 1.3 tells none; uHAL, and we, take others alike."""
    legacy = packet(0x1000_00FC, 0x1002_0024 | words << 8, *[0x1000_00FC] * 4)
    assert by_uhal("1.3", legacy, write).valid()
    assert by_uhal("2.0", packet(HEADER, WRITE_DONE | words << 8), write).valid()
    assert "0x00000005" in by_us("2.0", HEADER, WRITE_DONE | words << 8, access=["write", "0x10", "5"]).stdout


def test_what_fills_a_packet_up_is_to_be_answered():
    with pytest.raises(uhal.exception, match="Unable to parse reply header"):
        by_uhal("1.3", packet(0x1000_00FC, 0x1002_0024), write)


def test_a_reply_that_is_cut_short():
    """uHAL takes the missing word as 0; we do not take the reply."""
    assert int(by_uhal("2.0", packet(HEADER, READ_DONE), read)) == 0
    assert "does not answer" in by_us("2.0", HEADER, READ_DONE, access=["read", "0x10"], status=1).stderr


def test_a_reply_in_the_other_byte_order():
    """uHAL refuses it; we take it."""
    other = packet(HEADER, READ_DONE, 7, order=BIG)
    with pytest.raises(uhal.exception, match="does not match"):
        by_uhal("2.0", other, read)
    assert "0x00000007" in by_us("2.0", HEADER, READ_DONE, 7, order=BIG, access=["read", "0x10"]).stdout


def test_a_lost_packet_on_direct_udp():
    """uHAL gives it up; we recover it."""
    with command.serving("ipbusudp-2.0://127.0.0.1:0?back.loss=0.3&seed=2") as device:
        hardware = board(device.uri, patience_ms=IMPATIENCE_MS)
        with pytest.raises(uhal.UdpTimeout):
            for _ in range(40):
                hardware.getClient().read(0x10)
                hardware.dispatch()
        patient = ["--timeout", "20s"]
        for _ in range(10):
            done = command.hodo("ipbus", "rmw", "sum", device.uri, "0x10", 1, "--reliable", "true", *patient)
            assert done.returncode == 0, done.stderr
        shown = command.hodo("ipbus", "read", device.uri, "0x10", "--values", *patient)
        assert shown.stdout == "0x0000000A\n"


def test_what_uhal_has_not():
    hardware = board("ipbusudp-2.0://127.0.0.1:1", "board.xml")
    assert not hasattr(hardware.getClient(), "writeConfigurationSpace")
    assert not hasattr(hardware.getNode("scratch"), "rmw_sum")
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        added = command.hodo("ipbus", "rmw", "sum", device.uri, "--table", TABLES / "board.xml", "scratch", 1)
        assert added.returncode == 0, added.stderr
        assert command.hodo("ipbus", "block", "write", device.uri, 0, 7, "--configuration").returncode == 0
        hardware = board(device.uri)
        word = hardware.getClient().readConfigurationSpace(0)
        hardware.dispatch()
        assert int(word) == 7
