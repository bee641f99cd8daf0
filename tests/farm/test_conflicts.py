"""Numbers that other data has: a count that begins anew, one that runs over, twins, and a source that only gives again what it kept."""

import contextlib
import struct
import time
import urllib.error
import urllib.request

import command
import farm_reader
import ledger
import peer
import pytest

SAID = r"(\d+) kept apart because other data has their numbers"


def data(number, year):
    return struct.pack("<QQ", number, year) + bytes(100)


def give(link, events):
    """Gives events, and waits for their tokens: how many were kept apart, and how many were there already."""
    link.send(*(peer.message(peer.EVENT, number, what) for number, what in events))
    flags = [link.of(peer.TOKEN)[2][1] for _ in events]
    return sum(flag == 4 for flag in flags), sum(flag == 1 for flag in flags)


def judged(controller, count):
    """The end of a controller that had so many: counter, page, health, log and status."""
    events = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")["events"]
    assert events["conflicts"] == count and controller.metrics()["farm_events_conflict_total"] == count, events
    if count:
        with pytest.raises(urllib.error.HTTPError) as found:
            urllib.request.urlopen(controller.pages + "/health", timeout=10)
        said = found.value.read().decode()
        assert found.value.code == 503 and "wrong: events come under numbers that other data has" in said, said
    assert controller.end() == (1 if count else 0), controller.text()
    assert f"events with a verdict: {events['taken_in']}" in controller.text(), controller.text()
    if count:
        assert f"{count} events came under numbers that other data has, first event" in controller.text()
    return events


def test_a_readout_that_counts_from_the_beginning_again(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:2")
    with peer.greeted(controller.at, peer.SOURCE, number=3) as link:
        assert give(link, [(number, data(number, 2025)) for number in range(500)]) == (0, 0)
    # What it kept may come again, and is the same.
    controller.until(lambda page: page["connections"]["sources"] == 0, "it is gone")
    with peer.greeted(controller.at, peer.SOURCE, number=3) as link:
        assert give(link, [(number, data(number, 2025)) for number in range(400, 500)]) == (0, 100)
        assert give(link, [(number, data(number, 2026)) for number in range(500)]) == (500, 0)
        assert give(link, [(number, data(number, 2026)) for number in range(500, 600)]) == (0, 0)
    events = judged(controller, 500)
    assert (events["taken_in"], events["duplicates"]) == (600, 100), events
    assert controller.said(r"\b1 events of source 3 came under numbers that other data has, now event 0 of run 1")
    ledger.balances(tmp_path, 600, 2)
    kept = list(farm_reader.conflicts(tmp_path))
    assert [(run, event, source, what) for run, event, source, _, what in kept] == [
        (1, number, 3, data(number, 2026)) for number in range(500)
    ]
    assert "run 1: 500 beside them came under numbers of other data" in ledger.verified(tmp_path)
    # Nothing of it is lost on the way out.
    out = tmp_path / "conflicts.parquet"
    assert command.hodo("farm", "export", tmp_path, out, "--verdict", "conflict").stdout.startswith(f"{out}: 500 events, 58000 bytes")
    assert command.hodo("farm", "export", tmp_path, out).stdout.startswith(f"{out}: 300 events,")


def test_two_sources_that_are_wired_with_the_same_numbers(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:2")
    ours = [farm.source(controller.at, "--number", number, "--size", size, "--events", 500) for number, size in ((0, 100), (1, 200))]
    status = [source.done() for source in ours]
    said = [source.process.poll() and int(source.said(SAID)[1]) for source in ours]
    # Which of them comes first is chance, for each number.
    assert sum(said) == 500 and max(status) == 1, [source.text() for source in ours]
    events = judged(controller, 500)
    assert events["taken_in"] == 500 and len(list(farm_reader.conflicts(tmp_path))) == 500


def test_a_counter_of_16_bits_that_runs_over(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:100")
    with peer.greeted(controller.at, peer.SOURCE) as link:
        apart = 0
        for first in range(0, 70_000, 1000):
            apart += give(link, [(number % 65_536, data(number, 2026)) for number in range(first, first + 1000)])[0]
    assert apart == 70_000 - 65_536
    judged(controller, apart)


def test_fragments_of_a_source_whose_count_begins_anew(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    listen = ["--listen", "127.0.0.1:0", "--sources", 2, "--patience", "30s"]
    builder = farm.part("builder", *listen, "--to", controller.at)
    at = builder.said(r"listening on (\S+)")[1]
    # Before a run is open there, sources are told to come anew.
    controller.until(lambda page: page["connections"]["sources"] == 1, "the builder is there")
    time.sleep(0.2)
    with contextlib.ExitStack() as stack:
        two = [stack.enter_context(peer.greeted(at, peer.SOURCE, number=number)) for number in range(2)]
        for link in two:
            link.send(peer.message(peer.RUN, 1), *(peer.message(peer.EVENT, number, data(number, 2025)) for number in range(50)))
        for link in two:
            assert [link.of(peer.TOKEN)[2] for _ in range(50)] == [(peer.ACCEPTED, 0)] * 50
        assert give(two[0], [(number, data(number, 2026)) for number in range(40)]) == (40, 0)
        assert give(two[1], [(number, data(number, 2025)) for number in range(40)]) == (0, 40)
    assert builder.end() == 1 and "40 events came under numbers that other data has" in builder.text(), builder.text()
    events = judged(controller, 40)
    assert events["taken_in"] == 50, events
    kept = [(event, source, what) for _, event, source, _, what in farm_reader.conflicts(tmp_path)]
    assert kept == [(number, 0, data(number, 2026)) for number in range(40)]


@pytest.mark.parametrize("size", [500, 4000], ids=["one segment", "several"])
def test_a_source_over_datagrams_that_is_started_again(farm, tmp_path, size):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:2")
    listen = ["--listen", "127.0.0.1:0", "--sources", 1, "--udp"]
    builder = farm.part("builder", *listen, "--to", controller.at)
    at = builder.said(r"listening on (\S+)")[1]

    def give(size, status, says):
        source = farm.source(at, "--udp", "--events", 20, "--size", size)
        assert source.done() == status and says in source.text(), source.text()

    give(size, 0, "10 accepted, 10 rejected")
    give(size + 100, 1, "20 kept apart because other data has their numbers")
    give(size, 0, "20 given twice")
    assert builder.end() == 1
    assert judged(controller, 20)["taken_in"] == 20
    assert {len(what) for *_, what in farm_reader.conflicts(tmp_path)} == {size + 100}


def test_after_the_controller_has_begun_anew_a_count_that_began_anew_too_is_found(farm, tmp_path):
    rounds = range(0, 9000, 1000)
    for year in 2025, 2026:
        controller = farm.controller("--store", tmp_path)
        farm.nodes(controller.at, 2, "--accept", "every:2")
        with peer.greeted(controller.at, peer.SOURCE) as link:
            found = [give(link, [(number, data(number, year)) for number in range(first, first + 1000)]) for first in rounds]
        if year == 2025:
            assert found == [(0, 0)] * 9 and controller.end() == 0, controller.text()
    # What the earlier one has decided on cannot be compared: twice as much may come again as a source has credits.
    assert [sum(column) for column in zip(*found, strict=True)] == [9000 - 2 * 4096, 2 * 4096]
    assert controller.page()["events"]["unchecked"] == 9000
    judged(controller, 9000 - 2 * 4096)
