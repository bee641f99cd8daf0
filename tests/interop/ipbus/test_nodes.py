"""Node trees: uHAL goes by the table, and the device is made from the same one."""

import command
import pytest
import uhal
from boards import WAYS, board, words


@pytest.fixture
def hardware(tabled):
    return board(tabled.uri, "board.xml")


def read(hardware, path):
    word = hardware.getNode(path).read()
    hardware.dispatch()
    return int(word)


def write(hardware, path, value):
    hardware.getNode(path).write(value)
    hardware.dispatch()


def test_registers_hold_what_the_table_says(hardware):
    found = {path: read(hardware, path) for path in ("magic", "scratch", "status", "status.state", "status.threshold")}
    expected = {"magic": 0xB0A4D001, "scratch": 0, "status": 0x0012_3450, "status.state": 5, "status.threshold": 0x1234}
    assert found == expected


def test_bits_are_written_alone(hardware):
    write(hardware, "status.enable", 1)
    write(hardware, "status.threshold", 0xFFFF)
    assert read(hardware, "status") == 0x00FF_FF51
    write(hardware, "status.threshold", 0)
    write(hardware, "status.enable", 0)
    assert read(hardware, "status") == 0x0000_0050


def test_a_module_that_is_there_twice_has_registers_of_its_own(hardware):
    write(hardware, "daq.control.source", 3)
    write(hardware, "spare.control.reset", 1)
    assert read(hardware, "daq.control") == 0xC and read(hardware, "spare.control") == 0x1
    data = words(16)
    hardware.getNode("spare.table").writeBlock(data)
    block = hardware.getNode("spare.table").readBlock(16)
    part = hardware.getNode("spare.table").readBlockOffset(5, 10)
    other = hardware.getNode("daq.table").readBlock(16)
    hardware.dispatch()
    assert list(block) == data and list(part) == data[10:15] and list(other) == [0] * 16


def test_permissions_are_kept_by_both_sides(hardware):
    with pytest.raises(uhal.WriteAccessDenied):
        hardware.getNode("magic").write(1)
    with pytest.raises(uhal.ReadAccessDenied):
        hardware.getNode("command").read()
    with pytest.raises(uhal.WriteAccessDenied):
        hardware.getNode("rom").writeBlock([1])
    write(hardware, "command", 5)
    client = hardware.getClient()
    for access in (lambda: client.write(0x0, 1), lambda: client.read(0x2), lambda: client.write(0x40_0000, 1)):
        access()
        with pytest.raises(uhal.exception, match="bus error|failure"):
            hardware.dispatch()
    assert read(hardware, "magic") == 0xB0A4D001


def test_a_value_that_does_not_fit_its_mask_is_not_sent(hardware):
    with pytest.raises(uhal.BitsSetWhichAreForbiddenByBitMask):
        hardware.getNode("status.enable").write(2)
    assert read(hardware, "status") == 0x0012_3450


def test_a_fifo_gives_back_in_order_and_has_bounds(hardware):
    fifo, data = hardware.getNode("daq.fifo"), words(1000)
    fifo.writeBlock(data[:600])
    fifo.writeBlock(data[600:])
    first = fifo.readBlock(300)
    hardware.dispatch()
    one = fifo.read()
    rest = fifo.readBlock(699)
    hardware.dispatch()
    assert [*first, int(one), *rest] == data
    fifo.read()
    with pytest.raises(uhal.exception, match="bus error on read|failure"):
        hardware.dispatch()
    with pytest.raises(uhal.BulkTransferRequestedTooLarge):
        fifo.readBlock(1001)
    fifo.writeBlock(data)
    fifo.write(1)
    with pytest.raises(uhal.exception, match="bus error on write|failure"):
        hardware.dispatch()
    whole = fifo.readBlock(1000)
    hardware.dispatch()
    assert list(whole) == data


def test_sources_count_and_sinks_take_all(hardware):
    stream = hardware.getNode("daq.stream").readBlock(500)
    events = [hardware.getNode("events").read() for _ in range(3)]
    hardware.getNode("daq.sink").writeBlock(words(500))
    hardware.dispatch()
    assert list(stream) == list(range(500)) and [int(word) for word in events] == [0, 1, 2]


@pytest.mark.parametrize(("size", "scheme"), command.spread([1, 1000, 0x28_0000], WAYS))
def test_blocks_of_nodes(hardware, size):
    data = words(size)
    hardware.getNode("ram").writeBlock(data)
    block = hardware.getNode("ram").readBlock(size)
    rom = hardware.getNode("rom").readBlock(16)
    hardware.dispatch()
    assert list(block) == data and list(rom) == [7] * 16


def test_every_node_that_can_be_read_is_there(hardware):
    found = {}
    for path in hardware.getNodes():
        node = hardware.getNode(path)
        readable = node.getPermission() != uhal.NodePermission.WRITE
        if readable and node.getMode() != uhal.BlockReadWriteMode.HIERARCHICAL and not path.endswith("fifo"):
            found[path] = node.read()
    hardware.dispatch()
    assert len(found) > 15 and all(word.valid() for word in found.values())


def test_what_no_node_has_is_not_there(hardware):
    client = hardware.getClient()
    for address in (0x5, 0x1020, 0x38_0000, 0xFFFF_FFFF):
        client.read(address)
        with pytest.raises(uhal.exception, match="bus error on read|failure"):
            hardware.dispatch()
