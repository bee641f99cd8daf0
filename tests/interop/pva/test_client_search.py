"""Our client finds the field's servers by search, name servers and beacons; each test has a port of its own for that."""

import re
import time

import command
import peers
import pytest
from pva import udp_port

GUID = r"0x[0-9A-F]{24}"


@pytest.fixture
def port(monkeypatch):
    """The UDP port of searches and beacons, which our command takes from its environment."""
    number = udp_port()
    for name, value in {
        "EPICS_PVA_BROADCAST_PORT": str(number), "EPICS_PVA_ADDR_LIST": "127.0.0.1", "EPICS_PVA_AUTO_ADDR_LIST": "NO",
    }.items():
        monkeypatch.setenv(name, value)
    return number


def found_by(port):
    """The settings of a server that is found at a port, and sends its beacons there, to all programs of the host that share it."""
    return {"EPICS_PVAS_BROADCAST_PORT": str(port), "EPICS_PVAS_BEACON_ADDR_LIST": "127.255.255.255"}


def pva(*arguments):
    return command.hodo("pva", *arguments)


def test_names_are_searched_for(port):
    with peers.p4p_server(**found_by(port)) as server:
        done = pva("get", "-t", "scalar:i", "enum")
        assert (done.returncode, done.stdout) == (0, "-32\n(1) On it\n"), done.stderr
        assert pva("put", "-q", "scalar:i", "5").returncode == 0
        assert f"Server: 127.0.0.1:{server.port}\n" in pva("info", "scalar:i").stdout
        assert pva("call", "-t", "twice", "n=4").stdout == "8\n"
        done = pva("get", "-w", "0.5", "scalar:i", "absent", "-t")
        assert (done.returncode, done.stdout) == (1, "5\n")
        assert done.stderr.startswith("hodo: absent: no server has it: none has answered within 0.5 s")


def test_servers_are_listed_and_found_by_name(port):
    with peers.p4p_server(**found_by(port)) as first, peers.compiled_server("serve_pvxs", 10, **found_by(port)) as second:
        done = pva("list", "-w", "1")
        lines = done.stdout.splitlines()
        ports = {int(re.fullmatch(rf"127\.0\.0\.1:(\d+) {GUID}", line)[1]) for line in lines}
        assert (done.returncode, ports, len(lines)) == (0, {first.port, second.port}, 2)
        done = pva("find", "-w", "1", "enum", "n7", "absent")
        at = {line.split()[0]: line.split()[1] for line in done.stdout.splitlines()}
        assert at == {"enum": f"127.0.0.1:{first.port}", "n7": f"127.0.0.1:{second.port}"}
        assert (done.returncode, done.stderr) == (1, "hodo: absent: no server has answered for it\n")
        names = pva("list", f"127.0.0.1:{second.port}").stdout.splitlines()
        assert "n9" in names and "scalar" in names
        # Nothing is waited for once all that was asked for has answered; a name without an answer is waited for.
        for arguments in (["list"], ["find", "enum", "n7"]):
            begun = time.monotonic()
            assert pva(*arguments, "-w", "100").stdout.count("0x") == 2
            assert time.monotonic() - begun < 50
        begun = time.monotonic()
        assert pva("find", "-w", "2.5", "enum", "absent").returncode == 1
        assert time.monotonic() - begun >= 2.5
    done = pva("list", "-w", "0.2")
    assert done.returncode == 1 and "no server has answered" in done.stderr


def test_a_name_server_is_asked_over_tcp(port, monkeypatch):
    with peers.compiled_server("serve_pvxs", 10) as server:
        monkeypatch.setenv("EPICS_PVA_ADDR_LIST", "")
        monkeypatch.setenv("EPICS_PVA_NAME_SERVERS", f"127.0.0.1:{server.port}")
        done = pva("get", "-t", *[f"n{at}" for at in range(10)])
        assert done.stdout.split() == [str(at) for at in range(10)], done.stderr


def test_ten_thousand_names_are_searched_for(port, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"n{at}" for at in range(10_000)))
    with peers.compiled_server("serve_pvxs", 10_000, **found_by(port)):
        done = pva("get", "-t", "-f", names, "-w", "30")
        assert (done.returncode, done.stdout.split()) == (0, [str(at) for at in range(10_000)]), done.stderr[:500]


def test_beacons_are_heard_and_a_server_that_starts_is_found_at_once(port):
    with command.started("pva", "monitor", "-t", "n3", "-w", "4") as monitor, command.started("pva", "beacons") as beacons:
        # It has searched in vain at 0, 1 and 3 s, and waits longer and longer.
        assert "not connected yet" in monitor.stdout.readline()
        with peers.compiled_server("serve_pvxs", 10, **found_by(port)) as server:
            began = time.monotonic()
            assert monitor.stdout.readline() == "3\n"
            assert time.monotonic() - began < 3
            line = beacons.stdout.readline()
            assert re.fullmatch(rf"127\.0\.0\.1:{server.port} {GUID} beacon \d+, changes \d+ new\n", line), line


@pytest.mark.parametrize("name", ["serve_pvxs", "serve_pvaccesscpp"])
def test_a_searched_monitor_goes_on_over_a_restart_at_another_port(port, name):
    with command.started("pva", "monitor", "-t", "n3") as monitor:
        # Where the first update is a while in coming, it says so before.
        with peers.compiled_server(name, 10, **found_by(port)):
            assert "3\n" in iter(monitor.stdout.readline, "")
        assert any("n3: " in line for line in iter(monitor.stdout.readline, ""))
        with peers.compiled_server(name, 10, **found_by(port)):
            assert "3\n" in iter(monitor.stdout.readline, "")
