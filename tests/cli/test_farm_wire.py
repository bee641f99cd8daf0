"""The page about the farm's wire: a node that was written from it."""

import subprocess
import sys

import command
import farms

NODE = command.ROOT / "docs/examples/farm_node.py"


def test_a_node_that_was_written_from_the_page_decides(tmp_path):
    made = ["--events", 2000, "--size", 1000, "--numbered", "--run", 7, "--store", tmp_path, "--until-done", "--drain", "20s"]
    with farms.controller(*made) as controller:
        host, port = controller.at.split(":")
        done = subprocess.run([sys.executable, NODE, host, port], capture_output=True, text=True, timeout=command.BOUND_S)
        assert (done.returncode, done.stdout) == (0, "2000 events decided\n"), done.stderr
        assert controller.process.wait(command.BOUND_S) == 0
    verified = command.hodo("farm", "verify", tmp_path).stdout
    assert "run 7: 2000 events = 10 accepted + 1990 rejected + 0 quarantined + 0 incomplete" in verified
    assert "10 events with 80 bytes of data" in verified


def test_it_is_told_why_it_is_refused():
    with farms.controller("--nodes", 1) as controller, farms.node(controller):
        controller.wait_for_nodes(1)
        host, port = controller.at.split(":")
        done = subprocess.run([sys.executable, NODE, host, port], capture_output=True, text=True, timeout=command.BOUND_S)
        assert done.returncode == 1 and "refused, code 13: the limit of 1 such connections is reached" in done.stderr
