"""pvAccess: our client and server beside pvxs (pva_pvxs.cpp) and pvAccessCPP (pva_pvaccesscpp.cpp), as the published study measures them.

Everything blocks but where a name says otherwise. A round is a get on each channel, all answers awaited. Each side is a process of its own on a processor of its own, and all have the same
values: a structure with the field `value`, a double or an array of doubles, under the names that `hodo serve` has for scalars. The C++ programs are compiled against the libraries of the
Python packages pvxslibs and epicscorelibs, with the Python of --python.
"""

import json
import pathlib
import re
import subprocess

from processes import LOOPBACK, Case, Failed, congestion_control, end, free_port, in_class, measurement, output

HERE = pathlib.Path(__file__).resolve().parent
TARGET = HERE.parents[1] / "target"
LIBRARIES = "import epicscorelibs, pvxslibs; print(epicscorelibs.__path__[0]); print(pvxslibs.__path__[0])"
PVXS, OLDER = "pvxs", "pvAccessCPP"
SCALAR = 0
# Doubles, and the ratios that are wanted: to pvxs, to pvAccessCPP.
ARRAYS = ((100_000, 2.5, 1.0), (1_000_000, 5.0, 1.4), (10_000_000, 8.0, 1.6))
SUBSCRIBERS, WINDOW = 100, 64
CHANNELS = 10_000
MANY = ((SCALAR, 8.0, 4.0), (1_000, 4.0, 1.5), (10_000, 4.0, 1.5))


def cases(options):
    bench = Bench(options)
    return [*bench.singles(), *bench.arrays(), *bench.many(), *bench.mixed(), *bench.updates(), *bench.connects()]


class Bench:
    def __init__(self, options):
        self.options = options
        self.near, self.far = options.cpus

    # The cases

    def singles(self):
        """Both peers block."""
        for peer, target in ((PVXS, 1.1), (OLDER, 1.0)):
            yield self.case("1 scalar, blocking", 1, SCALAR, peer, target)
        for wait, name, target in (("adaptive", "adaptive", 1.1), ("spin", "polling", 8.0)):
            yield self.case(f"1 scalar, {name}", 1, SCALAR, f"{PVXS}, blocking", target, wait)

    def arrays(self):
        for doubles, *targets in ARRAYS:
            for peer, target in zip((PVXS, OLDER), targets):
                yield self.case(f"1 x {doubles}", 1, doubles, peer, target)

    def many(self):
        for doubles, *targets in MANY:
            for peer, target in zip((PVXS, OLDER), targets):
                yield self.case(f"1000 x {doubles or 'scalar'}", 1000, doubles, peer, target)

    def mixed(self):
        """What our server gains under a client of pvxs."""
        yield Case(
            "pva get 1000 scalars, client of pvxs", "k/s", 1.8,
            lambda: self.with_server(self.ours(), lambda port: self.get(PVXS, port, 1000)["per_s"] / 1e3),
            lambda: self.peer_per_s(PVXS, 1000, SCALAR) / 1e3, beside="server of pvxs",
        )  # fmt: skip

    def updates(self):
        """Updates of 100 PVs, as many as their subscriber takes, none of them lost."""
        yield Case(
            f"pva updates of {SUBSCRIBERS} PVs, window {WINDOW}", "k/s", 5.0,
            lambda: self.our_updates() / 1e3, lambda: self.peer_updates(PVXS) / 1e3, beside=PVXS,
        )  # fmt: skip

    def connects(self):
        """The time until 10,000 channels are open, all begun at once; pvxs's with its search, over TCP."""
        yield Case(
            f"pva {CHANNELS} channels opened", "ms", 1.0,
            self.our_connects, lambda: self.peer_connects(PVXS), better="less", beside=PVXS,
        )  # fmt: skip

    def case(self, name, channels, doubles, beside, target, wait="block"):
        peer = beside.split(",")[0]
        return Case(
            f"pva get {name}", "k/s", target,
            lambda: self.our_per_s(channels, doubles, wait) / 1e3,
            lambda: self.peer_per_s(peer, channels, doubles) / 1e3, beside=beside,
        )  # fmt: skip

    # The two sides

    def ours(self, wait="block"):
        run = [self.options.hodo, "serve", "--cpu", self.far, "--threads", "1", "--wait", wait]
        return lambda port: [*run, "--congestion", congestion_control(), f"pva://{LOOPBACK}:{port}"]

    def our_per_s(self, channels, doubles, wait):
        size = 8 if doubles == SCALAR else 8 * doubles
        test = ["--test", "channels", "--channels", str(channels), "--window", "1", "--mode", "receive", "--sizes", str(size)]
        return self.measured(test, wait)["rate"]["operations_per_s"]["median"]

    def our_updates(self):
        test = ["--test", "updates", "--channels", str(SUBSCRIBERS), "--window", str(WINDOW), "--sizes", "8"]
        found = self.measured(test)
        if any(found["loss"].values()):
            raise Failed(f"updates were lost: {found['loss']}")
        return found["rate"]["operations_per_s"]["median"]

    def our_connects(self):
        test = ["--test", "channels", "--channels", str(CHANNELS), "--window", "1", "--count", str(CHANNELS), "--warmup", "0ms"]
        found = self.measured(test, of="?operation=connect", timed=False)
        return CHANNELS / found["rate"]["operations_per_s"]["median"] * 1e3

    def measured(self, test, wait="block", of="", timed=True):
        """A measurement of ours, each side on a processor of its own."""
        run = ["--repeat", "1", "--cpu", self.near, "--wait", wait]
        run += ["--duration", f"{self.options.seconds}s"] if timed else []
        run += ["--congestion", congestion_control(), "--json", "-", "--quiet"]

        def bench(port):
            command = [self.options.hodo, "bench", f"pva://{LOOPBACK}:{port}{of}", *test, *run]
            return measurement(output(command, self.options.seconds + 30), timed=False)

        return self.with_server(self.ours(wait), bench)

    def peer_per_s(self, peer, channels, doubles):
        return self.with_server(self.peers(peer, "serve", channels, doubles), lambda port: self.get(peer, port, channels)["per_s"])

    def peer_updates(self, peer):
        rest = str(SUBSCRIBERS), str(self.options.seconds), str(WINDOW)
        ask = lambda port: self.ask(peer, "monitor", port, *rest)  # noqa: E731
        return self.with_server(self.peers(peer, "spam", SUBSCRIBERS), ask)["per_s"]

    def peer_connects(self, peer):
        ask = lambda port: self.ask(peer, "connect", port, str(CHANNELS))  # noqa: E731
        return self.with_server(self.peers(peer, "serve", CHANNELS), ask)["s"] * 1e3

    def peers(self, peer, verb, channels, doubles=SCALAR):
        program = ["taskset", "-c", self.far, compiled(peer, self.options), verb]
        return lambda port: [*program, str(port), str(channels), str(doubles)]

    def get(self, peer, port, channels):
        return self.ask(peer, "get", port, str(channels), str(self.options.seconds))

    def ask(self, peer, verb, port, *rest):
        """What a peer's client measures."""
        command = ["taskset", "-c", self.near, compiled(peer, self.options), verb, f"{LOOPBACK}:{port}", *rest]
        # pvAccessCPP says other things before.
        return json.loads(output(command, self.options.seconds + 60).splitlines()[-1])

    def with_server(self, command, use):
        """What `use` says of the port of a server, which is ended then."""
        port = free_port("tcp")
        command = command(port)
        process = subprocess.Popen(
            in_class(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            if not process.stdout.readline():
                raise Failed(f"`{' '.join(command)}` does not serve")
            return use(port)
        finally:
            process.stdin.close()
            end(process)


def compiled(peer, options):
    """One of the C++ programs, compiled where it is newer than what is there."""
    source = HERE / f"pva_{peer.lower()}.cpp"
    program = TARGET / source.stem
    if program.exists() and program.stat().st_mtime >= source.stat().st_mtime:
        return str(program)
    TARGET.mkdir(exist_ok=True)
    command = ["g++", "-std=c++11", "-O2", "-w", "-D_GLIBCXX_USE_CXX11_ABI=0", str(source), "-o", str(program)]
    for package in output([options.python, "-c", LIBRARIES], 60).split():
        library = pathlib.Path(package) / "lib"
        command += [f"-I{package}/include", f"-L{library}", f"-Wl,-rpath,{library}"]
        for found in sorted(library.glob("lib*.so.*")):
            if re.match(r"lib(pvxs|pvAccess|pvData|Com)\.so", found.name):
                command.append(f"-l:{found.name}")
    done = subprocess.run([*command, "-Wl,--allow-shlib-undefined"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{source.name} was not built; `./test tools python` installs what it needs: {done.stderr.strip()[:400]}")
    return str(program)
