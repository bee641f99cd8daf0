"""SEND, WRITE, READ and atomic operations between our adapter on this host and our verbs on the kernel's rxe, every byte checked."""

import contextlib
import re
import subprocess

import command
import pytest

from guest import GUEST, HOST

PROGRAM = "/tmp/hodo"
TESTS = ("send-lat", "send-bw", "write-lat", "write-bw", "read-lat", "read-bw", "atomic-lat", "atomic-bw")
# On both sides of the path MTU of 1024, and many packets of it.
SIZES = (1, 1024, 1025, 65536)


@pytest.fixture(scope="session")
def hodo(guest):
    """The guest with the command in it."""
    guest.install(command.HODO, PROGRAM)
    return guest


def options(test):
    sizes = [] if test.startswith("atomic") else ["--sizes", ",".join(map(str, SIZES))]
    # The guest takes some MB/s: more at a time would not be acknowledged before the timeout.
    return ["--test", test, "-n", "100", "--tx-depth", "2", "--chk", *sizes]


def rows(text):
    return [int(line.split()[0]) for line in text.splitlines() if re.match(r" \d", line)]


def expected(test):
    return [8] if test.startswith("atomic") else list(SIZES)


@contextlib.contextmanager
def here(guest, *arguments):
    process = subprocess.Popen(
        [*guest.at_host(), command.HODO, "pingpong", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("test", TESTS)
def test_our_adapter_asks_the_kernels(hodo, test):
    server = hodo.start(f"timeout 60 {PROGRAM} pingpong --backend verbs -g 1 --listen {GUEST}")
    with here(hodo, GUEST, "--connect-within", "20", *options(test)) as client:
        said, _ = client.communicate(timeout=90)
    status, far = server.wait(70)
    assert client.returncode == 0 and rows(said) == expected(test), said + far
    assert status == 0, far


@pytest.mark.parametrize("test", TESTS)
def test_the_kernels_adapter_asks_ours(hodo, test):
    with here(hodo, "--listen", HOST) as server:
        asks = f"timeout 60 {PROGRAM} pingpong {HOST} --backend verbs -g 1 --connect-within 20 {' '.join(options(test))}"
        status, said = hodo.run(asks, timeout=70)
        assert status == 0 and rows(said) == expected(test), said
        far, _ = server.communicate(timeout=20)
        assert server.returncode == 0, far
