"""`hodo pva monitor` whose output nobody reads for a while: memory is bounded, the server is read on, and what was overwritten is told."""

import os
import pathlib
import re
import signal
import subprocess
import time

import command
import pva

PVS = """
[[pv]]
name = "WAVE{1..20}"
type = "double[]"
source = "waveform"
size = 5000
every = "1ms"
"""
# Over what it has once all PVs are there: 20 queues of 4 updates of 40 kB, the text of one of each, and what the system keeps.
GROWTH_MAX = 64 << 20


def resident(process):
    pages = int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def updates(server):
    """Updates that the server has sent so far."""
    line = next(line for line in pva.page(server, "/metrics").splitlines() if line.startswith("pva_server_updates_total"))
    return float(line.split()[-1])


def test_output_that_is_not_read_holds_nothing_up(tmp_path):
    file = tmp_path / "pvs.toml"
    file.write_text(PVS)
    with pva.serving(file) as server:
        words = [command.HODO, "pva", "monitor", "-M", "json", "-#", "0", "-S", server.at, *(f"WAVE{n}" for n in range(1, 21))]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            command.wait_until(lambda: updates(server) > 1000, "updates flow")
            before, sent = resident(process), updates(server)
            begun = time.monotonic()
            while time.monotonic() - begun < 3:
                assert resident(process) - before < GROWTH_MAX
                time.sleep(0.1)
            # It reads on: the server does not take it for dead, and has not to keep what it does not read.
            assert updates(server) - sent > 1000
            process.send_signal(signal.SIGINT)
            output, complaint = process.communicate(timeout=60)
    assert output.count("\n") > 1
    for number in range(1, 21):
        assert f"WAVE{number} " in output or f"WAVE{number}: no update was shown" in complaint
        # Each posts a thousand updates a second into a queue of four, for seconds, whatever of it was shown.
        assert re.search(rf"^hodo: WAVE{number}: \d+ of \d+ updates had overwritten others", complaint, re.M)
    assert process.returncode == ("no update was shown" in complaint)
