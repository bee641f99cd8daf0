"""Devices for uHAL, and the hub between them. Where it is not installed, the import fails, and so do the tests."""

import contextlib

import command
import pytest
from boards import HUB_SCHEMES, TABLES, WAYS, beyond, kind_of, through


# A board that a loaded machine holds up is not dead. Tests of dead boards have hubs of their own.
HUB_PATIENCE = "20s"


@pytest.fixture(params=WAYS)
def scheme(request):
    return request.param


@pytest.fixture
def way(scheme):
    """A function from a device's own URI to the one under which this test has it: through one hub, if through any."""
    if scheme not in HUB_SCHEMES:
        yield lambda uri: uri
        return
    with command.hub("--patience", HUB_PATIENCE) as hub:
        yield lambda uri: through(hub.at, uri)


@pytest.fixture
def serve(scheme, way):
    """A function from options to a running device with them, which ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(**options):
            query = "&".join(f"{name}={value}" for name, value in options.items())
            at = command.free_address(kind_of(scheme))
            device = stack.enter_context(command.serving(f"{beyond(scheme)}://{at}?{query}"))
            device.uri = way(device.uri)
            return device

        yield start


@pytest.fixture
def device(serve):
    """A device that is all memory."""
    return serve()


@pytest.fixture
def tabled(serve):
    """A device with the registers of board.xml, and nothing else."""
    return serve(table=TABLES / "board.xml", others="error")
