"""Files that commands and daemons read: pipes, devices, and what never answers hold nobody up."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time

import command
import pytest
import unanswering

SAMPLE = command.ROOT / "tests/report/sample.json"
NETWORK = subprocess.run([command.HODO, "spacewire", "bridge", "--show"], capture_output=True, check=True).stdout
PVS = b'[[pv]]\nname = "A"\ntype = "int"\n'
TABLE = b'<node id="top"><node id="a" address="0"/></node>'
DEVICES = b'<connections><connection id="board" uri="ipbusudp-2.0://127.0.0.1:9"/></connections>'

# What reads a file, where FILE stands, and what that may hold: of commands, which take pipes, and of daemons, which do not.
COMMANDS = {
    "report": ("report FILE", SAMPLE.read_bytes()),
    "compare": (f"compare {SAMPLE} FILE", SAMPLE.read_bytes()),
    "pva get": ("pva get -f FILE -w 0.1", b"NOSUCH"),
    "pva monitor": ("pva monitor -f FILE -w 0.1 --for 0.1", b"NOSUCH"),
    "pva info": ("pva info -f FILE -w 0.1", b"NOSUCH"),
    "ipbus nodes": ("ipbus nodes FILE", TABLE),
    "ipbus check": ("ipbus check FILE", TABLE),
    "ipbus vhdl": ("ipbus vhdl FILE --name top", TABLE),
    "ipbus table": ("ipbus read ipbusudp-2.0://127.0.0.1:9 a --table FILE --timeout 1ms", TABLE),
    "ipbus devices": ("ipbus devices --connections FILE", DEVICES),
    "ipbus connections": ("ipbus read board 0 --connections FILE --timeout 1ms", DEVICES),
    "ipbus write": ("ipbus block write ipbusudp-2.0://127.0.0.1:9 0 --input FILE --timeout 1ms", b"1\n2\n"),
    "spacewire write": ("spacewire write ssdtp2://127.0.0.1:9 0 --input FILE --path 1 --reply-path 1", b"abcd"),
    "spacewire send": ("spacewire send ssdtp2://127.0.0.1:9 --input FILE", b"abcd"),
    "spacewire lines": ("spacewire send ssdtp2://127.0.0.1:9 --lines FILE", b"01 02\n"),
    "bench payload": ("bench sim+tcp:// --test rate --payload FILE --sizes 64 --duration 10ms --repeat 1 --quiet", b"abcd"),
    "farm report": ("farm report FILE", b"{}"),
}
DAEMONS = {
    "hub": ("hub --listen 127.0.0.1:0 --no-metrics --allow FILE", b"127.0.0.1\n"),
    "serve payload": ("serve tcp://127.0.0.1:0 --payload FILE", b"abcd"),
    "serve table": ("serve ipbusudp-2.0://127.0.0.1:0?table=FILE", TABLE),
    "pva serve": ("pva serve FILE --listen 127.0.0.1:0 --tcp-only --no-metrics", PVS),
    "spacewire bridge": ("spacewire bridge FILE --no-metrics", NETWORK),
    "farm run": ("farm run FILE", b""),
    "pva replay": ("pva replay FILE --listen 127.0.0.1:0 --tcp-only", b""),
    "watch payload": ("watch tcp --no-metrics --payload FILE", b"abcd"),
}
# The message where it is no file at all.
SAYS = r"not a regular file|neither a file nor a pipe|no program writes|cannot be written|rename it|not a director"


def words(line, file):
    return [word.replace("FILE", str(file)) for word in line.split()]


def ended(line, file, within=20, **options):
    """Status and complaint of what reads a file, which has to end by itself."""
    process = subprocess.Popen([command.HODO, *words(line, file)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        out, complaint = process.communicate(timeout=within)
    finally:
        process.kill()
        process.communicate()
    return process.returncode, f"{out}{complaint}"


@pytest.fixture
def odd(tmp_path):
    """Makes what is no file, by its kind; a name that ends as all kinds of files do."""

    def make(kind, name="odd.xml"):
        path = tmp_path / name
        if kind == "socket":
            with contextlib.closing(socket.socket(socket.AF_UNIX)) as bound:
                bound.bind(str(path))
        elif kind == "device":
            path.symlink_to("/dev/zero")
        else:
            os.mkfifo(path)
        return path

    return make


@pytest.mark.parametrize("kind", ["device", "socket"])
@pytest.mark.parametrize("line", [line for line, _ in (COMMANDS | DAEMONS).values()], ids=list(COMMANDS | DAEMONS))
def test_devices_and_sockets_are_refused(line, kind, odd):
    code, said = ended(line, odd(kind))
    assert code in (1, 2) and re.search(SAYS, said), (code, said)


# What writes a file, where FILE stands.
WRITERS = {
    "results": "bench sim+tcp:// --test rate --sizes 64 --duration 10ms --repeat 1 --quiet --json FILE",
    "stream": "bench sim+tcp:// --test rate --sizes 64 --duration 10ms --repeat 1 --quiet --stream FILE",
    "report": f"report {SAMPLE} --json FILE",
}
PIPES = {name: line for name, (line, _) in (COMMANDS | DAEMONS).items()} | WRITERS


@pytest.fixture(scope="module")
def left_alone(tmp_path_factory):
    """What each says of a pipe whose other end nobody opens. All of them wait at the same time."""

    def end(name):
        pipe = tmp_path_factory.mktemp("pipes") / "odd.xml"
        os.mkfifo(pipe)
        return name, ended(PIPES[name], pipe, within=40)

    with concurrent.futures.ThreadPoolExecutor(len(PIPES)) as all_at_once:
        return dict(all_at_once.map(end, PIPES))


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_whose_other_end_nobody_opens_is_an_error(name, left_alone):
    code, said = left_alone[name]
    says = "no program reads this pipe, for 5s" if name in WRITERS else SAYS
    assert code in (1, 2) and re.search(says, said), (code, said)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_read_pipes_as_files(name, odd, tmp_path):
    line, content = COMMANDS[name]
    plain, pipe = tmp_path / "plain.xml", odd("pipe")
    plain.write_bytes(content)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
    writer.start()
    from_pipe = ended(line, pipe)
    expected = ended(line, plain)
    strip = lambda said: re.sub(r"[\d.,]+|plain|odd", "", said)  # noqa: E731
    assert from_pipe[0] == expected[0] and strip(from_pipe[1]) == strip(expected[1])
    writer.join(10)
    assert not writer.is_alive(), "nobody has read the pipe"


@pytest.mark.parametrize("line", WRITERS.values(), ids=WRITERS)
def test_a_reader_of_a_pipe_gets_everything(line, odd, tmp_path):
    pipe, plain, got = odd("pipe"), tmp_path / "plain", []
    reader = threading.Thread(target=lambda: (time.sleep(1), got.append(pipe.read_bytes())), daemon=True)
    reader.start()
    assert ended(line, pipe)[0] == 0
    reader.join(10)
    assert ended(line, plain)[0] == 0
    assert got and len(got[0]) > 0.5 * plain.stat().st_size, "it got less than a file gets"


@pytest.mark.parametrize("name", DAEMONS)
def test_daemons_take_no_time_to_refuse_a_pipe(name, odd):
    pipe = odd("pipe")
    keeper = os.open(pipe, os.O_RDWR)
    try:
        code, said = ended(DAEMONS[name][0], pipe)
    finally:
        os.close(keeper)
    assert code in (1, 2) and "not a regular file" in said, (code, said)


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_whose_file_never_answers_says_so_and_ends(name, tmp_path):
    with unanswering.mounted(tmp_path, "odd.xml") as file:
        code, said = ended(DAEMONS[name][0], file, within=40)
        assert code in (1, 2) and "has not answered within" in said, (code, said)


@pytest.mark.parametrize("name", DAEMONS)
def test_a_daemon_that_waits_for_its_file_ends_when_told(name, tmp_path):
    with unanswering.mounted(tmp_path, "odd.xml") as file:
        process = subprocess.Popen([command.HODO, *words(DAEMONS[name][0], file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            command.wait_until(lambda: command.children(process.pid), "the file is being read")
            process.send_signal(signal.SIGTERM)
            process.wait(6)
        finally:
            process.kill()


def test_a_watch_whose_history_never_answers_ends(tmp_path):
    line = "watch sim+tcp:// --no-metrics --history FILE"
    with unanswering.mounted(tmp_path, "rows.jsonl") as file:
        code, said = ended(line, file, within=40)
        assert code == 2 and "has not answered within" in said, (code, said)
        with subprocess.Popen([command.HODO, *words(line, file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            command.wait_until(lambda: command.children(process.pid), "the file is being read")
            process.terminate()
            process.wait(6)


def test_a_server_whose_recording_never_answers_ends(tmp_path):
    with unanswering.mounted(tmp_path, "run.parquet") as file:
        pvs = tmp_path / "pvs.toml"
        pvs.write_text(f'[[pv]]\nname = "A"\nsource = "replay"\nfile = "{file}"\n', encoding="utf-8")
        code, said = ended("pva serve FILE --listen 127.0.0.1:0 --tcp-only --no-metrics", pvs, within=40)
        assert code in (1, 2) and "has not answered within" in said, (code, said)


RELOADS = {"hub": "previous list stays", "pva serve": "PVs stay as they were"}


@pytest.mark.parametrize("name", RELOADS)
@pytest.mark.parametrize("kind", ["pipe", "device", "unanswering"])
def test_what_is_read_again_holds_up_nobody_and_changes_nothing(name, kind, tmp_path):
    line, content = DAEMONS[name]
    file, log = tmp_path / "list", tmp_path / "log"
    file.write_bytes(content)
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(command.started(*words(line, file), "--log", log))
        at = command.announced(daemon, r"listening on ([\d.]+):(\d+)")
        if kind == "unanswering":
            other = stack.enter_context(unanswering.mounted(tmp_path, "list"))
        else:
            other = tmp_path / "other"
            os.mkfifo(other) if kind == "pipe" else other.symlink_to("/dev/zero")
        file.unlink()
        file.symlink_to(other)
        daemon.send_signal(signal.SIGHUP)
        if kind == "unanswering":
            command.wait_until(lambda: "reader" in threads(daemon.pid), "the file is being read")
        # It serves meanwhile, and says what became of the file.
        with socket.create_connection((at[1], int(at[2])), 5):
            command.wait_until(lambda: RELOADS[name] in log.read_text(encoding="utf-8"), "the log tells", within=30)
        daemon.terminate()
        assert daemon.wait(8) == 0


@pytest.mark.parametrize("name", RELOADS)
def test_a_daemon_that_reads_its_file_again_ends_when_told(name, tmp_path):
    line, content = DAEMONS[name]
    file = tmp_path / "list"
    file.write_bytes(content)
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(command.started(*words(line, file), "--drain", "1s"))
        command.announced(daemon, "listening on")
        other = stack.enter_context(unanswering.mounted(tmp_path, "list"))
        file.unlink()
        file.symlink_to(other)
        daemon.send_signal(signal.SIGHUP)
        command.wait_until(lambda: "reader" in threads(daemon.pid), "the file is being read")
        daemon.terminate()
        begun_at = time.monotonic()
        daemon.wait(10)
        assert time.monotonic() - begun_at < 2


def threads(pid):
    """The names of the threads of a process."""
    return [name.read_text(encoding="utf-8").strip() for name in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")]


def test_a_replay_binds_only_when_its_recording_is_read(tmp_path):
    with unanswering.mounted(tmp_path, "run.parquet") as file:
        process = subprocess.Popen([command.HODO, *words("pva replay FILE --listen 127.0.0.1:0", file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            command.wait_until(lambda: command.children(process.pid), "it reads")
            assert not [name for name in command.open_files(process.pid) if name.startswith("socket:")]
        finally:
            process.kill()
    # It ends once its file system is gone.
    process.wait(10)
