"""`--window none`: what is sent and never waited for, beside what arrives."""

import command
import pytest

SHORT = ["--test", "rate", "--mode", "send", "--duration", "300ms", "--repeat", "2", "--quiet"]


@pytest.mark.long("timing")
def test_what_is_sent_stands_beside_what_arrives():
    (one,) = command.bench("udp", *SHORT, "--sizes", "1472", "--window", "none")
    sent, arrived = one["sent"], one["rate"]["payload_bits_per_s"]["median"]
    assert sent["operations"] == pytest.approx(one["operations"] + one["loss"]["lost"], rel=0.02)
    assert 0 < arrived <= 1.1 * sent["payload_bits_per_s"]
    assert sent["payload_bits_per_s"] == pytest.approx(8 * 1472 * sent["operations_per_s"])
    assert one["window"] is None and one["latency_ns"] is None
    assert one["verdict"]["state"] != "failed"


@pytest.mark.parametrize(("network", "share"), [("rate=100M&queue=8K&mtu=1500&overhead=38", 0.2), ("rate=1G&loss=0.3", 0.7)])
def test_a_stream_beyond_the_line_arrives_at_its_rate(network, share):
    """A window would have held it back: at five times the line a fifth arrives, and the rest is lost."""
    (one,) = command.bench(f"sim+udp://?delay=500us&{network}", *SHORT, "--sizes", "1472", "--window", "none", "--pace", "487M")
    assert one["rate"]["payload_bits_per_s"]["median"] / one["sent"]["payload_bits_per_s"] == pytest.approx(share, abs=0.03)
    assert one["loss"]["lost"] / one["sent"]["operations"] == pytest.approx(1 - share, abs=0.03)


def test_windows_and_none_are_measured_in_one_run():
    rows = command.bench("sim+udp://?delay=100us&rate=100M", *SHORT, "--sizes", "1K", "--window", "4,none")
    assert [row["window"] for row in rows] == [4, None]
    assert "sent" not in rows[0]


@pytest.mark.long("timing")
def test_it_paces_what_it_sends():
    (one,) = command.bench("udp", *SHORT, "--sizes", "1K", "--window", "none", "--pace", "20M")
    assert one["sent"]["payload_bits_per_s"] == pytest.approx(20e6, rel=0.1)
    assert one["loss"]["lost"] == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["tcp", "--test", "rate", "--mode", "send"], "it is for datagrams, as udp --mode send"),
        (["ipbus", "--test", "rate"], "it is for datagrams, as udp --mode send"),
        (["udp", "--test", "rate", "--mode", "both"], "--test rate or channels and --mode send"),
        (["udp", "--test", "open", "--rate", "1K", "--mode", "send"], "--test rate or channels and --mode send"),
        (["udp"], "--test rate or channels and --mode send"),
        (["udp", "--test", "rate", "--mode", "send", "--stages"], "it has no stages"),
    ],
)
def test_what_has_no_such_stream_says_so(words, says):
    done = command.hodo("bench", *words, "--window", "none")
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_a_window_that_is_none_of_these_is_refused():
    done = command.hodo("bench", "udp", "--window", "many")
    assert done.returncode == 2 and "write a number of operations in 1..=1048576, or none" in done.stderr
