"""What every test of the command needs: the command itself. A missing one is a failure, not a skip."""

import contextlib
import os
import socket

import command
import pytest

# The first words of the files of the command's tests that are about a protocol. The others are about what protocols have in common, and `crates`.
ABOUT = {
    "farm": ["farm"],
    "ipbus": ["controlhub", "hub", "ipbus", "trace"],
    "pva": ["from_pvget", "pva"],
    "raw": ["content", "pace", "sockets", "stalls", "two_flows", "unbounded", "wait"],
    "roce": ["pingpong", "roce"],
    "spacewire": ["spacewire"],
}

# The stages of `./test long`, and the folders that each of them runs.
LONG = {
    "timing": {"cli", "interop", "netns"},
    "causes": {"netns"},
    "doctor": {"netns"},
    "shaped": {"netns"},
    "guest": {"guest"},
    "launch": {"launch"},
    "demonstration": {"cli"},
    "files": {"cli", "report"},
}

# The ports of daemons that are given none. They are taken while tests run, so that a test that starts such a daemon always fails, and not only where it
# meets another one.
DEFAULT_PORTS = (5500, 5501, 9203, 9205, 9206, 9209, 9210, 10203)
TAKEN = []


def pytest_addoption(parser):
    parser.addoption("--stage", metavar="STAGE", help="run the tests of this stage of `./test long`, and no others")
    parser.addoption("--about", metavar="NAME", action="append", default=[], help="run the tests that are about this protocol or `crates`, or in this file, and no others")


def pytest_configure(config):
    config.addinivalue_line("markers", "long(stage): not part of `./test`, but of this stage of `./test long`")


# Chooses after every other conftest has marked.
@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    yield
    chosen = [item for item in items if stage_of(item) == config.option.stage and is_about(item, config.option.about)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


def is_about(item, names):
    """Returns whether a test is about one of these protocols or in one of these files; each test is where there are none."""
    name = item.path.stem.removeprefix("test_")
    about = next((protocol for protocol, words in ABOUT.items() for first in words if f"{name}_".startswith(f"{first}_")), "crates")
    return not names or about in names or str(item.path.relative_to(command.ROOT)) in names


def stage_of(item):
    """Returns the stage of `./test long` that a test is part of, or `None` for a test of `./test`."""
    mark = item.get_closest_marker("long")
    stage = mark.args[0] if mark else None
    folder = item.path.relative_to(command.ROOT / "tests").parts[0]
    if stage is not None and folder not in LONG.get(stage, ()):
        raise pytest.UsageError(f"{item.nodeid} would never run: `./test long {stage}` does not run tests/{folder}")
    return stage


def pytest_sessionstart(session):
    if not os.access(command.HODO, os.X_OK):
        pytest.exit(f"{command.HODO} is not there: ./test build, or set HODO", returncode=1)
    if not hasattr(session.config, "workerinput"):
        TAKEN.extend(map(taken, DEFAULT_PORTS))


def taken(port):
    """A socket that has a port of this host, unless somebody else has it."""
    one = socket.socket()
    with contextlib.suppress(OSError):
        one.bind(("127.0.0.1", port))
    return one
