"""The processes of a farm: each is started as a user does, watched, and ended with the test."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "docs/examples")]
import command

# How long a farm may take to come to where the test wants it, on a loaded machine.
PATIENCE_S = 30


class Part:
    """A process of the farm, and what it says."""

    def __init__(self, *words, prefix=()):
        self.words = [*map(str, prefix), command.HODO, "farm", *map(str, words)]
        self.lines = []
        self.heard = threading.Condition()
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.pid = self.process.pid
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        # To its end, so that a talkative process is never held up.
        for line in self.process.stdout:
            with self.heard:
                self.lines.append((time.monotonic(), line.rstrip("\n")))
                self.heard.notify_all()
        with self.heard:
            self.lines.append((time.monotonic(), None))
            self.heard.notify_all()

    def text(self):
        return "\n".join(line for _, line in self.lines if line is not None)

    def said(self, pattern, within=PATIENCE_S, since=0):
        """The first line that matches after so many lines, once there is one."""
        return self.when(pattern, within, since)[1]

    def when(self, pattern, within=PATIENCE_S, since=0):
        """When it said so, and the match."""
        give_up = time.monotonic() + within
        with self.heard:
            while True:
                for at, line in self.lines[since:]:
                    if line is not None and (found := re.search(pattern, line)):
                        return at, found
                over = self.lines and self.lines[-1][1] is None
                left = give_up - time.monotonic()
                if over or left <= 0 or not self.heard.wait(left):
                    raise AssertionError(f"{' '.join(self.words)} did not say {pattern!r}:\n{self.text()}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, within=PATIENCE_S):
        """Ends it in order, where it has not ended by itself; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.done(within)

    def done(self, within=PATIENCE_S):
        """Its exit status, once it has ended by itself."""
        try:
            status = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{' '.join(self.words)} is not done after {within} s:\n{self.text()}") from None
        self.reader.join(within)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.reader.join(5)
        self.process.stdout.close()


class Controller(Part):
    """A controller, where it listens, and its pages."""

    def __init__(self, *options, listen=None, namespace=None, prefix=()):
        self.namespace = namespace
        if namespace:
            prefix = ["ip", "netns", "exec", namespace, *prefix]
        super().__init__("controller", "--listen", listen or command.free_address(), "--metrics", "127.0.0.1:0", *options, prefix=prefix)
        self.at = self.pages = None

    def listening(self):
        self.at = self.said(r"listening on (\S+)")[1]
        self.pages = self.said(r"pages on (http://[\w.:\[\]]+)")[1]
        return self

    def page(self):
        """Its state."""
        return json.loads(self.fetch("/farm"))

    def metrics(self):
        """Its counters and gauges, each by its name with its labels."""
        rows = [row.rsplit(" ", 1) for row in self.fetch("/metrics").splitlines() if row and row[0] != "#"]
        return {name: float(value) for name, value in rows}

    def fetch(self, path):
        with inside(self.namespace), urllib.request.urlopen(self.pages + path, timeout=10) as answer:
            return answer.read().decode()

    def until(self, condition, what, patience=PATIENCE_S):
        """The state, once it is so."""
        give_up = time.monotonic() + patience
        while True:
            page = self.page()
            if condition(page):
                return page
            assert time.monotonic() < give_up, f"after {patience} s still not so: {what}\n{page}\n{self.text()}"
            time.sleep(0.01)

    def has_nodes(self, count, patience=PATIENCE_S):
        return self.until(lambda page: page["connections"]["nodes"] == count, f"{count} nodes", patience)

    def has_decided(self, count, patience=PATIENCE_S):
        return self.until(lambda page: decided(page) >= count, f"{count} events are decided", patience)

    def rate(self, seconds):
        """Events decided in a second, over so many."""
        first = self.page()
        wanted = first["uptime_s"] + seconds
        last = self.until(lambda page: page["uptime_s"] >= wanted, "time passes", seconds + PATIENCE_S)
        return (decided(last) - decided(first)) / (last["uptime_s"] - first["uptime_s"])

    def reaches(self, rate_per_s, patience=10):
        """Its rate, once it is so high over a second: the machine may be busy with something else for a while."""
        give_up = time.monotonic() + patience
        while (rate := self.rate(1)) < rate_per_s:
            assert time.monotonic() < give_up, f"{rate} events/s, not {rate_per_s}\n{self.page()}"
        return rate


def decided(page):
    events = page["events"]
    return sum(events[verdict] for verdict in ("accepted", "rejected", "quarantined", "incomplete"))


@contextlib.contextmanager
def inside(namespace):
    """This thread is in a network namespace: sockets that it makes are of that."""
    if not namespace:
        yield
        return
    library = ctypes.CDLL(None, use_errno=True)

    def enter(descriptor):
        if library.setns(descriptor, 0):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}; this needs root")

    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{namespace}", "rb") as there:
        enter(there.fileno())
        try:
            yield
        finally:
            enter(home.fileno())


class Farm(contextlib.ExitStack):
    """Parts that end with the test."""

    def part(self, *words, **how):
        part = Part(*words, **how)
        self.callback(part.close)
        return part

    def controller(self, *options, **how):
        controller = Controller(*options, **how)
        self.callback(controller.close)
        return controller.listening()

    def node(self, at, number, *options, **how):
        return self.part("node", "--to", at, "--number", number, *options, **how)

    def nodes(self, at, count, *options, **how):
        return [self.node(at, number, *options, **how) for number in range(count)]

    def source(self, at, *options, **how):
        return self.part("source", "--to", at, "--numbered", *options, **how)


def stop(part):
    os.kill(part.pid, signal.SIGSTOP)


def go_on(part):
    os.kill(part.pid, signal.SIGCONT)
