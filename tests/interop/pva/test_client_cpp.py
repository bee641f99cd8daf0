"""Our client against servers in C++ of pvxs and of pvAccessCPP, which the test compiles."""

import json
import time

import command
import peers
import pytest

NAMES = 10_000
DOUBLES = 10_000_000


@pytest.fixture(scope="module")
def pvxs():
    with peers.compiled_server("serve_pvxs", NAMES) as peer:
        yield peer


@pytest.fixture(scope="module")
def pvaccesscpp():
    with peers.compiled_server("serve_pvaccesscpp", NAMES) as peer:
        yield peer


def test_pvxs_is_read_and_written(pvxs):
    assert pvxs.get("words")["value"] == ["one", "two"]
    pvxs.put("words", "a", "b c", "")
    assert pvxs.get("words")["value"] == ["a", "b c", ""]
    pvxs.put("scalar", "value=2.5", "alarm.severity=2", "alarm.message=hot")
    assert pvxs.said("get", "scalar").endswith(" 2.5 MAJOR hot\n")
    pvxs.put("mixed", json.dumps({"n": -1, "choice": {"words": ["x"]}, "any": [1, 2], "rows": [{"n": 1, "s": "r"}, None]}))
    assert pvxs.get("mixed") == {"n": -1, "choice": {"words": ["x"]}, "any": [1, 2], "rows": [{"n": 1, "s": "r"}, None]}
    assert pvxs.said("get", "-r", "absent", "scalar", status=1).startswith("hodo: scalar: error: ")


def test_pvxs_is_called(pvxs):
    assert json.loads(pvxs.said("call", "-M", "json", "-t", "echo", "a=1", "b=two"))["query"] == {"a": 1, "b": "two"}
    assert pvxs.said("call", "echo", "fail=true", status=1) == "hodo: echo: error: refused\n"


@pytest.mark.parametrize("name", ["pvxs", "pvaccesscpp"])
def test_ten_million_doubles(name, request):
    peer = request.getfixturevalue(name)
    assert peer.said("get", "-t", "long") == f"[0,1,2,...,{DOUBLES - 3},{DOUBLES - 2},{DOUBLES - 1}]\n"
    assert peer.get("long")["value"] == list(range(DOUBLES))


@pytest.mark.parametrize("name", ["pvxs", "pvaccesscpp"])
def test_types_and_names_are_listed(name, request):
    peer = request.getfixturevalue(name)
    assert "    double value\n" in peer.said("info", "scalar")
    names = peer.said("list", f"127.0.0.1:{peer.port}").splitlines()
    assert {"scalar", "echo", f"n{NAMES - 1}"} <= set(names) and len(names) > NAMES


@pytest.mark.parametrize("name", ["pvxs", "pvaccesscpp"])
def test_ten_thousand_names_in_one_get(name, request, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("\n".join(f"n{at}" for at in range(NAMES)))
    began = time.monotonic()
    said = request.getfixturevalue(name).said("get", "-f", names, "-r", "value")
    assert said == "".join(f"n{at} {at}\n" for at in range(NAMES))
    assert time.monotonic() - began < 20


def watched(peer, request, batch, batches):
    """Posts numbers in batches, and reads each batch before the next one."""
    last = peer.get("ticks")["value"]
    with command.started("pva", "monitor", "-t", "--for", 60, "-r", request, "-S", f"127.0.0.1:{peer.port}", "ticks") as monitor:
        assert int(monitor.stdout.readline()) == last
        for _ in range(batches):
            numbers = list(range(last + 1, last + 1 + batch))
            peer.process.stdin.write("".join(f"{number}\n" for number in numbers))
            peer.process.stdin.flush()
            assert [int(monitor.stdout.readline()) for _ in numbers] == numbers
            # The acknowledgement of what is shown was sent before.
            command.wait_until(peer.has_read_all, "it has read the acknowledgement")
            last = numbers[-1]


def test_a_monitor_of_pvxs_loses_nothing_with_a_long_queue(pvxs):
    watched(pvxs, "record[queueSize=600]field(value)", 500, 2)


def test_a_pipelined_monitor_of_pvxs_is_acknowledged(pvxs):
    # Without acknowledgements the server would send ten. Once it has, it only looks at them again with the next post, so that
    # there is room here for acknowledgements that are late.
    watched(pvxs, "record[queueSize=10,pipeline=true]field(value)", 2, 50)


def test_pvaccesscpp_is_read_written_and_described(pvaccesscpp):
    assert pvaccesscpp.get("scalar")["value"] == 0.75
    pvaccesscpp.put("scalar", "1e-5")
    assert pvaccesscpp.said("get", "-t", "scalar") == "1e-5\n"
    assert pvaccesscpp.get("bytes")["value"] == [7] * 70_000
    pvaccesscpp.put("bytes", json.dumps([1] * 5000))
    assert pvaccesscpp.get("bytes")["value"] == [1] * 5000
    assert pvaccesscpp.get("either")["either"] == {"text": "older"}
    pvaccesscpp.put("either", json.dumps({"either": {"number": 2.5}, "any": "x", "n": 3}))
    assert pvaccesscpp.get("either") == {"n": 3, "either": {"number": 2.5}, "any": "x"}
    assert "    union either\n            double number\n" in pvaccesscpp.said("info", "either")
    assert pvaccesscpp.said("monitor", "-n", "1", "-t", "scalar") == "1e-5\n"
    done = pvaccesscpp.run("get", "-w", "1", "absent")
    assert done.returncode == 1 and done.stderr.startswith("hodo: absent: ")


def test_pvaccesscpp_is_called(pvaccesscpp):
    assert json.loads(pvaccesscpp.said("call", "-M", "json", "-t", "echo", "a=1", "b=two"))["query"] == {"a": 1, "b": "two"}
    assert pvaccesscpp.said("call", "echo", "fail=true", status=1) == "hodo: echo: error: refused\n"


def test_a_monitor_of_pvaccesscpp_loses_nothing_within_its_queue(pvaccesscpp):
    watched(pvaccesscpp, "record[queueSize=4]field(value)", 3, 20)


@pytest.mark.parametrize("queue", ["queueSize=4", "queueSize=10,ackAny=1"])
def test_a_pipelined_monitor_of_pvaccesscpp_is_acknowledged(pvaccesscpp, queue):
    # A SharedPV sends four updates without an acknowledgement, however long the queue is, and then stands still for ever.
    watched(pvaccesscpp, f"record[{queue},pipeline=true]field(value)", 1, 100)
