"""The published study's three versions: what they are on the wire, what they print, and the decay of the first."""

import re

import command
import contract
import farm_reader

SIZE = 32_000


def bench(*words, within=command.BOUND_S):
    """The only measurement of a farm, and the table beside it."""
    done = command.hodo("farm", "bench", *words, "--json", "-", within=within)
    assert done.returncode == 0, done.stderr
    (found,) = contract.parse(done.stdout)["measurements"]
    return found, done.stderr


def test_version_1_decays_and_is_convicted(long):
    # A generator that is faster than the nodes lets the queue grow on any machine.
    small = ["--nodes", 4, "--time", "500us", "--size", 400, "--rate", "60k", "--memory", "400M", "--seconds", 2]
    whole = ["--seconds", 60, "--memory", "8G"]
    found, table = bench("--preset", "lhcb-v1", *(whole if long else small), within=120)
    # A machine that stands still for a while makes two seconds noisy; the queue's own tests have virtual time.
    if long:
        assert found["verdict"]["state"] == "drifting", found["verdict"]
        assert re.search(r"the rate falls [5-9]\d %", found["verdict"]["text"]), found["verdict"]
    rows = [row.split() for row in table.split("found no token   waiting\n")[1].splitlines() if "ended" not in row]
    events, _, no_token, waiting = ([float(row[column]) for row in rows] for column in range(4))
    assert rows and sorted(events) == events and sum(no_token) > 1000
    assert waiting[-1] > 1000, "the queue grows"


def test_version_1_ends_where_its_queue_has_taken_the_memory():
    small = ["--nodes", 2, "--time", "5ms", "--size", 32_000, "--rate", "4k"]
    found, table = bench("--preset", "lhcb-v1", *small, "--memory", "256M", "--seconds", 50)
    assert found["elapsed_s"] < 50 and found["operations"] > 0
    assert "ended early: the events that wait take 268435456 bytes, which is --memory" in table
    # All of it before the counted time, or, on a busy machine, soon after it began.
    done = command.hodo("farm", "bench", "--preset", "lhcb-v1", *small[:-2], "--memory", "1M", "--json", "-")
    (found,) = contract.parse(done.stdout)["measurements"]
    assert done.returncode == (found["operations"] == 0) == ("no event was answered" in found["verdict"]["text"]), done.stderr


def test_version_2_is_one_credit_and_tokens_in_their_order():
    found, table = bench("--preset", "lhcb-v2", "--events", "50k")
    assert (found["size_bytes"], found["window"], found["channels"]) == (SIZE, 1, 20)
    assert found["operations"] >= 50_000 and found["payload_bytes"] >= 50_000 * SIZE
    assert sum(node["events"] for node in found["nodes"]) == found["operations"]
    rows = re.findall(r"^ +(\d+) +(\d+) +\d+ +[01]\.\d{3}$", table, re.MULTILINE)
    assert [(int(number), int(events)) for number, events in rows] == [
        (node["number"], node["events"]) for node in found["nodes"]
    ]
    assert "min/max" in table and "CPU of an event" in table


def test_each_200th_token_of_version_2_carries_64_kb(farm, tmp_path):
    controller = farm.controller("--events", 1000, "--size", SIZE, "--ahead", 0, "--store", tmp_path)
    farm.node(controller.at, 0, "--credits", 1, "--accept", "every:200", "--output", "64K")
    assert controller.has_decided(1000)["events"]["accepted"] == 5
    assert controller.metrics()["farm_given_bytes_total"] == 1000 * SIZE
    controller.end()
    kept = [len(event.data) for event in farm_reader.events(tmp_path)]
    assert kept == [65536] * 5


def test_version_3_counts_what_the_nodes_report():
    found, table = bench("--preset", "lhcb-v3", "--nodes", 5, "--seconds", 0.5)
    reported = re.search(r"the nodes report (\d+) events since they connected: all that were sent to them", table)
    assert int(reported[1]) >= found["operations"] > 0
    assert sum(node["events"] for node in found["nodes"]) == found["operations"]
    command.refused("farm", "bench", "--preset", "lhcb-v3", "--time", "1ms", status=2, says=["do not decide"])


def test_a_node_without_tokens_is_not_for_a_farm_that_decides(farm):
    controller = farm.controller("--events", 10, "--verbose")
    farm.node(controller.at, 0, "--no-tokens")
    controller.said("nodes without tokens are only for measurements")
    assert controller.metrics()['farm_connections_ended_total{reason="no-tokens"}'] >= 1
