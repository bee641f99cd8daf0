"""`hodo bench pva`: every operation against a server in another process, and what cannot be measured is refused with its remedy."""

import itertools

import command
import contract
import pytest

RUN = command.SHORT
REST = "network, waking"
TESTS = [
    "latency --sizes 8",
    "rate --sizes 7,800K --window 4",
    "random --sizes 8,64K",
    "channels --sizes 8 --channels 1000",
    "open --sizes 80 --rate 2000",
]


@pytest.fixture(scope="module")
def far_end():
    with command.serving("pva://127.0.0.1:0") as process:
        yield process.uri


def are_those_of_the_way(stages):
    """There and back. Where both sides shared a processor, two are told as one; there is a rest where the far end's leave one, as its means are of what it counts."""
    named = {stage["name"]: stage["mean_ns"] for stage in stages if stage["side"] == "local"}
    joined = "send, wire and server"
    around = [joined] if joined in named else ["send", "wire and server"]
    there = sum(stage["mean_ns"] for stage in stages if stage["side"] == "remote" and stage["name"] != REST)
    rest = [REST] if there <= named[around[-1]] else []
    told = [stage["name"] for stage in stages]
    assert told == ["call", "encode", *around, "decode", "source", "encode", "send", *rest, "decode", "completion"], stages


CASES = command.spread([*itertools.product(TESTS, ["value", "call"])], contract.MODES)


@pytest.mark.parametrize(("test", "operation", "mode"), [(*each, mode) for each, mode in CASES])
def test_every_operation_and_pattern(far_end, test, operation, mode):
    stages = ["--stages"] if test.startswith("latency") else []
    link = f"{far_end}?operation={operation}"
    for one in command.bench(link, "--mode", mode, "--test", *test.split(), *stages, *RUN):
        assert one["operations"] > 0 and one["loss"]["refused"] == one["loss"]["lost"] == 0, one
        assert one["verdict"]["state"] not in ("failed", "interrupted"), one["verdict"]
        sides = {stage["side"] for stage in one["stages"]}
        assert sides == ({"local", "remote"} if stages else set())
        if stages:
            are_those_of_the_way(one["stages"])


def test_ten_thousand_connects_at_once_and_one_after_the_other(far_end):
    link = f"{far_end}?operation=connect"
    alone, at_once = command.bench(link, *RUN)
    assert (at_once["channels"], at_once["size_bytes"], at_once["payload_bytes"]) == (10_000, 0, 0)
    assert alone["operations"] > 0 and at_once["operations"] > 0
    # Exactly once each, and nothing before: the elapsed time is how long it takes until all are open.
    (once,) = command.bench(link, "--test", "channels", "--count", "10000", "--warmup", "0ms", "--repeat", "1", "--quiet")
    assert once["operations"] == 10_000 and once["latency_ns"]["max"] <= once["elapsed_s"] * 1.1e9


def test_updates_of_a_thousand_channels(far_end):
    for one in command.bench(far_end, "--test", "updates", "--channels", "1000", *RUN):
        assert one["operations"] > 0 and one["loss"]["overrun"] == 0
        assert one["clock_difference"]["error_ns"] == 0, "two processes of one host"


def test_the_suite_of_each_operation_in_every_form(tmp_path):
    for operation in ["value", "call", "connect"]:
        folder = tmp_path / operation
        done = command.hodo("bench", f"pva?operation={operation}", *RUN, "--out", folder)
        assert done.returncode == 0, done.stderr
        measurements = contract.parse((folder / "result.json").read_text(encoding="utf-8"))["measurements"]
        assert all(one["operations"] > 0 for one in measurements)
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert ("Hodoscope: pva on" if operation == "value" else f"Hodoscope: pva {operation} on") in page
        assert len(contract.parse_tsv((folder / "result.tsv").read_text(encoding="utf-8"))) == len(measurements)


def test_the_published_study_goes_round_by_round_and_the_sliding_window_follows():
    rows = command.bench("pva", "--preset", "epics-get", "--sizes", "8,800", *RUN)
    kinds = [(row["channels"], row.get("rounds", False), [one["operations_per_s"] for one in row.get("published", [])]) for row in rows]
    assert kinds == [
        (1, False, [15_086, 2_465]),
        (1, False, [15_500, 2_484]),
        (1000, True, [640_176, 159_497]),
        (1000, True, [532_530, 89_621]),
        (1000, False, []),
        (1000, False, []),
    ]


def test_a_round_waits_for_all_answers(far_end):
    (row,) = command.bench(far_end, "--test", "channels", "--channels", 300, "--window", 1, "--rounds", "--count", 3000, "--repeat", 3, "--quiet")
    assert row["rounds"] and row["operations"] == 9_000
    command.refused("bench", far_end, "--test", "latency", "--rounds", *RUN, status=2, says=["--rounds", "--test channels"])
    command.refused("bench", far_end, "--preset", "epics-get", "--rounds", *RUN, status=2, says=["--rounds", "--preset"])


def test_what_cannot_be_measured_is_refused_with_the_remedy(far_end):
    named = f"{far_end}/hodo:double:1"
    for link, options, says in [
        (named, ["--test", "random", "--sizes", "1,8"], ["--test random", "one size"]),
        (named, ["--test", "rate", "--sizes", "16"], ["--sizes 8"]),
        (f"{named}?operation=call", [], ["leave the PV out"]),
        (f"{far_end}?operation=call", ["--test", "updates"], ["--test updates"]),
        (f"{far_end}?operation=connect", ["--sizes", "8"], ["no payload"]),
        (f"{far_end}?operation=search", [], ["value, call or connect"]),
        (f"{far_end}?window=3", [], ["no option `window`"]),
        (far_end, ["--test", "latency", "--reconnect"], ["operation=connect"]),
        (f"{far_end}?operation=call", ["--preset", "epics-get"], ["not for", "operation=call", "epics-get"]),
        (f"{far_end}?operation=connect", ["--preset", "epics-get"], ["operation=connect"]),
    ]:
        command.refused("bench", link, *options, *RUN, status=2, says=says)
    with command.serving("pva://127.0.0.1:0", "--size-max", "1000") as small:
        command.refused("bench", small.uri, "--test", "rate", "--sizes", "8000", *RUN, status=1, says=["8000 bytes", "--size-max"])
