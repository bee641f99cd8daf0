"""PVs that `hodo pva serve` serves, and p4p as their client."""

import contextlib
import os
import re
import socket
import struct
import threading
import urllib.request

import command
from p4p.client.thread import Context


def udp_port():
    """A free UDP port, for searches of one test."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        found.bind(("", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def serving(file, *options, port=None, listen="127.0.0.1:0", prefix=(), **environment):
    """A server's process with the address of its PVs as `at`, and that of its pages as `pages`. It is found at a UDP port, if one is given."""
    arguments = ["pva", "serve", file, "--metrics", "127.0.0.1:0", *(["--listen", listen] if listen else []), *options]
    arguments += [] if port else ["--tcp-only"]
    settings = {**os.environ, "EPICS_PVAS_BROADCAST_PORT": str(port or 0), **environment}
    with command.started(*arguments, prefix=prefix, env=settings) as process:
        # The log is read to its end, so that it never holds the server up.
        process.log = []
        threading.Thread(target=lambda: process.log.extend(process.stdout), daemon=True).start()
        wait_for = r"listening on (\S+:\d+)\n.*(http://[\d.:]+)\n"
        found = lambda: re.search(wait_for, "".join(process.log))  # noqa: E731
        command.wait_until(lambda: found() or process.poll() is not None, "it says where it is")
        assert found(), "".join(process.log)
        process.at, process.pages = found()[1], found()[2]
        yield process


@contextlib.contextmanager
def client(*servers, port=None, addresses="127.0.0.1", **options):
    """A p4p client that asks these servers over TCP, or searches these addresses at a UDP port."""
    conf = {
        "EPICS_PVA_NAME_SERVERS": " ".join(servers),
        "EPICS_PVA_ADDR_LIST": addresses if port else "",
        "EPICS_PVA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVA_BROADCAST_PORT": str(port or udp_port()),
    }
    with Context("pva", conf=conf, useenv=False, **options) as context:
        yield context


def page(process, path):
    """A page of a server."""
    with urllib.request.urlopen(process.pages + path, timeout=10) as reply:
        return reply.read().decode()


def calls(at, name, count):
    """A connection over which so many calls of a PV are made at once."""
    host, port = at.rsplit(":", 1)
    client = socket.create_connection((host, int(port)), 10)

    def message(number, body):
        return struct.pack("<BBBBI", 0xCA, 2, 0, number, len(body)) + body

    def text(of):
        return bytes([len(of)]) + of

    client.sendall(message(1, struct.pack("<IHH", 1 << 20, 0x7FFF, 0) + text(b"anonymous") + b"\xff"))
    client.sendall(message(7, struct.pack("<HI", 1, 1) + text(name.encode())))
    sid = channel(client)
    # A structure without fields, as the request and as the argument.
    nothing = b"\x80\x00\x00"
    client.sendall(b"".join(message(20, struct.pack("<IIB", sid, 1 + ioid, 8) + nothing) for ioid in range(count)))
    client.sendall(b"".join(message(20, struct.pack("<IIB", sid, 1 + ioid, 0) + nothing) for ioid in range(count)))
    return client


def channel(client):
    """The server's number of the channel, from its reply."""
    said = b""
    while True:
        more = client.recv(1 << 16)
        assert more, "the server has closed the connection"
        rest = said = said + more
        while len(rest) >= 8:
            flags, number, length = rest[2], rest[3], struct.unpack_from("<I", rest, 4)[0]
            length = 0 if flags & 1 else length
            if number == 7 and len(rest) >= 8 + length:
                return struct.unpack_from("<I", rest, 12)[0]
            rest = rest[8 + length :]
