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
import numpy
import pandas
import pva
import pyarrow
import pyarrow.parquet
import pytest

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "interop/pva"), str(HERE.parent / "farm")]
import peers  # noqa: E402
from disks import SmallDisk  # noqa: E402

PIPELINE = ["-r", "record[pipeline=true]"]
COUNTER = '[[pv]]\nname = "COUNT"\ntype = "long"\nsource = "ramp"\nfrom = 0\nto = 1e9\nevery = "1ms"\n'


def recording(file, port, *names, flush="0.1", prefix=(), **options):
    """A recorder's process."""
    arguments = ["-S", f"127.0.0.1:{port}", "-o", file, "--flush", flush, *names]
    return command.started("pva", "record", *arguments, prefix=prefix, **options)


def ended(process, status=0):
    """What a recorder says that is asked to end."""
    process.send_signal(signal.SIGINT)
    said = process.stdout.read()
    assert process.wait(20) == status, said
    return said


def rows(file):
    """The rows of a file that grows. The moment in which it is written to is passed over."""
    for _ in range(100):
        with contextlib.suppress(OSError, pyarrow.ArrowException):
            return pandas.read_parquet(file)
    return pandas.DataFrame({"event": []})


def updates(file):
    found = rows(file)
    return found[found.event == "update"]


def serving(tmp_path, text, **options):
    file = tmp_path / "pvs.toml"
    file.write_text(text, encoding="utf-8")
    return pva.serving(file, **options)


@contextlib.contextmanager
def replaying(file, *options):
    """A server that plays a recording, with its address as `at`."""
    arguments = ["pva", "replay", file, "--listen", "127.0.0.1:0", "--tcp-only", *options]
    with command.started(*arguments) as process:
        process.at = command.announced(process, r"listening on ([\d.:]+)")[1]
        yield process


def test_every_type_is_a_row_and_comes_back(tmp_path):
    file = tmp_path / "all.parquet"
    scalars = ["bool", "b", "h", "i", "l", "ub", "uh", "ui", "ul", "f", "d", "s"]
    names = [f"{kind}:{name}" for kind in ["scalar", "array"] for name in scalars]
    names += ["empty", "enum", "table", "image", "full", "parts"]
    with peers.p4p_server() as peer:
        with recording(file, peer.port, *names) as process:
            command.wait_until(lambda: len(updates(file)) == len(names), "all have sent their values")
            said = ended(process)
        theirs = {name: json.loads(peer.said("get", "-M", "json", "-t", name)) for name in names}
    assert f"{len(names)} updates" in said and "0 updates had overwritten others" in said
    found = updates(file).set_index("pv")
    assert (found.loc["scalar:l"].long, found.loc["scalar:b"].long) == (-(2**63), -8)
    # pandas would make a double of it.
    assert 2**64 - 1 in pyarrow.parquet.read_table(file).column("ulong").to_pylist()
    assert (found.loc["scalar:d"].double, found.loc["scalar:f"].double) == (0.1, 0.5)
    assert (found.loc["scalar:s"].string, found.loc["scalar:bool"].boolean) == ("hé", True)
    assert list(found.loc["array:d"].doubles) == [0.1] * 3 and found.loc["array:f"].floats.dtype == numpy.float32
    assert list(found.loc["array:ub"].ints) == [8] * 3 and list(found.loc["array:ui"].longs) == [32] * 3
    assert list(found.loc["array:s"].strings) == ["hé"] * 3 and list(found.loc["array:bool"].booleans) == [True] * 3
    assert list(found.loc["empty"].doubles) == [] and found.loc["scalar:d"].doubles is None
    assert (found.loc["enum"].long, found.loc["enum"].string) == (1, "On it")
    assert json.loads(found.loc["table"].json)["value"] == {"a": [1, 2], "b": ["x", "y z"]}
    assert (found.loc["full"].severity, found.loc["full"].overrun) == (0, None)
    assert str(found.arrived.dtype) == "datetime64[ns, UTC]"
    assert set(rows(file).event) == {"connected", "update"}
    with replaying(file) as process:
        port = int(process.at.split(":")[1])
        served = peers.Peer(process, port)
        ours = {name: json.loads(served.said("get", "-M", "json", "-t", name)) for name in names}
        with pva.client(process.at) as context:
            assert context.get("enum").raw.value.choices[1] == "On it"
            assert context.get("image").shape == (3, 4)
    # What p4p never sent is in ours, too, as it is by default.
    for name, value in theirs.items():
        assert {field: ours[name][field] for field in value if field not in ("display", "control")} == {
            field: value[field] for field in value if field not in ("display", "control")
        }


def test_nothing_is_lost_and_a_restart_is_told(tmp_path):
    file = tmp_path / "count.parquet"
    with serving(tmp_path, COUNTER) as first:
        port = int(first.at.split(":")[1])
        with recording(file, port, "COUNT") as process:
            command.wait_until(lambda: len(updates(file)) > 300, "it records")
            first.kill()
            first.wait()
            command.wait_until(lambda: "lost" in set(rows(file).event), "the loss is a row")
            before = len(updates(file))
            with serving(tmp_path, COUNTER, listen=f"127.0.0.1:{port}"):
                command.wait_until(lambda: len(updates(file)) > before + 300, "it records again")
                said = ended(process)
    assert "1 connections were lost" in said
    found = rows(file)
    assert list(found[found.event != "update"].event) == ["connected", "lost", "connected"]
    assert "control.limitLow" in found.changed[1] and "control" not in found.changed[2]
    lost = found.index[found.event == "lost"][0]
    for part in [found[:lost], found[lost:]]:
        part = part[part.event == "update"]
        part = part[part.overrun.isnull()]
        steps = numpy.diff(part.long.to_numpy().astype(int))
        overruns = found.overrun.notnull().sum()
        # Each missing number is told.
        assert (steps == 1).all() or overruns > 0
    assert found.arrived.is_monotonic_increasing
    stamps = found.stamp[:lost].dropna()
    assert stamps.is_monotonic_increasing and abs(stamps.iloc[-1].timestamp() - time.time()) < 60


def test_a_pipeline_loses_nothing_of_ten_thousand_updates_a_second(tmp_path):
    file = tmp_path / "count.parquet"
    # Forty PVs, so that a pause of the recorder is within the queue of each.
    text = COUNTER.replace('"COUNT"', '"COUNT{0..39}"').replace('"1ms"', '"4ms"')
    with serving(tmp_path, text) as server:
        port = int(server.at.split(":")[1])
        with recording(file, port, *[f"COUNT{number}" for number in range(40)], "--queue", "1000", *PIPELINE) as process:
            command.wait_until(lambda: len(updates(file)) > 40 * 1500, "each window was used up and given again")
            said = ended(process)
    found = updates(file)
    assert "0 updates had overwritten others" in said and found.overrun.isnull().all()
    for _, one in found.groupby("pv"):
        assert (numpy.diff(one.long.to_numpy().astype(int)) == 1).all()


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
    numbers = found.double if server == "p4p" else found.long
    assert [int(number) for number in numbers] == list(range(posted + 1))
    assert "0 updates had overwritten others" in said


@pytest.mark.parametrize("pipeline", ["true", "false"])
def test_what_a_server_has_merged_is_told(tmp_path, pipeline):
    file = tmp_path / "count.parquet"
    with serving(tmp_path, COUNTER) as server:
        port = int(server.at.split(":")[1])
        with recording(file, port, "COUNT", "-r", f"record[queueSize=2,pipeline={pipeline}]") as process:
            command.wait_until(lambda: len(updates(file)) > 10, "it records")
            process.send_signal(signal.SIGSTOP)
            seen = updates(file).long.iloc[-1]
            with pva.client(server.at) as context:
                # As many as fill what the kernel holds of the connection.
                command.wait_until(lambda: context.get("COUNT") > seen + 1000, "it goes on")
            process.send_signal(signal.SIGCONT)
            so_far = len(updates(file))
            command.wait_until(lambda: len(updates(file)) > so_far + 100, "it records again")
            said = ended(process)
    found = updates(file)
    missing = (numpy.diff(found.long.to_numpy().astype(int)) - 1).sum()
    overruns = int(found.overrun.notnull().sum())
    assert missing > 0 and 0 < overruns <= missing
    assert f"{overruns} updates had overwritten others" in said and f"COUNT: {overruns} updates" in said


def test_thousands_of_pvs_in_a_folder_of_files(tmp_path):
    folder = tmp_path / "archive"
    text = '[[pv]]\nname = "MANY:{0..4999}"\ntype = "double"\nsource = "random"\nevery = "500ms"\n'
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"MANY:{number}" for number in range(5000)), encoding="utf-8")
    with serving(tmp_path, text) as server:
        port = int(server.at.split(":")[1])
        with recording(f"{folder}/", port, "-f", names, "--size", "100K") as process:
            command.wait_until(lambda: len(list(folder.glob("*.parquet"))) > 2, "there are several files")
            said = ended(process)
    files = sorted(folder.glob("*.parquet"))
    found = pandas.concat([pandas.read_parquet(file) for file in files])
    assert found[found.event == "update"].pv.nunique() == 5000
    total, in_files = map(int, re.search(r"updates, (\d+) rows in (\d+) files", said).groups())
    assert (total, in_files) == (len(found), len(files))
    assert found.arrived.is_monotonic_increasing
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
        missing = (numpy.diff(found.long.to_numpy().astype(int)) - 1).sum()
        assert "LOST" not in said and (missing == 0 or found.overrun.notnull().any())


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
    assert first == recorded.double.iloc[0]
    assert [float(value) for _, value in played] == list(recorded.double)
    assert [value.severity for _, value in played] == list(recorded.severity)
    assert abs(played[-1][1].timestamp - time.time()) < 60
    # Twice as fast, over the whole span.
    span = (recorded.arrived.iloc[-1] - recorded.arrived.iloc[0]).total_seconds()
    assert (played[-1][0] - played[0][0]) == pytest.approx(span / 2, rel=0.3)
    with replaying(file, "--stamps", "recorded", "--speed", "1000", "--delay", "0.01", "--loop") as process:
        with pva.client(process.at) as context:
            stamp = context.get("SLOW").timestamp
            assert stamp in {value.timestamp() for value in recorded.stamp} or recorded.stamp.iloc[0].timestamp() <= stamp + 1e-6


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
    assert pyarrow.parquet.read_table(absent).num_rows == 0
