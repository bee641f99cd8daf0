"""Servers of the field's own software, started by the tests, and our command against them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import command
import golden

HERE = Path(__file__).resolve().parent
# No server of ours or theirs is found by others, or finds them.
ALONE = {"EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO", "EPICS_PVA_AUTO_ADDR_LIST": "NO"}
# The state of a listening socket in /proc/net/tcp.
LISTENS = "0A"


class Peer:
    """A server in a process of its own."""

    def __init__(self, process, port):
        self.process, self.port = process, port

    def run(self, verb, *arguments, **options):
        """Runs `hodo pva VERB` on this server."""
        return command.hodo("pva", verb, "-S", f"127.0.0.1:{self.port}", *arguments, **options)

    def said(self, verb, *arguments, status=0):
        """What a command that has to end with this status writes on standard output, or on standard error if it fails."""
        done = self.run(verb, *arguments)
        assert done.returncode == status, f"{done.args} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done.stderr if status else done.stdout

    def get(self, *names):
        """The values of PVs, as Python reads JSON."""
        lines = self.said("get", "-M", "json", "-t", *names).splitlines()
        values = [json.loads(line) for line in lines]
        return values if len(names) > 1 else values[0]

    def put(self, name, *words):
        self.said("put", "-q", name, "--", *words)

    def has_read_all(self):
        """Whether it has read all that its connections have sent."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return all(row[4].endswith(":00000000") for row in rows if int(row[1].split(":")[1], 16) == self.port)


def port_of(process, prefix="port "):
    """Reads the port that a server prints."""
    for line in process.stdout:
        if line.startswith(prefix):
            return int(line.removeprefix(prefix))
    raise AssertionError("the server has ended before it was there")


@contextlib.contextmanager
def served(arguments, prefix="port ", **environment):
    """A server that prints `port N` once it is there, and ends with its standard input."""
    environment = {**os.environ, **ALONE, "EPICS_PVAS_SERVER_PORT": "0", "EPICS_PVAS_BROADCAST_PORT": "0", **environment}
    process = subprocess.Popen(
        [*map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield Peer(process, port_of(process, prefix))
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def listening_port(process):
    """The TCP port of a process where pvAccess is spoken: an IOC speaks Channel Access at another one."""
    held = command.open_files(process.pid)
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENS and f"socket:[{fields[9]}]" in held:
            port = int(fields[1].split(":")[1], 16)
            with socket.create_connection(("127.0.0.1", port), 10) as connection:
                if connection.recv(1) == b"\xca":
                    return port
    raise AssertionError("the process does not listen")


@contextlib.contextmanager
def ioc(port=0, records="records.db", **environment):
    """A soft IOC with the records of a file, which ends with its standard input."""
    ports = {"EPICS_PVAS_SERVER_PORT": str(port), "EPICS_PVAS_BROADCAST_PORT": "0", "EPICS_CAS_INTF_ADDR_LIST": "127.0.0.1"}
    environment = {**os.environ, **ALONE, **ports, **environment}
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "pvxslibs.ioc", "-d", str(HERE / records)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
    )
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if "IOC Running" in line:
                break
        else:
            raise AssertionError("".join(said))
        yield Peer(process, listening_port(process))
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def p4p_server(port=0, names=0, **environment):
    """The server of serve_p4p.py."""
    return served([sys.executable, HERE / "serve_p4p.py", names], **{"EPICS_PVAS_SERVER_PORT": str(port), **environment})


@contextlib.contextmanager
def compiled_server(name, *arguments, **environment):
    """A server in C++, compiled against the field's libraries."""
    with tempfile.TemporaryDirectory() as folder, served([golden.compiled(name, folder), *arguments], **environment) as peer:
        yield peer
