"""`hodo bench` over SpaceWire: the simulated link beside the formulas, a bridge in real time, SSDTP2 and RMAP by themselves."""

import re
import signal

import command
import contract
import pytest
import spacewire

QUICK = ["--duration", "20ms", "--warmup", "2ms", "--repeat", "1", "--quiet"]
SECOND = ["--duration", "1s", "--warmup", "300ms", "--repeat", "1", "--quiet"]
RATE = 200e6


def one_way(size):
    return RATE * 8 * size / (10 * size + 4)


def both_ways(size):
    return RATE * 8 * size / (10 * size + 4 + (size + 1) / 2)


def bits(row):
    return row["rate"]["payload_bits_per_s"]["median"]


@pytest.mark.parametrize(("mode", "formula"), [("send", one_way), ("receive", one_way), ("both", both_ways)])
def test_the_simulated_link_counts_what_the_formula_says(mode, formula):
    rows = command.bench("spw+sim://", *QUICK, "--test", "rate", "--mode", mode, "--sizes", "60,1024", "--window", 64)
    for row, size in zip(rows, [60, 1024], strict=True):
        assert bits(row) == pytest.approx(formula(size), rel=1e-3)
        assert row["limit"]["kind"] == "model" and row["limit"]["payload_bits_per_s"] == pytest.approx(formula(size), rel=1e-9)
        assert row["share_of_limit"] == pytest.approx(1, rel=1e-3)


def test_the_published_figures_are_found_again():
    rows = command.bench("spw+sim://", *QUICK, "--test", "rate", "--mode", "send", "--sizes", "1,60,1024", "--window", 64)
    assert [round(row["limit"]["payload_bits_per_s"] / 1e6, 3) for row in rows] == [114.286, 158.940, 159.938]
    rows = command.bench("spw+sim://", *QUICK, "--test", "rate", "--mode", "both", "--sizes", "1,60,1024", "--window", 64)
    assert [round(row["limit"]["payload_bits_per_s"] / 1e6, 3) for row in rows] == [106.667, 151.300, 152.317]


@pytest.mark.parametrize(("routers", "rate", "mode"), [(1, "200M", "both"), (2, "200M", "receive"), (3, "200M", "send"), (2, "66M", "both")])
def test_a_router_takes_what_the_theory_says(routers, rate, mode):
    link = f"spw+sim://?routers={routers}&rate={rate}"
    for row in command.bench(link, *QUICK, "--test", "rate", "--mode", mode, "--sizes", "8,60"):
        assert row["share_of_limit"] == pytest.approx(1, abs=1e-3), row["limit"]


@pytest.mark.parametrize(("options", "mode"), command.spread(["", "&routers=1", "&routers=3", "&routers=2&rate=66M", "&routers=1&time-codes=1000"], ["send", "receive"]))
def test_memories_over_a_simulated_link_take_what_the_theory_says(options, mode):
    for row in command.bench(f"spw+sim://?far=rmap{options}", *QUICK, "--test", "rate", "--mode", mode, "--sizes", "60,256", "--window", 16):
        assert row["share_of_limit"] == pytest.approx(1, abs=1e-3), row["limit"]
        assert row["loss"]["lost"] == 0 and row["loss"]["refused"] == 0


def test_routers_cables_and_time_codes_cost_what_they_should():
    (row,) = command.bench("spw+sim://?routers=2&cable=10", *QUICK, "--test", "latency", "--mode", "send", "--sizes", 60)
    # Two bits behind a packet confirm it.
    expected = (10 * 62 + 4 + 2) * 5 + 3 * 50 + 2 * (133.3 + 546.7)
    assert row["limit"]["latency_ns"] == pytest.approx(expected, abs=1)
    assert expected - 1 <= row["latency_ns"]["p50"] <= expected + 120
    (row,) = command.bench("spw+sim://?time-codes=100000", *QUICK, "--test", "rate", "--mode", "send", "--sizes", 1024, "--window", 16)
    assert bits(row) == pytest.approx(one_way(1024) * (1 - 14e5 / RATE), rel=1e-3)


@pytest.mark.parametrize(("mode", "waits"), [("send", 10), ("both", 15)])
def test_a_long_cable_leaves_what_credit_allows(mode, waits):
    (row,) = command.bench("spw+sim://?cable=1000", *QUICK, "--test", "rate", "--mode", mode, "--sizes", 1024, "--window", 64)
    # 56 N-chars, 1025 of which make a packet, in the time of eight, the cable there and back, and an FCT.
    bits_of_eight = 8 * (10 * 1024 + 4) / 1025
    assert row["limit"]["payload_bits_per_s"] == pytest.approx(56 * 8 * 1024 / 1025 * RATE / (bits_of_eight + 2000 + waits), rel=1e-4)
    assert row["share_of_limit"] == pytest.approx(1, abs=1e-2)
    assert row["limit"]["binds"] == "window" and "56 N-chars of credit" in row["limit"]["formula"]


def test_what_errors_cut_is_lost_and_a_seed_repeats_it():
    run = lambda seed: command.bench("spw+sim://?errors=1e-6", *QUICK, "--test", "rate", "--mode", "send", "--sizes", 64, "--seed", seed)[0]
    first, again, other = run(1), run(1), run(2)
    assert first["loss"]["lost"] > 0 and first["loss"] == again["loss"] and bits(first) == bits(again)
    assert bits(first) != bits(other)


def test_the_three_tests_of_the_published_tester(tmp_path):
    run = ["--duration", "2ms", "--warmup", "1ms", "--repeat", "1", "--quiet"]
    done = command.hodo("bench", "spw+sim://", "--preset", "star-tester", *run, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = contract.parse_tsv((tmp_path / "out/result.tsv").read_text())
    found = {(row["test"], row["mode"]) for row in rows}
    assert found == {(test, mode) for test in ("rate", "random") for mode in ("send", "receive", "both")} | {("latency", "send")}
    plots = {plot.stem: plot.read_text() for plot in (tmp_path / "out/plots").iterdir()}
    assert {"rate", "operations", "latency", "cpu"} <= set(plots)
    assert all(text in plots["operations"] for text in (">Operations<", ">Average time<", ">limit (model)<"))
    # In virtual time CPU is no share of anything: what computing costs this host stands in its place.
    assert ">This host<" in plots["cpu"] and ">CPU of this process<" not in plots["cpu"]
    assert all(float(row["simulation_times_real_time"]) > 0 and row["cpu_local_percent"] == "" for row in rows)
    # The average time of a packet is the elapsed time over their number, not how long each is under way in the window.
    (byte,) = (row for row in rows if (row["test"], row["mode"], row["size_bytes"]) == ("rate", "send", "1"))
    assert float(byte["average_packet_time_us"]) == pytest.approx(0.070, rel=1e-3)


def test_a_lone_packet_takes_its_bits_the_rest_of_a_null_and_the_parity_bit_behind_it():
    for row, size in zip(command.bench("spw+sim://", *QUICK, "--test", "latency", "--mode", "send", "--sizes", "1,2,60"), (1, 2, 60), strict=True):
        assert row["limit"]["latency_ns"] == pytest.approx((10 * size + 4 + 6 + 2) * 5)
        assert row["share_of_limit"] == pytest.approx(1, abs=0.01)


def test_the_published_facts_stand_beside_the_same_tests():
    run = ["--duration", "1ms", "--warmup", "0ms", "--repeat", "1", "--sizes", "1,60"]
    done = command.hodo("bench", "spw+sim://", "--preset", "star-tester", *run, "--json", "-")
    rows = contract.parse(done.stdout)["measurements"]
    published = {(row["test"], row["mode"], row["size_bytes"]): row["published"] for row in rows if row.get("published")}
    one_way = [("rate", mode, size) for mode in ("send", "receive") for size in (1, 60)]
    assert set(published) == {*one_way, ("latency", "send", 1), ("latency", "send", 60)}
    assert [published["rate", "send", size][0]["payload_bits_per_s"] for size in (1, 60)] == [pytest.approx(200e6 * 8 / 14), 160e6]
    assert published["latency", "send", 60][0]["latency_max_ns"] == 100_000
    for words in ("14 bits for a byte alone", "close to that from 60 bytes on", r"less than 100 µs", "1/rate"):
        assert re.search(words, re.sub(r"\s+", " ", done.stderr)), done.stderr


def test_the_published_tests_read_and_write_a_memory():
    run = ["--duration", "1ms", "--warmup", "0ms", "--repeat", "1", "--quiet"]
    rows = command.bench("spw+sim://?far=rmap", "--preset", "star-tester", *run)
    assert {(row["test"], row["mode"]) for row in rows} == {(test, mode) for test in ("rate", "random", "latency") for mode in ("send", "receive")}


def test_packets_between_two_processes_all_arrive():
    for mode, sizes in [("send", "60"), ("receive", "65536"), ("both", "1,65536")]:
        for row in command.bench("ssdtp2", *command.SHORT, "--test", "rate", "--mode", mode, "--sizes", sizes, "--window", 64):
            assert row["loss"]["lost"] == 0 and row["rate"]["operations_per_s"]["median"] > 0, row


def test_channels_have_connections_of_their_own():
    (row,) = command.bench("ssdtp2", *command.SHORT, "--test", "channels", "--mode", "both", "--sizes", 60, "--channels", 8)
    assert row["channels"] == 8 and row["loss"]["lost"] == 0


def test_memories_are_read_and_written(tmp_path):
    for mode in ["receive", "send"]:
        rows = command.bench("ssdtp2?far=rmap", *command.SHORT, "--test", "rate", "--mode", mode, "--sizes", "4,4096", "--window", 16)
        assert all(row["loss"]["lost"] == 0 and row["loss"]["refused"] == 0 for row in rows)
    with spacewire.bridge(tmp_path) as bridge:
        memory = f"?far=rmap&path={spacewire.MEMORY}&back-path={spacewire.GRESB}"
        (row,) = command.bench(bridge.gresb + memory, *command.SHORT, "--test", "latency", "--mode", "receive", "--sizes", 4)
        assert row["latency_ns"]["p50"] > 0
        beyond = f"?far=rmap&path={spacewire.MEMORY}&back-path={spacewire.HOST}&address=0xFFFFFFFF"
        says = ["not implemented or not authorised"]
        command.refused("bench", bridge.host + beyond, *command.SHORT, "--mode", "receive", "--sizes", 4, status=1, says=says)


def test_an_echo_and_a_second_port_are_far_ends(tmp_path):
    with spacewire.bridge(tmp_path) as bridge:
        echo = f"?far=echo&path={spacewire.ECHO}"
        (row,) = command.bench(bridge.host + echo, *command.SHORT, "--test", "latency", "--sizes", 8)
        assert row["mode"] == "both" and row["loss"]["lost"] == 0
        back = f"?back={bridge.ports[1]}&path={spacewire.SECOND}&back-path={spacewire.HOST}&rate=200M&routers=1"
        for mode in ["send", "receive", "both"]:
            (row,) = command.bench(bridge.host + back, *command.SHORT, "--test", "latency", "--mode", mode, "--sizes", 60)
            assert row["limit"]["kind"] == "line" and row["latency_ns"]["p50"] > row["limit"]["latency_ns"]


@pytest.mark.parametrize("plan", [["latency", "--sizes", 4], ["rate", "--sizes", 4, "--window", 16]])
def test_a_bridge_that_is_stopped_is_no_clean_row_of_a_memory(tmp_path, plan):
    result = tmp_path / "result.json"
    run = ["--duration", "60s", "--warmup", "0ms", "--repeat", "1", "--timeout", "1s", "--json", result, "--quiet"]
    with spacewire.bridge(tmp_path) as bridge:
        memory = f"{bridge.host}?far=rmap&path={spacewire.MEMORY}&back-path={spacewire.HOST}"
        with command.started("bench", memory, "--mode", "receive", "--test", *map(str, plan), *run) as tester:
            command.wait_until_busy(tester.pid, 0.05)
            bridge.process.send_signal(signal.SIGSTOP)
            try:
                said, _ = tester.communicate(timeout=20)
            finally:
                bridge.process.send_signal(signal.SIGCONT)
        assert tester.returncode == 1 and "stalled" in said, said
    (one,) = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert one["verdict"]["state"] in ("interrupted", "failed") and one["loss"]["lost"] >= 1 and one["loss"]["refused"] == 0


def test_a_row_says_how_far_the_bridge_fell_behind(tmp_path):
    pages = command.free_port()
    with spacewire.bridge(tmp_path, preset="cable", pages=pages) as bridge:
        link = f"{bridge.host}?back={bridge.ports[1]}&rate=200M&pages=127.0.0.1:{pages}"
        plan = ["--test", "rate", "--mode", "send", "--sizes", 60, "--window", 64]
        (row,) = command.bench(link, *QUICK, *plan)
        # A host that is busy may have taken the processor away, which the verdict tells then.
        assert 0 <= row["shortfall_s"] < 10 and ("behind its pace" in row["verdict"]["text"]) == (row["shortfall_s"] > 0)
        nobody = command.free_port()
        for place, status, says in [("x", 2, "127.0.0.1:9209"), (f"127.0.0.1:{nobody}", 1, "--metrics")]:
            command.refused("bench", f"{bridge.host}?back={bridge.ports[1]}&pages={place}", *QUICK, *plan, status=status, says=[says])


@pytest.mark.long("timing")
@pytest.mark.parametrize("mode", ["send", "both"])
def test_a_bridge_in_real_time_keeps_up_with_its_line(tmp_path, mode):
    with spacewire.bridge(tmp_path, preset="cable") as bridge:
        link = f"{bridge.host}?back={bridge.ports[1]}&rate=200M"
        before = command.cpu_s(bridge.pid)
        (row,) = command.bench(link, *SECOND, "--test", "rate", "--mode", mode, "--sizes", 60, "--window", 1024)
        used = (command.cpu_s(bridge.pid) - before) / 1.3
        print(f"{mode}: {row['share_of_limit']:.4f} of the line, the bridge at {used:.2f} of a core")
        assert 0.97 <= row["share_of_limit"] <= 1.005
        # Above that something is wrong, whatever the host.
        assert used < 0.9


@pytest.mark.parametrize(("link", "says"), [
    ("spw://", ["spw\\+sim"]),
    ("sim+ssdtp2://", ["spw\\+sim"]),
    ("spw+sim://host", ["names a host"]),
    ("spw+sim://?speed=1", ["`speed`", "rate=200M"]),
    ("spw+sim://?rate=1k", ["rate=2M"]),
    ("spw+sim://?far=echo", ["far=rmap"]),
    ("ssdtp2://127.0.0.1?routers=1", ["rate=200M"]),
    ("ssdtp2://127.0.0.1?back=99999", ["back=99999", "1 to 65535", "HOST:PORT"]),
    ("ssdtp2://127.0.0.1:10031?back=10031", ["a port of the link itself", "far=echo"]),
    ("gresb://127.0.0.1:3000?back=3001", ["a port of the link itself"]),
    ("ssdtp2://127.0.0.1?back=1&back=2", ["option `back` is there twice"]),
    ("spw+sim://?time-codes=1e9", ["half of the line", "7142857"]),
    ("ssdtp2://99999?far=echo", ["a number and no host"]),
    ("gresb", ["gresb"]),
])
def test_a_wrong_link_is_told(link, says):
    command.refused("bench", link, *QUICK, status=(1, 2), says=says)


def test_packets_that_a_bridge_does_not_take_are_told(tmp_path):
    (tmp_path / "long").write_bytes(bytes(3_000_000))
    with spacewire.bridge(tmp_path) as bridge:
        command.refused("bench", f"{bridge.host}?far=echo", *QUICK, "--test", "rate", "--sizes", "2M", status=1, says=["2097152 bytes", "packet_max"])
        command.refused("spacewire", "send", bridge.host, "--input", tmp_path / "long", status=1, says=["3000000 bytes", "packet_max"])


def test_a_port_serves_one_host():
    says = ["--channels 2", "one host"]
    command.refused("bench", "ssdtp2://127.0.0.1?far=echo", *QUICK, "--test", "channels", "--channels", 2, status=2, says=says)
