"""What uHAL's own suite does with a hub, case by case, in both versions: each has a board of its own, which begins at the place where
the one before has ended a moment ago, and where a request has just found nobody."""

import concurrent.futures
import contextlib
import signal

import command
import pytest
import uhal
from boards import HUB_SCHEMES, TABLES, beyond, board, through, words

TABLE = TABLES / "board.xml"
NO_ANSWER = "did not receive any response from the target"
MEBIBYTE = 1 << 18
THREADS = 10
SIZES = (0, 1, 2, 255, 256, 257, 10_240, MEBIBYTE)
PATIENCE_MS = 20_000
# A register of the configuration space each.
CONFIGURATION = (0xC0A8_0001, 0x20)


class Stand:
    """A hub, and a place where boards begin and end."""

    def __init__(self, scheme, hub):
        with command.serving(f"{beyond(scheme)}://127.0.0.1:0") as first:
            self.at = first.uri
        self.scheme, self.uri = scheme, through(hub.at, self.at)

    @contextlib.contextmanager
    def begun(self):
        configuration = ",".join(map(hex, CONFIGURATION))
        with command.serving(f"{self.at}?table={TABLE}&configuration={configuration}") as self.process:
            yield

    def hardware(self):
        return board(self.uri, "board.xml", patience_ms=PATIENCE_MS)


@pytest.fixture(scope="module", params=HUB_SCHEMES)
def stand(request):
    with command.hub("--patience", "150ms") as hub:
        yield Stand(request.param, hub)


@pytest.fixture
def hardware(stand):
    """A board that has just begun."""
    with pytest.raises(uhal.exception, match=NO_ANSWER):
        dispatched(stand.hardware(), lambda it: it.getNode("scratch").read())
    with stand.begun():
        yield stand.hardware()


def dispatched(hardware, ask):
    told = ask(hardware)
    hardware.dispatch()
    return told


def is_not_yet_told(block):
    """Whether nothing can be read of it before the dispatch."""
    with pytest.raises(uhal.NonValidatedMemory):
        block.value()
    return not block.valid()


@pytest.mark.parametrize("size", SIZES)
def test_a_block(hardware, size):
    data, ram = words(size), hardware.getNode("ram")
    ram.writeBlock(data)
    block = ram.readBlock(size)
    assert is_not_yet_told(block) and block.size() == size
    hardware.dispatch()
    assert list(block) == data


def test_a_fifo(hardware):
    for size in (1, 255, 1_000):
        data, fifo = words(size), hardware.getNode("daq.fifo")
        fifo.writeBlock(data)
        block = fifo.readBlock(size)
        assert is_not_yet_told(block)
        hardware.dispatch()
        assert list(block) == data


def test_blocks_at_an_offset(hardware):
    first, second, ram = words(MEBIBYTE, seed=1), words(MEBIBYTE, seed=2), hardware.getNode("ram")
    ram.writeBlockOffset(first, 0)
    ram.writeBlockOffset(second, MEBIBYTE)
    blocks = [ram.readBlockOffset(MEBIBYTE, offset) for offset in (0, MEBIBYTE)]
    assert all(is_not_yet_told(block) for block in blocks)
    hardware.dispatch()
    assert [list(block) for block in blocks] == [first, second]


def test_blocks_where_the_table_has_none(hardware):
    register, port = hardware.getNode("scratch"), hardware.getNode("daq.fifo")
    register.writeBlock([1])
    assert list(dispatched(hardware, lambda _: register.readBlock(1))) == [1]
    for wrong in (
        lambda: register.writeBlock([1, 2]),
        lambda: register.readBlock(2),
        lambda: register.writeBlockOffset([1], 0),
        lambda: register.readBlockOffset(1, 0),
        lambda: port.writeBlockOffset([1], 1),
        lambda: port.readBlockOffset(1, 1),
    ):
        with pytest.raises(uhal.exception):
            wrong()


def test_blocks_over_the_end(stand):
    ram = stand.hardware().getNode("rom")
    with pytest.raises(uhal.exception):
        ram.readBlock(17)


def test_blocks_at_an_offset_over_the_end(stand):
    table = stand.hardware().getNode("daq.table")
    for wrong in (lambda: table.writeBlockOffset([1] * 8, 9), lambda: table.readBlockOffset(8, 9)):
        with pytest.raises(uhal.exception):
            wrong()


def test_permissions(hardware):
    with pytest.raises(uhal.WriteAccessDenied):
        hardware.getNode("magic").write(1)
    with pytest.raises(uhal.ReadAccessDenied):
        hardware.getNode("command").read()
    hardware.getNode("command").write(1)
    assert int(dispatched(hardware, lambda it: it.getNode("magic").read())) == 0xB0A4_D001


@pytest.mark.parametrize("mask", [None, 0xFF, 0xFF_FF00, 0xFF00_0000])
def test_the_configuration_space(hardware, stand, mask):
    client = hardware.getClient()

    def ask(place):
        return client.readConfigurationSpace(place, *(() if mask is None else (mask,)))

    if stand.scheme.endswith("1.3"):
        with pytest.raises(uhal.exception):
            ask(0)
        return
    told = [ask(place) for place in range(len(CONFIGURATION))]
    hardware.dispatch()
    mask = mask or 0xFFFF_FFFF
    shift = (mask & -mask).bit_length() - 1
    assert [int(word) for word in told] == [(word & mask) >> shift for word in CONFIGURATION]


def test_a_dispatch_of_nothing(stand):
    stand.hardware().dispatch()


def test_a_dispatch_of_nothing_after_a_read(hardware):
    dispatched(hardware, lambda it: it.getNode("scratch").read())
    hardware.dispatch()


def test_a_tree(hardware):
    paths = ("scratch", "daq.control", "spare.control")
    data = dict(zip(paths, words(len(paths)), strict=True))
    for path, word in data.items():
        hardware.getNode(path).write(word)
    told = {path: hardware.getNode(path).read() for path in paths}
    by_part = hardware.getNode("daq").getNode("control").read()
    hardware.dispatch()
    assert {path: int(word) for path, word in told.items()} == data and int(by_part) == data["daq.control"]


def test_masks(hardware):
    threshold, enable = hardware.getNode("status.threshold"), hardware.getNode("status.enable")
    threshold.write(0xABCD)
    enable.write(1)
    for node, over in ((threshold, 0x1_0000), (enable, 2)):
        with pytest.raises(uhal.exception):
            node.write(over)
    told = threshold.read(), enable.read()
    assert all(is_not_yet_told(word) for word in told)
    hardware.dispatch()
    assert [int(word) for word in told] == [0xABCD, 1]


def at_once(job):
    """Has threads do a job; what goes wrong in one is raised."""
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(job, range(THREADS)))


def work(hardware):
    for _ in range(5):
        hardware.getNode("scratch").write(1)
        block = hardware.getNode("ram").readBlock(100)
        hardware.dispatch()
        assert len(list(block)) == 100


def test_threads_with_an_interface_each(hardware, stand):
    at_once(lambda _: work(stand.hardware()))


@pytest.mark.parametrize("copied", [False, True])
def test_threads_with_one_interface(hardware, copied):
    at_once(lambda _: work(uhal.HwInterface(hardware) if copied else hardware))


def test_a_board_that_is_not_there(stand):
    for _ in range(3):
        with pytest.raises(uhal.exception, match=NO_ANSWER):
            dispatched(stand.hardware(), lambda it: it.getNode("scratch").read())


def test_a_hub_that_is_not_there(stand):
    with command.hub() as gone:
        at = gone.at
    for _ in range(10):
        with pytest.raises(uhal.exception):
            dispatched(board(through(at, stand.at), "board.xml"), lambda it: it.getNode("scratch").read())


def test_a_word_by_address(hardware):
    client = hardware.getClient()
    (word,) = words(1)
    client.write(0x1, word)
    told = client.read(0x1)
    assert is_not_yet_told(told)
    hardware.dispatch()
    assert int(told) == word
    with pytest.raises(uhal.exception):
        client.write(0x1, 0xFF, 0x0F)
    client.write(0x1, 0x5, 0xF)
    told = client.read(0x1), client.read(0x1, 0xF)
    hardware.dispatch()
    assert [int(each) for each in told] == [word & ~0xF | 0x5, 0x5]


def test_a_block_by_address(hardware):
    client, data = hardware.getClient(), words(MEBIBYTE)
    client.writeBlock(0x10_0000, data)
    block = client.readBlock(0x10_0000, MEBIBYTE)
    hardware.dispatch()
    assert list(block) == data


def test_bits_by_address(hardware, stand):
    client = hardware.getClient()
    before, keep, add = words(3)
    client.write(0x1, before)
    told = client.rmw_bits(0x1, keep, add), client.read(0x1)
    hardware.dispatch()
    after = before & keep | add
    assert [int(word) for word in told] == [after if stand.scheme.endswith("1.3") else before, after]


def test_sums_by_address(hardware, stand):
    client, total = hardware.getClient(), 0
    client.write(0x1, 0)
    for addend in range(1, 100):
        told = client.rmw_sum(0x1, addend)
        hardware.dispatch()
        assert int(told) == total + (addend if stand.scheme.endswith("1.3") else 0)
        total += addend


def test_two_registers(hardware):
    for path, word in (("daq.control", 3), ("spare.control", 5)):
        hardware.getNode(path).write(word)
    told = [hardware.getNode(path).read() for path in ("daq.control", "spare.control")]
    assert all(is_not_yet_told(word) for word in told)
    hardware.dispatch()
    assert [int(word) for word in told] == [3, 5]


def test_a_board_without_a_connection_file(hardware, stand):
    other = uhal.getDevice("another", stand.uri, f"file://{TABLE}")
    other.setTimeoutPeriod(PATIENCE_MS)
    other.getNode("scratch").write(7)
    assert int(dispatched(other, lambda it: it.getNode("scratch").read())) == 7


def test_a_board_of_a_connection_file(stand, tmp_path):
    (tmp_path / "board.xml").write_text(TABLE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "daq.xml").write_text((TABLES / "daq.xml").read_text(encoding="utf-8"), encoding="utf-8")
    file = tmp_path / "connections.xml"
    entry = f'<connection id="board.one" uri="{stand.uri}" address_table="file://{tmp_path}/board.xml"/>'
    file.write_text(f"<connections>{entry}</connections>", encoding="utf-8")
    manager = uhal.ConnectionManager(f"file://{file}")
    assert list(manager.getDevices("^board.one$")) == ["board.one"]


@pytest.mark.parametrize("size", [1, MEBIBYTE])
def test_a_block_again_and_again(hardware, size):
    for seed in range(10):
        data = words(size, seed=seed)
        hardware.getNode("ram").writeBlock(data)
        assert list(dispatched(hardware, lambda it: it.getNode("ram").readBlock(size))) == data


def test_anything_anywhere(hardware):
    data, ram = [0] * 1_024, hardware.getNode("ram")
    ram.writeBlock(data)
    for seed, draw in enumerate(words(400, seed=9)):
        place, size = draw % 1_000, 1 + draw % 24
        data[place : place + size] = words(size, seed=seed)
        ram.writeBlockOffset(data[place : place + size], place)
    assert list(dispatched(hardware, lambda _: ram.readBlock(1_024))) == data


def test_a_board_that_pauses(hardware, stand):
    """It stands still for longer than anybody waits; the next dispatch is as good as any."""
    stand.process.send_signal(signal.SIGSTOP)
    with pytest.raises(uhal.exception, match=NO_ANSWER):
        dispatched(hardware, lambda it: it.getNode("scratch").read())
    stand.process.send_signal(signal.SIGCONT)
    (word,) = words(1)
    again = stand.hardware()
    again.getNode("scratch").write(word)
    assert int(dispatched(again, lambda it: it.getNode("scratch").read())) == word
