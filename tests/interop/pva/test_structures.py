"""Every normative type, and structures of all that pvData knows, of p4p's server: got, watched and put by our command, field by field."""

import json
import re
import sys

import command
import peers
import pva
import pytest
import structures


@pytest.fixture(scope="module")
def server():
    with peers.served([sys.executable, peers.HERE / "serve_structures.py"]) as peer:
        yield peer


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """Time stamps are shown in local time."""
    monkeypatch.setenv("TZ", "UTC")


def watching(server, name, form):
    return command.started("pva", "monitor", "-M", form, "-S", f"127.0.0.1:{server.port}", name)


def read_json(monitor, name):
    line = monitor.stdout.readline()
    assert line.startswith(f"{name} "), line
    return json.loads(line.removeprefix(name))


def as_shown(name, lines):
    """The lines of the raw form, with the name of the PV in front."""
    return [f"{name} {lines[0]}", *lines[1:]]


def expect_raw(monitor, name, lines):
    for line in as_shown(name, lines):
        assert monitor.stdout.readline() == f"{line}\n"


@pytest.mark.parametrize("name", structures.CASES)
def test_what_p4p_serves_is_got_watched_and_put_field_by_field(server, name):
    case = structures.CASES[name]
    spec = case.type.aspy()
    assert json.loads(server.said("get", "-M", "json", "-t", name)) == structures.as_json(spec, case.value)
    assert server.said("get", "-M", "raw", name).splitlines() == as_shown(name, structures.as_raw(spec, case.value))
    with watching(server, name, "json") as as_json, watching(server, name, "raw") as as_raw:

        def expect(value, changed):
            assert read_json(as_json, name) == structures.as_json(spec, changed)
            expect_raw(as_raw, name, structures.as_raw(spec, value, changed))

        expect(case.value, case.value)
        updated = structures.merged(case.value, case.update)
        server.process.stdin.write(f"{name}\n")
        server.process.stdin.flush()
        expect(updated, case.update)
        put = structures.as_json(spec, case.put)
        server.put(name, json.dumps(put))
        # Nothing else is put, and p4p has understood it.
        assert json.loads(server.process.stdout.readline().removeprefix("put ")) == structures.leaves(spec, case.put)
        after = structures.merged(updated, case.put)
        expect(after, case.put)
        assert server.get(name) == structures.as_json(spec, after)
        assert server.said("get", "-M", "raw", name).splitlines() == as_shown(name, structures.as_raw(spec, after))


# Of an element of these pvxs shows neither its kind nor its member, which we do.
ANYTHING = ["NTMultiChannel", "NTMultiChannel of unions", "nested"]


def in_characters(text):
    """What pvxs prints, which writes bytes beyond ASCII in hexadecimal digits, bools of arrays as numbers, and a plus before exponents."""
    text = re.sub(r"(\\x[89a-f][0-9a-f])+", lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode(), text)
    bools = lambda found: found[1] + found[2].replace("1", "true").replace("0", "false")  # noqa: E731
    return re.sub(r"(bool\[\] .*{\d+})(\[.*)", bools, text).replace("{?}[]", "{0}[]").replace("e+", "e")


@pytest.mark.parametrize("name", [name for name in structures.CASES if name not in ANYTHING])
def test_the_tree_is_that_of_pvxs(server, name):
    with pva.client(f"127.0.0.1:{server.port}", nt=False) as context:
        theirs = in_characters(context.get(name).tostr(1 << 20).strip())
    assert server.said("get", "-F", "tree", name) == f"{name}\n{theirs}\n"
