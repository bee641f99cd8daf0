"""`./test quick PROTOCOL` runs the files that are about the protocol; `./test long` what is marked so, wherever the mark is set."""

import sys

import pytest
import toy


@pytest.mark.parametrize(("protocol", "count"), [("ipbus", 2), ("raw", 0)])
def test_files_are_chosen_by_what_they_are_about(protocol, count):
    """Two files of one protocol: all of their tests are chosen for it, and none for another."""
    files = ["tests/cli/test_hub.py", "tests/cli/test_controlhub.py"]
    assert len({name.split("::")[0] for name in names("-m", protocol, *files)}) == count


def test_what_a_folder_marks_for_long_is_not_of_the_gate():
    """The guest's own conftest marks most of its tests."""
    gate, long = names("tests/guest"), names("tests/guest", "--stage", "guest")
    assert gate and not gate & long
    assert "tests/guest/test_pingpong.py::test_ipv6_both_ways[64-1024]" in gate
    assert "tests/guest/test_pingpong.py::test_ipv6_both_ways[65536-1024]" in long


def names(*arguments):
    """Returns the names of the tests that these arguments choose."""
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--collect-only", *arguments]
    return {name for name in toy.Repository(toy.ROOT).run(*line, HODO="/bin/true").stdout.splitlines() if "::" in name}
