"""An event that kills its nodes is set apart after the third, and nothing else is."""

import contextlib
import sys
import threading

import farm_reader
import ledger
import parts
import peer

POISON = (137, 711)
EVENTS = 1200


class Mortal(threading.Thread):
    """A node that accepts every tenth event, dies over some, and is started again."""

    def __init__(self, at, number):
        super().__init__(daemon=True)
        self.at, self.number = at, number
        self.deaths = []
        self.over = False
        self.link = None
        self.start()

    def run(self):
        while not self.over:
            with contextlib.suppress(peer.Gone, OSError):
                self.live()

    def live(self):
        with peer.greeted(self.at, peer.NODE, self.number, credits=4) as self.link:
            while True:
                kind, number, body = self.link.next()
                if kind != peer.EVENT:
                    continue
                if number in POISON:
                    self.deaths.append(number)
                    self.link.reset()
                    return
                self.link.send(peer.token(number, peer.REJECTED if number % 10 else peer.ACCEPTED))

    def end(self):
        self.over = True
        if self.link:
            self.link.close()


DECIDER = """
import os, farm_decider

def decide(event):
    number = int.from_bytes(event.data[:8], "little")
    if number in {poison}:
        os.abort()
    return number % 10 == 0

farm_decider.serve(decide)
"""


def test_one_that_kills_the_programs_that_decide(farm, tmp_path):
    """The nodes stay, their programs die and are started again."""
    program = tmp_path / "decide.py"
    program.write_text(DECIDER.format(poison=set(POISON)), encoding="ascii")
    store = tmp_path / "store"
    controller = farm.controller("--store", store, "--deaths", "3")
    environment = ["env", f"PYTHONPATH={parts.ROOT / 'docs/examples'}"]
    nodes = farm.nodes(controller.at, 3, "--command", sys.executable, program, prefix=environment)
    controller.has_nodes(3)
    source = farm.source(controller.at, "--size", "uniform:100..2000", "--events", EVENTS)
    assert source.done() == 0, source.text()
    assert ledger.given(source) == EVENTS
    page = controller.page()
    assert page["events"]["quarantined"] == len(POISON) and page["connections"]["nodes_lost"] == 0
    ledger.agrees(page, ledger.balances(store, EVENTS, 10, quarantined=POISON))
    assert [event.attempts for event in farm_reader.events(store, verdict="quarantined")] == [3, 3]
    assert all(node.process.poll() is None for node in nodes)


def test_one_that_kills_its_nodes(farm, tmp_path):
    controller = farm.controller("--store", tmp_path, "--deaths", "3", "--verbose")
    nodes = [Mortal(controller.at, number) for number in range(5)]
    controller.has_nodes(5)
    source = farm.source(controller.at, "--size", "uniform:100..2000", "--events", EVENTS)
    assert source.done() == 0, source.text()
    assert ledger.given(source) == EVENTS
    deaths = sorted(death for node in nodes for death in node.deaths)
    assert deaths == sorted(POISON * 3), "each kills three, and is not handed on"
    page = controller.until(lambda page: page["connections"]["nodes"] == 5, "the nodes are there again")
    assert page["events"]["quarantined"] == len(POISON)
    assert page["connections"]["nodes_lost"] == 3 * len(POISON)
    ledger.agrees(page, ledger.balances(tmp_path, EVENTS, 10, quarantined=POISON))
    apart = list(farm_reader.events(tmp_path, verdict="quarantined"))
    assert [event.attempts for event in apart] == [3, 3]
    for node in nodes:
        node.end()
