"""Devices for uHAL. Where it is not installed, the import fails, and so do the tests."""

import contextlib

import command
import pytest
from boards import SCHEMES, TABLES


@pytest.fixture(params=SCHEMES)
def scheme(request):
    return request.param


@pytest.fixture
def serve(scheme):
    """A function from options to a running device with them, which ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(**options):
            query = "&".join(f"{name}={value}" for name, value in options.items())
            return stack.enter_context(command.serving(f"{scheme}://127.0.0.1:0?{query}"))

        yield start


@pytest.fixture
def device(serve):
    """A device that is all memory."""
    return serve()


@pytest.fixture
def tabled(serve):
    """A device with the registers of board.xml, and nothing else."""
    return serve(table=TABLES / "board.xml", others="error")
