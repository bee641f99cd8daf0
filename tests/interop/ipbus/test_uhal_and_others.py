"""uHAL through two hubs at once and beside them, on one board of nobody's here that counts: each addition is done once, and told as
it was; also where the board comes and goes."""

import contextlib
import multiprocessing
import time

import command
import uhal
from bare import Board
from boards import board, through

COUNTER, ROUNDS = 0x5, 100
# What a hub takes to tell that a board is away, or find that it is back, on a loaded machine.
AROUND_S = 0.5


def clock():
    """The same for every process."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def count(uri, stop, pipe):
    """Adds to the register for a number of rounds, or until it is told to stop; tells when each began and ended, and whether it
    was done."""
    hardware, told = board(uri, patience_ms=5000), []
    while len(told) < ROUNDS if stop is None else not stop.is_set():
        began, done = clock(), True
        hardware.getClient().rmw_sum(COUNTER, 1)
        try:
            hardware.dispatch()
        except uhal.exception:
            done = False
        told.append((began, clock(), done))
    pipe.send(told)


@contextlib.contextmanager
def counting(uris, stop=None):
    """uHAL in a process for each URI; a function to what all of them tell."""
    # uHAL lets no other thread run while it waits.
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in uris]
    workers = [
        context.Process(target=count, args=(uri, stop, far), daemon=True)
        for uri, (_, far) in zip(uris, pipes, strict=True)
    ]
    for worker in workers:
        worker.start()

    def told():
        found = []
        for near, _ in pipes:
            assert near.poll(command.BOUND_S), "uHAL is done"
            found += near.recv()
        return found

    try:
        yield told
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def test_uhal_through_two_hubs_and_direct_does_nothing_twice_and_is_told_nothing_that_was_not():
    with command.hub("--patience", "2s") as one, command.hub("--patience", "2s") as other, Board() as device:
        direct = f"ipbusudp-2.0://{device.at}"
        with counting([through(one.at, direct), through(other.at, direct), direct]) as told:
            rounds = told()
        done = sum(done for _, _, done in rounds)
        assert done <= device.memory[COUNTER] <= len(rounds) == 3 * ROUNDS
        assert len(rounds) - done <= len(rounds) // 50, "none is refused that could be served"


def test_uhal_through_a_hub_fails_only_while_its_board_is_away():
    stop = multiprocessing.get_context("spawn").Event()
    with command.hub("--patience", "400ms") as hub, Board() as device:
        with counting([through(hub.at, f"ipbusudp-2.0://{device.at}")], stop) as told:
            command.wait_until(lambda: device.memory[COUNTER], "uHAL counts")
            absences = [come_and_go(device) for _ in range(2)]
            stop.set()
            rounds = told()
        done = [(began, ended) for began, ended, done in rounds if done]
        failed = [(began, ended) for began, ended, done in rounds if not done]
        assert len(done) <= device.memory[COUNTER] <= len(rounds)
        for left, back in absences:
            assert any(left < began and ended < back + AROUND_S for began, ended in failed), "it was away"
            assert any(back < began < back + AROUND_S for began, _ in done), "it is served when it is back"
        for began, ended in failed:
            assert any(left - AROUND_S < ended and began < back + AROUND_S for left, back in absences)


def come_and_go(device):
    """The board is away for half of a second, and has restarted when it is back; tells from when to when."""
    left = clock()
    device.away = True
    time.sleep(0.5)
    device.restart()
    device.away, back = False, clock()
    time.sleep(0.5)
    return left, back
