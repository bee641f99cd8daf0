"""A daemon's pages outlive slow clients, answer no other host's requests, and steer for its owner and root alone."""

import contextlib
import os
import pathlib
import signal
import socket

import command
import farms
import pytest


def slow(stack, pages, source="127.0.0.1"):
    """A connection that never ends its request."""
    host, port = pages.rsplit(":", 1)
    connection = stack.enter_context(socket.socket())
    connection.bind((source, 0))
    connection.connect((host, int(port)))
    connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
    return connection


@pytest.mark.parametrize("hosts", [1, 100])
def test_slow_clients_keep_nobody_out(hosts):
    """Four times as many connections as all callers may have together."""
    with farms.controller() as controller, contextlib.ExitStack() as stack:
        for number in range(256):
            slow(stack, controller.pages, f"127.0.1.{1 + number % hosts}")
        for _ in range(20):
            assert controller.ask("/health") == (200, "ready\n")
        assert "farm_run_number 1" in controller.page("/metrics")
        done = command.hodo("farm", "stop", controller.pages)
        assert done.returncode == 0 and done.stdout == "stopped\n", done.stderr
        assert controller.process.wait(10) == 0


@pytest.mark.parametrize("clients", [300, 2000])
def test_slow_clients_that_came_while_it_was_busy_keep_nobody_out(clients):
    """All are there at its next look, the one that has a request last."""
    with farms.controller() as controller, contextlib.ExitStack() as stack:
        controller.process.send_signal(signal.SIGSTOP)
        for number in range(clients):
            slow(stack, controller.pages, f"127.0.1.{1 + number % 100}")
        asking = slow(stack, controller.pages)
        asking.send(b"y\r\nConnection: close\r\n\r\n")
        controller.process.send_signal(signal.SIGCONT)
        asking.settimeout(20)
        assert asking.recv(4096).startswith(b"HTTP/1.1 200 OK")


def test_a_page_in_a_browser_that_has_its_name_point_here_reads_nothing():
    """DNS rebinding: the request comes to this address, for another name."""
    host = pathlib.Path("/proc/sys/kernel/hostname").read_text(encoding="utf-8").strip()
    with farms.controller("--pages-name", "farm.example") as controller:
        port = controller.pages.rsplit(":", 1)[1]
        for name in ("localhost", f"127.0.0.1:{port}", f"[::1]:{port}", f"{host}:{port}", "farm.example"):
            assert controller.ask("/farm", headers={"Host": name})[0] == 200, name
        for name in ("evil.example", f"evil.example:{port}", "localhost.evil.example", f"127.0.0.1.evil.example:{port}"):
            status, text = controller.ask("/farm", headers={"Host": name})
            assert status == 421 and "--pages-name" in text, text


@pytest.mark.parametrize("path", ["/pause", "/resume", "/drain", "/stop", "/run?number=7"])
def test_nothing_is_steered_over_tcp_unless_told(path):
    with farms.controller() as controller:
        status, text = controller.ask(path, "POST", over_tcp=True)
        assert status == 403 and "--control everybody" in text, text
        assert controller.farm()["state"] == "running" and controller.farm()["run"] == 1


def test_everybody_steers_over_tcp_where_told():
    with farms.controller("--control", "everybody") as controller:
        assert controller.ask("/pause", "POST", over_tcp=True) == (200, "run 1: paused\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_of_the_host_reads_and_does_not_steer():
    with farms.controller() as controller:
        os.seteuid(65_534)
        try:
            refused, health = controller.ask("/pause", "POST"), controller.ask("/health", over_tcp=False)
        finally:
            os.seteuid(0)
        assert refused[0] == 403 and "user 65534 may not steer this daemon" in refused[1], refused
        assert health == (200, "ready\n") and controller.farm()["state"] == "running"


def test_what_a_far_end_says_does_nothing_to_a_terminal():
    escapes = b"\x1b]0;title\x07\x1b[2J\x1b[H\r\xc2\x9b31m"
    for head in (b"HTTP/1.1 503 Away\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            pages = "127.0.0.1:%d" % listener.getsockname()[1]
            with command.started("hub", "stats", pages) as reader:
                client, _ = listener.accept()
                with client:
                    client.recv(4096)
                    client.sendall(head + escapes + b" said\n")
                shown = reader.communicate(timeout=20)[0]
        assert "said" in shown and not set("\x1b\x07\r\x9b") & set(shown), ascii(shown)
