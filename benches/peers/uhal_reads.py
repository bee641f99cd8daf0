"""Single reads with uHAL, one at a time: `uhal_reads.py URI SECONDS` prints their median and 99th percentile as JSON."""

import json
import pathlib
import sys
import tempfile
import time

import uhal

WARM_UP = 2000


def main(uri, seconds):
    uhal.setLogLevelTo(uhal.LogLevel.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder) / "table.xml"
        table.write_text('<node id="top"><node id="word" address="0x10"/></node>', encoding="utf-8")
        device = uhal.getDevice("board", uri, f"file://{table}")
    client, node, times = device.getClient(), device.getNode("word"), []
    until = None
    while until is None or time.perf_counter() < until:
        before = time.perf_counter_ns()
        node.read()
        client.dispatch()
        times.append(time.perf_counter_ns() - before)
        if len(times) == WARM_UP and until is None:
            times.clear()
            until = time.perf_counter() + seconds
    times.sort()
    print(json.dumps({"p50_us": times[len(times) // 2] / 1e3, "p99_us": times[len(times) * 99 // 100] / 1e3}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
