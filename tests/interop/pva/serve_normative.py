"""A p4p server of one value of each kind, of which some fields were never set; a line on standard input ends the alarm."""

import sys

import numpy
from p4p.nt import NTEnum, NTNDArray, NTScalar, NTTable
from p4p.server import Server
from p4p.server.thread import SharedPV
from p4p.wrapper import Type, Value

scalar = NTScalar("d", display=True, control=True).wrap(3.25)
scalar["alarm.severity"], scalar["alarm.status"], scalar["alarm.message"] = 2, 1, "hot"
image = NTNDArray().wrap(numpy.arange(256, dtype="u1").reshape(16, 16))
image["uniqueId"] = 5
inner = ("S", None, [("x", "d"), ("y", "ai"), ("choice", ("U", None, [("i", "i"), ("s", "s")]))])
nested = Value(Type([("inner", inner)]), {"inner.x": 1.5, "inner.y": [1, 2, 3], "inner.choice": ("i", 7)})
pvs = {
    "SCALAR": SharedPV(initial=scalar),
    "ENUM": SharedPV(nt=NTEnum(), initial={"index": 1, "choices": ["Off", "On"]}),
    "TABLE": SharedPV(nt=NTTable([("a", "i"), ("b", "s")]), initial=[{"a": 1, "b": "x"}, {"a": 2, "b": "y z"}]),
    "IMAGE": SharedPV(initial=image),
    "NESTED": SharedPV(initial=nested),
}
with Server(providers=[pvs]) as server:
    print("port", server.conf()["EPICS_PVAS_SERVER_PORT"], flush=True)
    for _ in sys.stdin:
        pvs["SCALAR"].post(Value(scalar.type(), {"alarm.severity": 0}))
