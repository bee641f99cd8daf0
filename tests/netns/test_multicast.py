"""Multicast groups: one sender, receivers on hosts of their own behind a switch, and a wire that damages what no checksum sees."""

import contextlib
import subprocess

import bed
import command
import pytest
import shaped

GROUP = "udp://239.7.7.7:4242"
RUN = ["--test", "rate", "--mode", "send", "--window", "none", "--sizes", "1472", "--duration", "500ms", "--warmup", "100ms", "--repeat", "2", "--quiet"]


@pytest.fixture(scope="module")
def network():
    with shaped.farm(leaves=2) as made:
        yield made


@contextlib.contextmanager
def receivers(network):
    with contextlib.ExitStack() as stack:
        for leaf in range(2):
            stack.enter_context(command.serving(GROUP, "--device", "wire", prefix=network.at_leaf(leaf)))
        yield


@pytest.mark.long("timing")
def test_every_receiver_is_counted(network):
    with receivers(network):
        (one,) = command.bench(f"{GROUP}?receivers=2", *RUN, "--pace", "20M", "--device", "wire", prefix=network.at_controller())
    assert one["verdict"]["state"] != "failed" and one["loss"]["lost"] == 0, one["verdict"]
    assert one["rate"]["payload_bits_per_s"]["median"] == pytest.approx(20e6, rel=0.1)
    assert sorted(each["address"].split(":")[0] for each in one["receivers"]) == ["10.99.0.2", "10.99.0.3"]
    assert all(each["lost"] == 0 and each["received"] >= one["operations"] for each in one["receivers"]), one["receivers"]


@pytest.mark.long("timing")
def test_the_receiver_that_misses_some_is_named_and_the_row_is_of_what_all_have(network):
    shaped.shape(network.switch, 10_000, "port2", how="change")
    try:
        with receivers(network):
            done = command.hodo("bench", f"{GROUP}?receivers=2", *RUN, "--pace", "20M", "--device", "wire", "--json", "-", prefix=network.at_controller())
            (one,) = command.contract.parse(done.stdout)["measurements"]
    finally:
        shaped.shape(network.switch, shaped.TBF_LEAF_KBIT, "port2", how="change")
    lost = {each["address"].split(":")[0]: each["lost"] / (each["lost"] + each["received"]) for each in one["receivers"]}
    assert lost["10.99.0.2"] == 0 and lost["10.99.0.3"] > 0.3, one["receivers"]
    assert one["sent"]["payload_bits_per_s"] == pytest.approx(20e6, rel=0.1)
    assert one["rate"]["payload_bits_per_s"]["median"] < 0.7 * one["sent"]["payload_bits_per_s"]


@pytest.mark.long("timing")
@pytest.mark.parametrize("starts_again", [False, True])
def test_a_receiver_that_goes_while_it_is_measured_is_told(network, starts_again):
    link, run = f"{GROUP}?receivers=2", [*RUN, "--pace", "20M", "--device", "wire", "--timeout", "1s", "--json", "-"]
    with contextlib.ExitStack() as stack:
        one, other = (stack.enter_context(command.serving(GROUP, "--device", "wire", prefix=network.at_leaf(leaf))) for leaf in range(2))
        bench = stack.enter_context(command.started("bench", link, *run, prefix=network.at_controller(), stderr=subprocess.PIPE))
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.wait(0.5)
        other.kill()
        other.wait()
        if starts_again:
            stack.enter_context(command.serving(GROUP, "--device", "wire", prefix=network.at_leaf(1)))
        out, said = bench.communicate(timeout=command.BOUND_S)
    (row,) = command.contract.parse(out)["measurements"]
    assert bench.returncode == 1 and "10.99.0.3:4242 of the group has not reported for 1000 ms" in said, said
    assert row["verdict"]["state"] == "interrupted" and max(stall["lasted_s"] for stall in row["stalls"]) > 0.1, row["stalls"]


def test_a_receiver_that_is_missing_is_told(network):
    with command.serving(GROUP, "--device", "wire", prefix=network.at_leaf(0)):
        done = command.hodo("bench", f"{GROUP}?receivers=2", *RUN, "--device", "wire", "--timeout", "1s", prefix=network.at_controller())
    assert done.returncode == 1 and "1 of 2 receivers of the group have replied" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("link", "words", "says"),
    [
        (GROUP, ["--test", "latency"], "add --test rate --mode send --window none"),
        (f"{GROUP}?receivers=0", RUN, "`receivers` is a number"),
        ("udp://127.0.0.1:4242?receivers=2", RUN, "only a multicast group has receivers"),
        (GROUP, [*RUN, "--bind", "127.0.0.1"], "use --device"),
    ],
)
def test_what_a_group_cannot_do_is_told_before_anything_runs(link, words, says):
    done = command.hodo("bench", link, *words)
    assert done.returncode == 2 and says in done.stderr, done.stderr


@pytest.mark.parametrize("scheme", ["tcp", "udp"])
def test_words_that_change_places_are_seen_where_somebody_looks(scheme):
    # One operation at a time, so that the middle of a segment is the payload of one, and not the head of a frame.
    run = ["--test", "rate", "--mode", "send", "--sizes", "1200", "--window", "1", "--pace", "20M", "--duration", "300ms", "--repeat", "1", "--quiet", "--json", "-"]
    with bed.tunnel(swap=1) as made, command.serving(f"{scheme}://{made.far_address}:0", prefix=made.at_far()) as server:
        for words, is_seen in ([], False), (["--check"], True):
            done = command.hodo("bench", server.uri, *run, *words, prefix=made.at_near())
            (one,) = command.contract.parse(done.stdout)["measurements"]
            assert (one["loss"].get("damaged", 0) > 0) == is_seen, one["loss"]
            assert (one["verdict"]["state"] == "failed") == is_seen, one["verdict"]
