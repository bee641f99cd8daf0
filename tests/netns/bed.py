"""Two hosts, that is namespaces, with a wire between them whose truth is known; and what else may hold a link back."""

import atexit
import contextlib
import functools
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import command
import shaped

HERE = pathlib.Path(__file__).parent
# Every tbf of these tests passes full frames of 1,538 bytes as 1,514.
GIGABIT, TENTH = "984395kbit", "98439kbit"
FULL_GIGABIT = f"rate {GIGABIT} burst 64k latency 20ms"
FULL_TENTH = f"rate {TENTH} burst 20k latency 50ms"
NUMBERS = itertools.count()


@functools.cache
def compiled():
    """The program that is the wire, built once."""
    folder = tempfile.TemporaryDirectory(prefix="hodo-")
    atexit.register(folder.cleanup)
    built = pathlib.Path(folder.name) / "wire"
    done = subprocess.run(["cc", "-O2", "-o", built, HERE / "wire.c"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return built


@contextlib.contextmanager
def hosts():
    """Two namespaces, without a wire yet."""
    made = shaped.Wire(f"{os.getpid()}-{next(NUMBERS)}")
    with contextlib.ExitStack() as stack:
        for name in (made.near, made.far):
            shaped.ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            shaped.ip("-n", name, "link", "set", "lo", "up")
        yield made


@contextlib.contextmanager
def ethernet(**disciplines):
    """A veth pair. `near` and `far` are the words of tbf for what leaves there, as `rate 100mbit burst 64k latency 20ms`; `mtu` is of both."""
    mtu = disciplines.pop("mtu", 1500)
    with hosts() as made:
        shaped.ip("link", "add", "wire", "netns", made.near, "type", "veth", "peer", "name", "wire", "netns", made.far)
        addressed(made, mtu)
        for end, words in disciplines.items():
            discipline(made, end, words)
        yield made


def discipline(made, end, words, how="replace"):
    subprocess.run(["tc", "-n", getattr(made, end), "qdisc", how, "dev", "wire", "root", "tbf", *words.split()], check=True)


@contextlib.contextmanager
def tunnel(mtu=1500, **what):
    """A wire that does something to packets: delay and jitter in us, loss and swap as shares, rate and police in bit/s, queue and bucket in bytes."""
    with hosts() as made:
        words = [f"{name}={value}" for name, value in what.items()]
        pipe = subprocess.PIPE
        with subprocess.Popen([compiled(), made.near, made.far, *words], stdin=pipe, stdout=pipe, text=True) as process:
            try:
                assert process.stdout.readline() == "ready\n"
                addressed(made, mtu)
                yield made
            finally:
                process.terminate()


def addressed(made, mtu):
    for name, address in ((made.near, made.near_address), (made.far, made.far_address)):
        shaped.ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
        shaped.ip("-n", name, "link", "set", "wire", "mtu", str(mtu), "up")


@contextlib.contextmanager
def quota(share, period_us=20_000):
    """A control group whose processes have this share of one processor; its name is for `in_group`."""
    name = f"hodo-{os.getpid()}"
    unified = pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = pathlib.Path("/sys/fs/cgroup") / ("" if unified else "cpu") / name
    group.mkdir()
    limit = int(share * period_us)
    if unified:
        (group / "cpu.max").write_text(f"{limit} {period_us}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(period_us))
        (group / "cpu.cfs_quota_us").write_text(str(limit))
    try:
        yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        command.wait_until(lambda: not (group / "cgroup.procs").read_text(), "its processes are gone")
        group.rmdir()


def is_busy():
    """Whether something else uses a fifth of a processor now, while nothing of these tests runs."""
    with open("/proc/stat", encoding="utf-8") as stat:
        before = stat.readline().split()
    time.sleep(0.2)
    with open("/proc/stat", encoding="utf-8") as stat:
        after = stat.readline().split()
    # All but idle and the wait for disks.
    used = sum(int(after[at]) - int(before[at]) for at in (1, 2, 3, 6, 7, 8))
    return used * command.TICK_S > 0.04


@contextlib.contextmanager
def neighbours(count, *, processors=None, nice=0):
    """Programs that never sleep; they have begun when the body runs."""
    spin = "print(flush=True)\nwhile True: pass"
    where = ["taskset", "-c", processors] if processors else []
    words = ["nice", "-n", str(nice), *where, sys.executable, "-c", spin]
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE))
            stack.callback(process.kill)
            process.stdout.readline()
        yield


class Here:
    """Both ends on this host."""

    far_address = "127.0.0.1"

    @staticmethod
    def at_near():
        return []

    at_far = at_near


@contextlib.contextmanager
def here():
    yield Here


@contextlib.contextmanager
def crowded():
    """Two endless loops on the one processor that both ends have, too."""
    with neighbours(2, processors="0"):
        made = Here()
        made.at_near = made.at_far = lambda: ["taskset", "-c", "0"]
        yield made


@contextlib.contextmanager
def rationed(end, share):
    """One end has this share of a processor."""
    with quota(share) as into:
        made = Here()
        setattr(made, end, lambda: into)
        yield made


class Stopping:
    """The far end stands still for 40 ms of each 50."""

    def __init__(self, pid):
        self.pid, self.done = pid, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.done.wait(0.01):
            self.pid.send_signal(signal.SIGSTOP)
            self.done.wait(0.04)
            self.pid.send_signal(signal.SIGCONT)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


PLACES = {
    "here": here,
    "gigabit": lambda: ethernet(near=FULL_GIGABIT, far=FULL_GIGABIT),
    "gigabit of 576": lambda: ethernet(near=FULL_GIGABIT, far=FULL_GIGABIT, mtu=576),
    "tenth": lambda: ethernet(near=FULL_TENTH, far=FULL_TENTH),
    "lossy": lambda: tunnel(delay=5000, loss=0.01),
    "far": lambda: tunnel(delay=5000),
    "near": lambda: tunnel(delay=1000),
    "very far": lambda: tunnel(delay=10_000),
    "policed": lambda: tunnel(police=300e6, bucket=100_000),
    "shallow": lambda: tunnel(delay=1000, rate=300e6, queue=6000),
    "slow": lambda: tunnel(delay=2000, rate=40e6, queue=100_000),
    "crowded": crowded,
    "rationed far end": lambda: rationed("at_far", 0.15),
    "rationed near end": lambda: rationed("at_near", 0.15),
    "starved far end": lambda: rationed("at_far", 0.1),
}
# The runs of a case.
RUNS = 3
# Whoever measures these waits for the wire, so that as many of them may be measured at once.
WAITED_FOR = {"lossy", "far", "near", "very far", "policed", "shallow", "slow", "tenth"}


def place(name):
    """The hosts and the wire of a name in `PLACES`, made and taken away."""
    return PLACES[name]()


@contextlib.contextmanager
def places(name):
    """A place for each run of a case where they go at once, else one."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(place(name)) for _ in range(RUNS if name in WAITED_FOR else 1)]


def look_at_the_rest(found, cases, look, at):
    """Runs the cases that are not in `found` yet, each at what `at` makes of its first word; returns what all of them found."""
    for name, *case in cases:
        if (name, *case) not in found:
            with at(name) as made:
                found[name, *case] = look(made, *case)
    return found


@contextlib.contextmanager
def far_end(place, link):
    """The link to measure, with a far end at its place unless it is simulated."""
    first, *options = link.split()
    stopped = first == "stopped"
    if stopped:
        first, *options = options
    if "://" in first or "?" in first:
        yield first
        return
    address = "" if first == "unix" else f"{place.far_address}:0"
    with command.serving(f"{first}://{address}", *options, prefix=place.at_far()) as server, contextlib.ExitStack() as stack:
        if stopped:
            stack.enter_context(Stopping(server))
        yield server.uri
