"""Runs `hodo` as a user does, with a bound on everything."""

import contextlib
import os
import pathlib
import queue
import random
import re
import resource
import signal
import socket
import subprocess
import threading
import time

import contract

ROOT = pathlib.Path(__file__).resolve().parents[1]
# As `./test build`: other packages would choose other features, and everything would be built again.
BUILD = ["cargo", "build", "--quiet", "--config", "tests/gate/lints.toml", "--profile", "gate", "--locked", "--workspace", "--exclude", "hodo-style"]
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "gate"
HODO = os.environ.get("HODO", str(BUILT / "hodo"))
# Long enough for a loaded machine; what has to be quicker says so itself.
BOUND_S = 60
SHORT = ["--duration", "100ms", "--warmup", "20ms", "--repeat", "1", "--quiet"]
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Each holds the ports that a test of this process was given.
CLAIMS = []
# The errors of a file in /proc whose process, thread or descriptor has ended since it was found: on opening it, and on reading it.
GONE = (FileNotFoundError, ProcessLookupError)


def hodo(*arguments, within=BOUND_S, prefix=(), stdout=subprocess.PIPE):
    """Runs the command to its end; fails where that takes longer than `within` seconds."""
    command = [*prefix, HODO, *map(str, arguments)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True)
    try:
        out, complaint = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        _, complaint = process.communicate()
        raise AssertionError(f"not done after {within} s: {' '.join(command)}\n{complaint}") from None
    return subprocess.CompletedProcess(command, process.returncode, out, complaint)


def document(*arguments, within=BOUND_S, prefix=()):
    """The document of a run that has to succeed."""
    done = hodo("bench", *arguments, "--json", "-", within=within, prefix=prefix)
    assert done.returncode == 0, f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stderr}"
    return contract.parse(done.stdout)


def bench(*arguments, within=BOUND_S, prefix=()):
    """The measurements of a run that has to succeed."""
    return document(*arguments, within=within, prefix=prefix)["measurements"]


def refused(*arguments, status, says, within=BOUND_S):
    """Runs a command that has to be turned down: with this status, and a message that holds every one of `says`."""
    done = hodo(*arguments, within=within)
    expected = status if isinstance(status, tuple) else (status,)
    assert done.returncode in expected, f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stderr}"
    for word in says:
        assert re.search(word, done.stderr, re.IGNORECASE), f"the message does not say {word!r}:\n{done.stderr}"
    assert "panicked" not in done.stderr, done.stderr
    assert len(done.stderr) < 4000, "a message, not a flood"
    return done


def spread(*axes):
    """Cases in which every value of every axis stands at least once: as many as the longest axis has, and not all their combinations.

    Each time an axis begins again it begins one further on, so that the same values do not always meet.
    """
    return [tuple(axis[(case + case // len(axis)) % len(axis)] for axis in axes) for case in range(max(map(len, axes)))]


def example(name):
    """The program of an example of some crate."""
    subprocess.run([*BUILD, "--example", name], cwd=ROOT, check=True, timeout=900)
    return BUILT / "examples" / name


def started(*arguments, prefix=(), **options):
    """A command that runs beside the test, and is ended with it."""
    return beside([*prefix, HODO, *map(str, arguments)], **options)


@contextlib.contextmanager
def beside(command, **options):
    """Any program that runs beside the test, and is ended with it."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.Popen(command, text=True, **{**streams, **options})
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@contextlib.contextmanager
def serving(uri, *options, prefix=(), **more):
    """A server's process, with the URI that it says it listens at as `uri`."""
    with started("serve", uri, *options, prefix=prefix, **more) as process:
        process.uri = announced(process, r"\b[a-z][a-z0-9.-]*://[^\s`'\",]+")[0].rstrip(".;")
        yield process


@contextlib.contextmanager
def hub(*options, listen=None, **more):
    """A hub's process, with the address where it listens as `at`."""
    with started("hub", "--listen", listen or free_address(), "--no-metrics", *options, **more) as process:
        process.at = announced(process, r"listening on ([\d.]+:\d+)")[1]
        yield process


def forward(stream, lines):
    # The pipe is read to its end, so that a talkative server is never held up.
    with contextlib.suppress(ValueError):
        for line in stream:
            lines.put(line)
    lines.put(None)


def announced(process, pattern):
    """What a server says of itself first that matches."""
    lines = queue.Queue()
    threading.Thread(target=forward, args=(process.stdout, lines), daemon=True).start()
    said = []
    give_up = time.monotonic() + BOUND_S
    while time.monotonic() < give_up:
        try:
            line = lines.get(timeout=0.1)
        except queue.Empty:
            continue
        if line is None:
            break
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"the server ({process.poll()}) did not say {pattern!r}:\n{''.join(said)}")


def place(uri):
    """Host and port of a URI."""
    host, port = uri.split("://", 1)[1].split("/", 1)[0].split("?", 1)[0].rsplit(":", 1)
    return host.strip("[]"), int(port)


def free_port(kind=socket.SOCK_STREAM, together=1):
    """The first of so many free ports in a row. The kernel gives them to nobody who asks for any port, and no other test gets them."""
    for first in random.sample(range(20_000, 32_769 - together), 1_000):
        with contextlib.suppress(OSError), contextlib.ExitStack() as claims:
            for number in range(first, first + together):
                claims.enter_context(socket.socket(socket.AF_UNIX)).bind(f"\0hodo-port-{number}")
                with socket.socket(socket.AF_INET, kind) as found:
                    found.bind(("", number))
            CLAIMS.append(claims.pop_all())
            return first
    raise AssertionError(f"at 1,000 places there are no {together} free ports in a row")


def free_address(kind=socket.SOCK_STREAM):
    """An address of this host that nobody else gets: what listens there and ends can be started there again. One that the kernel gave is anybody's then."""
    return f"127.0.0.1:{free_port(kind)}"


def stat(path):
    """The fields of a process or a thread after its name, from its state on."""
    return pathlib.Path(path).read_text(encoding="utf-8").rsplit(")", 1)[1].split()


def cpu_s(pid):
    """Seconds of CPU that a process has used."""
    fields = stat(f"/proc/{pid}/stat")
    return (int(fields[11]) + int(fields[12])) * TICK_S


def wait_until(condition, what, within=BOUND_S):
    give_up = time.monotonic() + within
    while not condition():
        assert time.monotonic() < give_up, f"after {within} s still not so: {what}"
        time.sleep(0.02)


def wait_until_busy(pid, seconds=0.3):
    """Until a process has worked for so long: a server is then in the middle of a measurement."""
    before = cpu_s(pid)
    wait_until(lambda: cpu_s(pid) - before > seconds, f"process {pid} has worked for {seconds} s")


def wait_until_asleep(*processes):
    """Until no thread of these has had anything to do at five looks in a row: what could be sent or answered has been."""
    looks = 0

    def are_asleep():
        nonlocal looks
        threads = [thread for pid in processes for thread in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
        try:
            looks = looks + 1 if all(stat(thread)[0] == "S" for thread in threads) else 0
        except GONE:
            looks = 0
        return looks == 5

    wait_until(are_asleep, f"processes {processes} sleep")


def children(pid):
    """Processes that a process has started."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(*GONE):
            found += map(int, task.read_text(encoding="ascii").split())
    return found


def open_files(process):
    """What the descriptors of a process, or of `process/task/thread`, lead to."""
    found = set()
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(*GONE):
            found.add(os.readlink(entry))
    return found


def is_connected(pid):
    """Whether a process has an established TCP connection."""
    held = open_files(pid)
    rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return any(row[3] == "01" and f"socket:[{row[9]}]" in held for row in rows)


def is_there(pid):
    """Whether a process runs, and is not merely waiting to be collected."""
    try:
        state = stat(f"/proc/{pid}/stat")[0]
    except GONE:
        return False
    return state not in "ZX"


def allow_files(count):
    """Raises this process's bound on open files, which its children inherit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        wanted = hard if hard == resource.RLIM_INFINITY or hard >= count else count
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(wanted, count)))
        except (ValueError, PermissionError):
            raise AssertionError(f"{count} open files are needed, {hard} allowed: raise `ulimit -Hn`") from None
