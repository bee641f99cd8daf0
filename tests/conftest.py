"""What every test of the command needs: the command itself. A missing one is a failure, not a skip."""

import os

import command
import pytest

# Which protocol a file of tests is about, by the first word of its name; every other file uses raw links.
ABOUT = {"farm": "farm", "pva": "pva", "hub": "ipbus", "ipbus": "ipbus", "controlhub": "ipbus", "pingpong": "roce", "roce": "roce", "hdl": "spacewire", "spacewire": "spacewire", "dissector": "spacewire"}

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


def pytest_addoption(parser):
    parser.addoption("--stage", metavar="STAGE", help="run the tests of this stage of `./test long`, and no others")


def pytest_configure(config):
    config.addinivalue_line("markers", "long(stage): not part of `./test`, but of this stage of `./test long`")
    for protocol in {*ABOUT.values(), "raw"}:
        config.addinivalue_line("markers", f"{protocol}: what a change of this protocol has to pass")


# Marks before pytest chooses by marks, and chooses after every other conftest has marked.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        word = item.path.stem.removeprefix("test_").split("_")[0]
        item.add_marker(ABOUT.get(word, "raw"))
    yield
    chosen = [item for item in items if stage_of(item) == config.option.stage]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen


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
