"""A program of its own that gives what it reads out, with the library."""

import re
import runpy
import subprocess

import command
import farms

READER = runpy.run_path(str(command.ROOT / "docs/examples/farm_reader.py"))


def test_the_rust_example_reads_out(tmp_path):
    """Built with the tests, and run as a user would, on two threads."""
    example = command.example("readout")
    with farms.controller("--store", tmp_path) as controller, farms.node(controller, "--accept", "every:10"):
        words = [example, controller.at, "3000", "2"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        accepted, rejected = map(int, re.match(r"(\d+) accepted, (\d+) rejected, 0 too late, 0 without", done.stdout).groups())
        assert accepted == 300 and rejected == 2700
        controller.balanced()
        assert controller.end()[0] == 0
    kept = {event.event: event.data for event in READER["events"](tmp_path)}
    assert len(kept) == accepted
    assert all(data == bytes((at ^ event) & 255 for at in range(event % 4096)) for event, data in kept.items())
