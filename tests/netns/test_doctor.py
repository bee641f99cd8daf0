"""`hodo doctor` names a fault that was planted first, and on a clean path only what this host truly has."""

import contextlib
import json
import os
import pathlib
import subprocess

import command
import pytest
import routed
import shaped

# Properties of the host that runs the tests, which no namespace takes away.
OF_THE_HOST = {"wake_up", "congestion_control", "steal", "receive_queues", "governor"}
SECONDS = 12
CGROUP = pathlib.Path("/sys/fs/cgroup")

pytestmark = pytest.mark.long("doctor")


@pytest.fixture
def path():
    with routed.routed() as made:
        yield made


def examine(*arguments, prefix=()):
    """The report."""
    done = command.hodo("doctor", *arguments, "--json", "-", prefix=prefix, within=SECONDS)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "hodo.doctor/1"
    for finding in report["findings"]:
        price = finding["price"]
        assert finding["kind"] in ("fault", "cost") and price["basis"] in ("measured", "derived"), finding
        assert price["rate_percent"] is not None or price["time_us"] is not None, finding
        assert finding["evidence"] and finding["remedy"] and price["text"], finding
    return report


def of_path(path, scheme="tcp", first=(), options=()):
    """The report on the path from the near host to a server at the far one."""
    with command.serving(f"{scheme}://{path.far_address}:0", prefix=[*path.at_far(), *first]) as server:
        return examine(server.uri, *options, prefix=[*path.at_near(), *first])


def planted(report, name=None):
    """The findings, without other programs on the machine of the tests: they are truly there, and may cost more than what was planted."""
    return [finding for finding in report["findings"] if finding["id"] != "neighbour" or name == "neighbour"]


def first_of(report, name):
    """The first finding, which has this name."""
    findings = planted(report, name)
    assert [finding["id"] for finding in findings[:1]] == [name], json.dumps(report["findings"], indent=1)
    return findings[0]


def run(*arguments, **options):
    done = subprocess.run([str(argument) for argument in arguments], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def test_a_clean_path_has_no_fault(path):
    report = of_path(path)
    assert {finding["id"] for finding in planted(report)} <= OF_THE_HOST, report["findings"]
    faults = {finding["id"] for finding in planted(report) if finding["kind"] == "fault"}
    assert faults <= {"governor"}, report["findings"]
    assert {"path_mtu", "offloads", "queue_drops", "socket_limits", "quota"} <= {fine["id"] for fine in report["fine"]}


def test_a_router_with_a_smaller_mtu(path):
    shaped.ip("-n", path.router, "link", "set", "right", "mtu", "1400")
    found = first_of(of_path(path), "path_mtu")
    assert "1401 B" in found["evidence"] and found["price"]["rate_percent"] == pytest.approx(6.9, abs=0.1), found


def test_a_router_that_may_not_report_its_mtu(path):
    shaped.ip("-n", path.router, "link", "set", "right", "mtu", "1300")
    # Nothing that the router itself sends finds a route.
    shaped.ip("-n", path.router, "rule", "add", "iif", "lo", "blackhole")
    found = first_of(of_path(path), "path_mtu")
    assert "1301 B" in found["evidence"] and found["price"]["rate_percent"] == 100, found
    run(*path.at_near(), *found["remedy"].split("#")[0].split())
    mended = first_of(of_path(path, "udp"), "path_mtu")
    assert mended["price"]["rate_percent"] == pytest.approx(13.8, abs=0.1), mended


def test_a_far_interface_with_a_smaller_mtu(path):
    shaped.ip("-n", path.far, "link", "set", "wire", "mtu", "1400")
    assert first_of(of_path(path, "udp"), "path_mtu")["price"]["rate_percent"] == 100
    found = first_of(of_path(path, "tcp"), "path_mtu")
    assert found["price"]["rate_percent"] == pytest.approx(6.9, abs=0.3), found


def test_offloads_that_are_off(path):
    run(*path.at_near(), "ethtool", "-K", "wire", "tso", "off", "gso", "off", "gro", "off")
    found = first_of(of_path(path), "offloads")
    assert found["about"] == "wire" and found["remedy"] == "ethtool -K wire tso on gso on", found
    # The command is whole.
    run(*path.at_near(), *found["remedy"].split())


def test_small_socket_limits(path):
    for name in ("tcp_rmem", "tcp_wmem"):
        routed.sysctl(path.near, f"net.ipv4.{name}", "4096 8192 8192")
    found = first_of(of_path(path), "socket_limits")
    assert found["price"]["rate_percent"] > 50 and "net.ipv4.tcp_rmem=" in found["remedy"], found


def test_a_congestion_control_that_does_not_fit(path):
    routed.sysctl(path.near, "net.ipv4.tcp_congestion_control", "reno")
    assert "reno" in first_of(of_path(path), "congestion_control")["evidence"]


def test_a_queue_that_drops(path):
    tbf = ["rate", "98439kbit", "burst", "3k", "limit", "8k"]
    run("tc", "-n", path.near, "qdisc", "add", "dev", "wire", "root", "tbf", *tbf)
    flood = f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nfor _ in range(5000): s.sendto(bytes(1400), ('{path.far_address}', 9))"
    run(*path.at_near(), "python3", "-c", flood)
    found = first_of(of_path(path), "queue_drops")
    assert "tbf on wire, which takes 8 KiB, dropped" in found["evidence"], found
    # The command is whole.
    run(*path.at_near(), *found["remedy"].split())


def test_one_receive_queue():
    with routed.routed(queues=1) as path:
        assert first_of(of_path(path), "receive_queues")["about"] == "wire"


def test_both_ends_on_one_processor(path):
    found = first_of(of_path(path, first=["taskset", "-c", "0"]), "one_processor")
    assert "the far end" in found["evidence"] and "taskset -acp" in found["remedy"], found


@contextlib.contextmanager
def loops(count):
    """Programs that never sleep: each in a session of its own, to which the kernel gives as much as to all that builds or tests here."""
    started = [subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True) for _ in range(count)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_neighbour(path):
    with loops(os.cpu_count()) as processes:
        found = first_of(of_path(path), "neighbour")
    assert any(f"({process})" in found["evidence"] for process in processes), found
    assert found["price"]["rate_percent"] > 25, found


@contextlib.contextmanager
def group(share):
    """A control group with this share of a processor, of whichever version this kernel has, and how to enter it."""
    name = f"hodo-doctor-{os.getpid()}"
    old = (CGROUP / "cpu" / "cpu.cfs_quota_us").exists()
    folder = CGROUP / "cpu" / name if old else CGROUP / name
    folder.mkdir()
    try:
        if old:
            (folder / "cpu.cfs_quota_us").write_text(str(int(share * 100_000)))
        else:
            (folder / "cpu.max").write_text(f"{int(share * 100_000)} 100000")
        yield folder, ["sh", "-c", f'echo $$ >{folder}/cgroup.procs; exec "$@"', "sh"]
    finally:
        folder.rmdir()


def test_a_quota(path):
    with group(0.3) as (folder, entering), command.serving(f"tcp://{path.far_address}:0", prefix=path.at_far()) as server:
        found = first_of(examine(server.uri, prefix=[*entering, *path.at_near()]), "quota")
    assert str(folder) in found["evidence"] and "0.3" in found["evidence"], found
    assert str(folder) in found["remedy"], found


def test_the_far_ends_quota(path):
    with group(0.3) as (_, entering):
        with command.serving(f"tcp://{path.far_address}:0", prefix=[*entering, *path.at_far()]) as server:
            found = first_of(examine(server.uri, prefix=path.at_near()), "quota")
            assert found["about"] == "far end" and str(server.pid) in found["evidence"], found
