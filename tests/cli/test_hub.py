"""`hodo hub` as a service manager, a client and a board see it."""

import contextlib
import random
import re
import signal
import socket
import struct
import threading
import urllib.error
import urllib.request

import command
import pytest

# What the hub answers where a board is not there, and where it may not be reached.
NO_STATUS, NOT_ALLOWED = 3, 7
CONTROL, STATUS, RESEND = 0, 1, 2
READ, WRITE = 0, 1


class Board:
    """A board of IPbus 2.0 that remembers what was written, and its last replies."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.memory = {}
        self.next = 1
        self.kept = {}
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                datagram, peer = self.socket.recvfrom(65536)
                reply = self.answer(datagram)
                if reply:
                    self.socket.sendto(reply, peer)

    def answer(self, datagram):
        order = ">" if datagram[0] == 0x20 else "<"
        words = list(struct.unpack(f"{order}{len(datagram) // 4}I", datagram))
        kind, number = words[0] & 0xF, words[0] >> 8 & 0xFFFF
        if kind == STATUS:
            return struct.pack(">16I", 0x200000F1, 2040, 16, 0x200000F0 | self.next << 8, *[0] * 12)
        if kind == CONTROL and number == self.next:
            replies = self.execute(words)
            self.kept[number] = struct.pack(f"{order}{len(replies)}I", *replies)
            self.next += 1
            return self.kept[number]
        return self.kept.get(number) if kind == RESEND else None

    def execute(self, words):
        replies, at = [words[0]], 1
        while at < len(words):
            header, address = words[at], words[at + 1]
            count, write = header >> 8 & 0xFF, header >> 4 & 0xF == WRITE
            replies.append(header & ~0xF)
            if write:
                self.memory.update({address + n: words[at + 2 + n] for n in range(count)})
            else:
                replies += [self.memory.get(address + n, 0) for n in range(count)]
            at += 2 + (count if write else 0)
        return replies

    def close(self):
        self.socket.close()


def packet(kind, address, *words, count=None):
    """A packet of one transaction, little-endian, as uHAL sends it."""
    count = len(words) if count is None else count
    return struct.pack(f"<3I{len(words)}I", 0x200000F0, 0x2001000F | count << 8 | kind << 4, address, *words)


def chunk(*requests):
    """Requests, each a port and a packet, as a chunk to the hub."""
    entries = [socket.inet_aton("127.0.0.1") + struct.pack(">HH", port, len(body) // 4) + body for port, body in requests]
    whole = b"".join(entries)
    return struct.pack(">I", len(whole)) + whole


def receive(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        assert more, f"the hub closed the connection after {data.hex()}"
        data += more
    return data


def answers(connection):
    """The next chunk of the hub: pairs of code and packet."""
    rest = receive(connection, struct.unpack(">I", receive(connection, 4))[0])
    found = []
    while rest:
        length, _, _, code = struct.unpack(">I4sHH", rest[:12])
        found.append((code, rest[12 : 4 + length]))
        rest = rest[4 + length :]
    return found


def ask(connection, *requests):
    connection.sendall(chunk(*requests))
    return answers(connection)


class Hub:
    def __init__(self, process):
        self.process = process
        said = "".join(process.stdout.readline() for _ in range(2))
        self.at = re.search(r"listening on ([\d.]+):(\d+)", said)
        self.pages = re.search(r"http://([\d.:]+)", said)[1]

    def connect(self):
        connection = socket.create_connection((self.at[1], int(self.at[2])), timeout=20)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def page(self, path):
        try:
            with urllib.request.urlopen(f"http://{self.pages}{path}", timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.read().decode()


@contextlib.contextmanager
def running(*options, prefix=(), cwd=None):
    at = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    with command.started("hub", *at, *options, prefix=prefix, cwd=cwd) as process:
        yield Hub(process)


@pytest.fixture
def board():
    board = Board()
    yield board
    board.close()


def test_what_is_written_is_read_back(board):
    with running() as hub, hub.connect() as client:
        write, read = packet(WRITE, 0x10, 1, 2, 3), packet(READ, 0x10, count=3)
        (written, got) = ask(client, (board.port, write), (board.port, read))
        assert written == (0, struct.pack("<2I", 0x200000F0, 0x20010310))
        assert got == (0, struct.pack("<5I", 0x200000F0, 0x20010300, 1, 2, 3))
        assert hub.process.poll() is None


def test_an_absent_board_delays_nobody_else(board):
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    with silent, running() as hub, hub.connect() as one, hub.connect() as other:
        one.sendall(chunk((silent.getsockname()[1], packet(READ, 0, count=1))))
        assert ask(other, (board.port, packet(READ, 0, count=1)))[0][0] == 0
        assert answers(one) == [(NO_STATUS, b"")]


def test_only_boards_on_the_list_are_reached_and_the_list_is_read_again(board, tmp_path):
    allowed = tmp_path / "boards"
    allowed.write_text("127.0.0.1:1\n", encoding="utf-8")
    with running("--allow", allowed) as hub, hub.connect() as client:
        read = (board.port, packet(READ, 0, count=1))
        assert ask(client, read) == [(NOT_ALLOWED, b"")]
        allowed.write_text("127.0.0.1 # every port\n", encoding="utf-8")
        hub.process.send_signal(signal.SIGHUP)
        command.wait_until(lambda: ask(client, read)[0][0] == 0, "the new list is in force")
        allowed.write_text("the new crate\n", encoding="utf-8")
        hub.process.send_signal(signal.SIGHUP)
        command.wait_until(lambda: "line 1" in hub.process.stdout.readline(), "the bad list is told of")
        assert ask(client, read)[0][0] == 0


def test_it_tells_of_clients_and_boards(board):
    with running("--stages") as hub, hub.connect() as client:
        for _ in range(200):
            ask(client, (board.port, packet(READ, 0, count=1)), (1, packet(READ, 0, count=1)))
        metrics = hub.page("/metrics")
        assert re.search(r"^ipbus_hub_packets_total 400$", metrics, re.MULTILINE), metrics
        assert f'ipbus_hub_board_replies_total{{board="127.0.0.1:{board.port}",version="2.0"}} 200' in metrics
        assert 'ipbus_hub_board_up{board="127.0.0.1:1",version="2.0"} 0' in metrics
        assert 'ipbus_hub_answers_total{code="3"} 200' in metrics
        assert 'ipbus_hub_stage_seconds_count{stage="hub queue"}' in metrics
        assert hub.page("/health") == "ready\n"
        stats = command.hodo("hub", "stats", hub.pages)
        assert stats.returncode == 0, stats.stderr
        assert re.search(rf"127.0.0.1:{board.port} +2.0 +answers +200 +200 +0", stats.stdout), stats.stdout
        assert re.search(r"127.0.0.1:1 +2.0 +dead \(3\) +200 +0 +200", stats.stdout), stats.stdout
    command.refused("hub", "stats", hub.pages, status=1, says=[hub.pages, "refused", "running"])


# From the client to the hub, to the board, back to the hub, and back to the client.
THROUGH = "queue, send, wire and device, hub queue, wire and board, hub answer, completion"
# The hub counts one packet in 64, so that a run has a number of them and not a time; these few can take longer than all on average, and leave no rest.
REST = "network, waking"
STAGES = ["--test", "latency", "--mode", "receive", "--sizes", "4", "--stages", "--timeout", "20s", "--count", "2000", "--warmup", "20ms", "--repeat", "1"]


@pytest.mark.parametrize("version", ["2.0", "1.3"])
def test_its_part_of_the_time_of_an_operation_is_told(version):
    (one,) = command.bench(f"chtcp-{version}", *STAGES, "--quiet")
    assert ", ".join(stage["name"] for stage in one["stages"] if stage["name"] != REST) == THROUGH
    there = [stage for stage in one["stages"] if stage["side"] == "remote"]
    assert len({stage["count"] for stage in there[:3]}) == 1
    here = [stage["share"] for stage in one["stages"] if stage["side"] == "local"]
    assert sum(here) == pytest.approx(1, abs=0.01)
    # What the hub tells is within what this side waits; it samples few of so short a run, and tells to within 3 %.
    assert max(stage["p50_ns"] for stage in there[:3]) < 1.1 * one["latency_ns"]["max"]
    assert one["cpu"]["remote"]["user_s"] >= 0
    # The plain loop does both exchanges too.
    assert one["limit"]["kind"] == "plain_loop" and "by UDP from the hub to the board" in one["limit"]["formula"]


def test_a_stage_that_cannot_be_is_not_told():
    # On one processor the board answers before the hub's call that sends has returned.
    (one,) = command.bench("chtcp-2.0", *STAGES, "--cpu", "0", "--quiet")
    time = {stage["name"]: stage for stage in one["stages"]}
    # Two messages and a board that answers: no less than the four calls that they are.
    assert time["wire and board"]["p50_ns"] > 2000, time


def test_a_hub_that_runs_tells_its_stages_on_its_pages(board):
    with running("--stages") as hub:
        link = f"chtcp-2.0://{hub.at[1]}:{hub.at[2]}?target=127.0.0.1:{board.port}"
        (one,) = command.bench(link, *STAGES, "--hub-pages", hub.pages, "--quiet")
        assert ", ".join(stage["name"] for stage in one["stages"] if stage["name"] != REST) == THROUGH
        gone = command.free_address()
        done = command.hodo("bench", link, *STAGES, "--hub-pages", gone)
        assert done.returncode == 0 and gone in done.stderr and "--hub-pages" in done.stderr, done.stderr


def test_it_comes_to_its_end_in_order(board):
    with running() as hub, hub.connect() as client, hub.connect() as idle:
        assert ask(client, (board.port, packet(WRITE, 1, 2)))[0][0] == 0
        hub.process.terminate()
        assert hub.process.wait(10) == 0
        assert client.recv(1) == b"" and idle.recv(1) == b""


def test_whoever_asks_gets_the_place_of_a_client_that_is_idle(board):
    """All places are taken; one that was idle for 10 s is closed for a new one, and who asks now and then keeps its place."""
    with running("--clients", "4") as hub, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(hub.connect()) for _ in range(3)]
        busy = stack.enter_context(hub.connect())
        for client in [*idle, busy]:
            assert ask(client, (board.port, packet(WRITE, 1, 2)))[0][0] == 0

        def is_served():
            assert ask(busy, (board.port, packet(READ, 1, count=1)))[0][0] == 0
            try:
                with hub.connect() as newcomer:
                    return ask(newcomer, (board.port, packet(READ, 1, count=1)))[0][0] == 0
            except (AssertionError, ConnectionError):
                return False

        assert not is_served()
        command.wait_until(is_served, "a new client is served")
        assert ask(busy, (board.port, packet(READ, 1, count=1)))[0][0] == 0
        assert idle[0].recv(1) == b"", "the one that was idle longest"
        assert all(ask(client, (board.port, packet(READ, 1, count=1)))[0][0] == 0 for client in idle[1:])


@pytest.mark.parametrize("seed", range(3))
def test_garbage_ends_who_sends_it_and_nobody_else(board, seed):
    with running() as hub, hub.connect() as client:
        garbage = random.Random(seed).randbytes(1 << 20)
        with hub.connect() as bad, contextlib.suppress(OSError):
            bad.sendall(garbage)
        with hub.connect() as half:
            half.sendall(chunk((board.port, packet(READ, 0, count=1)))[:-3])
            assert ask(client, (board.port, packet(READ, 0, count=1)))[0][0] == 0
        assert hub.process.poll() is None


def test_what_stands_in_its_way_is_named(tmp_path):
    command.refused("hub", "--allow", tmp_path / "none", status=2, says=["--allow", "none", "cannot be read"])
    wrong = tmp_path / "wrong"
    wrong.write_text("10.0.0.1\nboard 7\n", encoding="utf-8")
    command.refused("hub", "--allow", wrong, status=2, says=["line 2", "board 7", "address:port"])
    pid = tmp_path / "pid"
    with running("--pid-file", pid) as hub:
        taken = f"{hub.at[1]}:{hub.at[2]}"
        command.refused("hub", "--listen", taken, "--no-metrics", status=1, says=["listen", taken, "another"])
        command.refused("hub", "--listen", "127.0.0.1:0", "--metrics", hub.pages, status=1, says=[hub.pages])
        command.refused("hub", "--no-metrics", "--pid-file", pid, status=1, says=["already running", str(pid)])
