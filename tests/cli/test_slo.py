"""`--slo`: the highest rate that holds some conditions."""

import json

import command
import contract
import pytest


def searched(*arguments, status=0):
    done = command.hodo("bench", *arguments, "--json", "-", within=120)
    assert done.returncode == status, done.stderr
    return contract.parse(done.stdout), done.stderr


def check(slo):
    """What holds for the result of every search."""
    rates = [point["rate"] for point in slo["curve"]]
    assert rates == sorted(set(rates))
    by_rate = {point["rate"]: point for point in slo["curve"]}
    if slo["low"] is not None:
        assert by_rate[slo["low"]]["held"] and by_rate[slo["low"]]["repeats_held"] == by_rate[slo["low"]]["repeats"]
    if slo["high"] is not None:
        assert not by_rate[slo["high"]]["held"] and by_rate[slo["high"]]["missed"]
    assert slo["rate"] == slo["low"]
    for point in slo["curve"]:
        assert point["held"] == (point["repeats_held"] == point["repeats"] > 0)


CAPACITIES = [
    # One processor at either side takes 20 us for each message, and handles two for each operation.
    ("sim+udp://?cost=20us", ["--mode", "both", "--sizes", "64"], "p99<1ms,lost=0", 1 / 40e-6),
    # A line of 10 Mbit/s, and datagrams of 1000 bytes with 28 of headers, out and back at once.
    ("sim+udp://?rate=10M", ["--mode", "both", "--sizes", "1000"], "p99<5ms", 10e6 / 8 / 1028),
    # Headers are under 1 % of messages that are this long.
    ("sim+tcp://?rate=10M", ["--mode", "send", "--sizes", "8000"], "p99<50ms", 10e6 / 8 / 8000),
    ("sim+ipbusudp-2.0://?cost=20us", ["--mode", "receive", "--sizes", "4"], "p99<1ms", 1 / 40e-6),
]


@pytest.mark.parametrize(("link", "plan", "conditions", "capacity"), CAPACITIES)
def test_the_capacity_of_a_simulated_link_is_found(link, plan, conditions, capacity):
    document, said = searched(link, *plan, "--slo", conditions, "--repeat", "3")
    slo = document["slo"]
    check(slo)
    assert slo["conditions"] == conditions.split(",")
    assert slo["low"] == pytest.approx(capacity, rel=0.05), slo
    assert slo["low"] < slo["high"] <= 1.03 * slo["low"]
    assert said.rstrip().splitlines()[-1] == slo["text"] and "[" in slo["text"]
    closed, answer = document["measurements"]
    assert (closed["test"], answer["test"], answer["rate_asked"]) == ("rate", "open", slo["rate"])
    # The knee of the curve: slow beyond the capacity, quick under it.
    first, last = slo["curve"][0], slo["curve"][-1]
    assert first["p99_ns"] < last["p99_ns"]


def test_a_condition_that_never_holds_says_so():
    document, said = searched("sim+udp://?delay=1ms", "--sizes", "64", "--slo", "p99<1ms", "--repeat", "2", status=1)
    slo = document["slo"]
    check(slo)
    assert slo["rate"] is None and slo["low"] is None and slo["high"] > 0
    assert "p99<1ms holds at no rate" in said.rstrip().splitlines()[-1]
    assert "p99 was 2.0" in slo["text"], slo["text"]


@pytest.mark.parametrize("link", ["tcp", "pva"])
def test_a_real_link_is_searched_in_time(link):
    plan = ["--sizes", "8", "--slo", "p50<5ms", "--slo-within", "3s", "--duration", "100ms", "--repeat", "2"]
    done = command.hodo("bench", link, *plan, "--json", "-")
    # On a busy machine there may be no rate that holds, or no time to try one.
    assert done.returncode in (0, 1), done.stderr
    slo = contract.parse(done.stdout)["slo"]
    check(slo)
    assert done.returncode == (1 if slo["rate"] is None else 0)
    assert slo["curve"] or slo["text"] == f"{link}://: no rate was tried, so there is no answer"
    assert "within 3.0 s" in done.stderr


def test_a_page_has_the_curve(tmp_path):
    out = tmp_path / "out"
    command.document("sim+udp://?cost=20us", "--mode", "both", "--sizes", "64", "--slo", "p99<1ms", "--repeat", "2", "--out", out)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "p99&lt;1ms holds up to" in page
    # And once more from the file.
    again = tmp_path / "again.html"
    assert command.hodo("report", out / "result.json", "--html", again).returncode == 0
    assert "p99&lt;1ms holds up to" in again.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--slo", "p99"], "condition"),
        (["--slo", "p99<1ms", "--rate", "5"], "--rate"),
        (["--slo", "p99<1ms", "--require", "lost=0"], "--require"),
        (["--slo", "p99<1ms", "--test", "latency"], "--test latency"),
        (["--slo", "p99<1ms", "--sizes", "64,128"], "one size"),
        (["--slo-within", "5s"], "--slo"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, says):
    command.refused("bench", "sim+tcp", *arguments, status=2, says=[says])


def test_an_interrupted_search_keeps_what_it_has(tmp_path):
    file = tmp_path / "result.json"
    with command.started("bench", "tcp", "--sizes", "64", "--slo", "p99<10ms", "--duration", "100ms", "--repeat", "2", "--json", file) as run:
        command.announced(run, r"held")
        run.terminate()
        assert run.wait(command.BOUND_S) in (0, 1)
    slo = json.loads(file.read_text())["slo"]
    assert slo["curve"]
