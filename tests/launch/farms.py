"""Farms as files, and `hodo farm run` on them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import command

# One that is given twice has its verdict from the first time.
SOURCE = re.compile(
    r"source \d+: (\d+) accepted, (\d+) rejected, (\d+) quarantined, (\d+) incomplete, (\d+) given twice, (\d+) without"
)


def write(folder, text):
    file = pathlib.Path(folder) / "farm.toml"
    file.write_text(text, encoding="ascii")
    return file


def run(file, *options, within=120, prefix=()):
    """A farm's run to its end."""
    return command.hodo("farm", "run", file, *options, within=within, prefix=prefix)


def decided(done):
    """How many events have a verdict, in the sources' own words; none may lack it."""
    counts = [list(map(int, found)) for found in SOURCE.findall(done.stdout)]
    assert counts and all(without == 0 for *_, without in counts), f"{done.stdout}\n{done.stderr}"
    return sum(sum(verdicts) for *verdicts, _ in counts)


def is_well(done, events):
    """The run is done, and every event has its verdict."""
    text = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, text
    assert re.search(rf"^farm: done after .*; {events} events in .* events/s$", done.stdout, re.MULTILINE), text
    assert decided(done) == events, text


def own_program(folder):
    """A name of its own for `hodo`, by which its processes are known wherever they were started."""
    program = pathlib.Path(folder) / "hodo-of-the-test"
    program.symlink_to(command.HODO)
    return program


def kill(process):
    os.kill(process, signal.SIGKILL)


def processes(program):
    """Processes of a program."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(*command.GONE):
            if entry.read_bytes().split(b"\0")[0] == bytes(program):
                found.append(int(entry.parent.name))
    return found


class Running:
    """A farm that runs beside the test."""

    def __init__(self, process):
        self.process = process

    def of(self, role):
        """Processes of a role, as they were started."""
        found = []
        for child in sorted(command.children(self.process.pid)):
            with contextlib.suppress(*command.GONE):
                words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
                if role in words:
                    found.append(child)
        return found

    def connected(self, role, count):
        """Processes of a role, once there are so many and all of them are connected."""
        command.wait_until(
            lambda: len(self.of(role)) == count and all(map(command.is_connected, self.of(role))),
            f"{count} {role} are connected",
        )
        return self.of(role)

    def end(self, within=60):
        """What it says, to its end."""
        try:
            out, complaint = self.process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, complaint = self.process.communicate()
            raise AssertionError(f"not done after {within} s\n{out}\n{complaint}") from None
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, complaint)


@contextlib.contextmanager
def running(file, *options, prefix=()):
    """Starts a farm; it is killed with the test, and its processes end with it."""
    words = [*prefix, command.HODO, "farm", "run", *map(str, (file, *options))]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
