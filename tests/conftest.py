"""What every test of the command needs: the command itself. A missing one is a failure, not a skip."""

import os

import command
import pytest

# Which protocol a file of tests is about, by the first word of its name; every other file uses raw links.
ABOUT = {"farm": "farm", "pva": "pva", "hub": "ipbus", "ipbus": "ipbus", "controlhub": "ipbus", "pingpong": "roce", "roce": "roce", "hdl": "spacewire", "spacewire": "spacewire", "dissector": "spacewire"}


def pytest_configure(config):
    config.addinivalue_line("markers", "release: about time or scale, so that it needs the release build")
    config.addinivalue_line("markers", "alone: about a rate that another test beside it would change")
    config.addinivalue_line("markers", "measured: about a share of a limit; what else a host does only lowers it, so there are four attempts")
    for protocol in {*ABOUT.values(), "raw"}:
        config.addinivalue_line("markers", f"{protocol}: what a change of this protocol has to pass")


def pytest_collection_modifyitems(items):
    for item in items:
        word = item.path.stem.removeprefix("test_").split("_")[0]
        item.add_marker(ABOUT.get(word, "raw"))
        if item.get_closest_marker("measured"):
            # Elsewhere other tests run beside it, and end.
            delay_s = 2 if "netns" in item.path.parts else 10
            item.add_marker(pytest.mark.flaky(reruns=3, reruns_delay=delay_s))


def pytest_sessionstart(session):
    if not os.access(command.HODO, os.X_OK):
        pytest.exit(f"{command.HODO} is not there: cargo build --release, or set HODO", returncode=1)
