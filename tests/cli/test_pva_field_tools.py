"""The names of the field's tools: options, what is written, what is printed and the exit status are theirs."""

import os
import signal
import subprocess

import command
import pva
import pytest

PVS = """
[[pv]]
name = "ARRAY"
type = "int[]"
value = [9]
put = "accept"
[[pv]]
name = "TEXT"
type = "string"
value = "two words"
put = "accept"
"""
NAMES = ["get", "put", "monitor", "info", "list", "call"]
TOOLS = [prefix + name for prefix in ("pv", "pvx") for name in NAMES] + ["eget"]


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    for name in TOOLS:
        os.symlink(command.HODO, folder / name)
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    file = tmp_path_factory.mktemp("pvs") / "pvs.toml"
    text = f'{PVS}[[call]]\nname = "ADD"\ncommand = ["python3", "{command.ROOT}/docs/examples/pva_add.py"]\n'
    file.write_text(text)
    with pva.serving(file) as process:
        yield process.at


@pytest.fixture
def environment(served):
    return os.environ | {"EPICS_PVA_NAME_SERVERS": served, "EPICS_PVA_ADDR_LIST": "", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "TZ": "UTC"}


@pytest.fixture
def run(tools, environment):
    """A function that runs a tool at the server: name, words."""

    def started(name, *words):
        done = subprocess.run([tools / name, *words], capture_output=True, text=True, timeout=30, env=environment)
        return done.returncode, done.stdout, done.stderr

    return started


def value(printed):
    """What stands behind the time stamp of pvget."""
    return printed.split("  ", 1)[1] if printed else printed


def test_pvput_takes_the_first_word_for_the_count_of_an_array(run):
    status, out, _ = run("pvput", "ARRAY", "3", "10", "20", "30")
    old, new = out.splitlines()
    assert status == 0 and old.startswith("Old : ") and new.startswith("New : ") and new.endswith("[10,20,30]")
    assert value(run("pvget", "ARRAY")[1]) == "[10,20,30]\n"
    status, out, _ = run("pvput", "-q", "-n", "-s", "-F", ",", "ARRAY", "[4, 5]")
    assert (status, value(out)) == (0, "[4,5]\n")
    assert run("pvxput", "ARRAY", "7")[0] == 1
    assert run("pvxput", "ARRAY", "[7]") == (0, "", "")
    assert run("pvget", "-M", "json", "-r", "value", "ARRAY")[1] == "ARRAY {value:[7]}\n"


def test_calls_send_texts(run):
    for words in (["pvcall", "ADD"], ["pvxcall", "ADD"], ["eget", "-s", "ADD"]):
        arguments = ["-a", "a=007", "-a", "b=2"] if words[0] == "eget" else ["a=007", "b=2"]
        status, out, err = run(*words, *arguments)
        assert status == 0 and "9" in out, (words, out, err)
    # As texts, 007 is no 7: Python reads it, and a value of JSON could not be it.
    assert run("pvcall", "-v", "ADD", "a=007", "b=2")[1].startswith(
        "# Argument\nepics:nt/NTURI:1.0 \n    string scheme pva\n    string authority \n    string path ADD\n"
        "    structure query\n        string a 007\n        string b 2\n# Result\n"
    )
    assert run("pvcall", "ADD", "a")[0] == 1


def test_values_are_printed_as_theirs(run):
    assert value(run("pvget", "-q", "-d", "-n", "-i", "-F", ",", "-c", "-t", "TEXT")[1]) == '"two words" \n'
    assert value(run("eget", "TEXT")[1]) == '"two words" \n'
    assert run("pvget", "-v", "-r", "value", "TEXT")[1] == 'TEXT epics:nt/NTScalar:1.0 \n    string value "two words"\n'
    assert run("pvxget", "-r", "value", "TEXT")[1] == 'TEXT\n    value string = "two words"\n'
    assert run("pvinfo", "TEXT")[1].startswith("TEXT\nServer: 127.0.0.1:")
    assert run("pvxinfo", "TEXT")[1].split("\n")[1] == 'struct "epics:nt/NTScalar:1.0" {'


@pytest.mark.parametrize(("words", "status", "last"), [("pvmonitor", 0, "[1]"), ("pvget -m", 0, "[1]"), ("pvxmonitor", 2, "ARRAY")])
def test_monitors_end_with_ctrl_c_and_their_exit_status(tools, environment, run, words, status, last):
    run("pvput", "ARRAY", "X", "1")
    name, *options = words.split()
    process = subprocess.Popen([tools / name, *options, "ARRAY"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
    with process:
        assert process.stdout.readline().rstrip().endswith(last)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == status


def test_what_fails_has_their_exit_status(run):
    status, out, err = run("pvget", "-w", "0.3", "NO", "TEXT")
    assert status == 1 and out.endswith("NO   ") and err.startswith("Timeout\n") and "NO: " in err
    assert run("pvxget", "-w", "0.3", "NO")[2].endswith("Timeout with 1 outstanding\n")
    assert run("pvget")[:2] == (0, "")
    for words in (["pvput"], ["pvput", "TEXT"], ["pvinfo"], ["pvcall"], ["pvxput", "TEXT"], ["pvxcall"], ["pvxlist", "-i"], ["eget", "-h"]):
        assert run(*words)[:2] == (1, ""), words
    assert run("pvlist", "-w", "0.3", "0x000000000000000000000000")[0] == 1


def test_servers_list_their_pvs_by_address(run, served):
    assert run("pvlist", served)[:2] == (0, "ADD\nARRAY\nTEXT\n")
    assert run("pvxlist", "-v", served)[1] == f"# From {served}\nADD\nARRAY\nTEXT\n"
    assert run("pvxlist", "-i", served)[1].startswith(f'{served} version="')


@pytest.mark.parametrize("name", TOOLS)
def test_an_option_that_there_is_not_is_exit_status_1(run, name):
    status, out, err = run(name, "-Z")
    assert (status, out) == (1, "") and "-Z" in err
    assert run(name, "-V")[0] == 0
