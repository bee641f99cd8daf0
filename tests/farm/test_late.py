"""Sources that are late, are stopped or come back: the others are held back meanwhile, and no event lacks a fragment that still comes."""

import json
import urllib.error

import command
import ledger
import parts
import peer
import pytest

SOURCES = 3
# How long sources may take on a loaded machine.
WITHIN_S = 150


@pytest.fixture(params=["tcp", "udp"])
def udp(request):
    return ["--udp"] if request.param == "udp" else []


@pytest.fixture
def controller(farm):
    controller = farm.controller()
    farm.nodes(controller.at, 2, "--accept", "every:10")
    return controller


def source(farm, builder, number, *options):
    return farm.source(builder.at, "--number", number, "--size", 100, *options)


def whole(controller, builder, events):
    """Every event was built of all fragments."""
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    assert (page["events"]["taken_in"], page["events"]["partial"], page["events"]["incomplete"]) == (events, 0, 0), page
    built = builder.page()
    assert built["events"]["incomplete"] == built["fragments"]["late"] == 0, built
    return built


def of(built, number):
    """The counters of one source."""
    return next(source for source in built["sources"] if source["number"] == number)


def test_one_that_is_late_is_waited_for(farm, controller, udp):
    builder = farm.builder(controller, SOURCES, "--patience", "200ms", *udp)
    early = [source(farm, builder, number, "--events", 10_000, *udp) for number in range(2)]
    builder.until(lambda page: page["events"]["open"] >= 4096, "nothing more can be given without the third")
    builder.said("events wait for what has not connected yet: source 2; --start-without starts without it")
    late = source(farm, builder, 2, "--events", 10_000, *udp)
    for given in (*early, late):
        assert given.done(WITHIN_S) == 0 and ledger.given(given) == 10_000, given.text()
    built = whole(controller, builder, 10_000)
    assert of(built, 2)["held_back_s"] > of(built, 0)["held_back_s"], built


def test_two_that_are_late_and_one_that_is_killed_twice(farm, controller):
    builder = farm.builder(controller, SOURCES, "--patience", "20s")
    options = ["--events", 6000, "--rate", 3000]
    first = source(farm, builder, 0, *options)
    builder.until(lambda page: page["events"]["open"] >= 1000, "it gives")
    late, killed = source(farm, builder, 1, *options), source(farm, builder, 2, *options)
    for count in (500, 2500):
        controller.has_decided(count)
        killed.kill()
        builder.until(lambda page: page["connections"]["absent"] == [2], "it is gone")
        builder.lasts(0.5)
        killed = source(farm, builder, 2, *options)
    for given in (first, late, killed):
        assert given.done(WITHIN_S) == 0, given.text()
    whole(controller, builder, 6000)


def test_one_that_is_gone_for_patience_is_not_waited_for_until_it_comes_back(farm, controller):
    builder = farm.builder(controller, SOURCES, "--patience", "200ms")
    options = ["--events", 20_000, "--rate", 3000]
    others = [source(farm, builder, number, *options) for number in range(2)]
    killed = source(farm, builder, 2, *options)
    controller.has_decided(1000)
    killed.kill()
    builder.until(lambda page: page["events"]["incomplete"] >= 1000, "the others go on")
    killed = source(farm, builder, 2, *options)
    lacking = builder.until(lambda page: page["connections"]["absent"] == [], "it is back")["events"]["incomplete"]
    for given in others:
        assert given.done(WITHIN_S) == 0, given.text()
    # What went on without it is told to it.
    assert killed.done(WITHIN_S) == 1 and "too late for their events" in killed.text(), killed.text()
    built = builder.page()
    assert built["events"]["incomplete"] < lacking + 500 and built["events"]["complete"] > 2000, built


def test_one_that_is_stopped_holds_the_others_back(farm, controller, udp):
    builder = farm.builder(controller, SOURCES, "--patience", "200ms", "--credits", 256, *udp)
    given = [source(farm, builder, number, "--events", 6000, "--rate", 3000, *udp) for number in range(SOURCES)]
    controller.has_decided(1000)
    parts.stop(given[1])
    builder.until(lambda page: page["connections"]["absent"] == [1], "it is silent")
    builder.lasts(3)
    parts.go_on(given[1])
    assert [each.done(WITHIN_S) for each in given] == [0, 0, 0], given[1].text()
    assert of(whole(controller, builder, 6000), 1)["held_back_s"] > 1


def test_one_that_is_stopped_for_longer_counts_as_gone_and_is_told(farm, controller, udp):
    builder = farm.builder(controller, SOURCES, "--behind", "3s", *udp)
    given = [source(farm, builder, number, "--events", 24_000, "--rate", 3000, *udp) for number in range(SOURCES)]
    controller.has_decided(1000)
    parts.stop(given[1])
    builder.until(lambda page: page["events"]["incomplete"] >= 1000, "the others go on without it")
    parts.go_on(given[1])
    assert [each.done(WITHIN_S) for each in given] == [0, 1, 0], "\n".join(each.text() for each in given)
    assert "gave nothing for too long" in given[1].text() and "too late for their events" in given[1].text()
    built = builder.page()
    # Four of the eight seconds were left.
    assert of(built, 1)["counted_gone"] == 1 and built["events"]["complete"] > 10_000, built
    with pytest.raises(urllib.error.HTTPError) as unwell:
        builder.fetch("/health")
    assert "source 1 gave nothing for 3s" in unwell.value.read().decode()


def test_one_that_is_there_and_gives_nothing_counts_as_gone_and_is_told(farm, controller):
    builder = farm.builder(controller, 2, "--behind", "1s")
    # A source of another make, which knows nothing of this.
    controller.until(lambda page: page["connections"]["sources"] == 1, "the builder is there")
    with peer.greeted(builder.at, peer.SOURCE, number=1) as idle:
        given = source(farm, builder, 0, "--events", 2000)
        assert idle.of(peer.REFUSED)[1] == 26
        assert given.done(WITHIN_S) == 0, given.text()
    assert builder.page()["events"]["incomplete"] == 2000


def test_a_run_starts_without_those_that_never_come_where_that_is_asked_for(farm, controller):
    builder = farm.builder(controller, SOURCES, "--start-without", "500ms")
    given = [source(farm, builder, number, "--events", 20_000, "--rate", 2500) for number in range(2)]
    controller.has_decided(1000)
    # It is waited for from then on.
    late = source(farm, builder, 2, "--events", 20_000)
    assert [each.done(WITHIN_S) for each in given] == [0, 0] and late.done(WITHIN_S) == 1, late.text()
    assert "started without source 2" in builder.text()
    built = builder.page()
    assert 1000 <= built["events"]["incomplete"] < 20_000 and built["events"]["complete"] > 0, built


def test_one_that_is_prescaled_passes_the_numbers_of_the_others(farm, controller):
    builder = farm.builder(controller, SOURCES)
    given = [source(farm, builder, number, "--events", 20_000) for number in range(2)]
    given.append(source(farm, builder, 2, "--events", 800, "--step", 25))
    assert [each.done(WITHIN_S) for each in given] == [0, 0, 0], given[2].text()
    built = builder.page()
    assert built["events"]["complete"] == 800 and of(built, 2)["missing"] == 19_200, built


def test_a_builder_that_is_started_again_waits_for_all(farm, controller):
    builder = farm.builder(controller, SOURCES, "--patience", "100ms")
    given = [source(farm, builder, number, "--events", 6000, "--rate", 3000) for number in range(SOURCES)]
    for count in (1000, 3000):
        controller.has_decided(count)
        parts.stop(given[0])
        builder.kill()
        builder = farm.builder(controller, SOURCES, "--patience", "100ms", listen=builder.at)
        builder.until(lambda page: page["connections"]["absent"] == [0], "two have come again")
        builder.lasts(0.5)
        parts.go_on(given[0])
    assert [each.done(WITHIN_S) for each in given] == [0, 0, 0], given[0].text()
    page = controller.page()
    assert (page["events"]["taken_in"], page["events"]["partial"], page["events"]["incomplete"]) == (6000, 0, 0), page
