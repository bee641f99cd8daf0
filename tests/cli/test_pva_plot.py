"""`hodo pva monitor --plot` on a terminal: what it draws, after a change of size too, and how it ends."""

import re
import signal

import command
import pva
import terminal

PVS = """
[[pv]]
name = "WAVE"
source = "sine"
from = -5
to = 5
period = "1s"
every = "10ms"
units = "mm"
[[pv]]
name = "STEADY"
value = 3
[[pv]]
name = "ARRAY"
type = "double[]"
source = "waveform"
size = 100
from = 100
to = 200
[[pv]]
name = "TEXT"
type = "string"
value = "\\u001b[2Jx"
"""


def last_words(one):
    """The lines after the picture, but that updates had overwritten others: on a busy machine one may come before the one before it was drawn."""
    return [line for line in one.after() if not re.fullmatch(r"hodo: \w+: \d+ of \d+ updates had overwritten others", line)]


def dots(lines):
    return sum(1 for line in lines for c in line if 0x2800 < ord(c) <= 0x28FF)


def test_numbers_and_arrays_are_drawn_in_any_size_and_the_terminal_is_restored(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    names = ["WAVE", "STEADY", "ARRAY", "TEXT", "ABSENT"]
    drawn = ["pva", "monitor", "--plot", "--window", "3", *names, "-S"]
    with pva.serving(file) as server, terminal.started(30, 100, *drawn, server.at) as one:

        def is_drawn(rows, columns):
            lines = one.picture()
            return len(lines) == rows - 1 and dots(lines) > 50 and all(len(line) <= columns - 1 for line in lines)

        command.wait_until(lambda: is_drawn(30, 100) and " mm" in one.picture()[0], "it draws")
        lines = one.picture()
        assert lines[0].startswith("● WAVE ") and lines[0].endswith(" mm")
        assert lines[1] == "● STEADY 3"
        assert lines[2] == "● ARRAY 100 elements"
        assert lines[3] == "● TEXT has no number that could be drawn"
        assert lines[4].startswith("● ABSENT")
        command.wait_until(lambda: any(line.strip().startswith("-4.9") or line.strip().startswith("-5") for line in one.picture()), "the axis has its least value")
        axes = [line.split() for line in one.picture() if not dots([line])]
        assert ["-3", "s", "now"] in axes and ["0", "99"] in axes
        assert "\x1b[36m" in one.text() and "\x1b[2J" not in one.text()
        # A smaller and a larger window; one in which there is no room for a picture.
        for rows, columns in [(16, 50), (50, 180)]:
            one.resize(rows, columns)
            command.wait_until(lambda rows=rows, columns=columns: is_drawn(rows, columns), "it takes the new size")
        one.resize(3, 10)
        command.wait_until(lambda: 0 < len(one.picture()) <= 2 and max(map(len, one.picture())) <= 9, "it takes the least size")
        one.resize(24, 80)
        server.kill()
        command.wait_until(lambda: one.picture() and "WAVE" in one.picture()[0] and "(" in one.picture()[0], "it tells of the lost server")
        one.key(b"\x03")
        assert one.end() == 1, "one PV has sent nothing"
        assert one.text().startswith(terminal.ENTER) and last_words(one) == ["hodo: ABSENT: no update has come"]


def test_it_ends_in_order_and_draws_without_braille(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with pva.serving(file) as server:
        arguments = ["pva", "monitor", "--plot", "-S", server.at, "WAVE"]
        with terminal.started(24, 80, *arguments, LC_ALL="C", NO_COLOR="1") as one:
            command.wait_until(lambda: sum(line.count("*") for line in one.picture()) > 10, "it draws stars")
            assert "\x1b[3" not in one.text()
            one.process.send_signal(signal.SIGTERM)
            assert one.end() == 0 and last_words(one) == []
        with terminal.started(24, 80, *arguments, "-n", "20") as one:
            assert one.end() == 0 and last_words(one) == []


def test_no_terminal_is_an_error():
    command.refused("pva", "monitor", "--plot", "-S", "127.0.0.1:1", "X", status=2, says=["--plot draws on a terminal", "hodo pva record"])
