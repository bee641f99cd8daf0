"""Every normative type that a file can describe, as p4p reads it; and p4p's gateway in front of a server."""

import contextlib
import json
import queue
import subprocess
import sys

import command
import pva

PVS = """
[[pv]]
name = "CONTINUUM"
type = "continuum"
value = [1, 2, 3, 4]
fields = { base = [0, 1], units = ["s", "V"] }
[[pv]]
name = "AGGREGATE"
type = "aggregate"
value = 2.5
fields = { N = 4, max = 9, min = -1 }
[[pv]]
name = "NAMES"
type = "name_value"
element = "string"
value = ["x", "y"]
fields = { name = ["a", "b"] }
[[pv]]
name = "ATTRIBUTE"
type = "attribute"
value = 12
fields = { name = "gain", tags = ["t"] }
[[pv]]
name = "ANY"
type = "union"
value = { free = [1, 2] }
[[pv]]
name = "URI"
type = "uri"
element = { n = "int" }
value = { scheme = "pva", path = "X", query = { n = 5 } }
[[pv]]
name = "SEVERAL"
type = "multi_channel"
value = [1, "two"]
fields = { channelName = ["A", "B"], isConnected = [true, false] }
[[pv]]
name = "SCALARS"
type = "scalar_multi_channel"
element = "int"
value = [1, 2]
fields = { channelName = ["A", "B"] }
[[pv]]
name = "BOX"
put = "accept"
[[pv]]
name = "COUNTER"
type = "long"
source = "ramp"
to = 1e9
every = "50ms"
"""


def test_the_other_normative_types_are_read(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with pva.serving(file) as process, pva.client(process.at, nt=False) as context:
        names = ["CONTINUUM", "AGGREGATE", "NAMES", "ATTRIBUTE", "ANY", "URI", "SEVERAL", "SCALARS"]
        values = dict(zip(names, context.get(names), strict=True))
        identifiers = ["Continuum", "Aggregate", "NameValue", "Attribute", "Union", "URI", "MultiChannel", "ScalarMultiChannel"]
        assert [value.getID() for value in values.values()] == [f"epics:nt/NT{name}:1.0" for name in identifiers]
        assert (list(values["CONTINUUM"].value), list(values["CONTINUUM"].units)) == ([1, 2, 3, 4], ["s", "V"])
        assert (values["AGGREGATE"].value, values["AGGREGATE"].N, values["AGGREGATE"].max) == (2.5, 4, 9)
        assert (list(values["NAMES"].name), list(values["NAMES"].value)) == (["a", "b"], ["x", "y"])
        assert (values["ATTRIBUTE"].name, values["ATTRIBUTE"].value, list(values["ATTRIBUTE"].tags)) == ("gain", 12, ["t"])
        assert list(values["ANY"].value.free) == [1, 2]
        assert (values["URI"].path, values["URI"].query.n) == ("X", 5)
        assert (list(values["SEVERAL"].value), list(values["SEVERAL"].isConnected)) == ([1, "two"], [True, False])
        assert list(values["SCALARS"].value) == [1, 2]


@contextlib.contextmanager
def gateway(folder, behind, before):
    """p4p's gateway, which finds servers at one UDP port and is found at another."""
    local = {"addrlist": "127.0.0.1", "autoaddrlist": False}
    server = {"name": "s", "clients": ["c"], "interface": ["127.0.0.1"], "serverport": 0, "bcastport": before, **local}
    config = {"version": 2, "clients": [{"name": "c", "provider": "pva", "bcastport": behind, **local}], "servers": [server]}
    file = folder / "gateway.json"
    file.write_text(json.dumps(config))
    with subprocess.Popen([sys.executable, "-m", "p4p.gw", str(file)], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_gateway_of_p4p_stands_in_front(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    behind, before = pva.udp_port(), pva.udp_port()
    with (
        pva.serving(file, port=behind) as server,
        gateway(tmp_path, behind, before) as process,
        pva.client(port=before) as context,
    ):
        context.put("BOX", 4.5, timeout=30)
        assert context.get("BOX", timeout=20) == 4.5
        seen = queue.Queue()
        subscription = context.monitor("COUNTER", seen.put, notify_disconnect=False)
        values = [int(seen.get(timeout=20)) for _ in range(10)]
        subscription.close()
        assert values == sorted(set(values)) and process.poll() is None
        command.wait_until(lambda: "1 clients connected so far, 1 now" in pva.page(server, "/stats"), "only the gateway")
