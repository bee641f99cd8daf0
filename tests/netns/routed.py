"""Two hosts with a router between them, in network namespaces that are removed in any case."""

import contextlib
import os
import subprocess

import shaped


class Routed:
    """Names and addresses: `near` and `far` have a device `wire` each, the router has `left` and `right`."""

    def __init__(self, number):
        self.near, self.router, self.far = (f"hodo-{name}-{number}" for name in ("here", "router", "there"))
        self.near_address, self.far_address = "10.98.0.2", "10.98.1.2"

    def at_near(self):
        return ["ip", "netns", "exec", self.near]

    def at_far(self):
        return ["ip", "netns", "exec", self.far]


@contextlib.contextmanager
def routed(queues=None):
    """Two hosts whose interfaces are made with this many receive queues, if not as usual; nothing on the way is shaped."""
    made = Routed(os.getpid())
    with contextlib.ExitStack() as stack:
        for name in (made.near, made.router, made.far):
            shaped.ip("netns", "add", name)
            # The interfaces inside go with their namespace.
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
            shaped.ip("-n", name, "link", "set", "lo", "up")
        for number, (name, port) in enumerate(((made.near, "left"), (made.far, "right"))):
            receive = ["numrxqueues", str(queues)] if queues else []
            shaped.ip("link", "add", "wire", "netns", name, *receive, "type", "veth", "peer", "name", port, "netns", made.router)
            shaped.ip("-n", name, "address", "add", f"10.98.{number}.2/24", "dev", "wire")
            shaped.ip("-n", made.router, "address", "add", f"10.98.{number}.1/24", "dev", port)
            shaped.ip("-n", name, "link", "set", "wire", "up")
            shaped.ip("-n", made.router, "link", "set", port, "up")
            shaped.ip("-n", name, "route", "add", "default", "via", f"10.98.{number}.1")
        sysctl(made.router, "net.ipv4.ip_forward", "1")
        yield made


def sysctl(namespace, name, value):
    """Sets a value of the kernel in a namespace."""
    command = ["ip", "netns", "exec", namespace, "sh", "-c", f"echo '{value}' >/proc/sys/{name.replace('.', '/')}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
