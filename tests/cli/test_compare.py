"""`hodo compare`: three answers, their exit status, and a table that says them at any width."""

import copy
import json
import pathlib
import re

import command
import pytest

SAMPLE = pathlib.Path(__file__).parents[1] / "report" / "sample.json"
PLAN = "tcp rate send 32 KiB"


@pytest.fixture
def files(tmp_path):
    """Writes documents that are the sample but for what `change` does to the measurement of `PLAN`."""

    def write(name, change=lambda m: None):
        document = copy.deepcopy(json.loads(SAMPLE.read_text(encoding="utf-8")))
        (one,) = (
            m
            for m in document["measurements"]
            if (m["protocol"], m["test"], m["mode"], m["size_bytes"]) == ("tcp", "rate", "send", 32768)
        )
        change(one)
        path = tmp_path / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


def times(factor):
    def change(measurement):
        for estimate in measurement["rate"].values():
            for name in ("median", "low", "high", "best"):
                estimate[name] *= factor

    return change


def without_interval(measurement):
    measurement["repeats"] = 1
    for estimate in measurement["rate"].values():
        estimate["low"] = estimate["high"] = estimate["confidence"] = None


def rows(table):
    return [line for line in table.splitlines() if re.search(r" (faster|slower|cannot tell)", line) and "Of " not in line]


def test_the_same_file_twice_is_never_red(files):
    for path in (SAMPLE, files("one.json", without_interval)):
        done = command.hodo("compare", path, path, "--fail-below", "1.0")
        assert done.returncode == 0, done.stderr


def test_what_is_slower_for_certain_is_red_and_stands_first(files):
    done = command.hodo("compare", SAMPLE, files("b.json", times(0.9)), "--fail-below", "0.95")
    assert done.returncode == 1
    assert re.search(rf"{PLAN}.*: slower, with a ratio of 0\.900 under 0\.95", done.stderr), done.stderr
    first, *others = rows(done.stdout)
    assert PLAN in first and first.rstrip().endswith("slower") and all("slower" not in row for row in others)
    assert re.search(r"Of 36 plans, B is faster in 0 and slower in 1; 35 cannot tell; the largest effect", done.stdout)
    assert command.hodo("compare", SAMPLE, files("b.json", times(0.97)), "--fail-below", "0.95").returncode == 0


def test_what_is_faster_for_certain_is_never_red(files):
    done = command.hodo("compare", SAMPLE, files("b.json", times(1.1)), "--fail-below", "1.0")
    assert done.returncode == 0 and rows(done.stdout)[0].endswith("faster"), done.stdout


def test_what_cannot_be_told_is_status_3_with_the_repeats_that_would_tell(files):
    a, b = files("a.json"), files("b.json", lambda m: (times(0.94)(m), without_interval(m)))
    done = command.hodo("compare", a, b, "--fail-below", "0.95")
    assert done.returncode == 3, done.stderr
    assert rows(done.stdout)[0].endswith("cannot tell  6 repeats"), done.stdout
    # An interval that reaches over the ratio, with a number that makes it narrow enough.
    wide = lambda m: [e.update(low=0.9 * e["median"]) for e in m["rate"].values()]  # noqa: E731
    done = command.hodo("compare", a, files("c.json", lambda m: (times(0.99)(m), wide(m))), "--fail-below", "0.95")
    assert done.returncode == 3 and re.search(r"cannot tell  \d+ repeats$", rows(done.stdout)[0]), done.stdout


def test_the_json_has_the_answers(files, tmp_path):
    result = tmp_path / "compared.json"
    command.hodo("compare", SAMPLE, files("b.json", times(0.9)), "--json", result)
    pairs = json.loads(result.read_text(encoding="utf-8"))["pairs"]
    assert [pair["answer"] for pair in pairs[:2]] == ["slower", "cannot_tell"]
