"""`--stream`: a line of JSON for each interval while a run goes on."""

import json
import os
import pty
import subprocess

import command
import pytest

LONG = ["--warmup", "0", "--repeat", "1", "--every", "100ms"]


def streamed(*arguments):
    """The lines of a run that has to succeed, and what it says to people."""
    done = command.hodo("bench", *arguments, "--stream", "-")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of(lines, event):
    return [line for line in lines if line["event"] == event]


@pytest.mark.parametrize("link", ["tcp", "udp", "sim+tcp://?delay=1ms"])
def test_every_interval_has_a_line(link):
    lines, said = streamed(link, "--test", "rate", "--mode", "both", "--sizes", "64", *LONG, "--duration", "1s")
    step, *intervals, result, end = lines
    assert (step["event"], step["schema"], step["size_bytes"], step["every_s"]) == ("step", "hodo.stream/1", 64, 0.1)
    assert {line["event"] for line in intervals} == {"interval"}
    # On a busy machine some last longer, and none is there twice.
    assert 4 <= len(intervals) <= 11
    assert result["event"] == "result" and result["verdict"]["state"] and "histogram" not in result["latency_ns"]
    # Counted, so that nothing is missing and nothing is there twice.
    assert sum(line["operations"] for line in intervals) == result["operations"] > 0
    assert sum(line["payload_bytes"] for line in intervals) == result["payload_bytes"]
    assert sum(line["latency_ns"]["count"] for line in intervals if line["latency_ns"]) == result["latency_ns"]["count"]
    assert [line["t_s"] for line in intervals] == sorted(line["t_s"] for line in intervals)
    for line in filter(lambda line: line["operations"], intervals[:-1]):
        assert 0.05 < line["lasted_s"] < 1
        assert line["operations_per_s"] == pytest.approx(line["operations"] / line["lasted_s"])
        assert line["latency_ns"]["p50"] <= line["latency_ns"]["p99"] <= line["latency_ns"]["max"]
    if link == "tcp":
        assert all(line["tcp"]["congestion_window"] > 0 and line["tcp"]["retransmitted"] is not None for line in intervals)
        assert intervals[0]["tcp"]["rtt_ns"] > 0
    assert end == {"event": "end", "lines": len(lines) - 1, "skipped": 0}
    # The table is for people, who read standard error then.
    assert "verdict" in said


def test_a_silence_is_lines_of_nothing():
    plan = ["--test", "open", "--rate", "500", "--sizes", "64", "--duration", "6s", "--warmup", "0", "--repeat", "1"]
    lines, _ = streamed("sim+tcp://?delay=50us&partition=2s..4s", *plan, "--every", "200ms")
    silent = [line["t_s"] for line in of(lines, "interval") if line["operations"] == 0]
    assert 9 <= len(silent) <= 14 and 2 < silent[0] < 2.5, silent
    assert all(line["latency_ns"] is None for line in of(lines, "interval") if line["operations"] == 0)
    assert sum(line["retransmitted"] for line in of(lines, "interval")) > 0


def test_several_steps_and_channels():
    lines, _ = streamed("tcp", "--test", "channels", "--channels", "8", "--sizes", "64,1K", *LONG, "--duration", "300ms")
    assert [line["step"] for line in of(lines, "step")] == [1, 2] == [line["step"] for line in of(lines, "result")]
    for result in of(lines, "result"):
        intervals = [line for line in of(lines, "interval") if line["step"] == result["step"]]
        assert sum(line["operations"] for line in intervals) == result["operations"]


def test_a_stream_goes_into_a_file(tmp_path):
    file = tmp_path / "stream.jsonl"
    done = command.hodo("bench", "sim+tcp", "--test", "rate", "--sizes", "64", "--stream", file, "--json", "-", "--quiet")
    assert done.returncode == 0 and json.loads(done.stdout)["measurements"]
    assert done.stderr == "", "a stream is a file that keeps figures"
    assert [json.loads(line)["event"] for line in file.read_text().splitlines()] == ["step", "interval", "result", "end"]


@pytest.mark.parametrize("form", ["--json", "--tsv", "--html"])
def test_two_forms_do_not_mix(form):
    command.refused("bench", "tcp", form, "-", "--stream", "-", status=2, says=["--stream -", "file"])


def test_what_cannot_be_is_refused():
    command.refused("bench", "tcp", "--stream", "/no/such/folder/a", status=2, says=["--stream /no/such/folder/a", "written"])
    command.refused("bench", "tcp", "--every", "1us", status=2, says=["--every"])
    command.refused("bench", "tcp", "--every", "5ms", status=2, says=["10ms"])


def test_a_full_disk_ends_the_run_with_a_word():
    done = command.hodo("bench", "tcp", "--test", "rate", "--sizes", "64", *LONG, "--duration", "30s", "--stream", "/dev/full", within=20)
    assert done.returncode == 1 and "--stream cannot be written" in done.stderr and "panicked" not in done.stderr


def test_a_reader_that_goes_away_ends_the_run():
    plan = ["--test", "rate", "--sizes", "64", *LONG, "--duration", "60s"]
    with command.started("bench", "tcp", *plan, "--stream", "-", stderr=subprocess.PIPE) as run:
        assert json.loads(run.stdout.readline())["event"] == "step"
        run.stdout.close()
        said = run.stderr.read()
        assert run.wait(20) == 1
    assert "reader has closed it" in said and "interrupted" in said and "panicked" not in said, said


# More lines than the queue and a pipe of this size hold.
MANY = ["--test", "rate", "--sizes", "64", "--warmup", "0", "--repeat", "1", "--duration", "1s", "--every", "10ms"]
SMALL = {"pipesize": 4096}


def test_a_slow_reader_loses_lines_with_a_count_and_slows_nothing(tmp_path):
    file = tmp_path / "result.json"
    with command.started("bench", "tcp", *MANY, "--stream", "-", "--json", file, stderr=subprocess.DEVNULL, **SMALL) as run:
        command.wait_until(file.exists, "the step is over")
        lines = [json.loads(line) for line in run.stdout]
        assert run.wait(20) == 0
    (measurement,) = json.loads(file.read_text())["measurements"]
    end = lines[-1]
    assert end["event"] == "end" and end["skipped"] > 0 and end["lines"] == len(lines) - 1, end
    assert sum(line["operations"] for line in of(lines, "interval")) <= measurement["operations"]


def test_a_reader_that_never_reads_does_not_hold_up_the_end(tmp_path):
    file = tmp_path / "result.json"
    with command.started("bench", "tcp", *MANY, "--stream", "-", "--json", file, stderr=subprocess.PIPE, **SMALL) as run:
        said = run.stderr.read()
        assert run.wait(20) == 1
    assert "takes no more lines" in said, said
    assert json.loads(file.read_text())["measurements"][0]["verdict"]["state"] != "interrupted"


def test_the_live_line_has_the_interval():
    ours, theirs = pty.openpty()
    plan = ["--test", "rate", "--sizes", "64", *LONG, "--duration", "1s"]
    with command.started("bench", "tcp", *plan, stdout=subprocess.DEVNULL, stderr=theirs) as run:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            said += piece
        assert run.wait(20) == 0
    os.close(ours)
    text = said.decode()
    assert "resent, rtt " in text and "bit/s, " in text, text
