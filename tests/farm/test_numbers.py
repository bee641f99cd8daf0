"""Data that come under a number which other data have: they are told, counted and kept, and no number swallows any."""

import urllib.error

import builders
import farm_reader
import ledger
import parts
import peer
import pytest

EVENTS = 500


def data(number, what):
    return number.to_bytes(8, "little") + what.encode()


def give(link, numbers, what):
    """Gives events with these data, and returns the verdict and the flags of each."""
    link.send(*(peer.message(peer.EVENT, number, data(number, what)) for number in numbers))
    found = {}
    while len(found) < len(numbers):
        _, number, found[number] = link.of(peer.TOKEN)
    return found


def health(controller):
    with pytest.raises(urllib.error.HTTPError) as refused:
        controller.fetch("/health")
    return refused.value.code, refused.value.read().decode()


def ends_in_conflict(controller, events):
    """The controller's end: it has failed, and says why."""
    assert controller.end() == 1, controller.text()
    assert f", {events} more under numbers with other data" in controller.text()
    assert f"{events} events came under numbers with other data" in controller.text()


def apart(store):
    """What is in quarantine because others have its number: by number and source."""
    return {(event.event, event.node): event.data for event in farm_reader.events(store) if event.conflict}


def test_two_sources_that_are_wired_with_the_same_numbers(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:1")
    sources = [farm.source(controller.at, "--number", k, "--events", EVENTS, "--size", 100) for k in (3, 4)]
    assert {source.done() for source in sources} <= {0, 1}
    page = controller.until(lambda page: page["events"]["uncommitted"] == 0, "all is stored")
    assert (page["events"]["taken_in"], page["events"]["conflicts"], page["events"]["duplicates"]) == (EVENTS, EVENTS, 0)
    assert controller.metrics()["farm_events_conflicting_total"] == EVENTS
    said = [source.said(r"(\d+) under numbers with other data")[1] for source in sources if source.done()]
    assert sum(map(int, said)) == EVENTS
    code, why = health(controller)
    assert code == 503 and "of run 1 from source " in why and "is in quarantine" in why
    assert why.partition("wrong: ")[2].strip() in controller.text()
    ends_in_conflict(controller, EVENTS)
    kept = list(farm_reader.events(tmp_path))
    assert len({event.data for event in kept}) == len(kept) == 2 * EVENTS, "all that both have given"
    assert {event.node for event in kept if event.conflict} <= {3, 4}
    assert f"run 1: {EVENTS} more in quarantine" in ledger.verified(tmp_path)
    # Given again, they would be in conflict again; under numbers of their own all are events.
    for count, options in (EVENTS, []), (2 * EVENTS, ["--renumber"]):
        another = farm.controller()
        farm.nodes(another.at, 1)
        replayed = farm.part("source", "--to", another.at, "--replay", tmp_path, *options)
        assert replayed.done() == 0 and ledger.given(replayed) == count, replayed.text()
        assert ("--renumber gives them, too" in replayed.text()) == (not options)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_count_that_begins_anew_and_a_source_that_gives_again_what_it_kept(farm, tmp_path, is_restarted):
    """The controller knows what it has decided, also from its store, whatever the verdict was."""
    controller = farm.controller("--store", tmp_path, "--segment", "4K")
    farm.nodes(controller.at, 2, "--accept", "every:3")
    numbers = range(EVENTS)
    with peer.greeted(controller.at, peer.SOURCE, number=2) as link:
        assert {verdict for verdict, _ in give(link, numbers, "first").values()} == {peer.ACCEPTED, peer.REJECTED}
        # It rolls over, perhaps.
        if not is_restarted:
            given = give(link, numbers, "second")
    if is_restarted:
        controller.kill()
        controller = farm.controller("--store", tmp_path, "--segment", "4K", listen=controller.at)
        with peer.greeted(controller.at, peer.SOURCE, number=2) as link:
            given = give(link, numbers, "second")
    assert set(given.values()) == {(peer.QUARANTINED, peer.CONFLICT)}
    with peer.greeted(controller.at, peer.SOURCE, number=2) as link:
        assert {flags for _, flags in give(link, numbers, "first").values()} == {peer.DUPLICATE}
        with peer.greeted(controller.at, peer.SOURCE, number=8) as another:
            assert {flags for _, flags in give(another, numbers[:4], "first").values()} == {peer.DUPLICATE}
        # Above, it goes on.
        farm.nodes(controller.at, 1)
        assert {flags for _, flags in give(link, range(EVENTS, EVENTS + 10), "more").values()} == {0}
    events = controller.page()["events"]
    assert (events["conflicts"], events["duplicates"], events["unchecked"]) == (EVENTS, EVENTS + 4, 0)
    assert controller.metrics()["farm_events_duplicate_total"] == EVENTS + 4
    ends_in_conflict(controller, EVENTS)
    assert apart(tmp_path) == {(number, 2): data(number, "second") for number in numbers}
    found = ledger.verdicts(tmp_path)
    assert len(found) == EVENTS + 10 and "quarantined" not in found.values()
    ledger.verified(tmp_path)


def test_a_count_that_begins_anew_beyond_what_the_controller_remembers(farm, tmp_path):
    """Numbers that are far apart fill its memory soon; the store has their checksums."""
    options = ["--store", tmp_path, "--segment", "64K"]
    controller = farm.controller(*options)
    farm.nodes(controller.at, 2, "--accept", "every:50")

    def numbers(source, count):
        return [(source << 32) + 128 * k for k in range(count)]

    for source in range(3):
        with peer.greeted(controller.at, peer.SOURCE, number=source) as link:
            given = numbers(source, 45_000)
            for start in range(0, len(given), 500):
                assert {flags for _, flags in give(link, given[start : start + 500], "first").values()} == {0}
    old, more = numbers(0, 200), numbers(0, 400)[200:]
    with peer.greeted(controller.at, peer.SOURCE) as link:
        assert set(give(link, old, "first").values()) == {(peer.REJECTED, peer.DUPLICATE)}
        for _ in range(2):
            assert set(give(link, old, "second").values()) == {(peer.QUARANTINED, peer.CONFLICT)}
    events = controller.page()["events"]
    assert (events["conflicts"], events["duplicates"], events["unchecked"]) == (200, 400, 0)
    code, why = health(controller)
    assert code == 503 and "from source 0 has the number of an event with other data, and is in quarantine" in why
    controller.kill()
    controller = farm.controller(*options, listen=controller.at)
    with peer.greeted(controller.at, peer.SOURCE) as link:
        assert set(give(link, more, "first").values()) == {(peer.REJECTED, peer.DUPLICATE)}
        assert set(give(link, more, "second").values()) == {(peer.QUARANTINED, peer.CONFLICT)}
        events = controller.page()["events"]
        assert (events["conflicts"], events["duplicates"], events["unchecked"]) == (200, 200, 0)
    ends_in_conflict(controller, 200)
    assert apart(tmp_path) == {(number, 0): data(number, "second") for number in numbers(0, 400)}
    ledger.verified(tmp_path)
    # Of segments that were taken away nothing is known.
    for segment in sorted(tmp_path.glob("segment-*"))[:-1]:
        segment.unlink()
    controller = farm.controller(*options, listen=controller.at)
    with peer.greeted(controller.at, peer.SOURCE) as link:
        assert set(give(link, numbers(0, 600)[400:], "second").values()) == {(peer.REJECTED, peer.DUPLICATE)}
    events = controller.page()["events"]
    assert (events["conflicts"], events["duplicates"], events["unchecked"]) == (0, 200, 200)
    assert controller.end() == 0 and "could not be compared with what was given before" in controller.text()


def test_a_source_of_a_builder_whose_count_begins_anew(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:1")
    builder = builders.started(farm, controller, 2, "--patience", "60s")
    with builders.greeted(builder, 0) as first, builders.greeted(builder, 1) as second:
        for link in first, second:
            link.send(*(peer.message(peer.EVENT, number, data(number, "first")) for number in range(10)))
        for link in first, second:
            for _ in range(10):
                assert link.of(peer.TOKEN)[2] == (peer.ACCEPTED, 0)
        # One of the two begins anew, while the other goes on.
        assert set(give(second, range(10), "second").values()) == {(peer.QUARANTINED, peer.CONFLICT)}
        first.send(peer.message(peer.EVENT, 10, data(10, "first")))
        assert give(second, [10], "first") == {10: (peer.ACCEPTED, 0)}
        assert set(give(second, range(10), "first").values()) == {(peer.REJECTED, peer.DUPLICATE)}
    builder.said("fragment 0 of run 1 from source 1 has the number of a fragment with other data")
    assert controller.page()["events"]["conflicts"] == 10
    assert builder.end() == 0
    ends_in_conflict(controller, 10)
    assert apart(tmp_path) == {(number, 1): data(number, "second") for number in range(10)}
    assert len(ledger.verdicts(tmp_path)) == 11
    ledger.verified(tmp_path)


def test_only_the_source_of_other_data_is_accused_by_a_builder_that_is_started_again(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:3")
    numbers = range(20)
    for second, expected in ("first", None), ("other", (peer.QUARANTINED, peer.CONFLICT)):
        builder = builders.started(farm, controller, 2, "--patience", "60s")
        with builders.greeted(builder, 0) as innocent, builders.greeted(builder, 1) as guilty:
            innocent.send(*(peer.message(peer.EVENT, number, data(number, "first")) for number in numbers))
            told = set(give(guilty, numbers, second).values())
            others = {innocent.of(peer.TOKEN)[2] for _ in numbers}
        if expected:
            assert (told, others) == ({expected}, {(peer.REJECTED, peer.DUPLICATE)})
        builder.kill()
    assert "from source 1 has the number of an event with other data" in controller.text()
    ends_in_conflict(controller, len(numbers))
    assert apart(tmp_path) == {(number, 1): data(number, "other") for number in numbers}
    ledger.verified(tmp_path)


@pytest.mark.parametrize("options", [[], ["--udp"]], ids=["tcp", "udp"])
def test_a_source_of_a_builder_that_is_started_again_with_other_data(farm, tmp_path, options):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:2")
    builder = builders.started(farm, controller, 2, "--patience", "60s", *options)

    def source(number, *more):
        return farm.source(builder.at, "--number", number, "--events", 50, "--size", "uniform:1K..5K", *options, *more)

    assert [made.done() for made in (source(0), source(1))] == [0, 0]
    again = source(1)
    assert again.done() == 0 and " 50 given twice" in again.text(), "what it makes follows from the seed"
    other = source(1, "--seed", 9)
    assert other.done() == 1 and " 50 under numbers with other data" in other.text(), other.text()
    assert builder.end() == 0
    ends_in_conflict(controller, 50)
    kept = apart(tmp_path)
    assert set(kept) == {(number, 1) for number in range(50)}
    assert all(1000 <= len(data) <= 5000 and data[:8] == number.to_bytes(8, "little") for (number, _), data in kept.items())
    ledger.verified(tmp_path)


def test_what_a_builder_does_not_take_is_not_called_accepted_and_one_of_a_number_is_there(farm):
    controller = farm.controller()
    farm.nodes(controller.at, 1, "--accept", "every:1")
    builder = builders.started(farm, controller, 2, "--patience", "100ms")
    with builders.greeted(builder, 0) as first, builders.greeted(builder, 1) as second:
        second.send(peer.message(peer.EVENT, 6, data(6, "first")))
        assert give(first, [5], "first") == {5: (peer.ACCEPTED, 0)}, "without the other's, which has passed it"
        assert give(second, [5], "late") == {5: (peer.INCOMPLETE, peer.LATE)}
        with peer.Peer(builder.at) as other:
            other.send(peer.hello(peer.SOURCE, 1, instance=2))
            code, words = other.refused()
        assert code == 14 and "another connection has number 1" in words
        assert give(second, [5], "late") == {5: (peer.INCOMPLETE, peer.LATE)}, "the first one stays"
    # One that has started again takes its place.
    with builders.greeted(builder, 1, instance=2) as later:
        assert give(later, [5], "late") == {5: (peer.INCOMPLETE, peer.LATE)}
    assert parts.decided(controller.page()) == 1


def test_an_emulated_source_that_is_started_again_repeats_itself(farm):
    """What it makes follows from its number and those of the events, so that nothing is in conflict."""
    controller = farm.controller()
    farm.nodes(controller.at, 1)
    for count in (100, 150):
        source = farm.source(controller.at, "--number", 3, "--events", count, "--size", "uniform:10..3000")
        assert source.done() == 0, source.text()
    events = controller.page()["events"]
    assert (events["taken_in"], events["duplicates"], events["conflicts"]) == (150, 100, 0)
    assert controller.end() == 0


def test_the_highest_numbers_are_as_good_as_others(farm, tmp_path):
    first = 2**64 - 3
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 1, "--accept", "every:2")
    for count, flag in (2, "0 given twice"), (2, "2 given twice"):
        source = farm.source(controller.at, "--first", first, "--events", count)
        assert source.done() == 0 and flag in source.text(), source.text()
        assert controller.end() == 0
        controller = farm.controller("--store", tmp_path, listen=controller.at)
    beyond = farm.source(controller.at, "--first", first, "--events", 3)
    assert beyond.done() == 2 and "they end at 2^64 - 2; lower --first" in beyond.text(), beyond.text()
    assert set(ledger.verdicts(tmp_path)) == {first, first + 1}
