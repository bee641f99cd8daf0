"""Does a farm go on as it began, and with how many nodes?"""

import hashlib
import itertools
import json
import statistics
import threading
import time

import command
import contract
import pytest

# What a rate may change over a run, and how much of that the scatter of its pieces leaves to be seen.
SLOPE_MAX = 0.005
# Of the standard normal distribution: two-sided, one in a hundred.
Z = 2.576


class Watch(threading.Thread):
    """Memory of a process and its children, and how fast the host itself is, once a second while they run."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.over, self.rss, self.host = pid, threading.Event(), [], []
        self.start()

    def run(self):
        block, begun = bytes(1 << 20), time.monotonic()
        while not self.over.wait(1):
            with open(f"/proc/{self.pid}/task/{self.pid}/children") as children:
                pids = [self.pid, *map(int, children.read().split())]
            self.rss.append(sum(map(resident_bytes, pids)))
            # CPU time of the same work: it grows when the host is slowed down, and not when it is busy.
            spent = time.thread_time()
            hashlib.sha256(block).digest()
            self.host.append((time.monotonic() - begun, 1 / (time.thread_time() - spent)))

    def end(self):
        self.over.set()
        self.join()


def resident_bytes(pid):
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0


def change(values):
    """How much a series changes from its start to its end, by Theil and Sen, with the ends of its interval by Sen."""
    count = len(values)
    pairs = itertools.combinations(range(count), 2)
    slopes = sorted((values[late] - values[early]) / (late - early) for early, late in pairs)
    half = Z * (count * (count - 1) * (2 * count + 5) / 18) ** 0.5
    middle = len(slopes) / 2
    low, high = (slopes[min(max(int(middle + side * half / 2), 0), len(slopes) - 1)] for side in (-1, 1))
    scale = (count - 1) / statistics.median(values)
    return tuple(slope * scale for slope in (low, statistics.median(slopes), high))


def rates(found):
    ends = [0, *(piece["t_s"] for piece in found["intervals"])]
    spans = [late - early for early, late in itertools.pairwise(ends)]
    return [piece["operations"] / span for piece, span in zip(found["intervals"], spans, strict=True)]


def of_the_host(found, host):
    """The host's own speed in each piece of the run."""
    speeds = []
    for piece in found["intervals"]:
        near = sorted(host, key=lambda look: abs(look[0] - piece["t_s"]))[:5]
        speeds.append(statistics.median(speed for _, speed in near))
    return speeds


def test_a_long_run_goes_on_as_it_began(long, tmp_path):
    events, path = ("20M" if long else "300k"), tmp_path / "run.json"
    words = ["farm", "bench", "--events", events, "--quiet", "--json", path]
    with command.started(*words) as process:
        watch = Watch(process.pid)
        assert process.wait(1800) == 0, process.stdout.read()
        watch.end()
    (found,) = json.loads(path.read_text())["measurements"]
    assert found["operations"] >= (20_000_000 if long else 300_000)
    assert "nodes lost" not in found["verdict"]["text"], found["verdict"]
    # Memory of all processes, when all are there: the last half beside the one before.
    begun = len(watch.rss) // 4
    early, late = (statistics.median(part or [0]) for part in (watch.rss[begun : 2 * begun], watch.rss[2 * begun :]))
    assert not early or late <= 1.02 * early + (4 << 20), watch.rss
    if not long:
        return
    assert found["fairness"]["worst_window"] >= 0.95, found["fairness"]
    ours, host = rates(found), of_the_host(found, watch.host)
    told = {
        "rate": change(ours),
        "host": change(host),
        "rate over host": change([rate / speed for rate, speed in zip(ours, host, strict=True)]),
    }
    for name, (low, slope, high) in told.items():
        print(f"{name}: {100 * slope:+.2f} % over the run, within {100 * low:+.2f} and {100 * high:+.2f} %")

    def is_flat(low, _, high):
        return low <= SLOPE_MAX and high >= -SLOPE_MAX

    assert is_flat(*told["rate"]) or is_flat(*told["rate over host"]), told


def test_the_slope_of_a_series():
    flat = [100 + (number * 7919 % 13 - 6) / 10 for number in range(60)]
    low, slope, high = change(flat)
    assert low < 0 < high and abs(slope) < SLOPE_MAX
    low, slope, high = change([rate * (1 - 0.05 * number / 59) for number, rate in enumerate(flat)])
    assert slope == pytest.approx(-0.05, abs=0.01) and high < -SLOPE_MAX


def test_any_number_of_nodes(long, tmp_path):
    counts = [1, 2, 5, 10, 20, 50, 100, 200] if long else [1, 3, 40]
    page = tmp_path / "nodes.html"
    words = ["--nodes", ",".join(map(str, counts)), "--seconds", 5 if long else 0.3, "--html", page, "--json", "-"]
    done = command.hodo("farm", "bench", *words, within=300)
    assert done.returncode == 0, done.stderr
    found = contract.parse(done.stdout)["measurements"]
    assert [one["channels"] for one in found] == counts == [len(one["nodes"]) for one in found]
    assert all(min(node["events"] for node in one["nodes"]) > 0 for one in found)
    assert page.read_text().count("farm://127.0.0.1") >= len(counts)
    for one in found:
        rate, fairness = one["rate"]["operations_per_s"]["median"], one["fairness"]
        print(f"{one['channels']} nodes: {rate / 1000:.0f} k/s, {one['times_plain_loop']:.2f} of a plain loop, {fairness}")
    if long:
        best = max(one["rate"]["operations_per_s"]["median"] for one in found)
        last = found[-1]
        assert last["rate"]["operations_per_s"]["median"] >= 0.4 * best
        assert last["fairness"]["min_over_max"] >= 0.9
