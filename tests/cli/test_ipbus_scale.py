"""The hub and the device where there are many: boards, clients, connections that say nothing, and some that misbehave."""

import contextlib
import random
import re
import selectors
import socket
import struct

import command
import pytest
from test_hub import READ, WRITE, answers, ask, chunk, packet, running
from test_servers import rss_bytes

BOARDS = 1000
CLIENTS = 1000
# Boards that each client asks in one chunk.
ASKED = 20
# Of the hub with a thousand boards and clients, and of a process with a thousand boards.
HUB_RSS_MAX = 64 << 20
BOARDS_RSS_MAX = 192 << 20
# 30 clients that are owed 480 replies of 1 KiB each, fewer than may wait for a board.
GREEDY_RSS_MAX = 64 << 20
HALF_OPEN = 10_000
HALF_OPEN_RSS_MAX = 64 << 20


@contextlib.contextmanager
def crate(boards, options=""):
    """So many boards of one process; answers their ports, and the process."""
    uri = f"ipbusudp-2.0://127.0.0.1:0?boards={boards}{options}"
    with command.started("serve", uri) as process:
        yield [command.place(process.stdout.readline().strip())[1] for _ in range(boards)], process


def counter(hub, name):
    return int(re.search(rf"^{re.escape(name)} (\d+)$", hub.page("/metrics"), re.MULTILINE)[1])


def all_answers(connections, count):
    """The next so many chunks of each connection, whichever comes first."""
    found = {connection: [] for connection in connections}
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(timeout=30)
            assert ready, f"{len(selector.get_map())} clients are not answered"
            for key, _ in ready:
                found[key.fileobj].append(answers(key.fileobj))
                if len(found[key.fileobj]) == count:
                    selector.unregister(key.fileobj)
    return found


def test_a_thousand_clients_ask_a_thousand_boards():
    """Each has words of its own on boards of its own choice; nobody gets another's, and memory is bounded."""
    command.allow_files(3 * BOARDS + 1000)
    with crate(BOARDS) as (ports, devices), running("--patience", "20s") as hub, contextlib.ExitStack() as stack:
        clients = {stack.enter_context(hub.connect()): number for number in range(CLIENTS)}
        chosen = {number: random.Random(number).sample(ports, ASKED) for number in range(CLIENTS)}
        for connection, number in clients.items():
            word = 0x1000 + number
            connection.sendall(chunk(*[(port, packet(WRITE, word, number ^ port)) for port in chosen[number]]))
            connection.sendall(chunk(*[(port, packet(READ, word, count=1)) for port in chosen[number]]))
        found = all_answers(clients, 2)
        for connection, number in clients.items():
            written, read = found[connection]
            assert {code for code, _ in written} == {0}, number
            words = [struct.unpack("<3I", body)[2] for _, body in read]
            assert words == [number ^ port for port in chosen[number]], number
        assert counter(hub, "ipbus_hub_packets_total") == CLIENTS * ASKED * 2
        assert len(re.findall(r"^ipbus_hub_board_up\{.*\} 1$", hub.page("/metrics"), re.MULTILINE)) == BOARDS
        for process, most in ((hub.process, HUB_RSS_MAX), (devices, BOARDS_RSS_MAX)):
            assert rss_bytes(process.pid) < most, process.args
        assert counter(hub, "ipbus_hub_packets_held") == 0


def half_open(place, count, stack, sent=b""):
    """So many connections that send this, and no more. What the far end refuses is closed by it."""
    for _ in range(count):
        connection = stack.enter_context(socket.socket())
        connection.connect(place)
        if sent:
            connection.sendall(sent)


@pytest.mark.parametrize("sent", [b"", chunk((50001, packet(READ, 0, count=1)))[:-5]], ids=["nothing", "half a chunk"])
def test_ten_thousand_half_open_connections_at_the_hub(sent):
    command.allow_files(HALF_OPEN + 1000)
    with crate(1) as ((port,), _), running("--clients", "10100") as hub, contextlib.ExitStack() as stack:
        half_open((hub.at[1], int(hub.at[2])), HALF_OPEN, stack, sent)
        with hub.connect() as client:
            assert ask(client, (port, packet(WRITE, 1, 2)), (port, packet(READ, 1, count=1)))[1][1][8:] == b"\2\0\0\0"
            command.wait_until(lambda: counter(hub, "ipbus_hub_clients") == HALF_OPEN + 1, "all of them are there")
        assert rss_bytes(hub.process.pid) < HALF_OPEN_RSS_MAX


def test_half_open_connections_beyond_the_hubs_bound_are_refused_and_harm_nobody():
    command.allow_files(HALF_OPEN + 1000)
    with crate(1) as ((port,), _), running() as hub, hub.connect() as client, contextlib.ExitStack() as stack:
        assert ask(client, (port, packet(READ, 0, count=1)))[0][0] == 0
        half_open((hub.at[1], int(hub.at[2])), HALF_OPEN, stack)
        assert ask(client, (port, packet(READ, 0, count=1)))[0][0] == 0
        # Those that still wait to be accepted come later on a busy machine.
        command.wait_until(lambda: 1000 < counter(hub, "ipbus_hub_clients") < HALF_OPEN, "as many as it takes are there")
        assert rss_bytes(hub.process.pid) < HALF_OPEN_RSS_MAX
        stack.close()
        command.wait_until(lambda: counter(hub, "ipbus_hub_clients") == 1, "the others are forgotten")
        with hub.connect() as another:
            assert ask(another, (port, packet(READ, 0, count=1)))[0][0] == 0


@pytest.mark.parametrize("sent", [b"", b"\0\0\0\x0c\xf0\0\0"], ids=["nothing", "half a chunk"])
def test_ten_thousand_half_open_connections_at_a_device(sent):
    command.allow_files(HALF_OPEN + 1000)
    with command.serving("ipbustcp-2.0://127.0.0.1:0") as device, contextlib.ExitStack() as stack:
        half_open(command.place(device.uri), HALF_OPEN, stack, sent)
        done = command.hodo("ipbus", "write", device.uri, "0x10", "7")
        assert done.returncode == 0, done.stderr
        done = command.hodo("ipbus", "read", device.uri, "0x10", "--values")
        assert int(done.stdout, 0) == 7, done.stderr
        assert rss_bytes(device.pid) < HALF_OPEN_RSS_MAX


@pytest.mark.parametrize(("clients", "chunks"), [(30, 8), (50, 200)], ids=["within the bound", "beyond it"])
def test_clients_of_the_hub_that_never_read(clients, chunks):
    """They ask for as much as they may, or more; who reads is served, and what is owed to the others is bounded."""
    with crate(1) as ((port,), _), running() as hub, contextlib.ExitStack() as stack:
        greedy = chunk(*[(port, packet(READ, 0, count=255))] * 60)
        for _ in range(clients):
            connection = stack.enter_context(hub.connect())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                for _ in range(chunks):
                    connection.sendall(greedy)
        with hub.connect() as client:
            for _ in range(100):
                assert ask(client, (port, packet(READ, 0, count=1)))[0][0] == 0
        assert rss_bytes(hub.process.pid) < GREEDY_RSS_MAX
        ended = counter(hub, 'ipbus_hub_clients_ended_total{why="too_many_packets"}')
        assert ended == (0 if chunks == 8 else clients)


def test_a_board_that_answers_with_wrong_numbers_is_no_harm_to_others():
    with crate(1) as ((good,), _), crate(1, "&wrong_id=1") as ((bad,), _), running() as hub, hub.connect() as client:
        code = ask(client, (bad, packet(READ, 0, count=1)), (good, packet(READ, 0, count=1)))
        assert [code for code, _ in code][1] == 0
        assert code[0][0] != 0 and code[0][1] == b"", "no reply of another packet is taken for this one's"
