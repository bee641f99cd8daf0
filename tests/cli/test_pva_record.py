"""`hodo pva record` and `replay`: what p4p and our server post is in the Parquet file, and p4p reads it again with its timing."""

import contextlib
import json
import queue
import re
import signal
import sys
import time
from pathlib import Path

import command
import pva
import pytest
from recordings import ended, is_every_number, missing, overruns, recording, replaying, rows, serving, updates

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "interop/pva"), str(HERE.parent / "farm")]
import peers  # noqa: E402
from disks import SmallDisk  # noqa: E402

PIPELINE = ["-r", "record[pipeline=true]"]
SCALARS = ["bool", "b", "h", "i", "l", "ub", "uh", "ui", "ul", "f", "d", "s"]
NAMES = [*(f"{kind}:{name}" for kind in ["scalar", "array"] for name in SCALARS), "empty", "enum", "table", "image", "full", "parts"]
COUNTER = '[[pv]]\nname = "COUNT"\ntype = "long"\nsource = "ramp"\nfrom = 0\nto = 1e9\nevery = "1ms"\n'


def test_every_type_is_a_row_and_comes_back(tmp_path):
    file = tmp_path / "all.parquet"
    with peers.p4p_server() as peer:
        with recording(file, peer.port, *NAMES) as process:
            command.wait_until(lambda: len(updates(file)) == len(NAMES), "all have sent their values")
            said = ended(process)
        theirs = {name: json.loads(peer.said("get", "-M", "json", "-t", name)) for name in NAMES}
    assert f"{len(NAMES)} updates" in said and "0 updates had overwritten others" in said
    recorded = rows(file)
    assert {row.event for row in recorded} == {"connected", "update"}
    found = {row.pv: row for row in recorded if row.event == "update"}
    assert (found["scalar:l"].long, found["scalar:b"].long, found["scalar:ul"].ulong) == (-(2**63), -8, 2**64 - 1)
    assert (found["scalar:d"].double, found["scalar:f"].double) == (0.1, 0.5)
    assert (found["scalar:s"].string, found["scalar:bool"].boolean) == ("hé", True)
    assert found["array:d"].doubles == [0.1] * 3 and found["array:f"].floats == [0.5] * 3
    assert found["array:ub"].ints == [8] * 3 and found["array:ui"].longs == [32] * 3
    assert found["array:s"].strings == ["hé"] * 3 and found["array:bool"].booleans == [True] * 3
    assert found["empty"].doubles == [] and found["scalar:d"].doubles is None
    assert (found["enum"].long, found["enum"].string) == (1, "On it")
    assert json.loads(found["table"].json)["value"] == {"a": [1, 2], "b": ["x", "y z"]}
    assert (found["full"].severity, found["full"].overrun) == (0, None)
    with replaying(file) as process:
        port = int(process.at.split(":")[1])
        served = peers.Peer(process, port)
        ours = {name: json.loads(served.said("get", "-M", "json", "-t", name)) for name in NAMES}
        with pva.client(process.at) as context:
            assert context.get("enum").raw.value.choices[1] == "On it"
            assert context.get("image").shape == (3, 4)
    # What p4p never sent is in ours, too, as it is by default.
    for name, value in theirs.items():
        assert {field: ours[name][field] for field in value if field not in ("display", "control")} == {
            field: value[field] for field in value if field not in ("display", "control")
        }


@pytest.mark.long("files")
def test_pandas_reads_every_type(tmp_path):
    import numpy
    import pandas
    import pyarrow.parquet

    file = tmp_path / "all.parquet"
    with peers.p4p_server() as peer, recording(file, peer.port, *NAMES) as process:
        command.wait_until(lambda: len(updates(file)) == len(NAMES), "all have sent their values")
        ended(process)
    found = pandas.read_parquet(file).query("event == 'update'").set_index("pv")
    assert (found.loc["scalar:l"].long, found.loc["scalar:b"].long) == (-(2**63), -8)
    # pandas would make a double of it.
    assert 2**64 - 1 in pyarrow.parquet.read_table(file).column("ulong").to_pylist()
    assert (found.loc["scalar:d"].double, found.loc["scalar:f"].double) == (0.1, 0.5)
    assert (found.loc["scalar:s"].string, found.loc["scalar:bool"].boolean) == ("hé", True)
    assert list(found.loc["array:d"].doubles) == [0.1] * 3 and found.loc["array:f"].floats.dtype == numpy.float32
    assert list(found.loc["array:ub"].ints) == [8] * 3 and list(found.loc["array:ui"].longs) == [32] * 3
    assert list(found.loc["array:s"].strings) == ["hé"] * 3 and list(found.loc["array:bool"].booleans) == [True] * 3
    assert list(found.loc["empty"].doubles) == [] and found.loc["scalar:d"].doubles is None
    assert str(found.arrived.dtype) == "datetime64[ns, UTC]"


def test_nothing_is_lost_and_a_restart_is_told(tmp_path):
    file = tmp_path / "count.parquet"
    with serving(tmp_path, COUNTER) as first:
        port = int(first.at.split(":")[1])
        with recording(file, port, "COUNT") as process:
            command.wait_until(lambda: len(updates(file)) > 300, "it records")
            first.kill()
            first.wait()
            command.wait_until(lambda: any(row.event == "lost" for row in rows(file)), "the loss is a row")
            before = len(updates(file))
            with serving(tmp_path, COUNTER, listen=f"127.0.0.1:{port}"):
                command.wait_until(lambda: len(updates(file)) > before + 300, "it records again")
                said = ended(process)
    assert "1 connections were lost" in said
    found = rows(file)
    events = [row.event for row in found]
    assert [event for event in events if event != "update"] == ["connected", "lost", "connected"]
    assert "control.limitLow" in found[1].changed and "control" not in found[2].changed
    lost = events.index("lost")
    for part in [found[:lost], found[lost:]]:
        # Each missing number is told.
        part = [row for row in part if row.event == "update"]
        assert is_every_number(part) or overruns(part)
    assert is_in_order([row.arrived for row in found])
    stamps = [row.stamp for row in found[:lost] if row.stamp]
    assert is_in_order(stamps) and abs(stamps[-1] / 1e9 - time.time()) < 60


def is_in_order(times):
    return times == sorted(times)


def test_a_pipeline_loses_nothing_of_ten_thousand_updates_a_second(tmp_path):
    file = tmp_path / "count.parquet"
    # Forty PVs, so that a pause of the recorder is within the queue of each.
    text = COUNTER.replace('"COUNT"', '"COUNT{0..39}"').replace('"1ms"', '"4ms"')
    with serving(tmp_path, text) as server:
        port = int(server.at.split(":")[1])
        with recording(file, port, *[f"COUNT{number}" for number in range(40)], "--queue", "1000", *PIPELINE) as process:
            with pva.client(server.at) as context:
                command.wait_until(lambda: context.get("COUNT0") > 1500, "each window was used up and given again")
            command.wait_until(lambda: len(updates(file, "pv")) > 40 * 1500, "they are recorded")
            said = ended(process)
    found = updates(file, "pv", "long", "overrun")
    assert "0 updates had overwritten others" in said and not overruns(found)
    for number in range(40):
        assert is_every_number([row for row in found if row.pv == f"COUNT{number}"])


@pytest.mark.parametrize("server", ["p4p", "pvxs"])
def test_a_pipeline_of_another_server_goes_on_and_loses_nothing(tmp_path, server):
    file = tmp_path / "ticks.parquet"
    with peers.p4p_server() if server == "p4p" else peers.compiled_server("serve_pvxs", 0) as peer:
        with recording(file, peer.port, "ticks", *PIPELINE, flush="0.02") as process:
            command.wait_until(lambda: len(updates(file)) == 1, "it is subscribed")
            posted = 0
            # Each batch is within what is left of the window of 256 at least, and all are many windows.
            for _ in range(15):
                peer.process.stdin.write("".join(f"{number}\n" for number in range(posted + 1, posted + 201)))
                peer.process.stdin.flush()
                posted += 200
                command.wait_until(lambda posted=posted: len(updates(file)) == posted + 1, "all have come")
            said = ended(process)
    found = updates(file)
    assert [row.double if server == "p4p" else row.long for row in found] == list(range(posted + 1))
    assert "0 updates had overwritten others" in said


@pytest.mark.parametrize("pipeline", ["true", "false"])
def test_what_a_server_has_merged_is_told(tmp_path, pipeline):
    file = tmp_path / "count.parquet"
    with serving(tmp_path, COUNTER) as server:
        port = int(server.at.split(":")[1])
        with recording(file, port, "COUNT", "-r", f"record[queueSize=2,pipeline={pipeline}]") as process:
            command.wait_until(lambda: len(updates(file)) > 10, "it records")
            process.send_signal(signal.SIGSTOP)
            seen = updates(file)[-1].long
            with pva.client(server.at) as context:
                # As many as fill what the kernel holds of the connection.
                command.wait_until(lambda: context.get("COUNT") > seen + 1000, "it goes on")
            process.send_signal(signal.SIGCONT)
            so_far = len(updates(file))
            command.wait_until(lambda: len(updates(file)) > so_far + 100, "it records again")
            said = ended(process)
    found = updates(file)
    told = overruns(found)
    assert 0 < told <= missing(found)
    assert f"{told} updates had overwritten others" in said and f"COUNT: {told} updates" in said


def updated(folder):
    """The PVs that have updates in the files of a folder."""
    return {row.pv for file in folder.glob("*.parquet") for row in updates(file, "pv")}


def test_thousands_of_pvs_in_a_folder_of_files(tmp_path):
    folder = tmp_path / "archive"
    text = '[[pv]]\nname = "MANY:{0..4999}"\ntype = "double"\nsource = "random"\nevery = "500ms"\n'
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"MANY:{number}" for number in range(5000)), encoding="utf-8")
    with serving(tmp_path, text) as server:
        port = int(server.at.split(":")[1])
        with recording(f"{folder}/", port, "-f", names, "--size", "100K") as process:
            command.wait_until(lambda: len(list(folder.glob("*.parquet"))) > 2, "there are several files")
            command.wait_until(lambda: len(updated(folder)) == 5000, "each PV has an update in them")
            said = ended(process)
    files = sorted(folder.glob("*.parquet"))
    found = [row for file in files for row in rows(file)]
    total, in_files = map(int, re.search(r"updates, (\d+) rows in (\d+) files", said).groups())
    assert (total, in_files) == (len(found), len(files))
    assert is_in_order([row.arrived for row in found])
    with replaying(folder, "--speed", "10") as process, pva.client(process.at) as context:
        assert len(context.get([f"MANY:{number}" for number in range(5000)], timeout=30)) == 5000


def test_a_full_disk_is_told_and_what_was_written_is_readable(tmp_path):
    with contextlib.closing(SmallDisk(tmp_path / "disk", 4)) as disk, serving(tmp_path, COUNTER) as server:
        file, seen = disk.path / "count.parquet", disk.seen / "count.parquet"
        ballast = disk.seen / "ballast"
        port = int(server.at.split(":")[1])
        with recording(file, port, "COUNT", prefix=disk.inside) as process:
            command.wait_until(lambda: len(updates(seen)) > 100, "it records")
            with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as full:
                while True:
                    full.write(bytes(4096))
            line = process.stdout.readline()
            assert "No space left" in line and "tried again" in line and "count.parquet" in line
            before = len(updates(seen))
            assert before > 100
            ballast.unlink()
            assert "takes rows again" in process.stdout.readline()
            command.wait_until(lambda: len(updates(seen)) > before + 100, "it goes on")
            said = ended(process)
        found = updates(seen)
        assert "LOST" not in said and (is_every_number(found) or overruns(found))


def test_rows_that_a_full_disk_never_took_are_counted(tmp_path):
    with contextlib.closing(SmallDisk(tmp_path / "disk", 1)) as disk, serving(tmp_path, COUNTER) as server:
        (disk.seen / "ballast").write_bytes(bytes(900 << 10))
        port = int(server.at.split(":")[1])
        with recording(disk.path / "count.parquet", port, "COUNT", prefix=disk.inside) as process:
            assert "No space left" in process.stdout.readline()
            said = ended(process, status=1)
        total, written = map(int, re.search(r"(\d+) updates, (\d+) rows", said).groups())
        lost = int(re.search(r"LOST: (\d+) rows", said)[1])
        found = rows(disk.seen / "count.parquet")
        assert len(found) == written and lost > 0 and total + 1 <= written + lost


def test_a_replay_keeps_the_timing_and_the_alarms(tmp_path):
    file = tmp_path / "slow.parquet"
    text = '[[pv]]\nname = "SLOW"\ntype = "double"\nsource = "ramp"\nfrom = 0\nto = 1e9\nevery = "100ms"\nalarm = { high = 3 }\n'
    with serving(tmp_path, text) as server:
        port = int(server.at.split(":")[1])
        with recording(file, port, "SLOW") as process:
            command.wait_until(lambda: len(updates(file)) > 20, "it records")
            ended(process)
    recorded = updates(file)
    with replaying(file, "--speed", "2", "--delay", "3") as process, pva.client(process.at) as context:
        seen = queue.Queue()
        subscription = context.monitor(
            "SLOW", lambda value: seen.put((time.monotonic(), value)), request="field()record[queueSize=100]", notify_disconnect=False
        )
        first = seen.get(timeout=10)[1]
        played = [seen.get(timeout=20) for _ in range(len(recorded))]
        subscription.close()
    assert first == recorded[0].double
    assert [float(value) for _, value in played] == [row.double for row in recorded]
    assert [value.severity for _, value in played] == [row.severity for row in recorded]
    assert abs(played[-1][1].timestamp - time.time()) < 60
    # Twice as fast, over the whole span.
    span = (recorded[-1].arrived - recorded[0].arrived) / 1e9
    assert (played[-1][0] - played[0][0]) == pytest.approx(span / 2, rel=0.3)
    with replaying(file, "--stamps", "recorded", "--speed", "1000", "--delay", "0.01", "--loop") as process:
        with pva.client(process.at) as context:
            stamp = context.get("SLOW").timestamp
            assert stamp in {row.stamp / 1e9 for row in recorded} or recorded[0].stamp / 1e9 <= stamp + 1e-6


def test_mistakes_are_told(tmp_path):
    file = tmp_path / "there.parquet"
    file.write_bytes(b"precious")
    command.refused("pva", "record", "-o", file, "-S", "127.0.0.1:1", "X", status=1, says=["exists", "choose another name"])
    assert file.read_bytes() == b"precious"
    command.refused("pva", "replay", file, "--listen", "127.0.0.1:0", "--tcp-only", status=1, says=["there.parquet", "not a Parquet file"])
    command.refused("pva", "replay", tmp_path / "none", "--tcp-only", "--listen", "127.0.0.1:0", status=1, says=["none", "No such file"])
    absent = tmp_path / "absent.parquet"
    done = command.hodo("pva", "record", "-o", absent, "-S", "127.0.0.1:1", "X", "--for", "0.3")
    assert done.returncode == 1 and "X: no update has come" in done.stdout
    assert absent.exists() and rows(absent) == []
