"""Two flows at the same time, each with a row of its own."""

import json

import command
import pytest

RUN = ["--duration", "200ms", "--warmup", "50ms", "--repeat", "2", "--quiet"]


@pytest.mark.long("timing")
@pytest.mark.parametrize("link", ["tcp", "udp", "unix", "ipbus"])
def test_both_directions_have_a_row_each(link):
    out, back = command.bench(link, "--test", "rate", "--sizes", "1K", "--bidir", *RUN)
    assert (out["mode"], back["mode"]) == ("send", "receive")
    assert min(out["operations"], back["operations"]) > 100
    assert (out["beside"]["mode"], back["beside"]["mode"]) == ("receive", "send")
    # The CPU time of the process is that of both.
    assert out["cpu"]["local"] and out["cpu"]["local_ns_per_operation"] is None
    for row in (out, back):
        assert (row["limit"] or {}).get("binds") not in ("cpu", "others") and "other programs" not in row["verdict"]["text"], row


def test_a_row_is_measured_alone_and_beside_a_load_of_another_protocol():
    alone, loaded, load = command.bench("pva", "--test", "latency", "--sizes", "8", "--under", "tcp", *RUN)
    assert [row["protocol"] for row in (alone, loaded, load)] == ["pva", "pva", "tcp"]
    assert "beside" not in alone and loaded["beside"]["protocol"] == "tcp" and load["beside"]["test"] == "latency"
    assert load["rate"]["payload_bits_per_s"]["median"] > 1e8


def test_rows_are_compared_only_with_those_beside_the_like(tmp_path):
    files = [tmp_path / "alone.json", tmp_path / "loaded.json"]
    for file, more in zip(files, ([], ["--under", "tcp"]), strict=True):
        done = command.hodo("bench", "tcp", "--test", "latency", "--sizes", "64", *more, *RUN, "--json", file)
        assert done.returncode == 0, done.stderr
    done = command.hodo("compare", *files)
    assert len(json.loads(files[1].read_text(encoding="utf-8"))["measurements"]) == 3
    assert "only in" in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sim+tcp", "--test", "rate", "--bidir"], "a simulated link carries one flow"),
        (["tcp", "--test", "rate", "--bidir", "--count", "10"], "take --duration and --repeat"),
        (["farm", "--test", "rate", "--bidir"], "goes one way"),
        (["tcp", "--test", "rate", "--bidir", "--mode", "send"], "--mode"),
        (["tcp", "--test", "latency", "--under", "nonsense://"], "nonsense"),
        (["tcp", "--bidir", "--slo", "p99<1ms"], "--slo measures one flow"),
    ],
)
def test_what_cannot_be_is_refused(arguments, says):
    done = command.hodo("bench", *arguments)
    assert done.returncode == 2 and says in done.stderr, done.stderr
