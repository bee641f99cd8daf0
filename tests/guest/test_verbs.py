"""Our verbs on the kernel's device: every operation, the ways in which each fails, and the command with `ibv_rc_pingpong` and with our own
adapter as the far end.
"""

import re

import command
import pytest

from guest import GUEST, HOST, UNTIL_IT_LISTENS
from test_pingpong import listening, ours

PROGRAM, HODO = "/tmp/verbs_pingpong", "/tmp/hodo"


@pytest.fixture(scope="session")
def verbs(guest):
    """The guest with our programs in it."""
    guest.copy(command.BUILT / "examples/verbs_pingpong", PROGRAM)
    guest.install(command.HODO, HODO)
    return guest


@pytest.fixture(scope="session")
def said(verbs):
    """What our program said of itself, when it had run to its end."""
    status, said = verbs.run(PROGRAM, timeout=300)
    assert status == 0, said
    return said


def test_every_operation_and_its_failures(said):
    operations = ["SEND with immediate, poll", "SEND with immediate, events", "SEND from and to two entries", "SEND inline"]
    operations += ["WRITE", "WRITE with immediate", "READ", "FETCH_ADD", "CMP_SWP", "500 requests outstanding, on two queue pairs"]
    for operation in operations:
        assert f"{operation}: ok" in said, said
    for failure in ("wrong remote key: remote access error (10)", "no far end: transport retry counter exceeded (12)"):
        assert f"{failure}, then flushed" in said, said
    assert said.count("every byte checked") == 12, said


def test_what_the_device_cannot_do_is_said_as_users_of_verbs_know_it(said):
    for message in (
        "explicit ODP: The device isn't ODP capable or does not support RC send and receive with ODP: ",
        "implicit ODP: The device isn't ODP capable or does not support RC send and receive with ODP: ",
        "device memory: Device doesn't support dm allocation: ",
        "timestamps: The device isn't completion timestamp capable: ",
        "another device: IB device mlx5_7 not found: this host has rxe0",
        "port 9: Couldn't get port info: rxe0 has no port 9",
        "GID 200: can't read sgid of index 200: the entry is empty",
    ):
        assert message in said, said


@pytest.mark.parametrize("how", [[], ["-e"], ["--spin", "50"], ["-s", "70000", "-m", "4096", "--receive-entries", "3"]])
def test_stock_ping_pong_is_the_far_end(verbs, how):
    size, mtu = (70_000, 4096) if "-s" in how else (4096, 1024)
    stock = f"timeout 60 ibv_rc_pingpong -g 1 -n 200 -s {size} -m {mtu}"
    line = f"timeout 60 {HODO} pingpong -d rxe0 -g 1 -n 200 {' '.join(how)}"
    server = verbs.start(stock)
    status, said = verbs.run(f"{line} --connect-within 20 {GUEST}")
    assert status == 0 and f"{400 * size} bytes" in said, said
    assert server.wait()[0] == 0
    server = verbs.start(f"{line} --listen 0.0.0.0")
    status, said = verbs.run(f"{UNTIL_IT_LISTENS}; {stock} {GUEST}")
    assert status == 0 and f"{400 * size} bytes" in said, said
    assert server.wait()[0] == 0


@pytest.mark.parametrize("test", ["send-lat", "write-bw", "read-lat", "atomic-bw"])
def test_our_own_adapter_is_the_far_end(verbs, test):
    with ours(verbs, "--listen", HOST, "--address", HOST) as server:
        listening(server)
        sizes = "8" if "atomic" in test else "2,4096,65536"
        status, said = verbs.run(f"{HODO} pingpong -d rxe0 -g 1 --test {test} --sizes {sizes} --tx-depth 4 -n 50 -c {HOST}")
        text, _ = server.communicate(timeout=60)
        assert status == 0 and server.returncode == 0, said + text
    assert all(re.search(rf"^ *{size} ", said, re.MULTILINE) for size in sizes.split(",")), said
