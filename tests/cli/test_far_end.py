"""A far end that is absent, foreign, silent, killed or stopped: exit 1 with its name, and nothing hangs."""

import contextlib
import json
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
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for scheme in ("tcp", "udp"):
        uri = f"{scheme}://127.0.0.1:{port}"
        command.refused("bench", uri, *command.SHORT, status=1, says=[str(port)], within=NOTICED_S)
    says = ["refused", str(port)]
    command.refused("bench", f"tcp://127.0.0.1:{port}", *command.SHORT, status=1, says=says, within=10)


def test_no_such_unix_socket(tmp_path):
    uri = f"unix://{tmp_path}/nothing"
    command.refused("bench", uri, *command.SHORT, status=1, says=["nothing"], within=10)


def test_no_such_host():
    command.refused("bench", "tcp://nonesuch.invalid:1", *command.SHORT, status=(1, 2), says=["nonesuch"], within=NOTICED_S)


@pytest.mark.parametrize("answer", [http, noise, ssh, silence, hang_up])
@pytest.mark.parametrize("test", ["latency", "rate"])
def test_another_protocol_is_on_the_port(answer, test):
    with foreign_server(answer) as uri:
        arguments = ["--test", test, "--sizes", "64", *command.SHORT]
        command.refused("bench", uri, *arguments, status=1, says=[], within=NOTICED_S)


def test_a_udp_port_that_never_answers():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        uri = f"udp://127.0.0.1:{silent.getsockname()[1]}"
        command.refused("bench", uri, "--test", "latency", *command.SHORT, status=1, says=[], within=NOTICED_S)


@pytest.mark.parametrize("uri", ["tcp://127.0.0.1:0", "udp://127.0.0.1:0"])
@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("wait", ["block", "spin"])
def test_a_far_end_that_dies_or_is_stopped_keeps_what_was_measured(uri, harm, wait, tmp_path):
    result = tmp_path / "result.json"
    with command.serving(uri) as server:
        run = ["bench", server.uri, *RUN, "--wait", wait, "--json", result, "--quiet"]
        with command.started(*run) as tester:
            command.wait_until_busy(server.pid)
            server.send_signal(harm)
            said, _ = tester.communicate(timeout=NOTICED_S)
        assert tester.returncode == 1, said
        assert "panicked" not in said and said.strip(), said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert found[-1]["verdict"]["state"] in ("interrupted", "failed")
    assert found[-1]["operations"] > 0 and found[-1]["intervals"]


@pytest.mark.parametrize("harm", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_was_measured(harm, tmp_path):
    result = tmp_path / "result.json"
    with command.serving("tcp://127.0.0.1:0") as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "1K,2K", "--repeat", "1"]
        with command.started(*run, "--duration", "3s", "--json", result, "--quiet") as tester:
            # The first size is written before the second is interrupted.
            command.wait_until(lambda: sizes(result) == [1024], "the first size is in the file")
            command.wait_until_busy(server.pid)
            tester.send_signal(harm)
            said, _ = tester.communicate(timeout=10)
    assert tester.returncode == 1, said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert [one["size_bytes"] for one in found] == [1024, 2048]
    assert found[0]["verdict"]["state"] not in ("interrupted", "failed")
    assert found[1]["verdict"]["state"] == "interrupted" and found[1]["operations"] > 0


def sizes(path):
    try:
        return [one["size_bytes"] for one in json.loads(path.read_text(encoding="utf-8"))["measurements"]]
    except (FileNotFoundError, ValueError):
        return None


@pytest.mark.parametrize("harm", [signal.SIGINT, signal.SIGKILL])
def test_the_far_end_that_was_started_here_ends_too(harm):
    with command.started("bench", "tcp", *RUN, "--quiet") as tester:
        command.wait_until(lambda: command.children(tester.pid), "a far end was started")
        far_ends = command.children(tester.pid)
        command.wait_until_busy(tester.pid)
        tester.send_signal(harm)
        tester.wait(10)
        gone = lambda: not any(command.is_there(pid) for pid in far_ends)  # noqa: E731
        command.wait_until(gone, "the far end is gone", within=5)


def test_a_server_ends_in_order():
    for harm in (signal.SIGINT, signal.SIGTERM):
        with command.serving("tcp://127.0.0.1:0") as server:
            server.send_signal(harm)
            assert server.wait(5) == 0


def test_a_port_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command.refused("serve", f"tcp://127.0.0.1:{port}", status=1, says=["in use", str(port)], within=10)
