"""The page for users of pvget, pvxget and p4p: each of its commands does what it says, against the PVs of the page."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

import command
import pva
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/from-pvget.md").read_text()
FILE = ROOT / "docs/examples/pva.toml"
SPANS = [span for row in re.findall(r"^\|(.*)\|$", PAGE, re.M) for span in re.findall(r"`([^`]+)`", row)]
OURS = sorted({span for span in SPANS if span.startswith("hodo pva ") and not span.startswith("hodo pva serve")})
# The others put and call, and fail when they show the result (p4p 4.3.0).
P4P = sorted({span for span in SPANS if re.match(r"python -m p4p.client.cli (--raw )?(get|monitor)", span)})


@pytest.fixture(scope="module")
def served():
    port = pva.udp_port()
    # Any free port: a server of somebody else may have 5075.
    with pva.serving(FILE, port=port, EPICS_PVAS_AUTO_BEACON_ADDR_LIST="NO", EPICS_PVAS_BEACON_ADDR_LIST=f"127.0.0.1:{port}") as server:
        server.variables = {
            **os.environ,
            "EPICS_PVA_ADDR_LIST": "127.0.0.1",
            "EPICS_PVA_AUTO_ADDR_LIST": "NO",
            "EPICS_PVA_BROADCAST_PORT": str(port),
        }
        yield server


def run(words, served, folder, within=20):
    (folder / "names.txt").write_text("DEMO:VERSION DEMO:STATE\n")
    return subprocess.run(words, cwd=folder, env=served.variables, capture_output=True, text=True, timeout=within)


@pytest.mark.parametrize("typed", OURS)
def test_commands_of_the_page_do_what_it_says(typed, served, tmp_path):
    words = [command.HODO, *shlex.split(typed)[1:]]
    # The page names the default port of a server.
    words = [served.at if word == "127.0.0.1" else word for word in words]
    # The program that answers a call may be slow to begin on a busy machine.
    words += ["-w", "30"] if words[2] in ("get", "put", "call", "info") and "-w" not in words else []
    done = run(words, served, tmp_path, within=60)
    assert done.returncode == 0, f"{typed}: {done.stderr}"
    # A busy machine may merge updates, which is told.
    assert done.stderr == "" or "overwritten" in done.stderr, typed
    # The first beacon may be 15 s away.
    assert (done.stdout != "") == ("-q" not in words) or "beacons" in words, typed
    if words[2] in ("get", "monitor", "info", "find"):
        named = re.findall(r"DEMO:\w+", typed) or ["DEMO:VERSION", "DEMO:STATE"]
        # JSON has no names where there is one PV, and trees begin with it.
        assert all(name in done.stdout for name in named) or "json" in words, done.stdout
    if words[2] == "call":
        assert "3" in done.stdout
    if words[2] == "list" and served.at in words:
        assert "DEMO:WAVEFORM" in done.stdout.split()


@pytest.mark.parametrize("typed", P4P)
def test_what_was_typed_for_p4p_works_with_our_server(typed, served, tmp_path):
    words = [sys.executable, *shlex.split(typed)[1:]]
    if "monitor" in words:
        with subprocess.Popen(words, env=served.variables, stdout=subprocess.PIPE, text=True) as process:
            assert "DEMO:COUNTER" in process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        return
    done = run(words, served, tmp_path)
    assert done.returncode == 0 and "Traceback" not in done.stderr, f"{typed}: {done.stderr}"


def test_the_page_is_read():
    assert len(OURS) >= 25 and len(P4P) == 3
