"""What is in a store, read by the reader in Python that users have: nothing missing, nothing twice."""

import collections
import re

import command
import farm_reader

VERDICTS = ("accepted", "rejected", "quarantined", "incomplete")


def verdicts(store, check=True):
    """The verdict of each event of run 1; it fails where one has two."""
    found = {}
    for run, verdict, start, end in farm_reader.decided(store, check=check):
        assert run == 1
        for event in range(start, end):
            assert event not in found, f"event {event} is {found[event]} and {verdict}"
            found[event] = verdict
    return found


def balances(store, events, every, quarantined=(), check=True):
    """Each of so many numbered events has one verdict, and exactly those are stored that are to be."""
    found = verdicts(store, check)
    missing = [event for event in range(events) if event not in found]
    assert not missing, f"{len(missing)} events are missing: {missing[:20]}"
    assert len(found) == events, f"{len(found) - events} events too many"
    kept = collections.Counter()
    for event in farm_reader.events(store, check=False):
        kept[event.event, event.verdict] += 1
        assert int.from_bytes(event.data[:8], "little") == event.event, "the data are another event's"
    wanted = {(event, "accepted") for event in range(0, events, every) if event not in quarantined}
    wanted |= {(event, "quarantined") for event in quarantined}
    assert set(kept) == wanted, f"stored, and not to be, or the other way: {sorted(set(kept) ^ wanted)[:20]}"
    assert set(kept.values()) <= {1}, "stored twice"
    verified(store)
    return collections.Counter(found.values())


def verified(store):
    """The tool itself finds every byte as it was written."""
    done = command.hodo("farm", "verify", store)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def agrees(page, counted):
    """The controller's own balance: nothing in hand, and the verdicts that are in the store."""
    events = page["events"]
    assert events["in_hand"] == 0, page
    assert events["taken_in"] == sum(events[verdict] for verdict in VERDICTS), page
    assert {verdict: events[verdict] for verdict in VERDICTS} == {v: counted[v] for v in VERDICTS}, page


SOURCE = re.compile(
    r"source \d+: (\d+) accepted, (\d+) rejected, (\d+) quarantined, (\d+) incomplete, (\d+) given twice, (\d+) without"
)


def given(source):
    """How many events a source gave that have their verdict; none may lack it."""
    *counts, without = map(int, source.said(SOURCE.pattern).groups())
    assert without == 0, source.text()
    return sum(counts)
