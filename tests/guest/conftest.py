import pytest

from guest import guest as boot


@pytest.fixture(scope="session")
def guest():
    """The guest, booted once for all tests."""
    with boot() as up:
        yield up
