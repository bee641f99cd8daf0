"""The event farm's files: checked, exported, and read by other programs than ours."""

import runpy
import shutil
import subprocess
import sys

import command
import pytest
from recordings import rows

GOLDEN = command.ROOT / "crates/store/tests/golden"
EXAMPLES = command.ROOT / "docs/examples"
READER = runpy.run_path(str(EXAMPLES / "farm_reader.py"))
KEPT = [event for event in range(30) if event % 3 == 0 or event == 7]


@pytest.fixture
def store(tmp_path):
    return shutil.copytree(GOLDEN, tmp_path / "store")


def verdict(event):
    return "quarantined" if event in (7, 21) else "accepted"


def test_the_reader_in_python_reads_what_was_put():
    events = list(READER["events"](GOLDEN, run=7))
    assert [event.event for event in events] == KEPT
    for event in events:
        number = event.event
        assert event.data == bytes([number]) * (13 * number)
        assert (event.verdict, event.node) == (verdict(number), 100 + number % 4)
        assert (event.attempts, event.partial) == (3 if event.verdict == "quarantined" else 1, number == 9)
        assert event.time_ns == 1_700_000_000_000_000_000 + number
    decided = {run: set() for run in (7, 8)}
    for run, _, start, end in READER["decided"](GOLDEN):
        decided[run].update(range(start, end))
    assert decided == {7: set(range(30)), 8: {1 << 40}}


def test_the_reader_in_python_notices_every_changed_byte(store):
    path = store / "segment-00000001.hodo"
    whole = path.read_bytes()
    expected = list(READER["decided"](path))
    for place in range(0, len(whole) - 48, 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            # The padding behind data is not checked here: it means nothing.
            assert list(READER["decided"](path)) == expected, f"byte {place}"
        except READER["Damaged"]:
            continue


def test_the_reader_in_python_leaves_out_an_unfinished_commit(store):
    path = store / "segment-00000001.hodo"
    whole = path.read_bytes()
    path.write_bytes(whole[:700])
    cut = [event.event for event in READER["events"](path)]
    assert cut == KEPT[: len(cut)]
    assert 0 < len(cut) < len(KEPT)


def test_verify_says_what_is_there(store):
    done = command.hodo("farm", "verify", store)
    assert done.returncode == 0, done.stdout
    assert "run 7: 30 events = 9 accepted + 18 rejected + 2 quarantined + 1 incomplete" in done.stdout
    assert "run 8: 1 events" in done.stdout


def test_verify_names_damage(store):
    path = store / "segment-00000001.hodo"
    whole = bytearray(path.read_bytes())
    whole[300] ^= 1
    path.write_bytes(whole)
    done = command.hodo("farm", "verify", store)
    assert done.returncode == 1
    assert "segment-00000001.hodo" in done.stdout
    assert "not as they were written" in done.stdout
    exported = command.hodo("farm", "export", store, store / "out.parquet")
    assert exported.returncode == 1
    assert "skipped: " in exported.stdout


def test_a_folder_that_is_not_there_is_named(tmp_path):
    command.refused("farm", "verify", tmp_path / "nowhere", status=1, says=["nowhere"])
    command.refused("farm", "export", tmp_path / "nowhere", tmp_path / "out", status=1, says=["nowhere"])


def test_the_export_is_what_the_reader_reads(store, tmp_path):
    output = tmp_path / "out.parquet"
    done = command.hodo("farm", "export", store, output)
    assert done.returncode == 0, done.stderr
    events = [event._asdict() | {"data": event.data.hex()} for event in READER["events"](store)]
    assert rows(output) == events
    assert not list(tmp_path.glob("*.part"))


def test_the_export_takes_a_selection(store, tmp_path):
    output = tmp_path / "out.parquet"
    done = command.hodo("farm", "export", store, output, "--run", "7", "--verdict", "quarantined")
    assert done.returncode == 0, done.stderr
    assert [row.event for row in rows(output)] == [7, 21]


@pytest.mark.long("files")
def test_pyarrow_reads_the_export(store, tmp_path):
    import pyarrow.parquet

    output = tmp_path / "out.parquet"
    assert command.hodo("farm", "export", store, output).returncode == 0
    table = pyarrow.parquet.read_table(output)
    assert table.column_names == ["run", "event", "node", "verdict", "time_ns", "attempts", "partial", "data"]
    assert table.to_pylist() == [event._asdict() for event in READER["events"](store)]
    assert str(table.schema.field("event").type) == "uint64"
    assert str(table.schema.field("verdict").type) == "string"


@pytest.mark.long("files")
def test_the_example_writes_hdf5(store, tmp_path):
    import h5py

    output = tmp_path / "out.h5"
    example = [sys.executable, EXAMPLES / "farm_to_hdf5.py", store, output]
    subprocess.run(example, check=True, timeout=command.BOUND_S)
    with h5py.File(output) as file:
        run = file["run 7"]
        assert list(run["event"]) == KEPT
        for index, number in enumerate(KEPT):
            first, end = run["offset"][index : index + 2]
            assert bytes(run["data"][first:end]) == bytes([number]) * (13 * number)
        assert list(file["run 8/event"]) == [1 << 40]


def test_a_controller_goes_on_where_it_was_stopped(tmp_path):
    folder = tmp_path / "store"
    for events in (4000, 8000):
        made = ["--events", events, "--size", 2000, "--until-done", "--segment", "64K", "--store", folder]
        with command.started("farm", "controller", "--listen", "127.0.0.1:0", "--no-metrics", *made) as controller:
            at = command.announced(controller, r"listening on ([\d.]+:\d+)")[1]
            with command.started("farm", "node", "--to", at, "--accept", "0.1"):
                assert controller.wait(command.BOUND_S) == 0
        done = command.hodo("farm", "verify", folder)
        assert done.returncode == 0, done.stdout
        assert f"run 1: {events} events" in done.stdout
