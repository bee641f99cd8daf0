"""A p4p server of the types in structures.py. It prints its port, and ends with its standard input.

A line of that is a name: the next fields of that PV are posted. Of a put it prints which fields have arrived, and what is in them.
"""

import json
import os
import sys

import numpy
import structures
from p4p.server import Server, StaticProvider
from p4p.server.thread import SharedPV

provider = StaticProvider("all")
pvs = {}


def plain(value):
    """What p4p holds, for JSON."""
    return value.todict() if isinstance(value, structures.Value) else value.tolist() if isinstance(value, numpy.ndarray) else str(value)


def serve(name, case):
    pv = SharedPV(initial=structures.value_of(case, case.value))
    provider.add(name, pv)
    pvs[name] = pv

    @pv.put
    def put(pv, operation):
        value = operation.value()
        print("put", json.dumps({field: value[field] for field in value.changedSet()}, default=plain), flush=True)
        pv.post(value)
        operation.done()


for name, case in structures.CASES.items():
    serve(name, case)
settings = {name: value for name, value in os.environ.items() if name.startswith("EPICS_PVA")}
server = Server(providers=[provider], conf=settings, useenv=False)
print(f"port {server.conf()['EPICS_PVAS_SERVER_PORT']}", flush=True)
for line in sys.stdin:
    name = line.rstrip("\n")
    case = structures.CASES[name]
    pvs[name].post(structures.value_of(case, case.update))
server.stop()
