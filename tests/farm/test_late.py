"""Sources of a builder that come late, come back, are away, or are there and give nothing."""

import signal

import builders
import command
import farm_reader
import ledger
import peer


def give(link, numbers):
    link.send(*(peer.message(peer.EVENT, number, number.to_bytes(8, "little")) for number in numbers))


def tokens(link, numbers):
    """The verdict and the flags of just these, once they are there."""
    found = {}
    while len(found) < len(numbers):
        _, number, found[number] = link.of(peer.TOKEN)
    assert set(found) == set(numbers)
    return set(found.values())


def lacking(folder):
    """How many of the stored events lack fragments, and how many there are."""
    flags = [event.partial for event in farm_reader.events(folder, run=1)]
    return sum(flags), len(flags)


def test_a_run_begins_when_all_sources_have_come(farm, tmp_path):
    """As over a slow login: the others are there, and have given what they may."""
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 3, "--credits", 100)
    sources = [farm.source(builder.at, "--number", number, "--events", 1000, "--size", 100) for number in range(2)]
    builder.said("events wait for source 2; --start-without begins without them")
    assert builders.state(builder)["connections"]["waited_for"] == [2]
    sources.append(farm.source(builder.at, "--number", 2, "--events", 1000, "--size", 100))
    assert [source.done() for source in sources] == [0, 0, 0], "\n".join(source.text() for source in sources)
    state = builders.state(builder)
    assert (state["events"]["complete"], state["events"]["incomplete"], state["fragments"]["late"]) == (1000, 0, 0), state
    assert state["held_back_s"] > 0
    assert builder.end() == 0, builder.text()
    assert lacking(tmp_path) == (0, 1000)


def test_one_that_comes_back_and_is_slow_is_in_every_event(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 2, "--credits", 50, "--silence", "60s")
    with builders.greeted(builder, 0) as first, builders.greeted(builder, 1) as second:
        give(first, range(50))
        give(second, range(10))
        tokens(first, range(10))
        give(first, range(50, 60))
        # For longer than --patience, it is there and has nothing yet.
        with builders.greeted(builder, 1) as again:
            builders.until(builder, lambda state: state["held_back_s"] > 3, "the other one is held back")
            give(again, range(10, 60))
            assert tokens(again, range(10, 60)) == tokens(first, range(10, 60)) == {(peer.ACCEPTED, 0)}
    assert builder.end() == 0, builder.text()
    assert lacking(tmp_path) == (0, 60)


def test_one_that_is_away_is_in_all_events_but_those_of_that_time(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 2, "--patience", "100ms", "--silence", "60s")
    with builders.greeted(builder, 0) as first:
        with builders.greeted(builder, 1) as second:
            [give(link, range(20)) for link in (first, second)]
            [tokens(link, range(20)) for link in (first, second)]
        give(first, range(20, 30))
        assert tokens(first, range(20, 30)) == {(peer.ACCEPTED, 0)}
        builder.said("source 1 is not there: events go on without it until it comes")
        with builders.greeted(builder, 1, instance=2) as again:
            give(first, range(30, 40))
            # It begins anew.
            give(again, range(40))
            assert tokens(first, range(30, 40)) == {(peer.ACCEPTED, 0)}
            late = peer.INCOMPLETE, peer.LATE
            assert tokens(again, range(40)) == {(peer.REJECTED, peer.DUPLICATE), late, (peer.ACCEPTED, 0)}
    assert builder.end() == 0, builder.text()
    assert lacking(tmp_path) == (10, 40)


def test_the_next_builder_tells_a_source_too_what_went_on_without_it(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    options = ["--patience", "100ms", "--start-without", "--silence", "60s"]
    builder = builders.started(farm, controller, 2, *options)
    with builders.greeted(builder, 0) as first:
        give(first, range(10))
        assert tokens(first, range(10)) == {(peer.ACCEPTED, 0)}
    builder.kill()
    builder = builders.started(farm, controller, 2, *options)
    with builders.greeted(builder, 0) as first, builders.greeted(builder, 1) as second:
        give(second, range(20))
        give(first, range(5, 20))
        late, again = (peer.INCOMPLETE, peer.LATE), (peer.REJECTED, peer.DUPLICATE)
        assert tokens(first, range(5, 20)) == {again, (peer.ACCEPTED, 0)}
        assert tokens(second, range(20)) == {late, (peer.ACCEPTED, 0)}
    events = controller.page()["events"]
    assert (events["taken_in"], events["duplicates"], events["unchecked"], events["conflicts"]) == (20, 10, 0, 0)
    assert lacking(tmp_path) == (10, 20)


def test_one_that_is_there_and_gives_nothing_is_told_that_events_went_on_without_it(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 2, "--behind", "500ms")
    slow = farm.source(builder.at, "--number", 1, "--events", 3, "--rate", "0.5")
    first = farm.source(builder.at, "--number", 0, "--events", 3)
    assert first.done() == 0, first.text()
    assert slow.done() == 1
    slow.said("events waited for this source, which gave nothing for the builder's --behind")
    slow.said(r"event \d of run 1 went on without this source's fragment, which came too late")
    late = int(slow.said(r" (\d) too late for their events")[1])
    assert builder.end() == 1
    builder.said("source 1 is connected, and has given nothing for --behind although events waited for it")
    builder.said("times a source was connected, and gave nothing for --behind: events went on without it")
    assert late >= 2 and lacking(tmp_path) == (late, 3)


def test_a_run_without_a_source_that_is_not_there(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 2, "--start-without", "--patience", "100ms")
    first = farm.source(builder.at, "--events", 100)
    assert first.done() == 0, first.text()
    second = farm.source(builder.at, "--number", 1, "--events", 100)
    assert second.done() == 1 and " 100 too late for their events" in second.text(), second.text()
    assert lacking(tmp_path) == (100, 100)
    status = command.hodo("farm", "status", controller.pages, "--builder", builder.pages).stdout
    assert "100 fragments in" not in status and " 100 late, " in status


def test_sources_that_are_to_end_end_at_one_number(farm, tmp_path):
    """They are told one after the other, as over the network, and each has come as far as it has."""
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    builder = builders.started(farm, controller, 3, "--credits", 100, "--patience", "60s")
    options = ["--size", 100, "--drain", "60s"]
    sources = [farm.source(builder.at, "--number", number, *options) for number in range(2)]
    # The last one is slow, and would be for ten seconds more.
    sources.append(farm.source(builder.at, "--number", 2, "--rate", 10, *options))
    builders.until(
        builder,
        lambda state: state["events"]["complete"] and state["events"]["open"] == 100,
        "all give, and the others are as far ahead as they may be",
    )
    for source in sources:
        source.signal(signal.SIGTERM)
        builders.state(builder)
    assert [source.done() for source in sources] == [0, 0, 0], "\n".join(source.text() for source in sources)
    given = {ledger.given(source) for source in sources}
    assert len(given) == 1 and builder.end() == 0, builder.text()
    assert lacking(tmp_path) == (0, given.pop())
