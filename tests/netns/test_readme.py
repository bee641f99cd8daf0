"""README.md: each of its commands does what it says, on a host `here` and a host `there`, and prints what the page shows."""

import contextlib
import os
import re
import subprocess

import command
import pytest
import readme
import shaped

# Appended to the measurements, which would take three minutes as they are written.
SHORT = {"hodo bench": " --count 20 --warmup 1ms --repeat 1", "hodo farm": " --events 1K"}
LENGTHS = ["short", pytest.param("as written", marks=pytest.mark.long("timing"))]
TO_BEGIN_WITH = [typed for typed in readme.in_text() if re.match(r"hodo (farm )?bench( [^-]|$)", typed)]
NAMED = sorted(set(readme.in_text()) - set(TO_BEGIN_WITH))


def of_length(line, length):
    return line + (SHORT.get(" ".join(line.split()[:2]), "") if length == "short" else "")


class Hosts:
    """Two hosts with a wire between them, whose names `here` and `there` stand in their /etc/hosts, and a folder with `hodo` in its PATH."""

    def __init__(self, wire, folder):
        self.wire, self.folder = wire, folder
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{wire.near_address} here\n{wire.far_address} there\n")
        (folder / "bin").mkdir()
        (folder / "bin/hodo").symlink_to(command.HODO)

    def started(self, host, line, **options):
        """A line of a shell on a host, which runs beside the test."""
        at = self.wire.at_far() if host == "there" else self.wire.at_near()
        # The mount is that of this process alone: `ip netns exec` has given it a namespace for them.
        shell = ["sh", "-c", 'mount --bind hosts /etc/hosts && exec bash -c "$1"', "sh", line]
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return command.beside([*at, *shell], cwd=self.folder, env={**os.environ, "PATH": path}, **options)

    def run(self, host, line, within=120):
        """What a command prints, once it has succeeded."""
        with self.started(host, line, stderr=subprocess.PIPE) as process:
            printed, complaint = process.communicate(timeout=within)
        assert process.returncode == 0, f"{line}: {complaint}"
        return printed

    @contextlib.contextmanager
    def running(self, host, line):
        """A server, once it listens, until the end of the test."""
        with self.started(host, line) as process:
            command.announced(process, "listening on")
            yield


@pytest.fixture(scope="module")
def wire():
    with shaped.wire() as made:
        yield made


@pytest.fixture
def hosts(wire, tmp_path):
    return Hosts(wire, tmp_path)


@pytest.mark.parametrize("length", LENGTHS)
def test_consoles_show_what_their_commands_print(hosts, length):
    # The fault that the page shows.
    subprocess.run([*hosts.wire.at_near(), "sysctl", "-q", "-w", "net.ipv4.tcp_congestion_control=reno"], check=True)
    with contextlib.ExitStack() as servers:
        for host, line, output in readme.shown():
            if line == readme.DEMONSTRATION:
                continue
            if "hodo serve" in line:
                servers.enter_context(hosts.running(host, line))
                continue
            printed = hosts.run(host, of_length(line, length))
            if "sim+" in line:
                assert readme.one_line(output) == readme.one_line(printed), line
            assert readme.words(output) <= readme.words(printed), line
    assert (hosts.folder / "results/lab/report.html").exists()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("line", TO_BEGIN_WITH)
def test_each_field_has_a_command_to_begin_with(hosts, line, length):
    assert "binds" in hosts.run("here", of_length(line, length))


@pytest.mark.parametrize("line", NAMED)
def test_commands_that_are_named_exist(hosts, line):
    assert "Usage: hodo" in hosts.run("here", line if line.endswith("--help") else f"{line} --help")


def test_the_page_is_short_and_complete():
    assert len(readme.TEXT.split()) <= 1200
    wide = [line for line in readme.TEXT.splitlines() if len(line) > 80 and not line.startswith(("|", "!["))]
    assert not wide, "the page is read at 80 columns"
    # The first is `./test long demonstration`, the last what runs this test.
    assert readme.indented() == ["cargo run --release", "cargo run --release", "./test"]
    assert [line.split()[:2] for _, line, _ in readme.shown()] == [["hodo"], ["hodo", "serve"], ["hodo", "bench"], ["hodo", "why"], ["hodo", "doctor"]]
    assert len(TO_BEGIN_WITH) == 6 and len(NAMED) >= 6, (TO_BEGIN_WITH, NAMED)
