"""An event farm over shaped wires, 1 Gbit/s to the controller and 100 Mbit/s to each of 20 nodes."""

import contextlib
import json
import subprocess
import sys

import command
import pytest
import shaped

sys.path.append(str(command.ROOT / "benches/peers"))
from processes import compiled

NODES = 20
# The published study's event: 32,000 bytes behind a header of 12.
SIZE, HEADER = 32_000, 12
# Events/s over 1 Gbit/s Ethernet at MTU 1500 with TCP timestamps: 3676.
LIMIT_PER_S = 941.5e6 / 8 / (SIZE + HEADER)
SECONDS = 4


@pytest.fixture(scope="module")
def farm():
    with shaped.farm(NODES) as made:
        yield made


def test_the_studys_version_2_reaches_the_limit_and_has_equal_nodes(farm):
    found = version_2(farm, credits=2)
    assert 0.94 <= found["events_per_s"] / LIMIT_PER_S <= 1.01, found
    assert min(found["node_events"]) / max(found["node_events"]) >= 0.99, found


def version_2(farm, credits):
    """What the controller says after a run, with each node on a host of its own."""
    program = compiled("farm", "-lzmq")
    plan = ["--nodes", str(NODES), "--credits", str(credits), "--size", str(SIZE), "--congestion", "cubic"]
    with contextlib.ExitStack() as stack:
        run = ["v2", *plan, "--listen", f"{farm.address}:0", "--seconds", str(SECONDS), "--warmup", "1"]
        controller = stack.enter_context(started(*farm.at_controller(), program, *run))
        at = controller.stderr.readline().removeprefix("listening on ").strip()
        for number in range(NODES):
            node = [*farm.at_leaf(number), program, "node", *plan, "--to", at, "--number", str(number)]
            stack.enter_context(started(*node))
        said, complaint = controller.communicate(timeout=SECONDS + 30)
    assert controller.returncode == 0, complaint
    return json.loads(said)


@contextlib.contextmanager
def started(*words):
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()
