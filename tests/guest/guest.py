"""A guest with the kernel's own RDMA device, rxe, on a wire to this host: the judge of what we send.

QEMU emulates the processor, because nested virtualization is not to be had everywhere: what takes a microsecond elsewhere takes a
hundred here, so that this judges correctness and no speed.
"""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

import image
from wire import Wire

HOST, GUEST = "10.9.0.254", "10.9.0.1"
HOST6, GUEST6 = "fd09::fe", "fd09::1"
AGENT = 9000
MTU = 9000
# A command that ends when something in the guest listens on 18515, the port of the ping-pong programs.
UNTIL_IT_LISTENS = 'until cat /proc/net/tcp /proc/net/tcp6 | grep -q "0:4853 0*:0000 0A"; do sleep 0.2; done'
# The card that costs least, and one with rings, coalescence and several interrupts.
VIRTIO = f"virtio-net-pci,netdev=wire,host_mtu={MTU},romfile="
E1000E = "e1000e,netdev=wire,romfile="
# Seconds. It takes 10 to 20.
BOOT = 120


class Died(AssertionError):
    """The guest, or a command in it, did not do what it should; the end of its console says more."""


class Running:
    """A command in the guest."""

    def __init__(self, guest, line, stdin=b""):
        self.guest, self.line, self.output = guest, line, b""
        self.socket = guest.connect()
        self.socket.sendall(line.replace("\n", " ").encode() + b"\n" + stdin)
        self.socket.shutdown(socket.SHUT_WR)

    def wait(self, timeout=60):
        """Waits for its end. Returns the exit status and the output."""
        until = time.monotonic() + timeout
        while True:
            self.socket.settimeout(max(0.01, until - time.monotonic()))
            try:
                chunk = self.socket.recv(65536)
            except TimeoutError:
                raise Died(f"`{self.line}` still runs after {timeout} s\n{self.text()}\n{self.guest.console()}") from None
            if not chunk:
                break
            self.output += chunk
        text, mark, status = self.text().rpartition("\n#exit ")
        if not mark:
            raise Died(f"`{self.line}` has no end\n{self.text()}\n{self.guest.console()}")
        return int(status), text

    def text(self):
        """Returns the output so far."""
        return self.output.decode(errors="replace")


class Guest:
    """A guest that is up. Everything on this host that talks to it is run by `at_host`."""

    def __init__(self, namespace, process, log, wire):
        self.namespace, self.process, self.log, self.wire = namespace, process, log, wire

    def at_host(self):
        """Returns what a command begins with that is run at this end of the wire."""
        return ["ip", "netns", "exec", self.namespace]

    def console(self):
        """Returns the end of the guest's console."""
        return "".join(pathlib.Path(self.log).read_text(errors="replace").splitlines(keepends=True)[-40:])

    def connect(self):
        """Connects to the agent, from within the namespace."""
        with inside(self.namespace):
            return socket.create_connection((GUEST, AGENT), timeout=30)

    def start(self, line, stdin=b""):
        """Starts a command."""
        return Running(self, line, stdin)

    def run(self, line, timeout=60, stdin=b""):
        """Runs a command. Returns the exit status and the output."""
        return self.start(f"timeout {timeout} sh -c '{line}'", stdin).wait(timeout + 10)

    def copy(self, file, place):
        """Copies a file into the guest."""
        status, said = self.run(f"cat >{place} && chmod 755 {place}", stdin=pathlib.Path(file).read_bytes())
        assert status == 0, said

    def install(self, program, place):
        """Copies a program into the guest, without its debug information, and the libraries that the guest lacks."""
        with tempfile.TemporaryDirectory() as folder:
            lean = pathlib.Path(folder) / "program"
            image.run("strip", "-o", lean, program)
            self.copy(lean, place)
        for library in re.findall(r"(/\S+) \(0x", image.run("ldd", program)):
            status, _ = self.run(f"ls {library}")
            if status:
                self.copy(library, library)

    def lose(self, percent):
        """Loses this share of the packets in both directions from now on; 0 ends that. Returns how many were lost until now."""
        self.wire.loss = percent / 100
        return self.wire.lost


@contextlib.contextmanager
def inside(namespace):
    """Puts this thread into a network namespace: sockets that are made meanwhile stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    home, there = os.open("/proc/thread-self/ns/net", os.O_RDONLY), os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    try:
        assert libc.setns(there, 0) == 0, os.strerror(ctypes.get_errno())
        yield
    finally:
        assert libc.setns(home, 0) == 0, os.strerror(ctypes.get_errno())
        os.close(home)
        os.close(there)


@contextlib.contextmanager
def guest(programs=(), card=VIRTIO):
    """A guest with these programs in /bin and this card, at the end of a wire. It is gone afterwards in any case."""
    kernel, disk = image.initial_ram_disk(programs)
    name, log = f"hodo-guest-{os.getpid()}", image.TARGET / f"console-{os.getpid()}.log"
    with contextlib.ExitStack() as stack:
        image.run("ip", "netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        wire = lay(name)
        command = [
            *("qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512", "-smp", "2"),
            *("-nographic", "-monitor", "none", "-no-reboot", "-serial", f"file:{log}", "-kernel", kernel, "-initrd", disk),
            *("-append", f"console=ttyS0 quiet panic=1 ADDRESS={GUEST} ADDRESS6={GUEST6}"),
            *("-netdev", f"dgram,id=wire,local.type=fd,local.str={wire.socket.fileno()}", "-device", card),
        ]  # fmt: skip
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=die_with_parent, pass_fds=[wire.socket.fileno()],
        )  # fmt: skip
        wire.socket.close()
        stack.callback(end, process)
        up = Guest(name, process, log, wire)
        wait_until_up(up)
        yield up
        log.unlink()


def lay(name):
    """Lays the wire: this host's end is the device `host` in the namespace."""
    with inside(name):
        wire = Wire()
    image.run("ip", "-n", name, "link", "set", "lo", "up")
    image.run("ip", "-n", name, "link", "set", "host", "mtu", str(MTU))
    image.run("ip", "-n", name, "address", "add", f"{HOST}/24", "dev", "host")
    image.run("ip", "-n", name, "-6", "address", "add", f"{HOST6}/64", "dev", "host", "nodad")
    image.run("ip", "-n", name, "link", "set", "host", "up")
    return wire


def die_with_parent():
    """Has the kernel end this process with the test."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def end(process):
    """Ends what was started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until_up(up):
    """Waits until the agent answers."""
    until = time.monotonic() + BOOT
    while True:
        assert up.process.poll() is None, f"QEMU has ended: {up.process.stdout.read().decode()}\n{up.console()}"
        try:
            status, _ = up.run("true", timeout=20)
        except (OSError, Died):
            status = None
        if status == 0:
            return
        if time.monotonic() > until:
            raise Died(f"not up after {BOOT} s:\n{up.console()}")
        time.sleep(0.2)
