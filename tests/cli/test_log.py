"""Every daemon with a log that cannot be written: it goes on, counts the lines that are lost, and ends in order."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess

import command
import farms
import pytest
from test_hub import NO_STATUS, READ, Hub, ask, packet

# As `hodo` has it without an option; a process that does nothing needs none of it.
DRAIN_S = 5
VERBOSE = ["--log-level", "debug"]


@contextlib.contextmanager
def broken(kind):
    """A descriptor to write to: a full disk, a pipe that nobody reads and that is full, one whose reader has gone."""
    if kind == "full disk":
        reader, writer = None, os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
    if kind == "closed pipe":
        os.close(reader)
        reader = None
    if kind == "unread pipe":
        os.set_blocking(writer, False)
        for size in (65536, 1):
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writer, bytes(size))
        os.set_blocking(writer, True)
    try:
        yield writer
    finally:
        for descriptor in (reader, writer):
            if descriptor is not None:
                os.close(descriptor)


@pytest.fixture(params=["full disk", "closed pipe", "unread pipe", "file on a full disk"])
def log(request):
    """Options and descriptors of a daemon whose log is lost."""
    if request.param == "file on a full disk":
        yield [*VERBOSE, "--log", "/dev/full"], {"stderr": subprocess.DEVNULL}
    else:
        with broken(request.param) as descriptor:
            yield VERBOSE, {"stderr": descriptor}


def strangers(at, daemon=None):
    """Strangers come; until lines are lost, where the daemon counts them."""
    for _ in range(3):
        stranger(at)
    if daemon is not None:
        # A queue has to be full before a line is lost for want of a reader.
        command.wait_until(lambda: [stranger(at) for _ in range(100)] and lost(daemon) > 0, "lines are lost")


def stranger(at):
    """Sends bytes that mean nothing, as many as any message begins with, and waits until it is turned away."""
    host, port = at.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"\xff" * 64)
            while connection.recv(4096):
                pass


def lost(daemon):
    return int(re.search(r"^hodo_log_lines_lost_total (\d+)$", daemon.page("/metrics"), re.MULTILINE)[1])


def ends(process):
    """SIGTERM ends it in order, as it would with a log."""
    assert process.poll() is None, "it has ended by itself"
    process.send_signal(signal.SIGTERM)
    assert process.wait(DRAIN_S) == 0


@contextlib.contextmanager
def hub(*options, **streams):
    at = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    with command.started("hub", *at, *options, **streams) as process:
        yield Hub(process)


def test_a_hub(log):
    options, streams = log
    with hub(*options, **streams) as daemon:
        strangers(":".join(daemon.at.groups()), daemon)
        with daemon.connect() as client:
            assert ask(client, (1, packet(READ, 0, count=1))) == [(NO_STATUS, b"")]
        ends(daemon.process)


def test_a_controller_and_its_farm(log):
    options, streams = log
    with farms.controller(*options, **streams) as controller:
        strangers(controller.at, controller)
        with farms.builder(controller, "--sources", 1, *options, **streams) as builder:
            strangers(builder.at, builder)
            given = ["farm", "source", "--size", 100, "--rate", 1000]
            with (
                farms.node(controller, *options, **streams) as node,
                command.started(*given, "--to", builder.at, *options, **streams) as source,
            ):
                controller.wait_for(lambda farm: farm["events"]["rejected"] > 100, "events are decided")
                ends(source)
                ends(builder.process)
                ends(node)
        ends(controller.process)


def test_a_node_with_a_program(log):
    options, streams = log
    with farms.controller() as controller, farms.node(controller, *options, "--command", "false", **streams) as node:
        controller.wait_for_nodes(1)
        ends(node)


def test_a_far_end(log):
    options, streams = log
    with command.serving("tcp://127.0.0.1:0", *options, **streams) as server:
        assert command.bench(server.uri, "--test", "latency", *command.SHORT)
        ends(server)


RUN = """
[controller]
no_metrics = true
verbose = true
[[source]]
rate = 2_000
verbose = true
[[node]]
count = 2
verbose = true
"""


@pytest.mark.parametrize("kind", ["full disk", "closed pipe", "unread pipe"])
def test_a_whole_farm(kind, tmp_path):
    """What it passes on of its processes is lost, and all of them go on."""
    file = tmp_path / "farm.toml"
    file.write_text(RUN, encoding="ascii")
    with broken(kind) as descriptor, command.started("farm", "run", file, stdout=descriptor, stderr=descriptor) as run:
        command.wait_until(lambda: len(command.children(run.pid)) == 4, "all four are started")
        command.wait_until(lambda: all(map(command.is_connected, command.children(run.pid))), "all of them are connected")
        ends(run)


def listens(pid):
    """The ports where a process listens."""
    held = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(*command.GONE):
            held |= command.open_files(f"{pid}/task/{task.name}")
    rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held}


@pytest.mark.parametrize("kind", ["full disk", "closed pipe", "unread pipe"])
def test_one_whose_standard_output_cannot_be_written_either(kind):
    at = ["--listen", "127.0.0.1:0", "--no-metrics"]
    with broken(kind) as descriptor:
        process = subprocess.Popen([command.HODO, "hub", *at], stdout=descriptor, stderr=descriptor)
        try:
            command.wait_until(lambda: listens(process.pid), "it listens")
            (port,) = listens(process.pid)
            strangers(f"127.0.0.1:{port}")
            ends(process)
        finally:
            process.kill()
            process.wait()


def test_an_error_is_told_in_the_log_and_on_standard_error(tmp_path):
    log = tmp_path / "hub.log"
    options = ["--listen", "192.0.2.1:1", "--no-metrics", "--log", log]
    command.refused("hub", *options, status=1, says=["hodo: cannot listen on 192.0.2.1:1"])
    assert re.fullmatch(r"[\d-]{10}T[\d:.]{15}Z ERROR hodo hub: hodo: cannot listen .*\n", log.read_text())


def test_formats_and_levels(tmp_path):
    log = tmp_path / "hub.log"
    with hub(*VERBOSE, "--log", log, "--log-format", "json") as daemon:
        stranger(":".join(daemon.at.groups()))
        command.wait_until(lambda: log.read_text().count("\n") == 3, "three lines have come")
        ends(daemon.process)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["level"] for line in lines] == ["info", "debug", "warn"]
    assert all(line["name"] == "hodo hub" for line in lines), lines
    quiet = tmp_path / "quiet.log"
    with hub("--log-level", "off", "--log", quiet) as daemon:
        stranger(":".join(daemon.at.groups()))
        ends(daemon.process)
    assert quiet.read_text() == ""
    command.refused("hub", "--log-level", "loud", status=2, says=["loud", "debug, trace"])
    command.refused("hub", "--log", tmp_path / "none" / "hub.log", status=1, says=["cannot log to", "none/hub.log"])


def test_the_environment_names_the_level(monkeypatch):
    monkeypatch.setenv("HODO_LOG", "debug")
    with hub() as daemon:
        stranger(":".join(daemon.at.groups()))
        assert any("has connected" in line for line in daemon.process.stdout)
    monkeypatch.setenv("HODO_LOG", "loud")
    command.refused("hub", status=1, says=["HODO_LOG=loud", "debug, trace"])


def test_the_journal_gets_priorities(monkeypatch):
    reader, writer = os.pipe()
    found = os.fstat(writer)
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    with open(reader, encoding="utf-8") as read, open(writer, "wb") as log, hub(stderr=log) as daemon:
        stranger(":".join(daemon.at.groups()))
        assert read.readline().startswith("<6>hodo hub: only this host reaches it")
        assert re.match(r"<4>hodo hub: 127.0.0.1:\d+ is gone: ", read.readline())


def test_a_file_is_opened_again(tmp_path):
    log, moved = tmp_path / "hub.log", tmp_path / "hub.log.1"
    with hub("--log", log) as daemon:
        at = ":".join(daemon.at.groups())
        stranger(at)
        command.wait_until(lambda: log.read_text(), "a line has come")
        log.rename(moved)
        daemon.process.send_signal(signal.SIGHUP)
        command.wait_until(lambda: log.exists() and "reread" in moved.read_text() + log.read_text(), "it is there")
        stranger(at)
        command.wait_until(lambda: "is gone" in log.read_text(), "lines go to the new file")
    with command.serving("tcp://127.0.0.1:0", *VERBOSE, "--log", moved) as server:
        moved.unlink()
        server.send_signal(signal.SIGHUP)
        command.wait_until(moved.exists, "the file is there again")
        ends(server)


def test_a_disk_that_is_full_for_a_while(tmp_path):
    """What is lost meanwhile is told when there is room again."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "small", folder], check=True)
    try:
        with hub("--log", folder / "hub.log") as daemon:
            at = ":".join(daemon.at.groups())
            with contextlib.suppress(OSError), open(folder / "ballast", "wb", buffering=0) as ballast:
                while ballast.write(bytes(512)) == 512:
                    pass
            # The file may have a page that is not full.
            command.wait_until(lambda: stranger(at) or lost(daemon) > 0, "lines are lost")
            (folder / "ballast").unlink()
            stranger(at)
            told = "of this log were lost before this one"
            command.wait_until(lambda: told in (folder / "hub.log").read_text(), "what was lost is told")
            ends(daemon.process)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
