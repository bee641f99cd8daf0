"""What tests of recordings share: a recorder, a replay, and the rows of a recording."""

import contextlib
import functools
import json
import queue
import signal
import subprocess
import time

import command
import numpy
import pva
from p4p.nt import NTEnum, NTScalar
from p4p.server import Server, StaticProvider
from p4p.server.thread import SharedPV

# What `posted` posts, in turns, and how much later the next one is.
STEPS = 12
GAP_S = 0.08


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


def serving(folder, text, **options):
    """A server of the PVs of this text, in a folder."""
    file = folder / "pvs.toml"
    file.write_text(text, encoding="utf-8")
    return pva.serving(file, **options)


@contextlib.contextmanager
def replaying(file, *options):
    """A server that plays a recording, with its address as `at`."""
    arguments = ["pva", "replay", file, "--listen", "127.0.0.1:0", "--tcp-only", *options]
    with command.started(*arguments) as process:
        process.at = command.announced(process, r"listening on ([\d.:]+)")[1]
        yield process


class Row(dict):
    """A row of a Parquet file: its columns as attributes, `None` where one is empty."""

    __getattr__ = dict.get


def rows(file, *columns):
    """The rows of a file with all columns, or these; none where it is not there. The moment in which it is written to is passed over."""
    for _ in range(100):
        read = subprocess.run([reader(), file, *columns], capture_output=True, text=True, timeout=command.BOUND_S, check=False)
        if read.returncode == 0:
            return [Row(json.loads(line)) for line in read.stdout.splitlines()]
        if not file.exists():
            return []
    raise AssertionError(f"{file} cannot be read: {read.stderr}")


@functools.cache
def reader():
    return command.example("rows")


def updates(file, *columns):
    """The rows of a recording that are updates."""
    return [row for row in rows(file, *(columns and ("event", *columns))) if row.event == "update"]


def missing(found):
    """How many numbers are missing among the updates of a PV that counts."""
    return sum(after.long - before.long - 1 for before, after in zip(found, found[1:]))


def overruns(found):
    """How many of the updates say that earlier ones of them were lost."""
    return sum(row.overrun is not None for row in found)


def is_every_number(found):
    """Whether each of the updates of a PV that counts has the number after the one before."""
    return all(after.long == before.long + 1 for before, after in zip(found, found[1:]))


def posted(file, steps=STEPS):
    """Records what a p4p server posts into a file, which it returns: numbers with alarms and old time stamps, arrays, choices."""
    pvs = {
        "number": SharedPV(nt=NTScalar("d", display=True), initial={"value": -1.0, "display": {"units": "mm"}}),
        "array": SharedPV(nt=NTScalar("ai"), initial=[0]),
        "choice": SharedPV(nt=NTEnum(), initial={"index": 0, "choices": ["Off", "On"]}),
    }
    provider = StaticProvider("posted")
    for name, pv in pvs.items():
        provider.add(name, pv)
    conf = {"EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVAS_SERVER_PORT": "0", "EPICS_PVAS_BROADCAST_PORT": "0"}
    with Server(providers=[provider], conf={**conf, "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO"}, useenv=False) as server:
        with recording(file, int(server.conf()["EPICS_PVAS_SERVER_PORT"]), *pvs, flush="0.05") as process:
            command.wait_until(lambda: len(updates(file)) == 3, "each has sent its value")
            for step in range(steps):
                stamp = {"secondsPastEpoch": 1_000_000_000 + step, "nanoseconds": step}
                alarm = {"severity": step % 4, "status": step % 8, "message": f"at {step}"}
                pvs["number"].post({"value": float(step), "timeStamp": stamp, "alarm": alarm})
                pvs["array"].post(list(range(step + 1)))
                pvs["choice"].post(step % 2)
                command.wait_until(lambda step=step: len(updates(file)) == 3 * (step + 2), "it is recorded")
                time.sleep(GAP_S)
            ended(process)
    return file


def pv(name, file, *more):
    return "\n".join(["[[pv]]", f'name = "{name}"', 'source = "replay"', f'file = "{file}"', *more, ""])


class Watched:
    """The updates of a PV, and when they came."""

    def __init__(self, context, name):
        self.seen = queue.Queue()
        note = lambda value: self.seen.put((time.monotonic(), value))  # noqa: E731
        self.subscription = context.monitor(name, note, request="field()record[queueSize=100]", notify_disconnect=False)

    def next(self):
        return self.seen.get(timeout=20)

    def until_invalid(self):
        """Waits until the PV tells that it is no longer played."""
        while self.next()[1].raw.alarm.message != "the recording cannot be read":
            pass

    def whole(self, first, count):
        """The updates of one pass through the recording, which begins with this value."""
        while list(numpy.atleast_1d((update := self.next())[1])) != list(numpy.atleast_1d(first)):
            pass
        return [update, *(self.next() for _ in range(count - 1))]
