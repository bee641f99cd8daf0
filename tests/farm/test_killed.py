"""The controller is killed at any moment, and goes on where it was: no accepted event missing or twice, none skipped."""

import random
import time

import farm_reader
import ledger

EVERY = 5


def lives(farm, store, kills, seed, *options, longest_s=0.4, enough=lambda: True):
    """A controller's lives on one port, of which each but the last ends with SIGKILL at a random moment. There are more
    kills, up to ten times as many, as long as it is not `enough`."""
    chance = random.Random(seed)
    listen, last = None, False
    for life in range(10 * kills + 1):
        controller = farm.controller("--store", store, *options, listen=listen)
        yield life, controller
        listen = controller.at
        if last or life == 10 * kills:
            return
        # Nothing is waited for: a moment is drawn, and more often an early one.
        time.sleep(longest_s * chance.random() ** 2)
        controller.kill()
        last = enough() and life + 1 >= kills


def test_sigkill_at_random_moments(farm, tmp_path, long):
    kills, seed = (400, 2) if long else (100, 1)
    nodes = source = None
    for _, controller in lives(farm, tmp_path, kills, seed, "--segment", "256K"):
        if source is None:
            nodes = farm.nodes(controller.at, 3, "--accept", f"every:{EVERY}", "--credits", "8")
            source = farm.source(controller.at, "--size", "uniform:100..3000", "--rate", "4000")
    controller.has_nodes(3)
    page = controller.until(lambda page: page["connections"]["sources"] == 1, "the source is there")
    controller.has_decided(page["events"]["taken_in"] + 1000)
    assert all(part.process.poll() is None for part in (*nodes, source))
    assert source.end() == 0, source.text()
    events = ledger.given(source)
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    counted = ledger.balances(tmp_path, events, EVERY)
    ledger.agrees(page, counted)
    assert controller.end() == 0, controller.text()


def test_sigkill_of_one_that_makes_its_events_itself(farm, tmp_path):
    """What has its verdict is not made again, and all the rest is."""
    events = 6000
    made = ["--events", events, "--numbered", "--size", "uniform:100..3000", "--until-done", "--rate", "4000"]
    nodes = []
    for _, controller in lives(farm, tmp_path, 10, 4, *made, longest_s=0.2):
        nodes = nodes or farm.nodes(controller.at, 3, "--accept", f"every:{EVERY}")
    assert controller.done() == 0, controller.text()
    ledger.balances(tmp_path, events, EVERY)


def test_sigkill_while_segments_are_written(farm, tmp_path, long):
    """Every event is accepted, so that the store writes all the time; and what it had begun to write is cut off."""
    kills = 100 if long else 20
    source, torn = None, []

    def enough():
        torn.append(is_torn(tmp_path))
        return any(torn)

    for life, controller in lives(farm, tmp_path, kills, 3, "--segment", "16M", longest_s=0.2, enough=enough):
        if source is None:
            farm.nodes(controller.at, 2, "--accept", "1")
            source = farm.source(controller.at, "--size", "uniform:100K..1M", "--rate", "400")
        if life:
            # It works before it is killed.
            controller.has_decided(controller.page()["events"]["taken_in"] + 1)
    assert source.end() == 0, source.text()
    events = ledger.given(source)
    page = controller.until(lambda page: page["events"]["in_hand"] == 0, "nothing is in hand")
    counted = ledger.balances(tmp_path, events, 1, check=False)
    ledger.agrees(page, counted)
    assert len(farm_reader.segments(tmp_path)) > 1, "more than one segment"
    assert any(torn), "some kill was amid a write"
    assert controller.end() == 0, controller.text()


def is_torn(store):
    """Whether the last segment ends amid a commit."""
    last = farm_reader.segments(store)[-1:]
    end, kind = 64, b"CMIT"
    for segment in last:
        for (kind, length, *_), _ in farm_reader.blocks(segment, check=False):
            end += 48 + -(-length // 8) * 8
    return kind == b"EVNT" or any(segment.stat().st_size > end for segment in last)
