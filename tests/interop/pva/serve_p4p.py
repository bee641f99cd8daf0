"""A p4p server with PVs of every type, and n0 to n(N-1) if it is given N. It prints its port, and ends with its standard input."""

import os
import sys

import numpy as np
from p4p import Type, Value
from p4p.nt import NTEnum, NTNDArray, NTScalar, NTTable
from p4p.server import Server, StaticProvider
from p4p.server.thread import SharedPV

SCALARS = {"?": True, "b": -8, "h": -16, "i": -32, "l": -(2**63), "B": 8, "H": 16, "I": 32, "L": 2**64 - 1, "f": 0.5, "d": 0.1, "s": "hé"}
NAMES = {"?": "bool"}
provider = StaticProvider("all")


def add(name, **arguments):
    pv = SharedPV(**arguments)
    provider.add(name, pv)

    @pv.put
    def put(pv, operation):
        pv.post(operation.value())
        operation.done()

    return pv


def name_of(code):
    return NAMES.get(code, code if code.islower() else f"u{code.lower()}")


for code, value in SCALARS.items():
    add(f"scalar:{name_of(code)}", nt=NTScalar(code), initial=value)
    add(f"array:{name_of(code)}", nt=NTScalar(f"a{code}"), initial=[value] * 3 if code == "s" else np.array([value] * 3))
add("empty", nt=NTScalar("ad"), initial=[])
add("big", nt=NTScalar("ad"), initial=np.arange(10_000_000.0))
add("enum", nt=NTEnum(), initial={"index": 1, "choices": ["Off", "On it"]})
add("table", nt=NTTable([("a", "i"), ("b", "s")]), initial=[{"a": 1, "b": "x"}, {"a": 2, "b": "y z"}])
add("image", nt=NTNDArray(), initial=np.zeros((3, 4), dtype="u1"))
add("full", nt=NTScalar("d", display=True, control=True, valueAlarm=True), initial=1.5)
PARTS = Type(
    [
        ("union", ("U", None, [("x", "i"), ("y", "s"), ("z", "ad")])),
        ("any", "v"),
        ("structures", ("aS", None, [("d", "d")])),
        ("inner", ("S", "inner_t", [("a", "i"), ("deeper", ("S", None, [("t", "s")]))])),
        ("anys", "av"),
    ]
)
add(
    "parts",
    initial=Value(
        PARTS,
        {"union": ("y", "text"), "any": 1.5, "structures": [{"d": 1}, {"d": 2}], "inner": {"a": 1, "deeper": {"t": "x"}}, "anys": [1, "b"]},
    ),
)
refuses = SharedPV(nt=NTScalar("d"), initial=1.0)
provider.add("refuses", refuses)


@refuses.put
def refuse(_pv, operation):
    operation.done(error="not today")


calls = SharedPV(nt=NTScalar("d"), initial=0.0)
provider.add("twice", calls)


@calls.rpc
def twice(_pv, operation):
    query = operation.value().query
    if "n" in query:
        operation.done(NTScalar("d").wrap(2.0 * query.n))
    elif "text" in query:
        operation.done(NTScalar("s").wrap(query.text * 2))
    else:
        operation.done(error="n is missing")


for number in range(int(sys.argv[1])):
    provider.add(f"n{number}", SharedPV(nt=NTScalar("i"), initial=number))
ticks = SharedPV(nt=NTScalar("d"), initial=0.0)
provider.add("ticks", ticks)
settings = {name: value for name, value in os.environ.items() if name.startswith("EPICS_PVA")}
server = Server(providers=[provider], conf=settings, useenv=False)
print(f"port {server.conf()['EPICS_PVAS_SERVER_PORT']}", flush=True)
# Each line is posted.
for line in sys.stdin:
    ticks.post(float(line))
server.stop()
