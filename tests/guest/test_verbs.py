"""Our verbs on the kernel's device: every operation, the ways in which each fails, and `ibv_rc_pingpong` as the far end."""

import json
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = "/tmp/verbs_pingpong"


@pytest.fixture(scope="session")
def verbs(guest):
    """The guest with our program in it."""
    build = ["cargo", "build", "--release", "-p", "hodo-roce-host", "--example", "verbs_pingpong", "--message-format", "json"]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    (program,) = filter(None, built)
    guest.copy(program, PROGRAM)
    # The only library of ours that the stock tools do without.
    (unwinder,) = re.findall(r"/\S*libgcc_s\S*", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)
    guest.copy(unwinder, unwinder)
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


@pytest.mark.parametrize("events", ["", "events"])
def test_stock_ping_pong_is_the_far_end(verbs, events):
    stock = f"timeout 60 ibv_rc_pingpong -g 1 -n 200 {'-e' if events else ''}"
    server = verbs.start(stock)
    status, said = verbs.run(f"sleep 1; {PROGRAM} client 10.9.0.1:18515 {events} 200")
    assert status == 0 and "1638400 bytes" in said, said
    assert server.wait()[0] == 0
    server = verbs.start(f"timeout 60 {PROGRAM} server 0.0.0.0:18515 {events} 200")
    status, said = verbs.run(f"sleep 1; {stock} 10.9.0.1")
    assert status == 0 and "1638400 bytes" in said, said
    assert server.wait()[0] == 0
