"""pvxs and pvAccessCPP as clients of `hodo pva serve`, in C++, in both byte orders; and p4p with what they do not show."""

import re
import subprocess
import sys

import command
import golden
import numpy
import pva
import pytest
from p4p.nt import NTScalar

PVS = """
[[pv]]
name = "NUMBER"
value = 20
units = "mm"
control = [0, 50]
alarm = { high = 45, high_warning = 40 }
put = "log"
[[pv]]
name = "CHOICE"
type = "enum"
choices = ["Off", "On", "Fault"]
value = "On"
[[pv]]
name = "MIXED"
type = { x = "int", y = { z = "double[]" }, any = "any" }
value = { x = 1, y = { z = [1, 2] }, any = 5 }
put = "accept"
[[pv]]
name = "EITHER"
type = "union"
element = { number = "double", text = "string" }
# pvxs cannot put to a union that is empty.
value = { text = "either" }
put = "accept"
[[pv]]
name = "LARGE"
type = "double[]"
source = "waveform"
size = 10_000_000
every = "10h"
put = "accept"
[[pv]]
name = "COUNTER"
type = "long"
source = "ramp"
to = 1e9
every = "5ms"
[[pv]]
name = "PARTS"
type = "int[]"
value = [10, 11, 12, 13, 14, 15]
put = "accept"
[[pv]]
name = "MANY:{0..9999}"
type = "int"
value = 7
[[call]]
name = "SUM"
command = ["python3", "%s"]
"""

PROGRAMS = "client_pvxs", "client_pvaccesscpp", "parts_pvaccesscpp"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    return {name: golden.compiled(name, folder) for name in PROGRAMS}


@pytest.fixture(params=["little", "big"])
def server(request, tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text((PVS % (command.ROOT / "docs/examples/pva_add.py")).replace('"python3"', f'"{sys.executable}"'))
    order = ["--big-endian"] if request.param == "big" else []
    with pva.serving(file, *order) as process:
        with pva.client(process.at) as context:
            # A source may be slow to begin.
            command.wait_until(lambda: len(context.get("LARGE", timeout=60)) == 10_000_000, "the large array is there")
        yield process


def run(program, server):
    done = subprocess.run([program, server.at], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}\n{done.stderr}\n{''.join(server.log)}"
    # pvAccessCPP warns of its empty address list there.
    return [line for line in done.stdout.splitlines() if "empty address list" not in line]


def test_pvxs_reads_puts_subscribes_and_calls(programs, server):
    assert run(programs["client_pvxs"], server) == [
        "number 20 mm",
        "put 43.5 HIGH",
        "refused 99 is not within the limits 0 to 50 of this PV",
        "absent none of the requested fields exists",
        "choice 1 Fault",
        "mixed 1 2 5",
        "mixed 8 text",
        "either 2.5",
        "large 10000000",
        f"large 10000000 {sum(range(1000)) * 10_000}",
        "counter 1 0",
        "counter 1 0",
        "sum 3.5",
        "complaint " + complaint(),
        "names " + " ".join(sorted(re.findall(r'name = "(\w+)"', PVS))),
        "many 10000",
        "info epics:nt/NTEnum:1.0",
    ]


def test_pvaccesscpp_reads_puts_subscribes_and_calls(programs, server):
    assert run(programs["client_pvaccesscpp"], server) == [
        "number 20 mm",
        "put 43.5 HIGH",
        "refused 99 is not within the limits 0 to 50 of this PV",
        "absent none of the requested fields exists",
        "choice 1 Fault",
        "mixed 1 2 5",
        "mixed 8",
        "large 10000000",
        f"large 10000000 {sum(range(1000)) * 10_000}",
        "counter 1 0",
        "counter 1 0",
        "sum 3.5",
        "complaint " + complaint(),
        "many 10000",
        "info epics:nt/NTEnum:1.0",
    ]


def test_pvaccesscpp_puts_and_gets_at_once_processes_and_reads_and_writes_parts(programs, server):
    assert run(programs["parts_pvaccesscpp"], server) == [
        "put-get 25 ok",
        "get-put 25 ok",
        "get-get 25 ok",
        "refused 99 is not within the limits 0 to 50 of this PV",
        "get-get 25 ok",
        "process ok",
        "process ok",
        "length 6 ok",
        "part 11 13 15 ok",
        "put ok",
        "all 10 11 12 13 7 15 8 ok",
        "cut ok",
        "all 10 11 ok",
        "no array refused",
    ]
    with pva.client(server.at) as context:
        assert list(context.get("PARTS")) == [10, 11]
        assert context.get("NUMBER") == 25


def complaint():
    return f"{sys.executable} has failed with exit status: 1: give two numbers, a and b"


def test_p4p_puts_ten_million_doubles_and_reads_them_back(server):
    with pva.client(server.at) as context:
        array = numpy.arange(10_000_000, dtype=float)
        context.put("LARGE", array, timeout=60)
        assert numpy.array_equal(context.get("LARGE", timeout=60), array)
        context.put("MIXED", {"any": NTScalar("d").wrap(2.5)})
        assert context.get("MIXED").any.value == 2.5
