import bed
import pytest


@pytest.fixture(scope="module")
def place(request):
    """That of `bed.place`."""
    with bed.place(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def places(request):
    """Those of `bed.places`."""
    with bed.places(request.param) as made:
        yield made


@pytest.fixture(scope="module")
def found():
    """What each case of a module found, by case, for those that have been run."""
    return {}
