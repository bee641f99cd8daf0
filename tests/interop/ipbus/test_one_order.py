"""Devices of version 1.3 that know one order of the bytes, as those made with the field's own library do."""

import contextlib
import multiprocessing
import socket
import struct

import command
import pytest
from boards import board, through

READ, WRITE, BYTE_ORDER = 0x18, 0x20, 0xF8
REPLY, FAILED = 4, 2
LITTLE, BIG = "<", ">"


@contextlib.contextmanager
def device(order):
    """A device in a process of its own: its URI."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        process = multiprocessing.get_context("fork").Process(target=serve, args=(line, order), daemon=True)
        process.start()
        try:
            yield f"ipbusudp-1.3://127.0.0.1:{line.getsockname()[1]}"
        finally:
            process.kill()
            process.join()


def serve(line, order):
    memory = {}
    while True:
        packet, sender = line.recvfrom(65536)
        words = list(struct.unpack(f"{order}{len(packet) // 4}I", packet))
        # Four bytes of error for what it does not understand.
        reply = answer(words, memory) if words[0] & 0xF00000F8 == 0x100000F8 else [0x1000_0000 | REPLY | FAILED]
        line.sendto(struct.pack(f"{order}{len(reply)}I", *reply), sender)


def answer(words, memory):
    reply = []
    while words:
        header, kind, count = words[0], words[0] & 0xF8, words[0] >> 8 & 0x1FF
        if kind == BYTE_ORDER:
            reply.append(header | REPLY)
            del words[0]
            continue
        address = words[1]
        if kind == READ:
            reply += [header | REPLY, *(memory.get(address + number, 0) for number in range(count))]
            del words[:2]
        elif kind == WRITE:
            memory.update({address + number: word for number, word in enumerate(words[2 : 2 + count])})
            reply.append(header & ~(0x1FF << 8) | REPLY)
            del words[: 2 + count]
        else:
            raise AssertionError(f"{header:#x}")
    return reply


@pytest.mark.parametrize("order", [LITTLE, BIG], ids=["little", "big"])
def test_it_is_read_and_written_by_ours(order):
    with device(order) as uri:
        done = command.hodo("ipbus", "write", uri, "0x10", "0x01020304")
        assert done.returncode == 0, done.stderr
        done = command.hodo("ipbus", "read", uri, "0x10", "--values")
        assert (done.returncode, int(done.stdout, 0)) == (0, 0x0102_0304), done.stderr


@pytest.mark.parametrize("order", [LITTLE, BIG], ids=["little", "big"])
def test_it_is_read_and_written_by_uhal_through_our_hub(order):
    with device(order) as uri, command.hub() as hub:
        hardware = board(through(hub.at, uri), patience_ms=10_000)
        client = hardware.getClient()
        client.writeBlock(0x10, [1, 0x0203_0405, 6])
        block = client.readBlock(0x10, 3)
        hardware.dispatch()
        assert list(block) == [1, 0x0203_0405, 6]
