"""Sources over UDP: where nothing is lost, and over a wire whose queue is shorter than a fragment."""

import contextlib
import re
import socket
import struct

import builders
import command
import farm_reader
import ledger
import parts
import peer
import pytest
import wires

SOURCES = 3


@pytest.fixture
def lossy():
    """Two hosts, and between them 200 Mbit/s with room for 20 datagrams: those that find none are lost."""
    with wires.pair() as pair:
        shape = ["tbf", "rate", "200mbit", "burst", "20k", "limit", "30k"]
        wires.tc("-n", pair.near, "qdisc", "add", "dev", "wire", "root", *shape)
        yield pair


def builder(farm, controller, *options, **more):
    return builders.started(farm, controller, SOURCES, "--udp", *options, **more)


def sources(farm, builder, *options, prefix=()):
    return [farm.source(builder.at, "--udp", "--number", number, *options, prefix=prefix) for number in range(SOURCES)]


def sent_again(sources, statuses=(0,)):
    """How often the sources say that they have sent something again; they end, and nothing is without a verdict."""
    count = 0
    for source in sources:
        assert source.done() in statuses, source.text()
        count += int(source.said(r" 0 without a verdict,.* parts lost and sent again (\d+) times")[1])
    return count


def stored(folder, size):
    """How many events are whole, and how many flagged; each has what its sources gave, once."""
    whole = flagged = 0
    for event in farm_reader.events(folder, run=1):
        fragments, rest = 0, event.data
        while rest:
            length = int.from_bytes(rest[4:8], "little")
            assert length == size and int.from_bytes(rest[8:16], "little") == event.event
            fragments, rest = fragments + 1, rest[8 + length :]
        assert (fragments < SOURCES) == event.partial
        whole, flagged = whole + (not event.partial), flagged + event.partial
    return whole, flagged


def test_where_nothing_is_lost_nothing_is_sent_again(farm, tmp_path):
    controller = farm.controller("--store", tmp_path)
    farm.nodes(controller.at, 2, "--accept", "1")
    made = builder(farm, controller, "--patience", "30s")
    given = sources(farm, made, "--events", 1000, "--rate", 2000, "--size", 5000)
    sent_again(given)
    seen = builders.state(made)
    assert (seen["events"]["complete"], seen["events"]["incomplete"]) == (1000, 0), seen
    assert not any(seen["fragments"][what] for what in ("lost", "late", "unexpected")) and not seen["datagrams"]["bad"]
    assert made.end() == 0, made.text()
    assert stored(tmp_path, 5000) == (1000, 0)
    ledger.verified(tmp_path)


@pytest.mark.parametrize("patience", ["30s", "2ms"])
def test_over_a_wire_that_loses_datagrams(farm, tmp_path, lossy, patience):
    events, size = 150, 32_000
    far = {"prefix": lossy.at_far()}
    controller = farm.controller("--store", tmp_path, namespace=lossy.far)
    farm.nodes(controller.at, 2, "--accept", "1", **far)
    made = builder(farm, controller, "--patience", patience, listen=f"{lossy.far_address}:0", **far)
    given = sources(farm, made, "--events", events, "--size", size, prefix=lossy.at_near())
    assert sent_again(given, (0,) if patience == "30s" else (0, 1)) > 0
    queue = wires.tc("-n", lossy.near, "-s", "qdisc", "show", "dev", "wire")
    assert int(re.search(r"dropped (\d+)", queue)[1]) > 0, "the wire has lost some"
    seen = builders.state(made, lossy.far)
    complete, incomplete = seen["events"]["complete"], seen["events"]["incomplete"]
    assert complete + incomplete == events
    if patience == "30s":
        assert (incomplete, seen["fragments"]["lost"]) == (0, 0), "what is lost comes again"
    else:
        assert incomplete > 0 and seen["fragments"]["lost"] >= incomplete, "what comes too late is counted"
        assert any(source.done() == 1 and "too late for their events" in source.text() for source in given), "and told"
    assert made.end() == 0, made.text()
    assert stored(tmp_path, size) == (complete, incomplete)
    ledger.verified(tmp_path)


@pytest.mark.parametrize("crumbs", ["of many events", "of one event"])
def test_the_work_of_a_builder_follows_from_the_bytes_that_come(farm, crumbs):
    """A hundred thousand parts that never make a whole: of as many events as fit, or of one, a byte here and there."""
    controller = farm.controller("--nodes", 1)
    made = builder(farm, controller, "--event-max", "16M")
    host, port = made.at.rsplit(":", 1)
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as link:
        link.connect((host, int(port)))
        link.settimeout(20)
        greet(link)
        before = command.cpu_s(made.pid)
        for number in range(100_000):
            event, offset, total = (number, 0, 1000) if crumbs == "of many events" else (1, 2 * number, 1 << 24)
            link.send(peer.HEADER.pack(13 << 28 | 1, event) + struct.pack("<IIII", 1, 0, offset, 2 << 28 | total) + b"x")
            if number % 500 == 499:
                # Nothing outruns it: it answers when it has read all that came before.
                link.send(peer.message(peer.PING, number))
                while peer.HEADER.unpack_from(link.recv(1 << 16)) != (peer.PONG << 28, number):
                    pass
        assert command.cpu_s(made.pid) - before < 5


def greet(link):
    """Greets as a source until the builder answers, which it does once it has reached its controller."""
    within = link.gettimeout()
    link.settimeout(0.05)
    answer = None
    while not answer or not answer[0]:
        link.send(peer.hello(peer.SOURCE, 0, window=answer[1] if answer else 0))
        with contextlib.suppress(TimeoutError):
            answer = peer.hello_of(link.recv(1 << 16))
    link.settimeout(within)
