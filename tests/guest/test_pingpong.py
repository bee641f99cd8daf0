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
ITERATIONS = 500


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
    return ["-s", size, "-m", mtu, "-n", ITERATIONS, *(["-e"] if how == "events" else [])]


def stock(size, mtu, how):
    return "ibv_rc_pingpong -g 1 " + " ".join(map(str, options(size, mtu, how)))


def listening(process, said="local address"):
    """Waits until our server listens; it says so first."""
    line = process.stdout.readline()
    if said not in line:
        process.kill()
        raise AssertionError(line + process.stdout.read())


def done(process, far=None):
    """What our end says. Where it fails, the far end in the guest is heard, too."""
    text, _ = process.communicate(timeout=120)
    well = process.returncode == 0 and f"{ITERATIONS} iters" in text
    assert well, text + (f"\nthe far end: {far.wait(100)}" if far else "")
    return text


@pytest.mark.parametrize(("size", "mtu", "how"), CASES)
def test_our_client_to_the_stock_server(guest, size, mtu, how):
    server = guest.start("timeout 100 " + stock(size, mtu, how))
    with ours(guest, GUEST, "--connect-within", 20, *options(size, mtu, how)) as client:
        text = done(client, server)
    assert f"GID ::ffff:{GUEST}" in text and f"GID ::ffff:{HOST}" in text, text
    status, said = server.wait(100)
    assert status == 0 and re.search(rf"{ITERATIONS} iters in", said), said


@pytest.mark.parametrize(("size", "mtu", "how"), CASES)
def test_the_stock_client_to_our_server(guest, size, mtu, how):
    with ours(guest, "--listen", HOST, "--address", HOST, *options(size, mtu, how)) as server:
        listening(server)
        status, said = guest.run(f"{stock(size, mtu, how)} {HOST}", timeout=100)
        assert status == 0 and f"{ITERATIONS} iters" in said, said
        done(server)


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
    server = guest.start("timeout 100 " + line)
    with ours(guest, GUEST, "--address", HOST6, "--connect-within", 20, *flags) as client:
        text = done(client, server)
    assert f"GID {GUEST6}" in text and f"GID {HOST6}" in text, text
    status, said = server.wait(100)
    assert status == 0, said
    with ours(guest, "--listen", HOST, "--address", HOST6, *flags) as server:
        listening(server)
        status, said = guest.run(f"{line} {HOST}", timeout=100)
        assert status == 0 and f"{ITERATIONS} iters" in said, said
        done(server)
