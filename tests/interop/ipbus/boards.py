"""uHAL's side of a device."""

import contextlib
import multiprocessing
import pathlib
import random
import socket

import uhal

TABLES = pathlib.Path(__file__).with_name("tables")
SCHEMES = ("ipbusudp-2.0", "ipbustcp-2.0", "ipbusudp-1.3", "ipbustcp-1.3")
HUB_SCHEMES = ("chtcp-2.0", "chtcp-1.3")
WAYS = (*SCHEMES, *HUB_SCHEMES)
# Nothing is lost on loopback; a loaded machine may take its time.
PATIENCE_MS = 60_000
# Where nothing is to come, waiting for it is all that there is to do.
IMPATIENCE_MS = 150


def board(uri, table="plain.xml", patience_ms=PATIENCE_MS):
    """A board as uHAL sees it; its messages are exceptions, not lines on the terminal."""
    uhal.setLogLevelTo(uhal.LogLevel.FATAL)
    hardware = uhal.getDevice("board", uri, f"file://{TABLES / table}")
    hardware.setTimeoutPeriod(patience_ms)
    return hardware


def words(count, seed=1):
    """So many words, the same for the same seed."""
    return memoryview(random.Random(seed).randbytes(4 * count)).cast("I").tolist()


def signed(word):
    """A word as uHAL takes an addend."""
    return word - (1 << 32) if word >> 31 else word


def beyond(scheme):
    """How a device is reached by what a URI of this scheme names: a hub speaks UDP."""
    return scheme.replace("chtcp", "ipbusudp")


def kind_of(scheme):
    """The kind of a device's socket."""
    return socket.SOCK_STREAM if scheme.startswith("ipbustcp") else socket.SOCK_DGRAM


def through(hub, uri):
    """The way to the device of a URI through the hub at an address."""
    scheme, target = uri.split("://", maxsplit=1)
    return f"{scheme.replace('ipbusudp', 'chtcp')}://{hub}?target={target}"


def is_version_2(uri):
    return uri.split("://", maxsplit=1)[0].endswith("2.0")


def timeout_of(uri):
    """What uHAL raises where no answer comes."""
    return uhal.UdpTimeout if uri.startswith("ipbusudp") else uhal.TcpTimeout


@contextlib.contextmanager
def peer(reply):
    """Somebody who answers one packet with this one, or with what this function makes of it: a port, and what came there. In
    a process, because uHAL lets no other thread run while it waits."""
    context = multiprocessing.get_context("fork")
    near, far = context.Pipe()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line, near, far:
        line.bind(("127.0.0.1", 0))
        process = context.Process(target=answer, args=(line, reply, far), daemon=True)
        process.start()
        try:
            yield line.getsockname()[1], lambda: near.recv() if near.poll(10) else None
        finally:
            process.kill()
            process.join()


def answer(line, reply, pipe):
    packet, sender = line.recvfrom(65536)
    line.sendto(reply(packet) if callable(reply) else reply, sender)
    pipe.send(packet)
