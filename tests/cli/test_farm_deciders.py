"""The user's programs that decide on a farm's events: in any language, however they behave."""

import contextlib
import signal
import subprocess
import sys

import command
import farms
import pytest

DECIDER = command.ROOT / "docs/examples/farm_decider.py"
SMALL = ["--size", "uniform:0..3000", "--numbered"]
# Reads events as the node frames them, and then does something.
LOOP = """
import os, struct, sys, time
source, sink = sys.stdin.buffer, sys.stdout.buffer
def answer(number, verdict, output=b""):
    sink.write(struct.pack("<QII", number, verdict, len(output)) + output)
    sink.flush()
while head := source.read(20):
    number, run, flags, length = struct.unpack("<QIII", head)
    source.read(length)
    {act}
"""


def program(folder, act):
    file = folder / "decider.py"
    file.write_text(LOOP.format(act=act), encoding="utf-8")
    return [sys.executable, file]


def test_a_store_takes_what_is_accepted_and_the_controller_ends_in_order(tmp_path):
    with farms.controller("--store", tmp_path / "store") as controller:
        with farms.node(controller, "--accept", "0.5"):
            farms.source(controller, "--events", 2000, *SMALL)
        events = controller.balanced()
        assert events["taken_in"] == 2000 and events["uncommitted"] == 0
        assert controller.farm()["store"]["events"] == events["accepted"] > 500
        status, said = controller.end()
        assert status == 0, said
    with farms.controller("--store", tmp_path / "store") as controller:
        assert controller.events()["accepted"] == events["accepted"]
        status, said = controller.end()
        assert status == 0 and "damage" not in said.lower(), said


def test_the_python_example_decides():
    with farms.controller() as controller:
        deciding = ["--workers", 3, "--command", sys.executable, DECIDER, "--threshold", 1500]
        with farms.node(controller, *deciding) as node:
            assert "1000 accepted" not in farms.source(controller, "--events", 1000, *SMALL)
            assert len(command.children(node.pid)) == 3
            events = controller.balanced()
            assert 200 < events["accepted"] < 800 and events["accepted"] + events["rejected"] == 1000
            (seen,) = controller.farm()["nodes"]
            assert seen["failed"] == 0 and seen["decided_us_mean"] > 0
            deciders = command.children(node.pid)
            node.send_signal(signal.SIGTERM)
            assert node.wait(20) == 0
            assert not any(command.is_there(decider) for decider in deciders)


def test_an_output_is_stored_in_place_of_the_event(tmp_path):
    act = "answer(number, 0, b'kept %d' % number)"
    with farms.controller("--store", tmp_path / "store") as controller:
        with farms.node(controller, "--command", *program(tmp_path, act)):
            farms.source(controller, "--events", 50, "--size", "20000")
        assert controller.balanced()["accepted"] == 50
        assert controller.farm()["store"]["bytes"] == sum(len(b"kept %d" % number) for number in range(50))
        assert controller.end()[0] == 0
    stored = b"".join(file.read_bytes() for file in (tmp_path / "store").iterdir() if file.is_file())
    assert all(b"kept %d" % number in stored for number in range(50))


@pytest.mark.parametrize(
    ("act", "says"),
    [
        ("os._exit(3) if number == 7 else answer(number, 1)", "exit status: 3"),
        ("os.kill(os.getpid(), 9) if number == 7 else answer(number, 1)", "signal: 9"),
        ("answer(number + (number == 7), 1)", "answers for event 8"),
        ("answer(number, 9 if number == 7 else 1)", "verdict 9 does not exist"),
        ("time.sleep(60 if number == 7 else 0); answer(number, 1)", "longer than 300ms"),
        ("answer(number, 2 if number == 7 else 1)", "could not"),
        ("sink.write(b'hello' * (number == 7)); answer(number, 1)", "standard output"),
    ],
)
def test_an_event_that_kills_deciders_is_quarantined_and_the_others_are_decided(tmp_path, act, says):
    with farms.controller("--deaths", 3, "--silence", "500ms") as controller:
        command_line = ["--decide-within", "300ms", "--command", *program(tmp_path, act)]
        with farms.node(controller, *command_line) as one, farms.node(controller, "--number", 1, *command_line):
            controller.wait_for_nodes(2)
            said = farms.source(controller, "--events", 200, *SMALL)
            # With what was printed ahead of it, the answer to the event behind is lost as well.
            assert "199 rejected, 1 quarantined" in said, said
            controller.balanced()
            farm_then = controller.farm()
            assert farm_then["connections"]["nodes_lost"] == 0, "a node outlives its deciders"
            assert sum(node["failed"] for node in farm_then["nodes"]) >= 3
            one.send_signal(signal.SIGTERM)
            assert one.wait(20) == 0
            with contextlib.suppress(subprocess.TimeoutExpired):
                heard = one.stdout.read()
                assert says in heard or not heard, heard


def test_a_long_decision_is_no_silence(tmp_path):
    act = "time.sleep(1.5); answer(number, 1)"
    with farms.controller("--silence", "400ms") as controller:
        with farms.node(controller, "--command", *program(tmp_path, act)):
            farms.source(controller, "--events", 2, *SMALL)
            assert controller.farm()["connections"]["nodes_lost"] == 0
            assert controller.balanced()["rejected"] == 2


def test_a_node_that_is_killed_leaves_its_events_to_others_and_no_process_behind(tmp_path):
    deciding = ["--workers", 2, "--command", *program(tmp_path, "time.sleep(0.002); answer(number, number % 2)")]
    with farms.controller() as controller:
        with farms.node(controller, *deciding), farms.node(controller, "--number", 1, *deciding) as killed:
            controller.wait_for_nodes(2)
            with command.started("farm", "source", "--to", controller.at, "--events", 2000, *SMALL) as source:
                controller.wait_for(lambda farm: farm["events"]["accepted"] > 100, "events are decided")
                deciders = command.children(killed.pid)
                killed.kill()
                assert source.wait(60) == 0, source.stdout.read()
            events = controller.balanced()
            assert (events["accepted"], events["rejected"], events["taken_in"]) == (1000, 1000, 2000)
            assert events["redispatched"] > 0 and len(deciders) == 2
            command.wait_until(lambda: not any(map(command.is_there, deciders)), "its deciders have ended")


def test_a_command_for_each_event(tmp_path):
    script = tmp_path / "decide"
    script.write_text('#!/bin/sh\n[ $((HODO_EVENT % 4)) = 0 ] && exec head -c 8\nexit $((HODO_EVENT % 4 == 3 ? 7 : 1))\n')
    script.chmod(0o755)
    with farms.controller("--deaths", 2) as controller:
        with farms.node(controller, "--workers", 2, "--exec", script):
            said = farms.source(controller, "--events", 40, "--size", "100000")
            assert "10 accepted, 20 rejected, 10 quarantined" in said, said
            assert controller.farm()["bytes"]["answered"] == 10 * 8


def test_a_program_that_is_not_there_is_told_of_at_once():
    command.refused("farm", "node", "--command", "/there/is/none", status=2, says=["/there/is/none", "path"])
    command.refused("farm", "node", "--exec", "no-such-program", status=2, says=["no-such-program"])
    command.refused("farm", "node", "--accept", "1", "--exec", "true", status=2, says=["--accept"])


def test_the_rust_example_decides():
    """Built with the tests, and run as a user would."""
    example = command.example("decider")
    with farms.controller() as controller:
        decider = subprocess.Popen(
            [example, controller.at, "3"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            farms.source(controller, "--events", 500, *SMALL)
            events = controller.balanced()
            assert events["accepted"] + events["rejected"] == 500 and events["accepted"] > 0
        finally:
            _, complaint = decider.communicate(timeout=20)
        assert decider.returncode == 0, complaint
