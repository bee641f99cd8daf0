#!/usr/bin/env python3
"""Hodoscope beside the field's own tools, in turns, on the same processors, with the same congestion control.

    cargo build --release && benches/peers/run.py                everything, about three quarters of an hour
    benches/peers/run.py --only '^udp' --rounds 3 --seconds 1    the cases whose name holds a pattern
    benches/peers/run.py --only ipbus                            IPbus, see ipbus.py
    benches/peers/run.py --only farm                             the event farm, see farm.py
    benches/peers/run.py --only pva                              pvAccess, see pva.py
    benches/peers/run.py --only roce                             RDMA, see roce.py
    benches/peers/run.py --only spacewire                        SpaceWire, see spacewire.py
    benches/peers/run.py --peers-only                            the peers alone
    benches/peers/run.py --before PATH                           another build of ours, see builds.py
    benches/peers/run.py --class fifo                            everything in SCHED_FIFO (root)

Each round runs ours and then the peer; the ratio is taken within the round, so that a slow drift of the machine
falls out of it. Both sides wait in the same way, or the names of the case and of the peer say how; all programs run in
one scheduling class. Needs sockperf, iperf3, taskset, a C compiler, libzmq, fi_pingpong, ucx_perftest, and uHAL and pyspw_rmap in the Python of --python. As root, everything
runs on the loopback interface of a network namespace of its own, with the congestion control asked for; else in the
system's network, with the system's.
Exit status: 0 every target met, 1 a run failed, 2 usage, 3 a target was missed.
"""

import argparse
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

import builds
import farm
import ipbus
import processes
import pva
import roce
import spacewire
from processes import (
    CONGESTION_CONTROL,
    LOOPBACK,
    Case,
    Failed,
    background,
    congestion_control,
    free_port,
    iperf3,
    iperf3_stream_gbit,
    measurement,
    output,
    word,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLONE_NEWNET = 0x40000000
KIB = 1024
# Few and many of them.
CHANNELS = 100, 10_000


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = [case for case in cases(options) if re.search(options.only, case.name)]
    if not chosen:
        sys.exit(usage(f"no case matches {options.only!r}; --list names them"))
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    require(options)
    facts = environment(options, enter_namespace(options.congestion))
    print_facts(facts)
    rows = []
    print(header(), flush=True)
    for case in chosen:
        rows.append(measure(case, options))
        print(line(rows[-1]), flush=True)
        if options.json:
            document = {"environment": facts, "cases": rows}
            pathlib.Path(options.json).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    good = sum(row["met"] is True for row in rows)
    print(f"{good} of {len(rows)} targets met" if not options.peers_only else "the peers alone: nothing to compare")
    if any(row["errors"] for row in rows):
        return 1
    return 0 if options.peers_only or good == len(rows) else 3


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="pairs per case (5)")
    parser.add_argument("--seconds", type=int, default=2, help="counted seconds of a run (2)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="the cases whose name matches")
    parser.add_argument("--cpu", default=default_cpus(), help="two processors: near and far (the first two allowed)")
    parser.add_argument("--congestion", default="cubic", help="TCP congestion control of both sides (cubic)")
    parser.add_argument("--class", default="other", choices=sorted(processes.CLASSES), dest="scheduling", help="scheduling class of all programs (other)")
    parser.add_argument("--hodo", default=os.environ.get("HODO", str(ROOT / "target/release/hodo")))
    parser.add_argument("--python", default=str(ROOT / "target/venv/bin/python"), help="the one that has uHAL")
    parser.add_argument("--json", metavar="FILE", help="write every round's figures there")
    parser.add_argument("--peers-only", action="store_true", help="leave Hodoscope out")
    parser.add_argument("--before", metavar="PATH", help="an earlier build of hodo, in place of the peers")
    parser.add_argument("--list", action="store_true", help="name the cases and stop")
    options = parser.parse_args()
    processes.chosen_class = options.scheduling
    options.cpus = options.cpu.split(",")
    if len(options.cpus) != 2 or not all(cpu.isdigit() for cpu in options.cpus):
        parser.error(f"--cpu {options.cpu}: give two processors, as 0,1")
    if options.rounds < 1 or options.seconds < 1:
        parser.error("--rounds and --seconds are at least 1")
    return options


def default_cpus():
    allowed = sorted(os.sched_getaffinity(0))
    return ",".join(str(cpu) for cpu in (allowed * 2)[:2])


def usage(text):
    print(text, file=sys.stderr)
    return 2


def require(options):
    missing = [tool for tool in ("sockperf", "iperf3", "taskset", "chrt", "setpriv", "cc") if not shutil.which(tool)]
    if missing:
        sys.exit(usage(f"not found: {', '.join(missing)}; `./test tools` installs them"))
    if subprocess.run(processes.in_class(["true"]), check=False).returncode:
        sys.exit(usage(f"--class {options.scheduling}: this class is refused; run as root"))
    if not options.peers_only and not os.access(options.hodo, os.X_OK):
        sys.exit(usage(f"{options.hodo} is not there: cargo build --release, or --hodo PATH"))
    if options.before and not os.access(options.before, os.X_OK):
        sys.exit(usage(f"{options.before} is not there: give the path of an earlier build"))
    if not options.peers_only and not os.access(options.python, os.X_OK):
        sys.exit(usage(f"{options.python} is not there: `./test python` makes it, or --python PATH"))


# The cases


def cases(options):
    if options.before:
        return list(builds.cases(options, links))
    found = [*links(options), *farm.cases(options), *pva.cases(options), *roce.cases(options), *spacewire.cases(options)]
    # Without our device and hub nobody has anything to talk to.
    return found if options.peers_only else [*found, *ipbus.cases(options)]


def links(options, many="block"):
    """Raw links; `many` is how ours waits with many operations in flight, where the peers block."""
    found = []
    for wait, name, peer in (("spin", "polling", "polling"), ("block", "blocking", "blocking"), ("adaptive", "adaptive", "blocking")):
        beside = "sockperf" if name == peer else f"sockperf, {peer}"
        for protocol in ("tcp", "udp"):
            for size in (64, KIB):
                two = ping_pong(protocol, size, wait, options)
                found.append(Case(f"{protocol} ping-pong {size} B, {name}", "us", 1.05, *two, "less", beside))
    for size in (32 * KIB, 128 * KIB):
        for channels, target in ((1, 1.0), (20, 2.0)):
            name = f"tcp stream {size // KIB} KiB, {channels} connection{'s' if channels > 1 else ''}"
            found.append(Case(name, "Gbit/s", target, *stream(size, channels, many, options), beside="iperf3"))
    found.append(Case("udp one way 1024 B, delivered", "Gbit/s", 5.0, *datagrams(KIB, many, options), beside="iperf3"))
    growth = growing(*CHANNELS, many, options)
    found.append(Case("tcp 64 B both ways, CPU of 10,000 channels over 100", "times", 1.1, *growth, "less", "a plain loop"))
    return found


def ping_pong(protocol, size, wait, options):
    near, far = options.cpus

    def ours():
        plan = ["--test", "latency", "--sizes", str(size), "--wait", word(options, wait), "--cpu", f"{near},{far}"]
        return hodo(protocol, plan, options)["latency_ns"]["p50"] / 1000

    def peer():
        port = free_port(protocol)
        common = ["-i", LOOPBACK, "-p", str(port)]
        common += ["--tcp"] if protocol == "tcp" else []
        common += ["--nonblocked"] if wait == "spin" else []
        server = ["taskset", "-c", far, "sockperf", "server", *common]
        client = ["taskset", "-c", near, "sockperf", "ping-pong", *common, "--full-rtt"]
        client += ["-m", str(size), "-t", str(options.seconds)]
        with background(server, protocol, port):
            return sockperf_median_us(output(client, options.seconds + 20))

    return ours, peer


def stream(size, channels, wait, options):
    # One connection has one processor at each end; many have both at both ends.
    near, far = options.cpus if channels == 1 else [",".join(options.cpus)] * 2

    def ours():
        plan = ["--test", "rate" if channels == 1 else "channels", "--mode", "send", "--sizes", str(size)]
        plan += ["--channels", str(channels), "--window", "64" if channels == 1 else "16"]
        plan += ["--wait", word(options, wait)]
        return payload_gbit(hodo("tcp", [*plan, "--cpu", ",".join(options.cpus)], options))

    def peer():
        return iperf3_stream_gbit(near, far, size, channels, options.seconds)

    return ours, peer


def growing(few, many, wait, options):
    """What an operation costs both ends on many channels, over what it costs on few."""

    def ours(channels):
        plan = ["--test", "channels", "--mode", "both", "--sizes", "64", "--window", "1", "--channels", str(channels)]
        cpu = hodo("tcp", [*plan, "--wait", word(options, wait), "--cpu", ",".join(options.cpus)], options)["cpu"]
        return sum(cpu[f"{side}_ns_per_operation"] for side in ("local", "remote"))

    def peer(channels):
        words = [processes.compiled("channels_floor"), str(channels), "64", str(options.seconds)]
        return json.loads(output(words, options.seconds + 20))["ns_per_exchange"]

    return (lambda cost=cost: cost(many) / cost(few) for cost in (ours, peer))


def datagrams(size, wait, options):
    near, far = options.cpus

    def ours():
        plan = ["--test", "rate", "--mode", "send", "--sizes", str(size), "--window", "512", "--wait", word(options, wait)]
        return payload_gbit(hodo("udp", [*plan, "--cpu", ",".join(options.cpus)], options))

    def peer():
        end = iperf3(near, far, ["-u", "-b", "0", "-l", str(size)], options.seconds)["end"]
        # Counted by the receiver; without --omit, which leaves the lost of the omitted second in.
        delivered = end["sum"]["packets"] - end["sum"]["lost_packets"]
        return delivered * size * 8 / end["sum"]["seconds"] / 1e9

    return ours, peer


# The two sides


def hodo(protocol, plan, options):
    """One measurement of ours, with a far end of its own."""
    run = ["--duration", f"{options.seconds}s", "--repeat", "1", "--json", "-", "--quiet"]
    run += ["--congestion", congestion_control()] if protocol == "tcp" else []
    return measurement(output([options.hodo, "bench", protocol, *plan, *run], options.seconds + 30))


def payload_gbit(found):
    return found["rate"]["payload_bits_per_s"]["median"] / 1e9


def sockperf_median_us(text):
    match = re.search(r"percentile 50\.000 =\s*([0-9.]+)", text)
    if not match or "Round trip is" not in text:
        raise Failed("sockperf printed no median round trip")
    return float(match[1])


# Running and comparing


def measure(case, options):
    pairs, errors = [], []
    for number in range(options.rounds):
        figures = {}
        for side in ("peer",) if options.peers_only else ("ours", "peer"):
            try:
                figures[side] = getattr(case, side)()
            except Failed as error:
                errors.append(f"round {number + 1}, {side}: {error}")
                print(f"  {case.name}: {errors[-1]}", file=sys.stderr)
        pairs.append(figures)
    ratios = [pair["ours"] / pair["peer"] for pair in pairs if len(pair) == 2 and pair["peer"] > 0]
    ratio = statistics.median(ratios) if ratios else None
    return {
        "case": case.name,
        "beside": case.beside,
        "unit": case.unit,
        "better": case.better,
        "target": case.target,
        "rounds": pairs,
        "ours": spread([pair["ours"] for pair in pairs if "ours" in pair]),
        "peer": spread([pair["peer"] for pair in pairs if "peer" in pair]),
        "ratio": spread(ratios),
        "met": None if ratio is None else case.met(ratio) and not errors,
        "errors": errors,
    }


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)} if values else None


# A table in Markdown, as docs/performance.md has it.
COLUMNS = "| {:<47} | {:<24} | {:>7} | {:>24} | {:>24} | {:>20} | {:>13} | {:<6} |"


def header():
    names = COLUMNS.format("exchange", "beside", "unit", "ours", "the other's", "ratio", "wanted", "")
    return f"{names}\n|---|---|--:|--:|--:|--:|--:|---|"


def line(row):
    def show(key):
        value = row[key]
        return "-" if value is None else "{} ({} to {})".format(*(digits(value[which]) for which in ("median", "min", "max")))

    target = f"at {'most' if row['better'] == 'less' else 'least'} {row['target']:.2f}"
    verdict = {True: "met", False: "missed", None: "failed" if row["errors"] else "-"}[row["met"]]
    figures = (show("ours"), show("peer"), show("ratio"))
    return COLUMNS.format(row["case"], row["beside"], row["unit"], *figures, target, verdict)


def digits(value):
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 0}f}"


# Where it runs


def enter_namespace(congestion):
    """Moves this process into a network namespace of its own, with this congestion control; says whether it could.

    A namespace may not choose a control that the system restricts, but it inherits the system's: so that is set for
    the moment in which the namespace is made, and put back through a file that was opened before.
    """
    if os.geteuid() != 0:
        print("not root: the system's network and congestion control are used", file=sys.stderr)
        return False
    before = congestion_control()
    signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        with open(CONGESTION_CONTROL, "w", encoding="ascii") as system:
            try:
                system.write(congestion)
                system.flush()
                made = ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) == 0
            finally:
                system.seek(0)
                system.write(before)
    except OSError as error:
        sys.exit(usage(f"congestion control {congestion}: {error.strerror}; `sysctl -a` lists the available ones"))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
    if made:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return made


def environment(options, namespace):
    return {
        "hodo": None if options.peers_only else first_line([options.hodo, "--version"]),
        "before": first_line([options.before, "--version"]) if options.before else None,
        "sockperf": first_line(["sockperf", "--version"]),
        "iperf3": first_line(["iperf3", "--version"]),
        "uhal": None if options.peers_only else uhal_version(options.python),
        "kernel": os.uname().release,
        "congestion_control": congestion_control(),
        "scheduling": {"other": "SCHED_OTHER", "fifo": "SCHED_FIFO"}[options.scheduling],
        "cpus": {"near": options.cpus[0], "far": options.cpus[1], "many connections": options.cpu},
        "namespace": namespace,
        "rounds": options.rounds,
        "seconds": options.seconds,
    }


def uhal_version(python):
    return first_line([python, "-c", "import importlib.metadata; print(importlib.metadata.version('uhal'))"])


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    return ((done.stdout or done.stderr).strip().splitlines() or ["unknown"])[0]


def print_facts(facts):
    peers = f"{facts['sockperf']}; {facts['iperf3']}" + (f"; uHAL {facts['uhal']}" if facts["uhal"] else "")
    print(f"{facts['hodo'] or 'hodo left out'}; {peers}; Linux {facts['kernel']}")
    where = "a network namespace of its own" if facts["namespace"] else "the system's network"
    print(
        f"congestion control {facts['congestion_control']}, all programs {facts['scheduling']}, loopback of {where}; near side on CPU"
        f" {facts['cpus']['near']}, far side on CPU {facts['cpus']['far']}, many connections on both at both ends;"
        f" {facts['rounds']} rounds of {facts['seconds']} s; medians with their range"
    )


if __name__ == "__main__":
    sys.exit(main())
