"""A board of nobody's here that goes away and comes back, behind the hub."""

import time

import command
import pytest
from bare import Board, Client, control, read


@pytest.mark.long("timing")
def test_the_first_request_after_a_board_is_back_is_served():
    # A board on a loaded machine is late; an eighth of the patience is what a probe waits for.
    with command.hub("--patience", "800ms") as hub, Board() as board, Client(hub.at, board.at) as client:
        for away_s in (0.3, 1.2):
            assert client.codes(control([read(0x10)])) == [0]
            board.away = True
            assert client.codes(control([read(0x10)])) != [0]
            time.sleep(away_s)
            board.restart()
            board.away = False
            assert client.codes(control([read(0x10)])) == [0], f"after {away_s} s"


def test_a_flood_of_requests_for_a_dead_board_makes_ten_probes_a_second():
    with command.hub() as hub, Board() as board, Client(hub.at, board.at) as client:
        assert client.codes(control([read(0x10)])) == [0]
        board.away = True
        assert client.codes(control([read(0x10)])) != [0]
        began, before, asked = time.monotonic(), len(board.statuses), 0
        while time.monotonic() < began + 1.0:
            assert client.codes(control([read(0x10)])) == [3]
            asked += 1
        probes = len(board.statuses) - before
        assert 5 <= probes <= 12 and asked > 200, f"{probes} probes for {asked} requests"
