"""Two network namespaces with a shaped wire between them, removed in any case."""

import contextlib
import json
import os
import subprocess

# Stands for a wire of 1 Gbit/s: tbf counts 1,514 of the 1,538 bytes that a full frame takes on the wire.
TBF_KBIT = 984_395
MTU = 1500


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr.strip()} (this needs root)"
    return done.stdout


class Wire:
    """Names and addresses of the two ends."""

    def __init__(self, number):
        self.near, self.far = f"hodo-near-{number}", f"hodo-far-{number}"
        self.near_address, self.far_address = "10.99.0.2", "10.99.0.1"

    def at_near(self):
        return ["ip", "netns", "exec", self.near]

    def at_far(self):
        return ["ip", "netns", "exec", self.far]

    def sent_bytes(self):
        """What the near end has put on the wire so far."""
        (link,) = json.loads(ip("-n", self.near, "-json", "-statistics", "link", "show", "wire"))
        return link["stats64"]["tx"]["bytes"]


@contextlib.contextmanager
def wire(kbit_per_s=TBF_KBIT, mtu=MTU):
    """A wire whose both directions are shaped to so many kbit/s as tbf counts them."""
    made = Wire(os.getpid())
    with contextlib.ExitStack() as stack:
        for name in (made.near, made.far):
            ip("netns", "add", name)
            # The interfaces inside go with their namespace.
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        ip("link", "add", "wire", "netns", made.near, "type", "veth", "peer", "name", "wire", "netns", made.far)
        for name, address in ((made.near, made.near_address), (made.far, made.far_address)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "mtu", str(mtu), "up")
            ip("-n", name, "link", "set", "lo", "up")
            shape(name, kbit_per_s)
        yield made


def shape(name, kbit_per_s):
    rate = ["rate", f"{kbit_per_s}kbit", "burst", "64k", "latency", "20ms"]
    command = ["tc", "-n", name, "qdisc", "add", "dev", "wire", "root", "tbf", *rate]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
