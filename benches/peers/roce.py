"""RDMA: our ping-pong beside the bare sockets under it (roce_floor.c), libfabric's fi_pingpong, UCX's ucx_perftest and sockperf.

Every figure of latency is a full round trip, as `ibv_rc_pingpong` prints one; fi_pingpong and ucx_perftest print half of it. Both ends are
processes, each on a processor of its own. Ours computes and checks the CRC of every packet, and acknowledges every message.
"""

import json
import os
import re

from processes import LOOPBACK, Case, Failed, background, compiled, free_port, output

FLOOR, OFI, UCX_TCP, UCX_SHM, SOCKPERF = "one segmented send", "fi_pingpong udp;ofi_rxd", "ucx tcp", "ucx posix", "sockperf"
# Bytes and path MTU.
POINTS = ((64, 1024), (4096, 1024), (16384, 4096))
# The longest message that one segmented send holds, of those that are whole packets.
LONG = 61_440
# Round trips in a counted second, about: a run has a number of them, and no time.
PER_SECOND = 50_000


def cases(options):
    bench = Bench(options)
    return [*bench.floors(), *bench.peers(), *bench.waits(), *bench.streams(), *bench.shared_memory()]


class Bench:
    def __init__(self, options):
        self.options = options
        self.near, self.far = options.cpus
        self.iterations = PER_SECOND * options.seconds

    # The cases

    def floors(self):
        for size, mtu in POINTS:
            yield self.case(f"{size} B at MTU {mtu}, polling", size, mtu, FLOOR, 1.1, lambda size=size, mtu=mtu: self.floor("pingpong", size, mtu)["us"])

    def peers(self):
        for size, mtu in POINTS:
            yield self.case(f"{size} B at MTU {mtu}, polling", size, mtu, OFI, 0.5, lambda size=size: self.ofi(size))
            yield self.case(f"{size} B at MTU {mtu}, polling", size, mtu, UCX_TCP, 0.65, lambda size=size: self.ucx("tcp,self", size))

    def waits(self):
        yield self.case("64 B, events", 64, 1024, SOCKPERF, 1.1, self.sockperf, ["-e"])
        floor = lambda: self.floor("pingpong", 64, 1024)["us"]  # noqa: E731
        yield self.case("64 B, spin, then block", 64, 1024, FLOOR, 1.25, floor, ["--spin", "50"])

    def streams(self):
        """The target of 60 Gbit/s is 0.72 of what bare sockets do on the host that it is of."""
        ours = lambda: self.ours(LONG, 4096, ["--test", "send-bw"])["rows"][0]["mib_per_s"] * 8.388608e-3  # noqa: E731
        yield Case(f"roce stream {LONG} B at MTU 4096", "Gbit/s", 0.72, ours, lambda: self.floor("stream", LONG, 4096)["gbit_per_s"], beside=FLOOR)

    def shared_memory(self):
        for size in (64, 16384):
            shm = ["--backend", "shm"]
            yield self.case(f"{size} B, shared memory", size, 1024, UCX_SHM, 0.4, lambda size=size: self.ucx("posix,self", size), shm)

    def case(self, name, size, mtu, beside, target, peer, how=()):
        ours = lambda: self.ours(size, mtu, list(how))["us_per_iteration"]  # noqa: E731
        return Case(f"roce ping-pong {name}", "us", target, ours, peer, "less", beside)

    # The two sides

    def ours(self, size, mtu, how):
        port = free_port("tcp")
        # Those that sleep take long for each.
        iterations = self.iterations // 10 if "-e" in how else self.iterations
        common = [self.options.hodo, "pingpong", "-p", str(port), "-s", str(size), "-m", str(mtu), "-n", str(iterations)]
        # What the client asks for is no option of a server.
        server = ["taskset", "-c", self.far, *common, *(how if "--test" not in how else [])]
        client = ["taskset", "-c", self.near, *common, LOOPBACK, "--connect-within", "5", "--json", "-", *how]
        with background(server, "tcp", port):
            return json.loads(output(client, 60))

    def floor(self, test, size, mtu):
        program = compiled("roce_floor")
        return json.loads(output([program, test, str(size), str(mtu), self.near, self.far, str(self.iterations)], 60))

    def ofi(self, size):
        port = free_port("tcp")
        common = ["fi_pingpong", "-p", "udp;ofi_rxd", "-e", "rdm", "-I", str(self.iterations // 4), "-S", str(size)]
        with background(["taskset", "-c", self.far, *common, "-B", str(port)], "tcp", port):
            text = output(["taskset", "-c", self.near, *common, "-P", str(port), LOOPBACK], 60)
        return 2 * float(text.splitlines()[-1].split()[6])

    def ucx(self, transports, size):
        port = free_port("tcp")
        environment = {**os.environ, "UCX_TLS": transports, "UCX_NET_DEVICES": "lo"}
        program = ["env", *(f"{name}={environment[name]}" for name in ("UCX_TLS", "UCX_NET_DEVICES"))]
        server = ["taskset", "-c", self.far, *program, "ucx_perftest", "-p", str(port)]
        client = ["taskset", "-c", self.near, *program, "ucx_perftest", LOOPBACK, "-p", str(port), "-t", "tag_lat"]
        client += ["-s", str(size), "-n", str(self.iterations), "-w", "1000", "-f", "-v"]
        with background(server, "tcp", port):
            rows = [line.split(",") for line in output(client, 60).splitlines() if re.match(r"\d", line)]
        if not rows:
            raise Failed("ucx_perftest printed no figures")
        # The average, as ours is one.
        return 2 * float(rows[-1][3])

    def sockperf(self):
        port = free_port("udp")
        common = ["-i", LOOPBACK, "-p", str(port)]
        client = ["taskset", "-c", self.near, "sockperf", "ping-pong", *common, "--full-rtt", "-m", "64", "-t", str(self.options.seconds)]
        with background(["taskset", "-c", self.far, "sockperf", "server", *common], "udp", port):
            text = output(client, self.options.seconds + 20)
        return float(re.search(r"Summary: Round trip is ([0-9.]+) usec", text)[1])
