"""uHAL through two hubs at once and beside them, with `hodo ipbus`, on boards of nobody's here: every operation is accounted for
at its board, also where boards come and go each second."""

import concurrent.futures
import threading
import time

import command
import pytest
from bare import Board
from boards import through
from traffic import SUMS, Worker, account, clock, working

# What a probe, or the first look at a board's status, may take on a loaded machine.
AROUND_S = 0.5
# A register that `hodo ipbus` adds to.
OURS = 0x180


def ours(uri, stop):
    """Adds one with `hodo ipbus` until it is told to stop; how often it asked, and how often it was told that it is done."""
    asked = done = 0
    while not stop.is_set():
        asked += 1
        done += command.hodo("ipbus", "rmw", "sum", uri, hex(OURS), 1, "--timeout", "300ms").returncode == 0
    return asked, done


@pytest.mark.long("timing")
def test_uhal_through_two_hubs_and_direct_loses_nothing_and_nobody_is_left_waiting():
    with command.hub("--patience", "4s") as one, command.hub("--patience", "4s") as other, Board() as device:
        direct = f"ipbusudp-2.0://{device.at}"
        hubs = [Worker(through(hub.at, direct), words) for hub in (one, other) for words in (1, 800)]
        with working([*hubs, Worker(direct)]) as rounds:
            command.wait_until(lambda: all(device.memory[SUMS + place] for place in range(5)), "all of them are served")
            time.sleep(3)
            by_place = rounds()
        account(device, dict(enumerate(by_place)))
        assert device.refused > 0, "the hubs were in each other's way"
        assert not any(each.failed for each in by_place[-1]), "what has no number loses nothing"
        for each in by_place:
            refused = sum(round_.failed for round_ in each)
            assert refused <= 2 + len(each) // 100, f"{refused} of {len(each)} were refused, which could be served"
            assert max(round_.ended - round_.began for round_ in each) < 2, "half of the hub's patience"


@pytest.mark.long("timing")
def test_boards_that_come_and_go_each_second_do_nothing_twice_and_serve_all_that_they_can():
    """Two boards, and for each uHAL through one hub and the other, with one packet and with several, uHAL and `hodo ipbus` beside
    them. A request can be served if the board is there from when it is made to when it is answered; the first one after the
    board's return is served within `AROUND_S`."""
    with command.hub("--patience", "400ms") as one, command.hub("--patience", "400ms") as other:
        with Board() as first, Board() as second:
            hold_to_account((one, other), (first, second))


def hold_to_account(hubs, devices):
    workers = []
    for device in devices:
        direct = f"ipbusudp-2.0://{device.at}"
        workers += [Worker(through(hubs[0].at, direct)), Worker(through(hubs[1].at, direct), words=800)]
        workers += [Worker(through(hubs[1].at, direct)), Worker(direct, patience_ms=300)]
    each = len(workers) // len(devices)
    stop = threading.Event()
    with working(workers) as rounds, concurrent.futures.ThreadPoolExecutor() as pool:
        places = [(device, at * each + place) for at, device in enumerate(devices) for place in range(each)]
        command.wait_until(lambda: all(device.memory[SUMS + place] for device, place in places), "all of them are served")
        tasks = [pool.submit(ours, f"ipbusudp-2.0://{device.at}", stop) for device in devices]
        absences = [[] for _ in devices]
        for away_s in (0.1, 0.5) * 4:
            for device, absent in zip(devices, absences, strict=True):
                absent.append(come_and_go(device, away_s))
            time.sleep(1 - 2 * away_s if away_s < 0.5 else 0.5)
        stop.set()
        told_ours, by_place = [task.result() for task in tasks], rounds()
    for at, device in enumerate(devices):
        mine = {place: by_place[place] for place in range(at * each, (at + 1) * each)}
        account(device, mine)
        asked, done = told_ours[at]
        assert 0 < done <= device.memory[OURS] <= asked
        through_hubs = list(mine.values())[:-1]
        for place_rounds in through_hubs:
            served_whenever_it_could_be(place_rounds, absences[at])


def served_whenever_it_could_be(rounds, absences):
    for left, back in absences:
        assert any(back < each.ended < back + AROUND_S for each in rounds if not each.failed), "it is served when it is back"
    there = zip([back for _, back in absences], [left for left, _ in absences[1:]], strict=False)
    for back, left in there:
        within = [each for each in rounds if back + AROUND_S < each.began and each.ended < left]
        refused = sum(each.failed for each in within)
        assert refused <= 1 + len(within) // 100, f"{refused} of {len(within)} were refused while the board was there"


def come_and_go(device, away_s):
    """The board is away for some time, and has restarted when it is back; from when to when."""
    left = clock()
    device.away = True
    time.sleep(away_s)
    device.restart()
    device.away, back = False, clock()
    return left, back
