"""`hodo pva serve` as p4p sees it: every type read, put, subscribed to and called."""

import json
import queue
import time

import command
import numpy
import pva
import pytest
from p4p.client.thread import RemoteError
from p4p.nt import NTURI

EXAMPLE = command.ROOT / "docs/examples/pva.toml"


@pytest.fixture(scope="module")
def served():
    with pva.serving(EXAMPLE) as process, pva.client(process.at) as context:
        yield process, context


def updates(context, name, request=None):
    """A queue of the updates of a PV."""
    seen = queue.Queue()
    subscription = context.monitor(name, seen.put, request=request, notify_disconnect=False)
    return seen, subscription


def test_the_example_is_served_and_read(served):
    _, context = served
    assert context.get("DEMO:VERSION") == "1.0"
    now = context.get("DEMO:SETPOINT")
    assert (now, now.severity, now.raw.display.units, now.raw.control.limitHigh) == (20.0, 0, "C", 50.0)
    assert abs(now.timestamp - time.time()) < 60
    names = [f"DEMO:MOTOR{number}:{axis}" for number in range(1, 5) for axis in "XY"]
    assert all(-10 <= value <= 10 for value in context.get(names))
    state = context.get("DEMO:STATE")
    assert (int(state), state.raw.value.choices[2]) == (1, "Fault")
    assert context.get("DEMO:WAVEFORM").shape == (1000,)
    table = context.get("DEMO:TABLE")
    assert table.getID() == "epics:nt/NTTable:1.0"
    assert (list(table.value.name), list(table.value.position)) == (["first", "second"], [1.5, 2.5])
    assert list(table.labels) == ["name", "position"]
    image = context.get("DEMO:IMAGE")
    assert (image.shape, image.dtype) == ((240, 320), numpy.uint8)
    assert image[0][1] == (int(image[0][0]) + 1) % 256
    matrix = context.get("DEMO:MATRIX")
    assert (list(matrix.value), list(matrix.dim)) == ([1, 2, 3, 4, 5, 6], [3, 2])
    assert list(context.get("DEMO:HISTOGRAM").ranges) == [0, 1, 2, 3]
    assert context.get("DEMO:UNION").value == "either"
    structure = context.get("DEMO:STRUCTURE")
    assert (structure.x, list(structure.y.z), structure.y.note, structure.extra) == (1, [1.0, 2.0], "hello", 5)


def test_puts_are_checked_logged_and_raise_alarms(served):
    process, context = served
    seen, subscription = updates(context, "DEMO:SETPOINT")
    assert seen.get(timeout=10) == 20.0
    context.put("DEMO:SETPOINT", 42.5)
    warm = seen.get(timeout=10)
    assert (warm, warm.severity, warm.raw.alarm.message) == (42.5, 1, "HIGH")
    context.put("DEMO:SETPOINT", 46)
    assert (hot := seen.get(timeout=10)).severity == 2 and hot.raw.alarm.message == "HIHI"
    context.put("DEMO:SETPOINT", 20)
    assert (cool := seen.get(timeout=10)).severity == 0 and cool.raw.alarm.message == ""
    subscription.close()
    with pytest.raises(RemoteError, match="51 is not within the limits 0 to 50"):
        context.put("DEMO:SETPOINT", 51)
    with pytest.raises(RemoteError, match="control cannot be put"):
        context.put("DEMO:SETPOINT", {"control.limitHigh": 1000}, request="field(control.limitHigh)")
    with pytest.raises(RemoteError, match="can only be read"):
        context.put("DEMO:VERSION", "2.0")
    context.put("DEMO:STATE", 2)
    assert int(context.get("DEMO:STATE")) == 2
    with pytest.raises(RemoteError, match="3 is no choice of this PV, which has 3"):
        context.put("DEMO:STATE", {"value.index": 3})
    context.put("DEMO:UNION", {"value": ("number", 1.25)})
    assert context.get("DEMO:UNION").value == 1.25
    context.put("DEMO:STRUCTURE", {"x": 9, "y.z": [7.0]})
    assert list(context.get("DEMO:STRUCTURE").y.z) == [7.0]
    puts = pva.page(process, "/puts").splitlines()
    assert [line.split("\t")[1] for line in puts[1:]] == ["DEMO:SETPOINT"] * 3
    assert "42.5" in puts[3] and "127.0.0.1" in puts[3]


def test_sources_post_in_order_and_nothing_is_lost(served):
    _, context = served
    seen, subscription = updates(context, "DEMO:COUNTER", "field(value)record[queueSize=100]")
    values = [int(seen.get(timeout=10)) for _ in range(30)]
    subscription.close()
    assert values == list(range(values[0], values[0] + 30))
    seen, subscription = updates(context, "DEMO:COUNTER", "field()record[queueSize=20,pipeline=true]")
    piped = [seen.get(timeout=10) for _ in range(30)]
    subscription.close()
    assert [int(value) for value in piped] == list(range(int(piped[0]), int(piped[0]) + 30))
    stamps = [value.timestamp for value in piped]
    assert stamps == sorted(stamps)
    seen, subscription = updates(context, "DEMO:REPLAY")
    played = [seen.get(timeout=10) for _ in range(7)]
    subscription.close()
    severities = {float(value): value.severity for value in played}
    assert severities == {1.5: 0, 2.5: 1, 3.5: 0}


def test_a_program_answers_calls(served):
    _, context = served

    def call(**arguments):
        types = [(name, "d") for name in arguments]
        return context.rpc("DEMO:ADD", NTURI(types).wrap("DEMO:ADD", kws=arguments), timeout=20)

    assert call(a=1.5, b=2) == 3.5
    with pytest.raises(RemoteError, match="give two numbers, a and b"):
        call(a=1.5)
    with pytest.raises(RemoteError, match="can be called, not put"):
        context.put("DEMO:ADD", "x")


def test_health_metrics_and_clients_are_shown(served):
    process, context = served
    context.get("DEMO:VERSION")
    assert pva.page(process, "/health").strip() == "ready"
    metrics = pva.page(process, "/metrics")
    assert "pva_server_pvs 22" in metrics
    assert "pva_server_clients 1" in metrics
    assert "22 PVs; 1 clients connected so far, 1 now" in pva.page(process, "/stats")


def test_what_is_wrong_in_the_file_is_told_with_its_line(tmp_path):
    file = tmp_path / "wrong.toml"
    cases = {
        '[[pv]]\nname = "A"\ntyp = "double"': r":3: unknown field `typ`, expected one of `name`, `type`",
        '[[pv]]\nname = "A"\n[[pv]]\nname = "A"': r":4: \[\[pv\]\] A: the name A stands twice",
        '[[pv]]\nname = "A{3..1}"': r":2: .*\{3..1\} is no range",
        '[[pv]]\nname = "A"\ntype = "dubble"': r":3: .*there is no dubble; write one of",
        '[[pv]]\nname = "A"\nvalue = "x"': r":3: .*value",
        '[[pv]]\nname = "A"\nevery = 5\nsource = "ramp"': r":3: write a span of time in quotes",
        '[[pv]]\nname = "A"\ntype = "string"\nsource = "sine"': r":4: .*sine makes numbers; choose another",
        '[[pv]]\nname = "A"\nsource = "replay"\nfile = "absent"': r":4: .*absent cannot be read",
        '[[pv]]\nname = "A"\nfields = { absent = 1 }': r":3: .*absent: there is no such field",
        '[[call]]\nname = "A"\ncommand = []': r":3: .*write a program and its arguments",
        '[[pv]]\nname = "A"\n\nperiod = "1s"': r":4: .*period: it is for a source \(sine, waveform\); leave it out, or name",
        '[[pv]]\nname = "A"\nsource = "ramp"\nto = 3\nperiod = "1s"': r":5: .*period: .*ramp has every, from, to, step; leave it out",
        '[[pv]]\nname = "A"\nsource = "sine"\nvalue = 1': r":4: .*value: the source sine makes the values; leave out",
        '[[pv]]\nname = "A"\nsource = "random"\nrepeat = true': r":4: .*repeat: it is for replay",
        '[[pv]]\nname = "A"\nchoices = ["x"]': r":3: .*choices: it is for the type enum, and this is double",
        '[[pv]]\nname = "A"\ntype = "image"\nelement = "ubyte"': r":4: .*element: it is for the type image, with source",
        '[[pv]]\nname = "A"\ntype = { x = "int" }\nunits = "V"': r":4: .*units: a structure has none; write",
        '[[pv]]\nname = "A"\n[[access]]\nrights = ["write"]': r":4: unknown variant `write`, expected one of `read`, `put`, `call`",
        '[[pv]]\nname = "A"\n[[access]]\nrights = []\n[[access]]\nrights = []\naddresses = ["10.1/16"]': r":7: \[\[access\]\]: addresses: `10.1/16` is no",
        '[server]\ntcp_only = true\nbeacons = ["no where"]\n[[pv]]\nname = "A"': r":3: \[server\]: beacons: `no where`",
        '[server]\ndrain = 5\n[[pv]]\nname = "A"': r":2: write a span of time in quotes",
        '[server]\nclients = 0\n[[pv]]\nname = "A"': r":2: .*nonzero",
        "": "there is no PV; add a table",
    }
    for text, says in cases.items():
        file.write_text(text)
        command.refused("pva", "serve", "--check", file, status=2, says=[says])
    command.refused("pva", "serve", tmp_path / "absent.toml", status=2, says=["absent.toml: cannot be read"])


def test_programs_are_bounded_in_time_and_number(tmp_path):
    file = tmp_path / "calls.toml"
    file.write_text(
        """
        [[call]]
        name = "SLOW"
        command = ["sh", "-c", "sleep 60 & cat; sleep 60"]
        timeout = "300ms"
        [[call]]
        name = "ONE"
        command = ["sh", "-c", "test -e running && exit 1; touch running; cat > request; rm running; printf '{\\"n\\": [1, 2]}'"]
        concurrent = 1
        [[call]]
        name = "NOISE"
        command = ["echo", "no json"]
        [[call]]
        name = "ABSENT"
        command = ["./absent"]
        """
    )
    with pva.serving(file) as process, pva.client(process.at) as context:
        ask = NTURI([("a", "s")]).wrap("X", kws={"a": "text"})
        for name, says in {"SLOW": "has not replied within 300ms", "NOISE": "no JSON", "ABSENT": "cannot be started"}.items():
            with pytest.raises(RemoteError, match=says):
                context.rpc(name, ask, timeout=20)
        pending = [context.rpc("ONE", ask, timeout=20) for _ in range(3)]
        assert [list(reply.n) for reply in pending] == [[1, 2]] * 3
        assert json.loads((tmp_path / "request").read_text())["query"] == {"a": "text"}
        assert command.children(process.pid) == []


def test_ten_thousand_pvs_and_an_orderly_end(tmp_path):
    file = tmp_path / "many.toml"
    file.write_text('[[pv]]\nname = "TEST:{0..9999}"\ntype = "int"\nvalue = 7\nput = "accept"\n')
    with pva.serving(file, "--big-endian") as process, pva.client(process.at) as context:
        names = [f"TEST:{number}" for number in range(10_000)]
        assert context.get(names, timeout=30) == [7] * 10_000
        context.put(names[:100], list(range(100)))
        assert context.get(names[:100]) == list(range(100))
        process.terminate()
        assert process.wait(10) == 0


def test_p4p_values_of_every_scalar_and_array_type(tmp_path):
    scalars = {
        "boolean": True, "byte": -5, "short": -500, "int": -70_000, "long": -(2**40), "ubyte": 200, "ushort": 60_000,
        "uint": 2**32 - 1, "ulong": 2**63 + 5, "float": 0.25, "double": 1e300, "string": "näme",
    }  # fmt: skip
    text = "".join(f'[[pv]]\nname = "{of}"\ntype = "{of}"\nput = "accept"\n' for of in scalars)
    text += "".join(f'[[pv]]\nname = "{of}[]"\ntype = "{of}[]"\nput = "accept"\n' for of in scalars)
    file = tmp_path / "types.toml"
    file.write_text(text)
    for order in ([], ["--big-endian"]):
        with pva.serving(file, *order) as process, pva.client(process.at) as context:
            for of, value in scalars.items():
                context.put(of, value)
                assert context.get(of) == value, of
                array = [value] * 3 if of == "string" else numpy.full(3, value)
                context.put(f"{of}[]", array)
                assert list(context.get(f"{of}[]")) == [value] * 3, of
