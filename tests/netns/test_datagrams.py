"""Datagrams over queues as short as those of switch ports: what arrives is measured, and what is lost is what did not arrive."""

import contextlib
import re
import subprocess

import bed
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


@pytest.mark.long("timing")
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


@pytest.mark.long("timing")
def test_a_pace_below_the_line_loses_nothing(wire):
    one = over(wire, "8k", "--pace", "80M")
    assert one["rate"]["payload_bits_per_s"]["median"] == pytest.approx(80e6, rel=0.03)
    assert one["loss"]["lost"] <= one["operations"] / 1000
    assert one["limit"]["binds"] == "schedule", one["limit"]


NO_WINDOW = ["--mode", "send", "--window", "none"]


@pytest.mark.long("timing")
@pytest.mark.parametrize("words", [["--mode", "send"], ["--mode", "receive"], ["--mode", "both"], NO_WINDOW, [*NO_WINDOW, "--count", "100000"]], ids=" ".join)
def test_a_far_end_behind_a_link_that_goes_down_is_told(words):
    run = ["--test", "rate", "--sizes", "1200", "--pace", "20M", "--warmup", "50ms", "--repeat", "1", "--timeout", "1s", "--quiet"]
    run += [] if "--count" in words else ["--duration", "1s"]
    with bed.ethernet() as made, command.serving(f"udp://{made.far_address}:0", prefix=made.at_far()) as server:
        with command.started("bench", server.uri, *run, *words, "--json", "-", prefix=made.at_near(), stderr=subprocess.PIPE) as bench:
            with contextlib.suppress(subprocess.TimeoutExpired):
                bench.wait(0.6)
            shaped.ip("-n", made.far, "link", "set", "wire", "down")
            out, said = bench.communicate(timeout=command.BOUND_S)
    (row,) = command.contract.parse(out)["measurements"]
    assert bench.returncode == 1 and row["verdict"]["state"] == "interrupted", row["verdict"]
    assert re.search("the far end has (not reported|stalled)", said), said
    longest = max(row["stalls"], key=lambda stall: stall["lasted_s"])
    assert longest["lasted_s"] > 0.2 and longest["whose"] in ("link", None), row["stalls"]
    # It was paced, whatever arrived of it.
    assert not row.get("sent") or row["sent"]["payload_bits_per_s"] == pytest.approx(20e6, rel=0.1)
