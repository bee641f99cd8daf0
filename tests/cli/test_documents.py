"""Every plan and every link that the contract names yields a valid document, and figures that agree with the plan."""

import subprocess

import command
import contract
import pytest

PROTOCOLS = ("tcp", "udp", "unix")
# Slow enough that a simulation of it is quick.
NETWORK = "://?delay=50us&rate=1G&seed=3"
LINKS = (*PROTOCOLS, *(f"sim+{protocol}{NETWORK}" for protocol in PROTOCOLS), f"sim+udp{NETWORK}&loss=0.001&jitter=20us")
PLANS = [
    *(("rate", mode, ["--sizes", "1K", "--window", "16"]) for mode in contract.MODES),
    *(("random", mode, ["--sizes", "64..1024+480", "--window", "4"]) for mode in contract.MODES),
    *(("channels", mode, ["--sizes", "1K", "--channels", "5", "--window", "4"]) for mode in contract.MODES),
    *(("latency", mode, ["--sizes", "64,1K"]) for mode in contract.MODES),
    *(("open", mode, ["--sizes", "64", "--rate", "2000"]) for mode in contract.MODES),
    ("updates", "receive", ["--sizes", "64,1K", "--rate", "2000", "--channels", "3"]),
    ("updates", "receive", ["--sizes", "1K", "--window", "8"]),
]
# Every way to say how long and how often, each with a way to wait.
EXTENTS = [
    ("--duration 100ms --repeat 1 --wait block", 1),
    ("--count 300 --repeat 6 --wait spin:20us", 6),
    ("--duration 20ms --confidence 90 --interval 20% --max-repeats 6 --wait block", None),
]


CASES = [pytest.param(link, *plan, *extent, id=f"{plan[0]}-{plan[1]}-{link}") for plan, link, extent in command.spread(PLANS, LINKS, EXTENTS)]


@pytest.mark.parametrize(("link", "test", "mode", "plan", "extent", "repeats"), CASES)
def test_every_test_in_every_mode(link, test, mode, plan, extent, repeats):
    if link.startswith("sim+"):
        # Time is virtual there: it waits in one way.
        extent = extent.replace("spin:20us", "block")
    document = command.document(link, "--test", test, "--mode", mode, *plan, *extent.split(), "--warmup", "20ms", "--quiet")
    contract.check_filled(document)
    assert document["measurements"]
    for one in document["measurements"]:
        protocol = link.split("://")[0].removeprefix("sim+")
        assert (one["protocol"], one["test"], one["mode"], one["wait"]) == (protocol, test, mode, extent.split()[-1])
        assert one["repeats"] == repeats if repeats else 3 <= one["repeats"] <= 6
        assert one["verdict"]["state"] not in ("interrupted", "failed"), one["verdict"]
        kinds = ("model",) if link.startswith("sim+") else ("line", "plain_loop")
        assert not one["limit"] or one["limit"]["kind"] in kinds
        assert ("plain_loop" in one) != link.startswith("sim+")
        if test == "latency":
            assert one["limit"]["kind"] == kinds[-1] and one["limit"]["saw"]
        if test == "updates":
            assert one.get("rate_asked") == (2000 if "--rate" in plan else None)
            assert one["loss"]["overrun"] == 0 or "--rate" in plan, "without a rate nothing is due"
            # A busy machine may keep either end from its schedule.
            one["loss"]["overrun"] = 0
        if protocol != "udp":
            # TCP sends a segment again where a busy machine kept its acknowledgement waiting.
            assert {**one["loss"], "retransmitted": 0} == dict.fromkeys(one["loss"], 0)
        if one["size_bytes"]:
            assert one["payload_bytes"] == one["operations"] * one["size_bytes"]


@pytest.mark.parametrize(("mode", "protocol"), command.spread(contract.MODES, ["tcp", "unix"]))
def test_a_connection_for_each_operation(mode, protocol):
    plan = ["--test", "latency", "--mode", mode, "--sizes", "64", "--reconnect"]
    (one,) = command.bench(protocol, *plan, *command.SHORT)
    assert one["limit"]["kind"] == "plain_loop"
    assert one["times_plain_loop"] and one["verdict"]["state"] not in ("interrupted", "failed")


def test_more_sockets_than_a_look_can_open_have_no_plain_loop():
    for channels, has_one in ((200, True), (1200, False)):
        plan = ["--test", "channels", "--channels", channels, "--sizes", "64", "--duration", "300ms", "--repeat", "1"]
        done = command.hodo("bench", "tcp", *plan, "--json", "-")
        assert done.returncode == 0, done.stderr
        (one,) = contract.parse(done.stdout)["measurements"]
        assert ("plain_loop" in one) == has_one and one["operations"] > 0
        assert not has_one or f"on each of {channels} sockets" in one["plain_loop"]["shape"]


@pytest.mark.parametrize("wait", ["adaptive", "block", "spin", "spin:50us"])
def test_every_way_to_wait(wait):
    (one,) = command.bench("tcp", "--test", "latency", "--sizes", "64", "--wait", wait, *command.SHORT)
    assert one["wait"] == wait


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [("64,1024,2K", [64, 1024, 2048]), ("1..16*2", [1, 2, 4, 8, 16]), ("60..180+60", [60, 120, 180])],
)
def test_every_way_to_name_sizes(sizes, expected):
    found = command.bench("sim+tcp", "--test", "latency", "--sizes", sizes, "--count", "10", "--repeat", "1", "--quiet")
    assert [one["size_bytes"] for one in found] == expected


def test_the_windows_bound_is_over_the_round_trip_of_the_rows_own_operations():
    plan = ["--test", "rate", "--mode", "send", "--sizes", "64,128,256,512", "--line-rate", "1M"]
    found = command.bench("tcp", *plan, *command.SHORT)
    for one in found:
        windows = [part for part in one["limit"]["formula"].split(" <= ") if part.startswith("window: 64 in flight / ")]
        assert len(windows) == 1, one["limit"]


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


@pytest.mark.parametrize("link", ["tcp", "sim+udp"])
def test_updates_keep_their_rate(link, tmp_path):
    plan = ["--test", "updates", "--sizes", "64", "--rate", "1000", "--channels", "2", "--duration", "500ms", "--repeat", "2"]
    done = command.hodo("bench", link, *plan, "--quiet", "--json", tmp_path / "r.json", "--tsv", "-", "--html", tmp_path / "r.html")
    assert done.returncode == 0, done.stderr
    (one,) = contract.parse((tmp_path / "r.json").read_text())["measurements"]
    due = 1000 * one["elapsed_s"]
    assert one["operations"] + one["loss"]["lost"] + one["loss"]["overrun"] == pytest.approx(due, rel=0.05)
    assert one["latency_ns"]["count"] == one["operations"] and one["mode"] == "receive"
    (row,) = contract.parse_tsv(done.stdout)
    assert (row["test"], row["rate_asked"], row["overrun"]) == ("updates", "1000", str(one["loss"]["overrun"]))
    assert "what the far end sends to subscriptions" in (tmp_path / "r.html").read_text()
    if link.startswith("sim+"):
        # 5 us of delay and some processor time.
        assert 5_000 < one["latency_ns"]["p50"] < 7_000 and one["verdict"]["state"] == "stable"
    beside = command.hodo("compare", tmp_path / "r.json", tmp_path / "r.json")
    assert beside.returncode == 0 and "updates" in beside.stdout, beside.stderr


def test_updates_that_are_lost_or_skipped_are_counted():
    plan = ["--test", "updates", "--sizes", "1000", "--rate", "100K", "--window", "16", "--repeat", "1", "--duration", "200ms"]
    (lossy,) = command.bench("sim+udp://?loss=0.1&seed=3", *plan, "--quiet")
    in_all = lossy["operations"] + lossy["loss"]["lost"]
    assert lossy["loss"]["lost"] / in_all == pytest.approx(0.1, abs=0.02) and lossy["loss"]["overrun"] == 0
    assert lossy["verdict"]["state"] == "missed"
    # The line takes 12,500 of a thousand bytes a second.
    (slow,) = command.bench("sim+tcp://?rate=100M&buffer=64K", *plan, "--warmup", "100ms", "--quiet")
    due = 100_000 * slow["elapsed_s"]
    assert slow["operations"] + slow["loss"]["overrun"] == pytest.approx(due, rel=0.1)
    assert slow["loss"]["overrun"] > due / 2 and slow["loss"]["lost"] == 0
    assert slow["limit"]["binds"] == "line" and slow["verdict"]["state"] == "missed"


@pytest.mark.parametrize("test", ["open", "updates"])
def test_a_schedule_can_be_required(test):
    plan = ["bench", "sim+udp://?back.loss=0.1&seed=3", "--test", test, "--mode", "receive", "--sizes", "64", "--rate", "10K", *command.SHORT]
    for share, status in (("0.85", 0), ("0.99", 1)):
        done = command.hodo(*plan, "--require", share)
        assert done.returncode == status, done.stderr
    command.refused(*plan, "--require", "1.5", status=2, says=["--require", "0.99"])
    command.refused("bench", "tcp", "--require", "0.9", status=2, says=["--rate"])


def test_times_stalls_and_losses_can_be_required_of_any_test():
    plan = ["bench", "sim+udp://?delay=1ms&loss=0.1&seed=3", "--test", "rate", "--mode", "both", "--sizes", "64", *command.SHORT]
    assert command.hodo(*plan, "--require", "p50<10ms,max<10s,stall<10s").returncode == 0
    for condition, says in (("p50<1ms", "p50 was 2"), ("lost=0", " lost"), ("p99.9<1us", "p99.9 was ")):
        done = command.hodo(*plan, "--require", f"stall<10s,{condition}")
        assert done.returncode == 1 and f"{condition} is not met: " in done.stderr and says in done.stderr, done.stderr
    command.refused(*plan, "--require", "p98<1ms", status=2, says=["p99<1ms"])


def test_the_far_end_tells_its_side():
    for protocol in PROTOCOLS:
        far_end = command.document(protocol, "--test", "latency", "--sizes", "64", "--cpu", "0", *command.SHORT)["environment"]["far_end"]
        assert (far_end["wait"], far_end["placement"]) == ("adaptive", "cpu 0") and far_end["kernel"]
        assert (far_end["congestion_control"] is not None) == (protocol == "tcp"), "only TCP has any"
        assert far_end["line_bits_per_s"] is None, "the loopback has no line"


def test_datagrams_are_accounted_for():
    plan = ["--test", "rate", "--mode", "send", "--sizes", "1K", "--window", "4096", "--count", "20000"]
    (one,) = command.bench("udp", *plan, "--warmup", "0ms", "--repeat", "1", "--quiet")
    assert one["operations"] + one["loss"]["lost"] == 20000, "each is delivered or lost, and never more than were sent"


def test_the_standard_suite_runs_without_a_test_named():
    for protocol in ("tcp", "farm"):
        found = command.bench(protocol, *command.SHORT)
        assert {"latency", "rate"} <= {one["test"] for one in found}


def test_a_simulated_link_is_repeatable_to_the_byte():
    uri = "sim+udp://?delay=5us&jitter=4us&loss=0.01&seed=3"
    plan = ["--test", "rate", "--mode", "send", "--sizes", "64", *command.SHORT]
    first, second = (command.bench(uri, *plan) for _ in range(2))
    assert timeless(first) == timeless(second)
    assert first[0]["loss"]["lost"] > 0 and first[0]["limit"]["kind"] == "model"


def test_a_simulated_link_says_what_it_cost_this_host():
    plan = ["--test", "rate", "--mode", "send", "--sizes", "64", *command.SHORT]
    done = command.hodo("bench", "sim+udp://?delay=5us", *plan, "--json", "-")
    assert done.returncode == 0, done.stderr
    (one,) = contract.parse(done.stdout)["measurements"]
    cost = one["simulation"]
    assert all(value is None for value in one["cpu"].values()), "that would be CPU of virtual time"
    assert cost["times_real_time"] == pytest.approx(one["elapsed_s"] / cost["host_s"])
    used_s = cost["local"]["user_s"] + cost["local"]["system_s"]
    assert 0 < used_s <= cost["host_s"] * 1.1 + 0.02, "one thread computes it"
    assert cost["local_ns_per_operation"] == pytest.approx(used_s * 1e9 / one["operations"])
    assert cost["local"]["percent"] == pytest.approx(100 * used_s / cost["host_s"])


def timeless(found):
    """Measurements without what the processors of this machine add to them."""
    return [{name: value for name, value in one.items() if name not in ("cpu", "simulation")} for one in found]


@pytest.mark.parametrize("link", ["tcp", "sim+udp://?delay=5us"])
def test_stages_add_up_to_the_time_of_an_operation(link):
    plan = ["--test", "latency", "--mode", "both", "--sizes", "64", *command.SHORT]
    (one,) = command.bench(link, *plan, "--stages")
    local = [stage for stage in one["stages"] if stage["side"] == "local"]
    # On one processor the far end runs before the call that sends has returned: then those two are one.
    assert ", ".join(stage["name"] for stage in local) == "queue, send, wire and far end, completion"
    assert sum(stage["mean_ns"] for stage in local) == pytest.approx(one["latency_ns"]["mean"], rel=0.002)
    there = [stage for stage in one["stages"] if stage["side"] == "remote"]
    assert [stage["name"] for stage in there] == ["queue", "send", "network, waking"]
    assert sum(stage["share"] for stage in there) == pytest.approx(local[-2]["share"])
    (without,) = command.bench(link, *plan)
    assert without["stages"] == []


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


def test_windows_are_swept_in_one_run(tmp_path):
    plan = ["--test", "rate", "--mode", "receive", "--sizes", "1388", "--window", "1,4,16"]
    picture = tmp_path / "window.svg"
    found = command.bench("ipbus", *plan, "--plot", picture, *command.SHORT)
    assert [(one["window"], one["size_bytes"]) for one in found] == [(1, 1388), (4, 1388), (16, 1388)]
    assert "operations in flight per channel" in picture.read_text(encoding="utf-8")


def test_a_document_comes_from_a_pipe_and_has_an_end(tmp_path):
    file = tmp_path / "one.json"
    done = command.hodo("bench", "sim+udp", "--test", "latency", "--sizes", "64", "--duration", "10ms", "--quiet", "--json", file)
    assert done.returncode == 0, done.stderr
    piped = subprocess.run(["bash", "-c", f"{command.HODO} report <(cat {file}) --tsv -"], capture_output=True, text=True, timeout=60)
    assert piped.returncode == 0 and len(contract.parse_tsv(piped.stdout)) == 1, piped.stderr
    for words in (["report", "/dev/zero"], ["compare", file, "/dev/zero"], ["pva", "get", "-f", "/dev/zero"]):
        command.refused(*words, status=2, says=["/dev/zero.*it has more than 256 MiB"])
