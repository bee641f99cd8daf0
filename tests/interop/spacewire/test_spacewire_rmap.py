"""RMAP over SSDTP2 with spw_rmap at either end: its client against our bridge, our client against its server."""

import datetime
import pathlib
import random
import re
import shutil
import subprocess
import sysconfig

import command
import pyspw_rmap
import pytest
import spacewire

HERE = pathlib.Path(__file__).parent
WAIT = datetime.timedelta(seconds=2)
SITE = pathlib.Path(sysconfig.get_paths()["purelib"])


@pytest.fixture
def bridge(tmp_path):
    with spacewire.bridge(tmp_path) as started:
        yield started


@pytest.fixture
def node(bridge):
    with pyspw_rmap.SpwRmapTCPNode("127.0.0.1", str(bridge.ports[0])) as node:
        yield node


def target(path=(spacewire.MEMORY,), back=(spacewire.HOST,), logical=0xFE):
    return pyspw_rmap.TargetNode(logical, list(path), list(back))


@pytest.mark.parametrize("size", [1, 3, 4, 60, 1023, 4096, 65536])
def test_its_writes_and_reads_of_our_memory_agree(node, size):
    data = random.Random(size).randbytes(size)
    node.write(target(), 0x1000, list(data), WAIT)
    assert bytes(node.read(target(), 0x1000, size, WAIT)) == data
    assert bytes(node.read(target(), 0x1000 + size, 4, WAIT)) == bytes(4)


def test_it_reaches_the_memory_by_logical_address(node):
    # The network routes 254 to the memory; the reply needs a path, because spw_rmap's own address is 254, too.
    node.write(target(path=()), 0x40, [1, 2, 3, 4], WAIT)
    assert node.read(target(path=()), 0x40, 4, WAIT) == [1, 2, 3, 4]


def test_it_learns_of_what_our_target_refuses(node, bridge):
    beyond = 16 << 20
    with pytest.raises(RuntimeError):
        node.write(target(), beyond, [1, 2, 3, 4], WAIT)
    with pytest.raises(RuntimeError):
        node.read(target(), beyond, 4, WAIT)
    with pytest.raises(RuntimeError):
        node.read(target(logical=0x77), 0, 4, WAIT)
    with pytest.raises(RuntimeError):
        node.read(target(path=(6,)), 0, 4, datetime.timedelta(milliseconds=200))
    # After all that it goes on.
    node.write(target(), 0, [9], WAIT)
    assert node.read(target(), 0, 1, WAIT) == [9]


def test_it_and_we_see_the_same_memory(node, bridge):
    data = random.Random(1).randbytes(5000)
    node.write(target(), 0x2000, list(data), WAIT)
    back = f"{spacewire.SECOND}"
    read = command.hodo("spacewire", "read", bridge.second, "0x2000", 5000, "--path", spacewire.MEMORY, "--reply-path", back)
    assert read.returncode == 0 and spacewire.hex_bytes(read.stdout) == data, read.stderr


@pytest.fixture(scope="module")
def box_program(tmp_path_factory):
    """Its server, built with this system's compiler."""
    folder = tmp_path_factory.mktemp("box")
    shutil.copytree(SITE / "include", folder / "include")
    for header in (folder / "include/spw_rmap").rglob("*.hh"):
        header.write_text(re.sub(r"\.(and_then|or_else|transform|transform_error)\(", r" | compat::\1(", header.read_text()))
    build = ["g++", "-std=c++23", "-O1", "-include", HERE / "gcc12.hpp", f"-I{folder / 'include'}", HERE / "box.cpp",
             SITE / "lib/libspw_rmap.a", "-pthread", "-o", folder / "box"]
    done = subprocess.run(list(map(str, build)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "box"


@pytest.fixture
def box(box_program):
    port = command.free_port()
    process = subprocess.Popen([box_program, "127.0.0.1", str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    process.uri = f"ssdtp2://127.0.0.1:{port}"
    process.wait_until_it_listens = lambda: command.wait_until(lambda: listens(port), "the box listens")
    assert process.stdout.readline() == "box\n"
    process.wait_until_it_listens()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def listens(port):
    """Whether something listens at a port, without connecting to it."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in list(table)[1:])


@pytest.mark.parametrize("size", [4, 1000, 65536, 300_000])
def test_our_writes_and_reads_of_its_memory_agree(box, tmp_path, size):
    data = random.Random(size).randbytes(size)
    (tmp_path / "in").write_bytes(data)
    done = command.hodo("spacewire", "write", box.uri, "0x1000", "--input", tmp_path / "in", "--part", "16K")
    assert done.returncode == 0, done.stderr
    # It does not listen while it serves a host.
    box.wait_until_it_listens()
    done = command.hodo("spacewire", "read", box.uri, "0x1000", size, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == data


def test_it_receives_our_time_codes(box):
    done = command.hodo("spacewire", "time-code", box.uri, 62, "--count", 4, "--rate", 100)
    assert done.returncode == 0, done.stderr
    assert [box.stdout.readline() for _ in range(4)] == [f"time-code {code}\n" for code in (62, 63, 0, 1)]


def test_a_command_that_it_does_not_know_ends_at_its_deadline(box):
    # It takes part in no read-modify-write.
    done = command.refused("spacewire", "rmw", box.uri, "0x0", "ff", "0f", "--timeout", "300ms", status=1, says=["no reply", box.uri])
    assert done.stdout == ""
