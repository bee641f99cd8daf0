"""Storing: one source, a controller with a store, four nodes that accept everything; events/s, and CPU of each thread of the controller.

`python benches/peers/storing.py FOLDER hodo [another]`: in turns, on the disk of FOLDER. Between the runs the system has time to give
free memory back to the host of a virtual machine, which makes the next one begin with fresh pages.
"""

import argparse
import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

# How long a virtual machine's free memory stays before its host has it back.
SETTLE_S = 3
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the stores are made, and removed again")
    parser.add_argument("programs", nargs="+", help="hodo, and others to be compared with it")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--size", default="32000")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    for durability in ("process", "disk"):
        rates = {program: [] for program in options.programs}
        for _ in range(options.rounds):
            for program in options.programs:
                rate, threads = stored(program, durability, options)
                rates[program].append(rate)
                text = ", ".join(f"{name} {cpu_us:.1f}" for name, cpu_us in sorted(threads.items()))
                print(f"{durability:8} {program}: {rate:,.0f} events/s; us of CPU an event: {text}", flush=True)
                time.sleep(SETTLE_S)
        first = options.programs[0]
        for other in options.programs[1:]:
            ratios = sorted(mine / its for mine, its in zip(rates[first], rates[other]))
            print(f"{durability:8} {first} over {other}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def stored(program, durability, options):
    """The rate of one run, and the CPU that an event takes in each thread of the controller, in us."""
    with contextlib.ExitStack() as run:
        store = run.enter_context(tempfile.TemporaryDirectory(dir=options.folder))

        def part(*words):
            command = [program, "farm", *words]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            run.callback(process.communicate)
            run.callback(process.terminate)
            return process

        where = ["--listen", "127.0.0.1:0", "--no-metrics", "--store", f"{store}/store", "--durability", durability]
        controller = part("controller", *where)
        at = next(found[1] for line in controller.stdout if (found := re.search(r"listening on (\S+)", line)))
        part("node", "--to", at, "--count", "4", "--credits", "8", "--accept", "1")
        before, began = cpu_s(controller.pid), time.monotonic()
        source = part("source", "--to", at, "--events", str(options.events), "--size", options.size)
        if source.wait() != 0:
            raise SystemExit(source.stdout.read())
        rate = options.events / (time.monotonic() - began)
        spent = {name: cpu - before.get(name, 0) for name, cpu in cpu_s(controller.pid).items()}
        return rate, {name: 1e6 * cpu / options.events for name, cpu in spent.items() if cpu > 0}


def cpu_s(pid):
    """The CPU that each thread of a process has had."""
    found = {}
    for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
        name, rest = re.match(r"\d+ \((.*)\) (.*)", stat.read_text(encoding="ascii")).groups()
        fields = rest.split()
        found[name] = found.get(name, 0) + TICK_S * (int(fields[11]) + int(fields[12]))
    return found


if __name__ == "__main__":
    main()
