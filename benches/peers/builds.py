"""Two builds of hodo, in turns: is the newer one slower anywhere?

    benches/peers/run.py --before PATH                           the build at PATH beside that of --hodo
    benches/peers/run.py --before PATH --only 'four sources'

Both builds do the same exchanges with far ends of their own, but for the boards, which are in C (floor_board.c). A build
that does not know `adaptive` calls it `block`, and cannot block.
"""

import contextlib
import copy
import json
import time
import urllib.request

import farm
import ipbus
from processes import LOOPBACK, Case, Failed, background, congestion_control, free_port, knows_adaptive

# At most 3 % slower than the build before.
WORSE = 0.03
BESIDE = "the build before"
SOURCES, START_S = 4, 30


def cases(options, links):
    """`links` makes the cases of raw links for these options; the peer of each is left out here."""
    before = copy.copy(options)
    before.hodo = options.before
    for now, then in zip(links(options, "adaptive"), links(before, "adaptive"), strict=True):
        if now.name.endswith("blocking") and not knows_adaptive(before.hodo):
            continue
        yield both(now.name, now.unit, now.ours, then.ours, now.better)
    yield from boards(ipbus.Bench(options, "adaptive"), ipbus.Bench(before, "adaptive"))
    for credits in (2, farm.CREDITS):
        now, then = (farm.Bench(which, "adaptive").ours(credits).figure("rate") for which in (options, before))
        yield both(f"farm, {credits} credits", "k/s", now, then)
    name = f"farm, {SOURCES} sources, {farm.CREDITS} credits"
    yield both(name, "k/s", *(sourced(which) for which in (options, before)))


def both(name, unit, now, then, better="more"):
    target = 1 + WORSE if better == "less" else 1 - WORSE
    return Case(name, unit, target, now, then, better, BESIDE)


def boards(now, then):
    for place in (now.one, now.two):
        for hub in (False, True):
            through = ", hub" if hub else ""
            read = [lambda bench=bench, place=place, hub=hub: bench.read_us(place, hub, bare=True) for bench in (now, then)]
            yield both(f"ipbus read{through}, bare board, {place.name}", "us", *read, "less")
            for mode, verb in (("receive", "read"), ("send", "write")):
                block = [
                    lambda bench=bench, place=place, hub=hub, mode=mode: bench.block_gbit(place, hub, mode, bare=True)
                    for bench in (now, then)
                ]
                yield both(f"ipbus {verb} 1 MiB{through}, bare board, {place.name}", "Gbit/s", *block)
    cpu = [lambda bench=bench: bench.hub_cpu_s(bench.one, bare=True) for bench in (now, then)]
    yield both("ipbus hub CPU of a Gbit, bare board, one CPU", "s", *cpu, "less")


def sourced(options):
    """Thousands of events a second of a farm with real sources, its controller asked twice."""

    def rate():
        with contextlib.ExitStack() as stack:
            at, pages = (f"{LOOPBACK}:{free_port('tcp')}" for _ in range(2))
            same = ["--congestion", congestion_control()]

            def start(part, *words):
                command = ["taskset", "-c", ",".join(options.cpus), options.hodo, "farm", part, *map(str, words), *same]
                port = int(at.rsplit(":", 1)[1])
                stack.enter_context(background(command, "tcp", port))

            start("controller", "--listen", at, "--metrics", pages)
            for number in range(farm.NODES):
                start("node", "--to", at, "--number", number, "--credits", farm.CREDITS)
            for number in range(SOURCES):
                events = ["--first", number, "--step", SOURCES, "--size", farm.SIZE, "--different", farm.POOL]
                start("source", "--to", at, "--number", number, *events)
            first = after(decided(pages), pages, START_S)
            time.sleep(options.seconds)
            last = decided(pages)
            return (last[0] - first[0]) / (last[1] - first[1]) / 1000

    return rate


def after(start, pages, patience):
    """The count, once events have been decided for half a second."""
    give_up = time.monotonic() + patience
    while time.monotonic() < give_up:
        time.sleep(0.5)
        now = decided(pages)
        if now[0] > start[0] > 0:
            return now
        start = now
    raise Failed(f"no events are decided after {patience} s")


def decided(pages):
    """Events that have a verdict, and when that was."""
    with urllib.request.urlopen(f"http://{pages}/farm", timeout=10) as answer:
        page = json.load(answer)
    events = page["events"]
    return sum(events[verdict] for verdict in ("accepted", "rejected", "quarantined", "incomplete")), page["uptime_s"]
