"""Nodes that are not alike: each gets what it can do, unless the policy is blind."""

import contextlib
import time

import command
import farms
import pytest

# From 2 ms to 20 ms for a decision: one to ten times as long.
TIMES_MS = [2 * factor for factor in range(1, 11)]
CAPACITY_PER_S = sum(1000 / time_ms for time_ms in TIMES_MS)
COUNTED_S = 2

pytestmark = pytest.mark.long("timing")


def rate(policy):
    """Events/s of a controller with this policy and these nodes."""
    made = ["--events", 10_000_000, "--size", 1000, "--policy", policy]
    # The nodes end first: what they have is of no interest.
    words = ["farm", "controller", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain", "50ms", *made]
    with contextlib.ExitStack() as stack:
        controller = farms.Controller(stack.enter_context(command.started(*words)))
        for number, time_ms in enumerate(TIMES_MS):
            node = ["--to", controller.at, "--number", number, "--credits", 2, "--time", f"fixed:{time_ms}ms"]
            stack.enter_context(command.started("farm", "node", *node))
        controller.wait_for_nodes(len(TIMES_MS))
        begin = controller.farm()
        # The measurement itself takes this time.
        time.sleep(COUNTED_S)
        end = controller.farm()
    received = [farm["tokens"]["received"] for farm in (begin, end)]
    return (received[1] - received[0]) / (end["uptime_s"] - begin["uptime_s"])


@pytest.mark.parametrize("policy", ["token-fifo", "least-outstanding"])
def test_slow_nodes_hold_up_nobody(policy):
    # An event that was begun before is counted where it ends.
    assert 0.95 * CAPACITY_PER_S <= rate(policy) <= CAPACITY_PER_S + len(TIMES_MS) / COUNTED_S


def test_round_robin_goes_at_the_pace_of_the_slowest():
    slowest = len(TIMES_MS) * 1000 / max(TIMES_MS)
    assert rate("round-robin") <= 1.1 * slowest < 0.5 * CAPACITY_PER_S
