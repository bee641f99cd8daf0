"""PVs that `hodo pva serve` serves, and p4p as their client."""

import contextlib
import re
import threading
import urllib.request

import command
from p4p.client.thread import Context


@contextlib.contextmanager
def serving(file, *options, **more):
    """A server's process with the address of its PVs as `at`, and that of its pages as `pages`."""
    arguments = ["pva", "serve", file, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", *options]
    with command.started(*arguments, **more) as process:
        said = process.stdout.readline() + process.stdout.readline()
        found = re.search(r"listening on (\S+)\n.*(http://\S+)", said)
        assert found, f"it does not say where it is:\n{said}{process.stdout.read()}"
        process.at, process.pages = found[1], found[2]
        # The log, which is read to its end so that it never holds the server up.
        process.log = []
        reader = threading.Thread(target=lambda: process.log.extend(process.stdout), daemon=True)
        reader.start()
        yield process


@contextlib.contextmanager
def client(*servers, **options):
    """A p4p client that asks these servers, over TCP."""
    conf = {
        "EPICS_PVA_NAME_SERVERS": " ".join(servers),
        "EPICS_PVA_ADDR_LIST": "",
        "EPICS_PVA_AUTO_ADDR_LIST": "NO",
        "EPICS_PVA_BROADCAST_PORT": "1",
    }
    with Context("pva", conf=conf, useenv=False, **options) as context:
        yield context


def page(process, path):
    """A page of a server."""
    with urllib.request.urlopen(process.pages + path, timeout=10) as reply:
        return reply.read().decode()
