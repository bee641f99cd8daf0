"""Several threads and processes at once, on one device and on several: uHAL's packets have number 0 all of them."""

import concurrent.futures
import multiprocessing
import threading

import command
import pytest
from boards import WAYS, board, words

WORKERS = 4
ROUNDS = 10
SHARED = 0x5


def work(uri, number):
    """Writes and reads back blocks of its own, and counts in a word that all share; answers the rounds that were good."""
    hardware = board(uri)
    client, base, good = hardware.getClient(), 0x1000 * (number + 1), 0
    for turn in range(ROUNDS):
        data = words(700, seed=1000 * number + turn)
        client.writeBlock(base, data)
        block = client.readBlock(base, len(data))
        client.rmw_sum(SHARED, 1)
        hardware.dispatch()
        good += list(block) == data
    return good


def total(uri):
    hardware = board(uri)
    word = hardware.getClient().read(SHARED)
    hardware.dispatch()
    return int(word)


def in_threads(uris):
    found = []
    threads = [
        threading.Thread(target=lambda uri=uri, number=number: found.append(work(uri, number)))
        for number, uri in enumerate(uris)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def in_processes(uris):
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(len(uris), mp_context=context) as pool:
        return list(pool.map(work, uris, range(len(uris))))


@pytest.mark.parametrize(("run", "scheme"), command.spread([in_threads, in_processes], WAYS))
def test_on_one_device(device, run):
    assert run([device.uri] * WORKERS) == [ROUNDS] * WORKERS
    assert total(device.uri) == WORKERS * ROUNDS


@pytest.mark.parametrize(("run", "scheme"), command.spread([in_threads, in_processes], WAYS))
def test_on_a_device_each(serve, run):
    uris = [serve().uri for _ in range(WORKERS)]
    assert run(uris) == [ROUNDS] * WORKERS
    assert [total(uri) for uri in uris] == [ROUNDS] * WORKERS


def test_one_board_in_many_threads(device):
    """One `HwInterface` for all, as its documentation allows."""
    hardware, failures = board(device.uri), []

    def count():
        try:
            for _ in range(ROUNDS):
                hardware.getClient().rmw_sum(SHARED, 1)
                hardware.dispatch()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=count) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and total(device.uri) == WORKERS * ROUNDS
