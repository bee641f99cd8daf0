"""A port of a host with two interfaces: what comes in by each of them, alone, by broadcast and by multicast."""

import contextlib
import json
import os
import socket
import subprocess

import command
import pytest
import shaped

GROUP = "239.255.43.21"
GROUP_V6 = "ff02::4321"


# Built before the stage: the example that prints where each datagram came in, and sends it back.
PROGRAM = command.BUILT / "examples/port"


@contextlib.contextmanager
def two_wires():
    """Two hosts with two wires between them; yields the names of their namespaces."""
    near, far = f"hodo-port-near-{os.getpid()}", f"hodo-port-far-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        for name in (near, far):
            shaped.ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        for wire in (1, 2):
            shaped.ip("link", "add", f"wire{wire}", "netns", near, "type", "veth", "peer", "name", f"wire{wire}", "netns", far)
            for name, host in ((near, 2), (far, 1)):
                at = ["-n", name, "address", "add", "dev", f"wire{wire}"]
                shaped.ip(*at, f"10.98.{wire}.{host}/24", "broadcast", f"10.98.{wire}.255")
                shaped.ip(*at, f"fd00:98:{wire}::{host}/64", "nodad")
                shaped.ip("-n", name, "link", "set", f"wire{wire}", "up")
        yield near, far


def index_of(name, interface):
    (link,) = json.loads(shaped.ip("-n", name, "-json", "link", "show", interface))
    return link["ifindex"]


# Sends one datagram from an address to another, with a text, and prints who answered.
SENDER = """
import socket, sys
source, to, port, interface = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
v6 = ":" in to
sender = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
sender.settimeout(10)
sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
sender.bind((source, 0))
sender.sendto(to.encode(), (to, port, 0, interface) if v6 else (to, port))
text, answered = sender.recvfrom(64)
assert text == to.encode()
print(answered[0])
"""


def ask(near, source, to, port, interface):
    sender = ["ip", "netns", "exec", near, "python3", "-c", SENDER, source, to, str(port), str(interface)]
    done = subprocess.run(sender, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_port_tells_the_address_and_the_interface_where_each_datagram_came_in(family):
    is_v6 = family == socket.AF_INET6
    with two_wires() as (near, far):
        indices = {wire: index_of(far, f"wire{wire}") for wire in (1, 2)}
        groups = [f"{GROUP_V6 if is_v6 else GROUP}%{index}" for index in indices.values()]
        port = ["ip", "netns", "exec", far, PROGRAM, "[::]:0" if is_v6 else "0.0.0.0:0", *groups]
        with subprocess.Popen(port, stdout=subprocess.PIPE, text=True) as listening:
            try:
                number = int(listening.stdout.readline().rsplit(":", 1)[1])
                for wire, index in indices.items():
                    network = f"fd00:98:{wire}::" if is_v6 else f"10.98.{wire}."
                    host, source = f"{network}1", f"{network}2"
                    tos = [host, GROUP_V6] if is_v6 else [host, f"{network}255", GROUP]
                    for to in tos:
                        leaves_by = index_of(near, f"wire{wire}") if to == GROUP_V6 else 0
                        answered = ask(near, source, to, number, leaves_by)
                        came_to, interface, sender, text = listening.stdout.readline().split()
                        shown = f"[{to}]" if is_v6 else to
                        assert (came_to, int(interface), text) == (f"{shown}:{number}", index, to)
                        assert sender.startswith(f"[{source}]" if is_v6 else source)
                        # No answer comes from a group; over IPv6 the kernel chooses the address.
                        assert answered == host or (to == GROUP_V6 and answered.startswith(("fe80", network)))
            finally:
                listening.kill()
