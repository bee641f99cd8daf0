"""Who may do what with the PVs of `hodo pva serve`, and the settings of the server in its file."""

import subprocess
import sys

import command
import pva
import pytest
from p4p.client.thread import RemoteError

RULES = """
[[access]]
users = ["daemon"]
pvs = ["OPEN:*"]
rights = ["read", "put"]
[[access]]
users = ["daemon"]
pvs = ["SHOWN"]
rights = ["read"]
[[access]]
users = ["daemon"]
rights = []
[[access]]
addresses = ["127.0.0.0/8"]
rights = ["read", "put", "call"]
"""
PVS = """
[[pv]]
name = "OPEN:{1,2}"
put = "accept"
[[pv]]
name = "SHOWN"
put = "accept"
[[pv]]
name = "HIDDEN"
put = "accept"
[[call]]
name = "CALLED"
command = ["echo", "7"]
"""
# What a p4p client can do with each PV.
TRY = """
import sys
from concurrent.futures import ThreadPoolExecutor
from p4p.client.thread import Context

conf = {"EPICS_PVA_NAME_SERVERS": sys.argv[1], "EPICS_PVA_ADDR_LIST": "", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
names = ["OPEN:1", "SHOWN", "HIDDEN", "CALLED"]
with Context("pva", conf=conf, useenv=False) as context:
    tries = {
        "read": lambda name: context.get(name, timeout=2),
        "put": lambda name: context.put(name, 1.5, get=False, timeout=2),
        "call": lambda name: context.rpc(name, None, timeout=2),
    }

    def can(what, name):
        try:
            tries[what](name)
        except Exception as why:
            print(f"{name} {what}: {type(why).__name__} {why}", file=sys.stderr)
            return False
        return True

    with ThreadPoolExecutor(12) as pool:
        done = {(what, name): pool.submit(can, what, name) for name in names for what in tries}
    for name in names:
        print(name, *(what for what in tries if done[what, name].result()))
"""


def what_can_be_done(at, prefix=()):
    """What p4p in a process of its own can do with each PV."""
    program = [*prefix, sys.executable, "-c", TRY, at]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_users_and_addresses_decide_who_may_read_put_and_call(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text(RULES + PVS)
    # This process under the name of another user, whom nobody has proved.
    as_daemon = ["unshare", "--user", "--map-user=1"]
    with pva.serving(file) as process:
        all_rights = ["OPEN:1 read put", "SHOWN read put", "HIDDEN read put", "CALLED read call"]
        assert what_can_be_done(process.at) == all_rights
        assert what_can_be_done(process.at, as_daemon) == ["OPEN:1 read put", "SHOWN read", "HIDDEN", "CALLED"]


def test_no_rule_that_fits_is_no_right(tmp_path):
    file = tmp_path / "rules.toml"
    file.write_text('[[access]]\naddresses = ["10.0.0.0/8", "fd00::/8"]\nrights = ["read"]\n' + PVS)
    with pva.serving(file) as process, pva.client(process.at) as context, pytest.raises((RemoteError, TimeoutError)):
        context.get("SHOWN", timeout=2)


def test_the_file_sets_the_server_and_options_win(tmp_path):
    file = tmp_path / "server.toml"
    # No host has this address.
    file.write_text('[server]\nlisten = "192.0.2.1:1"\nmetrics = "192.0.2.1:2"\nchannels = 2\n' + PVS)
    command.refused("pva", "serve", file, "--metrics", "127.0.0.1:0", status=1, says=["192.0.2.1:1"])
    command.refused("pva", "serve", file, "--listen", "127.0.0.1:0", status=1, says=["192.0.2.1:2"])
    with pva.serving(file) as process, pva.client(process.at) as context:
        assert context.get(["OPEN:1", "OPEN:2"]) == [0, 0]
        with pytest.raises((RemoteError, TimeoutError)):
            context.get("SHOWN", timeout=2)
    file.write_text('[server]\nlisten = "127.0.0.2:0"\nmessage_bytes = "1K"\n' + PVS + '[[pv]]\nname = "A"\ntype = "double[]"\nput = "accept"\n')
    with pva.serving(file, listen="") as process, pva.client(process.at) as context:
        assert process.at.startswith("127.0.0.2:")
        context.put("A", [1.0] * 100)
        with pytest.raises((RemoteError, TimeoutError)):
            context.put("A", [1.0] * 1000, timeout=2)
        command.wait_until(lambda: "message" in "".join(process.log), "the log tells of a message too long")
