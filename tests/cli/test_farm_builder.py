"""Events that are built of the fragments of several sources, by real processes."""

import contextlib
import runpy
import struct

import command
import farms
import pytest

READER = runpy.run_path(str(command.ROOT / "docs/examples/farm_reader.py"))
SOURCES = 3


@contextlib.contextmanager
def sources(builder, *options, numbers=range(SOURCES)):
    """Sources that give a fragment of every event, each of its own size."""
    with contextlib.ExitStack() as all_of_them:
        yield [
            all_of_them.enter_context(
                command.started(
                    *("farm", "source", "--to", builder.at, "--number", number, "--numbered"),
                    *("--size", 100 * (number + 1), "--seed", number, *options),
                )
            )
            for number in numbers
        ]


def ended(process):
    """What a source says, which has come to its end in order."""
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said
    return said


def stored(folder):
    """The sources whose fragments each stored event has, by its number, and whether it is flagged."""
    found = {}
    for event in READER["events"](folder, run=1):
        assert event.event not in found, f"event {event.event} is stored twice"
        numbers, rest = [], event.data
        while rest:
            number, length = struct.unpack_from("<II", rest)
            fragment, rest = rest[8 : 8 + length], rest[8 + length :]
            assert length == len(fragment) == 100 * (number + 1)
            assert int.from_bytes(fragment[:8], "little") == event.event, "a fragment of another event"
            numbers.append(number)
        found[event.event] = numbers, event.partial
    return found


@contextlib.contextmanager
def controller_and_node(folder):
    with farms.controller("--store", folder) as controller, farms.node(controller, "--accept", "1", "--count", 3):
        yield controller


def test_an_event_is_the_fragments_of_all_sources_in_order(tmp_path):
    with controller_and_node(tmp_path) as controller, farms.builder(controller, "--sources", SOURCES) as builder:
        assert builder.state()["connections"]["absent"] == [0, 1, 2]
        with sources(builder, "--events", 2000) as running:
            assert all("2000 accepted, 0 rejected" in ended(source) for source in running)
        assert controller.balanced()["accepted"] == 2000
        state = builder.state()
        assert (state["events"]["complete"], state["events"]["answered"]) == (2000, 2000), state
        assert state["fragments"]["taken_in"] == 6000
        assert not any(state["fragments"][what] for what in ("lost", "late", "duplicate", "unexpected")), state
        metrics = builder.page("/metrics")
        assert "\nfarm_builder_events_complete_total 2000\n" in metrics
        assert "\nfarm_builder_fragments_total 6000\n" in metrics
        assert builder.page("/health").startswith("ready")
        status = command.hodo("farm", "status", controller.pages, "--builder", builder.pages)
        assert "\n6000 fragments in, 0 lost, " in status.stdout and "\n2000 events complete, 0" in status.stdout, status
        top = command.hodo("farm", "top", controller.pages, "--builder", builder.pages, "--once", "--every", "50ms")
        assert "\nbuilder  0 events/s complete" in top.stdout and "0 of 3 sources" in top.stdout, top
        status, said = builder.end()
        assert status == 0, said
    events = stored(tmp_path)
    assert set(events) == set(range(2000))
    assert all(event == ([0, 1, 2], False) for event in events.values())


@pytest.mark.parametrize("incomplete", ["forward", "drop"])
def test_events_without_the_fragments_of_a_dead_source_are_flagged_or_dropped(tmp_path, incomplete):
    options = ["--sources", SOURCES, "--patience", "200ms", "--incomplete", incomplete]
    with controller_and_node(tmp_path) as controller, farms.builder(controller, *options) as builder:
        with sources(builder, "--events", 3000, "--rate", 2000) as running:
            builder.wait_for(lambda state: state["events"]["complete"] > 500, "events are complete")
            running[1].kill()
            [ended(running[number]) for number in (0, 2)]
        verdicts = controller.balanced()
        assert verdicts["taken_in"] == 3000
        state = builder.state()
        assert state["connections"]["absent"] == [0, 1, 2], "all have ended"
        complete, lacking = state["events"]["complete"], state["events"]["incomplete"]
        assert complete + lacking == 3000 and lacking > 0 and state["fragments"]["lost"] == lacking
        status, said = builder.end()
        assert status == 0 and "events lack fragments; absent: source 1\n" in said, said
    events = stored(tmp_path)
    whole = [number for number, event in events.items() if event == ([0, 1, 2], False)]
    flagged = [number for number, event in events.items() if event == ([0, 2], True)]
    assert len(whole) == complete and len(whole) + len(flagged) == len(events)
    if incomplete == "forward":
        assert (len(flagged), verdicts["accepted"]) == (lacking, 3000)
    else:
        assert (len(flagged), verdicts["accepted"], verdicts["incomplete"]) == (0, complete, lacking)


def test_a_builder_that_is_killed_and_started_again_loses_nothing_and_gives_nothing_twice(tmp_path):
    options = ["--sources", SOURCES, "--patience", "4s"]
    with contextlib.ExitStack() as all_of_them:
        controller = all_of_them.enter_context(controller_and_node(tmp_path))
        builder = all_of_them.enter_context(farms.builder(controller, *options))
        running = all_of_them.enter_context(sources(builder, "--events", 6000, "--rate", 2000))
        for count in (1000, 3000):
            controller.wait_for(lambda state, count=count: state["events"]["taken_in"] > count, "events come")
            builder.process.kill()
            builder.process.wait()
            builder = all_of_them.enter_context(farms.builder(controller, *options, listen=builder.at))
        for source in running:
            ended(source)
        assert controller.balanced()["accepted"] == 6000
        status, said = builder.end()
        assert status == 0, said
    events = stored(tmp_path)
    assert set(events) == set(range(6000))
    assert all(event == ([0, 1, 2], False) for event in events.values())


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_controller_that_is_started_again_gets_each_event_once(tmp_path, end):
    with contextlib.ExitStack() as all_of_them:
        controller = all_of_them.enter_context(controller_and_node(tmp_path))
        options = ["--sources", SOURCES, "--patience", "4s"]
        builder = all_of_them.enter_context(farms.builder(controller, *options))
        running = all_of_them.enter_context(sources(builder, "--events", 6000, "--rate", 2000))
        for count in (1000, 3000):
            controller.wait_for(lambda state, count=count: state["events"]["taken_in"] > count, "events come")
            getattr(controller.process, end)()
            controller.process.wait()
            again = farms.controller("--store", tmp_path, listen=controller.at)
            controller = all_of_them.enter_context(again)
        for source in running:
            ended(source)
        assert controller.balanced()["accepted"] == 6000
    events = stored(tmp_path)
    assert set(events) == set(range(6000))
    assert all(event == ([0, 1, 2], False) for event in events.values())


def test_a_builder_drains_when_it_is_to_end_and_another_one_goes_on(tmp_path):
    options = ["--sources", SOURCES]
    with contextlib.ExitStack() as all_of_them:
        controller = all_of_them.enter_context(controller_and_node(tmp_path))
        builder = all_of_them.enter_context(farms.builder(controller, *options))
        running = all_of_them.enter_context(sources(builder, "--events", 4000, "--rate", 2000))
        controller.wait_for(lambda state: state["events"]["taken_in"] > 1000, "events come")
        status, said = builder.end()
        assert status == 0, said
        builder = all_of_them.enter_context(farms.builder(controller, *options, listen=builder.at))
        for source in running:
            ended(source)
        assert controller.balanced()["accepted"] == 4000
    assert all(event == ([0, 1, 2], False) for event in stored(tmp_path).values())


def test_what_has_no_business_there_is_refused():
    with farms.controller() as controller, farms.builder(controller, "--sources", 2, "--verbose") as builder:
        with sources(builder, "--events", 1, numbers=[2]) as (source,):
            builder.wait_for(lambda state: state["connections"]["misbehaved"] > 0, "source 2 is refused")
            source.terminate()
        assert builder.state()["connections"]["refused"] > 0
        _, said = builder.end()
        assert "source 2 is not one of the 2 expected" in said, said
    command.refused("farm", "builder", status=2, says=["--sources"])
    command.refused("farm", "builder", "--sources", 1, "--no-metrics", "--listen", "192.0.2.1:1", status=1, says=["cannot listen on"])
