"""The bytes of `protocols/ipbus/machines/tests/vectors`: uHAL sends those whose names begin with its own, and takes their replies."""

import pathlib

import pytest
import uhal
from boards import PATIENCE_MS, board, peer

VECTORS = pathlib.Path(__file__).parents[3] / "protocols/ipbus/machines/tests/vectors"
FIFO = uhal.BlockReadWriteMode.NON_INCREMENTAL


def exchanges(version):
    """By name: a request and its reply, both little-endian, as an x86 host has them."""
    found = {}
    for line in (VECTORS / f"packets-{version}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = found.setdefault(line[1:-1], {">": [], "<": []})
        elif line.startswith((">", "<")):
            lines[line[0]].append(line[2:])
    return {
        name.removeprefix("uhal "): tuple(bytes.fromhex(lines[way][-1]) for way in "><")
        for name, lines in found.items()
        if name.startswith("uhal ")
    }


def several(client):
    told = [client.read(0x10)]
    client.write(0x11, 0xCAFE)
    told += [client.rmw_sum(0x11, 2), client.readBlock(0x10, 2)]
    return told


# What is asked of uHAL, and what it is to give back in version 2.0 and in 1.3.
ACCESSES = {
    "write": (lambda client: [client.writeBlock(0x10, [0xDEAD_BEEF, 1])], [None], [None]),
    "read": (lambda client: [client.readBlock(0x10, 2)], [[0xDEAD_BEEF, 1]], [[0xDEAD_BEEF, 1]]),
    "fifo write": (lambda client: [client.writeBlock(0x300, [7, 8], FIFO)], [None], [None]),
    "fifo read": (lambda client: [client.readBlock(0x300, 2, FIFO)], [[7, 8]], [[7, 8]]),
    "rmw bits": (lambda client: [client.rmw_bits(0x10, 0xFFFF_0000, 0x1234)], [0xDEAD_BEEF], [0xDEAD_1234]),
    "rmw sum": (lambda client: [client.rmw_sum(0x10, -1)], [0xDEAD_1234], [0xDEAD_1233]),
    "configuration read": (lambda client: [client.readConfigurationSpace(0)], [0xC0A8_0001], None),
    "several": (several, [0xDEAD_1233, 0xCAFE, [0xDEAD_1233, 0xCB00]], [0xDEAD_1233, 0xCB00, [0xDEAD_1233, 0xCB00]]),
}
CASES = [
    (version, name) for column, version in enumerate(("2.0", "1.3"), start=1) for name in ACCESSES if ACCESSES[name][column]
]


def test_every_access_has_its_vector():
    for version in ("2.0", "1.3"):
        assert set(exchanges(version)) == {name for found, name in CASES if found == version}


@pytest.mark.parametrize(("version", "name"), CASES)
def test_uhal_sends_these_bytes_and_takes_these(version, name):
    request, reply = exchanges(version)[name]
    access, *expected = ACCESSES[name]
    with peer(reply) as (port, received):
        hardware = board(f"ipbusudp-{version}://127.0.0.1:{port}", patience_ms=PATIENCE_MS)
        told = access(hardware.getClient())
        hardware.dispatch()
        assert received() == request
    for one, value in zip(told, expected[version == "1.3"], strict=True):
        assert one.valid()
        if value is not None:
            assert (list(one) if isinstance(value, list) else int(one)) == value
