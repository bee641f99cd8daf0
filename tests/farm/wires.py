"""Two network namespaces and a wire between them that can be cut."""

import contextlib
import os
import subprocess


def ip(*arguments):
    run("ip", *arguments)


def tc(*arguments):
    return run("tc", *arguments)


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr.strip()} (this needs root)"
    return done.stdout


class Pair:
    def __init__(self):
        self.near, self.far = f"hodo-faults-near-{os.getpid()}", f"hodo-faults-far-{os.getpid()}"
        self.near_address, self.far_address = "10.97.0.1", "10.97.0.2"

    def at_near(self):
        return ["ip", "netns", "exec", self.near]

    def at_far(self):
        return ["ip", "netns", "exec", self.far]

    def down(self):
        ip("-n", self.near, "link", "set", "wire", "down")

    def up(self):
        ip("-n", self.near, "link", "set", "wire", "up")


@contextlib.contextmanager
def pair():
    made = Pair()
    with contextlib.ExitStack() as stack:
        for name in (made.near, made.far):
            ip("netns", "add", name)
            # The interfaces inside go with their namespace.
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "wire", "netns", made.near, "type", "veth", "peer", "name", "wire", "netns", made.far)
        for name, address in ((made.near, made.near_address), (made.far, made.far_address)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "up")
        yield made
