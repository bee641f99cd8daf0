"""`hodo compare`: four answers, their exit status, and a sentence at the end."""

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
    """Returns the rows of the table: those with a ratio and an answer."""
    return [line for line in table.splitlines() if re.search(r"\d\.\d{3} .* (faster|slower|same|cannot tell)", line)]


def last(text):
    return text.splitlines()[-1].strip()


def test_the_same_file_twice_is_never_red(files):
    for path in (SAMPLE, files("one.json", without_interval)):
        done = command.hodo("compare", path, path, "--fail-below", "1.0")
        assert done.returncode == 0, done.stderr
        assert all(row.rstrip().endswith("same") for row in rows(done.stdout)), done.stdout
        assert last(done.stdout) == "B is the same within 3 % in 36 rows."


def test_a_file_beside_itself_is_never_red(files):
    """Nor is one in which a row failed, or which has no rows."""

    def failed(measurement):
        times(0)(measurement)
        measurement["verdict"] = {"state": "failed", "text": "nothing completed"}

    path = files("failed.json", failed)
    assert command.hodo("compare", path, path, "--fail-below", "0.95").returncode == 3
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, "measurements": []}), encoding="utf-8")
    assert command.hodo("compare", path, path, "--fail-below", "0.95").returncode == 3


def test_a_row_that_one_file_lacks_is_red(files):
    whole = files("a.json")
    document = json.loads(whole.read_text(encoding="utf-8"))
    part = whole.with_name("part.json")
    part.write_text(json.dumps({**document, "measurements": document["measurements"][1:]}), encoding="utf-8")
    for a, b, only in ((whole, part, "not in B"), (part, whole, "not in A")):
        done = command.hodo("compare", a, b, "--fail-below", "0.5")
        assert done.returncode == 1 and only in done.stderr, done.stderr
        assert last(done.stdout) == "B is the same within 3 % in 35 rows; 1 row is in one file only."
        assert command.hodo("compare", a, b).returncode == 0
    done = command.hodo("compare", whole, files("failed.json", times(0)), "--fail-below", "0.5")
    assert done.returncode == 1 and "nothing was measured in B" in done.stderr, done.stderr


def test_what_is_slower_for_certain_is_red_and_stands_first(files):
    done = command.hodo("compare", SAMPLE, files("b.json", times(0.9)), "--fail-below", "0.95")
    assert done.returncode == 1
    assert re.search(rf"{PLAN}.*: slower, with a ratio of 0\.900 under 0\.95", done.stderr), done.stderr
    first, *others = rows(done.stdout)
    assert PLAN in first and first.rstrip().endswith("slower") and all("slower" not in row for row in others)
    assert re.fullmatch(r"B is 1\.11\d* ± 0\.\d+ times slower in 1 row, the same within 3 % in 35\.", last(done.stdout))
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
    assert [pair["answer"] for pair in pairs[:2]] == ["slower", "same"]


def test_how_much_does_not_matter_is_a_choice(files):
    other = files("b.json", times(0.95))
    for within, answer in (("3%", "slower"), ("10", "same")):
        done = command.hodo("compare", SAMPLE, other, "--same", within)
        assert rows(done.stdout)[0].rstrip().endswith(answer), done.stdout
    assert command.hodo("compare", SAMPLE, other, "--same", "10%", "--fail-below", "0.96").returncode == 1
    command.refused("compare", SAMPLE, other, "--same", "nothing", status=2, says=["--same", "write"])
