import parts  # noqa: F401  (puts the folder above and the examples in the path)
import pytest


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="the full numbers: more kills, more connections")


@pytest.fixture
def long(request):
    return request.config.getoption("--long")


@pytest.fixture
def farm():
    with parts.Farm() as made:
        yield made
