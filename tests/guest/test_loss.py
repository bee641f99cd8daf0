"""Ours and the kernel's rxe when packets are lost: every byte is right in the end."""

import pytest

from guest import GUEST
from test_pingpong import Counts, done, options, ours, stock


@pytest.fixture
def lossy(guest):
    before = guest.lose(1)
    yield guest
    assert guest.lose(0) > before


# The stock server sends each message back from the buffer in which it came, so that every byte of both directions is checked.
@pytest.mark.parametrize(("size", "mtu", "how"), [(64, 1024, "poll"), (4096, 1024, "events"), (65536, 4096, "poll")])
def test_one_percent_is_lost_and_every_byte_is_right(lossy, size, mtu, how):
    counts = Counts(lossy)
    server = lossy.start("timeout 150 " + stock(size, mtu, how))
    with ours(lossy, GUEST, "--connect-within", 20, "--chk", *options(size, mtu, how)) as client:
        done(client, size, counts)
    server.wait(150)
