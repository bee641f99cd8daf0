"""A server outlives garbage, half-open and vanished clients, serves many at once, and bounds its memory."""

import contextlib
import os
import pathlib
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

import command
import contract
import pytest

# Stated in docs/protocols/raw.md: a process's bound with this many channels.
CHANNELS = 10_000
RSS_BYTES_MAX = 256 << 20
# What 1 MiB of garbage and hundreds of connections may leave behind.
RSS_GROWTH_MAX = 32 << 20


def rss_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} is gone")


def test_connections_that_never_greet_give_up_their_places():
    """All places are taken by connections that say nothing; whoever greets is served within seconds."""
    magic = b"hodo raw" + struct.pack("<HHI", 1, 0, 1 << 20)
    hello = struct.pack("<BBHIQ", 0xA0, 0, 0, len(magic), 0) + magic
    with command.serving("tcp://127.0.0.1:0", "--peers-max", "4") as server, contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(server.uri))

        def is_welcome():
            with connect(server.uri) as newcomer, contextlib.suppress(ConnectionError):
                newcomer.sendall(hello)
                return newcomer.recv(1) == b"\xa1"
            return False

        command.wait_until(is_welcome, "a new client is welcome")


def still_serves(server):
    (one,) = command.bench(server.uri, "--test", "latency", "--sizes", "64", *command.SHORT, within=20)
    assert one["operations"] > 0
    assert server.poll() is None


def connect(uri):
    if uri.startswith("unix://"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(uri.removeprefix("unix://"))
        return connection
    kind = socket.SOCK_DGRAM if uri.startswith("udp") else socket.SOCK_STREAM
    connection = socket.socket(socket.AF_INET, kind)
    connection.connect(command.place(uri))
    return connection


@pytest.fixture(params=["tcp", "udp", "unix"])
def server(request, tmp_path):
    uri = f"unix://{tmp_path}/hodo.sock" if request.param == "unix" else f"{request.param}://127.0.0.1:0"
    with command.serving(uri) as process:
        yield process


def test_a_mebibyte_of_random_bytes(server):
    still_serves(server)
    before = rss_bytes(server.pid)
    garbage = random.Random(1).randbytes(1 << 20)
    step = 1400 if server.uri.startswith("udp") else 1 << 16
    with connect(server.uri) as connection, contextlib.suppress(OSError):
        connection.settimeout(5)
        for at in range(0, len(garbage), step):
            connection.send(garbage[at : at + step])
    assert rss_bytes(server.pid) - before < RSS_GROWTH_MAX
    still_serves(server)


def test_garbage_beside_a_measurement_does_it_no_harm(server):
    run = ["bench", server.uri, "--test", "rate", "--mode", "both", "--sizes", "1K", "--duration", "1s", "--repeat", "1"]
    with command.started(*run, "--quiet", "--json", "-") as tester:
        command.wait_until_busy(tester.pid, 0.1)
        garbage = random.Random(9).randbytes(1 << 20)
        step = 1400 if server.uri.startswith("udp") else 1 << 16
        for _ in range(4):
            with connect(server.uri) as connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                for at in range(0, len(garbage), step):
                    connection.send(garbage[at : at + step])
        said, _ = tester.communicate(timeout=30)
    assert tester.returncode == 0, said
    (one,) = contract.parse(said)["measurements"]
    assert one["operations"] > 0 and one["verdict"]["state"] not in ("interrupted", "failed")
    assert server.poll() is None


def test_every_first_byte(server):
    for first in range(256):
        with connect(server.uri) as connection, contextlib.suppress(OSError):
            connection.send(bytes([first]) + bytes([0xFF]) * 63)
    still_serves(server)


def test_clients_that_connect_and_vanish(server):
    linger_off = struct.pack("ii", 1, 0)
    before = rss_bytes(server.pid)
    for number in range(300):
        connection = connect(server.uri)
        if number % 2 and not server.uri.startswith("unix"):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_off)
        connection.close()
    assert rss_bytes(server.pid) - before < RSS_GROWTH_MAX
    still_serves(server)


def test_clients_that_stay_and_say_nothing(server):
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(connect(server.uri))
        still_serves(server)


def test_clients_that_never_read_what_they_asked_for():
    """Clients are stopped in the middle of receiving: what is unsent to them is bounded, and others are served."""
    with command.serving("tcp://127.0.0.1:0") as server, contextlib.ExitStack() as stack:
        run = ["--test", "rate", "--mode", "receive", "--sizes", "1M", "--window", "64", "--duration", "60s", "--quiet"]
        testers = [stack.enter_context(command.started("bench", server.uri, *run)) for _ in range(4)]
        command.wait_until_busy(server.pid)
        for tester in testers:
            tester.send_signal(command.signal.SIGSTOP)
        still_serves(server)
        assert rss_bytes(server.pid) < RSS_BYTES_MAX


def test_many_clients_at_once():
    with command.serving("tcp://127.0.0.1:0") as server:
        found, failures = [], []

        def one():
            try:
                found.extend(command.bench(server.uri, "--test", "latency", "--sizes", "64", *command.SHORT))
            except AssertionError as error:
                failures.append(error)

        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]
        assert len(found) == 8 and all(one["cpu"]["remote"] for one in found)


def test_ten_thousand_channels_in_bounded_memory():
    command.allow_files(CHANNELS + 1000)
    with command.serving("tcp://127.0.0.1:0") as server:
        plan = ["--test", "channels", "--mode", "both", "--channels", str(CHANNELS), "--sizes", "64", "--window", "1"]
        (one,) = command.bench(server.uri, *plan, "--count", str(2 * CHANNELS), "--repeat", "1", "--quiet", within=120)
        assert one["channels"] == CHANNELS and one["operations"] == 2 * CHANNELS
        for side in ("local", "remote"):
            assert one["cpu"][side]["max_rss_bytes"] < RSS_BYTES_MAX, side
        still_serves(server)


def test_the_memory_of_the_program_that_started_it_is_not_counted():
    """As a shell, a script or a test that is larger than the tester: the kernel's own figure has that in it."""
    large = [sys.executable, "-c", "import os, sys; held = b'x' * (200 << 20); os.execv(sys.argv[1], sys.argv[1:])"]
    with command.serving("tcp://127.0.0.1:0", prefix=large) as server:
        (one,) = command.bench(server.uri, "--test", "latency", "--sizes", "64", *command.SHORT, prefix=large)
    for side in ("local", "remote"):
        assert 1 << 20 < one["cpu"][side]["max_rss_bytes"] < 100 << 20, side


@pytest.mark.parametrize("threads", ["1", "2"])
def test_out_of_descriptors_those_connected_do_not_wait(threads):
    with command.serving(
        "tcp://127.0.0.1:0", "--threads", threads, prefix=["prlimit", "--nofile=40"]
    ) as server, contextlib.ExitStack() as stack:
        greeting = struct.pack("<BBHIQ", 0xA0, 0, 0, 16, 0) + b"hodo raw" + struct.pack("<HHI", 1, 0, 1 << 20)
        first = stack.enter_context(connect(server.uri))
        first.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first.sendall(greeting)
        assert len(first.recv(32)) == 32
        for _ in range(100):
            stack.enter_context(connect(server.uri)).sendall(greeting)
        spans = []
        for sequence in range(100):
            began = time.monotonic()
            first.sendall(struct.pack("<BBHIQ", 0xA2, 0, 0, 16, sequence))
            assert len(first.recv(16)) == 16
            spans.append(time.monotonic() - began)
        assert statistics.median(spans) < 1e-3, spans


def test_those_who_connect_leave_the_threads_their_descriptors():
    """The threads of a busy host start after the first connections have come."""
    with contextlib.ExitStack() as stack:
        busy = stack.enter_context(subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do :; done"]))
        stack.callback(busy.kill)
        for _ in range(3):
            prefix = ["taskset", "-c", "0", "prlimit", "--nofile=40"]
            with command.serving("tcp://127.0.0.1:0", "--threads", "2", prefix=prefix) as server:
                with contextlib.ExitStack() as those:
                    for _ in range(100):
                        those.enter_context(connect(server.uri))
                still_serves(server)


def test_descriptors_that_are_free_again_are_used():
    with command.serving("tcp://127.0.0.1:0", "--threads", "1", prefix=["prlimit", "--nofile=40"]) as server:
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(connect(server.uri))
        still_serves(server)


@pytest.mark.skipif(os.geteuid() != 0, reason="root's threads are not counted, and only root becomes another user")
def test_a_thread_that_cannot_be_made_is_an_error():
    prefix = ["prlimit", "--nproc=8", "setpriv", "--reuid=54321", "--clear-groups"]
    done = command.hodo("serve", "udp://127.0.0.1:0", "--threads", "64", prefix=prefix)
    assert done.returncode == 1 and "panicked" not in done.stderr, done.stderr
    assert "a thread cannot be started" in done.stderr and "--threads" in done.stderr


def test_two_servers_do_not_share_a_port_of_udp():
    with command.serving("udp://127.0.0.1:0", "--threads", "2") as server:
        command.refused("serve", server.uri, "--threads", "2", status=1, says=["address.*in use", "choose another port"])
