"""What every test of the command needs: the command itself. A missing one is a failure, not a skip."""

import os

import command
import pytest


def pytest_sessionstart(session):
    if not os.access(command.HODO, os.X_OK):
        pytest.exit(f"{command.HODO} is not there: cargo build --release, or set HODO", returncode=1)
