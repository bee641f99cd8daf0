"""Datagrams over queues as short as those of switch ports: what arrives is measured, and what is lost is what did not arrive."""

import command
import pytest
import shaped

# tbf counts 1,514 of the 1,538 bytes that a full frame takes on a wire of 100 Mbit/s.
KBIT = 98_439
# The payload of full frames on that wire, in bits per second.
LINE = 100e6 * 1472 / 1538
RUN = ["--test", "rate", "--mode", "send", "--sizes", "1472", "--line-rate", "100M", "--duration", "1s", "--warmup", "500ms", "--repeat", "3", "--quiet"]


@pytest.fixture(scope="module")
def wire():
    with shaped.wire() as made:
        yield made


def over(wire, limit, *more):
    """The measurement of a plan over a wire of 100 Mbit/s whose queue has this many bytes."""
    shaped.queue(wire.near, KBIT, limit)
    with command.serving(f"udp://{wire.far_address}:0", prefix=wire.at_far()) as server:
        (one,) = command.bench(server.uri, *RUN, *more, prefix=wire.at_near())
    return one


@pytest.mark.measured
@pytest.mark.parametrize("limit", ["8k", "32k", "100k"])
def test_a_short_queue_delivers_what_the_line_carries(wire, limit):
    before = shaped.delivered(wire.far)
    one = over(wire, limit)
    arrived = shaped.delivered(wire.far) - before
    assert one["verdict"]["state"] != "failed", one["verdict"]
    assert one["limit"]["binds"] in ("line", "loss"), one["limit"]
    assert 0.9 * LINE <= one["rate"]["payload_bits_per_s"]["median"] <= 1.01 * LINE, one["limit"]
    lost = one["loss"]["lost"]
    assert lost <= 0.15 * (one["operations"] + lost), one["loss"]
    assert one["operations"] <= arrived
    assert one["in_flight_median"] <= one["window"]


@pytest.mark.measured
def test_a_pace_below_the_line_loses_nothing(wire):
    one = over(wire, "8k", "--pace", "80M")
    assert one["rate"]["payload_bits_per_s"]["median"] == pytest.approx(80e6, rel=0.03)
    assert one["loss"]["lost"] <= one["operations"] / 1000
    assert one["limit"]["binds"] == "schedule", one["limit"]
