"""PVs that `hodo pva serve` serves, and p4p as their client."""

import contextlib
import os
import re
import socket
import threading
import urllib.request

import command
from p4p.client.thread import Context


def udp_port():
    """A free UDP port, for searches of one test."""
    return command.free_port(socket.SOCK_DGRAM)


@contextlib.contextmanager
def serving(file, *options, port=None, listen=None, prefix=(), **environment):
    """A server's process with the address of its PVs as `at`, and that of its pages as `pages`. It is found at a UDP port, if one is given. With an empty
    `listen` it listens where its file says."""
    listen = command.free_address() if listen is None else listen
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
