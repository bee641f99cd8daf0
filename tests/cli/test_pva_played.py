"""`hodo pva serve` plays what `hodo pva record` has recorded, as p4p sees it."""

import statistics
import time

import command
import pva
import pytest
from recordings import STEPS, Watched, ended, posted, pv, recording, serving, updates
from test_pva_reload import reload


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return posted(tmp_path_factory.mktemp("recording") / "run.parquet")


def test_what_was_recorded_comes_again_with_values_alarms_stamps_and_timing(tmp_path, recorded):
    text = pv("number", recorded, 'stamps = "recorded"') + pv("P:{array,choice}", recorded, 'recorded = "{array,choice}"')
    numbers = [row for row in updates(recorded) if row.pv == "number"]
    with serving(tmp_path, text) as process, pva.client(process.at) as context:
        watched = {name: Watched(context, name) for name in ["number", "P:array", "P:choice"]}
        # Twice: the second time it is read from the beginning.
        for _ in range(2):
            played = watched["number"].whole(-1.0, STEPS + 1)
            values = [value for _, value in played]
            assert [float(value) for value in values] == [row.double for row in numbers]
            assert [value.severity for value in values] == [row.severity for row in numbers]
            assert [value.raw.alarm.status for value in values] == [row.status for row in numbers]
            assert [value.raw.alarm.message for value in values] == [row.message for row in numbers]
            assert [value.raw_stamp for value in values][1:] == [(1_000_000_000 + step, step) for step in range(STEPS)]
            assert values[0].raw.display.units == "mm"
            # All are as late, but for those that the machine has delayed.
            late = [at - (row.arrived - numbers[0].arrived) / 1e9 for (at, _), row in zip(played, numbers, strict=True)]
            assert statistics.median(late) - min(late) < 0.15
        arrays = watched["P:array"]
        while len(arrays.next()[1]) != STEPS:
            pass
        assert list(arrays.next()[1]) == [0]
        assert [list(arrays.next()[1]) for _ in range(STEPS)] == [list(range(step + 1)) for step in range(STEPS)]
        choice = watched["P:choice"].next()[1]
        assert choice.raw.value.choices[1] == "On"
        # Without `stamps` it is now.
        assert abs(arrays.next()[1].timestamp - time.time()) < 60
        with pytest.raises(Exception, match="can only be read"):
            context.put("number", 5)


def test_a_pace_of_ones_own_and_an_end(tmp_path, recorded):
    fast = pv("FAST", recorded, 'recorded = "number"', 'every = "5ms"')
    text = fast + pv("ONCE", recorded, 'recorded = "number"', 'every = "1ms"', "repeat = false", 'put = "accept"')
    with serving(tmp_path, text) as process, pva.client(process.at) as context:
        watched = Watched(context, "FAST")
        cycles = [watched.whole(-1.0, STEPS + 1) for _ in range(5)]
        assert all([float(value) for _, value in cycle] == [-1.0, *range(STEPS)] for cycle in cycles)
        taken = cycles[-1][-1][0] - cycles[0][0][0]
        assert taken > 4 * (STEPS + 1) * 0.005 * 0.8
        command.wait_until(lambda: context.get("ONCE") == STEPS - 1, "it has come to its end")
        context.put("ONCE", 77)
        watched.whole(-1.0, STEPS + 1)
        assert context.get("ONCE") == 77


def test_a_recording_of_one_moment_is_not_repeated_without_a_pause(tmp_path):
    wave(tmp_path, "double[]", "[1.0]")
    with serving(tmp_path, pv("WAVE", "wave.parquet")) as process, pva.client(process.at) as context:
        watched = Watched(context, "WAVE")
        came = [watched.next()[0] for _ in range(12)]
        # Some may have waited in the connection.
        assert came[-1] - came[0] > 0.5


@pytest.mark.long("files")
def test_a_folder_of_files_larger_than_what_is_in_memory(tmp_path):
    """They are written by pyarrow, so that they can be anybody's."""
    import pandas
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "archive"
    folder.mkdir()
    table = pyarrow.parquet.read_table(wave(tmp_path, "double[]", "[1.0]"), filters=[("event", "=", "update")])
    (row,) = table.to_pylist()
    # 64 groups of rows of 2 MB each, in 4 files: 128 MB.
    for part in range(4):
        with pyarrow.parquet.ParquetWriter(folder / f"{part}.parquet", table.schema, compression="none") as writer:
            for number in range(16 * part, 16 * part + 16):
                row["arrived"] = pandas.Timestamp(number * 10_000_000, tz="UTC")
                row["doubles"] = [float(number)] * 250_000
                writer.write_table(pyarrow.Table.from_pylist([row], schema=table.schema))
    with serving(tmp_path, pv("WAVE", folder)) as process, pva.client(process.at) as context:
        watched = Watched(context, "WAVE")
        seen = set()
        while len(seen) < 60:
            value = watched.next()[1]
            assert len(value) == 250_000 and value[0] == value[-1]
            seen.add(value[0])
        peak = int(next(line for line in open(f"/proc/{process.pid}/status") if line.startswith("VmHWM")).split()[1])
        assert peak < 100_000, f"{peak} KiB"


def wave(folder, of, value, name="wave"):
    """Records the only value of a PV named WAVE of this type; returns the file."""
    file, pvs = folder / f"{name}.parquet", folder / f"{name}.toml"
    pvs.write_text(f'[[pv]]\nname = "WAVE"\ntype = "{of}"\nvalue = {value}\n', encoding="utf-8")
    with pva.serving(pvs) as server, recording(file, int(server.at.split(":")[1]), "WAVE") as process:
        command.wait_until(lambda: len(updates(file)) == 1, "it is recorded")
        ended(process)
    return file


def test_a_file_that_is_read_again_plays_on_what_is_the_same(tmp_path, recorded):
    file = tmp_path / "run.parquet"
    file.write_bytes(recorded.read_bytes())
    with serving(tmp_path, pv("number", file, 'every = "10ms"') + pv("array", file)) as process, pva.client(process.at) as context:
        watched = Watched(context, "number")
        watched.whole(-1.0, STEPS + 1)
        reload(process, "0 PVs are new, 0 changed, 0 removed, 2 as before")
        # It goes on where it is: each number is behind the one before.
        numbers = [float(watched.next()[1]) for _ in range(3 * STEPS)]
        order = [-1.0, *map(float, range(STEPS))]
        assert all(order[(order.index(one) + 1) % len(order)] == other for one, other in zip(numbers, numbers[1:]))
        # One that comes back is played on.
        file.rename(tmp_path / "elsewhere")
        watched.until_invalid()
        (tmp_path / "elsewhere").rename(file)
        reload(process, "0 PVs are new, 0 changed, 0 removed, 2 as before")
        assert watched.whole(-1.0, STEPS + 1)[1][1].severity == 0
        # Another recording in its place is found at the next pass.
        file.unlink()
        posted(file, steps=1)
        watched.until_invalid()
        says = "run.parquet has changed since it was looked through"
        command.wait_until(lambda: any(says in line for line in process.log), "the log tells why")
        reload(process, "0 PVs are new, 2 changed, 0 removed, 0 as before")
        watched.whole(-1.0, 2)
        # PVs that are played in step begin again with one that is new.
        (tmp_path / "pvs.toml").write_text(pv("{array,choice}", file), encoding="utf-8")
        reload(process, "1 PVs are new, 0 changed, 1 removed, 1 as before")
        arrays, choices = Watched(context, "array"), Watched(context, "choice")
        arrays.whole([0], 2), choices.whole(0, 2)
        (tmp_path / "pvs.toml").write_text(pv("{array,choice}", file) + pv("X", file, 'recorded = "array"'), encoding="utf-8")
        reload(process, "1 PVs are new, 0 changed, 0 removed, 2 as before")
        Watched(context, "X").whole([0], 2), arrays.whole([0], 2)
        assert process.poll() is None


def test_mistakes_are_told(tmp_path, recorded):
    file = tmp_path / "wrong.toml"
    cut, other, empty = (tmp_path / f"{name}.parquet" for name in ["cut", "other", "empty"])
    cut.write_bytes(recorded.read_bytes()[:-100])
    command.hodo("farm", "export", command.ROOT / "crates/store/tests/golden", other)
    command.hodo("pva", "record", "-o", empty, "-S", "127.0.0.1:1", "number", "--for", "0.1")
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    wave(mixed, "double[]", "[1.0]", "first"), wave(mixed, "double", "1.0", "second")
    text = tmp_path / "text.jsonl"
    text.write_text('{"value": 1}\n')
    many = ", ".join(f"A{number}" for number in range(40))
    cases = {
        pv("absent", recorded): r":4: .*run.parquet has no updates of absent; write recorded = .*: array, choice, number",
        pv("A", recorded, 'recorded = "B"'): r":4: .*no updates of B",
        pv("number", cut): r":4: .*cut.parquet .*was cut off",
        pv("number", other): r":4: .*other.parquet .*no column arrived.*no recording of .hodo pva record.",
        pv("number", empty): r":4: .*empty.parquet has no updates",
        pv("number", tmp_path / "none.parquet"): r":4: .*none.parquet.*No such file",
        pv("WAVE", mixed): r":4: .*in .*mixed WAVE changes its type at its update 2, .*hodo pva replay",
        pv("number", recorded, 'type = "double"'): r":5: .*type: a PV of a recording has the type and the fields",
        pv("number", recorded, 'units = "V"'): r":5: .*units: a PV of a recording",
        pv("A{1,2}", recorded, 'recorded = "number"'): r":5: .*recorded: 1 names for 2 PVs; write one for each",
        pv("A{1..40}", recorded, f'recorded = "{{{many}}}"', 'every = "1s"'): r":4: .*no updates of A0",
        pv("number", recorded, 'every = "0s"'): r":5: .*every: write a time above 0",
        pv("number", recorded, 'stamps = "then"'): r":5: unknown variant `then`, expected `now` or `recorded`",
        pv("A", text, 'recorded = "B"'): r":5: .*recorded: .*text.jsonl is no recording, whose name would end in .parquet",
        "".join(pv(f"A{n}", recorded, 'recorded = "number"', 'every = "1s"') for n in range(33)): r"more than 32 recordings",
        '[[pv]]\nname = "A"\nsource = "ramp"\nstamps = "now"': r":4: .*stamps: it is for replay",
    }
    for text, says in cases.items():
        file.write_text(text)
        command.refused("pva", "serve", "--check", file, status=2, says=[says])
    file.write_text(pv("number", recorded) + pv("B", recorded, 'recorded = "number"'))
    assert "2 PVs" in command.hodo("pva", "serve", "--check", file).stdout
