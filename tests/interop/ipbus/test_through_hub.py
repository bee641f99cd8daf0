"""What uHAL sees through a hub, and only there: what goes wrong behind the hub, and with the hub itself."""

import concurrent.futures
import contextlib
import multiprocessing
import re
import socket
import threading

import command
import pytest
import uhal
from boards import HUB_SCHEMES, IMPATIENCE_MS, PATIENCE_MS, TABLES, beyond, board, through, words
from test_many import ROUNDS, SHARED, in_processes, in_threads, total

# Python's uHAL has one class for what C++ calls `ControlHubTargetTimeout` and `ControlHubErrorCodeSet`: its text tells.
NO_ANSWER = "did not receive any response from the target"
TOO_LONG, NOT_ALLOWED = "returned error code 0x0002", "returned error code 0x0007"
TABLE = TABLES / "board.xml"


@pytest.fixture(params=HUB_SCHEMES)
def scheme(request):
    return request.param


@pytest.fixture
def udp(scheme):
    """How the hub speaks to the board."""
    return beyond(scheme)


@contextlib.contextmanager
def nobody():
    """A port that is taken, and where nothing answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        yield silent.getsockname()[1]


@contextlib.contextmanager
def nothing():
    """A port where nothing listens, and nobody will meanwhile."""
    yield command.free_port(socket.SOCK_DGRAM)


def read(hardware, address=0x10):
    word = hardware.getClient().read(address)
    hardware.dispatch()
    return int(word)


def write(hardware, value, address=0x10):
    hardware.getClient().write(address, value)
    hardware.dispatch()


def fails(hardware, says):
    with pytest.raises(uhal.exception, match=says):
        read(hardware)


def answers(hardware):
    """Whether the board answers; that it does not is all that may go wrong."""
    try:
        read(hardware)
    except uhal.exception as error:
        assert re.search(NO_ANSWER, str(error)), error
        return False
    return True


@pytest.mark.parametrize("absent", [nobody, nothing])
def test_an_absent_board_is_a_timeout_of_the_target_and_nobody_elses(udp, absent):
    with command.hub("--patience", "500ms") as hub, command.serving(f"{udp}://127.0.0.1:0") as device, absent() as port:
        there = board(through(hub.at, device.uri))
        gone = board(through(hub.at, f"{udp}://127.0.0.1:{port}"))
        for _ in range(3):
            fails(gone, NO_ANSWER)
            assert read(there) == 0


def test_a_dead_board_is_told_of_at_once(udp):
    """uHAL's own patience would end long before the hub's, were it asked again each time."""
    with command.hub("--patience", "1s") as hub, nobody() as port:
        hardware = board(through(hub.at, f"{udp}://127.0.0.1:{port}"))
        fails(hardware, NO_ANSWER)
        hardware.setTimeoutPeriod(900)
        for _ in range(20):
            fails(hardware, NO_ANSWER)


def test_what_is_queued_for_a_dead_board_is_given_up_with_it(udp):
    with command.hub() as hub, nobody() as port:
        hardware = board(through(hub.at, f"{udp}://127.0.0.1:{port}"))
        client = hardware.getClient()
        client.writeBlock(0, words(50_000))
        block = client.readBlock(0, 50_000)
        with pytest.raises(uhal.exception, match=NO_ANSWER):
            hardware.dispatch()
        assert not block.valid()


def test_boards_that_are_not_on_the_list_are_refused(udp, tmp_path):
    with command.serving(f"{udp}://127.0.0.1:0") as listed, command.serving(f"{udp}://127.0.0.1:0") as other:
        allowed = tmp_path / "boards"
        allowed.write_text(f"127.0.0.1:{command.place(listed.uri)[1]}\n", encoding="utf-8")
        with command.hub("--patience", "20s", "--allow", allowed) as hub:
            for _ in range(2):
                fails(board(through(hub.at, other.uri)), NOT_ALLOWED)
                assert read(board(through(hub.at, listed.uri))) == 0


def test_uhals_own_patience_ends_first(udp):
    """And an answer that comes after it is nobody's."""
    with command.hub("--patience", "20s") as hub, command.serving(f"{udp}://127.0.0.1:0?back.delay=400ms") as device:
        hardware = board(through(hub.at, device.uri))
        write(hardware, 1, 0x10)
        write(hardware, 2, 0x11)
        hardware.setTimeoutPeriod(IMPATIENCE_MS)
        with pytest.raises(uhal.TcpTimeout):
            read(hardware, 0x10)
        hardware.setTimeoutPeriod(20_000)
        assert [read(hardware, address) for address in (0x11, 0x10)] == [2, 1]


@pytest.mark.parametrize("run", [in_threads, in_processes])
def test_nothing_is_seen_of_losses(run):
    """Requests and replies are lost, doubled and out of order; values, errors and counts are as on a good line."""
    faults = "loss=0.03&duplicate=0.03&reorder=0.03&seed=5"
    with command.hub("--patience", "20s") as hub, command.serving(f"ipbusudp-2.0://127.0.0.1:0?{faults}") as device:
        uri = through(hub.at, device.uri)
        assert run([uri] * 4) == [ROUNDS] * 4
        assert total(uri) == 4 * ROUNDS


def test_a_long_block_over_a_bad_line():
    faults = "loss=0.01&duplicate=0.01&reorder=0.01&seed=5"
    with command.hub("--patience", "20s") as hub, command.serving(f"ipbusudp-2.0://127.0.0.1:0?{faults}") as device:
        hardware = board(through(hub.at, device.uri))
        client, data = hardware.getClient(), words(1 << 18)
        client.writeBlock(0, data)
        block = client.readBlock(0, len(data))
        hardware.dispatch()
        assert list(block) == data


def test_version_1_repeats_what_only_reads_and_nothing_else():
    """It has no numbers, so what changes something is done once, or is told to have failed."""
    faults = "loss=0.1&seed=5"
    with command.hub("--patience", "300ms") as hub, command.serving(f"ipbusudp-1.3://127.0.0.1:0?{faults}") as device:
        hardware, done, failed = board(through(hub.at, device.uri)), 0, 0
        for _ in range(40):
            block = hardware.getClient().readBlock(0x100, 8)
            hardware.dispatch()
            assert list(block) == [0] * 8
            hardware.getClient().rmw_sum(SHARED, 1)
            try:
                hardware.dispatch()
                done += 1
            except uhal.exception as error:
                assert re.search(NO_ANSWER, str(error)), error
                failed += 1
        assert 0 < failed < 20 and done <= read(hardware, SHARED) <= done + failed


def test_a_board_that_restarts_does_nothing_twice(udp):
    """A dispatch that a restart may have cut short fails; the next one is as on the first day."""
    faults = "reboot=0.02&reboot_memory=keep&seed=5"
    with command.hub("--patience", "300ms") as hub, command.serving(f"{udp}://127.0.0.1:0?{faults}") as device:
        hardware, done, failed = board(through(hub.at, device.uri)), 0, 0
        for _ in range(300):
            hardware.getClient().rmw_sum(SHARED, 1)
            try:
                hardware.dispatch()
                done += 1
            except uhal.exception as error:
                assert re.search(NO_ANSWER, str(error)), error
                failed += 1
        assert 0 < failed < 60 and done > 240
        command.wait_until(lambda: answers(hardware), "the board answers")
        assert done <= read(hardware, SHARED) <= done + failed


def test_another_board_in_its_place(udp):
    with command.hub("--patience", "2s") as hub, contextlib.ExitStack() as stack:
        device = stack.enter_context(command.serving(f"{udp}://{command.free_address(socket.SOCK_DGRAM)}"))
        hardware = board(through(hub.at, device.uri))
        write(hardware, 5)
        device.terminate()
        device.wait()
        fails(hardware, NO_ANSWER)
        stack.enter_context(command.serving(device.uri))
        command.wait_until(lambda: answers(hardware), "the new board answers")
        assert read(hardware) == 0
        write(hardware, 6)
        assert read(hardware) == 6


def test_a_board_that_is_changed_while_nobody_asks(udp):
    """One call may be told that it may have been done; no more than one."""
    with command.hub("--patience", "2s") as hub, contextlib.ExitStack() as stack:
        device = stack.enter_context(command.serving(f"{udp}://{command.free_address(socket.SOCK_DGRAM)}"))
        hardware = board(through(hub.at, device.uri))
        write(hardware, 5)
        device.terminate()
        device.wait()
        stack.enter_context(command.serving(device.uri))
        answers(hardware)
        assert read(hardware) == 0


def test_replies_with_another_number_are_not_taken():
    with command.hub() as hub, command.serving("ipbusudp-2.0://127.0.0.1:0?wrong_id=1") as device:
        fails(board(through(hub.at, device.uri)), NO_ANSWER)


def test_after_a_long_dispatch_that_failed_a_new_interface_is_as_good_as_ever(udp):
    """An old one is not: uHAL then reads its own connection from the wrong place, as it does without a hub."""
    with command.hub("--patience", "20s") as hub, command.serving(f"{udp}://127.0.0.1:0?bus_error=0x10000") as device:
        uri = through(hub.at, device.uri)
        for _ in range(20):
            hardware = board(uri)
            with pytest.raises(uhal.exception, match="bus error on read|failure|partial"):
                hardware.getClient().readBlock(0xF000, 20_000)
                hardware.dispatch()
            hardware = board(uri)
            block = hardware.getClient().readBlock(0, 20_000)
            hardware.dispatch()
            assert len(block) == 20_000


def test_a_hub_that_restarts_is_found_again(udp):
    with command.serving(f"{udp}://127.0.0.1:0") as device:
        with command.hub("--patience", "20s") as hub:
            hardware = board(through(hub.at, device.uri))
            write(hardware, 5)
        with pytest.raises(uhal.exception):
            read(hardware)
        with command.hub("--patience", "20s", listen=hub.at):
            assert read(hardware) == 5


def test_packets_that_are_too_long_for_a_board_are_in_nobodys_way():
    """The board drops such a packet, and would drop with it what other clients have in flight behind it."""
    with (
        command.hub("--patience", "20s") as hub,
        command.serving("ipbusudp-2.0://127.0.0.1:0?buffer_bytes=1500") as device,
    ):
        uri, stop = through(hub.at, device.uri), threading.Event()

        def send_long_ones():
            hardware = board(f"{uri}&max_payload_size=8000")
            while not stop.is_set():
                hardware.getClient().writeBlock(0, words(1900))
                with pytest.raises(uhal.exception, match=TOO_LONG):
                    hardware.dispatch()

        with concurrent.futures.ThreadPoolExecutor() as pool:
            bad = pool.submit(send_long_ones)
            try:
                assert in_processes([uri] * 2) == [ROUNDS] * 2
            finally:
                stop.set()
            bad.result()
        assert total(uri) == 2 * ROUNDS


@pytest.mark.parametrize("run", [in_threads, in_processes])
def test_boards_of_both_versions_and_a_dead_one_at_once(run):
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(command.hub("--patience", "20s"))
        port, stop = stack.enter_context(nobody()), threading.Event()
        schemes = [beyond(scheme) for scheme in HUB_SCHEMES] * 2
        devices = [stack.enter_context(command.serving(f"{udp}://127.0.0.1:0")) for udp in schemes]
        uris = [through(hub.at, device.uri) for device in devices]
        waits = board(through(hub.at, f"ipbusudp-2.0://127.0.0.1:{port}"), patience_ms=20)

        def ask_nobody():
            while not stop.is_set():
                with contextlib.suppress(uhal.TcpTimeout):
                    read(waits)

        thread = threading.Thread(target=ask_nobody)
        thread.start()
        try:
            assert run(uris) == [ROUNDS] * len(uris)
            assert [total(uri) for uri in uris] == [ROUNDS] * len(uris)
        finally:
            stop.set()
            thread.join()


def test_a_connection_file_with_a_hub_serves_unchanged(udp, tmp_path):
    with contextlib.ExitStack() as stack:
        hub = stack.enter_context(command.hub("--patience", "20s"))
        devices = [stack.enter_context(command.serving(f"{udp}://127.0.0.1:0?table={TABLE}")) for _ in range(3)]
        lines = [
            f'<connection id="crate.{slot}" uri="{through(hub.at, device.uri)}" address_table="file://{TABLE}"/>'
            for slot, device in enumerate(devices)
        ]
        file = tmp_path / "connections.xml"
        file.write_text(f"<connections>{''.join(lines)}</connections>", encoding="utf-8")
        manager = uhal.ConnectionManager(f"file://{file}")
        boards = [manager.getDevice(name) for name in manager.getDevices("crate.*")]
        assert [hardware.id() for hardware in boards] == ["crate.0", "crate.1", "crate.2"]
        for slot, hardware in enumerate(boards):
            hardware.setTimeoutPeriod(PATIENCE_MS)
            hardware.getNode("status.threshold").write(slot)
            hardware.dispatch()
        found = [hardware.getNode("status").read() for hardware in boards]
        for hardware in boards:
            hardware.dispatch()
        assert [int(word) for word in found] == [0x50 | slot << 8 for slot in range(3)]


def test_a_client_beside_the_hub_is_in_nobodys_way():
    """uHAL's own packets have no numbers, so the hub's are not disturbed."""
    with command.hub("--patience", "20s") as hub, command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        assert in_processes([device.uri, through(hub.at, device.uri)] * 2) == [ROUNDS] * 4
        assert total(device.uri) == 4 * ROUNDS


def test_hodo_ipbus_beside_the_hub_is_in_nobodys_way():
    """By its default: reads have no numbers, and nor has a write where the board has seen a hub's."""
    with command.hub("--patience", "20s") as hub, command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        patient = ["--timeout", "20s"]
        write(board(through(hub.at, device.uri)), 0)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            rounds = pool.submit(in_processes, [through(hub.at, device.uri)] * 2)
            for number in range(20):
                assert command.hodo("ipbus", "write", device.uri, "0x30", number, *patient).returncode == 0
                shown = command.hodo("ipbus", "read", device.uri, "0x30", "--values", *patient)
                assert shown.stdout == f"0x{number:08X}\n", shown.stderr
            assert rounds.result() == [ROUNDS] * 2
        assert total(device.uri) == 2 * ROUNDS


def read_for_ever(uri, began):
    hardware = board(uri)
    while True:
        hardware.getClient().readBlock(0, 20_000)
        began.set()
        hardware.dispatch()


def test_a_client_that_is_killed_leaves_nothing_behind(udp):
    context = multiprocessing.get_context("spawn")
    with command.hub("--patience", "20s") as hub, command.serving(f"{udp}://127.0.0.1:0") as device:
        uri = through(hub.at, device.uri)
        for _ in range(3):
            began = context.Event()
            victim = context.Process(target=read_for_ever, args=(uri, began), daemon=True)
            victim.start()
            assert began.wait(command.BOUND_S)
            hardware, data = board(uri), words(5000)
            assert read(hardware) == 0
            victim.kill()
            victim.join()
            hardware.getClient().writeBlock(0, data)
            block = hardware.getClient().readBlock(0, 5000)
            hardware.dispatch()
            assert list(block) == data
            write(hardware, 0)


def test_as_many_clients_as_a_laboratory_has(udp):
    with command.hub("--patience", "20s") as hub, command.serving(f"{udp}://127.0.0.1:0") as device:
        all_of_them = [board(through(hub.at, device.uri)) for _ in range(64)]
        for _ in range(3):
            for hardware in all_of_them:
                hardware.getClient().rmw_sum(SHARED, 1)
            for hardware in all_of_them:
                hardware.dispatch()
        assert read(all_of_them[0], SHARED) == 3 * len(all_of_them)
