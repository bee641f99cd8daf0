"""Several daemons of a kind run on one host where nobody has chosen a port for their pages: each takes the next, and is found by its name."""

import contextlib
import json
import os
import re
import subprocess

import bed
import command
import pytest

KINDS = {
    "hub": (["hub", "--listen", "127.0.0.1:0"], 9203, "hub"),
    "pva": (["pva", "serve", "pvs.toml", "--tcp-only"], 9204, "pva"),
    "farm": (["farm", "controller", "--listen", "127.0.0.1:0"], 9205, "controller"),
    "builder": (["farm", "builder", "--listen", "127.0.0.1:0", "--sources", "1"], 9206, "builder"),
    "bridge": (["spacewire", "bridge", "--preset", "cable"], 9209, "bridge"),
}


def ask(host, environment, *arguments):
    words = ["ip", "netns", "exec", host, *arguments]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(name="host")
def fixture_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "pvs.toml").write_text('[[pv]]\nname = "X"\ntype = "double"\nput = "accept"\n', encoding="utf-8")
    with bed.hosts() as made:
        yield made.near


def test_three_of_each_kind_run_side_by_side(host, tmp_path):
    prefix = ["ip", "netns", "exec", host]
    with contextlib.ExitStack() as stack:
        for number in range(3):
            for words, port, name in KINDS.values():
                # The nodes of a bridge's network are at ports that its file names.
                words = [*words, *(["--listen", f"127.0.0.{number + 1}"] if "bridge" in words else [])]
                process = stack.enter_context(command.started(*words, prefix=prefix))
                process.name = name if number == 0 else f"{name}-{number + 1}"
                said = command.announced(process, r"pages on http://([\d.:]+)")
                assert said[1] == f"127.0.0.1:{port + 10 * number}", (words, said)
                socket = tmp_path / "hodo" / f"{process.name}.sock"
                command.wait_until(socket.exists, f"{socket} is there")
                index = ask(host, dict(os.environ), "curl", "-s", "--unix-socket", str(socket), "http://localhost/metrics")
                pid = json.loads((tmp_path / "hodo" / f"{process.name}.lock").read_text(encoding="utf-8").splitlines()[0])
                assert "process_cpu_seconds_total" in index and pid == process.pid
        for number, name in enumerate(["hub", "hub-2", "hub-3"]):
            for verb in ("status", "stats"):
                assert f"{name}: pages on http://127.0.0.1:{9203 + 10 * number}\n" in ask(host, dict(os.environ), command.HODO, "hub", verb, name)
        assert ask(host, dict(os.environ), command.HODO, "farm", "pause", "controller-2") == "run 1: paused\n"
        states = []
        for number, name in enumerate(["controller", "controller-2", "controller-3"]):
            text = ask(host, dict(os.environ), command.HODO, "farm", "status", name)
            assert f"{name}: pages on http://127.0.0.1:{9205 + 10 * number}\n" in text
            states.append(re.search("paused|running", text)[0])
        assert states == ["running", "paused", "running"]
        assert ask(host, dict(os.environ), command.HODO, "farm", "stop", "controller-3") == "stopped\n"
        text = ask(host, dict(os.environ), command.HODO, "farm", "status", "controller-2", "--builder", "builder-3")
        assert "paused" in text


def test_an_address_means_the_daemon_of_the_same_network(tmp_path, monkeypatch):
    """Two networks of one host share the folder of the sockets, and may have the same addresses."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    begin = ["farm", "controller", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:9205"]
    with bed.hosts() as made, contextlib.ExitStack() as stack:
        for host in (made.near, made.far):
            process = stack.enter_context(command.started(*begin, prefix=["ip", "netns", "exec", host]))
            command.announced(process, "named controller")
        assert ask(made.far, dict(os.environ), command.HODO, "farm", "pause", "127.0.0.1:9205") == "run 1: paused\n"
        for name, state in (("controller", "running"), ("controller-2", "paused")):
            assert state in ask(made.near, dict(os.environ), command.HODO, "farm", "status", name)


def test_a_port_that_was_asked_for_is_not_exchanged_for_another(host):
    prefix = ["ip", "netns", "exec", host]
    with command.started("hub", "--listen", "127.0.0.1:0", prefix=prefix) as process:
        command.announced(process, "pages on")
        done = command.hodo("hub", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:9203", prefix=prefix)
    assert done.returncode == 1 and "127.0.0.1:9203" in done.stderr and "another port" in done.stderr, done.stderr
