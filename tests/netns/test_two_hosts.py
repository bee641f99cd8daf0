"""Two hosts over a wire of known rate: the limit row is right, and the measured rate is close to it."""

import command
import contract
import pytest
import shaped

RUN = ["--duration", "2s", "--repeat", "3", "--quiet"]
# A TCP stream over 1 Gbit/s Ethernet at MTU 1500, with timestamps, in Mbit/s of payload.
LIMIT_MBIT = 941.5
# What the wire carries in half a second: the warm-up is over by then.
HALF_A_SECOND_BYTES = 60_000_000


@pytest.fixture(scope="module")
def wire():
    with shaped.wire() as made:
        yield made


def between(wire, scheme, *plan):
    """The measurements of a plan with the tester at one end of the wire and the server at the other."""
    with command.serving(f"{scheme}://{wire.far_address}:0", prefix=wire.at_far()) as server:
        return command.bench(server.uri, *plan, *RUN, prefix=wire.at_near(), within=90)


def wait_until_sent(wire, count):
    """Until a run is under way: what it does before does not pass the wire."""
    command.wait_until(lambda: wire.sent_bytes() > count, f"{count} bytes have been sent")


@pytest.mark.long("timing")
@pytest.mark.parametrize("mode", ["send", "receive"])
def test_tcp_reaches_the_wires_limit(wire, mode):
    plan = ["--test", "rate", "--mode", mode, "--sizes", "128K", "--congestion", "cubic", "--line-rate", "1G"]
    (one,) = between(wire, "tcp", *plan)
    limit = one["limit"]
    assert (limit["kind"], limit["binds"]) == ("line", "line")
    assert limit["payload_bits_per_s"] / 1e6 == pytest.approx(LIMIT_MBIT, abs=0.1)
    assert 0.94 <= one["share_of_limit"] <= 1.01, one["rate"]
    assert one["verdict"]["state"] == "stable", one["verdict"]


@pytest.mark.long("timing")
def test_a_wire_that_slows_by_22_percent_is_not_stable(wire, tmp_path):
    result = tmp_path / "result.json"
    with command.serving(f"tcp://{wire.far_address}:0", prefix=wire.at_far()) as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "128K", "--line-rate", "1G"]
        lasting = ["--warmup", "100ms", "--duration", "3s", "--repeat", "1", "--json", result, "--quiet"]
        before = wire.sent_bytes()
        with command.started(*run, *lasting, prefix=wire.at_near()) as tester:
            wait_until_sent(wire, before + 3 * HALF_A_SECOND_BYTES)
            shaped.shape(wire.near, shaped.TBF_KBIT * 78 // 100, how="change")
            try:
                said, _ = tester.communicate(timeout=40)
            finally:
                shaped.shape(wire.near, shaped.TBF_KBIT, how="change")
    assert tester.returncode == 0, said
    (one,) = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert one["verdict"]["state"] == "drifting" and "the rate falls" in one["verdict"]["text"], one["verdict"]


@pytest.mark.long("timing")
@pytest.mark.parametrize(("mode", "limit_mbit"), [("receive", 946.8), ("send", 941.3)])
def test_ipbus_reaches_the_wires_limit(wire, mode, limit_mbit):
    plan = ["--test", "rate", "--mode", mode, "--sizes", "1M", "--line-rate", "1G"]
    (one,) = between(wire, "ipbusudp-2.0", *plan)
    limit = one["limit"]
    assert (limit["kind"], limit["binds"]) == ("line", "line")
    assert limit["payload_bits_per_s"] / 1e6 == pytest.approx(limit_mbit, abs=0.1)
    assert 0.9 <= one["share_of_limit"] <= 1.01, one["rate"]


def test_the_far_ends_cpu_comes_back_over_the_link(wire):
    (one,) = between(wire, "tcp", "--test", "rate", "--mode", "send", "--sizes", "128K", "--line-rate", "1G")
    remote = one["cpu"]["remote"]
    assert remote["max_rss_bytes"] > 0 and remote["user_s"] + remote["system_s"] > 0
    assert one["cpu"]["remote_ns_per_operation"] > 0


def test_datagrams_over_the_wires_rate_are_lost_and_counted(wire):
    plan = ["--test", "rate", "--mode", "send", "--sizes", "1K", "--window", "4096", "--line-rate", "1G"]
    (one,) = between(wire, "udp", *plan)
    assert one["rate"]["payload_bits_per_s"]["median"] <= one["limit"]["payload_bits_per_s"] * 1.01
    assert one["operations"] > 0


@pytest.mark.parametrize("mode", ["both", "send"])
def test_what_this_hosts_kernel_does_not_send_is_refused_and_not_lost(wire, mode, tmp_path):
    result = tmp_path / "result.json"
    route = ("prohibit", f"{wire.far_address}/32")
    with command.serving(f"udp://{wire.far_address}:0", prefix=wire.at_far()) as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", mode, "--sizes", "1K", "--window", "8"]
        before = wire.sent_bytes()
        lasting = ["--warmup", "0ms", "--duration", "2s", "--repeat", "1", "--json", result, "--quiet"]
        with command.started(*run, *lasting, prefix=wire.at_near()) as tester:
            wait_until_sent(wire, before + HALF_A_SECOND_BYTES // 10)
            shaped.ip("-n", wire.near, "route", "add", *route)
            command.wait_until_asleep(tester.pid, server.pid)
            shaped.ip("-n", wire.near, "route", "del", *route)
            said, _ = tester.communicate(timeout=40)
    assert tester.returncode == 0, said
    (one,) = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert one["loss"]["refused"] > 0 and one["loss"]["lost"] == 0, one["loss"]


def test_a_wire_that_is_cut_in_the_middle_of_a_run(wire, tmp_path):
    result = tmp_path / "result.json"
    with command.serving(f"tcp://{wire.far_address}:0", prefix=wire.at_far()) as server:
        run = ["bench", server.uri, "--test", "rate", "--mode", "send", "--sizes", "128K", "--line-rate", "1G"]
        before = wire.sent_bytes()
        with command.started(*run, "--duration", "30s", "--json", result, "--quiet", prefix=wire.at_near()) as tester:
            wait_until_sent(wire, before + HALF_A_SECOND_BYTES)
            shaped.ip("-n", wire.far, "link", "set", "wire", "down")
            try:
                said, _ = tester.communicate(timeout=40)
            finally:
                shaped.ip("-n", wire.far, "link", "set", "wire", "up")
    assert tester.returncode == 1, said
    found = contract.parse(result.read_text(encoding="utf-8"))["measurements"]
    assert found[-1]["verdict"]["state"] in ("interrupted", "failed") and found[-1]["operations"] > 0
