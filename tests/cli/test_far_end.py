"""A far end that is absent, foreign, silent, killed or stopped: exit 1 with its name, and nothing hangs."""

import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import threading

import command
import contract
import pytest

# A stalled far end is noticed after a few seconds; the bound leaves room for a loaded machine.
NOTICED_S = 40
RUN = ["--test", "rate", "--mode", "send", "--sizes", "1K", "--duration", "30s", "--warmup", "0ms", "--repeat", "1"]


def http(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno\n")


def noise(connection):
    connection.sendall(random.Random(1).randbytes(1 << 20))


def ssh(connection):
    # Speaks first, as SSH, SMTP and FTP do, and then listens.
    connection.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    silence(connection)


def silence(connection):
    while connection.recv(1 << 16):
        pass


def hang_up(_connection):
    pass


@contextlib.contextmanager
def foreign_server(answer):
    """A TCP server of something else, at a port of its own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def one(connection):
        with connection, contextlib.suppress(OSError):
            answer(connection)

    def accept():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_nothing_listens():
    port = command.free_port()
    for scheme in ("tcp", "udp"):
        uri = f"{scheme}://127.0.0.1:{port}"
        command.refused("bench", uri, *command.SHORT, status=1, says=[str(port)], within=NOTICED_S)
    for scheme, remedy in (("ipbusudp-2.0", "device on"), ("ipbusudp-1.3", "device on"), ("chtcp-2.0", "hodo hub")):
        uri = f"{scheme}://127.0.0.1:{port}" + ("?target=127.0.0.1:1" if scheme == "chtcp-2.0" else "")
        command.refused("bench", uri, *command.SHORT, status=1, says=["refused", str(port), remedy], within=NOTICED_S)
        command.refused("ipbus", "read", uri, "0x10", status=1, says=["refused", str(port), "is it on"], within=NOTICED_S)
    # Without ids nothing is asked before the first operation.
    uri = f"ipbusudp-2.0://127.0.0.1:{port}?reliable=false"
    command.refused("bench", uri, "--test", "latency", *command.SHORT, status=1, says=["refused", str(port)], within=NOTICED_S)
    says = ["refused", f"start `hodo serve tcp://127.0.0.1:{port}`"]
    command.refused("bench", f"tcp://127.0.0.1:{port}", *command.SHORT, status=1, says=says, within=10)


def test_no_such_unix_socket(tmp_path):
    uri = f"unix://{tmp_path}/nothing"
    command.refused("bench", uri, *command.SHORT, status=1, says=["nothing"], within=10)


def test_no_such_host():
    command.refused("bench", "tcp://nonesuch.invalid:1", *command.SHORT, status=(1, 2), says=["nonesuch"], within=NOTICED_S)


@pytest.mark.parametrize(("answer", "test"), command.spread([http, noise, ssh, silence, hang_up], ["latency", "rate"]))
def test_another_protocol_is_on_the_port(answer, test):
    with foreign_server(answer) as uri:
        arguments = ["--test", test, "--sizes", "64", *command.SHORT]
        command.refused("bench", uri, *arguments, status=1, says=[], within=NOTICED_S)


def test_a_udp_port_that_never_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        uri = f"udp://127.0.0.1:{silent.getsockname()[1]}"
        command.refused("bench", uri, "--test", "latency", *command.SHORT, status=1, says=[], within=NOTICED_S)


@pytest.mark.parametrize(
    ("wait", "harm", "protocol"),
    [("block", signal.SIGKILL, "tcp"), ("spin", signal.SIGKILL, "udp"), ("spin", signal.SIGSTOP, "tcp"), ("block", signal.SIGSTOP, "udp")],
)
def test_a_far_end_that_dies_or_is_stopped_keeps_what_was_measured(wait, harm, protocol, tmp_path):
    result = tmp_path / "result.json"
    with command.serving(f"{protocol}://127.0.0.1:0") as server:
        run = ["bench", server.uri, *RUN, "--wait", wait, "--timeout", "2s", "--json", result, "--quiet"]
        with command.started(*run) as tester:
            command.wait_until_busy(server.pid)
            server.send_signal(harm)
            said, _ = tester.communicate(timeout=NOTICED_S)
        assert tester.returncode == 1, said
        assert "panicked" not in said and said.strip(), said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert found[-1]["verdict"]["state"] in ("interrupted", "failed")
    assert found[-1]["operations"] > 0 and found[-1]["intervals"]


@pytest.mark.parametrize(
    ("plan", "protocol"),
    command.spread(
        [
            "latency --sizes 64",
            "latency --mode send --sizes 64",
            "rate --mode receive --sizes 1K",
            "rate --mode both --sizes 1K",
            "random --mode send --sizes 64,8K",
            "channels --channels 5 --sizes 1K",
            "open --rate 10K --sizes 64",
        ],
        ["tcp", "udp", "unix"],
    ),
)
def test_a_far_end_that_is_stopped_is_noticed_by_every_test(plan, protocol, tmp_path):
    result = tmp_path / "result.json"
    run = ["--duration", "60s", "--warmup", "0ms", "--repeat", "1", "--timeout", "1s", "--json", result, "--quiet"]
    uri = f"unix://{tmp_path}/socket" if protocol == "unix" else f"{protocol}://127.0.0.1:0"
    with command.serving(uri) as server, command.started("bench", server.uri, "--test", *plan.split(), *run) as tester:
        command.wait_until_busy(server.pid, 0.2)
        server.send_signal(signal.SIGSTOP)
        said, _ = tester.communicate(timeout=20)
    assert tester.returncode == 1 and "stalled" in said, said
    (one,) = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert one["verdict"]["state"] in ("interrupted", "failed") and "stalled" in one["verdict"]["text"]
    if one["operations"]:
        assert one["elapsed_s"] > 0 and one["intervals"]


def test_an_interrupt_keeps_what_was_measured(tmp_path):
    result = tmp_path / "result.json"
    with command.serving("tcp://127.0.0.1:0") as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "1K,2K", "--repeat", "1"]
        with command.started(*run, "--duration", "3s", "--json", result, "--quiet") as tester:
            # The first size is written before the second is interrupted.
            command.wait_until(lambda: sizes(result) == [1024], "the first size is in the file")
            command.wait_until_busy(server.pid)
            tester.send_signal(signal.SIGTERM)
            said, _ = tester.communicate(timeout=10)
    assert tester.returncode == 1, said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert [one["size_bytes"] for one in found] == [1024, 2048]
    assert found[0]["verdict"]["state"] not in ("interrupted", "failed")
    assert found[1]["verdict"]["state"] == "interrupted" and found[1]["operations"] > 0


def test_an_interrupt_is_heard_while_the_link_is_opened(tmp_path):
    result = tmp_path / "result.json"
    with foreign_server(silence) as uri:
        run = ["bench", uri, "--test", "latency", "--sizes", "64", "--timeout", "60s", "--json", result, "--quiet"]
        with command.started(*run) as tester:
            command.wait_until(lambda: command.is_connected(tester.pid), "it is connected")
            tester.send_signal(signal.SIGINT)
            said, _ = tester.communicate(timeout=5)
    assert tester.returncode == 1, said
    (one,) = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert one["verdict"] == {"state": "interrupted", "text": "interrupted: nothing had been counted yet"}


def test_an_interrupt_between_two_links_is_no_success(tmp_path):
    with command.started("--out", tmp_path / "results", "--progress", "plain") as demonstration:
        # The last row of the first link: its far end is being stopped now.
        command.announced(demonstration, r"^\[ *3/")
        demonstration.send_signal(signal.SIGINT)
        assert demonstration.wait(60) == 1
    found = contract.parse((tmp_path / "results/result.json").read_text(encoding="utf-8"))["measurements"]
    # However late a busy machine brings the signal, the plan is not done.
    assert [one["protocol"] for one in found[:3]] == ["tcp"] * 3 and found[-1]["protocol"] != "spw"


def sizes(path):
    try:
        return [one["size_bytes"] for one in json.loads(path.read_text(encoding="utf-8"))["measurements"]]
    except (FileNotFoundError, ValueError):
        return None


@pytest.mark.parametrize(("harm", "protocol"), [(signal.SIGINT, "tcp"), (signal.SIGKILL, "unix")])
def test_the_far_end_that_was_started_here_ends_too(harm, protocol, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with command.started("bench", protocol, *RUN, "--quiet", env=environment) as tester:
        command.wait_until(lambda: command.children(tester.pid), "a far end was started")
        far_ends = command.children(tester.pid)
        command.wait_until_busy(tester.pid)
        tester.send_signal(harm)
        tester.wait(10)
        gone = lambda: not any(command.is_there(pid) for pid in far_ends)  # noqa: E731
        command.wait_until(gone, "the far end is gone", within=5)
    assert not list(tmp_path.iterdir()), "its socket's folder is gone too"


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
def test_a_far_end_that_is_killed_leaves_no_socket_behind(harm, tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with command.started("bench", "unix", *RUN, "--timeout", "1s", "--quiet", env=environment) as tester:
        command.wait_until(lambda: command.children(tester.pid), "a far end was started")
        command.wait_until_busy(tester.pid)
        os.kill(command.children(tester.pid)[0], harm)
        assert tester.wait(NOTICED_S) == 1
    assert not list(tmp_path.iterdir())


def test_a_server_of_a_unix_socket_without_a_name_finds_one():
    with command.serving("unix") as server:
        found = command.bench(server.uri, "--test", "latency", "--sizes", "64", *command.SHORT)
        assert found[0]["operations"] > 0
        folder = pathlib.Path(server.uri.removeprefix("unix://")).parent
        server.terminate()
        assert server.wait(5) == 0 and not folder.exists()


def test_a_server_ends_in_order():
    for harm in (signal.SIGINT, signal.SIGTERM):
        with command.serving("tcp://127.0.0.1:0") as server:
            server.send_signal(harm)
            assert server.wait(5) == 0


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command.refused("serve", f"tcp://127.0.0.1:{port}", status=1, says=["in use", str(port)], within=10)
