"""Servers are found by p4p, pvxs and pvAccessCPP: over UDP to one host and to all, several on one host, and again after a restart."""

import contextlib
import os
import queue
import re
import subprocess

import command
import golden
import pva
import pytest


def write(path, text):
    path.write_text(text)
    return path


def counting(folder, name):
    """A file with one PV that counts from 1 on, and is 0 before; and ten that stay."""
    text = f'[[pv]]\nname = "{name}"\nsource = "ramp"\nevery = "20ms"\nfrom = 1\nto = 1e9\n[[pv]]\nname = "{name}:{{0..9}}"\nvalue = 3\n'
    return write(folder / f"{name}.toml", text)


def test_a_server_is_found_by_unicast_and_by_broadcast(tmp_path):
    port = pva.udp_port()
    with pva.serving(counting(tmp_path, "ONE"), port=port) as server:
        for addresses in "127.0.0.1", "127.255.255.255":
            with pva.client(port=port, addresses=addresses) as context:
                assert context.get("ONE:5") == 3
        stats = pva.page(server, "/stats")
        assert "0 searches" not in stats and "searches over UDP" in stats, stats


def test_several_servers_on_one_host_are_all_found(tmp_path):
    port = pva.udp_port()
    names = ["FIRST", "SECOND", "THIRD"]
    with (
        pva.serving(counting(tmp_path, "FIRST"), port=port),
        pva.serving(counting(tmp_path, "SECOND"), port=port),
        pva.serving(counting(tmp_path, "THIRD"), port=port),
    ):
        for addresses in "127.0.0.1", "127.255.255.255":
            with pva.client(port=port, addresses=addresses) as context:
                assert context.get([f"{name}:{number}" for name in names for number in range(10)], timeout=20) == [3] * 30


def test_clients_come_back_when_a_server_is_started_anew(tmp_path):
    port = pva.udp_port()
    file = counting(tmp_path, "AGAIN")
    seen = queue.Queue()
    with pva.client(port=port, addresses="127.255.255.255") as context:
        subscription = context.monitor("AGAIN", seen.put, notify_disconnect=True)
        at = None
        for _ in range(4):
            with pva.serving(file, port=port, listen=at) as server:
                while isinstance(seen.get(timeout=20), Exception):
                    pass
                at = server.at
                server.kill()
                server.wait()
            while not isinstance(seen.get(timeout=20), Exception):
                pass
        subscription.close()


@contextlib.contextmanager
def compiled(program, folder, port, *arguments):
    """A client in C++ that searches this host, all of it, at a UDP port; it is ended in any case."""
    settings = {"EPICS_PVA_ADDR_LIST": "127.255.255.255", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_BROADCAST_PORT": str(port)}
    words = [golden.compiled(program, folder), *map(str, arguments)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **settings}) as client:
        try:
            yield client
        finally:
            client.kill()


@pytest.mark.parametrize("program", ["watch_pvxs", "watch_pvaccesscpp"])
def test_clients_in_cpp_go_on_after_restarts(program, tmp_path):
    port = pva.udp_port()
    file = counting(tmp_path, "AGAIN")
    at = None
    with compiled(program, tmp_path, port, "AGAIN") as client:
        # Twice at the same port, then twice at another one.
        for restart in range(5):
            with pva.serving(file, port=port, listen=at) as server:
                while not (line := client.stdout.readline()).strip().isdigit():
                    assert line, "the client has ended"
                numbers = [int(line), *(int(client.stdout.readline()) for _ in range(5))]
                # A client that a busy host held up finds some updates merged, and none twice.
                assert numbers == sorted(set(numbers))
                at = server.at if restart < 2 else "127.0.0.1:0"
                server.kill()
                server.wait()
            while (line := client.stdout.readline()) != "lost\n":
                assert line, "the client has ended"


def test_pvaccesscpp_lists_servers_and_their_pvs_as_pvlist_does(tmp_path):
    port = pva.udp_port()
    files = counting(tmp_path, "FIRST"), counting(tmp_path, "SECOND")
    with pva.serving(files[0], port=port) as first, pva.serving(files[1], port=port) as second:
        with compiled("list_pvaccesscpp", tmp_path, port, "127.255.255.255", port) as client:
            said = client.stdout.read()
    listed = {}
    for part in said.split("server ")[1:]:
        about, version, *names = part.splitlines()
        found = re.fullmatch(r"(\S+) 0x[0-9A-F]{24} 2 tcp", about)
        assert found and version.startswith("version hodoscope "), said
        listed[found[1]] = [name.removeprefix("name ") for name in names]
    names = lambda name: [name, *(f"{name}:{number}" for number in range(10))]  # noqa: E731
    assert listed == {first.at: names("FIRST"), second.at: names("SECOND")}


def test_a_port_that_is_in_use_is_left_to_its_owner(tmp_path):
    with pva.serving(counting(tmp_path, "OWNER")) as owner:
        told = (f"cannot listen on {owner.at}", "choose another address or port")
        command.refused("pva", "serve", counting(tmp_path, "OTHER"), "--tcp-only", "--listen", owner.at, status=1, says=told)
        with pva.client(owner.at) as context:
            assert context.get("OWNER:1", timeout=20) == 3
