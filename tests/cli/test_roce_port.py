"""Several ends of `hodo pingpong` at one address, toward far ends that send to one UDP port only, as adapters and the kernel's rxe do."""

import contextlib
import ipaddress
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys

import command
import pytest
from stock_end import Host, StockEnd

SIZE = 64
FIRST, ALL = 20, 60
NOBODY = 65534


def free_port(kind=socket.SOCK_DGRAM):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def end(udp_port, messages, *arguments):
    """An end of this program at 127.0.0.1, which is ended in any case."""
    options = ["--address", "127.0.0.1", "--udp-port", str(udp_port), "-s", str(SIZE), "-n", str(messages), "--timeout", "30"]
    line = [command.HODO, "pingpong", *options, *map(str, arguments)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def serving(udp_port, messages):
    """A server that listens."""
    port = free_port(socket.SOCK_STREAM)
    with end(udp_port, messages, "-p", port) as process:
        assert "listening" in process.stderr.readline()
        process.port = port
        yield process


@contextlib.contextmanager
def far_ends(udp_port, addresses):
    """Stock ends at these addresses, of which those at one address are one host's."""
    hosts = {address: Host(address, udp_port) for address in set(addresses)}
    ends = [StockEnd(hosts[address], SIZE) for address in addresses]
    try:
        yield ends
        assert [host.wrong for host in hosts.values()] == [0] * len(hosts), "packets with a wrong CRC"
    finally:
        for one in [*ends, *hosts.values()]:
            one.close()


def finished(process, messages):
    out, complaint = process.communicate(timeout=60)
    assert process.returncode == 0 and f"{messages} iters in" in out, (process.returncode, out, complaint)


# All far ends on one host, so that one socket receives for all; each on a host of its own; and both.
HOSTS = [("127.0.0.9",) * 3, ("127.0.0.7", "127.0.0.8", "127.0.0.9"), ("127.0.0.9", "127.0.0.8", "127.0.0.9")]


@pytest.mark.parametrize("hosts", HOSTS)
@pytest.mark.parametrize("way", ["ends", "is killed"])
def test_the_first_of_three_ends_goes_and_the_others_go_on(hosts, way):
    udp_port = free_port()
    with contextlib.ExitStack() as stack:
        counts = [FIRST, ALL, ALL]
        near = [stack.enter_context(serving(udp_port, count)) for count in counts]
        far = stack.enter_context(far_ends(udp_port, hosts))
        for server, client in zip(near, far, strict=True):
            client.connect(server.port)
        for _ in range(10):
            for client in far:
                client.exchange(1)
        if way == "ends":
            far[0].exchange(FIRST - 10)
            finished(near[0], FIRST)
        else:
            near[0].kill()
            near[0].wait()
        for _ in range(ALL - 10):
            for client in far[1:]:
                client.exchange(1)
        for server, count in list(zip(near, counts, strict=True))[1:]:
            finished(server, count)


def test_an_end_that_stands_still_keeps_no_other_from_its_packets():
    """The one that came last receives for all of a host, until each has had a packet."""
    udp_port = free_port()
    with contextlib.ExitStack() as stack:
        near = [stack.enter_context(serving(udp_port, ALL)) for _ in range(3)]
        far = stack.enter_context(far_ends(udp_port, HOSTS[0]))
        for server, client in zip(near, far, strict=True):
            client.connect(server.port)
        for client in far:
            client.exchange(10)
        near[2].send_signal(signal.SIGSTOP)
        for client in far[:2]:
            client.exchange(ALL - 10)
        for server in near[:2]:
            finished(server, ALL)
        near[2].send_signal(signal.SIGCONT)
        far[2].exchange(ALL - 10)
        finished(near[2], ALL)


def test_what_is_handed_on_by_somebody_else_is_not_taken():
    udp_port = free_port()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(serving(udp_port, FIRST))
        (client,) = stack.enter_context(far_ends(udp_port, ["127.0.0.9"]))
        client.connect(server.port)
        client.exchange(10)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as somebody:
            source = ipaddress.IPv6Address("::ffff:127.0.0.9").packed
            head = struct.pack("=QHHI16s", 0x1234_5678_9ABC_DEF0, 1500, client.socket.getsockname()[1], 0, source)
            somebody.sendto(head + client.message(), client.far)
            with pytest.raises(queue.Empty):
                client.packets.get(timeout=0.3)
        client.exchange(FIRST - 10)
        finished(server, FIRST)


def test_clients_of_one_host_reach_three_stock_servers():
    udp_port = free_port()
    with contextlib.ExitStack() as stack:
        far = stack.enter_context(far_ends(udp_port, HOSTS[0]))
        near = []
        for server in far:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            near.append(stack.enter_context(end(udp_port, ALL, "127.0.0.1", "-p", listener.getsockname()[1])))
            server.accept(listener)
        for _ in range(ALL):
            for server in far:
                server.exchange(1, is_client=False)
        for client in near:
            finished(client, ALL)


SQUATTER = """
import os, socket, sys
os.setuid(int(sys.argv[1]))
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, int(sys.argv[3]))
one.bind((sys.argv[4], int(sys.argv[2])))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("at", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(("user", "shares", "says"), [(NOBODY, 1, f"a program of user {NOBODY} has that port"), (os.getuid(), 0, "another program of this user has that port")])
def test_another_program_at_the_port_is_named_with_the_remedy(user, shares, says, at):
    udp_port = free_port()
    line = [sys.executable, "-c", SQUATTER, *map(str, (user, udp_port, shares, at))]
    with contextlib.ExitStack() as stack:
        squatter = stack.enter_context(subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(squatter.kill)
        assert squatter.stdout.readline() == "ready\n"
        server = stack.enter_context(serving(udp_port, 5))
        (client,) = stack.enter_context(far_ends(udp_port, ["127.0.0.9"])) if at != "0.0.0.0" else (None,)
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(client.address() if client else b"0000:000011:f946cf:00000000000000000000ffff7f000009\0")
            _, complaint = server.communicate(timeout=30)
    assert server.returncode == 1, complaint
    expected = rf"127\.0\.0\.9 sends to UDP 127\.0\.0\.1:{udp_port} and cannot be told of another port.*: {says}.*: stop it, or give this end an address of its own"
    assert re.search(expected, complaint), complaint
