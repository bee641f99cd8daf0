"""Two flows at the same time over a wire of known rate: both directions, and a latency under load."""

import bed
import command
import pytest

# A queue that the load fills takes 10 ms.
FULL = f"rate {bed.TENTH} burst 20k latency 10ms"
RUN = ["--line-rate", "100M", "--congestion", "cubic", "--duration", "1s", "--warmup", "500ms", "--repeat", "1", "--quiet"]


@pytest.fixture(scope="module")
def wire():
    with bed.ethernet(near=FULL, far=FULL) as made:
        yield made


def between(wire, *plan):
    with command.serving(f"tcp://{wire.far_address}:0", prefix=wire.at_far()) as server:
        return command.bench(server.uri, *(word.replace("LINK", server.uri) for word in plan), *RUN, prefix=wire.at_near())


@pytest.mark.long("timing")
def test_a_wire_carries_both_directions_in_full(wire):
    out, back = between(wire, "--test", "rate", "--sizes", "32K", "--bidir")
    assert (out["mode"], back["mode"]) == ("send", "receive")
    for row in (out, back):
        # The acknowledgements of each direction wait in the queue of the other one.
        assert row["share_of_limit"] > 0.8, (row["mode"], row["verdict"])
    assert out["beside"]["mode"] == "receive" and back["beside"]["mode"] == "send"


@pytest.mark.long("timing")
def test_a_latency_under_load_has_the_queue_in_it(wire):
    alone, loaded, load = between(wire, "--test", "latency", "--sizes", "64", "--under", "LINK")
    assert "beside" not in alone and loaded["beside"]["test"] == load["test"] == "rate"
    assert load["limit"]["binds"] == "line", load["limit"]
    assert alone["latency_ns"]["p50"] < 1e6 and 2e6 < loaded["latency_ns"]["p50"] < 30e6, loaded["latency_ns"]
    assert "beside tcp rate send at 9" in loaded["verdict"]["text"], loaded["verdict"]
