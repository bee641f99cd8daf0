"""Every daemon ends when told, within its drain and a second, whatever it is in. A new daemon has a row in DAEMONS."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import command
import pva
import pytest

DRAIN_S = 1
# Beyond its drain and a second, for a loaded machine: what waits for ever waits for longer.
SLACK_S = 1.5
SIGTERM_CAUGHT = 1 << (signal.SIGTERM - 1)
NOBODY = "127.0.0.1:9"

# How each is started, where FOLDER is one to write to.
DAEMONS = {
    "hub": "hub --listen 127.0.0.1:0 --no-metrics --drain 1s",
    "serve tcp": "serve tcp://127.0.0.1:0",
    "serve udp": "serve udp://127.0.0.1:0",
    "serve unix": "serve unix",
    "serve pva": "serve pva://127.0.0.1:0",
    "serve roce": "serve roce://127.0.0.1:0",
    "serve ipbus": "serve ipbustcp-2.0://127.0.0.1:0",
    "serve boards": "serve ipbusudp-2.0://127.0.0.1:0?boards=8",
    "serve ssdtp2": "serve ssdtp2://127.0.0.1:0",
    "serve farm": "serve farm://127.0.0.1:0",
    "pva serve": "pva serve FOLDER/pvs.toml --listen 127.0.0.1:0 --tcp-only --no-metrics --drain 1s",
    "farm controller": "farm controller --listen 127.0.0.1:0 --no-metrics --drain 1s --store FOLDER/store",
    "farm builder": f"farm builder --listen 127.0.0.1:0 --no-metrics --drain 1s --sources 2 --to {NOBODY}",
    "farm node": f"farm node --to {NOBODY} --drain 1s",
    "farm programs": f"farm node --to {NOBODY} --drain 1s --workers 2 --command sleep 1000",
    "farm source": f"farm source --to {NOBODY} --drain 1s",
    "spacewire bridge": "spacewire bridge FOLDER/network.toml --no-metrics",
    "watch": "watch sim+tcp:// --no-metrics",
}
PVS = '[[pv]]\nname = "A"\ntype = "int"\n'


# Ends the processes that it has started, in order, each of which has its own row.
OTHERS = {"farm run"}


def commands(*words):
    """All commands below these words, with their help."""
    said = command.hodo(*words, "--help").stdout
    names = re.search(r"^Commands:\n((?:  .*\n)+)", said, re.MULTILINE)
    yield " ".join(words), said
    for name in re.findall(r"^  (\w[\w-]*)", names[1], re.MULTILINE) if names else []:
        if name != "help":
            yield from commands(*words, name)


def test_every_daemon_has_a_row():
    daemons = {words for words, said in commands() if "--log-level" in said}
    rows = {words for words in daemons for line in DAEMONS.values() if line.startswith(f"{words} ")}
    assert daemons == rows | OTHERS


@pytest.fixture(params=DAEMONS)
def words(request, tmp_path):
    (tmp_path / "pvs.toml").write_text(PVS, encoding="utf-8")
    network = subprocess.run([command.HODO, "spacewire", "bridge", "--show"], capture_output=True, check=True, text=True).stdout
    (tmp_path / "network.toml").write_text(re.sub(r"(ssdtp2|gresb) = \d+", r"\1 = 0", network), encoding="utf-8")
    return DAEMONS[request.param].replace("FOLDER", str(tmp_path)).split()


def has_begun(process):
    """Whether a daemon catches signals, which it does before it serves."""
    found = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8"))
    return process.poll() is None and int(found[1], 16) & SIGTERM_CAUGHT


@contextlib.contextmanager
def begun(*words, **options):
    process = subprocess.Popen([command.HODO, *words], **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **options})
    try:
        command.wait_until(lambda: process.poll() is not None or has_begun(process), "it catches signals")
        assert process.poll() is None, f"it has ended with {process.returncode}"
        yield process
    finally:
        process.kill()
        process.wait()


def ends_in_time(process, drain_s=DRAIN_S):
    begun_at = time.monotonic()
    process.terminate()
    try:
        process.wait(drain_s + 30)
    finally:
        took_s = time.monotonic() - begun_at
    assert took_s < drain_s + 1 + SLACK_S, f"it took {took_s:.1f} s"


@contextlib.contextmanager
def unread():
    """The writing end of a pipe that is full."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, bytes(4096))
    try:
        yield writer
    finally:
        os.close(reader)
        os.close(writer)


def test_with_nothing_to_do(words):
    with begun(*words) as process:
        ends_in_time(process)


def test_whose_log_nobody_reads(words):
    with unread() as full, begun(*words, "--log-level", "trace", stdout=full, stderr=full) as process:
        ends_in_time(process)


def test_with_clients_that_say_nothing_or_half_of_something(words):
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(begun(*words))
        has_sockets = lambda: any(name.startswith("socket:") for name in command.open_files(process.pid))  # noqa: E731
        # Who only connects has none where nobody listens, and a simulated link neither.
        command.wait_until(lambda: {"watch", "node", "source"} & {*words} or has_sockets(), "it has opened its sockets")
        for port in listening(process.pid):
            for part in (b"", b"\x00", b"\xca\x02\x00\x01\xff\xff\xff\x7f", bytes(64)):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
                with contextlib.suppress(OSError):
                    client.sendall(part)
        ends_in_time(process)


def listening(pid):
    """The ports of TCP on which a process listens."""
    sockets = command.open_files(pid)
    rows = [row.split() for row in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return [int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


CALLS = """
[[call]]
name = "CALL"
command = ["sh", "-c", {script}]
timeout = "1000s"
"""


def called(folder, script, **options):
    file = folder / "calls.toml"
    file.write_text(CALLS.format(script=json.dumps(script)), encoding="utf-8")
    return pva.serving(file, "--drain", "1s", **options)


SCRIPTS = {
    "sleeps": "sleep 1000",
    "leaves a child behind": "sleep 1000 & sleep 1000",
    "leaves a daemon behind": "setsid sleep 100 & sleep 1000",
    "ignores signals": "trap '' TERM INT HUP; sleep 1000; sleep 1000",
}

@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_program_of_a_call(script, tmp_path):
    with called(tmp_path, script) as process, contextlib.ExitStack() as stack:
        client = stack.enter_context(command.started("pva", "call", "-w", "100", f"pva://{process.at}/CALL"))
        command.wait_until(lambda: command.children(process.pid), "the program runs")
        del client
        ends_in_time(process)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_ten_thousand_calls_of_a_client_that_is_gone(script, tmp_path):
    with called(tmp_path, script) as process:
        client = pva.calls(process.at, "CALL", 10_000)
        command.wait_until(lambda: command.children(process.pid), "programs run")
        client.close()
        # What it has asked for goes with it: the programs, too.
        command.wait_until(lambda: not command.children(process.pid), "no program runs for a client that is gone")
        ends_in_time(process)


DECIDERS = {
    "leaves a child behind": "sleep 1000 & exit 0",
    "leaves a daemon behind": "setsid sleep 100 & exit 0",
}


@pytest.mark.parametrize("script", DECIDERS.values(), ids=DECIDERS)
def test_deciders_that_leave_a_child_behind_decide_all_the_same(script, tmp_path):
    with command.started("farm", "controller", "--listen", "127.0.0.1:0", "--no-metrics", "--events", "20", "--until-done") as controller:
        at = command.announced(controller, r"listening on ([\d.:]+)")[1]
        with begun("farm", "node", "--to", at, "--exec", "sh", "-c", script):
            assert controller.wait(30) == 0


@pytest.mark.parametrize("way", ["--command", "--exec"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_node_whose_deciders_do_not_answer(way, script, tmp_path):
    with command.started("farm", "controller", "--listen", "127.0.0.1:0", "--no-metrics", "--events", "20") as controller:
        at = command.announced(controller, r"listening on ([\d.:]+)")[1]
        with begun("farm", "node", "--to", at, "--drain", "1s", way, "sh", "-c", script) as node:
            command.wait_until(lambda: command.children(node.pid), "it decides")
            programs = command.children(node.pid)
            ends_in_time(node)
            command.wait_until(lambda: not any(map(command.is_there, programs)), "its programs end with it")
