"""`hodo watch`: a link is measured again and again, and nothing that its far end does ends that."""

import json
import re
import signal
import time
import urllib.request

import command
import contract
import pytest

BOARD = command.ROOT / "docs/examples/watch-grafana.json"
# Slow enough to be computed at once.
SIMULATED = "sim+tcp://?delay=1ms&rate=100M"
QUICK = ["--duration", "50ms", "--warmup", "0", "--repeat", "1", "--every", "200ms", "--timeout", "300ms", "--metrics", "127.0.0.1:0"]


def watching(*arguments):
    return command.started("watch", *arguments, *QUICK)


def pages(process):
    return command.announced(process, r"pages (?:on|at) (?:http://)?([\d.]+:\d+)")[1]


def page(at, path="/metrics"):
    with urllib.request.urlopen(f"http://{at}{path}", timeout=5) as answer:
        return answer.read().decode()


def value(at, name):
    """The first value of a metric; None where it is not there yet."""
    found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", page(at), re.MULTILINE)
    return found and float(found[1])


def test_the_figures_are_there_for_prometheus():
    with command.serving("tcp://127.0.0.1:0") as far, watching(far.uri, "--require", "p99<1ns") as watch:
        at = pages(watch)
        assert page(at, "/health") == "ready\n"
        command.wait_until(lambda: (value(at, "hodo_watch_rounds_total") or 0) >= 2, "two rounds")
        text = page(at)
        watch.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert watch.wait(5) == 0
        assert time.monotonic() - begun < 1
    assert 'hodo_watch_up{link="tcp://' in text and re.search(r"^hodo_watch_up{.*} 1$", text, re.MULTILINE)
    assert {found for found in re.findall(r'test="(\w+)"', text)} == {"latency", "rate"}
    assert float(re.search(r"^hodo_watch_conditions_missed_total{.*} (\d+)$", text, re.MULTILINE)[1]) >= 4
    (p50,) = re.findall(r'^hodo_watch_latency_p50_seconds{.*test="latency".*} (\S+)$', text, re.MULTILINE)
    assert 0 < float(p50) < 0.1
    (at_s,) = set(re.findall(r"^hodo_watch_measured_timestamp_seconds{.*} (\S+)$", text, re.MULTILINE))
    assert abs(float(at_s) - time.time()) < 60


def test_every_metric_and_label_of_the_board_is_told():
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    with watching("sim+tcp://?rate=1G", "--count", "1000") as watch:
        at = pages(watch)
        command.wait_until(lambda: value(at, "hodo_watch_rounds_total"), "a round")
        told = page(at)
    names = set(re.findall(r"^(\w+)[{ ]", told, re.MULTILINE))
    shown = [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]
    shown += [(each["name"], each["definition"]) for each in board["templating"]["list"] if each["type"] == "query"]
    assert len(shown) > 10
    for title, expression in shown:
        metrics = re.findall(r"\bhodo_watch_\w+", expression)
        assert metrics and set(metrics) <= names, f"{title}: {expression}"
        # `instance` is Prometheus's own, and what begins with $ is chosen on the board.
        for label, wanted in re.findall(r'\b(\w+)=~?"([^"$]+)"', expression):
            assert f'{label}="{wanted}"' in told, f"{title}: {label}={wanted}"
    legends = [target["legendFormat"] for panel in board["panels"] for target in panel["targets"]]
    for label in {label for legend in legends for label in re.findall(r"{{(\w+)}}", legend)}:
        assert f'{label}="' in told, label
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


def test_a_far_end_that_restarts_is_a_failed_round_and_not_the_end():
    uri = f"tcp://{command.free_address()}"
    # At first nobody is there.
    with watching(uri, "--test", "rate", "--sizes", "64") as watch:
        at = pages(watch)
        command.wait_until(lambda: value(at, "hodo_watch_failures_total") or 0, "a failed round")
        assert value(at, "hodo_watch_up") == 0 and page(at, "/health") == "ready\n"
        with command.serving(uri) as far:
            command.wait_until(lambda: value(at, "hodo_watch_up") == 1, "the far end is measured")
            # One that hangs.
            far.send_signal(signal.SIGSTOP)
            command.wait_until(lambda: value(at, "hodo_watch_up") == 0, "the far end hangs", within=30)
            far.send_signal(signal.SIGCONT)
            command.wait_until(lambda: value(at, "hodo_watch_up") == 1, "it goes on", within=30)
        command.wait_until(lambda: value(at, "hodo_watch_up") == 0, "it has ended", within=30)
        # What was measured last stands there still.
        assert value(at, "hodo_watch_operations_per_second") > 0
        assert 'state="failed"} 1' in page(at)
        assert watch.poll() is None
        watch.send_signal(signal.SIGTERM)
        assert watch.wait(5) == 0


def test_a_watch_that_is_ended_while_the_far_end_hangs_ends_at_once():
    with command.serving("tcp://127.0.0.1:0") as far:
        with command.started("watch", far.uri, "--test", "rate", "--sizes", "64", "--duration", "20s", "--no-metrics") as watch:
            command.wait_until_busy(watch.pid)
            far.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            watch.send_signal(signal.SIGTERM)
            assert watch.wait(5) == 0
            assert time.monotonic() - begun < 1


@pytest.mark.parametrize("form", ["tsv", "jsonl"])
def test_the_rounds_are_in_the_history(form, tmp_path):
    file = tmp_path / f"lab.{form}"
    for _ in range(2):
        done = command.hodo("watch", SIMULATED, *QUICK, "--count", "3", "--history", file)
        assert done.returncode == 0, done.stderr
    text = file.read_text(encoding="utf-8")
    if form == "tsv":
        rows = contract.parse_tsv(text)
        assert {row["started"][:2] for row in rows} == {"20"}
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        assert all(row["started"] and row["verdict"]["state"] and "intervals" not in row for row in rows)
    assert [row["test"] for row in rows] == 6 * ["latency", "rate"]


def test_a_history_is_bounded(tmp_path):
    file = tmp_path / "lab.tsv"
    done = command.hodo("watch", SIMULATED, *QUICK, "--count", "10", "--history", file, "--keep", "4")
    assert done.returncode == 0, done.stderr
    assert 4 <= len(contract.parse_tsv(file.read_text(encoding="utf-8"))) <= 6


def test_a_full_disk_is_counted_and_ends_nothing():
    with watching(SIMULATED, "--history", "/dev/full") as watch:
        at = pages(watch)
        command.wait_until(lambda: (value(at, "hodo_watch_unwritten_total") or 0) >= 2, "two rounds that nobody keeps")
        assert value(at, "hodo_watch_up") == 1


def test_a_round_that_failed_is_told_by_the_status():
    done = command.hodo("watch", "tcp://127.0.0.1:1", *QUICK, "--count", "2")
    assert done.returncode == 1 and "not measured" in done.stderr, done.stderr


def test_what_cannot_be_is_refused_before_the_first_round(tmp_path):
    command.refused("watch", "tcp", "--every", "1ms", status=2, says=["--every", "100ms"])
    command.refused("watch", "tcp", "--test", "open", "--no-metrics", status=2, says=["--rate"])
    command.refused("watch", "tcp", "--history", tmp_path / "no/such/file", "--no-metrics", status=2, says=["--history"])
    other = tmp_path / "other.tsv"
    other.write_text("dear diary\n", encoding="utf-8")
    command.refused("watch", "tcp", "--history", other, "--no-metrics", status=2, says=["other columns"])
    assert other.read_text(encoding="utf-8") == "dear diary\n"
