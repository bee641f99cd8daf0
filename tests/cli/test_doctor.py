"""`hodo doctor` as a user without rights runs it: what it says, and how it ends."""

import json

import command


def test_this_host_is_examined():
    done = command.hodo("doctor", "--all", "--json", "-")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["schema"] == "hodo.doctor/1" and report["link"] is None and report["path"] is None
    judged = {entry["id"] for group in ("findings", "fine", "unknown") for entry in report[group]}
    assert {"wake_up", "clock_source", "quota", "neighbour", "socket_limits", "congestion_control"} <= judged, judged
    # People read it on standard error then.
    listed = [line.split()[0] for line in done.stderr.partition("\nfine\n")[2].splitlines() if line.startswith("  ")]
    assert {"quota", "softnet"} <= set(listed), done.stderr


def test_the_path_to_a_server_is_examined():
    with command.serving("tcp://127.0.0.1:0") as server:
        done = command.hodo("doctor", server.uri, "--json", "-")
        report = json.loads(done.stdout)
        path = report["path"]
        assert (path["remote"], path["interface"], path["far_process"]) == ("127.0.0.1", "lo", server.pid)
        assert path["operation_us"] > 0 and path["operations_failed"] is None
    lines = done.stderr.splitlines()
    assert lines[1] == f"path to {server.uri}" and lines[2].startswith("by lo; ")


def test_a_server_that_is_not_there_is_no_failure():
    with command.serving("tcp://127.0.0.1:0") as server:
        gone = server.uri
    done = command.hodo("doctor", gone, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert "nothing listens" in json.loads(done.stdout)["path"]["operations_failed"]


def test_what_has_no_path_is_turned_down():
    command.refused("doctor", "sim+tcp://?delay=5us", status=2, says=["simulated", "leave sim\\+ out"])
    command.refused("doctor", "tcp://nowhere.invalid:1", status=2, says=["cannot be resolved"])
    command.refused("doctor", "tpc://there:1", status=2, says=["unknown scheme"])
