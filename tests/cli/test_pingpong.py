"""`hodo pingpong` toward itself: every device that needs no adapter, every test, and what is said when something is wrong."""

import contextlib
import json
import re
import socket
import subprocess

import command
import pytest

TESTS = ("send-lat", "send-bw", "write-lat", "write-bw", "read-lat", "read-bw", "atomic-lat", "atomic-bw")


@contextlib.contextmanager
def server(*options):
    """A server on a free port, which is ended in any case."""
    port = command.free_port()
    line = [command.HODO, "pingpong", "-p", str(port), *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    process.port = port
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def client(port, *options):
    line = [command.HODO, "pingpong", "localhost", "-p", str(port), "--connect-within", "10", *map(str, options)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("backend", ["soft", "shm"])
@pytest.mark.parametrize("how", [[], ["-e"], ["--spin", "20"]])
def test_messages_are_exchanged_and_every_byte_is_right(backend, how):
    options = ["--backend", backend, "-s", "10000", "-n", "200", "-c", "-t", "--send-entries", "3", "--receive-entries", "2", *how]
    with server(*options) as far:
        near = client(far.port, *options)
        assert near.returncode == 0, near.stderr
        assert re.search(r"^4000000 bytes in .* seconds = .* Mbit/sec\n200 iters in .* usec/iter$", near.stdout, re.MULTILINE), near.stdout
        assert "receive completion clock cycles" in near.stdout
        said, _ = far.communicate(timeout=20)
        assert far.returncode == 0 and "200 iters" in said, said


@pytest.mark.parametrize("backend", ["soft", "shm"])
def test_a_server_takes_size_and_iterations_from_the_client(backend):
    """README's first commands."""
    with server("--backend", backend, "--json", "-") as far:
        near = client(far.port, "--backend", backend, "-e", "-s", 64, "-n", 300)
        assert near.returncode == 0, near.stderr
        assert "38400 bytes in" in near.stdout and "300 iters in" in near.stdout
        document = json.loads(far.communicate(timeout=20)[0])
    assert (document["size"], document["iterations"], document["side"]) == (64, 300, "server")
    assert re.search(rf"remote address: .*QPN 0x{document['local']['qpn']:06x}", near.stdout), (near.stdout, document)


@pytest.mark.parametrize("backend", ["soft", "shm"])
@pytest.mark.parametrize("test", TESTS)
def test_perftest_columns(backend, test):
    sizes = [8] if test.startswith("atomic") else [2, 4096, 100_000]
    with server("--backend", backend) as far:
        options = ["--backend", backend, "--test", test, "-n", 100, "--chk", "--json", "-"]
        near = client(far.port, *options, *([] if len(sizes) == 1 else ["--sizes", ",".join(map(str, sizes))]))
        assert near.returncode == 0, near.stderr
        assert far.communicate(timeout=20)[0].count("address:") >= 2 and far.returncode == 0
    document = json.loads(near.stdout)
    assert [row["size"] for row in document["rows"]] == sizes and document["test"] == test
    for row in document["rows"]:
        if test.endswith("lat"):
            assert 0 < row["min_us"] <= row["typical_us"] <= row["p99_us"] <= row["p999_us"] <= row["max_us"], row
        else:
            assert 0 < row["mib_per_s"] <= row["peak_mib_per_s"], row


def test_the_header_comes_once():
    with server("--backend", "shm") as far:
        near = client(far.port, "--backend", "shm", "--test", "write-bw", "--all", "-n", "20")
    lines = [line for line in near.stdout.splitlines() if "address" not in line]
    assert lines[0].split()[:3] == ["#bytes", "#iterations", "BW"], near.stdout
    assert [line.split()[0] for line in lines[1:]] == [str(1 << power) for power in range(1, 24)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--test", "send-lat", "--sizes", "64,0"], "a message of 0 bytes: choose 1 to 16777216"),
        (["--test", "read-bw", "--tx-depth", "0"], "a send depth of 0: choose 1 to 16384"),
        (["--test", "ib_send_lat"], "the tests are send-lat, send-bw"),
        (["--backend", "soft", "-d", "mlx5_0"], "leave them out, or add --backend verbs"),
        (["--prefetch"], "add --odp or --iodp"),
        (["-m", "1500"], "not one of 256, 512, 1024, 2048, 4096"),
    ],
)
def test_an_impossible_option_is_named_with_its_remedy(options, said):
    done = client(1, *options)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_nothing_listens():
    line = [command.HODO, "pingpong", "localhost", "-p", str(command.free_port())]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 1 and "start `hodo pingpong` or `ibv_rc_pingpong` there first" in done.stderr, done.stderr


# Shared memory tells that a process is gone, even while nothing is outstanding but receives.
@pytest.mark.parametrize(("backend", "failure"), [("soft", r"retry counter exceeded \(12\) for wr_id 2"), ("shm", r"\(12\) for wr_id 2|Flushed Error \(5\)")])
def test_a_far_end_that_is_killed_is_reported(backend, failure):
    options = ["--backend", backend, "-n", "100000000", "--timeout", "20"]
    with server(*options) as far:
        line = [command.HODO, "pingpong", "localhost", "-p", str(far.port), "--connect-within", "10", *options]
        near = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert "remote" in near.stdout.readline() + near.stdout.readline()
        # It is not connected yet.
        command.wait_until_busy(near.pid)
        far.kill()
        _, said = near.communicate(timeout=60)
    assert near.returncode == 1 and re.search("Failed status .*(" + failure + ")", said), said


def test_a_stranger_at_the_port_is_named():
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        line = [command.HODO, "pingpong", "localhost", "-p", str(stranger.getsockname()[1])]
        near = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        caller, _ = stranger.accept()
        caller.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 4)
        _, said = near.communicate(timeout=20)
        caller.close()
    assert near.returncode == 1 and "is no ping-pong: it sent" in said, said


def test_without_an_adapter_it_is_said_what_is_missing():
    with server() as far:
        near = client(far.port, "--backend", "verbs", "-d", "no_such_adapter")
    assert near.returncode == 1, near.stdout
    assert re.search("libibverbs|IB device|no RDMA device|IB devices", near.stderr), near.stderr
