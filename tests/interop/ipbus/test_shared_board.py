"""Two hubs on one board of nobody's here, whose register counts: each addition is done once, and told as it was."""

import concurrent.futures

import command
from bare import Board, Client, add, control

ROUNDS = 300
COUNTER = 0x5


def count(hub, board, bound):
    """Adds to the counter, with transactions that are numbered as every other client's; answers the codes."""
    with Client(hub.at, board.at) as client:
        return [client.codes(control([add(COUNTER)]))[0] for _ in range(bound)]


def test_two_hubs_at_once_do_nothing_twice_and_tell_nothing_as_done_that_was_not():
    patience = ("--patience", "2s")
    with command.hub(*patience) as one, command.hub(*patience) as other, Board() as board:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            hubs = (one, other, one, other)
            codes = [code for codes in pool.map(lambda hub: count(hub, board, ROUNDS), hubs) for code in codes]
        done, refused = codes.count(0), sum(code != 0 for code in codes)
        assert board.refused > 0, "the hubs were in each other's way"
        assert done <= board.memory[COUNTER] <= done + refused
        assert refused <= len(codes) // 50, f"{refused} of {len(codes)}"


def test_boards_that_come_and_go_do_nothing_twice_for_two_hubs():
    with command.hub() as one, command.hub() as other, Board() as board:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            tasks = [pool.submit(count, hub, board, ROUNDS) for hub in (one, other)]
            while not all(task.done() for task in tasks):
                concurrent.futures.wait(tasks, timeout=0.2)
                board.away = True
                concurrent.futures.wait(tasks, timeout=0.15)
                board.restart()
                board.away = False
            codes = [code for task in tasks for code in task.result()]
        done, refused = codes.count(0), sum(code != 0 for code in codes)
        assert done > 0 and set(codes) <= {0, 1, 3, 4}
        assert done <= board.memory[COUNTER] <= done + refused
