"""SpaceWire: SSDTP2 beside bare sockets (spacewire_floor.c), RMAP beside spw_rmap's client and server, a bridge beside the theory of its line.

Both ends are processes, each on a processor of its own. spw_rmap comes from PyPI as a library; its client (spacewire_rmap.cpp) and its server (box.cpp of the
interop tests) are compiled here, with the Python of --python. SpaceWireRMAPLibrary is in no package: its calls, a send and a receive for each header
and for each packet, are made by bare sockets.
"""

import contextlib
import json
import pathlib
import re
import statistics
import subprocess
import threading
import time

from processes import LOOPBACK, Case, Failed, background, compiled, congestion_control, free_port, measurement, output

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / "target"
BOX = ROOT / "tests/interop/spacewire"
CALLS, BATCHES, SPW_RMAP, THEORY = "a send for each part", "bare sockets", "spw_rmap", "theory of the line"
# Packets on their way: as an API for one packet at a time has them, and as one for batches.
FEW, MANY = 1024, 16_384
BOTH_WAYS_60 = 151.300
# A run in which what comes before and after, one packet at a time, is the smaller part.
LONG_S = 5


def cases(options):
    bench = Bench(options)
    return [*bench.streams(), *bench.memories(), *bench.bridges()]


class Bench:
    def __init__(self, options):
        self.options = options
        self.near, self.far = options.cpus

    # The cases

    def streams(self):
        """The targets of 5 and 10 M/s and 20 Gbit/s are 9, 17 and 1.0 times what SpaceWireRMAPLibrary does on the host that they are of."""
        for size, window, unit, target in ((60, FEW, "M/s", 9.0), (60, MANY, "M/s", 17.0), (65_536, 64, "Gbit/s", 1.0)):
            yield self.stream(size, window, unit, target, CALLS, "calls")
        # What the interface for packets costs.
        yield self.stream(60, MANY, "M/s", 0.3, BATCHES, "batches")

    def stream(self, size, window, unit, target, beside, what):
        field, ours, scale = ("per_s", "operations_per_s", 1e-6) if unit == "M/s" else ("gbit_per_s", "payload_bits_per_s", 1e-9)
        return Case(
            f"spacewire ssdtp2 {size} B one way, {window} in flight", unit, target,
            lambda: self.sent(size, window)[ours]["median"] * scale,
            lambda: self.floor(what, size)[field] * (scale if unit == "M/s" else 1), beside=beside,
        )  # fmt: skip

    def memories(self):
        """The client and the server of either side; then both clients on the same server of spw_rmap."""
        for in_flight, wait, name, target in ((1, "spin", "serial, polling", 4.0), (64, "block", "64 in flight", 4.0)):
            yield Case(
                f"spacewire rmap read 4 B, {name}", "k/s", target,
                lambda in_flight=in_flight, wait=wait: self.read(self.ours(wait), in_flight, wait) / 1e3,
                lambda in_flight=in_flight: self.peer_read(in_flight) / 1e3, beside=SPW_RMAP if wait == "block" else f"{SPW_RMAP}, blocking",
            )  # fmt: skip
        yield Case(
            "spacewire rmap read 4 B, serial, its server", "k/s", 1.0,
            lambda: self.read(self.box, 1, "block") / 1e3, lambda: self.peer_read(1) / 1e3, beside=SPW_RMAP,
        )  # fmt: skip

    def bridges(self):
        """A line of 200 Mbit/s through a bridge in real time: the share of the theory, and the bridge's processor time for each direction."""
        yield Case(
            "spacewire bridge 60 B both ways", "Mbit/s", 0.995,
            lambda: self.bridged()["rate"], lambda: BOTH_WAYS_60, beside=THEORY,
        )  # fmt: skip
        yield Case(
            "spacewire bridge 60 B both ways, CPU per direction", "cores", 0.25,
            lambda: self.bridged()["cpu"] / 2, lambda: 1.0, "less", "a core",
        )  # fmt: skip

    # The two sides

    def bench(self, uri, test, wait="block", seconds=None):
        run = ["--repeat", "1", "--cpu", self.near, "--wait", wait, "--duration", f"{seconds or self.options.seconds}s"]
        command = [self.options.hodo, "bench", uri, *test, *run, "--congestion", congestion_control(), "--json", "-", "--quiet"]
        return measurement(output(command, self.options.seconds + 30), timed=False)

    def ours(self, wait):
        @contextlib.contextmanager
        def served():
            port = free_port("tcp")
            run = [self.options.hodo, "serve", "--cpu", self.far, "--threads", "1", "--wait", wait]
            with background([*run, "--congestion", congestion_control(), f"ssdtp2://{LOOPBACK}:{port}"], "tcp", port):
                yield port

        return served

    @contextlib.contextmanager
    def box(self):
        port = free_port("tcp")
        with background(["taskset", "-c", self.far, self.built("spacewire_box", BOX / "box.cpp"), LOOPBACK, str(port)], "tcp", port):
            yield port

    def sent(self, size, window):
        with self.ours("block")() as port:
            test = ["--test", "rate", "--mode", "send", "--window", str(window), "--sizes", str(size)]
            return self.bench(f"ssdtp2://{LOOPBACK}:{port}", test)["rate"]

    def read(self, server, in_flight, wait):
        with server() as port:
            test = ["--test", "rate", "--mode", "receive", "--window", str(in_flight), "--sizes", "4"]
            return self.bench(f"ssdtp2://{LOOPBACK}:{port}?far=rmap", test, wait)["rate"]["operations_per_s"]["median"]

    def peer_read(self, in_flight):
        program = self.built("spacewire_rmap", HERE / "spacewire_rmap.cpp")
        with self.box() as port:
            run = ["taskset", "-c", self.near, program, str(port), str(in_flight), str(self.options.seconds)]
            return json.loads(output(run, self.options.seconds + 20))["per_s"]

    def floor(self, what, size):
        return json.loads(output([compiled("spacewire_floor"), what, str(size), self.near, self.far, str(self.options.seconds)], 60))

    def bridged(self):
        """Mbit/s in the direction there, beside as much back, and the bridge's cores meanwhile."""
        shown = output([self.options.hodo, "spacewire", "bridge", "--preset", "cable", "--show"], 10)
        first, second = free_port("tcp"), free_port("tcp")
        file = TARGET / "spacewire_cable.toml"
        file.write_text(shown.replace("10030", str(first)).replace("10031", str(second)), encoding="utf-8")
        bridge = [self.options.hodo, "spacewire", "bridge", str(file), "--no-metrics", "--cpu", self.far]
        with background(bridge, "tcp", second) as process:
            test = ["--test", "rate", "--mode", "both", "--window", str(FEW), "--sizes", "60"]
            with Cores(process.pid) as cores:
                found = self.bench(f"ssdtp2://{LOOPBACK}:{first}?back={second}&rate=200M", test, seconds=LONG_S)
        return {"rate": found["rate"]["operations_per_s"]["median"] * 60 * 8e-6, "cpu": cores.busy()}

    def built(self, name, source):
        """A program with spw_rmap, compiled where it is newer than what is there."""
        program = TARGET / name
        if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
            return str(program)
        find = "import pathlib, pyspw_rmap; print(pathlib.Path(pyspw_rmap.__file__).parents[1])"
        done = subprocess.run([self.options.python, "-c", find], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{self.options.python} has no pyspw_rmap; `./test python` installs it")
        site = pathlib.Path(done.stdout.strip())
        include = TARGET / "spacewire_include"
        # What the compiler lacks is in gcc12.hpp.
        for header in (site / "include").rglob("*.hh"):
            text = re.sub(r"\.(and_then|or_else|transform|transform_error)\(", r" | compat::\1(", header.read_text(encoding="utf-8"))
            copy = include / header.relative_to(site / "include")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
        command = ["g++", "-std=c++23", "-O2", "-include", BOX / "gcc12.hpp", f"-I{include}", source, site / "lib/libspw_rmap.a", "-pthread", "-o", program]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{name} was not built: {done.stderr.strip()[:400]}")
        return str(program)


class Cores:
    """The cores that a process takes, watched on entry until exit."""

    INTERVAL_S = 0.2

    def __init__(self, pid):
        self.tasks = pathlib.Path(f"/proc/{pid}/task")
        self.seen, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def used_s(self):
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) * 1e-9 for task in self.tasks.iterdir())

    def watch(self):
        at, used = time.monotonic(), self.used_s()
        while not self.stop.wait(self.INTERVAL_S):
            now, then = time.monotonic(), self.used_s()
            self.seen.append((then - used) / (now - at))
            at, used = now, then

    def busy(self):
        """The median, for a run whose greater part is what is looked at."""
        return statistics.median(self.seen)
