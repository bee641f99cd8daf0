"""A silence is seen: in the verdict, among the stalls, in the intervals, and whose it was."""

import contextlib
import signal
import subprocess

import command
import contract
import pytest

ONCE = ["--repeat", "1", "--warmup", "50ms", "--quiet"]


def silent_s(one):
    """The time in which nothing completed, by the intervals alone."""
    empty, before = 0.0, 0.0
    for interval in one["intervals"]:
        if interval["operations"] == 0:
            empty += interval["t_s"] - before
        before = interval["t_s"]
    return empty


def test_an_outage_of_a_schedule():
    link = "sim+tcp://?delay=50us&partition=2s..4s"
    plan = ["--test", "open", "--rate", "500", "--sizes", "64", "--duration", "6s", "--repeat", "1"]
    (one,) = command.bench(link, *plan, "--quiet")
    (stall,) = one["stalls"]
    assert one["verdict"]["state"] == "stalled"
    assert stall["at_s"] == pytest.approx(1.98, abs=0.01) and stall["lasted_s"] == pytest.approx(2, abs=0.3)
    assert stall["operations_late"] == pytest.approx(1000, abs=150)
    assert silent_s(one) == pytest.approx(stall["lasted_s"], abs=0.1)
    assert "nothing for 2." in one["verdict"]["text"] and "late" in one["verdict"]["text"]
    # It alone is no failure; a share of the schedule that has to be in time is not met.
    assert command.hodo("bench", link, *plan, "--quiet").returncode == 0
    done = command.hodo("bench", link, *plan, "--quiet", "--require", "0.99")
    assert done.returncode == 1 and "0.99 is not met: 6" in done.stderr, done.stderr


@pytest.mark.parametrize(("scheme", "lasted_ms"), command.spread(["tcp", "udp", "ipbusudp-2.0", "pva"], [10, 50, 100, 500]))
def test_an_outage_of_a_closed_loop(scheme, lasted_ms):
    link = f"sim+{scheme}://?delay=50us&partition=300ms..{300 + lasted_ms}ms"
    plan = ["--test", "rate", "--mode", "receive", "--sizes", "64", "--window", "8"]
    (one,) = command.bench(link, *plan, "--duration", "2s", "--repeat", "1", "--quiet")
    (stall,) = one["stalls"]
    assert one["verdict"]["state"] == "stalled" and stall["whose"] != "host"
    # What repairs it has a time of its own, at most that of TCP or of an operation over UDP.
    assert stall["at_s"] == pytest.approx(0.28, abs=0.01)
    assert lasted_ms / 1000 - 0.001 <= stall["lasted_s"] <= 2 * lasted_ms / 1000 + 0.3
    assert silent_s(one) > 0.5 * stall["lasted_s"] - 0.02


def test_an_outage_of_updates():
    link = "sim+tcp://?delay=50us&partition=1s..2s"
    (one,) = command.bench(link, "--test", "updates", "--rate", "1K", "--sizes", "64", "--duration", "3s", *ONCE)
    (stall,) = one["stalls"]
    assert one["verdict"]["state"] == "stalled", one["verdict"]
    assert stall["at_s"] == pytest.approx(0.95, abs=0.05) and stall["lasted_s"] == pytest.approx(1, abs=0.3)


def stop(processes, after_s, for_s):
    """Stops processes after so many seconds, and continues them when they have stood still for so long."""
    for seconds, sent in ((after_s, signal.SIGSTOP), (for_s, signal.SIGCONT)):
        with contextlib.suppress(subprocess.TimeoutExpired):
            processes[0].wait(seconds)
        for process in processes:
            process.send_signal(sent)


@pytest.mark.long("timing")
@pytest.mark.parametrize(
    "plan",
    [
        ["--test", "open", "--rate", "2K", "--sizes", "64"],
        ["--test", "rate", "--mode", "send", "--sizes", "1K"],
        ["--test", "latency", "--sizes", "64"],
        ["--test", "channels", "--channels", "4", "--sizes", "64"],
        ["--test", "updates", "--rate", "1K", "--sizes", "64"],
    ],
    ids=lambda plan: plan[1],
)
def test_a_far_end_that_is_stopped(plan):
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(command.serving(f"{scheme}://127.0.0.1:0")) for scheme in ("tcp", "udp")]
        words = [*plan, *ONCE, "--duration", "1800ms", "--json", "-"]
        benches = [stack.enter_context(command.started("bench", server.uri, *words, stderr=subprocess.DEVNULL)) for server in servers]
        stop(servers, 1, 0.6)
        rows = [contract.parse(bench.stdout.read())["measurements"] for bench in benches]
    for (one,) in rows:
        longest = max(one["stalls"], key=lambda stall: stall["lasted_s"])
        assert one["verdict"]["state"] == "stalled", one["verdict"]
        assert longest["lasted_s"] == pytest.approx(0.6, abs=0.2), one["stalls"]
        assert longest["whose"] in ("far_end", None), one["stalls"]
        assert "nothing for " in one["verdict"]["text"]
