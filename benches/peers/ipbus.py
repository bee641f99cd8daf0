"""IPbus: our client, device and hub beside bare sockets (floor.c), beside uHAL, and beside what is wanted of them.

There are three programs and two processors. `one CPU` has all of them on the first, where a system call wakes the next
at once; `two CPUs` leaves them wherever the kernel puts them on both. Everything blocks, but where a name says otherwise:
three programs cannot poll on two processors. `forward` is a hub in C that checks, repeats and
remembers nothing, between clients and a board in C; what a hub costs depends on whom it shares its processor with. The
Erlang ControlHub cannot be installed from a package; what was published of it stands in docs/performance.md.
"""

import contextlib
import json
import os
import pathlib

from processes import LOOPBACK, Case, background, compiled, free_port, measurement, output, word

HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20
# Bytes of a packet over UDP, of the data of a read in it, and of a read of one word and its answer: with the hub's
# framing, and without.
PACKET, DATA = 1400, 1388
HUB_READ, HUB_ANSWER, READ, ANSWER = 24, 28, 12, 12
# A device that could lose packets, and does not: what is compared is the loss, not what it takes to make it.
NO_FAULT = "reboot=1000000s"
BLOCK_GBIT, BLOCK_SHARE = 2.5, 0.8
# So much more than a hub that only forwards may ours cost.
FORWARD = 1.15
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cases(options):
    bench = Bench(options)
    return [*bench.reads(), *bench.hub_reads(), *bench.placements(), *bench.blocks(), *bench.crowds(), *bench.losses()]


class Place:
    """Where the near side, the hub and the boards run, and how they wait."""

    def __init__(self, name, near, hub, far, wait="block"):
        self.name, self.near, self.hub, self.far, self.wait = name, near, hub, far, wait


class Bench:
    def __init__(self, options, wait="block"):
        self.options = options
        first, second = options.cpus
        both = f"{first},{second}"
        self.one = Place("one CPU", first, first, first, wait)
        self.two = Place("two CPUs", both, both, both, wait)
        self.apart = Place("one CPU each", first, None, second, wait)
        self.polling = Place("two CPUs, polling", first, None, second, "spin")
        self.adaptive = [Place(f"{place.name}, adaptive", place.near, place.hub, place.far, "adaptive") for place in (self.one, self.two)]
        # Beside a hub that lets others run before it sleeps.
        self.shared = [
            self.adaptive[0],
            Place("hub alone, adaptive", second, first, second, "adaptive"),
            Place("hub with board, adaptive", second, first, first, "adaptive"),
            Place("hub with client, adaptive", first, first, second, "adaptive"),
        ]

    # The cases

    def reads(self):
        """Single reads without a hub, of a board in C: at most a quarter above bare sockets, and no slower than uHAL."""
        for place in (self.one, self.polling, *self.adaptive):
            yield Case(
                f"ipbus read direct, {place.name}", "us", 1.25,
                lambda place=place: self.read_us(place, bare=True),
                lambda place=place: self.ping_us("udp", READ, ANSWER, place),
                "less", "bare UDP" + (", blocking" if place in self.adaptive else ""),
            )  # fmt: skip
        for place in (self.one, self.two, self.apart):
            yield Case(
                f"ipbus read direct, {place.name}", "us", 1.0,
                lambda place=place: self.read_us(place, bare=True), lambda place=place: self.uhal_us(place, bare=True),
                "less", "uHAL",
            )  # fmt: skip
        yield Case(
            "uHAL reads our device, one CPU", "us", 1.1,
            lambda: self.uhal_us(self.one), lambda: self.uhal_us(self.one, bare=True), "less", "a bare board",
        )  # fmt: skip

    def hub_reads(self):
        for place in (self.one, self.two):
            seen = {}
            for beside, floor in (("bare TCP + bare UDP", self.hub_floor_us), ("a bare relay", self.relay_us)):
                yield Case(
                    f"ipbus read, hub, {place.name}", "us", 1.25,
                    lambda place=place, seen=seen: self.bare_hub_read(place, seen)["p50_us"],
                    lambda place=place, floor=floor: floor(place),
                    "less", beside,
                )  # fmt: skip
            yield Case(
                f"ipbus read, hub, p99, {place.name}", "us", 2.0,
                lambda place=place, seen=seen: self.bare_hub_read(place, seen)["p99_us"],
                lambda seen=seen: seen["p50_us"],
                "less", "its median",
            )  # fmt: skip
        yield Case(
            "ipbus read, hub, one CPU", "us", 1.0,
            lambda: self.read_us(self.one, hub=True), lambda: self.uhal_us(self.one, hub=True), "less", "uHAL",
        )  # fmt: skip

    def placements(self):
        """Bare clients and a bare board: our hub beside one that only forwards."""
        for place in self.shared:
            for verb in ("read", "write"):
                ours, peer = (Blocks(self, place, verb, forward) for forward in (None, "yield"))
                name = f"ipbus {verb} in blocks, {place.name}"
                yield Case(name, "Gbit/s", 1 / FORWARD, ours.gbit, peer.gbit, "more", "forward, yielding")
                yield Case(f"{name}, CPU", "s/Gbit", FORWARD, ours.cpu_s, peer.cpu_s, "less", "forward, yielding")
            yield Case(
                f"ipbus 8 bare clients, {place.name}", "k/s", 1 / FORWARD,
                lambda place=place: self.crowd_per_s(place, None), lambda place=place: self.crowd_per_s(place, "yield"),
                "more", "forward, yielding",
            )  # fmt: skip
        yield Case(
            "ipbus bare read, hub, two CPUs, adaptive", "us", 1.1,
            lambda: self.through_us(self.adaptive[1], None), lambda: self.through_us(self.adaptive[1], "poll"), "less", "forward, polling",
        )  # fmt: skip

    def blocks(self):
        for place in (self.one, self.two):
            for hub in (False, True):
                for mode, verb in (("receive", "read"), ("send", "write")):
                    yield Case(
                        f"ipbus {verb} 1 MiB{', hub' if hub else ''}, {place.name}", "Gbit/s", 1.0,
                        lambda place=place, hub=hub, mode=mode: self.block_gbit(place, hub, mode=mode),
                        lambda place=place, mode=mode: self.wanted_gbit(place, mode),
                        "more", "min(2.5, 0.8 x bare UDP)",
                    )  # fmt: skip
            yield Case(
                f"ipbus hub CPU of a Gbit, {place.name}", "s", 1.0,
                lambda place=place: self.hub_cpu_s(place), lambda: 0.15, "less", "what is wanted",
            )  # fmt: skip

    def crowds(self):
        for place in (self.one, self.two):
            yield Case(
                f"ipbus 8 clients, 1 board, {place.name}", "k/s", 1.0,
                lambda place=place: self.clients_per_s(place, 8), lambda: 100, "more", "what is wanted",
            )  # fmt: skip
        for boards in (3, 8):
            yield Case(
                f"ipbus read 1 MiB, hub, {boards} boards", "Gbit/s", 1.0,
                lambda boards=boards: self.block_gbit(self.two, True, boards=boards),
                lambda: self.wanted_gbit(self.two, "receive"),
                "more", "min(2.5, 0.8 x bare UDP)",
            )  # fmt: skip

    def losses(self):
        for hub in (False, True):
            through = ", hub" if hub else ""
            for name, faults, share in (("0.1 %", "loss=0.001", 0.85), ("1 % + 1 %", "loss=0.01", 0.5)):
                yield Case(
                    f"ipbus read 1 MiB{through}, {name} lost", "Gbit/s", share,
                    lambda hub=hub, faults=faults: self.block_gbit(self.one, hub, faults=faults),
                    lambda hub=hub: self.block_gbit(self.one, hub, faults=NO_FAULT),
                    "more", "nothing lost",
                )  # fmt: skip
            yield Case(
                f"ipbus read{through}, p99, 1 % + 1 % lost", "us", 1.0,
                lambda hub=hub: self.read_us(self.one, hub=hub, quantile="p99", faults="loss=0.01"),
                lambda: 1000, "less", "what is wanted",
            )  # fmt: skip

    # What is measured

    def read_us(self, place, hub=False, quantile="p50", faults="", bare=False):
        with self.site(place, hub, faults=faults, bare=bare) as site:
            found = self.hodo(place, site, ["--test", "latency", "--sizes", "4"])
            return found["latency_ns"][quantile] / 1000

    def bare_hub_read(self, place, seen):
        """One run of a bare client gives both figures of it."""
        with self.site(place, True) as site:
            where = [str(site.hub_port), str(site.ports[0])]
            seen.update(self.floor("hub", *where, bare_wait(place.wait), place.near, str(self.options.seconds)))
        return seen

    def crowd_per_s(self, place, forward):
        with self.site(place, True, bare=True, forward=forward) as site:
            where = [str(site.hub_port), str(site.ports[0])]
            return self.floor("crowd", *where, "8", place.near, str(self.options.seconds))["reads_per_s"] / 1000

    def through_us(self, place, forward):
        with self.site(place, True, bare=True, forward=forward) as site:
            where = [str(site.hub_port), str(site.ports[0])]
            return self.floor("hub", *where, "block", place.near, str(self.options.seconds))["p50_us"]

    def block_gbit(self, place, hub, mode="receive", boards=1, faults="", bare=False):
        with self.site(place, hub, boards, faults, bare) as site:
            found = self.hodo(place, site, rate("1M", boards), mode=mode)
            return found["rate"]["payload_bits_per_s"]["median"] / 1e9

    def hub_cpu_s(self, place, bare=False):
        """Both ways: as much is read as written."""
        with self.site(place, True, bare=bare) as site:
            before = cpu_s(site.hub.pid)
            found = self.hodo(place, site, [*rate("1M", 1), "--warmup", "0ms"], mode="both")
            return (cpu_s(site.hub.pid) - before) / (found["operations"] * 2 * MIB * 8 / 1e9)

    def clients_per_s(self, place, clients):
        with self.site(place, True) as site:
            found = self.hodo(place, site, rate("4", clients))
            return found["rate"]["operations_per_s"]["median"] / 1000

    def wanted_gbit(self, place, mode):
        out, back = (READ, PACKET) if mode == "receive" else (PACKET, READ)
        arguments = [str(out), str(back), "16", bare_wait(place.wait), place.near, place.far, str(self.options.seconds)]
        floor = self.floor("window", *arguments)["messages_per_s"] * DATA * 8 / 1e9
        return min(BLOCK_GBIT, BLOCK_SHARE * floor)

    def hub_floor_us(self, place):
        return self.ping_us("tcp", HUB_READ, HUB_ANSWER, place) + self.ping_us("udp", READ, ANSWER, place)

    def relay_us(self, place):
        where = [place.near, place.hub, place.far, str(self.options.seconds)]
        return self.floor("relay", bare_wait(place.wait), *where)["p50_us"]

    def ping_us(self, protocol, out, back, place):
        sizes = [str(out), str(back)]
        arguments = [protocol, *sizes, bare_wait(place.wait), place.near, place.far, str(self.options.seconds)]
        return self.floor("pingpong", *arguments)["p50_us"]

    def uhal_us(self, place, hub=False, bare=False):
        with self.site(place, hub, bare=bare) as site:
            script = [self.options.python, str(HERE / "uhal_reads.py"), site.uri(), str(self.options.seconds)]
            return json.loads(output(["taskset", "-c", place.near, *script], self.options.seconds + 20))["p50_us"]

    # The programs

    def floor(self, *arguments):
        return json.loads(output([compiled("floor"), *arguments], self.options.seconds + 20))

    def hodo(self, place, site, plan, mode="receive"):
        run = ["--mode", mode, "--wait", word(self.options, place.wait), "--duration", f"{self.options.seconds}s", "--repeat", "1"]
        command = ["taskset", "-c", place.near, self.options.hodo, "bench", site.uri(), *plan, *run, "--quiet"]
        return measurement(output([*command, "--json", "-"], self.options.seconds + 30))

    @contextlib.contextmanager
    def site(self, place, hub=False, boards=1, faults="", bare=False, forward=None):
        """Boards, and a hub before them where one is asked for: ours, or `forward` that waits so."""
        with contextlib.ExitStack() as stack:
            site = Site()
            for _ in range(boards):
                port = free_port("udp")
                site.ports.append(port)
                uri = f"ipbusudp-2.0://{LOOPBACK}:{port}?{faults}".rstrip("?")
                board = [compiled("floor"), "board", str(port), bare_wait(place.wait), place.far]
                device = [self.options.hodo, "serve", uri, "--wait", word(self.options, place.wait)]
                command = board if bare else ["taskset", "-c", place.far, *device]
                stack.enter_context(background(command, "udp", port))
            if hub:
                site.hub_port = free_port("tcp")
                listen = ["--listen", f"{LOOPBACK}:{site.hub_port}", "--no-metrics", "--wait", word(self.options, place.wait)]
                command = ["taskset", "-c", place.hub, self.options.hodo, "hub", *listen]
                if forward:
                    command = [compiled("floor"), "forward", str(site.hub_port), str(site.ports[0]), forward, place.hub]
                site.hub = stack.enter_context(background(command, "tcp", site.hub_port))
            yield site


class Blocks:
    """Blocks of a bare client through a hub. A run gives two figures, and so serves both of their cases."""

    def __init__(self, bench, place, verb, forward):
        self.bench, self.place, self.verb, self.forward = bench, place, verb, forward
        self.figures = {"gbit": [], "cpu_s": []}

    def gbit(self):
        return self.figure("gbit")

    def cpu_s(self):
        return self.figure("cpu_s")

    def figure(self, name):
        if not self.figures[name]:
            self.run()
        return self.figures[name].pop(0)

    def run(self):
        seconds = self.bench.options.seconds
        with self.bench.site(self.place, True, bare=True, forward=self.forward) as site:
            before = cpu_s(site.hub.pid)
            where = [str(site.hub_port), str(site.ports[0])]
            gbit = self.bench.floor("blocks", *where, self.verb, self.place.near, str(seconds))["gbit_per_s"]
            # The client begins to count after a tenth of a second.
            self.figures["cpu_s"].append((cpu_s(site.hub.pid) - before) / (gbit * (seconds + 0.1)))
            self.figures["gbit"].append(gbit)


class Site:
    """What runs: the boards, and the hub."""

    def __init__(self):
        self.ports, self.hub, self.hub_port = [], None, None

    def uri(self):
        places = ",".join(f"{LOOPBACK}:{port}" for port in self.ports)
        if self.hub is None:
            return f"ipbusudp-2.0://{places}"
        return f"chtcp-2.0://{LOOPBACK}:{self.hub_port}?target={places}"


def bare_wait(wait):
    """How bare sockets wait beside ours: in the same way, or they block."""
    return "block" if wait == "adaptive" else wait


def rate(size, channels):
    test = ["--test", "rate"] if channels == 1 else ["--test", "channels", "--channels", str(channels)]
    return [*test, "--sizes", size, "--window", "1"]


def cpu_s(pid):
    """Seconds of CPU that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S
