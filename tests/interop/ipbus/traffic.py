"""uHAL's traffic on boards of nobody's here, every operation of which is accounted for at its board."""

import collections
import contextlib
import dataclasses
import itertools
import multiprocessing
import time

import command
import uhal
from boards import board

# Registers that clients add to and words that they write, one for each; and FIFOs for all of them.
SUMS, WORDS, FIFO, EVENTS = 0x100, 0x200, 0x300, 0x301
# Words of a round that are taken out of a FIFO.
TAKEN = 3


def clock():
    """The same for every process."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


@dataclasses.dataclass
class Worker:
    """One client: the way to its board, how many words it puts into a FIFO in a round, and how long it waits."""

    uri: str
    words: int = 1
    patience_ms: int = 20_000


@dataclasses.dataclass
class Round:
    """When a dispatch began and ended, the words that it put into the FIFO, and what it was told; `None` if it failed."""

    began: float
    ended: float
    put: list
    told: tuple | None

    @property
    def failed(self):
        return self.told is None


def work(worker, place, stop, pipe):
    """Dispatches one round after the other until it is told to stop, and tells of all of them."""
    hardware, rounds = board(worker.uri, patience_ms=worker.patience_ms), []
    while not stop.is_set():
        client, first = hardware.getClient(), place << 27 | len(rounds) * worker.words
        put = list(range(first, first + worker.words))
        before = client.rmw_sum(SUMS + place, 1)
        client.writeBlock(FIFO, put, uhal.BlockReadWriteMode.NON_INCREMENTAL)
        client.write(WORDS + place, first)
        events = client.readBlock(EVENTS, TAKEN, uhal.BlockReadWriteMode.NON_INCREMENTAL)
        word, began = client.read(WORDS + place), clock()
        try:
            hardware.dispatch()
            told = int(before), list(events), int(word)
        except uhal.exception:
            # uHAL loses its place in the stream where a dispatch was cut short.
            told, hardware = None, board(worker.uri, patience_ms=worker.patience_ms)
        rounds.append(Round(began, clock(), put, told))
    pipe.send(rounds)


@contextlib.contextmanager
def working(workers):
    """uHAL in a process for each worker, all of which have begun; a function that ends them, and returns their rounds."""
    # uHAL lets no other thread run while it waits.
    context = multiprocessing.get_context("spawn")
    stop, pipes = context.Event(), [context.Pipe(duplex=False) for _ in workers]
    tasks = [
        context.Process(target=work, args=(worker, place, stop, far), daemon=True)
        for place, (worker, (_, far)) in enumerate(zip(workers, pipes, strict=True))
    ]

    def rounds():
        stop.set()
        found = []
        for near, _ in pipes:
            assert near.poll(command.BOUND_S), "uHAL is done"
            found.append(near.recv())
        return found

    for task in tasks:
        task.start()
    try:
        yield rounds
    finally:
        for task in tasks:
            task.kill()
            task.join()


def account(device, rounds_by_place):
    """Holds the board against what its clients were told: nothing was done twice, nothing is told as done that was not, and
    nobody was told what is another's."""
    in_fifo = collections.Counter(device.fifo)
    assert set(in_fifo.values()) <= {1}, "a word is put into the FIFO once"
    for place, rounds in rounds_by_place.items():
        done = 0
        for number, each in enumerate(rounds):
            if each.failed:
                continue
            before, _, word = each.told
            assert done <= before <= number
            assert word == each.put[0] and all(put in in_fifo for put in each.put)
            done += 1
        assert done <= device.memory[SUMS + place] <= len(rounds)
        of_client = [put for put in device.fifo if put >> 27 == place]
        assert of_client == sorted(of_client), "a client's order is kept"
    events = list(itertools.chain(*(each.told[1] for rounds in rounds_by_place.values() for each in rounds if each.told)))
    assert len(set(events)) == len(events), "no word is taken out twice"
