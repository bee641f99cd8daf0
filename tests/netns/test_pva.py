"""A server of PVs on another host, found by p4p at the usual ports: alone, by broadcast, by multicast, and over TCP alone."""

import os
import re
import subprocess
import sys

import command
import pva
import shaped

GROUP = "239.255.43.21"
NEAR_V6, FAR_V6, GROUP_V6 = "fd00:99::2", "fd00:99::1", "ff02::4321"
PVS = '[[pv]]\nname = "FAR:{0..99}"\nvalue = 3\nput = "accept"\n'

# Reads and puts PVs by the variables of its environment.
CLIENT = """
from p4p.client.thread import Context
with Context("pva") as context:
    names = [f"FAR:{number}" for number in range(100)]
    assert context.get(names, timeout=20) == [3] * 100
    context.put(names, [4] * 100, timeout=20)
    assert context.get(names, timeout=20) == [4] * 100
print("done")
"""

WAYS = {
    "its address": {"EPICS_PVA_ADDR_LIST": "10.99.0.1"},
    "broadcast": {"EPICS_PVA_ADDR_LIST": "10.99.0.255"},
    "multicast": {"EPICS_PVA_ADDR_LIST": f"{GROUP},1@10.99.0.2"},
    "a name server": {"EPICS_PVA_NAME_SERVERS": "10.99.0.1:5075", "EPICS_PVA_ADDR_LIST": ""},
}


def test_a_server_is_found_over_a_wire_in_every_way(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with shaped.wire() as wire:
        # The addresses have no broadcast address, which `ip address add` sets for no interface by itself.
        for way, variables in WAYS.items():
            at = {"EPICS_PVAS_INTF_ADDR_LIST": f"10.99.0.1 {GROUP}@10.99.0.1"}
            with pva.serving(file, port=5076, listen="", prefix=wire.at_far(), **at) as server:
                assert server.at == "10.99.0.1:5075"
                environment = {**os.environ, "EPICS_PVA_AUTO_ADDR_LIST": "NO", **variables}
                client = [*wire.at_near(), sys.executable, "-c", CLIENT]
                done = subprocess.run(client, capture_output=True, text=True, timeout=60, env=environment, check=False)
                assert done.stdout == "done\n", f"{way}: {done.stderr}"


WAYS_V6 = {
    "its address": {"EPICS_PVA_ADDR_LIST": f"[{FAR_V6}]"},
    "multicast": {"EPICS_PVA_ADDR_LIST": f"[{GROUP_V6}],1@wire"},
    "a name server": {"EPICS_PVA_NAME_SERVERS": f"[{FAR_V6}]:5075", "EPICS_PVA_ADDR_LIST": ""},
}


def test_a_server_is_found_over_ipv6_by_p4p_and_by_our_client(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with shaped.wire() as wire:
        for name, address in (wire.near, NEAR_V6), (wire.far, FAR_V6):
            shaped.ip("-n", name, "address", "add", f"{address}/64", "dev", "wire", "nodad")
        at = {"EPICS_PVAS_INTF_ADDR_LIST": f"[{FAR_V6}] [{GROUP_V6}]@wire"}
        for way, variables in WAYS_V6.items():
            with pva.serving(file, port=5076, listen="", prefix=wire.at_far(), **at) as server:
                assert server.at == f"[{FAR_V6}]:5075"
                environment = {**os.environ, "EPICS_PVA_AUTO_ADDR_LIST": "NO", **variables}
                for client, says in ([sys.executable, "-c", CLIENT], "done\n"), ([command.HODO, "pva", "get", "-t", "FAR:7"], "4\n"):
                    done = subprocess.run(
                        [*wire.at_near(), *client], capture_output=True, text=True, timeout=60, env=environment, check=False
                    )
                    assert done.stdout == says, f"{way}, {client[0]}: {done.stderr}"


# Where the server listens, and the address in its beacons: that of the link with the number of its interface, unless it does not listen there.
LINK_V6 = "fe80::99:1"
SHOWN = {
    "[::]": r"\[fe80:[0-9a-f:]+%\d+\]:5075",
    f"[{LINK_V6}%wire]": rf"\[{LINK_V6}%\d+\]:5075",
    f"[{FAR_V6}]": re.escape(f"[{FAR_V6}]:5075"),
}


def test_beacons_over_ipv6_show_an_address_that_works(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with shaped.wire() as wire:
        for name, address in (wire.near, NEAR_V6), (wire.near, "fe80::99:2"), (wire.far, FAR_V6), (wire.far, LINK_V6):
            shaped.ip("-n", name, "address", "add", f"{address}/64", "dev", "wire", "nodad")
        group = {"EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_ADDR_LIST": f"[{GROUP_V6}],1@wire"}
        beacons = {"EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO", "EPICS_PVAS_BEACON_ADDR_LIST": f"[{GROUP_V6}],1@wire"}
        for own, pattern in SHOWN.items():
            with command.started("pva", "beacons", prefix=wire.at_near(), env={**os.environ, **group}) as heard:
                joined = lambda: GROUP_V6 in shaped.ip("-n", wire.near, "maddress", "show", "dev", "wire")  # noqa: E731
                command.wait_until(joined, "it takes part in the group")
                at = {"EPICS_PVAS_INTF_ADDR_LIST": f"{own} [{GROUP_V6}]@wire", **beacons}
                with pva.serving(file, port=5076, listen="", prefix=wire.at_far(), **at):
                    shown = re.fullmatch(rf"({pattern}) 0x[0-9A-F]{{24}} beacon 0, changes \d+ new\n", line := heard.stdout.readline())
                    assert shown, line
                    # The interface may be named, too.
                    for server in shown[1], re.sub(r"%\d+", "%wire", shown[1]):
                        done = command.hodo("pva", "get", "-t", f"pva://{server}/FAR:7", prefix=wire.at_near())
                        assert done.stdout == "3\n", done.stderr


def test_on_loopback_nobody_else_finds_it(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with shaped.wire() as wire, pva.serving(file, port=5076, listen="127.0.0.1:5075", prefix=wire.at_far()):
        script = CLIENT.replace("timeout=20", "timeout=1")
        environment = {**os.environ, "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_ADDR_LIST": "10.99.0.1 10.99.0.255"}
        client = [*wire.at_near(), sys.executable, "-c", script]
        done = subprocess.run(client, capture_output=True, text=True, timeout=60, env=environment, check=False)
        assert done.returncode != 0 and "TimeoutError" in done.stderr, done.stderr
