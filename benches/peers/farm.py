"""The event farm: ours beside the study's versions and ZeroMQ in C (farm.c), iperf3, and what is wanted of it.

A controller with its generator inside, and 20 nodes, each a process with a connection of its own, that answer at once.
All have the same events out of the same pool, the same tokens, processors and congestion control; where credits are
compared, as many.
"""

import json

from processes import Case, compiled, congestion_control, iperf3_stream_gbit, measurement, output, word

NODES, SIZE = 20, 32 * 1024
# Different events, 8 MiB of them; the study always sends the same one.
POOL = 256
# One of so many tokens carries so many bytes of an accepted event.
EVERY, TOKEN_DATA = 200, 64 * 1024
# Our choice where the other side has none.
CREDITS = 8
SHARE_SECONDS = 10
WANTED = "what is wanted"


def cases(options):
    bench = Bench(options)
    found = [*bench.rates(), *bench.ceilings(), *bench.shares()]
    return [case for case in found if not (options.peers_only and case.beside == WANTED)]


class Turns:
    """The runs of one farm, of which several cases read a figure each; a run is made where a case has read them all."""

    def __init__(self, run):
        self.run, self.readings = run, []

    def figure(self, name):
        """What one case calls, once a round."""
        read = 0

        def take():
            nonlocal read
            if read == len(self.readings):
                self.readings.append(self.run())
            read += 1
            return self.readings[read - 1][name]

        return take


class Bench:
    def __init__(self, options, wait="block"):
        self.options, self.wait = options, wait

    # The cases

    def rates(self):
        for credits in (2, CREDITS):
            ours, two = self.ours(credits), self.peer("v2", credits)
            name, cpu = f"farm, {credits} credits", f"farm, {credits} credits, CPU of an event"
            yield Case(name, "k/s", 1.05, ours.figure("rate"), two.figure("rate"), beside="version 2")
            yield Case(cpu, "us", 1.0, ours.figure("cpu"), two.figure("cpu"), "less", "version 2")
            yield Case(cpu, "us", 1.0, ours.figure("cpu"), lambda: 8, "less", WANTED)
            yield self.beside("ZeroMQ", "k/s", 6.0, self.peer("zeromq", credits).figure("rate"), credits)

    def ceilings(self):
        yield self.beside("iperf3", "Gbit/s", 2.0, self.iperf3_gbit)
        yield self.beside("version 3, no tokens", "k/s", 0.65, self.peer("v3", CREDITS).figure("rate"))

    def beside(self, peer, unit, target, its, credits=CREDITS):
        ours = self.ours(credits).figure("gbit" if unit == "Gbit/s" else "rate")
        return Case(f"farm, {credits} credits", unit, target, ours, its, beside=peer)

    def shares(self):
        seconds = max(self.options.seconds, SHARE_SECONDS)
        for credits in (2, CREDITS):
            ours, two = self.ours(credits, seconds), self.peer("v2", credits, seconds)
            name = f"farm, {credits} credits, min/max share"
            yield Case(name, "", 1.0, ours.figure("share"), two.figure("share"), beside="version 2")
            yield Case(name, "", 1.0, ours.figure("share"), lambda: 0.95, beside=WANTED)

    # The farms

    def ours(self, credits, seconds=None):
        return Turns(lambda: self.run_ours(credits, seconds or self.options.seconds))

    def peer(self, version, credits, seconds=None):
        return Turns(lambda: self.run_peer(version, credits, seconds or self.options.seconds))

    def run_ours(self, credits, seconds):
        command = [self.options.hodo, "farm", "bench", *plan(credits, seconds), "--json", "-"]
        command += ["--threads", str(len(self.options.cpus)), "--congestion", congestion_control()]
        command += ["--wait", word(self.options, self.wait)]
        return reading(output([*self.on_cpus(), *command], seconds + 30))

    def run_peer(self, version, credits, seconds):
        command = [compiled("farm", "-lzmq"), version, *plan(credits, seconds)]
        found = json.loads(output([*self.on_cpus(), *command], seconds + 20))
        cpu = found["controller_us"] + found["nodes_us"] + found["generator_us"]
        return figures(found["events_per_s"], cpu, found["windows"])

    def iperf3_gbit(self):
        both = ",".join(self.options.cpus)
        return iperf3_stream_gbit(both, both, SIZE, NODES, self.options.seconds)

    def on_cpus(self):
        return ["taskset", "-c", ",".join(self.options.cpus)]


def plan(credits, seconds):
    """The same words for both sides."""
    words = {"nodes": NODES, "credits": credits, "size": SIZE, "pool": POOL, "every": EVERY}
    words |= {"token-data": TOKEN_DATA, "seconds": seconds}
    return [part for word, value in words.items() for part in (f"--{word}", str(value))]


def reading(text):
    """What hodo's JSON says: the rate, the CPU of both sides, and the events of each node."""
    found = measurement(text, timed=False)
    cpu = found["cpu"]["local_ns_per_operation"] + found["cpu"]["remote_ns_per_operation"]
    nodes = [node["events"] for node in found["nodes"]]
    return figures(found["rate"]["operations_per_s"]["median"], cpu / 1000, [nodes])


def figures(events_per_s, cpu_us, windows):
    """The share, the least in any window: events of the node that had the fewest, of those of the one with the most."""
    share = min(min(nodes) / max(*nodes, 1) for nodes in windows)
    return {"rate": events_per_s / 1000, "gbit": events_per_s * SIZE * 8 / 1e9, "cpu": cpu_us, "share": share}
