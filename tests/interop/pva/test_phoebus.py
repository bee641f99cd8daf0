"""Phoebus' core-pva, in Java: its client against our server, and ours against its demonstration server."""

import contextlib
import os
import re
import subprocess
import threading

import command
import peers
import pva
import pytest

ARCHIVE = command.TARGET / "java/core-pva-5.0.5.jar"

PVS = """\
[[pv]]
name = "scalar"
value = 1.5
put = "accept"
[[pv]]
name = "array"
type = "double[]"
value = [1, 2, 3]
[[pv]]
name = "state"
type = "enum"
choices = ["off", "on"]
value = "on"
put = "accept"
[[pv]]
name = "text"
type = "string"
value = "one two"
put = "accept"
[[pv]]
name = "count"
type = "long"
source = "ramp"
from = 0
to = 1_000_000
step = 1
every = "10ms"
"""


def java(name, *arguments, **environment):
    """A class of core-pva that runs."""
    assert ARCHIVE.exists(), f"{ARCHIVE} is not there: ./test python"
    words = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", ARCHIVE, f"org.epics.pva.{name}", *arguments]
    environment = {**os.environ, **peers.ALONE, **environment}
    return subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def asks(server, *arguments):
    """What its client says to a request of a server."""
    process = java("client.PVAClientMain", *arguments, EPICS_PVA_NAME_SERVERS=server.at)
    try:
        return process.communicate(timeout=60)[0]
    finally:
        process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("phoebus") / "pvs.toml"
    file.write_text(PVS, encoding="utf-8")
    with pva.serving(file) as process:
        yield process


def test_its_client_reads_every_type(server):
    said = asks(server, "get", "-v", "1", "scalar", "array", "state", "text")
    assert "double value 1.5\n" in said and "double[] value [1.0, 2.0, 3.0]\n" in said, said
    assert "enum_t value [on]\n" in said and "string value one two\n" in said, said
    assert "string[] choices [Default, String, Binary, Decimal, Hex, Exponential, Engineering]\n" in said, said
    assert "double value\n" in asks(server, "info", "-v", "1", "scalar")


def test_its_client_writes(server):
    written = {"scalar": ("7.25", "double value 7.25\n"), "state": ("0", "enum_t value [off]\n"), "text": ("a b", "string value a b\n")}
    for name, (value, found) in written.items():
        said = asks(server, "put", "-v", "1", name, value)
        assert "timed out" not in said and "Exception" not in said, said
        assert found in asks(server, "get", "-v", "1", name)
    assert "3.0" in asks(server, "get", "-v", "1", "array"), "what nobody may write stays"


def test_its_client_gets_updates_in_order(server):
    process = java("client.PVAClientMain", "monitor", "-v", "1", "-r", "value", "count", EPICS_PVA_NAME_SERVERS=server.at)
    try:
        numbers = []
        for line in process.stdout:
            numbers += map(int, re.findall(r"long value (\d+)", line))
            if len(numbers) == 100:
                break
        # Four wait in its queue; while it has no processor, further ones become part of the last.
        assert numbers == sorted(set(numbers)) and numbers[-1] - numbers[0] < 200, numbers
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def demonstration():
    """Its server."""
    ports = {"EPICS_PVA_SERVER_PORT": "0", "EPICS_PVAS_BROADCAST_PORT": str(pva.udp_port()), "EPICS_PVA_ENABLE_IPV6": "NO"}
    process = java("server.ServerDemo", **ports)
    said = []
    threading.Thread(target=lambda: said.extend(process.stdout), daemon=True).start()
    found = lambda: re.search(r"Listening on TCP .*:(\d+)\n", "".join(said))  # noqa: E731
    try:
        command.wait_until(lambda: found() or process.poll() is not None, "it listens")
        assert found(), "".join(said)
        yield peers.Peer(process, int(found()[1]))
    finally:
        process.kill()
        process.wait()


def test_its_server_is_read_and_watched():
    with demonstration() as peer:
        assert peer.get("demo")["tag"] == "Hello!"
        assert len(peer.said("monitor", "--count", "3", "demo").splitlines()) == 3
