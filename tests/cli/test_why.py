"""The bottleneck of a link by experiment: the planted one is named, and the rates are predicted."""

import json

import command
import contract
import pytest

PLANTED = [
    ("sim+tcp://?delay=50us&rate=1G&mtu=1500&overhead=38", ["--mode", "send"], "line"),
    ("sim+tcp://?delay=1ms", ["--window", "4", "--sizes", "1K"], "window"),
    ("sim+tcp://?delay=10ms&loss=0.005", ["--mode", "send", "--sizes", "32K"], "loss"),
    ("sim+tcp://?delay=1ms", ["--rate", "1K", "--sizes", "64"], "schedule"),
    ("sim+udp://?cost=50us", ["--mode", "send", "--sizes", "64"], "cpu"),
    ("sim+pva://?delay=1ms", ["--test", "latency", "--sizes", "8"], "roundtrip"),
    ("sim+pva://?delay=1ms", ["--window", "8", "--sizes", "8"], "window"),
    ("sim+ipbusudp-2.0://?delay=1ms", ["--window", "8", "--sizes", "4", "--mode", "receive"], "window"),
    ("sim+ipbusudp-2.0://?cost=20us", ["--window", "16", "--sizes", "4", "--mode", "receive"], "cpu"),
]


@pytest.mark.parametrize(("link", "plan", "planted"), PLANTED)
def test_the_planted_cause_is_found(link, plan, planted):
    done = command.hodo("why", link, *plan, "--json", "-")
    assert done.returncode == 0, done.stderr
    document = contract.parse(done.stdout)
    found = document["diagnosis"]
    assert found["bottleneck"] == planted, found
    assert found["experiments"] and found["confidence"] != "low", found
    held = [abs(each["found"] / each["predicted"] - 1) < 0.15 for each in found["experiments"]]
    assert sum(held) >= 0.8 * len(held), found
    assert len(document["measurements"]) > len(found["experiments"])
    # Three sentences, and the experiments above them.
    for each in found["experiments"]:
        assert each["change"] in done.stderr
    assert f"`{planted}` is the bottleneck" in done.stderr and found["advice"] in done.stderr


def test_a_far_end_of_others_is_read_and_not_written_to():
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device:
        done = command.hodo("why", device.uri, "--sizes", "4", "--duration", "50ms", "--json", "-")
    modes = {row["mode"] for row in json.loads(done.stdout)["measurements"]}
    assert done.returncode == 0 and modes == {"receive"}, done.stderr


def test_several_measurements_are_refused():
    done = command.hodo("why", "sim+tcp", "--sizes", "64,128")
    assert done.returncode == 2 and "2 measurements" in done.stderr, done.stderr
