"""Recorded events, given again."""

import runpy

import command
import farms
import pytest

GOLDEN = command.ROOT / "crates/store/tests/golden"
READER = runpy.run_path(str(command.ROOT / "docs/examples/farm_reader.py"))


def what(event):
    return event.run, event.event, event.partial, event.data


def stored(folder, **choice):
    return sorted(what(event) for event in READER["events"](folder, **choice))


def taken(folder, store, *options):
    """What a controller stores of a replay that it wholly accepts, and what the source says."""
    with farms.controller("--store", folder, "--open", "7,8") as controller, farms.node(controller, "--accept", "1"):
        said = farms.source(controller, "--replay", store, *options)
        controller.balanced()
    return stored(folder), said


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """A store in segments, of events of many sizes."""
    folder = tmp_path_factory.mktemp("record")
    # However slow the disk is, no commit holds more than a segment does.
    with farms.controller("--store", folder, "--segment", "64K", "--uncommitted", 32, "--run", 7) as controller:
        with farms.node(controller, "--accept", "0.5"):
            farms.source(controller, "--events", 1000, "--size", "uniform:0..3000", "--numbered", "--run", 7)
            controller.balanced()
    assert len(list(folder.glob("segment-*.hodo"))) > 3
    return folder


def test_a_replay_gives_the_same_events(record, tmp_path):
    events, said = taken(tmp_path, record)
    assert events == stored(record)
    assert len(events) > 400 and f"{len(events)} accepted" in said


def test_the_order_is_that_of_the_record(record, tmp_path):
    with farms.controller("--store", tmp_path, "--open", 7) as controller, farms.node(controller, "--accept", "1", "--credits", 1):
        farms.source(controller, "--replay", record)
    order = [event.event for event in READER["events"](record)]
    assert [event.event for event in READER["events"](tmp_path)] == order


def test_a_segment_is_replayed_alone_as_another_run(record, tmp_path):
    segment = sorted(record.glob("segment-*.hodo"))[1]
    events, _ = taken(tmp_path, segment, "--run", 8)
    assert events == [(8, *rest) for _, *rest in stored(segment)]


def test_flags_and_runs_are_as_recorded(tmp_path):
    events, _ = taken(tmp_path, GOLDEN)
    assert events == stored(GOLDEN)
    assert {run for run, *_ in events} == {7, 8} and any(partial for _, _, partial, _ in events)


def test_sources_share_a_record_and_numbers_can_be_without_gaps(record, tmp_path):
    all_of_them = [what(event) for event in READER["events"](record)]
    with farms.controller("--store", tmp_path, "--open", 7) as controller, farms.node(controller, "--accept", "1"):
        for first in range(3):
            farms.source(controller, "--replay", record, "--renumber", "--first", first, "--step", 3, "--number", first)
        controller.balanced()
    assert stored(tmp_path) == [(run, place, *rest) for place, (run, _, *rest) in enumerate(all_of_them)]


def test_a_replay_has_a_rate_and_a_bound(record, tmp_path):
    with farms.controller("--store", tmp_path, "--open", 7) as controller, farms.node(controller, "--accept", "1"):
        said = farms.source(controller, "--replay", record, "--rate", 200, "--events", 100)
        assert "100 accepted" in said
        assert controller.farm()["uptime_s"] > 0.49, "100 events at 200 a second"
    assert stored(tmp_path) == sorted([what(event) for event in READER["events"](record)][:100])


def test_what_is_damaged_is_left_out_and_told(record, tmp_path):
    segment = sorted(record.glob("segment-*.hodo"))[0]
    bad = tmp_path / segment.name
    whole = bytearray(segment.read_bytes())
    whole[200] ^= 1
    bad.write_bytes(whole)
    with farms.controller("--run", 7) as controller, farms.node(controller):
        done = command.hodo("farm", "source", "--to", controller.at, "--replay", bad)
        assert done.returncode == 1 and "skipped: " in done.stderr and segment.name in done.stderr, done.stderr
        assert controller.balanced()["taken_in"] == len(stored(segment)) - 1


def test_what_cannot_be_replayed_is_named(tmp_path):
    command.refused("farm", "source", "--replay", tmp_path / "none", status=1, says=["--replay", "none"])
    command.refused("farm", "source", "--replay", tmp_path, "--size", "1", status=2, says=["--size"])
    command.refused("farm", "source", "--renumber", status=2, says=["--replay"])


def test_more_gaps_than_a_run_may_have_are_told_with_their_remedy(tmp_path):
    many = ["--events", 140_000, "--size", 16, "--until-done"]
    with farms.controller("--store", tmp_path / "record", *many) as controller:
        with farms.node(controller, "--accept", "every:2"):
            assert controller.process.wait(command.BOUND_S) == 0
    with farms.controller("--store", tmp_path / "store", "--open", 2) as controller, farms.node(controller, "--accept", "1"):
        replay = ["farm", "source", "--to", controller.at, "--replay", tmp_path / "record"]
        command.refused(*replay, status=1, says=["more gaps than a run may have; add --renumber"])
        said = farms.source(controller, "--replay", tmp_path / "record", "--renumber", "--run", 2)
        assert "70000 accepted" in said
