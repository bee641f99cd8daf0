"""Every combination that the contract names yields a valid document, and figures that agree with the plan."""

import command
import contract
import pytest

PROTOCOLS = ("tcp", "udp", "unix")
COMBINATIONS = [
    *(("rate", mode, ["--sizes", "1K", "--window", "16"]) for mode in contract.MODES),
    *(("random", mode, ["--sizes", "64..1024+480", "--window", "4"]) for mode in contract.MODES),
    *(("channels", mode, ["--sizes", "1K", "--channels", "5", "--window", "4"]) for mode in contract.MODES),
    ("latency", "both", ["--sizes", "64,1K"]),
    *(("open", mode, ["--sizes", "64", "--rate", "2000"]) for mode in contract.MODES),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("test", "mode", "plan"), COMBINATIONS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_test_in_every_mode(protocol, test, mode, plan):
    found = command.bench(protocol, "--test", test, "--mode", mode, *plan, *command.SHORT)
    assert found
    for one in found:
        assert (one["protocol"], one["test"], one["mode"], one["repeats"]) == (protocol, test, mode, 1)
        assert one["verdict"]["state"] not in ("interrupted", "failed"), one["verdict"]
        assert one["cpu"]["local"] and one["cpu"]["remote"], "the far end was started here: both are known"
        assert one["limit"] and one["share_of_limit"], "on loopback the floor is measured in the same run"
        if protocol != "udp":
            assert one["loss"] == dict.fromkeys(one["loss"], 0)
        if one["size_bytes"]:
            ways = one["payload_bytes"] / one["operations"] / one["size_bytes"]
            assert ways in (1, 2), "payload is operations times size, there or there and back"


@pytest.mark.parametrize("wait", ["block", "spin", "spin:50us"])
def test_every_way_to_wait(wait):
    (one,) = command.bench("tcp", "--test", "latency", "--sizes", "64", "--wait", wait, *command.SHORT)
    assert one["wait"] == wait


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [("64,1024,2K", [64, 1024, 2048]), ("1..16*2", [1, 2, 4, 8, 16]), ("60..180+60", [60, 120, 180])],
)
def test_every_way_to_name_sizes(sizes, expected):
    found = command.bench("tcp", "--test", "rate", "--mode", "send", "--sizes", sizes, *command.SHORT)
    assert [one["size_bytes"] for one in found] == expected


def test_a_count_is_kept_to():
    (one,) = command.bench("tcp", "--test", "latency", "--sizes", "64", "--count", "500", "--repeat", "2", "--quiet")
    assert one["operations"] == 1000 and one["latency_ns"]["count"] == 1000 and one["repeats"] == 2


def test_repeats_until_the_interval_is_narrow_or_there_have_been_enough():
    plan = ["--confidence", "95", "--interval", "1%", "--max-repeats", "8", "--duration", "50ms", "--warmup", "10ms"]
    (one,) = command.bench("tcp", "--test", "rate", "--mode", "send", "--sizes", "1K", *plan, "--quiet")
    assert 2 <= one["repeats"] <= 8
    assert one["rate"]["operations_per_s"]["confidence"] in (None, 95)


def test_an_open_loop_keeps_its_rate():
    plan = ["--test", "open", "--sizes", "64", "--rate", "1000", "--duration", "1s", "--repeat", "1", "--quiet"]
    (one,) = command.bench("tcp", *plan)
    assert one["rate"]["operations_per_s"]["median"] == pytest.approx(1000, rel=0.1)


def test_datagrams_are_accounted_for():
    plan = ["--test", "rate", "--mode", "send", "--sizes", "1K", "--window", "4096", "--count", "20000"]
    (one,) = command.bench("udp", *plan, "--warmup", "0ms", "--repeat", "1", "--quiet")
    assert one["operations"] + one["loss"]["lost"] == 20000, "each is delivered or lost, and never more than were sent"


def test_the_standard_suite_runs_without_a_test_named():
    for protocol in PROTOCOLS:
        found = command.bench(protocol, *command.SHORT)
        assert {"latency", "rate"} <= {one["test"] for one in found}


def test_a_simulated_link_is_repeatable_to_the_byte():
    uri = "sim+udp://?delay=5us&jitter=4us&loss=0.01&seed=3"
    plan = ["--test", "rate", "--mode", "send", "--sizes", "64", *command.SHORT]
    first, second = (command.bench(uri, *plan) for _ in range(2))
    assert timeless(first) == timeless(second)
    assert first[0]["loss"]["lost"] > 0 and first[0]["limit"]["kind"] == "model"


def timeless(found):
    """Measurements without what the processors of this machine add to them."""
    return [{name: value for name, value in one.items() if name not in ("cpu",)} for one in found]


def test_a_tsv_holds_one_line_a_measurement():
    done = command.hodo("bench", "tcp", "--test", "rate", "--mode", "send", "--sizes", "64,1K", *command.SHORT, "--tsv", "-")
    assert done.returncode == 0, done.stderr
    rows = contract.parse_tsv(done.stdout)
    assert [row["size_bytes"] for row in rows] == ["64", "1024"]
    assert all(float(row["operations_per_s"]) > 0 for row in rows)


def test_a_line_rate_gives_the_lines_limit():
    plan = ["--test", "rate", "--mode", "send", "--sizes", "32K", "--line-rate", "1G", "--mtu", "1500"]
    (one,) = command.bench("tcp", *plan, *command.SHORT)
    assert one["limit"]["kind"] == "line" and one["limit"]["binds"] == "line"
    assert one["limit"]["payload_bits_per_s"] / 1e6 == pytest.approx(941.5, abs=0.1)
