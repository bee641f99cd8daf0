"""Network namespaces with shaped wires between them, removed in any case: two hosts, or a controller and its leaves."""

import contextlib
import json
import os
import subprocess

# Stands for a wire of 1 Gbit/s: tbf counts 1,514 of the 1,538 bytes that a full frame takes on the wire.
TBF_KBIT = 984_395
# The same for 100 Mbit/s.
TBF_LEAF_KBIT = 98_440
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


class Farm:
    """Where the controller and the leaves are: each has a host, that is a namespace, of its own."""

    def __init__(self, number, leaves):
        self.switch, self.controller = f"hodo-switch-{number}", f"hodo-controller-{number}"
        self.leaves = [f"hodo-leaf-{number}-{leaf}" for leaf in range(leaves)]
        self.address = "10.99.0.1"

    def at_controller(self):
        return ["ip", "netns", "exec", self.controller]

    def at_leaf(self, leaf):
        return ["ip", "netns", "exec", self.leaves[leaf]]


@contextlib.contextmanager
def farm(leaves=20, kbit_per_s=TBF_KBIT, leaf_kbit_per_s=TBF_LEAF_KBIT):
    """A switch with a wire to the controller and one to each leaf, both directions of each shaped."""
    made = Farm(os.getpid(), leaves)
    with contextlib.ExitStack() as stack:
        for name in (made.switch, made.controller, *made.leaves):
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", made.switch, "link", "add", "bridge", "type", "bridge")
        ip("-n", made.switch, "link", "set", "bridge", "up")
        for number, name in enumerate((made.controller, *made.leaves)):
            port, rate = f"port{number}", leaf_kbit_per_s if number else kbit_per_s
            ip("link", "add", "wire", "netns", name, "type", "veth", "peer", "name", port, "netns", made.switch)
            ip("-n", name, "address", "add", f"10.99.0.{number + 1}/24", "dev", "wire")
            ip("-n", name, "link", "set", "wire", "mtu", str(MTU), "up")
            ip("-n", made.switch, "link", "set", port, "mtu", str(MTU), "master", "bridge", "up")
            shape(name, rate)
            shape(made.switch, rate, port)
        yield made


def shape(name, kbit_per_s, device="wire", how="add"):
    """Shapes what leaves by a device; `how` is `change` where it is shaped already."""
    rate = ["rate", f"{kbit_per_s}kbit", "burst", "64k", "latency", "20ms"]
    command = ["tc", "-n", name, "qdisc", how, "dev", device, "root", "tbf", *rate]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"


def queue(name, kbit_per_s, limit, device="wire"):
    """Shapes what leaves by a device, with a queue of so many bytes and bursts of two frames."""
    rate = ["rate", f"{kbit_per_s}kbit", "burst", "3k", "limit", limit]
    command = ["tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", *rate]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"


def delivered(name, device="wire"):
    """The frames that a device has received."""
    (link,) = json.loads(ip("-n", name, "-json", "-statistics", "link", "show", device))
    return link["stats64"]["rx"]["packets"]
