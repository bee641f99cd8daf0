"""An event farm over shaped wires, 1 Gbit/s to the controller and 100 Mbit/s to each of 20 nodes."""

import contextlib
import json
import re
import subprocess
import sys
import time

import command
import pytest
import shaped

sys.path.append(str(command.ROOT / "benches/peers"))
from processes import compiled

pytestmark = pytest.mark.long("shaped")

NODES = 20
# The published study's event: 32,000 bytes behind a header of 12.
SIZE, HEADER = 32_000, 12
# Events/s over 1 Gbit/s Ethernet at MTU 1500 with TCP timestamps: 3676.
LIMIT_PER_S = 941.5e6 / 8 / (SIZE + HEADER)
SECONDS = 10
# The share of the limit at least, by credits. Eight events for each node are 5 MB, twice what the queue of the controller's wire holds: TCP then
# loses packets, and all connections slow down together.
LEAST = {1: 0.94, 2: 0.94, 4: 0.94, 8: 0.80}
# Of the node with the fewest events to the one with the most: at 100 Mbit/s a node takes 184 events/s, and one lost segment costs a few.
EQUAL = 0.98


@pytest.fixture(scope="module")
def farm():
    with shaped.farm(NODES) as made:
        yield made


@pytest.fixture(scope="module")
def judged(farm):
    """What version 2 of the study does with two credits here, and the processors that its controller takes for it."""
    return version_2(farm, credits=2)


def test_the_studys_version_2_reaches_the_limit_and_has_equal_nodes(judged):
    found, _ = judged
    assert 0.94 <= found["events_per_s"] / LIMIT_PER_S <= 1.01, found
    assert min(found["node_events"]) / max(found["node_events"]) >= EQUAL, found


@pytest.mark.parametrize("credits", LEAST)
def test_ours_reaches_the_limit_with_equal_nodes_and_little_cpu(farm, judged, credits):
    share, nodes, cores = ours(farm, credits)
    assert min(nodes) / max(nodes) >= EQUAL, nodes
    assert LEAST[credits] <= share <= 1.01
    # A host's own speed is in both. With few events in flight the controller sleeps in between; with one or many credits it is woken for less.
    assert cores < (2 if credits == 2 else 3) * judged[1], (cores, judged)


def ours(farm, credits):
    """The share of the limit, the events of each node, and the processors that the controller took."""
    made = ["--events", 10_000_000, "--size", SIZE, "--congestion", "cubic", "--drain", "50ms"]
    listen = ["--listen", f"{farm.address}:0", "--metrics", "127.0.0.1:0"]
    with contextlib.ExitStack() as stack:
        words = ["farm", "controller", *listen, *made]
        controller = stack.enter_context(command.started(*words, prefix=farm.at_controller()))
        at = re.search(r"listening on ([\d.:]+)", controller.stdout.readline())[1]
        pages = re.search(r"http://([\d.:]+)", controller.stdout.readline())[1]
        for number in range(NODES):
            node = ["--to", at, "--number", number, "--credits", credits, "--accept", "0", "--congestion", "cubic"]
            stack.enter_context(command.started("farm", "node", *node, prefix=farm.at_leaf(number)))
        # The page is asked where it is: on the controller's own host.
        fetch = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())"
        ask = [*farm.at_controller(), sys.executable, "-c", fetch, f"http://{pages}/farm"]

        def state():
            return json.loads(subprocess.run(ask, capture_output=True, text=True, check=True, timeout=20).stdout)

        command.wait_until(lambda: state()["connections"]["nodes"] == NODES, "all nodes are there")
        # What the queues of the wires took at first is no rate.
        first = state()["events"]["given"]
        command.wait_until(lambda: state()["events"]["given"] > first + LIMIT_PER_S, "a second's events are given")
        begin, cpu = state(), command.cpu_s(controller.pid)
        time.sleep(SECONDS)
        end, cpu = state(), command.cpu_s(controller.pid) - cpu
    seconds = end["uptime_s"] - begin["uptime_s"]
    before = {node["number"]: node["answered"] for node in begin["nodes"]}
    nodes = [node["answered"] - before[node["number"]] for node in end["nodes"]]
    return sum(nodes) / seconds / LIMIT_PER_S, nodes, cpu / seconds


def version_2(farm, credits):
    """What the controller says after a run, with each node on a host of its own, and the processors that it took meanwhile."""
    program = compiled("farm", "-lzmq")
    plan = ["--nodes", str(NODES), "--credits", str(credits), "--size", str(SIZE), "--congestion", "cubic"]
    with contextlib.ExitStack() as stack:
        run = ["v2", *plan, "--listen", f"{farm.address}:0", "--seconds", str(SECONDS), "--warmup", "1"]
        controller = stack.enter_context(started(*farm.at_controller(), program, *run))
        at = controller.stderr.readline().removeprefix("listening on ").strip()
        for number in range(NODES):
            node = [*farm.at_leaf(number), program, "node", *plan, "--to", at, "--number", str(number)]
            stack.enter_context(started(*node))
        # After the warm-up, and before its end.
        time.sleep(2)
        began, cpu = time.monotonic(), command.cpu_s(controller.pid)
        time.sleep(SECONDS / 2)
        cores = (command.cpu_s(controller.pid) - cpu) / (time.monotonic() - began)
        said, complaint = controller.communicate(timeout=SECONDS + 30)
    assert controller.returncode == 0, complaint
    return json.loads(said), cores


@contextlib.contextmanager
def started(*words):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()
