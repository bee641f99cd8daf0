"""Servers that listen at every address of their host are reached by each of them from another one: of IPv4, of IPv6, and of the link."""

import os
import sys

import command
import pva
import pytest
import shaped

NEAR_V6, FAR_V6, NEAR_LINK, FAR_LINK = "fd00:99::2", "fd00:99::1", "fe80::99:2", "fe80::99:1"
PLACES = ["10.99.0.1", f"[{FAR_V6}]", f"[{FAR_LINK}%wire]"]
ONE = ["--test", "latency", "--sizes", "64", "--count", "1", "--warmup", "1ms", "--repeat", "1", "--quiet"]


@pytest.fixture(scope="module")
def wire():
    with shaped.wire() as made:
        for name, addresses in (made.near, (NEAR_V6, NEAR_LINK)), (made.far, (FAR_V6, FAR_LINK)):
            for address in addresses:
                shaped.ip("-n", name, "address", "add", f"{address}/64", "dev", "wire", "nodad")
        yield made


@pytest.mark.parametrize("uri", ["tcp://:4242", "tcp://*:4242", "tcp://*", "udp://:4242", "ipbusudp-2.0://:50001", "farm://:5502"])
def test_a_far_end_is_reached_by_every_address(wire, uri):
    scheme, _, place = uri.partition("://")
    with command.serving(uri, prefix=wire.at_far()) as server:
        port = server.uri.rpartition(":")[2]
        assert server.uri == f"{scheme}://[::]:{port}" and place in (f":{port}", f"*:{port}", "*")
        for far in PLACES:
            (one,) = command.bench(f"{scheme}://{far}:{port}", *ONE, prefix=wire.at_near())
            assert one["operations"] == 1
    with command.serving(uri, "-4", prefix=wire.at_far()) as server:
        assert server.uri == f"{scheme}://0.0.0.0:{port}"


def test_an_address_of_a_link_needs_its_interface():
    says = [r"link-local", rf"write it as \[{FAR_LINK}%eth0\]:4242"]
    command.refused("bench", f"tcp://[{FAR_LINK}]:4242", status=2, says=says)


CONNECTS = "import socket, sys; [socket.create_connection((host, int(sys.argv[1])), 20).close() for host in sys.argv[2:]]; print('done')"
DAEMONS = {
    "hub": ["hub", "--no-metrics"],
    "controller": ["farm", "controller", "--no-metrics"],
    "builder": ["farm", "builder", "--sources", "1", "--no-metrics"],
}


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_daemon_listens_at_every_address(wire, daemon):
    with command.started(*DAEMONS[daemon], "--listen", ":7000", prefix=wire.at_far()) as process:
        command.announced(process, r"listening on \[::\]:7000")
        hosts = [place.strip("[]") for place in PLACES]
        with command.beside([*wire.at_near(), sys.executable, "-c", CONNECTS, "7000", *hosts]) as client:
            said, _ = client.communicate(timeout=60)
            assert said == "done\n", said


def test_pvs_are_found_by_every_address(wire, tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text('[[pv]]\nname = "FAR"\nvalue = 3\n')
    with pva.serving(file, port=5076, listen=":5075", prefix=wire.at_far()) as server:
        assert server.at == "[::]:5075"
        for place in PLACES:
            done = command.hodo("pva", "get", "-t", f"pva://{place}/FAR", prefix=wire.at_near())
            assert done.stdout == "3\n", done.stderr
        for searched in "10.99.0.1", "10.99.0.255", f"[{FAR_V6}]":
            environment = {**os.environ, "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_ADDR_LIST": searched}
            with command.started("pva", "get", "-t", "FAR", prefix=wire.at_near(), env=environment) as client:
                said, _ = client.communicate(timeout=60)
                assert said == "3\n", f"{searched}: {said}"
