"""Sources that die: in the middle of an event, in the middle of a run, for a while or for good."""

import contextlib
import signal
import socket
import threading

import command
import ledger
import parts
import peer

EVENTS = 300


def event(number, size=2000):
    return number.to_bytes(8, "little") + bytes(size - 8)


def give(link, numbers):
    for number in numbers:
        link.send(peer.message(peer.EVENT, number, event(number)))


def tokens(link, numbers):
    """Waits for the tokens of just these, each once."""
    left = set(numbers)
    while left:
        _, number, _ = link.of(peer.TOKEN)
        left.remove(number)


def test_one_that_dies_amid_an_event_and_comes_back(farm, tmp_path):
    controller = farm.controller("--store", tmp_path, "--verbose")
    farm.nodes(controller.at, 2, "--accept", "every:3")
    with peer.greeted(controller.at, peer.SOURCE) as link:
        give(link, range(100))
        tokens(link, range(100))
        give(link, range(100, 150))
        # Half of an event, and it dies.
        link.send(peer.message(peer.EVENT, 150, event(150)[:700], length=2000))
        # Its answers are not read any more: some are lost with it.
        controller.until(lambda page: page["events"]["taken_in"] >= 150, "all but the half are in")
        link.reset()
    page = controller.until(lambda page: page["connections"]["sources"] == 0, "it is gone")
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "what it gave is decided")
    assert page["events"]["taken_in"] == 150, "the half is no event"
    with peer.greeted(controller.at, peer.SOURCE) as link:
        # It does not know what was decided, gives everything without a token again, and goes on.
        give(link, range(100, EVENTS))
        tokens(link, range(100, EVENTS))
    page = controller.page()
    assert page["events"]["duplicates"] == 50
    ledger.agrees(page, ledger.balances(tmp_path, EVENTS, 3))


def test_one_that_is_to_end_counts_answers_that_come_all_at_once(farm):
    """As from a controller that was started again: all that was given to the one before has its verdict in one packet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        source = farm.source(f"127.0.0.1:{listener.getsockname()[1]}", "--size", "100", "--drain", "60s")
        with peer.Peer(listener, within=60) as link:
            link.of(peer.HELLO)
            link.send(peer.hello(peer.CONTROLLER, credits=1000, window=1 << 24))
            given = [link.of(peer.EVENT)[1] for _ in range(1000)]
            source.signal(signal.SIGTERM)
            # It has no credit for another event, and looks up meanwhile.
            pings = iter(range(20))
            command.wait_until(lambda: link.answered(next(pings)) == 19, "it has answered twenty times")
            with contextlib.suppress(peer.Gone):
                link.send(*(peer.token(number, peer.ACCEPTED) for number in given))
                while True:
                    # What it gave before it had the signal.
                    given.append(link.of(peer.EVENT)[1])
                    link.send(peer.token(given[-1], peer.ACCEPTED))
    assert source.done() == 0, source.text()
    assert ledger.given(source) == len(given)


def test_one_that_is_killed_and_started_again(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:3")
    options = ["--events", "3000", "--size", "uniform:1K..64K", "--rate", "3000"]
    source = farm.source(controller.at, *options)
    for target in (300, 900, 1500):
        controller.has_decided(target)
        source.kill()
        # It remembers nothing, and begins anew.
        source = farm.source(controller.at, *options)
    assert source.done() == 0, source.text()
    assert ledger.given(source) == 3000
    page = controller.page()
    assert page["events"]["duplicates"] >= 300
    ledger.agrees(page, ledger.balances(tmp_path, 3000, 3, check=False))


def test_one_that_dies_for_good_leaves_the_others_alone(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "every:3")
    # Two make one run's events between them, and the third dies with an event half given.
    whole = [
        farm.source(controller.at, "--number", k, "--first", k, "--step", 3, "--events", 500, "--rate", 1000)
        for k in range(2)
    ]
    with peer.greeted(controller.at, peer.SOURCE, number=2) as link:
        give(link, range(2, 200, 3))
        link.send(peer.message(peer.EVENT, 200, event(200)[:9], length=2000))
        controller.until(lambda page: page["connections"]["sources"] == 3, "all three are there")
        link.reset()
    for source in whole:
        assert source.done() == 0, source.text()
        assert ledger.given(source) == 500
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    found = ledger.verdicts(tmp_path)
    # The reset may overtake what was given last: that was never taken in, and is without a token.
    dead = sorted(event for event in found if event % 3 == 2)
    assert dead == list(range(2, 2 + 3 * len(dead), 3)) and len(dead) <= 66
    assert sorted(event for event in found if event % 3 < 2) == [n for n in range(1500) if n % 3 < 2]
    assert page["events"]["taken_in"] == len(found) == parts.decided(page)
    ledger.verified(tmp_path)


def test_one_that_is_told_to_end_waits_for_what_it_gave_and_says_what_is_left(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    node = farm.node(controller.at, 0, "--accept", "every:3", "--time", "2ms")
    source = farm.source(controller.at, "--size", 1000, "--rate", 300)
    controller.has_decided(50)
    assert source.end() == 0, source.text()
    count = ledger.given(source)
    page = controller.until(lambda page: page["connections"]["sources"] == 0, "it is gone")
    assert page["events"]["taken_in"] == count, "it made no more, and none is without a verdict"
    node.kill()
    # Nobody decides any more.
    source = farm.source(controller.at, "--first", count, "--size", 1000, "--drain", "200ms")
    controller.until(lambda page: page["events"]["taken_in"] > count, "events come")
    assert source.end() == 1
    left = int(source.said(r"0 accepted, 0 rejected, .* (\d+) without a verdict")[1])
    assert left == controller.page()["events"]["taken_in"] - count


def test_a_source_that_is_idle_makes_room_for_a_new_one(farm):
    """All places are taken by sources that are there and give nothing; who gives keeps its place."""
    controller = farm.controller("--sources", 3)
    farm.nodes(controller.at, 1)
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(peer.greeted(controller.at, peer.SOURCE, number=number)) for number in range(2)]
        busy = stack.enter_context(peer.greeted(controller.at, peer.SOURCE, number=2))
        # They answer to each PING.
        threads = [threading.Thread(target=link.wait_for_the_end, daemon=True) for link in idle]
        for thread in threads:
            thread.start()
        numbers = iter(range(1_000_000))

        def gives(link):
            number = next(numbers)
            give(link, [number])
            tokens(link, [number])

        def is_taken():
            gives(busy)
            with contextlib.suppress(peer.Gone), peer.greeted(controller.at, peer.SOURCE, number=3) as newcomer:
                gives(newcomer)
                return True
            return False

        assert not is_taken()
        command.wait_until(is_taken, "a new source is taken")
        gives(busy)
        threads[0].join(parts.PATIENCE_S)
        assert [thread.is_alive() for thread in threads] == [False, True], "the one that was idle longest made room"
        idle[1].socket.shutdown(socket.SHUT_RDWR)
        threads[1].join(parts.PATIENCE_S)
