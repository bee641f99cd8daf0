"""Peers that break the rules, and bytes that are none of the farm's: refused with a reason, and nobody else notices."""

import contextlib
import itertools
import pathlib
import random
import re
import socket
import struct
import threading
import time

import command
import ledger
import parts
import peer
import pytest

# The farm's own rate is set by time, so that it can be told whether it was disturbed: 400 events/s.
NODES, NODE_RATE_PER_S = 4, 100
# Room for some events of the source: enough for all nodes, and soon decided when it is to end.
ROOM = ["--event-max", "64K", "--pool", "2M"]
# Loopback has more addresses than one.
ELSEWHERE = "127.0.0.9"
RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def at_work(farm, tmp_path):
    """A farm at work, which has to be as well at the end as it was."""
    controller = farm.controller("--store", tmp_path, *ROOM, "--deaths", "20", "--verbose")
    farm.nodes(controller.at, NODES, "--time", "fixed:10ms", "--accept", "every:10")
    source = farm.source(controller.at, "--size", "uniform:1K..8K")
    controller.has_nodes(NODES)
    controller.has_decided(NODES)
    yield controller
    assert not re.search(rf"(node [0-{NODES - 1}]|source 0) is gone", controller.text()), controller.text()
    controller.reaches(0.9 * NODES * NODE_RATE_PER_S)
    assert source.end() == 0, source.text()
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    ledger.agrees(page, ledger.balances(tmp_path, ledger.given(source), 10))
    assert "trying again" not in source.text()
    assert controller.end() == 0


def ended(controller, reason):
    """Connections that ended for this reason, as the metrics tell."""
    return controller.metrics()[f'farm_connections_ended_total{{reason="{reason}"}}']


def test_another_protocol(at_work):
    for words in (b"GET / HTTP/1.1\r\nHost: farm\r\n\r\n", bytes(64), b"\xff" * 64, b"SSH-2.0-OpenSSH_9.2\r\n"):
        with peer.Peer(at_work.at) as link:
            link.send(words)
            link.wait_for_the_end()
    at_work.said("another protocol: it begins with")
    counted = at_work.metrics()
    assert counted["farm_connections_refused_total"] == 4
    # What begins as a message of another kind would is one without a greeting, or too long.
    assert ended(at_work, "another-protocol") >= 2, counted


def test_another_version(at_work):
    for role in (peer.NODE, peer.SOURCE):
        with peer.Peer(at_work.at) as link:
            link.send(peer.hello(role, version=9))
            code, words = link.refused()
            assert code == peer.VERSION and "version 9" in words
            link.wait_for_the_end()
    at_work.said("version 9 of the protocol")
    assert ended(at_work, "version") == 2


def test_random_bytes(at_work, long):
    chance = random.Random(7)
    for number in range(3000 if long else 300):
        junk = chance.randbytes(chance.choice([1, 11, 12, 48, 500, 5000]))
        if number % 3 == 1:
            # Behind a good greeting.
            junk = peer.hello(peer.NODE if number % 2 else peer.SOURCE, 1000 + number, credits=0) + junk
        elif number % 3 == 2:
            # A good header in front.
            junk = peer.message(chance.randrange(1, 13), chance.getrandbits(64), length=chance.randrange(1 << 28)) + junk
        with peer.Peer(at_work.at, ELSEWHERE) as link:
            try:
                link.send(junk)
            except peer.Gone:
                continue
            if number % 5 == 0:
                link.reset()
    page = at_work.until(lambda page: page["connections"]["sources"] == 1, "only the source is left")
    assert page["events"]["taken_in"] < 1 << 32, "no junk was taken for an event"


def test_random_bytes_at_its_pages(at_work):
    chance = random.Random(8)
    pages = at_work.pages.removeprefix("http://")
    for _ in range(100):
        with peer.Peer(pages, ELSEWHERE) as link:
            front = chance.choice([b"", b"GET /farm ", b"POST /stop HTTP/9\r\n"])
            with contextlib.suppress(peer.Gone):
                link.send(front + chance.randbytes(chance.choice([1, 100, 20_000])))
                link.reset()
    # It serves so many at a time, and sees after a moment that these are gone.
    command.wait_until(lambda: answers(at_work), "the pages are there")
    assert at_work.page()["state"] == "running"


def answers(controller):
    with contextlib.suppress(ConnectionError):
        return bool(controller.page())


def allocated(pid):
    """Bytes that a process has and may touch: its data, touched or not."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"^VmData:\s+(\d+) kB", status, re.MULTILINE)[1]) << 10


def test_4096_nodes_that_claim_16_mebibytes_each_cost_no_memory(farm):
    command.allow_files(10_000)
    controller = farm.controller("--nodes", 4096)
    before = allocated(controller.pid)
    claim = peer.token(0, peer.ACCEPTED, length=16 << 20)
    with contextlib.ExitStack() as stack:
        for number in range(4096):
            link = stack.enter_context(peer.Peer(controller.at, f"127.0.2.{number % 250 + 1}"))
            link.send(peer.hello(peer.NODE, number, credits=1), claim)
        command.wait_until(lambda: ended(controller, "unasked-token") == 4096, "each is sent away")
        assert allocated(controller.pid) - before < 64 << 20


def test_output_takes_memory_as_it_comes(farm):
    controller = farm.controller("--event-max", "16M", "--silence", "20s")
    farm.source(controller.at, "--size", "1000", "--events", 100)
    with contextlib.ExitStack() as stack:
        links = [stack.enter_context(peer.greeted(controller.at, peer.NODE, n, 1, f"127.0.3.{n + 1}")) for n in range(64)]
        events = [link.of(peer.EVENT)[1] for link in links]
        before = allocated(controller.pid)
        for link, event in zip(links, events, strict=True):
            link.send(peer.token(event, peer.ACCEPTED, length=16 << 20), bytes(1000))
        command.wait_until(lambda: allocated(controller.pid) - before > 2 << 20, "there is room for what came")
        assert allocated(controller.pid) - before < 32 << 20
        assert controller.page()["connections"]["nodes"] == 64


def test_a_node_that_answers_garbage(at_work):
    for garbage, wanted in (
        (bytes(40), peer.ANOTHER_PROTOCOL),
        (peer.HEADER.pack(peer.TOKEN << 28, 0) + bytes([77]) + bytes(15), peer.NO_VERDICT),
        (peer.message(peer.EVENT, 1, b"events are for sources"), None),
    ):
        with peer.greeted(at_work.at, peer.NODE, number=99, credits=1) as link:
            _, _, body = link.of(peer.EVENT)
            assert body
            link.send(garbage)
            code, _ = link.refused()
            assert wanted in (None, code), code
        at_work.has_nodes(NODES)
    assert at_work.page()["connections"]["misbehaved"] == 3


def test_tokens_never_asked_for(at_work):
    with peer.greeted(at_work.at, peer.NODE, number=99, credits=1) as link:
        _, number, _ = link.of(peer.EVENT)
        link.send(peer.token(number + 1_000_000, peer.ACCEPTED, data=b"not an event"))
        code, words = link.refused()
        assert code == peer.UNASKED and str(number + 1_000_000) in words
    with peer.greeted(at_work.at, peer.NODE, number=99, credits=1) as link:
        _, number, _ = link.of(peer.EVENT)
        link.send(peer.token(number, peer.REJECTED if number % 10 else peer.ACCEPTED, credits=0) * 2)
        code, _ = link.refused()
        assert code == peer.UNASKED, "nor twice"
    at_work.has_nodes(NODES)
    assert at_work.page()["tokens"]["unasked"] == 2
    assert at_work.metrics()["farm_tokens_unasked_total"] == ended(at_work, "unasked-token") == 2


def test_an_event_that_is_too_large(at_work):
    with peer.greeted(at_work.at, peer.SOURCE, number=7) as link:
        link.send(peer.message(peer.EVENT, 1 << 40, length=65_537))
        code, words = link.refused()
        assert code == peer.TOO_LARGE and "65537" in words
    with peer.greeted(at_work.at, peer.NODE, number=99, credits=1) as link:
        _, number, _ = link.of(peer.EVENT)
        link.send(peer.HEADER.pack(peer.TOKEN << 28 | 65_537, number) + bytes([0, 1, 2, 0]) + bytes(12))
        code, _ = link.refused()
        assert code == peer.TOO_LARGE
    at_work.has_nodes(NODES)
    assert at_work.metrics()["farm_connections_misbehaved_total"] == ended(at_work, "too-large") == 2


def test_connections_that_never_greet_keep_no_node_out(farm, at_work):
    """More than one host may have, from the host where nodes are."""
    silent = [peer.Peer(at_work.at) for _ in range(400)]
    farm.node(at_work.at, 50, "--time", "fixed:10ms", "--accept", "every:10")
    at_work.has_nodes(NODES + 1, patience=1)
    page = at_work.until(lambda page: page["connections"]["refused"] == 400, "all are refused")
    assert page["connections"]["nodes"] == NODES + 1
    # The oldest made room for those that came then, the node too.
    assert 144 <= ended(at_work, "full") <= 145 and ended(at_work, "full") + ended(at_work, "no-greeting") == 400
    for link in silent:
        with pytest.raises(peer.Gone):
            while True:
                link.next()
        link.close()


def told(page, made):
    """Whether some connections have been turned away, or all that were made are refused."""
    return page["connections"]["turned_away"] > 0 or page["connections"]["refused"] >= made


def test_connections_beyond_all_bounds_are_counted(farm):
    controller = farm.controller("--nodes", 1, "--sources", 1)
    host, port = controller.at.rsplit(":", 1)
    made, turned_away = 0, 0
    while not turned_away:
        # Where this test is so slow that the first have been ended before the last are made, there was room for all.
        assert made < 6000, "some found no room"
        with contextlib.ExitStack() as stack:
            # Of one address at most 256 stay that have not greeted.
            for address in range(1, 7):
                for _ in range(200):
                    one = socket.create_connection((host, int(port)), source_address=(f"127.0.0.{address}", 0))
                    stack.callback(one.close)
            made += 1200
            counted = controller.until(lambda page, made=made: told(page, made), "each is turned away or refused")["connections"]
        turned_away = counted["turned_away"]
    assert controller.metrics()["farm_connections_turned_away_total"] >= turned_away
    # There is room again.
    farm.nodes(controller.at, 1)
    controller.has_nodes(1)


def test_a_flood_of_connections_from_one_address(at_work):
    """In waves, as many threads as there are processors; each connection is reset, so that no port stays taken."""
    count = 100_000
    left = iter(range(count))
    made = []
    threads = [threading.Thread(target=flood, args=(at_work.at, left, made), daemon=True) for _ in range(2)]
    before = parts.decided(at_work.page())
    at = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    took = time.monotonic() - at
    assert sum(made) == count
    done = parts.decided(at_work.page()) - before
    # All its processors are busy with the flood meanwhile, this test's too; at the end the rate is looked at again.
    assert done > 0.5 * took * NODES * NODE_RATE_PER_S, f"{done} events in {took} s"
    page = at_work.until(lambda page: page["connections"]["refused"] >= 0.5 * count, "they are counted")
    assert page["connections"]["nodes"] == NODES and page["connections"]["nodes_lost"] == 0, page["connections"]


def flood(at, left, made):
    """Connections that come in waves of 500, say nothing or something, and are reset."""
    host, port = at.rsplit(":", 1)
    chance = random.Random(5)
    while wave := list(itertools.islice(left, 500)):
        links = []
        for _ in wave:
            link = socket.socket()
            link.settimeout(60)
            link.bind((ELSEWHERE, 0))
            link.connect((host, int(port)))
            links.append(link)
        for link in links:
            try:
                if chance.random() < 0.5:
                    link.send(chance.randbytes(20))
            except ConnectionError:
                pass
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            link.close()
        made.append(len(wave))
