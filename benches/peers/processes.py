"""Programs that are built, run and ended here, what they say, and the ports that they listen at.

All of them run in one scheduling class. As root, threads of EPICS put themselves into SCHED_FIFO, where they run before
everything else; so the right to that is taken from every program, or every program is started there.
"""

import functools
import json
import os
import pathlib
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
LOOPBACK = "127.0.0.1"
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"


# What stands before a command in each class; who is not root has no right that could be taken away.
CLASSES = {
    "other": ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"] if os.geteuid() == 0 else [],
    "fifo": ["chrt", "--fifo", "10"],
}
chosen_class = "other"


class Failed(Exception):
    """A run that gave no figure, and why."""


class Case:
    """One exchange that both sides can do: its figure, beside whose, and the ratio to that one's that is wanted."""

    def __init__(self, name, unit, target, ours, peer, better="more", beside=""):
        self.name, self.unit, self.target, self.better, self.beside = name, unit, target, better, beside
        self.ours, self.peer = ours, peer

    def met(self, ratio):
        return ratio <= self.target if self.better == "less" else ratio >= self.target


def in_class(command):
    """The command that runs another one in the chosen class."""
    return [*CLASSES[chosen_class], *command]


def output(command, seconds):
    """What a command prints; it is killed after so many seconds."""
    process = subprocess.Popen(in_class(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{command[0]} was not done after {seconds} s: {' '.join(command)}") from error
    finally:
        end(process)
    if process.returncode != 0:
        raise Failed(f"`{' '.join(command)}` ended with {process.returncode}: {(complaint or out).strip()[-400:]}")
    return out


@functools.cache
def knows_adaptive(hodo):
    return "adaptive" in subprocess.run([hodo, "bench", "--help"], capture_output=True, text=True, check=False).stdout


def word(options, wait):
    """What a build calls a way to wait."""
    return "block" if wait == "adaptive" and not knows_adaptive(options.hodo) else wait


def compiled(name, *libraries):
    """A program of this directory: `name.c` and `name_*.c`, compiled where they are newer than what is there."""
    sources = [HERE / f"{name}.c", *sorted(HERE.glob(f"{name}_*.c"))]
    program = HERE.parents[1] / "target" / name
    newest = max(path.stat().st_mtime for path in [*sources, *HERE.glob("*.h")])
    if not program.exists() or program.stat().st_mtime < newest:
        program.parent.mkdir(exist_ok=True)
        command = ["cc", "-O2", "-pthread", "-o", str(program), *map(str, sources), *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"{name} was not built; `./test tools` installs what it needs: {done.stderr.strip()[:400]}")
    return str(program)


def congestion_control():
    return pathlib.Path(CONGESTION_CONTROL).read_text(encoding="ascii").strip()


def iperf3(near, far, arguments, seconds):
    """What iperf3's client says of so many counted seconds."""
    port = free_port("tcp")
    server = ["taskset", "-c", far, "iperf3", "--server", "--one-off", "-p", str(port)]
    client = ["taskset", "-c", near, "iperf3", "--client", LOOPBACK, "-p", str(port), "--json"]
    client += ["-t", str(seconds), *arguments]
    with background(server, "tcp", port):
        found = json.loads(output(client, seconds + 20))
    if "error" in found:
        raise Failed(f"iperf3: {found['error']}")
    return found


def iperf3_stream_gbit(near, far, size, channels, seconds):
    """Gbit/s of payload that came over so many connections."""
    arguments = ["-l", str(size), "-P", str(channels), "-C", congestion_control(), "--omit", "1"]
    return iperf3(near, far, arguments, seconds)["end"]["sum_received"]["bits_per_second"] / 1e9


def measurement(text, timed=True):
    """The first measurement of hodo's JSON, whose operations were timed one by one or not."""
    try:
        found = json.loads(text)["measurements"][0]
    except (ValueError, KeyError, IndexError) as error:
        raise Failed(f"hodo's JSON holds no measurement: {error!r}") from error
    if found["verdict"]["state"] in ("failed", "interrupted") or (timed and not found["latency_ns"]):
        raise Failed(f"hodo: {found['verdict']['text']}")
    return found


class background:
    """A server, listening on entry, ended on exit."""

    def __init__(self, command, protocol, port):
        self.command, self.protocol, self.port = command, protocol, port

    def __enter__(self):
        self.process = subprocess.Popen(in_class(self.command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + 5
        while not listens(self.protocol, self.port):
            if self.process.poll() is not None or time.monotonic() > give_up:
                end(self.process)
                raise Failed(f"`{' '.join(self.command)}` does not listen")
            time.sleep(0.02)
        return self.process

    def __exit__(self, *_):
        end(self.process)


def end(process):
    """Ends a process that was started here, and only that."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def listens(protocol, port):
    state = "0A" if protocol == "tcp" else "07"
    for family in ("", "6"):
        with open(f"/proc/net/{protocol}{family}", encoding="ascii") as table:
            for row in table.readlines()[1:]:
                fields = row.split()
                if fields[1].endswith(f":{port:04X}") and fields[3] == state:
                    return True
    return False


def free_port(protocol):
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]
