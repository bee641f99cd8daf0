"""Nodes of which some are ten times slower than others: each has work for as long as it takes, by its tokens."""

import pytest

NODES = 20
FASTEST_MS, SLOWEST_MS = 20, 200
TIMES_MS = [FASTEST_MS + (SLOWEST_MS - FASTEST_MS) * number / (NODES - 1) for number in range(NODES)]
CAPACITY_PER_S = sum(1000 / time for time in TIMES_MS)
# Each node as often as the others: as the slowest.
IN_TURN_PER_S = NODES * 1000 / SLOWEST_MS


def started(farm, policy):
    made = ["--events", 10_000_000, "--size", "uniform:1K..8K"]
    controller = farm.controller("--policy", policy, *made)
    for number, time in enumerate(TIMES_MS):
        farm.node(controller.at, number, "--time", f"fixed:{time:.3f}ms", "--credits", 2)
    controller.has_nodes(NODES)
    # Each has answered, so that what came before all were there is behind it.
    controller.until(lambda page: all(node["answered"] > 2 for node in page["nodes"]), "all nodes answer")
    return controller


@pytest.mark.parametrize("policy", ["token-fifo", "least-outstanding"])
def test_all_nodes_are_busy_all_the_time(farm, policy):
    controller = started(farm, policy)
    rate = controller.reaches(0.95 * CAPACITY_PER_S, seconds=4, patience=20)
    # An event that was begun before is counted where it ends.
    assert rate <= CAPACITY_PER_S + NODES / 4
    print(f"{policy}: {rate / CAPACITY_PER_S:.3f} of the nodes' capacity")


def test_in_turn_the_slowest_sets_the_rate(farm):
    controller = started(farm, "round-robin")
    assert controller.rate(3) < 1.2 * IN_TURN_PER_S < 0.5 * CAPACITY_PER_S
