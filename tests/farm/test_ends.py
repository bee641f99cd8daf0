"""Runs that end by their sources, their time, a stop or a drain: all sources end at one number, and no event lacks a fragment."""

import re
import signal

import command
import ledger
import pytest

# How long sources may take on a loaded machine.
WITHIN_S = 150
# Events per second of each source.
RATES = [3000, 2000, 1000]


def sources(farm, builder, *options):
    return [farm.source(builder.at, "--number", k, "--size", 100, "--rate", rate, *options) for k, rate in enumerate(RATES)]


def are_whole(controller, events):
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    assert (page["events"]["taken_in"], page["events"]["partial"], page["events"]["incomplete"]) == (events, 0, 0), page


@pytest.mark.parametrize("udp", [[], ["--udp"]], ids=["tcp", "udp"])
def test_sources_that_are_told_to_end_end_at_one_number(farm, udp):
    controller = farm.controller()
    farm.nodes(controller.at, 2, "--accept", "every:10")
    builder = farm.builder(controller, len(RATES), *udp)
    events = 0
    for turn in range(1 if udp else 20):
        given = sources(farm, builder, "--first", 1_000_000 * turn, "--drain", "60s", *udp)
        controller.has_decided(events + 300, WITHIN_S)
        for source in given:
            source.signal(signal.SIGTERM)
        assert [source.done(WITHIN_S) for source in given] == [0, 0, 0], "\n".join(source.text() for source in given)
        counts = {ledger.given(source) for source in given}
        assert len(counts) == 1, "\n".join([*(source.text() for source in given), builder.text()])
        events += counts.pop()
    are_whole(controller, events)
    assert builder.page()["events"]["incomplete"] == 0


@pytest.mark.parametrize("how", ["drain", "stop", "builder"])
def test_a_farm_that_is_drained_or_stopped_ends_at_one_number(farm, tmp_path, how):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = farm.builder(controller, len(RATES))
    given = sources(farm, builder)
    controller.has_decided(500, WITHIN_S)
    if how == "builder":
        assert builder.end(WITHIN_S) == 0, builder.text()
    else:
        assert farm.part(how, controller.pages).done(WITHIN_S) == 0
        if how == "stop":
            assert controller.done(WITHIN_S) == 0, controller.text()
        else:
            controller.until(lambda page: page["state"] == "drained", "it is drained")
    # Each has its verdicts, and keeps nothing: the events of all end at one number.
    assert [source.end(WITHIN_S) for source in given] == [0, 0, 0], "\n".join(source.text() for source in given)
    counts = {ledger.given(source) for source in given}
    assert len(counts) == 1, counts
    if how != "stop":
        controller.end(WITHIN_S)
    said = ledger.verified(tmp_path)
    assert f"run 1: {counts.pop()} events" in said and "partial" not in said, said


def test_a_run_that_ends_by_its_time_has_no_event_that_lacks_a_fragment(tmp_path):
    file = tmp_path / "farm.toml"
    groups = "".join(f"[[source]]\nsize = 100\nrate = {rate}\n" for rate in RATES)
    store = tmp_path / "store"
    text = f"[run]\ntime = '4s'\nstore = '{store}'\n[controller]\n[builder]\n{groups}[[node]]\ncount = 2\naccept = '1'\n"
    file.write_text(text, encoding="utf-8")
    done = command.hodo("farm", "run", file)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    counts = {int(count) for count in re.findall(r"source \d: (\d+) accepted", done.stdout)}
    assert len(counts) == 1, done.stdout
    said = ledger.verified(store)
    assert f"run 1: {counts.pop()} events" in said and "partial" not in said, said
