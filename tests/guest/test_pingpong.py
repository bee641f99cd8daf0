"""`hodo pingpong` on this host, and stock `ibv_rc_pingpong` on the kernel's rxe in the guest, each as client and as server."""

import contextlib
import re
import socket
import subprocess

import command
import pytest

from guest import GUEST, GUEST6, HOST, HOST6

# Every path MTU, sizes on both sides of it, and both ways to wait.
CASES = [
    (64, 256, "poll"), (64, 1024, "events"), (4096, 256, "poll"), (4096, 512, "events"), (4096, 1024, "poll"), (4096, 4096, "events"),
    (16384, 2048, "poll"), (65536, 1024, "events"), (65536, 4096, "poll"), (1, 1024, "poll"), (1023, 1024, "poll"),
]  # fmt: skip


def iterations(size):
    return 500 if size < 65536 else 100


@contextlib.contextmanager
def ours(guest, *arguments):
    """Our end, which is ended in any case."""
    line = [*guest.at_host(), command.HODO, "pingpong", *map(str, arguments)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def options(size, mtu, how):
    return ["-s", size, "-m", mtu, "-n", iterations(size), *(["-e"] if how == "events" else [])]


def stock(size, mtu, how):
    return "ibv_rc_pingpong -g 1 " + " ".join(map(str, options(size, mtu, how)))


def listening(process, said="local address"):
    """Waits until our server listens; it says so first."""
    line = process.stdout.readline()
    if said not in line:
        process.kill()
        raise AssertionError(line + process.stdout.read())


class Counts:
    """How many messages the guest's kernel has received, and sent with success, since this was made."""

    def __init__(self, guest):
        self.guest = guest
        self.before = self.read()

    def read(self):
        _, said = self.guest.run("cd /sys/class/infiniband/rxe0/ports/1/hw_counters; cat rdma_recvs rdma_sends")
        return [int(count) for count in said.split()]

    def since(self):
        return [now - before for now, before in zip(self.read(), self.before, strict=True)]


def done(process, size, counts):
    """What our end says. Where it fails, what the guest's kernel has counted is heard, too."""
    text, _ = process.communicate(timeout=120)
    if process.returncode == 0 and f"{iterations(size)} iters" in text:
        return text
    received, sent = counts.since()
    # It would keep the port from the next.
    counts.guest.run("kill $(pidof ibv_rc_pingpong)")
    # rxe of Linux 6.1 can stop for good after it has sent something again, as it does where its processor is emulated on a busy host: it has
    # acknowledged our last message and completed what it sent itself, its program polls, and it sends nothing more.
    exchanged = re.search(r"after (\d+) of \d+, though the far end has acknowledged every message of ours", text)
    its_turn = ": it is its turn" if exchanged and received >= sent == int(exchanged[1]) else ""
    raise AssertionError(f"{text}\nthe guest's kernel has received {received} messages and sent {sent}{its_turn}")


@pytest.mark.parametrize(("size", "mtu", "how"), CASES)
def test_our_client_to_the_stock_server(guest, size, mtu, how):
    counts = Counts(guest)
    server = guest.start("timeout 100 " + stock(size, mtu, how))
    with ours(guest, GUEST, "--connect-within", 20, *options(size, mtu, how)) as client:
        text = done(client, size, counts)
    assert f"GID ::ffff:{GUEST}" in text and f"GID ::ffff:{HOST}" in text, text
    status, said = server.wait(100)
    assert status == 0 and f"{iterations(size)} iters in" in said, said


@pytest.mark.parametrize(("size", "mtu", "how"), CASES)
def test_the_stock_client_to_our_server(guest, size, mtu, how):
    counts = Counts(guest)
    with ours(guest, "--listen", HOST, "--address", HOST, *options(size, mtu, how)) as server:
        listening(server)
        client = guest.start(f"timeout 100 {stock(size, mtu, how)} {HOST}")
        done(server, size, counts)
        status, said = client.wait(100)
        assert status == 0 and f"{iterations(size)} iters" in said, said


def gid_of(guest, address):
    """Returns the index of the GID that is this IPv6 address."""
    _, said = guest.run("cd /sys/class/infiniband/rxe0/ports/1/gids; for index in 0 1 2 3 4 5 6 7; do echo $index $(cat $index); done")
    wanted = "".join(f"{byte:02x}" for byte in socket.inet_pton(socket.AF_INET6, address))
    found = [line.split()[0] for line in said.splitlines() if line.replace(":", "").endswith(wanted)]
    assert found, said
    return found[0]


# Stock ones meet over TCP of IPv4 in any case. The header of IPv6 has no identification: what is received is checked with all 32 bits of the CRC.
@pytest.mark.parametrize(("size", "mtu"), [(64, 1024), (65536, 1024), (65536, 4096)])
def test_ipv6_both_ways(guest, size, mtu):
    flags = options(size, mtu, "poll")
    line = f"ibv_rc_pingpong -g {gid_of(guest, GUEST6)} " + " ".join(map(str, flags))
    counts = Counts(guest)
    server = guest.start("timeout 100 " + line)
    with ours(guest, GUEST, "--address", HOST6, "--connect-within", 20, *flags) as client:
        text = done(client, size, counts)
    assert f"GID {GUEST6}" in text and f"GID {HOST6}" in text, text
    status, said = server.wait(100)
    assert status == 0, said
    counts = Counts(guest)
    with ours(guest, "--listen", HOST, "--address", HOST6, *flags) as server:
        listening(server)
        client = guest.start(f"timeout 100 {line} {HOST}")
        done(server, size, counts)
        status, said = client.wait(100)
        assert status == 0 and f"{iterations(size)} iters" in said, said
