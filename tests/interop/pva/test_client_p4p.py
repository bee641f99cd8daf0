"""Our client against servers of p4p: every type is read, written, watched and called."""

import json
import math
import signal
import time

import command
import peers
import pytest

SCALARS = {
    "bool": (True, False, "false"), "b": (-8, 7, "7"), "h": (-16, 70, "0x46"), "i": (-32, 700, "700"), "l": (-(2**63), 2**63 - 1, str(2**63 - 1)),
    "ub": (8, 255, "255"), "uh": (16, 65535, "65535"), "ui": (32, 2**32 - 1, str(2**32 - 1)), "ul": (2**64 - 1, 2**64 - 2, str(2**64 - 2)),
    "f": (0.5, 0.25, "0.25"), "d": (0.1, 1e300, "1e300"), "s": ("hé", "a b\n", "a b\n"),
}


@pytest.fixture(scope="module")
def server():
    with peers.p4p_server() as peer:
        yield peer


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_and_arrays_of_every_type_are_read_and_written(server, name):
    before, after, word = SCALARS[name]
    assert server.get(f"scalar:{name}", f"array:{name}")[0]["value"] == before
    assert server.get(f"array:{name}")["value"] == [before] * 3
    server.put(f"scalar:{name}", word)
    assert server.get(f"scalar:{name}")["value"] == after
    server.put(f"array:{name}", json.dumps([after, before]))
    assert server.get(f"array:{name}")["value"] == [after, before]
    server.put(f"array:{name}", "[]")
    assert server.get(f"array:{name}")["value"] == []


def test_fields_that_were_not_asked_for_are_not_shown(server):
    assert server.said("get", "-r", "value", "-M", "json", "full") == 'full {"value":1.5}\n'
    server.put("full", "alarm.severity=1", "alarm.message=warm", "display.limitLow=-1")
    shown = json.loads(server.said("get", "-r", "display.limitLow,alarm{message}", "-M", "json", "-t", "full"))
    assert shown == {"alarm": {"message": "warm"}, "display": {"limitLow": -1.0}}
    assert server.said("get", "full").endswith(" 1.5 MINOR warm\n")


def test_normative_types_are_shown_for_people(server):
    said = server.said("get", "enum", "table", "image", "empty")
    assert said == 'enum (1) On it\ntable\na     b\n1     x\n2 "y z"\nimage ubyte[4 x 3] 12 bytes, from 0 to 0, mean 0, id 0\nempty []\n'
    assert server.said("get", "-t", "--numbers", "enum") == "1\n"
    server.put("enum", "Off")
    assert server.get("enum")["value"]["index"] == 0
    server.put("enum", "1")
    assert server.get("enum")["value"]["index"] == 1
    assert "none of the choices Off, On it" in server.said("put", "enum", "Maybe", status=1)


def test_structures_unions_and_any_are_read_and_written(server):
    parts = server.get("parts")
    assert parts["union"] == {"y": "text"} and parts["any"] == 1.5 and parts["structures"] == [{"d": 1.0}, {"d": 2.0}]
    assert parts["inner"] == {"a": 1, "deeper": {"t": "x"}} and parts["anys"] == [1, "b"]
    server.put("parts", json.dumps({"union": {"z": [1, 2]}, "any": "now a text", "inner": {"deeper": {"t": "y"}}}))
    parts = server.get("parts")
    assert parts["union"] == {"z": [1.0, 2.0]} and parts["any"] == "now a text"
    server.put("parts", "inner.a=5", "any=null")
    assert server.get("parts")["any"] is None


def test_ten_million_doubles_are_read(server):
    said = server.said("get", "-t", "big").strip()
    assert said == "[0,1,2,...,9999997,9999998,9999999]"
    values = server.get("big")["value"]
    assert len(values) == 10_000_000 and values[123_456] == 123_456 and math.fsum(values) == sum(range(10_000_000))


def test_ten_thousand_names_are_read_and_listed(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"n{at}" for at in range(10_000)))
    with peers.p4p_server(names=10_000) as server:
        assert server.said("get", "-f", names, "-r", "value") == "".join(f"n{at} {at}\n" for at in range(10_000))
        assert set(names.read_text().split()) < set(server.said("list", f"127.0.0.1:{server.port}").splitlines())


def test_what_a_server_refuses_is_told_with_its_reason(server):
    assert server.said("put", "refuses", "2", status=1) == "hodo: refuses: error: not today\n"
    done = server.run("get", "scalar:d", "absent", "enum", "-t")
    assert done.returncode == 1 and done.stdout.count("\n") == 2
    assert done.stderr.startswith("hodo: absent: the server does not open it: ")


def test_calls_bring_what_the_server_returns(server):
    assert server.said("call", "twice", "n=21") == "twice 42\n"
    assert server.said("call", "twice", 'text="5"', "-t") == "55\n"
    assert server.said("call", "twice", status=1) == "hodo: twice: error: n is missing\n"


def test_the_type_is_shown_as_pvinfo_does(server):
    said = server.said("info", "parts")
    assert said.startswith(f"parts\nServer: 127.0.0.1:{server.port}\nType:\n    structure\n        union union\n            int x\n")
    assert "        inner_t inner\n            int a\n            structure deeper\n                string t\n" in said


def test_a_monitor_shows_each_update_and_ends_in_order(server):
    with command.started("pva", "monitor", "-S", f"127.0.0.1:{server.port}", "-t", "-r", "field(value)record[queueSize=1000]", "ticks") as monitor:
        assert float(monitor.stdout.readline()) == 0
        for number in range(1, 500):
            server.process.stdin.write(f"{number}\n")
        server.process.stdin.flush()
        assert [float(monitor.stdout.readline()) for _ in range(1, 500)] == list(range(1, 500))
        monitor.send_signal(signal.SIGINT)
        assert monitor.wait(10) == 0
        assert monitor.stdout.read() == ""


@pytest.mark.long("timing")
def test_a_monitor_goes_on_within_a_second_of_a_restart():
    with peers.p4p_server() as first:
        port = first.port
        monitor = command.started("pva", "monitor", f"pva://127.0.0.1:{port}/ticks", "-t")
        with monitor as monitor:
            assert monitor.stdout.readline() == "0\n"
            first.process.kill()
            with peers.p4p_server(port) as second:
                assert second.port == port
                began = time.monotonic()
                while monitor.stdout.readline() != "0\n":
                    pass
                assert time.monotonic() - began < 1.5


def test_the_tree_is_that_of_pvxs(server):
    from p4p.client.thread import Context

    settings = {"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{server.port}", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_BROADCAST_PORT": "1"}
    with Context("pva", conf=settings, useenv=False, nt=False) as context:
        for name in ("full", "enum", "table", "image", "scalar:i", "array:b"):
            theirs = context.get(name).tostr(1 << 20).strip().replace("{?}[]", "{0}[]")
            assert server.said("get", "-F", "tree", name) == f"{name}\n{theirs}\n"
