"""`hodo pva serve` with clients that do not read, stop, die, break the rules or come in thousands: the others notice nothing, and memory is bounded."""

import contextlib
import os
import pathlib
import queue
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import command
import pva
import pytest

HERE = pathlib.Path(__file__).parent
MIB = 1 << 20
FAST = [f"FAST:{number}" for number in range(50)]


def rss(process):
    """Bytes of memory that a process has now."""
    lines = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def metric(server, name):
    """A number of the server's metrics."""
    return int(next(line for line in pva.page(server, "/metrics").splitlines() if line.startswith(name + " ")).split()[1])


@contextlib.contextmanager
def subscriber(server, request, *names):
    """A subscriber whose process may be stopped; `rates` are its updates in each second."""
    command_line = [sys.executable, HERE / "subscriber.py", server, request, *names]
    path = f"{HERE.parents[1]}:{HERE}"
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as one:
        one.rates = queue.Queue()
        threading.Thread(target=lambda: [one.rates.put(float(line)) for line in one.stdout], daemon=True).start()
        try:
            yield one
        finally:
            one.kill()


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def seconds(subscriber, count=3):
    """The updates in each of the next seconds; the one that goes on now is not counted."""
    while not subscriber.rates.empty():
        subscriber.rates.get()
    subscriber.rates.get(timeout=20)
    return [subscriber.rates.get(timeout=20) for _ in range(count)]


def full_seconds(subscriber, alone):
    """How many of twenty seconds have 95 % of a rate: three are enough, since other tests take the processor now and then."""
    while not subscriber.rates.empty():
        subscriber.rates.get()
    full = 0
    for _ in range(20):
        full += subscriber.rates.get(timeout=20) >= 0.95 * alone
        if full == 3:
            break
    return full


@pytest.fixture
def server(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(
        """
        [[pv]]
        name = "FAST:{0..49}"
        source = "ramp"
        every = "10ms"
        [[pv]]
        name = "WAVE"
        type = "double[]"
        source = "waveform"
        size = 100_000
        every = "20ms"
        [[pv]]
        name = "BOX"
        put = "accept"
        """
    )
    with pva.serving(file) as process:
        yield process


@pytest.fixture
def fast(server):
    """A subscriber to all that is fast, once updates come."""
    with subscriber(server.at, "field(value)record[queueSize=20]", *FAST) as one:
        one.rates.get(timeout=20)
        yield one


def raw(server, *, receive=None):
    """A bare connection that has gone as far as being accepted."""
    connection = socket.socket()
    if receive:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    host, port = server.at.rsplit(":", 1)
    connection.connect((host, int(port)))
    connection.settimeout(10)
    greeting = b""
    while len(greeting) < 8 + 8 or len(greeting) < 16 + struct.unpack_from("<I", greeting, 12)[0]:
        greeting += connection.recv(4096)
    connection.sendall(message(1, struct.pack("<IHH", 65536, 100, 0) + text("anonymous") + b"\xff"))
    assert connection.recv(4096)[3] == 9
    return connection


def message(command, payload):
    return struct.pack("<BBBBI", 0xCA, 2, 0, command, len(payload)) + payload


def text(content):
    return bytes([len(content)]) + content.encode()


def opened(connection, name):
    """The number that the server gives to a channel."""
    connection.sendall(message(7, struct.pack("<HI", 1, 77) + text(name)))
    reply = connection.recv(4096)
    assert reply[3] == 7 and reply[16] == 0xFF, reply
    return struct.unpack_from("<I", reply, 12)[0]


def monitored(connection, sid, ioid, queue_size):
    """Subscribes to everything of a channel with a queue, and starts."""
    options = b"\x80\x00\x01" + text("record") + b"\x80\x00\x01" + text("_options") + b"\x80\x00\x01" + text("queueSize") + b"\x60"
    connection.sendall(message(13, struct.pack("<IIB", sid, ioid, 0x08) + options + text(str(queue_size))))
    connection.sendall(message(13, struct.pack("<IIB", sid, ioid, 0x44)))


@contextlib.contextmanager
def stopped_subscribers(server):
    """One that is stopped, and three that never read, each with queues of 1000 updates of 800 kB, once the server merges for them; yields the first."""
    with subscriber(server.at, "field(value)record[queueSize=1000]", *FAST, "WAVE") as stopped, contextlib.ExitStack() as stack:
        stopped.rates.get(timeout=20)
        for _ in range(3):
            connection = stack.enter_context(raw(server, receive=4096))
            monitored(connection, opened(connection, "WAVE"), 5, 1000)
        stopped.send_signal(signal.SIGSTOP)
        command.wait_until(lambda: metric(server, "pva_server_merged_updates_total") > 0, "updates are merged")
        yield stopped


def test_a_subscriber_that_stops_costs_the_others_nothing_and_no_memory(server, fast):
    before = rss(server)
    with stopped_subscribers(server) as stopped:
        assert min(seconds(fast)) > 0
        grown = rss(server) - before
        stopped.send_signal(signal.SIGCONT)
        command.wait_until(lambda: min(seconds(stopped, 1)) > 0, "it goes on once it reads again")
    # Up to 64 MiB a client wait, and what the system and the last updates hold.
    assert grown < 4 * 80 * MIB, f"{grown / MIB:.0f} MiB"


@pytest.mark.long("timing")
def test_a_subscriber_that_stops_costs_the_others_no_updates(server, fast):
    alone = median(seconds(fast))
    with stopped_subscribers(server):
        full = full_seconds(fast, alone)
    assert full == 3, f"{full} seconds with 95 % of {alone} updates"


@contextlib.contextmanager
def reading(connection, bytes_per_second):
    """Reads from a connection at a rate; counts the bytes, and how many updates have begun."""
    count, is_over = [0, 0], threading.Event()

    def read():
        while not is_over.wait(0.01):
            some = connection.recv(bytes_per_second // 100)
            count[0] += len(some)
            count[1] += some.count(UPDATE)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield count
    finally:
        is_over.set()
        thread.join()


# The header of an update without its length, as this server sends it.
UPDATE = bytes([0xCA, 2, 0x40, 13])


@contextlib.contextmanager
def slow_subscribers(server):
    """Three that read 400 kB a second of the 40 MB that the source makes, once the server merges for them; yields what each has got."""
    with contextlib.ExitStack() as stack:
        counts = []
        for _ in range(3):
            connection = stack.enter_context(raw(server, receive=4096))
            monitored(connection, opened(connection, "WAVE"), 5, 4)
            counts.append(stack.enter_context(reading(connection, 400_000)))
        merged = metric(server, "pva_server_merged_updates_total")
        command.wait_until(lambda: metric(server, "pva_server_merged_updates_total") > merged, "updates are merged")
        yield counts


@pytest.mark.long("timing")
def test_subscribers_a_hundred_times_slower_than_the_source_go_on_and_cost_the_fast_ones_nothing(server, fast):
    alone, beside = [], []
    for _ in range(3):
        alone += seconds(fast)
        with slow_subscribers(server) as counts:
            before, memory = [count[1] for count in counts], rss(server)
            beside += seconds(fast)
            grown = rss(server) - memory
            command.wait_until(lambda: all(count[1] > was for count, was in zip(counts, before, strict=True)), "each gets updates")
        assert grown < 32 * MIB, f"{grown / MIB:.0f} MiB"
        command.wait_until(lambda: metric(server, "pva_server_clients") == 1, "the slow ones are forgotten")
    assert median(beside) >= 0.95 * median(alone), f"updates a second: {beside} beside the slow ones, {alone} without them"


def test_clients_get_an_error_while_the_server_stands_still_and_go_on_after_it(server):
    seen = queue.Queue()
    with pva.client(server.at) as context:
        subscription = context.monitor("FAST:1", seen.put, notify_disconnect=True)
        while isinstance(seen.get(timeout=20), Exception):
            pass
        server.send_signal(signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            context.get("BOX", timeout=0.5)
        refusal = command.refused("pva", "get", "-w", "0.5", "-S", server.at, "BOX", status=1, says=("BOX: not connected within",))
        assert refusal.stdout == ""
        server.send_signal(signal.SIGCONT)
        while not seen.empty():
            seen.get()
        before = seen.get(timeout=20)
        assert seen.get(timeout=20) > before
        assert context.get("BOX", timeout=20) == 0
        subscription.close()


def test_a_client_that_does_not_read_can_still_unsubscribe(server):
    with raw(server, receive=4096) as connection:
        sid = opened(connection, "WAVE")
        monitored(connection, sid, 5, 4)
        command.wait_until(lambda: metric(server, "pva_server_blocked_clients") == 1, "the server has noticed that nobody reads")
        connection.sendall(message(15, struct.pack("<II", sid, 5)))
        command.wait_until(lambda: metric(server, "pva_server_subscriptions") == 0, "its subscription is gone although nothing can be sent")


def test_a_thousand_clients_are_served_and_forgotten(server):
    command.allow_files(4096)
    before = rss(server)
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(raw(server)) for _ in range(1000)]
        for number, connection in enumerate(connections):
            monitored(connection, opened(connection, f"FAST:{number % 50}"), 1, 4)
        with pva.client(server.at) as context:
            context.put("BOX", 5)
            assert context.get("BOX") == 5
        assert metric(server, "pva_server_subscriptions") == 1000
        for connection in connections[::100]:
            updates = b""
            while updates.count(b"\xca\x02") < 20:
                updates += connection.recv(4096)
    command.wait_until(lambda: metric(server, "pva_server_clients") == 0, "all are forgotten")
    assert rss(server) - before < 300 * MIB


def test_killed_and_stopped_clients_leave_nothing_behind(server):
    with subscriber(server.at, "field()", "WAVE", "FAST:1") as one, subscriber(server.at, "field()", "FAST:1") as other:
        one.rates.get(timeout=20), other.rates.get(timeout=20)
        one.kill()
        one.wait()
        command.wait_until(lambda: metric(server, "pva_server_clients") == 1, "the killed client is forgotten")
        other.rates.get(timeout=20)
        assert other.rates.get(timeout=20) > 0


HOSTILE = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "a message over the limit": struct.pack("<BBBBI", 0xCA, 2, 0, 10, 0xFFFFFFFF) + bytes(100),
    "a side that it is not": struct.pack("<BBBBI", 0xCA, 2, 0x40, 2, 0),
    "a segment of nothing": struct.pack("<BBBBI", 0xCA, 2, 0x30, 10, 4) + bytes(4),
    "types without end": message(20, struct.pack("<IIB", 1, 1, 8) + (b"\x80\x00\x01" + text("a")) * 60),
    "two hundred bytes that say they are millions": message(7, struct.pack("<HI", 1, 77) + b"\xfe\xfe\xff\xff\x7f" + bytes(200)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_who_breaks_the_rules_is_closed_with_a_line_in_the_log(server, what):
    before = rss(server)
    with raw(server) as connection:
        connection.sendall(HOSTILE[what])
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(4096):
                pass
    command.wait_until(lambda: any("127.0.0.1" in line and "is gone" in line for line in server.log), "a line in the log")
    assert rss(server) - before < 16 * MIB
    with pva.client(server.at) as context:
        assert context.get("BOX") == 0
