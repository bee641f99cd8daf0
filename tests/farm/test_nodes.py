"""Nodes that are killed, stopped, cut off or reset: their events go to others, and the others go on."""

import os
import random
import time

import ledger
import parts
import pytest
import relay
import wires

NODES = 20
# Rates are set by this time, not by the machine's processors: 100 events/s for each node.
DECISION = ["--time", "fixed:10ms", "--accept", "every:10"]
NODE_RATE_PER_S = 100
SIZE = ["--size", "uniform:1K..8K"]
# Room for some hundred events of the source: enough for all nodes, and soon decided when it is to end.
ROOM = ["--event-max", "64K", "--pool", "8M"]
# Silence is 600 ms unless told otherwise, and is looked at every 50 ms.
FOUND_WITHIN_S = 1.0


def started(farm, store, nodes=NODES):
    """A farm with a source, with all nodes at work."""
    controller = farm.controller("--store", store, "--verbose", *ROOM)
    nodes = farm.nodes(controller.at, nodes, *DECISION)
    controller.has_nodes(len(nodes))
    source = farm.source(controller.at, *SIZE)
    controller.has_decided(len(nodes))
    return controller, nodes, source


def ends_balanced(controller, source, store, **more):
    """The source ends with every verdict; the controller and its store agree."""
    assert source.end() == 0, source.text()
    events = ledger.given(source)
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    counted = ledger.balances(store, events, 10, **more)
    ledger.agrees(page, counted)
    assert controller.end() == 0, controller.text()
    return page


def test_5_of_20_nodes_are_killed(farm, tmp_path):
    controller, nodes, source = started(farm, tmp_path)
    # The nodes' time sets the rate.
    before = controller.reaches(0.9 * NODES * NODE_RATE_PER_S)
    killed = random.Random(1).sample(nodes, 5)
    for node in killed:
        os.kill(node.pid, 9)
    at = time.monotonic()
    controller.has_nodes(NODES - 5, FOUND_WITHIN_S)
    pass_until(at + 1)
    after = controller.rate(1)
    share = (NODES - 5) / NODES
    assert after > 0.9 * share * before, f"{before} events/s, then {after}"
    page = ends_balanced(controller, source, tmp_path)
    assert page["connections"]["nodes_lost"] == 5 and page["events"]["redispatched"] >= 5


def pass_until(moment):
    """A second to recover in is what is promised, so it passes; nothing is waited for."""
    time.sleep(max(0, moment - time.monotonic()))


def test_2_of_20_nodes_are_stopped_and_go_on(farm, tmp_path):
    controller, nodes, source = started(farm, tmp_path)
    stopped = nodes[3], nodes[17]
    since = len(controller.lines)
    at = time.monotonic()
    for node in stopped:
        parts.stop(node)
    for number in (3, 17):
        found, said = controller.when(rf"node {number} is gone: silent for too long.*; others get its (\d+) events", since=since)
        assert found - at < FOUND_WITHIN_S, f"silence was noticed after {found - at:.2f} s"
        assert int(said[1]) > 0
    controller.has_nodes(NODES - 2)
    before = parts.decided(controller.page())
    controller.has_decided(before + 500)
    since = len(controller.lines)
    for node in stopped:
        parts.go_on(node)
    for number in (3, 17):
        controller.said(rf"node {number} has joined", since=since)
    page = controller.has_nodes(NODES)
    controller.until(lambda now: works(now, page, {3, 17}), "those that were stopped work again")
    ends_balanced(controller, source, tmp_path)


def works(page, before, numbers):
    """Whether nodes with these numbers have answered something since then."""
    def answered(page):
        return {node["number"]: node["answered"] for node in page["nodes"]}
    return all(answered(page).get(number, 0) > answered(before).get(number, 0) for number in numbers)


def test_a_link_goes_down_and_comes_up(farm, tmp_path):
    with wires.pair() as wire:
        controller = farm.controller("--store", tmp_path, "--verbose", *ROOM, listen="0.0.0.0:0", namespace=wire.near)
        port = controller.at.rsplit(":", 1)[1]
        near = farm.nodes(f"127.0.0.1:{port}", 4, *DECISION, prefix=wire.at_near())
        far = [
            farm.node(f"{wire.near_address}:{port}", number, *DECISION, prefix=wire.at_far()) for number in range(4, 8)
        ]
        source = farm.source(f"127.0.0.1:{port}", *SIZE, prefix=wire.at_near())
        controller.has_nodes(8)
        controller.has_decided(100)
        at = time.monotonic()
        since = len(controller.lines)
        wire.down()
        for number in range(4, 8):
            found, _ = controller.when(rf"node {number} is gone", since=since)
            assert found - at < FOUND_WITHIN_S, f"noticed after {found - at:.2f} s"
        # Those on this side go on.
        controller.has_decided(parts.decided(controller.page()) + 200)
        wire.up()
        page = controller.has_nodes(8)
        controller.until(lambda now: works(now, page, set(range(4, 8))), "those beyond the link work again")
        assert all(node.process.poll() is None for node in near + far)
        ends_balanced(controller, source, tmp_path)


@pytest.mark.parametrize("who", ["node", "source"])
def test_connections_are_reset_again_and_again(farm, tmp_path, who):
    controller = farm.controller("--store", tmp_path, "--verbose", *ROOM)
    with relay.relay(controller.at) as between:
        nodes = farm.nodes(between.at if who == "node" else controller.at, 4, *DECISION)
        source = farm.source(between.at if who == "source" else controller.at, *SIZE)
        controller.has_nodes(4)
        controller.has_decided(50)
        for _ in range(10):
            before = parts.decided(controller.page())
            assert between.cut() > 0
            controller.has_decided(before + 40)
        page = controller.until(lambda page: page["connections"]["nodes"] == 4, "all are there again")
        assert page["connections"]["nodes_lost"] >= (10 if who == "node" else 0)
        assert all(node.process.poll() is None for node in nodes)
        ends_balanced(controller, source, tmp_path)
