"""Boards that restart within a command, and boards that tell no status, or none that makes sense."""

import struct

import command
import pytest
from bare import STATUS, Board

WORDS = 10_000
PACKETS = 29


class Restarting(Board):
    """A board that others have sent numbers to, and that restarts behind so many control packets; its memory is gone then."""

    def __init__(self, behind=None):
        super().__init__()
        self.next, self.behind, self.controls = 4_711, behind, 0

    def answer(self, datagram):
        if datagram[3 if datagram[0] == 0x20 else 0] & 0xF == 0:
            self.controls += 1
            if self.controls == self.behind:
                self.memory.clear()
                self.restart()
        return super().answer(datagram)


def block(tmp_path, count):
    file = tmp_path / "words"
    file.write_bytes(struct.pack(f"<{count}I", *range(count)))
    return file


def written(device, file, *options):
    return command.hodo("ipbus", "block", "write", f"ipbusudp-2.0://{device.at}", "0x1000", "--form", "little", "--input", file, *options)


@pytest.mark.parametrize("behind", [2, 10, 28])
def test_a_restart_within_a_long_write_is_told_of(tmp_path, behind):
    with Restarting(behind) as device:
        done = written(device, block(tmp_path, WORDS))
        assert device.controls >= PACKETS - 1
        assert (done.returncode, "restarted" in done.stderr) == (1, True), done


def test_a_long_write_without_a_restart_is_done(tmp_path):
    with Restarting() as device:
        for _ in range(3):
            done = written(device, block(tmp_path, WORDS))
            assert (done.returncode, done.stderr) == (0, "")
        assert [device.memory[0x1000 + place] for place in (0, 6_205, WORDS - 1)] == [0, 6_205, WORDS - 1]


@pytest.mark.parametrize("told", [[], [b"\x20\0\0\xf1"], [struct.pack(">16I", STATUS, *range(15))]])
def test_a_board_without_a_status_is_written_to_with_one_warning(tmp_path, told):
    with Board() as device:
        device.mangle = lambda request, reply: told if request[3] & 0xF == 1 and request[0] == 0x20 else [reply]
        done = written(device, block(tmp_path, 1_000), "--timeout", "2s")
        assert done.returncode == 0, done
        assert device.memory[0x1000 + 999] == 999
        assert done.stderr.count("warning") == 1 and "no IPbus status" in done.stderr, done.stderr


def test_a_board_that_answers_nothing_is_told_of_as_such(tmp_path):
    with Board() as device:
        device.away = True
        done = written(device, block(tmp_path, 10), "--timeout", "200ms")
        assert (done.returncode, "does not answer" in done.stderr, "warning" in done.stderr) == (1, True, False), done


def test_the_next_commands_have_ids_too(tmp_path):
    """As long as nobody else has sent any, so that what is lost is recovered: here each tenth datagram, either way."""
    with command.serving("ipbusudp-2.0://127.0.0.1:0?out.loss=0.1&back.loss=0.1&seed=5") as device:
        is_fresh = True
        for turn in range(12):
            done = command.hodo("ipbus", "block", "write", device.uri, "0x1000", "--form", "little", "--input", block(tmp_path, 2_000), "--timeout", "5s")
            # The board's first packet of all may be lost, and lost again.
            first_may_be_left_open = is_fresh and "first packet since" in done.stderr
            assert done.returncode == 0 or first_may_be_left_open, (turn, done)
            is_fresh &= done.returncode != 0
