import contextlib

import bed
import pytest


@pytest.fixture(scope="module")
def place(request):
    """The hosts and the wire of a name in `bed.PLACES`."""
    with bed.PLACES[request.param]() as made:
        yield made


@pytest.fixture(scope="module")
def places(request):
    """A place for each run of a case where they go at once, else one."""
    name = request.param
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(bed.PLACES[name]()) for _ in range(bed.RUNS if name in bed.WAITED_FOR else 1)]
