"""`./test quick PROTOCOL` runs the files that are about the protocol."""

import sys

import pytest
import toy


@pytest.mark.parametrize(("protocol", "count"), [("ipbus", 2), ("raw", 0)])
def test_files_are_chosen_by_what_they_are_about(protocol, count):
    """Two files of one protocol: all of their tests are chosen for it, and none for another."""
    files = ["tests/cli/test_hub.py", "tests/cli/test_controlhub.py"]
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--collect-only", "-m", protocol, *files]
    listed = toy.Repository(toy.ROOT).run(*line, HODO="/bin/true").stdout
    chosen = {name.split("::")[0] for name in listed.splitlines() if "::" in name}
    assert len(chosen) == count, listed
