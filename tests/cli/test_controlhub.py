"""The ControlHub's commands as its users script them."""

import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess

import command
import pytest
from test_hub import READ, WRITE, answers, ask, chunk, packet

SCRIPTS = command.ROOT / "packaging/controlhub"


class Hub:
    """A hub of its own: at the usual ports, of an address of loopback that nobody else has."""

    def __init__(self, folder):
        host = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        self.listen, self.pages = (host, 10203), f"{host}:9203"
        self.log, self.pid_file, self.conf = folder / "log/hub.log", folder / "run/hub.pid", folder / "controlhub.conf"
        self.set()

    def set(self, options="", **more):
        settings = {
            "HODO": command.HODO,
            "HUB_OPTIONS": f"--listen {self.listen[0]}:{self.listen[1]} --patience 20s {options}",
            "HUB_PAGES": self.pages,
            "HUB_PID_FILE": self.pid_file,
            "HUB_LOG": self.log,
            **more,
        }
        self.conf.write_text("".join(f"{name}='{value}'\n" for name, value in settings.items()), encoding="utf-8")

    def run(self, verb, status=0, says=""):
        """Runs a command to its end, which has to come with this status and with text that holds `says`."""
        done = self.begin(verb)
        text, _ = done.communicate(timeout=command.BOUND_S)
        assert done.returncode == status, f"{verb} ended with {done.returncode}:\n{text}"
        assert re.search(says, text), f"{verb} does not say {says!r}:\n{text}"
        return text

    def begin(self, verb):
        environment = {**os.environ, "CONTROLHUB_CONF": str(self.conf)}
        return subprocess.Popen(
            [SCRIPTS / f"controlhub_{verb}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def pid(self):
        return int(self.pid_file.read_text(encoding="ascii"))

    def connect(self):
        return socket.create_connection(self.listen, timeout=20)


@pytest.fixture
def hub(tmp_path):
    hub = Hub(tmp_path)
    yield hub
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(hub.pid(), signal.SIGKILL)


def test_it_starts_and_stops_and_says_which(hub):
    hub.run("status", status=1, says="refused")
    hub.run("stats", status=1, says="refused")
    hub.run("stop", status=1, says="already stopped")
    for _ in range(2):
        hub.run("start", says=rf"listening on {hub.listen[0]}:10203, as process \d+")
        hub.connect().close()
        hub.run("status", says="ready")
        hub.run("start", status=1, says="already running")
        hub.run("stats", says="1 clients connected so far")
        pid = hub.pid()
        hub.run("stop", says=f"process {pid} has stopped")
        assert not hub.pid_file.exists()
        hub.run("status", status=1)
        hub.run("stop", status=1, says="already stopped")


def test_it_belongs_to_nobody_who_started_it(hub):
    hub.run("start")
    assert os.getsid(hub.pid()) == hub.pid(), "a session of its own"
    open_files = [os.readlink(f"/proc/{hub.pid()}/fd/{number}") for number in (0, 2)]
    assert open_files == ["/dev/null", str(hub.log)]


def test_boards_are_reached_through_it(hub):
    hub.run("start")
    with command.serving("ipbusudp-2.0://127.0.0.1:0") as device, hub.connect() as client:
        port = command.place(device.uri)[1]
        assert [code for code, _ in ask(client, (port, packet(WRITE, 0x10, 7)))] == [0]
        hub.run("stats", says=rf"127.0.0.1:{port} +2.0 +answers +1 +1 +0")


def test_why_it_cannot_start_is_said(hub, tmp_path):
    hub.set("--allow /nowhere/boards")
    hub.run("start", status=4, says="(?s)could not start.*/nowhere/boards")
    hub.set("--frobnicate")
    text = hub.run("start", status=4, says="--frobnicate")
    assert "/nowhere" not in text, "what an earlier try said is not said again"
    hub.set(HODO=tmp_path / "none")
    hub.run("start", status=4, says="none")
    hub.set()
    with socket.socket() as other:
        other.bind(hub.listen)
        other.listen()
        hub.run("start", status=4, says="cannot listen on .*:10203.*another")
    assert not hub.pid_file.exists()
    hub.run("start")


def test_what_is_under_way_is_answered_before_it_ends(hub):
    hub.run("start")
    with command.serving("ipbusudp-2.0://127.0.0.1:0?back.delay=500ms") as device, hub.connect() as client:
        port = command.place(device.uri)[1]
        client.sendall(chunk(*[(port, packet(READ, 0, count=1))] * 3))
        command.wait_until(lambda: re.search(r"\n127.0.0.1:\d+ +1 +3 ", hub.run("stats")), "the hub has the packets")
        stop = hub.begin("stop")
        assert [code for code, _ in answers(client)] == [0, 0, 0]
        assert client.recv(1) == b""
        assert stop.wait(command.BOUND_S) == 0
        stop.stdout.close()


def test_one_that_does_not_end_is_named(hub):
    hub.set(HUB_STOP_WITHIN="100ms")
    hub.run("start")
    os.kill(hub.pid(), signal.SIGSTOP)
    hub.run("stop", status=3, says=f"process {hub.pid()} was asked to stop and has not")
    os.kill(hub.pid(), signal.SIGCONT)
    command.wait_until(lambda: not hub.pid_file.exists(), "it has ended")


def test_one_that_was_killed_leaves_nothing_in_the_way(hub):
    hub.run("start")
    os.kill(hub.pid(), signal.SIGKILL)
    command.wait_until(lambda: not command.is_there(hub.pid()), "it is gone")
    hub.run("status", status=1)
    hub.run("stop", status=1, says="already stopped")
    hub.run("start")
    hub.run("status", says="ready")


def test_one_that_somebody_else_started_is_left_alone(hub):
    with command.started("hub", "--listen", f"{hub.listen[0]}:10203", "--metrics", hub.pages) as other:
        assert "listening on" in other.stdout.readline()
        hub.run("status", says="ready")
        hub.run("start", status=1, says="already running")
        hub.run("stop", status=3, says="was not started here")
        assert other.poll() is None


def test_settings_that_cannot_be_read_are_told(hub):
    hub.conf.unlink()
    hub.run("start", status=5, says=str(hub.conf))


def test_a_reminder_of_how_it_is_used():
    done = subprocess.run([SCRIPTS / "controlhub", "restart"], capture_output=True, text=True, timeout=command.BOUND_S)
    assert done.returncode == 5 and "start|stop|status|stats" in done.stderr
    names = {path.name for path in pathlib.Path(SCRIPTS).glob("controlhub_*")}
    assert names == {f"controlhub_{verb}" for verb in ("start", "stop", "status", "stats")}
