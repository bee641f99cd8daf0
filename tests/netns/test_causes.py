"""Links whose bottleneck is known because it was built: the word for what binds names it, or the row says `unknown`."""

import concurrent.futures
import contextlib
import json

import bed
import command
import pytest

pytestmark = pytest.mark.long("causes")

# Runs more, or as many as go at once, where most do not name the cause.
MORE = 2
SHORT = ["--duration", "200ms", "--repeat", "1", "--warmup", "80ms", "--quiet"]

STREAM = "--test rate --sizes 128K --congestion cubic"
SEND = f"{STREAM} --mode send"
# So little in flight that a slow way is empty again soon after the counted time.
SLOW = "--test rate --sizes 32K --window 16 --mode send --congestion cubic"

# Place, link, plan, words that are right, and what else the row has to say. `unknown` is never wrong, but does not name anything.
CASES = [
    ("gigabit", "tcp", f"{SEND} --line-rate 1G", "line", ""),
    ("gigabit", "tcp", f"{STREAM} --mode receive --line-rate 1G", "line", ""),
    ("gigabit", "tcp", SEND, "line", "looks like 1 Gbit/s Ethernet; say --line-rate 1G"),
    ("gigabit", "tcp", f"{SEND} --line-rate 2.5G", "unknown", ""),
    ("gigabit", "tcp", f"{SEND} --line-rate 100M", "line", "RED FLAG"),
    ("gigabit", "ipbusudp-2.0", "--test rate --mode receive --sizes 1M --line-rate 1G", "line", ""),
    ("gigabit", "tcp", "--test channels --channels 20 --mode send --sizes 32K --line-rate 1G --congestion cubic", "line", ""),
    ("gigabit of 576", "tcp", f"{SEND} --line-rate 1G --mtu 1500", "line unknown", ""),
    ("tenth", "udp", "--test rate --mode send --sizes 1472 --line-rate 100M", "line", ""),
    ("tenth", "udp", "--test rate --mode send --sizes 1472", "line", "looks like 100 Mbit/s Ethernet"),
    ("tenth", "tcp", "--test open --rate 20K --mode send --sizes 1448 --line-rate 100M --congestion cubic", "line", "missed"),
    ("tenth", "tcp", "--test open --rate 2K --mode send --sizes 1448 --line-rate 100M", "schedule", ""),
    ("slow", "tcp", f"{SLOW} --line-rate 40M", "line", ""),
    ("slow", "tcp", SLOW, "unknown", ""),
    ("lossy", "tcp", f"{SLOW} --line-rate 1G", "loss", ""),
    ("lossy", "tcp", SLOW, "loss", ""),
    ("lossy", "ipbusudp-2.0", "--test rate --mode receive --sizes 64K", "loss", ""),
    ("far", "tcp", "--test rate --mode both --sizes 1K --window 4", "window", ""),
    ("far", "udp", "--test rate --mode both --sizes 1K --window 4", "window", ""),
    ("far", "ipbusudp-2.0", "--test rate --mode receive --sizes 4 --window 16", "window", ""),
    ("far", "ipbusudp-2.0", "--test rate --mode receive --sizes 64K", "window", ""),
    ("near", "tcp", "--test latency --sizes 64", "roundtrip", "% of the limit set by `roundtrip`"),
    ("near", "udp", "--test latency --sizes 64", "roundtrip", "% of the limit set by `roundtrip`"),
    ("near", "pva", "--test latency --sizes 8", "roundtrip", "% of the limit set by `roundtrip`"),
    ("near", "ipbusudp-2.0", "--test latency --mode receive --sizes 4", "roundtrip", "% of the limit set by `roundtrip`"),
    ("near", "pva", "--test rate --sizes 8 --window 8", "window", ""),
    ("very far", "tcp", f"{SLOW} --socket-buffer 64K", "buffer", "this side"),
    ("very far", "tcp --socket-buffer 32K", SLOW, "far_end", "its buffer"),
    ("policed", "tcp", f"{SLOW} --line-rate 1G", "loss", ""),
    ("policed", "tcp", SLOW, "loss", ""),
    ("shallow", "tcp", f"{SLOW} --line-rate 300M", "loss", ""),
    ("here", "unix", "--test latency --sizes 64", "roundtrip", ""),
    ("here", "tcp", "--test latency --sizes 64", "roundtrip", ""),
    ("here", "pva", "--test latency --sizes 8", "roundtrip", ""),
    ("here", "tcp", "--test rate --mode both --sizes 64 --window 2", "window roundtrip", ""),
    ("here", "tcp", "--test rate --sizes 16K --window 4 --mode send --socket-buffer 4K", "buffer", ""),
    ("here", "tcp", "--test rate --mode send --sizes 64 --wait block", "cpu", ""),
    ("here", "tcp", SEND, "cpu", ""),
    ("here", "tcp", "--test open --rate 2K --mode both --sizes 64", "schedule", ""),
    ("here", "farm?time=5ms", "--test rate --channels 4", "far_end", ""),
    ("here", "stopped tcp", "--test rate --mode both --sizes 1K", "far_end", "stalled"),
    ("crowded", "tcp", f"{SEND}", "others", ""),
    ("rationed far end", "tcp", SEND, "quota", ""),
    ("rationed near end", "tcp", SEND, "quota", ""),
    ("starved far end", "pva", "--test channels --channels 1000 --sizes 8", "quota", ""),
    ("here", "sim+udp://?cost=50us", "--test rate --mode send --sizes 64", "cpu", ""),
    ("here", "sim+ipbusudp-2.0://?cost=20us", "--test rate --mode receive --sizes 4 --window 16", "cpu", ""),
    ("here", "sim+tcp://?delay=10ms&loss=0.005", "--test rate --mode send --sizes 32K --duration 2s", "loss", ""),
    ("here", "sim+tcp://?delay=50us&rate=1G&mtu=1500&overhead=38", "--test rate --mode send --sizes 32K", "line", ""),
    ("here", "sim+tcp://?delay=5ms", "--test rate --mode both --sizes 1K --window 4", "window", ""),
    ("here", "sim+pva://?delay=1ms", "--test rate --sizes 8 --window 8", "window", ""),
    ("here", "sim+ipbusudp-2.0://?delay=1ms", "--test latency --mode receive --sizes 4", "roundtrip", ""),
    ("here", "spw+sim://", "--test rate --mode send --sizes 1K", "line", ""),
]


def one_run(at, uri, plan):
    """Returns the word for what binds, and what else the row says."""
    short = SHORT[2:] if "--duration" in plan else SHORT
    done = command.hodo("bench", uri, *short, *plan.split(), "--json", "-", prefix=at.at_near())
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["measurements"]
    limit = one["limit"] or {"binds": "unknown", "saw": "no limit"}
    return limit["binds"], f"{limit.get('saw')}; {limit.get('formula')}; {one['verdict']['text']} {one['verdict']['state']}"


def look(places, link, plan, right, says):
    """Runs a case; returns how many of its runs named the cause, what each said, and the runs whose word was wrong."""
    named, said, wrong = 0, [], []
    with contextlib.ExitStack() as stack, concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        uris = [stack.enter_context(bed.far_end(at, link)) for at in places]
        while not wrong and (len(said) < bed.RUNS or (len(said) < bed.RUNS + MORE and named <= len(said) / 2)):
            for binds, text in pool.map(one_run, places, uris, [plan] * len(places)):
                # On a machine that others use, that is a right answer.
                is_others = binds == "others" != right and bed.is_busy()
                named += is_others or (binds in right.split() and says in text)
                said.append(f"{binds}: {text}")
                if binds not in [*right.split(), "unknown"] and not is_others:
                    wrong.append(f"{binds}, and {right} is right: {text}")
    return named, said, wrong


@pytest.fixture(scope="module")
def all_found(found):
    return bed.look_at_the_rest(found, CASES, look, bed.places)


@pytest.mark.parametrize(("places", "case"), [(case[0], case) for case in CASES], indirect=["places"], ids=["-".join(case) for case in CASES])
def test_the_word_is_right_or_absent(places, case, found):
    found[case] = look(places, *case[1:])
    *_, wrong = found[case]
    assert not wrong, wrong


def test_nine_of_ten_causes_are_named(all_found):
    missed = {"-".join(case): said for case, (named, said, wrong) in all_found.items() if wrong or named <= len(said) / 2}
    assert len(missed) <= len(all_found) / 10, json.dumps(missed, indent=1)
