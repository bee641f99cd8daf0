"""`--pace`: the most payload bits per second of a closed loop, over real sockets."""

import command
import pytest

PACE = 8e6
SIZES = [("tcp", 16 * 1024), ("tcp", 1024), ("udp", 1472), ("unix", 4096)]


@pytest.mark.long("timing")
@pytest.mark.parametrize(
    ("link", "size", "mode"),
    [
        *((link, size, mode) for link, size in SIZES for mode in ("send", "receive", "both")),
        ("ipbus", 1024, "send"),
        ("ipbus", 1024, "receive"),
    ],
)
def test_a_link_keeps_its_pace(link, size, mode):
    plan = ["--test", "rate", "--mode", mode, "--sizes", str(size), "--pace", "8M", "--duration", "500ms", "--repeat", "1", "--quiet"]
    (one,) = command.bench(link, *plan)
    assert one["pace_asked"] == PACE
    assert one["rate"]["payload_bits_per_s"]["median"] == pytest.approx(PACE, rel=0.05)
    assert one["limit"]["binds"] == "schedule" and one["share_of_limit"] == pytest.approx(1, rel=0.05), one["limit"]


@pytest.mark.long("timing")
def test_a_pace_is_of_all_channels():
    plan = ["--test", "channels", "--channels", "10", "--sizes", "4K", "--pace", "8M", "--duration", "500ms", "--repeat", "1", "--quiet"]
    (one,) = command.bench("tcp", *plan)
    assert one["rate"]["payload_bits_per_s"]["median"] == pytest.approx(PACE, rel=0.05)


@pytest.mark.parametrize("test", ["latency", "open --rate 10", "updates"])
def test_a_test_without_a_pace_says_which_has_one(test):
    done = command.hodo("bench", "tcp", "--test", *test.split(), "--pace", "1G")
    assert done.returncode == 2
    assert "has no pace; for a schedule use --test open --rate" in done.stderr
