"""Servers that refuse, are silent or go away: every command says which server it was, and what happened there."""

import concurrent.futures
import os
import re
import signal
import subprocess

import command
import misbehaving
import peers
import pytest

TLS_ALERT = bytes.fromhex("15030300020228")
# The step at which a server does something; what it does; what is said of it, besides its address.
CASES = {
    "closes at once": ("accept", "close", "closed by the far end"),
    "speaks TLS": ("accept", TLS_ALERT, "the far end speaks another protocol: its first byte is 15"),
    "does not greet": ("greet", "mute", "does not open it"),
    "refuses the user": ("validate", "refuse", "does not accept this client: error: no way"),
    "does not answer the user": ("validate", "mute", "does not open it"),
    "closes at the channel": ("create", "close", "closed by the far end"),
    "does not answer the channel": ("create", "mute", "does not open it"),
    "closes at INIT": ("init", "close", "closed by the far end"),
    "closes at the operation": ("execute", "close", "closed by the far end"),
}
COMMANDS_OF_CASES = [["get", "-w", "2"], ["monitor", "-w", "1.5", "--for", "2.5"]]


def run(*words, environment=None):
    done = subprocess.run(
        [command.HODO, "pva", *map(str, words)], capture_output=True, text=True, timeout=60, env=environment or os.environ
    )
    assert "panicked" not in done.stderr, done.stderr
    return done


@pytest.fixture(scope="module")
def said():
    """The server's address and what each command did, by case: all side by side, since each takes its time."""

    def one(case):
        step, deed, _ = CASES[case]
        with misbehaving.server(step, deed) as server, concurrent.futures.ThreadPoolExecutor() as pool:
            at = f"127.0.0.1:{server.port}"
            return at, list(pool.map(lambda words: run(*words, "-S", at, "A"), COMMANDS_OF_CASES))

    with concurrent.futures.ThreadPoolExecutor(len(CASES)) as pool:
        return dict(zip(CASES, pool.map(one, CASES), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_each_command_names_the_server_and_what_happened_there(said, case):
    step, deed, says = CASES[case]
    at, outcomes = said[case]
    for done in outcomes:
        lines = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (1, ""), done
        assert lines and all(line.startswith("hodo: A: ") for line in lines), done
        assert any(says in line and at in line for line in lines), done
        # However often it is tried.
        assert len(lines) <= 3, done
        assert ("is not reached" in done.stderr) == (step in ("accept", "greet", "validate") and deed != "mute"), done


@pytest.mark.parametrize(("step", "says"), [("create", "the server does not open it: error: go away"), ("init", "error: not so"), ("execute",
    "error: not so")])
def test_the_words_of_a_refusal_are_shown(step, says):
    with misbehaving.server(step, "refuse") as server:
        done = run("get", "-w", "3", "-S", f"127.0.0.1:{server.port}", "A")
        assert (done.returncode, done.stderr) == (1, f"hodo: A: {says} (server 127.0.0.1:{server.port})\n")


@pytest.mark.parametrize("step", ["init", "execute"])
def test_a_monitor_that_is_not_answered_says_so_after_the_time_of_w(step):
    with misbehaving.server(step, "mute") as server:
        with command.started("pva", "monitor", "-w", "0.3", "-S", f"127.0.0.1:{server.port}", "A") as monitor:
            line = monitor.stdout.readline()
            state = "has not replied to the subscription" if step == "init" else "subscribed at"
            assert line.startswith("hodo: A: ") and state in line and f"127.0.0.1:{server.port}" in line and line.endswith("still trying\n")
            monitor.send_signal(signal.SIGINT)
            assert monitor.wait(20) == 1
    done = run("record", "-w", "0.3", "--for", "0.5", "-S", f"127.0.0.1:{misbehaving.nobody()}", "-o", "/dev/null/x", "A")
    assert done.returncode == 1


COMMANDS = {
    "get": ["get", "-w", "2", "SC"],
    "put": ["put", "-w", "2", "SC", "1"],
    "info": ["info", "-w", "2", "SC"],
    "call": ["call", "-w", "2", "SC"],
    "monitor": ["monitor", "--for", "2", "SC"],
    "monitor -w": ["monitor", "-w", "1.5", "--for", "2.5", "SC"],
    "record": ["record", "-w", "1.5", "--for", "2", "SC", "-o"],
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_server_that_answers_the_search_and_refuses_tcp_is_named_with_the_error(verb, tmp_path):
    port = misbehaving.nobody()
    words = [*COMMANDS[verb], *([tmp_path / "x.parquet"] if verb == "record" else [])]
    with misbehaving.found(port) as environment:
        done = run(*words, environment=environment)
    said = done.stderr + done.stdout
    assert done.returncode == 1 and re.search(rf"SC: .*server 127.0.0.1:{port} is not reached: .*refused", said), done
    assert "no server has it" not in said


@pytest.mark.parametrize("step", ["", "create", "greet"])
def test_a_second_server_is_turned_to_where_the_first_does_not_open_it(step):
    with misbehaving.server(step, "refuse" if step == "create" else "close") as first, misbehaving.server("nothing") as second:
        refuses = misbehaving.nobody() if not step else first.port
        with misbehaving.found(refuses, second.port) as environment:
            done = run("get", "-w", "10", "-t", "A", environment=environment)
            assert (done.returncode, done.stdout) == (0, "2.5\n"), done
            done = run("monitor", "-n", "1", "-t", "A", environment=environment)
            assert (done.returncode, done.stdout) == (0, "2.5\n"), done


def test_of_many_pvs_those_of_good_servers_are_read():
    with misbehaving.server("create", "close") as bad, misbehaving.server("nothing") as good:
        names = [f"pva://127.0.0.1:{port}/{name}" for name in "AB" for port in (bad.port, good.port, misbehaving.nobody())]
        done = run("get", "-w", "3", "-t", *names)
        assert (done.returncode, done.stdout.split()) == (1, ["2.5", "2.5"])
        assert [line.split("/")[3][0] for line in done.stderr.splitlines()] == ["A", "A", "B", "B"]
        assert done.stderr.count(f"127.0.0.1:{bad.port})") == 2 and done.stderr.count("is not reached") == 2


@pytest.mark.parametrize("words", [["monitor", "--for", "0.3"], ["monitor", "--for", "0.6", "-w", "0.2"], ["get", "-w", "0.3"], ["info", "-w",
    "0.3"]])
def test_a_name_that_nobody_has_is_said(words):
    with misbehaving.found() as environment:
        done = run(*words, "NOSUCH", environment=environment)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(r"hodo: NOSUCH: .*no server has it: none has answered.*EPICS_PVA_ADDR_LIST.*\n", done.stderr), done


@pytest.mark.parametrize("step", ["accept", "create", "execute"])
def test_a_benchmark_of_such_a_server_says_why(step):
    with misbehaving.server(step, "close") as server:
        refusal = command.refused(
            "bench", f"pva://127.0.0.1:{server.port}/A", *command.SHORT, "--timeout", "1s", status=1,
            says=[f"127.0.0.1:{server.port}", "closed|not reached|silent"],
        )
        assert refusal.returncode == 1


def test_only_what_was_sent_is_shown():
    with peers.served([peers.sys.executable, peers.HERE / "serve_normative.py"]) as server:

        def shown(name, request, *options):
            return server.said("get", "-r", request, *options, name).removeprefix(f"{name} ").removeprefix(f"{name}\n")

        alarm = "epics:nt/NTScalar:1.0\n    alarm_t alarm MAJOR DEVICE hot\n        int severity 2\n        int status 1\n        string message hot\n"
        assert shown("SCALAR", "alarm") == alarm
        assert shown("SCALAR", "alarm", "-M", "json") == '{"alarm":{"severity":2,"status":1,"message":"hot"}}\n'
        assert shown("SCALAR", "alarm", "-t") == '{"alarm":{"severity":2,"status":1,"message":"hot"}}\n'
        assert shown("SCALAR", "value") == "3.25\n"
        assert shown("SCALAR", "value,alarm") == "3.25 MAJOR DEVICE hot\n"
        assert shown("SCALAR", "alarm.severity", "-M", "tree").count("=") == 1
        # Nothing was set there: nothing is sent.
        for form, nothing in [("nt", "no field was sent\n"), ("json", "{}\n"), ("raw", "epics:nt/NTScalar:1.0\n")]:
            assert shown("SCALAR", "control", "-M", form) == nothing
        assert shown("ENUM", "value.index") == "(1)\n"
        assert shown("ENUM", "value.choices") == 'epics:nt/NTEnum:1.0\n    enum_t value\n        string[] choices ["Off","On"]\n'
        assert shown("ENUM", "value") == "(1) On\n"
        assert shown("TABLE", "value.b") == "    b\n    x\n\"y z\"\n"
        assert shown("TABLE", "labels") == 'epics:nt/NTTable:1.0\n    string[] labels ["a","b"]\n'
        assert shown("IMAGE", "value") == "ubyte[256] 256 bytes, from 0 to 255, mean 127.5\n"
        assert shown("IMAGE", "value,dimension") == "ubyte[16 x 16] 256 bytes, from 0 to 255, mean 127.5\n"
        assert shown("IMAGE", "dimension").count("int size 16") == 2
        assert shown("IMAGE", "dimension", "-M", "json").count('"size":16') == 2
        assert shown("IMAGE", "uniqueId") == "epics:nt/NTNDArray:1.0\n    int uniqueId 5\n"
        assert shown("NESTED", "inner.x") == "structure\n    structure inner\n        double x 1.5\n"
        assert shown("NESTED", "inner.choice") == "structure\n    structure inner\n        union choice\n            int i 7\n"
        # An update without a new value is shown with the value that was sent before.
        with command.started("pva", "monitor", "-S", f"127.0.0.1:{server.port}", "-n", "2", "SCALAR") as monitor:
            assert monitor.stdout.readline() == "SCALAR 3.25 MAJOR DEVICE hot\n"
            server.process.stdin.write("fine\n")
            server.process.stdin.flush()
            assert monitor.stdout.readline() == "SCALAR 3.25\n"
