"""Two hosts, that is namespaces, with a wire between them whose truth is known; and what else may hold a link back."""

import atexit
import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import command
import shaped

HERE = pathlib.Path(__file__).parent
# Every tbf of these tests passes full frames of 1,538 bytes as 1,514.
GIGABIT, TENTH = "984395kbit", "98439kbit"


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
    made = shaped.Wire(os.getpid())
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
    """A wire that does something to packets: delay and jitter in us, loss as a share, rate and police in bit/s, queue and bucket in bytes."""
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
