"""A daemon is found by its name, steered over a socket that is its owner's alone, and obeyed is nobody else."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading

import command
import farms
import pytest

NOBODY = 65_534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def at(folder):
    """The environment of one whose runtime folder is in this one."""
    return {**os.environ, "XDG_RUNTIME_DIR": str(folder)}


def steer(*arguments, status, says=(), prefix=(), **environment):
    """Runs a command of an operator."""
    asked = [*prefix, command.HODO, *map(str, arguments)]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, env={**os.environ, **environment}, check=False)
    assert done.returncode == status, f"{asked}: {done.returncode}\n{done.stdout}{done.stderr}"
    for word in says:
        assert word in done.stdout + done.stderr, f"{word!r} is not in {done.stdout}{done.stderr}"
    return done


def test_the_socket_is_a_file_for_its_owner_alone_and_goes_with_the_daemon(tmp_path):
    tmp_path.chmod(0o700)
    with farms.controller(env=at(tmp_path)) as controller:
        assert controller.socket == tmp_path / "hodo/controller.sock" and controller.name == "controller"
        assert stat.S_ISSOCK(os.lstat(controller.socket).st_mode)
        assert (mode(controller.socket), mode(controller.socket.parent)) == (0o700, 0o700)
        assert f"@hodo/{controller.pages}" not in pathlib.Path("/proc/net/unix").read_text(encoding="utf-8")
        done = steer("farm", "stop", status=0, XDG_RUNTIME_DIR=str(tmp_path))
        assert done.stdout == "stopped\n"
    assert list((tmp_path / "hodo").iterdir()) == []


def test_each_of_several_has_a_name_and_is_steered_by_it(tmp_path):
    environment = at(tmp_path)
    with contextlib.ExitStack() as stack:
        first, second, third = (stack.enter_context(farms.controller(*name, env=environment)) for name in ([], [], ["--name", "test-beam"]))
        assert [one.name for one in (first, second, third)] == ["controller", "controller-2", "test-beam"]
        for one in (second, third):
            told = steer("farm", "pause", one.name, status=0, **environment)
            assert told.stdout == "run 1: paused\n"
            shown = steer("farm", "status", one.name, status=0, says=[f"{one.name}: pages on http://{one.pages}"], **environment)
            assert "paused" in shown.stdout
        assert first.farm()["state"] == "running" and second.farm()["state"] == "paused"
        # By the address of its pages, too.
        assert steer("farm", "resume", second.pages, status=0, **environment).stdout == "run 1: running\n"
        assert [one.farm()["state"] for one in (first, second, third)] == ["running", "running", "paused"]
        pid = third.process.pid
        steer("farm", "controller", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--name", "test-beam", status=1, says=["test-beam", f"process {pid}", "--name"], **environment)
        steer("farm", "stop", "controller-7", status=1, says=["no daemon `controller-7`", "controller, controller-2, test-beam"], **environment)
        steer("farm", "stop", "../x", status=2, says=["or the daemon's name"], **environment)


def test_what_a_killed_daemon_left_behind_is_taken_over(tmp_path):
    with farms.controller(env=at(tmp_path)) as killed:
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait(10)
        assert killed.socket.exists()
        steer("farm", "stop", status=1, says=["no daemon `controller`"], **at(tmp_path))
        with farms.controller(env=at(tmp_path)) as controller:
            assert controller.socket == killed.socket
            assert steer("farm", "stop", status=0, **at(tmp_path)).stdout == "stopped\n"


@pytest.mark.parametrize("kind", ["link", "file", "open", pytest.param("theirs", marks=as_root)])
def test_a_folder_that_is_not_ones_own_alone_is_refused(kind, tmp_path):
    folder, victim = tmp_path / "hodo", tmp_path / "victim"
    victim.mkdir()
    if kind == "link":
        folder.symlink_to(victim)
    elif kind == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        if kind == "theirs":
            os.chown(folder, NOBODY, NOBODY)
        else:
            folder.chmod(0o777)
    says = {"link": "is a link", "file": "is no folder", "open": "others", "theirs": f"belongs to user {NOBODY}"}[kind]
    steer("hub", "--listen", "127.0.0.1:0", status=1, says=[str(folder), says, "XDG_RUNTIME_DIR"], **at(tmp_path))
    assert list(victim.iterdir()) == []


def test_a_path_that_is_too_long_for_a_socket_is_an_error_with_its_remedy(tmp_path):
    long = tmp_path / ("x" * 120)
    long.mkdir(mode=0o700)
    steer("hub", "--listen", "127.0.0.1:0", status=1, says=[str(long), "107", "shorter"], **at(long))


# A process that another user has: it listens as that user, and writes down what it is asked.
SQUATTER = """
import os, select, socket, sys
kind, place = sys.argv[1:]
sockets = []
if kind == "tcp":
    os.setuid(65534)
    host, port = place.rsplit(":", 1)
    for family, at in ((socket.AF_INET, (host, int(port))), (socket.AF_UNIX, "\\0hodo/" + place)):
        one = socket.socket(family)
        one.bind(at)
        sockets.append(one)
else:
    one = socket.socket(socket.AF_UNIX)
    one.bind(place)
    sockets.append(one)
    # The kernel tells who it was that listened.
    os.setuid(65534)
for one in sockets:
    one.listen(8)
print("ready", flush=True)
while True:
    for one in select.select(sockets, [], [])[0]:
        client, _ = one.accept()
        if client.recv(4096):
            print("asked", flush=True)
            client.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nstopping\\n")
        client.close()
"""


@contextlib.contextmanager
def squatter(kind, place):
    process = subprocess.Popen([sys.executable, "-c", SQUATTER, kind, place], stdout=subprocess.PIPE, text=True)
    lines = []
    try:
        assert process.stdout.readline().startswith("ready")
        threading.Thread(target=lambda: lines.extend(process.stdout), daemon=True).start()
        yield lines
    finally:
        process.kill()
        process.wait()


@as_root
def test_another_user_who_takes_the_place_of_a_daemon_is_not_obeyed(tmp_path):
    """At the address of its pages, and at the name that its socket once had."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = "127.0.0.1:%d" % free.getsockname()[1]
    with squatter("tcp", place) as lines:
        for order in (["stop"], ["pause"], ["drain"], ["set-run", "7"]):
            steer("farm", *order, place, status=1, says=[f"user {NOBODY}", "--user"], **at(tmp_path))
        steer("farm", "stop", status=1, says=["no daemon `controller`"], **at(tmp_path))
        assert not any("asked" in line for line in lines), lines


@as_root
def test_who_answers_at_the_socket_is_checked(tmp_path):
    """As if somebody had got into the folder."""
    folder = tmp_path / "hodo"
    folder.mkdir(mode=0o700)
    with (folder / "controller.lock").open("w") as lock, squatter("unix", str(folder / "controller.sock")) as lines:
        lock.write("1\n127.0.0.1:9205\n")
        lock.flush()
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        steer("farm", "stop", status=1, says=["controller.sock", f"a process of user {NOBODY}", "user 0"], **at(tmp_path))
        assert not any("asked" in line for line in lines), lines


@contextlib.contextmanager
def as_nobody(tmp_path, **environment):
    """A controller of another user, and that user's words before a command. The program is where everybody may run it."""
    program = pathlib.Path("/tmp") / f"hodo-{os.getpid()}-{tmp_path.name}"
    shutil.copy(command.HODO, program)
    program.chmod(0o755)
    prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "env", *(f"{name}={value}" for name, value in environment.items())]
    begin = [*prefix, str(program), "farm", "controller", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]
    try:
        with subprocess.Popen(begin, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/") as process:
            try:
                yield farms.Controller(process), [*prefix, str(program)]
            finally:
                process.terminate()
    finally:
        program.unlink()


def theirs(*words, status, says=()):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert done.returncode == status and all(word in done.stdout + done.stderr for word in says), f"{done}"
    return done.stdout


@as_root
def test_a_service_is_found_by_its_own_user_and_by_root(tmp_path):
    """As systemd begins one with RuntimeDirectory=hodo-farm and a user of its own."""
    folder = pathlib.Path("/run") / f"hodo-{os.getpid()}"
    folder.mkdir(mode=0o755)
    try:
        os.chown(folder, NOBODY, NOBODY)
        with as_nobody(tmp_path, RUNTIME_DIRECTORY=folder, XDG_RUNTIME_DIR="") as (controller, hodo):
            assert controller.socket == folder / "controller.sock" and mode(controller.socket) == 0o700
            without = [word for word in hodo if not word.startswith("RUNTIME_DIRECTORY")]
            assert theirs(*without, "farm", "pause", status=0) == "run 1: paused\n"
            assert steer("farm", "resume", status=0, **at(tmp_path)).stdout == "run 1: running\n"
            other = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", hodo[-1]]
            theirs(*other, "farm", "stop", controller.pages, status=1, says=[f"user {NOBODY}"])
            assert steer("farm", "stop", status=0, **at(tmp_path)).stdout == "stopped\n"
    finally:
        shutil.rmtree(folder)


@as_root
def test_root_steers_another_users_daemon_only_if_that_user_is_named(tmp_path):
    session = pathlib.Path("/tmp") / f"hodo-session-{os.getpid()}"
    session.mkdir(mode=0o700)
    try:
        os.chown(session, NOBODY, NOBODY)
        with as_nobody(tmp_path, XDG_RUNTIME_DIR=session) as (controller, _):
            environment = at(session)
            steer("farm", "stop", status=1, says=["no daemon `controller` of root or a service", "--user"], **environment)
            steer("farm", "stop", controller.pages, status=1, says=[f"user {NOBODY}", "--user"], **environment)
            assert steer("farm", "pause", "--user", "nobody", status=0, **environment).stdout == "run 1: paused\n"
            steer("farm", "pause", "--user", "no such user", status=2, says=["--user"], **environment)
            assert steer("farm", "stop", controller.pages, "--user", NOBODY, status=0, **environment).stdout == "stopped\n"
    finally:
        shutil.rmtree(session)


@as_root
def test_a_session_that_was_left_from_another_user_is_passed_over(tmp_path):
    """As behind `su` and `sudo -E`: root makes no folder within another's session."""
    os.chown(tmp_path, NOBODY, NOBODY)
    with farms.controller("--name", f"left-{os.getpid()}", env=at(tmp_path)) as controller:
        assert controller.socket.parent == pathlib.Path("/run/hodo") and list(tmp_path.iterdir()) == []


UNITS = sorted((command.ROOT / "docs/examples").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_bounds_memory_and_tasks_and_has_a_folder_for_its_socket(unit):
    settings = dict(line.split("=", 1) for line in unit.read_text(encoding="utf-8").splitlines() if "=" in line and not line.startswith("#"))
    assert settings["MemoryMax"].endswith("G") and 0 < int(settings["TasksMax"]) <= 64
    assert settings["RuntimeDirectory"] == unit.stem and settings["RuntimeDirectoryMode"] == "0700"
    assert settings["UMask"] == "0077"
