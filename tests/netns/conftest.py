import bed
import pytest


@pytest.fixture(scope="module")
def place(request):
    """The hosts and the wire of a name in `bed.PLACES`."""
    with bed.PLACES[request.param]() as made:
        yield made


@pytest.fixture(scope="module")
def places(request):
    """Those of `bed.places`."""
    with bed.places(request.param) as made:
        yield made
