"""`hodo pva` from the command line alone: what is wrong is told, with the PV and the remedy."""

import os
import subprocess

import command
import pytest


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["get"], ["required"]),
        (["get", "-r", "field(", "A"], ["--request", "field"]),
        (["get", "-M", "yaml", "A"], ["yaml", "nt, raw, json, tree and delta"]),
        (["get", "-w", "0", "A"], ["above 0"]),
        (["get", "-f", "/nonesuch", "A"], ["--file /nonesuch cannot be read"]),
        (["put", "A"], ["required"]),
        (["call", "A", "argument"], ["argument", "NAME=VALUE"]),
        (["call", "A", "a=[1"], ["a: JSON"]),
        (["monitor", "A", "-n", "0"], ["--count"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_what_the_command_line_has_wrong_is_a_usage_error(arguments, says):
    assert command.refused("pva", *arguments, status=2, says=says).stdout == ""


def test_a_wrong_variable_is_a_usage_error_that_names_it(monkeypatch):
    monkeypatch.setenv("EPICS_PVA_BROADCAST_PORT", "many")
    command.refused("pva", "get", "A", status=2, says=["EPICS_PVA_BROADCAST_PORT", "many"])


def test_names_that_are_none_and_servers_that_are_not_there_are_told_by_name():
    at = command.free_address()
    says = ["A: server 127.0.0.1:.* is not reached", "check host and port", "B: server", "pva://nowhere: a URI is"]
    command.refused("pva", "get", "-w", "0.3", "-S", at, "A", "B", "pva://nowhere", status=1, says=says)
    command.refused("pva", "put", "-w", "0.3", "-S", at, "A", "1", status=1, says=["A: server", "check host and port"])
    # Those that are not there yet are waited for, and told of.
    says = ["A: server", "check host and port"]
    command.refused("pva", "monitor", "-w", "0.1", "--for", "0.5", "-S", at, "A", status=1, says=says)


def test_names_come_from_files_and_from_standard_input(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# remark\nA B # more\n\n  C\n")
    done = command.hodo("pva", "get", "-f", names, "-w", "0.2", "-S", "127.0.0.1:1")
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["A", "B", "C"]
    given = [command.HODO, "pva", "info", "-f", "-", "-w", "0.2", "-S", "127.0.0.1:1"]
    done = subprocess.run(given, input="X\nY", capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "X: " in done.stderr and "Y: " in done.stderr


def test_a_monitor_that_shows_nothing_says_why_however_soon_it_ends(monkeypatch):
    at = command.free_address()
    command.refused("pva", "monitor", "--for", "0.2", "-S", at, "A", status=1, says=["A: server 127.0.0.1:.* is not reached"])
    # Nobody answers the search; the port is one that nothing listens on.
    monkeypatch.setenv("EPICS_PVA_ADDR_LIST", at)
    monkeypatch.setenv("EPICS_PVA_AUTO_ADDR_LIST", "NO")
    command.refused("pva", "monitor", "--for", "0.2", "NOSUCH", status=1, says=["NOSUCH: "])


@pytest.mark.parametrize("name", ["pvget", "pvput", "pvmonitor", "pvinfo", "pvcall", "pvlist", "pvxget"])
def test_links_of_the_fields_names_are_its_commands(tmp_path, name):
    link = tmp_path / name
    os.symlink(command.HODO, link)
    done = subprocess.run([link, "--help"], capture_output=True, text=True, timeout=30)
    verb = name.removeprefix("pvx").removeprefix("pv")
    assert done.returncode == 0 and f"hodo pva {verb} [OPTIONS]" in done.stdout
